//! The ownership protocol in a small world: three nodes, a store and a network with all their faults. `docs/ownership.md`.

use crate::ownership_model::explore::{explore, shortest_story};

/// Seeds of the default run, and steps of each: OWNERSHIP_SEEDS and OWNERSHIP_STEPS say others, OWNERSHIP_FIRST the first seed.
const SEEDS: u64 = 1_000;
const STEPS: u64 = 2_000;
/// Seeds from which on a run counts as the long form, in which every transition and fault is taken often.
const LONG_SEEDS: u64 = 5_000;
/// How often at least, in the long form.
const OFTEN: u64 = 100;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn the_protocol_keeps_its_promises() {
    let (seeds, steps) = (setting("OWNERSHIP_SEEDS", SEEDS), setting("OWNERSHIP_STEPS", STEPS));
    let first = setting("OWNERSHIP_FIRST", 0);
    let explored = explore(first..first + seeds, steps, None, None);
    if let Some((plan, violation)) = explored.found {
        let story = shortest_story(&plan, violation.kind());
        panic!("seed {}: {violation}\n{}", plan.seed, story.join("\n"));
    }
    println!("{seeds} seeds of at least {steps} steps\n{}", explored.table.text());
    let least = if seeds >= LONG_SEEDS { OFTEN } else { 1 };
    // One seed alone does not take everything.
    if seeds >= SEEDS {
        assert_eq!(explored.table.rarer_than(least), [], "taken less often than {least} times");
        assert!(
            explored.table.read_ahead.min(explored.table.read_in_vain) >= least,
            "loads go on with what was read, or not"
        );
    }
}

/// Every rule, broken on purpose, is found out: by the promise that it is there for.
#[cfg(feature = "faults")]
mod broken {
    use super::*;
    use crate::ownership_model::{checks::ViolationKind, explore::play};
    use campanile_core::ownership::Rule;

    /// Seeds that are tried at most.
    const SEEDS: u64 = 40_000;

    fn found(rule: Rule, kind: ViolationKind) {
        let explored = explore(0..SEEDS, STEPS, Some(rule), Some(kind));
        let (plan, violation) = explored.found.unwrap_or_else(|| panic!("{rule:?} is not found out in {SEEDS} seeds"));
        println!("{rule:?}: seed {}, after {} steps in all: {violation}", plan.seed, explored.table.steps);
        let sound = play(&crate::ownership_model::world::Plan { broken: None, ..plan });
        assert_eq!(sound.violation, None, "with the rule kept, the same seed violates nothing");
    }

    macro_rules! broken {
        ($($name:ident: $rule:ident => $kind:ident,)*) => {
            $(#[test] fn $name() { found(Rule::$rule, ViolationKind::$kind); })*
            /// Rules that the model finds out here; the others have a history of their own in `ownership_holes.rs`.
            const HERE: &[Rule] = &[$(Rule::$rule,)*];
        };
    }

    broken!(
        fence_too_early: FenceAfterLease => TwoOwners,
        the_watchers_own_lease: LeaseOfTheRow => TwoOwners,
        no_check_after_the_write: CheckAfterWrite => TwoOwners,
        a_heartbeat_that_timed_out_counts: HeartbeatReadBack => TwoOwners,
        acknowledged_behind_a_gap: AcknowledgeToTheGap => LostAcknowledged,
        window_by_count: WindowByDistance => Hole,
        seal_without_rewriting_the_window: SealRewritesWindow => Hole,
        act_before_the_seal: ClaimAfterSeal => Hole,
        a_claim_that_timed_out_counts: ClaimReadBack => TwoOwners,
        a_claim_that_timed_out_is_given_up: ClaimPursued => Hole,
        a_release_taken_for_a_claim: OpenSpanIsTheClaim => LostAcknowledged,
        read_ahead_beyond_the_end: ReadAheadFits => Hole,
        one_span_instead_of_a_list: SpansAreAList => LostAcknowledged,
        lwt_without_version: VersionInLwt => LostAcknowledged,
        no_reconcile_after_a_restart_of_all: Reconcile => NotServed,
        own_name_orphan: OwnName => NotServed,
        a_session_without_a_row_is_waited_for: SessionWithoutRowIsOver => PermitsNotFreed,
        going_on_after_a_release_that_timed_out: ResumeRaisesVersion => LostAcknowledged,
        snapshot_before_durable: SnapshotWhenDurable => Hole,
        snapshot_durable_but_not_acknowledged: SnapshotWhenAcknowledged => Hole,
        span_trimmed_before_projection: TrimAfterProjection => Hole,
        rows_deleted_above_the_stated_position: DeleteBelowStated => LostAcknowledged,
        absence_read_too_early: AbsenceAfterPresence => TwoOwners,
        started_runs_counted_as_adopted: CountAsLoaded => TooManyRuns,
        loans_forgotten: LoansAreEvents => TooManyRuns,
        permits_lent_again_too_early: FreeAfterReports => TooManyRuns,
        drain_without_permits: DrainCountsPermits => TooManyRuns,
    );

    #[test]
    fn no_rule_is_left_out() {
        use Rule::{DeleteWhenQuiet, FailedReadsDoNotCount, InsertWithinLease, KeepEndedRows, TenthForClocks};
        let told = [FailedReadsDoNotCount, InsertWithinLease, KeepEndedRows, DeleteWhenQuiet, TenthForClocks];
        let left: Vec<_> = Rule::ALL.into_iter().filter(|rule| !HERE.contains(rule) && !told.contains(rule)).collect();
        assert_eq!(left, []);
    }
}
