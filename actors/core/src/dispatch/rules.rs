//! The rules of matching by name, so that its test (`tests/dispatch.rs`) can break each one and see what comes of it.

use crate::breakable::breakable;

breakable! {
    /// One rule.
    pub enum Rule {
        /// An executor gets runs of its own pools only.
        PoolIsServed,
        /// ... of kinds that it runs,
        KindIsRun,
        /// ... of handlers that it has,
        HandlerIsKnown,
        /// ... that do not need more of a resource than it has in all,
        LargeEnough,
        /// ... nor more than its other runs have left of it.
        RoomIsLeft,

        /// An executor gets as many runs as its credit says.
        CreditIsSpent,
        /// ... as long as the credit is young.
        CreditGrowsVoid,
        /// ... and never more at once than it has slots.
        SlotsAreFinite,
        /// A run that was not started gives its credit back.
        CreditComesBack,
        /// Matched runs whose attempt is not durable are limited in number.
        BindsAreLimited,

        /// A tenant has no more permits than its limit.
        PermitsAreLimited,
        /// ... each of them for one run, however often it is adopted.
        PermitHasOneHolder,
        /// A permit of a rate is used once.
        RateIsSpent,
        /// A bucket of rate permits holds a second's worth, however long nobody came.
        BucketIsFinite,

        /// Live runs come before backfill.
        LiveFirst,
        /// Higher priority comes first.
        PriorityFirst,
        /// Runs of too low a priority wait while the node cannot keep up.
        LowPriorityWaits,
        /// A low priority has a turn now and then.
        LowPriorityAges,
        /// ... and never a run of a backfill before a live one.
        BackLaneDoesNotAge,
        /// Of the tenants of one priority, the one with the least part of the slots comes first.
        SlotsAreShared,
        /// Tenants of one priority take turns.
        TenantsTakeTurns,
        /// Runs of a tenant and a priority keep their order.
        FirstComeFirst,
        /// Runs that nobody could take at the moment come back in their order.
        GivenBackInOrder,
        /// A run that was given up is not matched.
        GivenUpStaysOut,
        /// A run that was given up and comes again waits by its newest form.
        NewestEntryCounts,
        /// A round passes over a limited number of runs.
        PassedOverIsLimited,

        /// The less loaded of two executors gets the run.
        LeastLoadFirst,
        /// Of equally loaded ones, the one that waits longest for a run.
        EqualsTakeTurns,

        /// A retry of a target starts only as far as the budget allows.
        RetriesAreFew,
        /// A retry takes its part of the budget.
        RetryIsSpent,
        /// A limited number of retries can be saved up.
        RetriesSavedAreFinite,
        /// The breaker of a target opens when most attempts fail.
        BreakerOpens,
        /// Nothing starts while it is open,
        OpenBreakerHolds,
        /// ... and each opening in a row is longer than the one before.
        OpensForLonger,
        /// Then one attempt starts first, and only what works makes room for more.
        TargetComesBackSlowly,
        /// The failure of a lone attempt opens it again,
        ProbeDecides,
        /// ... and another failure halves the room.
        FailureHalvesTheRoom,
        /// Ends of attempts that began before it opened do not count.
        OldEndsSayNothing,
    }
}
