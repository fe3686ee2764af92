//! The rules of matching by name, so that its test (`tests/dispatch.rs`) can break each one and see what comes of it.

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
}

impl Rule {
    pub const ALL: [Self; 24] = [
        Self::PoolIsServed,
        Self::KindIsRun,
        Self::HandlerIsKnown,
        Self::LargeEnough,
        Self::RoomIsLeft,
        Self::CreditIsSpent,
        Self::CreditGrowsVoid,
        Self::SlotsAreFinite,
        Self::CreditComesBack,
        Self::BindsAreLimited,
        Self::PermitsAreLimited,
        Self::PermitHasOneHolder,
        Self::RateIsSpent,
        Self::BucketIsFinite,
        Self::LiveFirst,
        Self::PriorityFirst,
        Self::TenantsTakeTurns,
        Self::FirstComeFirst,
        Self::GivenBackInOrder,
        Self::GivenUpStaysOut,
        Self::NewestEntryCounts,
        Self::PassedOverIsLimited,
        Self::LeastLoadFirst,
        Self::EqualsTakeTurns,
    ];
}

/// Whether a rule is kept: always, but where a test breaks it on purpose.
#[cfg(not(feature = "faults"))]
pub const fn kept(_: Rule) -> bool {
    true
}

#[cfg(feature = "faults")]
pub use broken::{break_rule, kept};

#[cfg(feature = "faults")]
mod broken {
    use super::Rule;
    use std::cell::Cell;

    thread_local! {
        static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Breaks one rule, for this thread only: tests of different rules run side by side.
    pub fn break_rule(rule: Option<Rule>) {
        BROKEN.set(rule);
    }

    /// Whether a rule is kept: always, but where a test breaks it on purpose.
    pub fn kept(rule: Rule) -> bool {
        BROKEN.get() != Some(rule)
    }
}
