//! A pause of the tenant or the system skips what was due in it, however late that is decided.
#![allow(clippy::unwrap_used)]

mod support;

use campanile_core::{
    job::{Command, Context, Ids, Job, apply::created, decide_next},
    shard::PauseOver,
};
use campanile_schema::{
    event::{Event, Outcome, SkipReason},
    ids::Epoch,
};
use support::make::{every, job_id, plain};

const CREATED: i64 = 1_000_000;
const OVER: PauseOver =
    PauseOver { from_ms: CREATED + 15_000, to_ms: CREATED + 40_000, reason: SkipReason::TenantPaused };

type Skipped = Vec<(u64, Outcome, Option<SkipReason>)>;

/// What becomes of the instants of a job that is due every ten seconds, woken only at `now_ms`: those without a run, and how many
/// runs there are.
fn outcomes(job: &Job, now_ms: i64, pauses_over: [Option<PauseOver>; 2]) -> (Skipped, usize) {
    let ctx = Context {
        now_ms,
        ids: Ids { first: 5, count: 1_000 },
        epoch: Epoch(9),
        paused: None,
        pauses_over,
        queue_full: false,
        overloaded: false,
        tzdb: "2026b",
    };
    let (decision, _) = decide_next(job, &Command::Wake, &ctx).unwrap();
    let entries = decision.events.iter().filter_map(|event| match event {
        Event::CursorMoved { entries, .. } => Some(entries.clone()),
        _ => None,
    });
    let skipped = entries.flatten().map(|entry| (entry.count, entry.outcome, entry.reason)).collect();
    (skipped, decision.events.iter().filter(|event| matches!(event, Event::RunCreated { .. })).count())
}

#[test]
fn what_was_due_in_a_pause_that_is_over_is_skipped_by_the_instant() {
    let mut def = plain(every(10, 0));
    def.concurrency = campanile_schema::job::ConcurrencyPolicy::Allow;
    let job = created(job_id(), def, CREATED);
    let skipped = vec![(3, Outcome::Skipped, Some(SkipReason::TenantPaused))];
    let told = outcomes(&job, CREATED + 50_000, [None, Some(OVER)]);
    assert_eq!(told, (skipped, 2), "20, 30 and 40 s were due in the pause, its end included; 10 and 50 s were not");
    let skipped = vec![(2, Outcome::Skipped, Some(SkipReason::TenantPaused))];
    let later = PauseOver { from_ms: CREATED + 20_000, ..OVER };
    assert_eq!(outcomes(&job, CREATED + 50_000, [None, Some(later)]), (skipped, 3), "20 s was due before it began");
    assert_eq!(outcomes(&job, CREATED + 50_000, [None; 2]), (Vec::new(), 5), "without a pause all fire");
}

#[test]
fn jitter_does_not_carry_an_instant_out_of_a_pause() {
    let mut def = plain(every(10, 0));
    def.jitter_sec = 9;
    let job = created(job_id(), def, CREATED);
    let due = CREATED + 10_000;
    let decided = job.due_with_jitter(due);
    let over = PauseOver { from_ms: due - 5_000, to_ms: due, reason: SkipReason::SystemPaused };
    let skipped = vec![(1, Outcome::Skipped, Some(SkipReason::SystemPaused))];
    assert_eq!(outcomes(&job, decided, [Some(over), None]), (skipped, 0));
    assert_eq!(outcomes(&job, decided, [None; 2]).1, 1);
}
