//! The settings of a session, and the hints about other sessions.

use campanile_schema::ids::{SessionId, ShardId};
use std::collections::{BTreeMap, BTreeSet};

/// What a session is made with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Never used before.
    pub session: SessionId,
    /// Milliseconds. Some six heartbeats, so that a slow store does not end sessions.
    pub lease_ms: u64,
    /// Milliseconds from one heartbeat to the next.
    pub beat_ms: u64,
    /// Milliseconds between two reads of a session that is watched.
    pub watch_ms: u64,
    /// Milliseconds between two reads of all shard rows; a quarter of it while shards are to move.
    pub reconcile_ms: u64,
    /// Milliseconds for which the row of a session that is over stays at least: longer than any statement can be late. A day.
    pub keep_ended_ms: u64,
    /// Rows that may be written ahead of a lane's first gap.
    pub window: u64,
    pub lanes: u16,
    /// The session before this one, of a process that is known to be gone: on the same boot, its data directory's lock is held.
    pub predecessor: Option<SessionId>,
}

/// What membership and placement say. May be wrong, and differ between nodes.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// Current sessions of live members.
    pub members: BTreeSet<SessionId>,
    /// Sessions to watch all the time: two successors, and suspects.
    pub watch: BTreeSet<SessionId>,
    /// Sessions that hold loans of quotas that are served here: they are watched too.
    pub borrowers: BTreeSet<SessionId>,
    /// Who should own a shard.
    pub wanted: BTreeMap<ShardId, SessionId>,
    /// More shards are to move once these have: the rows are read more often meanwhile.
    pub moving: bool,
}
