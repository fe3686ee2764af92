//! The names of everything that a session can go through: for counters and the log, and so that a test can report what
//! it has exercised.

macro_rules! transitions {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One step of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Transition { $($(#[$doc])* $name,)* }
        impl Transition {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

transitions!(
    /// A heartbeat succeeded (the first one inserts the row).
    HeartbeatCounted,
    /// A heartbeat timed out, and was found in the row.
    HeartbeatReadBack,
    /// A heartbeat timed out, and was not found in the row.
    HeartbeatMissed,
    /// The session may act from now on.
    ActingBegan,
    /// The lease has run out, or the session is over.
    ActingEnded,
    /// The session found out that another one had fenced it.
    FoundFenced,
    /// The session was not inserted within its lease.
    Stillborn,
    /// The session ended by itself.
    Ended,
    /// A watched session was silent for long enough: its fence was sent.
    FenceSent,
    /// The predecessor of this process was fenced at once.
    PredecessorFenced,
    /// A fence was applied.
    Fenced,
    /// A fence came too late: there was a newer heartbeat, or another fence.
    FenceLost,
    /// Rows of a window are written again.
    WindowRewritten,
    /// Sealed positions were recorded.
    Sealed,
    /// Another taker's sealed positions were found.
    SealFound,
    /// A session that owned or borrowed something had no row.
    WithoutRow,
    /// A claim was sent for a shard of a session that is over, or of nobody.
    ClaimSent,
    /// A claim was sent for a row in the own name that was not served.
    OwnNameClaimed,
    /// A claim was applied.
    Claimed,
    /// A claim timed out, and was found in the row.
    ClaimReadBack,
    /// A claim timed out, was not found in the row, and was sent again.
    ClaimRepeated,
    /// Somebody else was first.
    ClaimLost,
    /// A shard was loaded and is served.
    Loaded,
    /// A shard is to be handed over.
    DrainBegan,
    /// The successor was not active: the shard goes on here.
    SuccessorRefused,
    /// A shard was released.
    Released,
    /// A release timed out, and was found in the row.
    ReleaseReadBack,
    /// A release timed out, was not found in the row, and is made void before the shard goes on here.
    ReleaseVoided,
    /// A shard goes on here after its release was made void.
    Reclaimed,
    /// A snapshot's pointer was published, or spans were trimmed.
    Published,
    /// A publication timed out.
    PublicationUnknown,
    /// A span was removed or begins later.
    SpanTrimmed,
    /// Journal rows were deleted.
    RowsDeleted,
    /// The row of a session that nothing names was removed.
    SessionDropped,
    /// A row of the journal was written again.
    AppendRepeated,
    /// A lane's window was full.
    WindowFull,
);
