//! The codes of explanations (`run.explain`, `job.explain`), besides those of [`crate::wait`]. Programs compare the code; the sentence may
//! change with any release. `docs/guides/explain.md` has the table for users, and a test (`tests/interfaces/wait_codes.rs`) compares it
//! with this one.

use crate::wait::codes;

codes! {
    /// The code of a reason that is not why a run waits.
    ReasonCode {
        /// The schedule of the job was due.
        ScheduleDue = "SCHEDULE_DUE",
        /// A person or a program triggered the job.
        Triggered = "TRIGGERED",
        /// The run is of a node of a DAG.
        DagNode = "DAG_NODE",
        /// A hook of another job started it.
        Hook = "HOOK",
        /// It is for an instant of the past.
        PastInstant = "PAST_INSTANT",
        /// An ended run was started again.
        RunAgain = "RUN_AGAIN",
        /// A run of a DAG that waits for its nodes.
        DagNodesOpen = "DAG_NODES_OPEN",
        /// A person gave the run a priority that differs from its job's.
        OwnPriority = "OWN_PRIORITY",
        /// The node decided about the instant late.
        DecidedLate = "DECIDED_LATE",
        /// It waited for a permit or an executor.
        WaitedToStart = "WAITED_TO_START",
        /// Attempts before the last one failed.
        Retried = "RETRIED",
        Ended = "ENDED",
        /// The job of a hook of the run refused to be started.
        HookRefused = "HOOK_REFUSED",
        /// A hook of the run was not sent.
        HookDropped = "HOOK_DROPPED",
        /// Nobody answered a hook of the run for a day.
        HookUndelivered = "HOOK_UNDELIVERED",
        /// When the job is due next.
        NextFire = "NEXT_FIRE",
        /// The job has no schedule.
        NoSchedule = "NO_SCHEDULE",
        /// The schedule of the job has no instant left.
        NoMoreInstants = "NO_MORE_INSTANTS",
        /// FORBID, QUEUE_ONE or REPLACE: what an open run does to the next instant.
        RunOpen = "RUN_OPEN",
        /// FIXED_DELAY: the next instant follows from the end of the open run.
        AfterOpenRun = "AFTER_OPEN_RUN",
        /// FIRE_ALL_MISSED: what was missed waits for the open run.
        BacklogWaits = "BACKLOG_WAITS",
        /// The node that was asked fires nothing now.
        NodeNotReady = "NODE_NOT_READY",
        InstantFired = "INSTANT_FIRED",
        InstantSkipped = "INSTANT_SKIPPED",
        InstantMissed = "INSTANT_MISSED",
        InstantCoalesced = "INSTANT_COALESCED",
        InstantDstSkipped = "INSTANT_DST_SKIPPED",
        /// A window or a blackout removes the instant, and the ledger does not say so yet.
        InstantRemoved = "INSTANT_REMOVED",
        /// The schedule is not due at this time.
        NotAnInstant = "NOT_AN_INSTANT",
        InstantToCome = "INSTANT_TO_COME",
        BeforeTheJob = "BEFORE_THE_JOB",
        /// The ledger does not reach back to it.
        NotInTheLedger = "NOT_IN_THE_LEDGER",
    }
}
