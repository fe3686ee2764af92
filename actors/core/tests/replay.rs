//! Replay: whatever happens, the events are the state. Each decision of a random history is checked by `support::sim`
//! (apply over its events gives the job after it, bytes of hot state and frame, the outbox, ids), and here the history as
//! a whole.

use crate::support::{
    config,
    ops::history,
    sim::{Sim, assert_same, id_used},
};
use campanile_core::job::{
    Job,
    apply::{apply, created},
    table::Step,
};
use campanile_schema::{event::Event, frame};
use proptest::{prelude::*, sample::Index};
use std::collections::BTreeSet;

/// Applies events, the first being the creation when there is no job yet.
fn replay(job: Option<Job>, events: &[Event]) -> Option<Job> {
    events.iter().fold(job, |job, event| match (job, event) {
        (Some(mut job), event) => {
            apply(&mut job, event);
            Some(job)
        }
        (None, Event::JobCreated { job, spec, at_ms }) => Some(created(*job, spec.clone(), *at_ms)),
        (None, event) => panic!("the history begins with {event:?}"),
    })
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_history_replays_to_its_job(history in history(), cut in any::<Index>()) {
        let sim = Sim::run(&history, true);
        let events: Vec<Event> = sim.events().cloned().collect();
        let whole = replay(None, &events).unwrap();
        assert_same(&whole, &sim.job, "the whole history");

        // A snapshot anywhere and the rest of the log.
        let (before, rest) = events.split_at(1 + cut.index(events.len()));
        let half = replay(None, before).unwrap();
        let stored = Job::decode(half.id, &frame::encode(&*half.def), &half.encode_hot()).unwrap();
        let again = replay(Some(stored), rest).unwrap();
        assert_same(&again, &sim.job, "a snapshot and the rest");
        prop_assert_eq!(again.encode_hot(), sim.job.encode_hot());

        let ids: Vec<u64> = events.iter().filter_map(id_used).collect();
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids are used once");
        prop_assert!(ids.iter().all(|id| *id <= sim.shard.counter));
    }
}

/// Apply takes any event in any state: a log of another release, or one with a hole, never panics.
#[test]
fn apply_is_total() {
    let histories = crate::support::fixed_histories(40);
    let logs: Vec<Vec<Event>> = histories.iter().map(|h| Sim::run(h, true).events().cloned().collect()).collect();
    for (n, log) in logs.iter().enumerate() {
        let mut job = replay(None, &log[..1]).unwrap();
        for event in logs[(n + 1) % logs.len()].iter().chain(log.iter().rev()) {
            apply(&mut job, event);
            job.wake_at(0);
        }
        Job::decode(job.id, &frame::encode(&*job.def), &job.encode_hot()).unwrap();
    }
}

/// A log applied twice is another state: positions in the log matter, and the check above would see it.
#[test]
fn double_apply_is_seen() {
    let sim = crate::support::fixed_histories(200)
        .iter()
        .map(|h| Sim::run(h, true))
        .find(|sim| sim.events().any(|e| matches!(e, Event::RunCreated { .. })))
        .unwrap();
    let mut events: Vec<Event> = sim.events().cloned().collect();
    let at = events.iter().position(|e| matches!(e, Event::RunCreated { .. })).unwrap();
    events.insert(at, events[at].clone());
    let twice = replay(None, &events).unwrap();
    assert_ne!(twice.hot.run_count, sim.job.hot.run_count);
}

/// An effect that is lost without a crash is seen.
#[test]
#[should_panic(expected = "queued by effects and by state")]
fn a_lost_effect_is_seen() {
    let mut def = crate::support::make::plain(campanile_schema::stored::StoredTrigger::Manual {});
    def.concurrency = campanile_schema::job::ConcurrencyPolicy::Allow;
    let mut sim = Sim::create(def, 1_782_000_000_000, true);
    sim.op(&crate::support::ops::Op::Trigger { key: None, params: false });
    sim.lose_queue();
    sim.op(&crate::support::ops::Op::Trigger { key: None, params: false });
}

/// The histories are not vacuous: all that can happen to a job happens in them.
#[test]
fn histories_reach_everything() {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for history in crate::support::fixed_histories(1_500) {
        for event in Sim::run(&history, true).events() {
            let text = format!("{event:?}");
            seen.insert(text.split([' ', '{']).next().unwrap().to_owned());
            if let Some((_, step)) = crate::support::steps::step_of(event) {
                seen.insert(format!("{step:?}"));
            }
            if let Event::CursorMoved { entries, .. } = event {
                seen.extend(entries.iter().map(|e| format!("{:?} {:?}", e.outcome, e.reason)));
                seen.extend(entries.iter().filter(|e| e.count > 100).map(|_| "a long stretch".to_owned()));
            }
            if let Event::RunCreated { source, held, late, .. } = event {
                seen.insert(format!("{source:?} held {held} late {late}"));
            }
            if let Event::AttemptStopping { why, .. } = event {
                seen.insert(format!("stop {why}"));
            }
            if let Event::AttemptEnded { state, next, .. } = event {
                let next = format!("{next:?}");
                seen.insert(format!("{state} {}", next.split('(').next().unwrap()));
            }
            if let Event::RunEnded { record, .. } | Event::RunReopened { record, .. } = event {
                seen.insert(format!("record {} dead letter {}", record.state, record.dead_letter));
                if record.attempts.first().is_some_and(|a| a.attempt > 1) {
                    seen.insert("more attempts than are kept".to_owned());
                }
            }
        }
    }
    let wanted = "JobCreated JobReplaced JobPaused JobResumed JobDeleted JobQuarantined CursorMoved RunCreated \
        RunReleased RetryDue AttemptStarted AttemptSuspected AttemptHeard AttemptStopping AttemptEnded RunConfirmed \
        RunEnded RunReopened DeadLetterDiscarded";
    let more = [
        "Coalesced None",
        "DstSkipped None",
        "Missed Some(CatchUpCap)",
        "Skipped Some(Paused)",
        "Skipped Some(TenantPaused)",
        "Skipped Some(RunActive)",
        "Skipped Some(OneQueued)",
        "Skipped Some(QueueFull)",
        "Skipped Some(Misfire)",
        "Skipped Some(Quarantined)",
        "Skipped Some(Deleted)",
        "Skipped Some(Edited)",
        "a long stretch",
        "Schedule held false late false",
        "Schedule held false late true",
        "Schedule held true late false",
        "Schedule held true late true",
        "Manual held false late false",
        "Manual held true late false",
        "stop CANCEL",
        "stop TIMEOUT",
        "stop REPLACE",
        "FAILED RetryAt",
        "FAILED Confirm",
        "TIMEOUT RetryAt",
        "TIMEOUT Confirm",
        "LOST Requeue",
        "LOST Confirm",
        "NOT_STARTED Requeue",
        "NOT_STARTED RetryAt",
        "record SUCCESS dead letter false",
        "record FAILED dead letter true",
        "record FAILED dead letter false",
        "record TIMEOUT dead letter true",
        "record CANCELED dead letter false",
        "record QUEUED dead letter false",
        "record PENDING dead letter false",
        "more attempts than are kept",
    ];
    // Only a live run takes the place of one of a backfill: `backfill.rs` has those histories.
    let of_jobs = |step: &Step| *step != Step::Hold;
    let steps = Step::ALL.into_iter().filter(of_jobs).map(|step| format!("{step:?}"));
    let wanted = wanted.split_whitespace().chain(more).map(str::to_owned).chain(steps);
    let missing: Vec<String> = wanted.filter(|w| !seen.contains(w)).collect();
    assert!(missing.is_empty(), "no history reaches {missing:?}");
}
