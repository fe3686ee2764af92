//! What operators see of a cluster: its nodes, the owner of each shard, the planned moves, and what happened.

use crate::{job::upper_enum, time::Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// How a node stands.
    MemberState { Alive = "ALIVE" = 0,
        /// It did not answer of late, and has some more time to say that it is there.
        Suspected = "SUSPECTED" = 1,
        /// It keeps what it owns and gets nothing new.
        Cordoned = "CORDONED" = 2,
        /// It gives its shards away before it stops.
        Draining = "DRAINING" = 3,
        /// Most nodes' clocks say that its own is wrong: it fires nothing and gives its shards away.
        ClockWrong = "CLOCK_WRONG" = 4 } default Alive);

/// A living node, as the asked one sees it. `GET /api/v1/cluster/members`, `cluster.members`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// `[node] name`.
    pub name: String,
    pub state: MemberState,
    /// The node that was asked.
    pub is_self: bool,
    /// Shards that it owns, by the rows of the store.
    pub shards: u64,
    /// Its current session; 0 = it has none yet.
    pub session: u64,
    pub build: String,
    /// HOST:PORT for callers.
    pub http: String,
    /// HOST:PORT for RPC callers and executors.
    pub rpc: String,
    /// HOST:PORT for other nodes.
    pub gateway: String,
    /// HOST:PORT, UDP, of membership.
    pub gossip: String,
    /// Its wall clock minus that of the asked node, ms; null until it was heard.
    pub clock_offset_ms: Option<i64>,
}

/// Who owns a shard. `GET /api/v1/cluster/shards`, `cluster.shards`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardView {
    pub shard: u16,
    /// The owner's name; null: no living node.
    pub node: Option<String>,
    /// The session that the shard's row names.
    pub session: Option<u64>,
    /// Rises with each change of owner.
    pub epoch: u64,
    /// The asked node serves it.
    pub served_here: bool,
    /// Parts of journals that a new owner would read.
    pub spans: u64,
    /// Highest frame that the published snapshot holds.
    pub snapshot_seq: Option<u64>,
}

upper_enum!(/// Why a shard moves.
    MoveReason { NoOwner = "NO_OWNER" = 0, Underway = "UNDERWAY" = 1, OwnerLeaves = "OWNER_LEAVES" = 2,
        Balance = "BALANCE" = 3 } default NoOwner);

/// A shard that should have another owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveView {
    pub shard: u16,
    pub from: Option<String>,
    pub to: String,
    pub reason: MoveReason,
}

/// Where shards are going. `GET /api/v1/cluster/plan`, `cluster.plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// Every shard is where it should be.
    pub balanced: bool,
    /// Shards that a node should have at the most.
    pub cap: u64,
    /// All moves that are still to be made, in their order; a few of them at a time.
    pub moves: Vec<MoveView>,
}

upper_enum!(/// What happened.
    ClusterEventKind { NodeCame = "NODE_CAME" = 0, NodeSuspected = "NODE_SUSPECTED" = 1, NodeWellAgain = "NODE_WELL_AGAIN" = 2,
        NodeGone = "NODE_GONE" = 3, NodeDraining = "NODE_DRAINING" = 4, NodeCordoned = "NODE_CORDONED" = 5,
        NodeUncordoned = "NODE_UNCORDONED" = 6,
        /// It has a session of its own: its right to own shards.
        SessionBegun = "SESSION_BEGUN" = 7, SessionOver = "SESSION_OVER" = 8, ShardServed = "SHARD_SERVED" = 9,
        ShardHandedOver = "SHARD_HANDED_OVER" = 10,
        /// Another session took it.
        ShardLost = "SHARD_LOST" = 11,
        /// Most nodes' clocks say that its own is wrong, or do no longer.
        NodeClockWrong = "NODE_CLOCK_WRONG" = 12, NodeClockRight = "NODE_CLOCK_RIGHT" = 13 } default NodeCame);

/// Something that the asked node saw or did. `GET /api/v1/cluster/events`, `cluster.events`: the newest first, since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterEventView {
    pub at: Timestamp,
    pub kind: ClusterEventKind,
    /// The node that it is about, where it is about one.
    pub node: Option<String>,
    pub shard: Option<u16>,
    /// More about it: a session, an epoch, how much was replayed.
    pub detail: Option<String>,
}

/// Which shards. `GET /api/v1/cluster/shards?node=`, `cluster.shards`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ShardFilter {
    /// Only those of the node of this name.
    pub node: Option<String>,
}
