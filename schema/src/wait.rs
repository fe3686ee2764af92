//! The codes of `waitReason`: why a run has no body yet, or why it does not end. A reason is a code, a colon and a sentence for people.
//! Programs compare the code; the sentence may change with any release. `docs/concepts.md` has the table for users, and a test
//! (`tests/interfaces/wait_codes.rs`) compares it with this one.

use std::fmt::Display;

/// Makes an enum of codes.
macro_rules! codes {
    ($(#[$edoc:meta])* $enum:ident { $($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)? }) => {
        $(#[$edoc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $enum { $($(#[$doc])* $name),+ }
        impl $enum {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $text),+ } }
        }
    };
}
pub(crate) use codes;

codes! {
    /// The code at the beginning of a `waitReason`.
    WaitCode {
        /// PENDING: the job's concurrency policy holds the run until the active one has ended.
        HeldByConcurrencyPolicy = "HELD_BY_CONCURRENCY_POLICY",
        JobPaused = "JOB_PAUSED",
        JobQuarantined = "JOB_QUARANTINED",
        /// The tenant or the whole system is paused.
        TenantPaused = "TENANT_PAUSED",
        /// The node does not know the tenant's limits yet, or which permits are in use.
        Starting = "STARTING",
        TenantConcurrency = "TENANT_CONCURRENCY",
        TenantRate = "TENANT_RATE",
        /// The breaker of the job's target is open.
        TargetBreakerOpen = "TARGET_BREAKER_OPEN",
        /// The job's target comes back after an outage.
        TargetRecovering = "TARGET_RECOVERING",
        /// A retry: too few first attempts at the job's target have paid for it.
        TargetRetryBudget = "TARGET_RETRY_BUDGET",
        TargetConcurrency = "TARGET_CONCURRENCY",
        TargetRate = "TARGET_RATE",
        /// No executor of the pool is connected.
        NoExecutor = "NO_EXECUTOR",
        /// Executors of the pool are connected, but none can carry the action out.
        NoFit = "NO_FIT",
        NoCredit = "NO_CREDIT",
        /// An executor was chosen, and the attempt is not durable yet.
        Binding = "BINDING",
        /// PENDING: the shard has as many nodes of open DAG runs as it may.
        NoNodeRoom = "NO_NODE_ROOM",
        /// RUNNING, of a DAG: a person paused the run, and no further node of it starts.
        DagPaused = "DAG_PAUSED",
        /// Of a backfill: it leaves room for live runs.
        BackfillYields = "BACKFILL_YIELDS",
        /// The node cannot keep up, and does without runs like this one.
        NodeDegraded = "NODE_DEGRADED",
        WaitingForRetry = "WAITING_FOR_RETRY",
        NeedsConfirmation = "NEEDS_CONFIRMATION",
        SuspectedLost = "SUSPECTED_LOST",
        /// RUNNING: the body was told to stop and has not ended.
        Stopping = "STOPPING",
    }
}

impl WaitCode {
    /// The whole reason.
    pub fn because(self, sentence: impl Display) -> String {
        format!("{}: {sentence}", self.as_str())
    }

    /// The code and the sentence of a whole reason. None: it begins with no code of this release.
    pub fn of(reason: &str) -> Option<(Self, &str)> {
        let (code, sentence) = reason.split_once(": ")?;
        Some((Self::ALL.iter().copied().find(|known| known.as_str() == code)?, sentence))
    }
}
