//! A pause of the tenant or the system skips what was due in it, however late that is decided.

use crate::support::make::{every, job_id, plain};
use campanile_core::{
    job::{Command, Context, Ids, Job, apply::created, decide_next},
    shard::Pause,
};
use campanile_schema::{
    event::{Event, Outcome, SkipReason},
    ids::Epoch,
    job::{ConcurrencyPolicy, MisfirePolicy},
};

const CREATED: i64 = 1_000_000;
const OVER: Pause =
    Pause { from_ms: CREATED + 15_000, to_ms: Some(CREATED + 40_000), reason: SkipReason::TenantPaused };

type Skipped = Vec<(u64, Outcome, Option<SkipReason>)>;

/// What becomes of the instants of a job that is due every ten seconds, woken only at `now_ms`: those without a run, and how many
/// runs there are.
fn outcomes(job: &Job, now_ms: i64, pauses: &[Pause]) -> (Skipped, usize) {
    let ctx = Context {
        now_ms,
        ids: Ids { first: 5, count: 1_000 },
        epoch: Epoch(9),
        pauses: pauses.to_vec(),
        queue_full: false,
        queue_half: false,
        node_room: 1_000,
        overloaded: false,
        held: None,
        tzdb: "2026b",
        sampling: None,
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
    def.concurrency = ConcurrencyPolicy::Allow;
    let job = created(job_id(), def, CREATED);
    let skipped = vec![(3, Outcome::Skipped, Some(SkipReason::TenantPaused))];
    let told = outcomes(&job, CREATED + 50_000, &[OVER]);
    assert_eq!(told, (skipped, 2), "20, 30 and 40 s were due in the pause, its end included; 10 and 50 s were not");
    let skipped = vec![(2, Outcome::Skipped, Some(SkipReason::TenantPaused))];
    let later = Pause { from_ms: CREATED + 20_000, ..OVER };
    assert_eq!(outcomes(&job, CREATED + 50_000, &[later]), (skipped, 3), "20 s was due before it began");
    assert_eq!(outcomes(&job, CREATED + 50_000, &[]), (Vec::new(), 5), "without a pause all fire");
}

#[test]
fn jitter_does_not_carry_an_instant_out_of_a_pause() {
    let mut def = plain(every(10, 0));
    def.jitter_sec = 9;
    let job = created(job_id(), def, CREATED);
    let due = CREATED + 10_000;
    let decided = job.due_with_jitter(due);
    let over = Pause { from_ms: due - 5_000, to_ms: Some(due), reason: SkipReason::SystemPaused };
    let skipped = vec![(1, Outcome::Skipped, Some(SkipReason::SystemPaused))];
    assert_eq!(outcomes(&job, decided, &[over]), (skipped, 0));
    assert_eq!(outcomes(&job, decided, &[]).1, 1);
}

#[test]
fn what_was_due_before_a_pause_that_lasts_fires_and_waits_for_its_end() {
    let lasts = |from_ms: i64| Pause { from_ms: CREATED + from_ms, to_ms: None, reason: SkipReason::SystemPaused };
    let skipped = |count| vec![(count, Outcome::Skipped, Some(SkipReason::SystemPaused))];
    let policy = |misfire, concurrency| {
        let mut def = plain(every(10, 0));
        (def.misfire, def.concurrency) = (misfire, concurrency);
        created(job_id(), def, CREATED)
    };
    let allow = policy(MisfirePolicy::FireAllMissed, ConcurrencyPolicy::Allow);
    let told = outcomes(&allow, CREATED + 50_000, &[lasts(25_000)]);
    assert_eq!(told, (skipped(3), 2), "10 and 20 s were due before it; 30, 40 and 50 s in it");
    assert_eq!(outcomes(&allow, CREATED + 50_000, &[lasts(20_000)]).1, 2, "20 s was due when it began");
    assert_eq!(outcomes(&allow, CREATED + 50_000, &[lasts(9_000)]), (skipped(5), 0));
    assert_eq!(
        outcomes(&allow, CREATED + 50_000, &[lasts(3_600_000)]),
        (skipped(5), 0),
        "a clock was an hour ahead then"
    );
    assert_eq!(
        outcomes(&allow, CREATED + 50_000, &[OVER, lasts(45_000)]).1,
        1,
        "10 s; each pause has its own instants"
    );
    // What the policies say of several instants at once ends where the pause begins.
    let missed = CREATED + 500_000;
    let (mut once, runs) =
        outcomes(&policy(MisfirePolicy::FireOnceNow, ConcurrencyPolicy::Allow), missed, &[lasts(25_000)]);
    assert_eq!((once.remove(0), once, runs), ((1, Outcome::Coalesced, None), skipped(48), 1));
    let (mut skip, runs) = outcomes(&policy(MisfirePolicy::Skip, ConcurrencyPolicy::Allow), missed, &[lasts(25_000)]);
    assert_eq!((skip.remove(0).2, skip, runs), (Some(SkipReason::Misfire), skipped(48), 0));
    let (mut forbid, runs) =
        outcomes(&policy(MisfirePolicy::FireOnceNow, ConcurrencyPolicy::Forbid), CREATED + 50_000, &[lasts(25_000)]);
    assert_eq!((forbid.remove(0).2, forbid, runs), (Some(SkipReason::RunActive), skipped(3), 1));
}
