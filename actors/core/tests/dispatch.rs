//! Matching against a simple implementation of the same promises: random executors and queues, and every decision compared.

use crate::dispatch_model::{Violation, permits, targets, told, world};

/// Seeds of the default run, and steps of each: DISPATCH_SEEDS and DISPATCH_STEPS say others, DISPATCH_FIRST the first seed.
const SEEDS: u64 = 300;
const STEPS: u64 = 400;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn holds(play: fn(u64, u64) -> Result<(), Violation>) {
    let (first, seeds, steps) =
        (setting("DISPATCH_FIRST", 0), setting("DISPATCH_SEEDS", SEEDS), setting("DISPATCH_STEPS", STEPS));
    for seed in first..first + seeds {
        if let Err(violation) = play(seed, steps) {
            panic!("seed {seed}: {violation:?}");
        }
    }
}

#[test]
fn runs_go_where_a_simple_implementation_sends_them() {
    holds(world::play);
}

#[test]
fn permits_are_lent_as_a_simple_implementation_lends_them() {
    holds(permits::play);
}

#[test]
fn targets_are_spared_as_a_simple_implementation_spares_them() {
    holds(targets::play);
}

#[test]
fn a_target_that_comes_back_works_off_its_backlog_in_twice_the_ideal_time_at_most() {
    for limit in [4, 40, 200] {
        let taken = targets::recovery(limit);
        assert!(taken.worked_off_ms <= 2 * taken.ideal_ms, "limit {limit}: {taken:?}");
        assert!(taken.failed_while_down <= limit + 20, "limit {limit}: {taken:?}");
    }
}

#[test]
fn tenants_have_equal_parts_of_the_slots_whatever_their_bodies_take() {
    let shares = told::shares_of_long_and_short_bodies();
    assert!(shares.iter().all(|share| (0.475..=0.525).contains(share)), "{shares:?}");
}

#[test]
fn a_node_has_a_limited_number_of_matches_under_way() {
    assert_eq!(told::matches_under_way(), Ok(()));
}

/// Every rule, broken on purpose, is found out, and by the right check.
#[cfg(feature = "faults")]
mod broken {
    use super::*;
    use crate::dispatch_model::ViolationKind;
    use campanile_core::dispatch::rules::{Rule, break_rule};

    /// The seed that finds it out, and whether the same seed is sound with the rule kept.
    fn found(rule: Rule, kind: ViolationKind, play: fn(u64, u64) -> Result<(), Violation>) {
        for seed in 0..SEEDS {
            break_rule(Some(rule));
            let played = play(seed, STEPS);
            break_rule(None);
            if let Err(violation) = played
                && violation.kind == kind
            {
                println!("{rule:?}: seed {seed}: {violation:?}");
                assert_eq!(play(seed, STEPS), Ok(()), "with the rule kept, the same seed violates nothing");
                return;
            }
        }
        panic!("{rule:?} is not found out in {SEEDS} seeds");
    }

    macro_rules! broken {
        ($($name:ident: $rule:ident => $kind:ident by $play:path,)*) => {
            $(#[test] fn $name() { found(Rule::$rule, ViolationKind::$kind, $play); })*
            const HERE: &[Rule] = &[$(Rule::$rule,)*];
        };
    }

    broken!(
        runs_of_another_pool: PoolIsServed => Unfit by world::play,
        runs_of_another_kind: KindIsRun => Unfit by world::play,
        a_handler_that_it_does_not_have: HandlerIsKnown => Unfit by world::play,
        too_large_for_it: LargeEnough => Place by world::play,
        more_than_it_has_room_for: RoomIsLeft => Room by world::play,
        more_than_its_credit: CreditIsSpent => Credit by world::play,
        a_credit_for_ever: CreditGrowsVoid => Credit by world::play,
        more_than_its_slots: SlotsAreFinite => Credit by world::play,
        a_credit_that_is_lost: CreditComesBack => Left by world::play,
        backfill_before_live_runs: LiveFirst => Order by world::play,
        low_priority_first: PriorityFirst => Order by world::play,
        a_low_priority_in_trouble: LowPriorityWaits => Order by world::play,
        a_low_priority_for_ever: LowPriorityAges => Order by world::play,
        a_backfill_for_its_age: BackLaneDoesNotAge => Order by world::play,
        slots_for_who_has_most: SlotsAreShared => Order by world::play,
        one_tenant_before_all_others: TenantsTakeTurns => Order by world::play,
        last_come_first: FirstComeFirst => Order by world::play,
        given_back_in_another_order: GivenBackInOrder => Order by world::play,
        a_run_that_was_given_up: GivenUpStaysOut => Order by world::play,
        a_run_by_its_old_form: NewestEntryCounts => Order by world::play,
        a_round_without_an_end: PassedOverIsLimited => Extra by world::play,
        the_loaded_executor_first: LeastLoadFirst => Score by world::play,
        always_the_same_executor: EqualsTakeTurns => Score by world::play,
        permits_without_a_limit: PermitsAreLimited => Permit by permits::play,
        a_permit_with_two_holders: PermitHasOneHolder => Permit by permits::play,
        a_rate_that_is_not_used_up: RateIsSpent => Rate by permits::play,
        a_bucket_without_a_brim: BucketIsFinite => Rate by permits::play,
        retries_beyond_the_budget: RetriesAreFew => Retry by targets::play,
        a_retry_that_costs_nothing: RetryIsSpent => Retry by targets::play,
        retries_saved_without_a_limit: RetriesSavedAreFinite => Retry by targets::play,
        a_breaker_that_never_opens: BreakerOpens => Breaker by targets::play,
        attempts_while_it_is_open: OpenBreakerHolds => Breaker by targets::play,
        the_same_time_at_each_opening: OpensForLonger => Breaker by targets::play,
        all_at_once_after_an_outage: TargetComesBackSlowly => Breaker by targets::play,
        a_failed_probe_that_changes_nothing: ProbeDecides => Breaker by targets::play,
        the_same_room_after_a_failure: FailureHalvesTheRoom => Breaker by targets::play,
        the_ends_of_before: OldEndsSayNothing => Breaker by targets::play,
    );

    #[test]
    fn matches_without_a_limit() {
        break_rule(Some(Rule::BindsAreLimited));
        let played = told::matches_under_way();
        break_rule(None);
        assert_eq!(played.map_err(|violation| violation.kind), Err(ViolationKind::Extra));
    }

    #[test]
    fn no_rule_is_left_out() {
        let broken: Vec<Rule> = HERE.iter().copied().chain([Rule::BindsAreLimited]).collect();
        for rule in Rule::ALL {
            assert_eq!(broken.iter().filter(|other| **other == rule).count(), 1, "{rule:?}");
        }
    }
}
