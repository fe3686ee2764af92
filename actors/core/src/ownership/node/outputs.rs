//! What a session asks its shell to do.

use super::Transition;
use crate::ownership::{
    rows::{SnapshotPointer, Span},
    store::{Statement, Ticket},
};
use campanile_schema::ids::{Epoch, SessionId, ShardId};

/// What the shell does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Store {
        ticket: Ticket,
        statement: Statement,
    },
    /// Every row of the lane up to here is durable, and the session may act now: acknowledge, send, fire.
    Acknowledge {
        lane: u16,
        upto: u64,
    },
    /// Read the snapshot and the rows of these spans; then call [`super::Ownership::loaded`].
    Load {
        shard: ShardId,
        epoch: Epoch,
        spans: Vec<Span>,
        snapshot: Option<SnapshotPointer>,
    },
    /// Serve the shard from now on, or again with the state that is in memory.
    Serve {
        shard: ShardId,
        epoch: Epoch,
    },
    /// Finish what is being decided, take nothing new, then call [`super::Ownership::stopped`]. Not before the quotas have counted the
    /// runs that were adopted with the shard.
    Stop {
        shard: ShardId,
    },
    /// The shard is another's; tell the successor.
    Released {
        shard: ShardId,
        successor: SessionId,
    },
    /// The shard is lost: forget its state.
    Lost {
        shard: ShardId,
    },
    /// All shard rows were read: [`super::Ownership::rows`].
    RowsRead,
    /// For counters and the log.
    Took(Transition),
    /// The session is over. Forget all shards; go on with a new session.
    Over,
}

/// Why frames were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the session may not act now")]
    NoLease,
    #[error("the shard is not served here")]
    NotServed,
    /// Try again when rows were acknowledged.
    #[error("the lane's window is full")]
    Full,
}
