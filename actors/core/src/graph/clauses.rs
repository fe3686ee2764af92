//! The rules of the state machine by name, so that its model test can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Clause {
        /// ALL_SUCCESS asks for every parent, so a skipped one is not enough.
        AllSuccessMeansAll,
        /// ALL_DONE waits until the last parent has ended.
        AllDoneWaits,
        /// ANY_SUCCESS fires at the first success.
        AnySuccessIsEarly,
        /// ANY_FAILED fires at the first failure.
        AnyFailedIsEarly,
        /// NONE_FAILED takes skipped parents.
        NoneFailedTakesSkipped,
        /// A node whose rule can never be met any more, because of a failure, is UPSTREAM_FAILED at once.
        UpstreamFailedIsEarly,
        /// ... and UPSTREAM_FAILED, not SKIPPED, whatever else its parents did.
        FailureOutweighsSkip,
        /// A node is SKIPPED only when its last parent has ended: a later failure would make it UPSTREAM_FAILED.
        SkipWaits,
        /// A parent whose edge has a false condition counts as skipped.
        FalseConditionSkips,
        /// A parent whose edge has a condition that cannot be evaluated counts as failed.
        BrokenConditionFails,
        /// Conditions are asked about successful parents only.
        ConditionNeedsSuccess,
        /// A CANCELED parent counts as failed.
        CanceledIsFailure,
        /// An UPSTREAM_FAILED parent counts as failed.
        UpstreamFailedIsFailure,
        /// A DAG run with a failure that nothing handled is FAILED.
        FailureFails,
        /// A failure is handled by a node behind it that ran because of it and succeeded.
        HandlerMakesGood,
        /// ... by ANY_FAILED or ALL_DONE, by no other rule.
        HandlerByRule,
        /// ... and a node that had started before the failure did not run because of it.
        HandlerRanBecauseOfIt,
        /// ... and each failure needs one.
        EachFailureHandled,
        /// A canceled DAG run is CANCELED, whatever else happened.
        CanceledWins,
        /// A DAG run that reached its timeout is TIMEOUT, whatever failed.
        TimeoutWins,
        /// Without `failFast` a failure stops only what depends on it.
        FailureStaysLocal,
        /// With `failFast` a failure keeps all that waits from starting.
        FailFastStops,
        /// ... and cancels what runs.
        FailFastCancels,
        /// No more than `maxParallel` nodes have open runs.
        MaxParallel,
        /// One decision starts no more than a fixed number of nodes.
        StartsPerDecision,
        /// ... and asks to be woken for the rest.
        WakeForTheRest,
        /// An end of an earlier generation is ignored.
        StaleEndIgnored,
        /// ... and asks for the node's run again when that has not come yet: its job may have taken the request for the earlier one.
        StaleEndAsksAgain,
        /// An end of a node that has ended is ignored.
        DoubledEndIgnored,
        /// A run that is ahead of its DAG (after a restore) is taken with the generation that it has.
        LaterGenerationAdopted,
        /// A stopped DAG run is open until every child has ended.
        OpenUntilChildrenEnd,
        /// A stop cancels children whose start is still on its way, too.
        CancelReachesStarting,
        /// Every start of a node has a higher generation than the one before.
        RetryRaisesGeneration,
        /// A retry lets nodes wait again that passed because of the retried one.
        RetryFreesWhatPassed,
        /// A retry does not run again what ran.
        RetryKeepsWhatRan,
        /// A retry from a node runs all again that comes after it.
        RetryFromTakesAll,
        /// A final DAG run that goes on has a higher generation.
        ReopenRaisesGeneration,
        /// A DAG run that goes on is not stopped any more: what the stop kept from starting waits again.
        ReopenLiftsStop,
        /// A node with an open run cannot be marked.
        MarkNeedsNoRun,
        /// Conditions behind a node that a person marked SUCCESS are taken for true.
        MarkTakesEdges,
        /// Nodes count a parent that is reset as open again.
        CountsFollowReset,
        /// The result of a node that is reset is forgotten.
        ResultForgotten,
        /// A node whose result fields are too large fails.
        NodeResultLimit,
        /// A node with whose result fields the run would keep too much fails.
        RunResultLimit,
        /// A node whose template finds no value in a result fails.
        TemplateNeedsValue,
        /// No node of a paused DAG run starts.
        PauseHoldsStarts,
        /// A pause lasts until it is resumed, also over a restart.
        PauseIsStored,
        /// A DAG run that is resumed starts what may start.
        ResumeStarts,
        /// What is owed after a restart: requests of starting nodes.
        PendingStarts,
        /// ... and cancels of a stopped run.
        PendingCancels,
    }
}
