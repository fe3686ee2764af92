//! Ids. The slot, and so the shard, of a job or a run follows from its id alone.
//!
//! `id % SLOTS` is the slot; `slot % shards` is the shard. Because the slot is in the id, a directory can move to a
//! cluster with another number of shards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of hash slots. Fixed for ever: it is part of every id.
pub const SLOTS: u64 = 4096;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> { text.parse().map(Self) }
        }
    };
}

number!(
    /// A job. Below 2^53, so that JSON carries it. `id % SLOTS` = slot of (tenant, name).
    JobId
);
number!(
    /// A run. Below 2^53. Its slot is its job's slot.
    RunId
);
number!(
    /// A backfill or a replay. Below 2^53. Its slot is its job's slot. 0: none, of a run that is in the lane of backfills and counts for
    /// none of them.
    BackfillId
);
number!(
    /// A bulk operation. Below 2^53. Its slot is that of its tenant's home; of all tenants slot 0.
    BulkId
);
number!(
    /// Fences one attempt of a run: it rises with each attempt; a result with a lower one is refused.
    Token
);
number!(
    /// Rises at each change of a shard's owner, restarts included.
    Epoch
);
number!(
    /// A node's timed right to own anything; embedded: the number of the start.
    SessionId
);
number!(
    /// An executor's connection life, from registration to loss. Chosen by the executor at random.
    ExecutorSession
);
number!(
    /// Drawn at random when a cluster or a directory is created; executors key epochs by it. Below 2^53.
    ClusterId
);

/// First 16 bytes of a SHA-256: stands for a text that need not be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(#[serde(with = "serde_bytes")] pub [u8; 16]);

impl Digest {
    pub fn slot(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) % SLOTS
    }
}

/// A shard: unit of ownership and recovery. `0..shards`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ShardId(pub u16);
impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Slot of a named thing of a tenant (`0..SLOTS`). FNV-1a over `tenant`, NUL, `name`, then a 64-bit mix: stable for ever.
pub fn slot_of(tenant: &str, name: &str) -> u64 {
    name_hash(tenant, name) % SLOTS
}

/// The 64-bit hash behind [`slot_of`], also used as key of the name index.
pub fn name_hash(tenant: &str, name: &str) -> u64 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for b in tenant.bytes().chain(std::iter::once(0)).chain(name.bytes()) {
        h = (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    }
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^ (h >> 33)
}

/// Shard that owns a slot.
pub fn shard_of_slot(slot: u64, shards: u16) -> ShardId {
    ShardId((slot % u64::from(shards)) as u16)
}

/// Joins a shard's counter and a slot to an id.
pub fn make_id(counter: u64, slot: u64) -> u64 {
    counter * SLOTS + slot
}

impl JobId {
    pub fn slot(self) -> u64 {
        self.0 % SLOTS
    }
    pub fn shard(self, shards: u16) -> ShardId {
        shard_of_slot(self.slot(), shards)
    }
}
impl BackfillId {
    pub fn slot(self) -> u64 {
        self.0 % SLOTS
    }
    pub fn shard(self, shards: u16) -> ShardId {
        shard_of_slot(self.slot(), shards)
    }
}
impl BulkId {
    pub fn slot(self) -> u64 {
        self.0 % SLOTS
    }
    pub fn shard(self, shards: u16) -> ShardId {
        shard_of_slot(self.slot(), shards)
    }
}
impl RunId {
    pub fn slot(self) -> u64 {
        self.0 % SLOTS
    }
    pub fn shard(self, shards: u16) -> ShardId {
        shard_of_slot(self.slot(), shards)
    }
    /// The shard counter the id was made from.
    pub fn counter(self) -> u64 {
        self.0 / SLOTS
    }
}
