//! The rules of the protocol by name, so that its model test can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One rule. What goes wrong without it is told in `docs/ownership.md`.
    pub enum Rule {
        /// A session is fenced only when its lease x 1.1 has passed on the watcher's clock with no other heartbeat seen.
        FenceAfterLease,
        /// ... and not one tenth less: clocks differ.
        TenthForClocks,
        /// The lease that counts is the one in the watched session's row, not the watcher's own.
        LeaseOfTheRow,
        /// Time in which the watcher's own reads failed does not count.
        FailedReadsDoNotCount,
        /// The lease is looked at again after each durable write, before anything is acknowledged.
        CheckAfterWrite,
        /// A heartbeat that timed out extends the lease only when it was read back.
        HeartbeatReadBack,
        /// A session that is not inserted within its lease gives itself up: others may have seen, ended and removed it.
        InsertWithinLease,
        /// The row of a session that is over stays for longer than any statement can be late: a doubled insert would revive it.
        KeepEndedRows,
        /// What is acknowledged ends at the first gap of the lane.
        AcknowledgeToTheGap,
        /// In flight is the distance in seq from the first gap, not a count of rows.
        WindowByDistance,
        /// The last rows of a window are written again before the seal is recorded.
        SealRewritesWindow,
        /// Shards of a fenced session are claimed only when its sealed positions are recorded.
        ClaimAfterSeal,
        /// A claim that timed out counts only when it was read back.
        ClaimReadBack,
        /// A claim that timed out is pursued until it is applied or void: coming late, it would name journal rows that are gone.
        ClaimPursued,
        /// A claim is known by its open span: owner and epoch alone may be a release to the same session.
        OpenSpanIsTheClaim,
        /// What was read of a shard before its claim counts only up to where the claim says that its spans end.
        ReadAheadFits,
        /// A claim appends a span; those of earlier owners stay.
        SpansAreAList,
        /// Every LWT is conditional on the version that was read. Kept by the store's statements.
        VersionInLwt,
        /// Owners that are no live member's current session are watched.
        Reconcile,
        /// A row in the own name that is not served is claimed again.
        OwnName,
        /// No row means over only if it was read after the session was known to have had one.
        AbsenceAfterPresence,
        /// A session that owned or borrowed something and has no row is over.
        SessionWithoutRowIsOver,
        /// A release that timed out may still come: only a claim that raises the version lets the shard go on here.
        ResumeRaisesVersion,
        /// A snapshot's pointer waits until all that the snapshot holds is durable.
        SnapshotWhenDurable,
        /// ... and acknowledged: a row that becomes durable after the seal does not count.
        SnapshotWhenAcknowledged,
        /// A span goes only when snapshot and projection both cover it.
        TrimAfterProjection,
        /// Journal rows are deleted only up to the durable position that the session's row states.
        DeleteBelowStated,
        /// While one of its claims is open, a session deletes no journal rows.
        DeleteWhenQuiet,
        /// Loans are events of the quota's shard: its next owner knows them. Kept by the shell, which writes them.
        LoansAreEvents,
        /// A taker has the runs counted that it loaded, not those that it started since.
        CountAsLoaded,
        /// The permits of a session that is over are lent again only when the takers of all shards have counted its runs.
        FreeAfterReports,
        /// A shard that was handed over keeps its permits at the old owner until the quota has moved them.
        DrainCountsPermits,
    }
}
