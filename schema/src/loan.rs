//! The permits to run that a tenant's quota lends to sessions of a cluster. A loan is a level: how many permits a
//! session has, not how many more. The tenant's home shard decides it, as an event of that shard, so the shard's next
//! owner knows every loan.

use crate::ids::{Epoch, SessionId, ShardId};
use serde::{Deserialize, Serialize};

/// What a session may use of a tenant's permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Rises with each request that was decided.
    #[serde(rename = "v")]
    pub version: u64,
    #[serde(rename = "n")]
    pub permits: u32,
}

/// A change of a tenant's loans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoanEvent {
    #[serde(rename = "s")]
    Set {
        #[serde(rename = "s")]
        session: SessionId,
        #[serde(rename = "l")]
        level: Level,
    },
    /// The taker of a shard has counted its open runs.
    #[serde(rename = "c")]
    Counted {
        #[serde(rename = "h")]
        shard: ShardId,
        #[serde(rename = "e")]
        epoch: Epoch,
        #[serde(rename = "s")]
        session: SessionId,
    },
    /// A session is over, and all its runs are counted elsewhere.
    #[serde(rename = "f")]
    Freed {
        #[serde(rename = "s")]
        session: SessionId,
    },
}

/// What a session wants of a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// So many permits in all: more are lent as far as there are free ones, fewer are taken back.
    Hold { permits: u32 },
    /// These shards were claimed with so many open runs each: they are counted here, above the limit if need be.
    Adopted { shards: Vec<(ShardId, Epoch, u32)> },
    /// This shard was handed over with so many open runs: they are not counted here once its next owner has counted them.
    HandedOver { shard: ShardId, epoch: Epoch, runs: u32 },
}

/// A wish, made by a session at the version of its level that it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub session: SessionId,
    pub version: u64,
    pub wish: Wish,
}
