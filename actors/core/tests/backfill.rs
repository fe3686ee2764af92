//! Backfills of a job: what they run is what was missing, failed or asked for, each instant once, whatever happens meanwhile; beside live
//! runs they keep their place. Each clause is broken once, and that is seen.

use crate::backfill_world::{BEGIN, MINUTE, World, definition};
use campanile_core::{
    backfill::{Past, Rule, rules::break_rule, stretches},
    job::{BackfillCommand, BackfillPage, BackfillStart, Command, Context, Ids, Reply, check_backfill, decide_next},
    schedule::Schedule,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, SkipReason},
    ids::{BackfillId, Epoch},
    job::{ConcurrencyPolicy, MisfirePolicy},
    payload::Payload,
    record::{RunState, Source},
    stored::{
        StoredJob, StoredTrigger,
        backfill::{BackfillMode, BackfillState, PassedInstants},
    },
    view::ConfirmDecision,
};
use std::panic::catch_unwind;

const SEEDS: u64 = 150;
const STEPS: usize = 160;

/// A job with some past of every kind, and no open runs.
fn with_past(policy: ConcurrencyPolicy, misfire: MisfirePolicy, seed: u64) -> World {
    let mut world = World::new(definition(policy, misfire), seed);
    for _ in 0..24 {
        beside(&mut world);
    }
    world.settle();
    world
}

/// Something happens that has nothing to do with a backfill.
fn beside(world: &mut World) {
    match world.below(12) {
        0..=3 => {
            world.now_ms += MINUTE / 2 + world.below(MINUTE as u64) as i64;
            world.wake();
        }
        4 => {
            // Nobody was there.
            world.now_ms += (2 + world.below(12) as i64) * MINUTE;
            world.wake();
        }
        5 => {
            let paused = world.job.fires();
            let command = if paused { Command::Pause { reason: None } } else { Command::Resume };
            world.decide(&command).unwrap();
        }
        6 => {
            let trigger = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
            let _ = world.decide(&trigger);
        }
        7 => world.crash(),
        8 | 9 => world.start_one(),
        _ => world.finish_one(),
    }
}

fn policy(seed: u64) -> ConcurrencyPolicy {
    ConcurrencyPolicy::ALL[seed as usize % ConcurrencyPolicy::ALL.len()]
}

fn begin(world: &mut World, mode: BackfillMode) {
    let from_ms = BEGIN - 10 * MINUTE + world.below(10) as i64 * MINUTE;
    // To an instant that is not decided yet, as people ask.
    let to_ms = world.now_ms + world.below(3) as i64 * MINUTE;
    let (parallelism, unknown) = (1 + world.below(4) as u32, world.chance(3));
    let hooks = world.chance(4);
    let open = world.job.open_backfill().is_some();
    match world.ask(mode, from_ms, to_ms, parallelism, unknown, hooks) {
        Ok(_) => {}
        Err(refused) => {
            let known = [ErrorCode::BackfillActive, ErrorCode::JobPaused];
            assert!(known.contains(&refused.code), "{refused:?}");
            assert!(refused.code != ErrorCode::BackfillActive || open || !world.job.hot.runs.is_empty());
        }
    }
}

fn step(world: &mut World) {
    let id = world.job.open_backfill().map(|backfill| backfill.id);
    match (world.below(20), id) {
        (0, Some(id)) => drop(world.change(BackfillCommand::Pause { id, reason: None })),
        (1 | 2, Some(id)) => drop(world.change(BackfillCommand::Resume { id })),
        (3, Some(id)) if world.chance(6) => drop(world.change(BackfillCommand::Cancel { id, reason: None })),
        (4, _) => world.hand_old_page(),
        (5, _) => world.tenant_paused = !world.tenant_paused,
        (6, _) => world.queue_half = !world.queue_half,
        (7, _) => world.retry_by_hand(),
        (8, Some(_)) if world.chance(4) => begin(world, BackfillMode::Missing),
        (9..=13, _) => world.feed(),
        _ => beside(world),
    }
}

/// One history: a past, then two backfills among everything else.
fn play(seed: u64) {
    let misfire = MisfirePolicy::ALL[seed as usize / 4 % MisfirePolicy::ALL.len()];
    let mut world = with_past(policy(seed), misfire, seed);
    for mode in [BackfillMode::ALL[seed as usize / 12 % 4], BackfillMode::Missing] {
        if world.chance(2) {
            world.horizon_ms = BEGIN + world.below(8) as i64 * MINUTE;
        }
        begin(&mut world, mode);
        for _ in 0..STEPS {
            step(&mut world);
        }
        world.settle();
    }
    world.check_results();
    let made = world.made.len();
    world.fails = 0;
    begin(&mut world, BackfillMode::Failed);
    world.settle();
    world.check_results();
    assert!(world.made.len() >= made);
}

#[test]
fn what_was_asked_for_runs_once_whatever_happens_meanwhile() {
    (0..SEEDS).for_each(play);
}

/// Each clause that random histories can find is broken, and one of them finds it.
#[test]
fn each_clause_that_is_broken_is_seen() {
    const BY_STORY: [Rule; 6] = [
        Rule::PageFollows,
        Rule::InstantsAgree,
        Rule::ReplayHasParams,
        Rule::RestorePauses,
        Rule::DeleteCancels,
        Rule::CancelEndsAll,
    ];
    for rule in Rule::ALL.into_iter().filter(|rule| !BY_STORY.contains(rule)) {
        let seen = (0..SEEDS).find(|seed| {
            let seed = *seed;
            catch_unwind(move || {
                break_rule(Some(rule));
                play(seed);
            })
            .is_err()
        });
        break_rule(None);
        assert!(seen.is_some(), "nobody notices when {rule:?} is broken");
    }
    let stories: [(Rule, fn()); 6] = [
        (Rule::PageFollows, a_page_that_is_handed_in_twice_starts_nothing_twice),
        (Rule::InstantsAgree, instants_of_an_earlier_schedule_do_not_run),
        (Rule::ReplayHasParams, a_replay_hands_on_the_params_of_the_run_that_was),
        (Rule::RestorePauses, a_restore_pauses_a_backfill_until_somebody_resumes_it),
        (Rule::DeleteCancels, deleting_a_job_cancels_its_backfill),
        (Rule::CancelEndsAll, a_cancel_leaves_no_run_behind_also_with_more_runs_than_one_decision_stops),
    ];
    for (rule, story) in stories {
        let seen = catch_unwind(move || {
            break_rule(Some(rule));
            story();
        });
        break_rule(None);
        assert!(seen.is_err(), "nobody notices when {rule:?} is broken");
    }
}

fn backfill_state(world: &World) -> BackfillState {
    world.job.hot.backfill.as_ref().unwrap().state
}

#[test]
fn instants_of_an_earlier_schedule_do_not_run() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    world.decide(&Command::Pause { reason: None }).unwrap();
    world.now_ms += 30 * MINUTE;
    world.decide(&Command::Resume).unwrap();
    // Each fifth minute from now on.
    let mut spec = (*world.job.def).clone();
    spec.trigger = StoredTrigger::FixedRate { every_ms: 5 * MINUTE, anchor_ms: 0 };
    let replace = Command::Replace { version: 1, spec: Box::new(spec) };
    world.decide(&replace).unwrap();
    world.ask(BackfillMode::Missing, BEGIN + 1, world.now_ms, 8, false, false).unwrap();
    world.expected.clear();
    world.settle();
    assert_eq!(world.made.len(), 0, "of 30 minutes the schedule of now knows six");
    assert_eq!(world.job.hot.backfill.as_ref().unwrap().counts.passed.differing, 30);
}

#[test]
fn a_replay_hands_on_the_params_of_the_run_that_was() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    world.now_ms += MINUTE;
    world.wake();
    world.settle();
    let (at, params) = (world.job.hot.cursor_ms, Payload("{\"day\":1}".to_owned()));
    let id = world.ask(BackfillMode::Replay, BEGIN + 1, at, 8, false, false).unwrap();
    let start =
        BackfillStart { at_ms: at, before: PassedInstants::default(), record: None, params: Some(params.clone()) };
    let tail = PassedInstants::default();
    world.hand(BackfillPage { id, after_ms: BEGIN, upto_ms: at, starts: vec![start], tail });
    let run = &world.job.hot.runs[0].record;
    assert_eq!((run.source, run.params.clone(), run.logical_ms), (Source::Replay, Some(params), Some(at)));
}

#[test]
fn a_restore_pauses_a_backfill_until_somebody_resumes_it() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    world.ask(BackfillMode::Missing, BEGIN - 9 * MINUTE, BEGIN, 2, false, false).unwrap();
    world.feed();
    world.decide(&Command::Restored { skip: true }).unwrap();
    assert_eq!(backfill_state(&world), BackfillState::Paused);
    let why = world.job.hot.backfill.as_ref().unwrap().why.clone().unwrap();
    assert!(why.contains("restored from a backup"), "{why}");
    let made = world.made.len();
    world.feed();
    assert_eq!(world.made.len(), made, "it waits for a person");
    world.settle();
    world.check_results();
}

#[test]
fn deleting_a_job_cancels_its_backfill() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    world.ask(BackfillMode::Missing, BEGIN - 9 * MINUTE, BEGIN, 4, false, false).unwrap();
    world.feed();
    world.start_one();
    world.decide(&Command::Delete).unwrap();
    assert_eq!(backfill_state(&world), BackfillState::Canceling, "one of its runs has a body");
    world.finish_one();
    assert_eq!((backfill_state(&world), world.job.hot.runs.len()), (BackfillState::Canceled, 0));
}

#[test]
fn a_cancel_leaves_no_run_behind_also_with_more_runs_than_one_decision_stops() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    // No body succeeds in spite of the cancel.
    world.fails = 1;
    let id = world.ask(BackfillMode::Missing, BEGIN - 300 * MINUTE, BEGIN, 150, false, false).unwrap();
    for _ in 0..200 {
        world.feed();
    }
    assert_eq!(world.job.hot.runs.len(), 150);
    (0..5).for_each(|_| world.start_one());
    let live = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
    world.decide(&live).unwrap();
    world.change(BackfillCommand::Cancel { id, reason: Some("not needed".into()) }).unwrap();
    assert_eq!(backfill_state(&world), BackfillState::Canceling);
    (0..10).for_each(|_| world.feed());
    let left: Vec<RunState> = world.job.hot.runs.iter().map(|open| open.state()).collect();
    assert_eq!(left.iter().filter(|state| **state == RunState::Running).count(), 5, "told to stop: {left:?}");
    assert_eq!(left.len(), 6, "and the live run: {left:?}");
    (0..5).for_each(|_| world.finish_one());
    assert_eq!(backfill_state(&world), BackfillState::Canceled);
    assert_eq!(world.job.hot.runs.len(), 1, "the live run goes on");
    let again = world.change(BackfillCommand::Cancel { id, reason: None }).unwrap();
    let Reply::Backfill(view) = again else { panic!("{again:?}") };
    assert_eq!(view.progress.unwrap().canceled, 150, "a cancel that is repeated changes nothing");
}

#[test]
fn a_page_that_is_handed_in_twice_starts_nothing_twice() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    world.fails = 0;
    let id = world.ask(BackfillMode::Missing, BEGIN - 9 * MINUTE, BEGIN, 4, false, false).unwrap();
    let backfill = world.job.open_backfill().unwrap().clone();
    let page = world.read(id, backfill.cursor_ms, backfill.to_ms);
    world.hand(page.clone());
    assert_eq!(world.job.hot.runs.len(), 4);
    (0..4).for_each(|_| world.start_one());
    (0..4).for_each(|_| world.finish_one());
    let cursor_ms = world.job.open_backfill().unwrap().cursor_ms;
    world.hand(page);
    assert_eq!((world.job.hot.runs.len(), world.job.open_backfill().unwrap().cursor_ms), (0, cursor_ms));
}

#[test]
fn under_forbid_the_schedule_goes_on_beside_a_backfill() {
    let mut world = World::new(definition(ConcurrencyPolicy::Forbid, MisfirePolicy::Skip), 1);
    world.ask(BackfillMode::Missing, BEGIN - 20 * MINUTE, BEGIN, 8, false, false).unwrap();
    world.feed();
    world.start_one();
    assert_eq!(lanes(&world), [(true, RunState::Running)]);
    world.now_ms += MINUTE;
    world.wake();
    assert_eq!(lanes(&world), [(true, RunState::Running), (false, RunState::Pending)], "the instant is held");
    world.feed();
    assert_eq!(world.job.hot.runs.len(), 2, "nothing more of the backfill");
    world.finish_one();
    assert_eq!(lanes(&world), [(false, RunState::Queued)], "it goes first");
    world.start_one();
    world.finish_one();
    world.feed();
    assert_eq!(lanes(&world), [(true, RunState::Queued)]);
    // No executor takes it, and the next instant is due.
    world.now_ms += MINUTE;
    world.wake();
    assert_eq!(lanes(&world), [(true, RunState::Pending), (false, RunState::Queued)], "what only waits gives way");
    world.start_one();
    world.finish_one();
    assert_eq!(lanes(&world), [(true, RunState::Queued)], "and comes back");
    let skipped = world.fates.values().filter(|(_, reason, _)| *reason == Some(SkipReason::RunActive)).count();
    assert_eq!(skipped, 0);
    world.settle();
    world.check_results();
}

#[test]
fn a_failed_instant_does_not_stop_the_rest_and_is_counted() {
    let mut world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    world.fails = 1;
    world.ask(BackfillMode::Missing, BEGIN - 9 * MINUTE, BEGIN, 3, false, false).unwrap();
    world.settle();
    let counts = world.job.hot.backfill.as_ref().unwrap().counts;
    assert_eq!((backfill_state(&world), counts.started, counts.failed), (BackfillState::Done, 10, 10));
    world.fails = 0;
    let failed = world.ask(BackfillMode::Failed, BEGIN - 9 * MINUTE, BEGIN, 3, false, false).unwrap();
    world.settle();
    let counts = world.job.backfill(failed).unwrap().counts;
    assert_eq!((counts.started, counts.succeeded, world.finals.len()), (10, 10, 10), "no new run: the failed ones");
    assert!(world.finals.values().all(|record| record.generation == 2));
}

/// Under FORBID a run of a backfill has a body, and a live instant is held for it.
fn with_held_instant(spec: StoredJob) -> World {
    let mut world = World::new(spec, 1);
    world.fails = 1;
    world.ask(BackfillMode::Missing, BEGIN - 20 * MINUTE, BEGIN, 8, false, false).unwrap();
    world.feed();
    world.start_one();
    world.now_ms += MINUTE;
    world.wake();
    assert_eq!(lanes(&world), [(true, RunState::Running), (false, RunState::Pending)]);
    world
}

/// Open runs: whether each is in the lane of backfills, and its state.
fn lanes(world: &World) -> Vec<(bool, RunState)> {
    world.job.hot.runs.iter().map(|run| (run.record.is_back(), run.state())).collect()
}

/// Such a run waits behind the live runs of its whole pool: the schedule would wait as long.
#[test]
fn an_instant_that_is_held_goes_before_the_next_attempt_of_a_backfill() {
    let mut spec = definition(ConcurrencyPolicy::Forbid, MisfirePolicy::Skip);
    spec.max_attempts = 2;
    let mut failed = with_held_instant(spec.clone());
    failed.finish_one();
    assert_eq!(lanes(&failed), [(true, RunState::RetryWait), (false, RunState::Queued)]);
    let mut lost = with_held_instant(spec.clone());
    let open = &lost.job.hot.runs[0];
    let gone = Command::Lost { run: open.id(), token: open.token().unwrap() };
    lost.decide(&gone).unwrap();
    assert_eq!(lanes(&lost), [(true, RunState::Pending), (false, RunState::Queued)]);
    spec.not_idempotent = true;
    let mut doubted = with_held_instant(spec);
    doubted.finish_one();
    assert_eq!(lanes(&doubted), [(true, RunState::NeedsConfirmation), (false, RunState::Pending)]);
    let run = doubted.job.hot.runs[0].id();
    doubted.decide(&Command::Confirm { run, decision: ConfirmDecision::Rerun, reason: None }).unwrap();
    assert_eq!(lanes(&doubted), [(true, RunState::Pending), (false, RunState::Queued)]);
}

#[test]
fn a_run_that_was_undone_is_not_started_again_by_a_backfill() {
    let mut spec = definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip);
    spec.on_failure[0].compensation = true;
    let mut world = World::new(spec, 1);
    world.fails = 1;
    world.ask(BackfillMode::Missing, BEGIN - 9 * MINUTE, BEGIN, 3, false, true).unwrap();
    world.settle();
    assert!(world.finals.values().all(|record| record.compensated));
    let failed = world.ask(BackfillMode::Failed, BEGIN - 9 * MINUTE, BEGIN, 3, false, false).unwrap();
    world.settle();
    let counts = world.job.backfill(failed).unwrap().counts;
    assert_eq!((counts.started, counts.passed.gone), (0, 10), "only a person may, with force");
}

/// Bad requests, each with its code and what its sentence says.
#[test]
fn what_cannot_be_run_is_refused_with_what_to_do() {
    let cron = |expr: &str| {
        let mut spec = definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip);
        spec.trigger = crate::support::make::cron(expr, "UTC");
        spec
    };
    let with = |trigger: StoredTrigger| {
        let mut spec = definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip);
        spec.trigger = trigger;
        spec
    };
    let hourly = cron("0 * * * *");
    let now = BEGIN;
    let refused = |spec: &StoredJob, from: i64, to: i64, parallelism: u32| {
        let schedule = Schedule::compile(spec).unwrap();
        let rejection = check_backfill(spec, &schedule, (from, to), parallelism, now).unwrap_err();
        (rejection.code, rejection.message)
    };
    let year = 365 * 24 * 60 * MINUTE;
    let cases = [
        (refused(&hourly, now, now - MINUTE, 8), ErrorCode::InvalidArgument, "write the earlier instant as 'from'"),
        (refused(&hourly, now + MINUTE, now + 2 * MINUTE, 8), ErrorCode::InvalidArgument, "in the future"),
        (refused(&hourly, -1_000_000 * year, now, 8), ErrorCode::InvalidArgument, "1970-01-01T00:00:00Z or later"),
        (refused(&hourly, i64::MIN, i64::MAX, 8), ErrorCode::InvalidArgument, "1970"),
        (refused(&hourly, now - year, now, 0), ErrorCode::InvalidArgument, "give 1 to 200"),
        (refused(&hourly, now - year, now, 201), ErrorCode::InvalidArgument, "give 1 to 200"),
        (refused(&cron("* * * * * *"), 0, now, 8), ErrorCode::TooManyInstants, "the largest 'to' with this 'from' is"),
        (refused(&with(StoredTrigger::Manual {}), 0, now, 8), ErrorCode::NoInstants, "trigger it by hand"),
        (refused(&with(StoredTrigger::Once { at_ms: 5 }), 0, now, 8), ErrorCode::NoInstants, "one instant"),
        (
            refused(&with(StoredTrigger::FixedDelay { every_ms: 1 }), 0, now, 8),
            ErrorCode::NoInstants,
            "the ends of its runs",
        ),
        (
            refused(&with(StoredTrigger::FixedRate { every_ms: 1, anchor_ms: 0 }), now - 1_000_000, now, 8),
            ErrorCode::TooManyInstants,
            "1000000 instants",
        ),
    ];
    for ((code, message), wanted, says) in cases {
        assert_eq!(code, wanted, "{message}");
        assert!(message.contains(says), "{message}");
    }
}

/// The largest `to` that the refusal names is taken, and one millisecond more is not.
#[test]
fn the_largest_interval_that_is_named_is_taken() {
    let mut spec = definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip);
    spec.trigger = crate::support::make::cron("* * * * * *", "Europe/Berlin");
    let schedule = Schedule::compile(&spec).unwrap();
    let from = BEGIN - 365 * 24 * 60 * MINUTE;
    let refused = check_backfill(&spec, &schedule, (from, BEGIN), 8, BEGIN).unwrap_err();
    let named = refused.message.rsplit(' ').next().unwrap();
    let to = crate::support::make::ms(named);
    assert!(check_backfill(&spec, &schedule, (from, to), 8, BEGIN).is_ok(), "{refused:?}");
    assert_eq!(schedule.count(from - 1, to, None), 1_000_000);
    assert!(check_backfill(&spec, &schedule, (from, to + 1_000), 8, BEGIN).is_err());
}

#[test]
fn the_guide_has_the_table_of_what_is_missing() {
    let guide = include_str!("../../../docs/guides/backfill.md");
    let table = campanile_core::backfill::missing::markdown();
    assert!(guide.contains(&table), "docs/guides/backfill.md lacks:\n{table}");
}

#[test]
fn a_page_for_a_backfill_that_is_gone_changes_nothing() {
    let world = World::new(definition(ConcurrencyPolicy::Allow, MisfirePolicy::Skip), 1);
    let context = Context {
        now_ms: BEGIN,
        ids: Ids { first: 100, count: 8 },
        epoch: Epoch(1),
        pauses: Vec::new(),
        queue_full: false,
        queue_half: false,
        node_room: 0,
        overloaded: false,
        held: None,
        tzdb: "2026b",
        sampling: None,
    };
    let tail = PassedInstants::default();
    let page = BackfillPage { id: BackfillId(5), after_ms: 0, upto_ms: 9, starts: Vec::new(), tail };
    let command = Command::Backfill(Box::new(BackfillCommand::Page(page)));
    let (decision, _) = decide_next(&world.job, &command, &context).unwrap();
    assert_eq!((decision.events, decision.reply), (Vec::<Event>::new(), Reply::Unchanged));
    let pause = Command::Backfill(Box::new(BackfillCommand::Pause { id: BackfillId(5), reason: None }));
    assert_eq!(decide_next(&world.job, &pause, &context).unwrap_err().code, ErrorCode::NotFound);
    let past = Past { schedule: world.job.schedule.clone(), created_ms: BEGIN };
    assert!(stretches(&past, BEGIN, BEGIN, &[]).is_empty());
}
