//! The clauses of hooks by name, so that the tests can break each one and see the consequence. What carries their messages has its own
//! (`crate::outbox::rules`).

/// One clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Rule {
    /// `onFailure` is for FAILED and for TIMEOUT.
    FailureIsBoth,
    /// `onSuccess` is for SUCCESS only.
    SuccessAlone,
    /// `onTimeout` is started besides `onFailure`.
    TimeoutBesides,
    /// `onDeadLetter` is started when the run is a dead letter, and not when it only failed.
    DeadLetterOnly,
    /// A run that is canceled starts none.
    CanceledIsSilent,
    /// A root run leads to so many runs of hooks.
    BudgetHolds,
    /// What is left is divided among the runs that are started.
    BudgetIsDivided,
    /// ... and the run that is started keeps its part.
    BudgetIsCarried,
    /// The nodes of a DAG run that a hook has started share what it may lead to.
    NodesShare,
    /// A hook for which nothing is left is recorded.
    RefusalIsRecorded,
    /// A compensation is sent as one, so that its key has no generation and its run has the source COMPENSATION.
    CompensationIsOne,
    /// It is sent once for a run.
    CompensatedOnce,
    /// A run that was undone is started again only with `force`.
    ReopenAsks,
}

impl Rule {
    pub const ALL: [Self; 13] = [
        Self::FailureIsBoth,
        Self::SuccessAlone,
        Self::TimeoutBesides,
        Self::DeadLetterOnly,
        Self::CanceledIsSilent,
        Self::BudgetHolds,
        Self::BudgetIsDivided,
        Self::BudgetIsCarried,
        Self::NodesShare,
        Self::RefusalIsRecorded,
        Self::CompensationIsOne,
        Self::CompensatedOnce,
        Self::ReopenAsks,
    ];
}

/// Whether a rule is kept: always, but where a test breaks it on purpose.
#[cfg(not(feature = "faults"))]
pub const fn kept(_: Rule) -> bool {
    true
}

#[cfg(feature = "faults")]
pub use broken::{break_rule, break_rule_everywhere, kept};

#[cfg(feature = "faults")]
mod broken {
    use super::Rule;
    use std::{
        cell::Cell,
        sync::atomic::{AtomicU64, Ordering},
    };

    thread_local! {
        static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Rules that the whole process breaks, one bit each: a node, told by its environment.
    static BROKEN_BY_ALL: AtomicU64 = AtomicU64::new(0);

    impl Rule {
        /// By its name here.
        pub fn parse(name: &str) -> Option<Self> {
            Self::ALL.into_iter().find(|rule| format!("{rule:?}") == name)
        }
    }

    /// Breaks a rule in the whole process.
    pub fn break_rule_everywhere(rule: Rule) {
        BROKEN_BY_ALL.fetch_or(1 << rule as u64, Ordering::Relaxed);
    }

    /// Breaks one rule, for this thread only: tests of different rules run side by side.
    pub fn break_rule(rule: Option<Rule>) {
        BROKEN.set(rule);
    }

    /// Whether a rule is kept: always, but where a test breaks it on purpose.
    pub fn kept(rule: Rule) -> bool {
        BROKEN.get() != Some(rule) && BROKEN_BY_ALL.load(Ordering::Relaxed) & (1 << rule as u64) == 0
    }
}
