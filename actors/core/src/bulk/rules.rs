//! The clauses of bulk operations by name, so that the tests can break each one and see the consequence.

/// One clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Rule {
    /// A page begins only behind the one that the record knows.
    PageFollows,
    /// One page at a time.
    OnePage,
    /// A report counts only for the page that is open.
    ReportOnce,
    /// An aborted operation begins no page.
    AbortStops,
    /// ... and is ABORTED only when the page that had begun was done.
    AbortedAtTheEnd,
    /// An operation is DONE when its last page was done.
    DoneAtTheEnd,
    /// An operation that has ended stays as it is.
    EndIsFinal,
    /// A delete with a grace deletes nothing before the grace is over.
    GraceHolds,
    /// ... and nothing that was resumed in it.
    ResumedIsSpared,
    /// An undo within the grace ends the delete.
    UndoEndsGrace,
    /// An undo changes only jobs that are still as the operation left them.
    UndoOwnOnly,
    /// ... and not those that were paused already.
    UndoNotKept,
    /// An operation is undone once.
    UndoOnce,
    /// A job that was paused or resumed by the operation counts as done when the page is repeated.
    RepeatIsDone,
    /// Every trigger of an operation has the operation's key.
    TriggerHasKey,
    /// Open operations are bounded.
    OpenIsBounded,
    /// Ended operations are bounded.
    EndedIsBounded,
    /// The record names only the first failures.
    FailuresAreBounded,
    /// A restore aborts what is open.
    RestoreAborts,
}

impl Rule {
    pub const ALL: [Self; 19] = [
        Self::PageFollows,
        Self::OnePage,
        Self::ReportOnce,
        Self::AbortStops,
        Self::AbortedAtTheEnd,
        Self::DoneAtTheEnd,
        Self::EndIsFinal,
        Self::GraceHolds,
        Self::ResumedIsSpared,
        Self::UndoEndsGrace,
        Self::UndoOwnOnly,
        Self::UndoNotKept,
        Self::UndoOnce,
        Self::RepeatIsDone,
        Self::TriggerHasKey,
        Self::OpenIsBounded,
        Self::EndedIsBounded,
        Self::FailuresAreBounded,
        Self::RestoreAborts,
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
