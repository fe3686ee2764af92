//! Bulk operations: a home shard with records, jobs that know which operation changed them, and a driver that may die anywhere. Each
//! clause is broken on purpose, and the stories find it.

use crate::bulk_world::{JOBS, PAGE, World};
use campanile_core::{
    bulk::{
        self,
        rules::{Rule, break_rule},
    },
    job::{BulkCommand, BulkStep, Command, Reply},
};
use campanile_schema::{
    error::ErrorCode,
    ids::BulkId,
    job::JobStatus,
    limits::{BULK_FAILURES, BULK_KEPT, BULK_OPEN_OF_TENANT},
    stored::bulk::{BulkAction, BulkCounts, BulkFailure, BulkState, StoredBulk, StoredBulkFilter},
};

/// A pause of all jobs, one of which was paused; a person resumes one; then the undo.
fn pause_and_undo() -> Vec<String> {
    let mut world = World::new();
    world.tell(3, &Command::Pause { reason: None }).unwrap();
    let id = world.begun(BulkAction::Pause);
    world.drive(id);
    world.expect(world.bulks[&id].state == BulkState::Done, "the pause is done");
    world.expect(world.counts(id) == (JOBS - 1, 1, 0), "each job counts once, and the paused one as unchanged");
    world.expect(world.with_status(JobStatus::Paused) == JOBS as usize, "all are paused");
    world.tell(5, &Command::Resume).unwrap();
    world.tell(5, &Command::Pause { reason: None }).unwrap();
    let late = world.abort(id);
    world.expect(late == Err(ErrorCode::IllegalState), "what has ended cannot be aborted");
    let state = world.bulks[&id].state;
    world.expect(state == BulkState::Done, "and stays as it is");
    let begins = world.begin(id);
    world.expect(!begins, "nothing begins after the end");
    let Ok(undo) = world.undo(id) else { return vec!["it can be undone".to_owned()] };
    world.drive(undo);
    world.expect(world.status(3) == JobStatus::Paused, "what was paused before stays paused");
    world.expect(world.status(5) == JobStatus::Paused, "what a person paused since stays paused");
    world.expect(world.with_status(JobStatus::Paused) == 2, "all others are resumed");
    let again = world.undo(id);
    world.expect(again == Err(ErrorCode::IllegalState), "it is undone once");
    world.wrong
}

/// What an undo is told about jobs that are not the operation's.
fn undo_of_others() -> Vec<String> {
    let mut world = World::new();
    let id = world.begun(BulkAction::Pause);
    world.drive(id);
    world.tell(2, &Command::Resume).unwrap();
    world.tell(2, &Command::Pause { reason: None }).unwrap();
    // The look of the undo found it before the person came.
    let command = BulkCommand { bulk: BulkId(99), step: BulkStep::Resume, undo_of: Some(id), reason: None };
    let reply = world.tell(2, &Command::Bulk(Box::new(command)));
    world.expect(reply == Ok(Reply::Unchanged), "a job that a person has changed since is left alone");
    world.expect(world.status(2) == JobStatus::Paused, "and stays paused");
    world.wrong
}

/// A person pauses what the operation has paused already; a job comes into quarantine; a page arrives after the undo.
fn undo_and_what_came_since() -> Vec<String> {
    let mut world = World::new();
    let id = world.begun(BulkAction::Pause);
    world.drive(id);
    world.tell(2, &Command::Pause { reason: None }).unwrap();
    world.tell(4, &Command::Quarantine { reason: "it panicked".to_owned() }).unwrap();
    let undo = world.undo(id).unwrap();
    world.drive(undo);
    world.expect(world.status(2) == JobStatus::Paused, "what a person has paused once more stays paused");
    world.expect(world.jobs[&4].hot.quarantine.is_some(), "an undo ends no quarantine");
    world.expect(world.with_status(JobStatus::Enabled) == JOBS as usize - 2, "all others are resumed");
    // Its driver was cut off in the middle of a call.
    let late = BulkCommand { bulk: id, step: BulkStep::Pause, undo_of: None, reason: None };
    let reply = world.tell(6, &Command::Bulk(Box::new(late)));
    world.expect(reply == Ok(Reply::Unchanged), "a page that arrives after the undo changes nothing");
    world.expect(world.status(6) == JobStatus::Enabled, "and the job goes on");
    // An operation of its own may pause it all the same.
    let other = world.begun(BulkAction::Pause);
    world.drive(other);
    world.expect(world.status(6) == JobStatus::Paused, "the next operation pauses it");
    world.wrong
}

fn enabled(action: BulkAction) -> StoredBulk {
    let filter = StoredBulkFilter { status: Some(JobStatus::Enabled.code()), ..StoredBulkFilter::default() };
    StoredBulk { action, tenant: Some("default".into()), filter, ..StoredBulk::default() }
}

/// The jobs that it has paused do not fit its filter any more.
fn grace_of_enabled_jobs() -> Vec<String> {
    let mut world = World::new();
    world.tell(3, &Command::Pause { reason: None }).unwrap();
    let id = world.create(StoredBulk { grace_ms: Some(60_000), ..enabled(BulkAction::Delete) }).unwrap();
    world.drive(id);
    world.now_ms += 60_000;
    let over = bulk::proceed(&world.bulks, id, world.now_ms).unwrap();
    world.apply(over);
    world.drive(id);
    world.expect(world.with_status(JobStatus::Deleted) == JOBS as usize - 1, "what it has paused is deleted");
    world.expect(world.status(3) == JobStatus::Paused, "and nothing else");
    world.wrong
}

fn triggers() -> Vec<String> {
    let mut world = World::new();
    let id = world.begun(BulkAction::Trigger);
    world.drive(id);
    let once = world.runs.len() == JOBS as usize && world.runs.values().all(|runs| *runs == 1);
    world.expect(once, "each job has one run, whoever died");
    world.expect(world.counts(id) == (JOBS, 0, 0), "each counts once");
    world.wrong
}

fn abort_in_the_middle() -> Vec<String> {
    let mut world = World::new();
    let id = world.begun(BulkAction::Pause);
    world.begin(id);
    world.work(id, false, 1);
    world.abort(id).unwrap();
    world.expect(world.bulks[&id].state == BulkState::Aborting, "the page that had begun is finished first");
    world.drive(id);
    world.expect(world.bulks[&id].state == BulkState::Aborted, "then it is aborted");
    world.expect(world.with_status(JobStatus::Paused) == PAGE, "the page is done, and no other one");
    let begins = world.begin(id);
    world.expect(!begins, "no page begins any more");
    world.wrong
}

/// Two drivers, because the home shard has moved and the old one does not know yet.
fn two_drivers() -> Vec<String> {
    let mut world = World::new();
    let id = world.begun(BulkAction::Pause);
    let (pages, page) = (world.bulks[&id].pages, world.look(id));
    let first = bulk::begin(&world.bulks, id, pages, page.clone()).unwrap();
    world.apply(first);
    let second = bulk::begin(&world.bulks, id, world.bulks[&id].pages, page.clone()).unwrap();
    world.expect(second.is_none(), "one page at a time");
    let counts = world.work(id, false, PAGE);
    world.report(id, 1, counts.clone());
    world.begin(id);
    let late = world.report(id, 1, counts);
    world.expect(!late, "a report of the page before counts no more");
    let counts = world.work(id, false, PAGE);
    world.report(id, 2, counts);
    let late = bulk::begin(&world.bulks, id, pages, page).unwrap();
    world.expect(late.is_none(), "a page that was found before others were done is not the next one");
    world.wrong
}

fn grace() -> Vec<String> {
    let asked = || StoredBulk {
        action: BulkAction::Delete,
        tenant: Some("default".into()),
        grace_ms: Some(60_000),
        ..StoredBulk::default()
    };
    let mut world = World::new();
    world.tell(3, &Command::Pause { reason: None }).unwrap();
    let id = world.create(asked()).unwrap();
    world.drive(id);
    world.expect(world.bulks[&id].state == BulkState::Waiting, "it waits");
    world.expect(world.with_status(JobStatus::Paused) == JOBS as usize, "all are paused");
    let early = bulk::proceed(&world.bulks, id, world.now_ms + 59_999).unwrap();
    world.expect(early.is_none(), "not before the grace is over");
    let begins = world.begin(id);
    world.expect(!begins, "nothing begins in the grace");
    world.tell(5, &Command::Resume).unwrap();
    world.now_ms += 60_000;
    let over = bulk::proceed(&world.bulks, id, world.now_ms).unwrap();
    world.apply(over);
    // Found before a person came, who resumes it in the last moment.
    world.begin(id);
    let found = world.bulks[&id].page.clone().unwrap().items[0].id;
    world.tell(found, &Command::Resume).unwrap();
    world.drive(id);
    world.expect(world.bulks[&id].state == BulkState::Done, "it is done");
    let spared = world.status(5) == JobStatus::Enabled && world.status(found) == JobStatus::Enabled;
    world.expect(spared, "what was resumed is spared");
    world.expect(world.with_status(JobStatus::Deleted) == JOBS as usize - 2, "all others are deleted, job 3 too");
    let undone = world.undo(id);
    world.expect(undone == Err(ErrorCode::IllegalState), "a deletion cannot be undone");

    let mut world = World { wrong: world.wrong, ..World::new() };
    world.tell(3, &Command::Pause { reason: None }).unwrap();
    let id = world.create(asked()).unwrap();
    world.drive(id);
    let undo = world.undo(id).unwrap();
    world.drive(undo);
    world.now_ms += 60_000;
    let over = bulk::proceed(&world.bulks, id, world.now_ms).unwrap();
    world.expect(over.is_none(), "what was undone in its grace deletes nothing");
    world.expect(world.status(3) == JobStatus::Paused, "what was paused before stays paused");
    world.expect(world.with_status(JobStatus::Enabled) == JOBS as usize - 1, "and the others are back");
    world.wrong
}

fn bounds() -> Vec<String> {
    let mut world = World::new();
    let asked = || StoredBulk { tenant: Some("default".into()), ..StoredBulk::default() };
    let made = (0..BULK_OPEN_OF_TENANT + 1).filter(|_| world.create(asked()).is_some()).count();
    world.expect(made == BULK_OPEN_OF_TENANT, "so many may be open at a time");
    let mut world = World { wrong: world.wrong, ..World::new() };
    for _ in 0..BULK_KEPT + 9 {
        let id = world.begun(BulkAction::Pause);
        world.abort(id).unwrap();
    }
    world.expect(world.bulks.len() <= BULK_KEPT, "so many that have ended are kept");
    let mut world = World { wrong: world.wrong, ..World::new() };
    let id = world.begun(BulkAction::Pause);
    for pages in 1..=3 {
        world.begin(id);
        let failure = |id| BulkFailure { id, code: "409_RUN_ACTIVE".into(), message: "a run is active".into() };
        let failures = (0..BULK_FAILURES as u64).map(failure).collect();
        world.report(id, pages, BulkCounts { failed: BULK_FAILURES as u64, failures, ..BulkCounts::default() });
    }
    let BulkCounts { failed, failures, .. } = world.bulks[&id].counts.clone();
    world.expect(failed == 3 * BULK_FAILURES as u64, "all are counted");
    world.expect(failures.len() == BULK_FAILURES, "the first are named");
    world.wrong
}

fn restore_and_move() -> Vec<String> {
    let mut world = World::new();
    let (id, idle) = (world.begun(BulkAction::Trigger), world.begun(BulkAction::Pause));
    world.begin(id);
    world.work(id, false, 1);
    let changes = bulk::restored(&world.bulks, world.now_ms);
    world.apply(changes);
    let aborted = [id, idle].iter().all(|id| world.bulks[id].state == BulkState::Aborted);
    world.expect(aborted, "a restore aborts what is open");

    let mut world = World { wrong: world.wrong, ..World::new() };
    let id = world.begun(BulkAction::Trigger);
    world.begin(id);
    world.work(id, false, 1);
    bulk::moved(&mut world.bulks);
    world.drive(id);
    let once = world.runs.len() == JOBS as usize && world.runs.values().all(|runs| *runs == 1);
    world.expect(once, "after a move the walk begins anew, and each job has one run");
    world.expect(world.counts(id) == (JOBS, 0, 0), "and counts once");
    world.wrong
}

/// Does a page, begins the next one, does a part of it, and moves to other shards.
fn moved_in_the_middle(world: &mut World, id: BulkId) {
    world.begin(id);
    let counts = world.work(id, false, PAGE);
    world.report(id, world.bulks[&id].pages, counts);
    world.begin(id);
    world.work(id, false, 1);
    bulk::moved(&mut world.bulks);
}

fn counts_after_a_move() -> Vec<String> {
    let mut world = World::new();
    let id = world.create(enabled(BulkAction::Pause)).unwrap();
    moved_in_the_middle(&mut world, id);
    world.drive(id);
    world.expect(world.with_status(JobStatus::Paused) == JOBS as usize, "all are paused");
    world
        .expect(world.counts(id) == (JOBS, 0, 0), "a pause of enabled jobs counts also those that it had paused, once");
    let undo = world.undo(id).unwrap();
    moved_in_the_middle(&mut world, undo);
    world.drive(undo);
    world.expect(world.with_status(JobStatus::Enabled) == JOBS as usize, "all are resumed");
    world.expect(world.counts(undo) == (JOBS, 0, 0), "and so does its undo");

    let mut world = World { wrong: world.wrong, ..World::new() };
    let id = world.create(StoredBulk { grace_ms: Some(60_000), ..enabled(BulkAction::Delete) }).unwrap();
    moved_in_the_middle(&mut world, id);
    world.drive(id);
    world.expect(world.counts(id) == (JOBS, 0, 0), "and the pauses of a delete with a grace");
    bulk::moved(&mut world.bulks);
    world.expect(world.counts(id) == (JOBS, 0, 0), "which stay counted while it waits");

    let mut world = World { wrong: world.wrong, ..World::new() };
    let id = world.begun(BulkAction::Pause);
    world.begin(id);
    let counts = world.work(id, false, PAGE);
    world.report(id, 1, counts);
    world.begin(id);
    world.abort(id).unwrap();
    bulk::moved(&mut world.bulks);
    world.drive(id);
    world.expect(world.counts(id) == (2 * PAGE as u64, 0, 0), "and what an aborted one has done");
    world.wrong
}

fn findings() -> Vec<String> {
    let stories: [fn() -> Vec<String>; 11] = [
        pause_and_undo,
        undo_of_others,
        undo_and_what_came_since,
        triggers,
        abort_in_the_middle,
        two_drivers,
        grace,
        grace_of_enabled_jobs,
        bounds,
        restore_and_move,
        counts_after_a_move,
    ];
    stories.iter().flat_map(|story| story()).collect()
}

#[test]
fn the_clauses_hold() {
    assert_eq!(findings(), Vec::<String>::new());
}

#[test]
fn each_clause_that_is_broken_is_found() {
    for rule in Rule::ALL {
        break_rule(Some(rule));
        let found = std::panic::catch_unwind(findings);
        break_rule(None);
        // A story that cannot go on has found it too.
        assert!(found.map_or(true, |found| !found.is_empty()), "{rule:?} is broken, and nothing was found");
    }
}
