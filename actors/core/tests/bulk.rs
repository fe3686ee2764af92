//! Bulk operations: a home shard with records, jobs that know which operation changed them, and a driver that may die anywhere. Each
//! clause is broken on purpose, and the stories find it.

use crate::support::make::{every, plain};
use campanile_core::{
    bulk::{
        self, Bulks,
        rules::{Rule, break_rule},
    },
    job::{BulkCommand, BulkStep, Command, Context, Ids, Job, Reply, apply::created, bulk_step, decide_next},
};
use campanile_schema::{
    error::ErrorCode,
    frame::{decode, encode},
    ids::{BulkId, Epoch, JobId},
    job::JobStatus,
    limits::{BULK_FAILURES, BULK_KEPT, BULK_OPEN_OF_TENANT},
    stored::{
        audit::CallOrigin,
        bulk::{BulkAction, BulkChange, BulkCounts, BulkFailure, BulkItem, BulkPage, BulkPlace, BulkState, StoredBulk},
    },
};
use std::collections::{BTreeMap, BTreeSet};

const T0: i64 = 1_000_000;
const JOBS: u64 = 7;
/// Items of a page.
const PAGE: usize = 2;

struct World {
    bulks: Bulks,
    jobs: BTreeMap<u64, Job>,
    /// Runs that triggers made: of a key one of each job, without one as many as there are triggers.
    keyed: BTreeSet<(u64, String)>,
    runs: BTreeMap<u64, u64>,
    now_ms: i64,
    next: u64,
    wrong: Vec<String>,
}

impl World {
    fn new() -> Self {
        let job = |id| (id, created(JobId(id), plain(every(3_600, 0)), T0));
        Self {
            bulks: Bulks::new(),
            jobs: (1..=JOBS).map(job).collect(),
            keyed: BTreeSet::new(),
            runs: BTreeMap::new(),
            now_ms: T0 + 1,
            next: 1,
            wrong: Vec::new(),
        }
    }

    fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }

    /// As the shard does it, through the stored bytes.
    fn apply(&mut self, changes: impl IntoIterator<Item = BulkChange>) {
        for change in changes {
            let change: BulkChange = decode("change", &encode(&change)).unwrap();
            bulk::apply(&mut self.bulks, &change);
        }
    }

    fn create(&mut self, asked: StoredBulk) -> Option<BulkId> {
        self.next += 1;
        let id = BulkId(self.next);
        let changes = bulk::create(&self.bulks, asked, id, self.now_ms).ok()?;
        self.apply(changes);
        Some(id)
    }

    fn begun(&mut self, action: BulkAction) -> BulkId {
        self.create(StoredBulk { action, tenant: Some("default".into()), ..StoredBulk::default() }).unwrap()
    }

    fn undo(&mut self, id: BulkId) -> Result<BulkId, ErrorCode> {
        self.next += 1;
        let new = BulkId(self.next);
        let changes = bulk::undo(&self.bulks, id, new, CallOrigin::default(), None, self.now_ms);
        self.apply(changes.map_err(|refused| refused.code)?);
        Ok(new)
    }

    fn abort(&mut self, id: BulkId) -> Result<(), ErrorCode> {
        let changes = bulk::abort(&self.bulks, id, None, self.now_ms).map_err(|refused| refused.code)?;
        self.apply(changes);
        Ok(())
    }

    fn tell(&mut self, job: u64, command: &Command) -> Result<Reply, ErrorCode> {
        let job = self.jobs.get_mut(&job).ok_or(ErrorCode::NotFound)?;
        let ctx = Context {
            now_ms: self.now_ms,
            ids: Ids { first: 5, count: 1_000 },
            epoch: Epoch(9),
            pauses: Vec::new(),
            queue_full: false,
            queue_half: false,
            node_room: 1_000,
            overloaded: false,
            tzdb: "2026b",
            sampling: None,
        };
        let (decision, next) = decide_next(job, command, &ctx).map_err(|refused| refused.code)?;
        *job = next;
        Ok(decision.reply)
    }

    fn status(&self, job: u64) -> JobStatus {
        self.jobs[&job].hot.status
    }

    fn with_status(&self, status: JobStatus) -> usize {
        self.jobs.values().filter(|job| job.hot.status == status).count()
    }

    /// The next page, as the walk over the shards finds it.
    fn look(&self, id: BulkId) -> BulkPage {
        let known = &self.bulks[&id];
        let after = match known.place {
            Some(BulkPlace::Shard { after, .. }) => after,
            Some(BulkPlace::Page { .. }) | None => 0,
        };
        let marked = known.undo_of.or_else(|| known.deleting.then_some(id));
        let fits = |job: &&Job| {
            job.id.0 > after
                && job.hot.status != JobStatus::Deleted
                && marked.is_none_or(|marked| job.hot.bulk.is_some_and(|mark| mark.bulk == marked))
        };
        let found: Vec<u64> = self.jobs.values().filter(fits).map(|job| job.id.0).collect();
        let more = found.len() > PAGE;
        let items: Vec<BulkItem> = found.into_iter().take(PAGE).map(|id| BulkItem { id, generation: 0 }).collect();
        let next = items.last().filter(|_| more);
        let next = next.map(|last| BulkPlace::Shard { shard: 0, after: last.id, created_ms: None });
        BulkPage { items, next }
    }

    fn begin(&mut self, id: BulkId) -> bool {
        let (pages, page) = (self.bulks[&id].pages, self.look(id));
        let begun = bulk::begin(&self.bulks, id, pages, page).unwrap();
        let is_begun = begun.is_some();
        self.apply(begun);
        is_begun
    }

    /// Does the items of the open page; the first `upto` only, and then the driver dies.
    fn work(&mut self, id: BulkId, again: bool, upto: usize) -> BulkCounts {
        let work = bulk::work(&self.bulks[&id], again);
        let mut counts = BulkCounts::default();
        for item in work.items.iter().take(upto) {
            let reply = match bulk_step(&work) {
                Some(step) => {
                    let command = BulkCommand { bulk: work.bulk, step, undo_of: work.undo_of, reason: None };
                    self.tell(item.id, &Command::Bulk(Box::new(command)))
                }
                None => {
                    let is_new = bulk::key(id).is_none_or(|key| self.keyed.insert((item.id, key)));
                    *self.runs.entry(item.id).or_default() += u64::from(is_new);
                    Ok(Reply::Done)
                }
            };
            match reply {
                Ok(Reply::Unchanged) => counts.unchanged += 1,
                Ok(_) => counts.done += 1,
                Err(_) if again => counts.done += 1,
                Err(_) => counts.unchanged += 1,
            }
        }
        counts
    }

    fn report(&mut self, id: BulkId, pages: u64, counts: BulkCounts) -> bool {
        let done = bulk::report(&self.bulks, id, pages, counts, self.now_ms).unwrap();
        let is_counted = done.is_some();
        self.apply(done);
        is_counted
    }

    /// To its end. Every other page is done in part by a driver that dies, and whole by the next one.
    fn drive(&mut self, id: BulkId) {
        for turn in 0..100 {
            match self.bulks[&id].state {
                BulkState::Running | BulkState::Aborting => {}
                BulkState::Waiting | BulkState::Aborted | BulkState::Done => return,
            }
            if self.bulks[&id].page.is_none() && !self.begin(id) {
                return;
            }
            let dies = turn % 2 == 1;
            if dies {
                self.work(id, false, 1);
            }
            let counts = self.work(id, dies, PAGE);
            let pages = self.bulks[&id].pages;
            self.report(id, pages, counts.clone());
            // The report comes once more, because its answer was lost.
            self.report(id, pages, counts);
            for known in self.bulks.values() {
                let whole = encode(known);
                assert_eq!(&decode::<StoredBulk>("bulk", &whole).unwrap(), known);
            }
        }
        self.wrong.push("it never ends".to_owned());
    }

    fn counts(&self, id: BulkId) -> (u64, u64, u64) {
        let BulkCounts { done, unchanged, failed, .. } = self.bulks[&id].counts;
        (done, unchanged, failed)
    }
}

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
    world.wrong
}

fn findings() -> Vec<String> {
    let stories: [fn() -> Vec<String>; 8] =
        [pause_and_undo, undo_of_others, triggers, abort_in_the_middle, two_drivers, grace, bounds, restore_and_move];
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
