//! Where each shard is served: on this node, by which actor and at which epoch, or by which other session of the
//! cluster. For each shard of this node it also has the number of calls in its mailbox and its next wake time, so that
//! nobody has to ask its actor.

use crate::{calls::Peers, messages::ShardMsg, owner::OwnerHandle};
use campanile_schema::{
    ids::{Epoch, SessionId, ShardId},
    limits,
};
use parking_lot::RwLock;
use ractor::ActorRef;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// A shard that is served here.
struct Served {
    actor: ActorRef<ShardMsg>,
    epoch: Epoch,
}

/// Where a shard is served.
pub enum ShardPlace {
    Here,
    /// On another node, as far as is known.
    Elsewhere {
        owner: SessionId,
        peers: Arc<dyn Peers>,
    },
    /// On no node that is known: another node takes it over, or this node has lost its lease.
    TakenOver,
    /// This node is alone, and is starting or stopping.
    Nowhere,
}

/// What makes a session one of a cluster.
pub struct Membership {
    pub owner: OwnerHandle,
    pub peers: Arc<dyn Peers>,
}

/// See the module's text.
pub struct ShardMap {
    session: SessionId,
    /// None: the node is alone on its own directory.
    membership: Option<Membership>,
    /// Next wake per shard, ms; the tick looks here before it wakes a shard.
    wakes: Vec<AtomicI64>,
    /// Calls handed to each shard and not yet taken; bounds its mailbox.
    mailbox: Vec<AtomicI64>,
    served: Vec<RwLock<Option<Served>>>,
}

impl ShardMap {
    pub fn new(session: SessionId, shards: u16, membership: Option<Membership>) -> Self {
        Self {
            session,
            membership,
            wakes: (0..shards).map(|_| AtomicI64::new(i64::MAX)).collect(),
            mailbox: (0..shards).map(|_| AtomicI64::new(0)).collect(),
            served: (0..shards).map(|_| RwLock::new(None)).collect(),
        }
    }

    /// None: the node is alone on its own directory.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    pub fn is_alone(&self) -> bool {
        self.membership.is_none()
    }

    /// Whether anything decided here may be acted on: always, on a node that is alone.
    pub fn may_act(&self) -> bool {
        self.membership.as_ref().is_none_or(|membership| membership.owner.may_act())
    }

    /// A shard is served here from now on.
    pub fn serve(&self, shard: ShardId, epoch: Epoch, actor: ActorRef<ShardMsg>) {
        self.mailbox[usize::from(shard.0)].store(0, Ordering::Relaxed);
        *self.served[usize::from(shard.0)].write() = Some(Served { actor, epoch });
    }

    /// A shard is served at another epoch now; false: it is not here.
    pub fn raise(&self, shard: ShardId, epoch: Epoch) -> bool {
        match &mut *self.served[usize::from(shard.0)].write() {
            Some(served) => {
                served.epoch = epoch;
                true
            }
            None => false,
        }
    }

    /// A shard is not served here any more; gives its actor.
    pub fn leave(&self, shard: ShardId) -> Option<ActorRef<ShardMsg>> {
        self.set_wake(shard, i64::MAX);
        self.served[usize::from(shard.0)].write().take().map(|served| served.actor)
    }

    /// The actors of the shards that are served here.
    pub fn actors(&self) -> Vec<ActorRef<ShardMsg>> {
        self.served.iter().filter_map(|served| served.read().as_ref().map(|served| served.actor.clone())).collect()
    }

    /// The shards that are served here, with their epochs.
    pub fn epochs(&self) -> Vec<(ShardId, Epoch)> {
        let epoch = |(index, served): (usize, &RwLock<Option<Served>>)| {
            served.read().as_ref().map(|served| (ShardId(index as u16), served.epoch))
        };
        self.served.iter().enumerate().filter_map(epoch).collect()
    }

    /// Whether a shard is served here.
    pub fn serves(&self, shard: ShardId) -> bool {
        self.served.get(usize::from(shard.0)).is_some_and(|served| served.read().is_some())
    }

    /// Where a shard is served. A node whose lease has ended serves nothing.
    pub fn place(&self, shard: ShardId) -> ShardPlace {
        let here = self.serves(shard);
        match &self.membership {
            None if here => ShardPlace::Here,
            None => ShardPlace::Nowhere,
            Some(membership) if here && membership.owner.may_act() => ShardPlace::Here,
            Some(membership) => match membership.owner.owner_of(shard) {
                Some(owner) if owner != self.session => {
                    ShardPlace::Elsewhere { owner, peers: membership.peers.clone() }
                }
                Some(_) | None => ShardPlace::TakenOver,
            },
        }
    }

    /// Sends to a shard of this node without waiting; a stopping node loses nothing by it, since nothing was promised.
    pub fn send(&self, shard: ShardId, message: ShardMsg) {
        if let Some(served) = self.served.get(usize::from(shard.0))
            && let Some(served) = &*served.read()
        {
            let _ = served.actor.cast(message);
        }
    }

    /// When each shard wants to be woken, ms.
    pub fn wakes(&self) -> impl Iterator<Item = (ShardId, &AtomicI64)> {
        self.wakes.iter().enumerate().map(|(index, wake)| (ShardId(index as u16), wake))
    }

    /// When the shard wants to be woken, ms; `i64::MAX` = never.
    pub fn set_wake(&self, shard: ShardId, at_ms: i64) {
        self.wakes[usize::from(shard.0)].store(at_ms, Ordering::Relaxed);
    }

    /// A call that counts was handed to the shard.
    pub fn handed(&self, shard: ShardId) {
        self.mailbox[usize::from(shard.0)].fetch_add(1, Ordering::Relaxed);
    }

    /// The shard has taken a call that counts.
    pub fn taken(&self, shard: ShardId) {
        self.mailbox[usize::from(shard.0)].fetch_sub(1, Ordering::Relaxed);
    }

    /// Calls that were handed to the shard and not taken yet.
    pub fn waiting(&self, shard: ShardId) -> usize {
        usize::try_from(self.mailbox[usize::from(shard.0)].load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// The shard has so much to do that callers must wait.
    pub fn is_full(&self, shard: ShardId) -> bool {
        self.mailbox[usize::from(shard.0)].load(Ordering::Relaxed) > limits::SHARD_MAILBOX as i64
    }
}
