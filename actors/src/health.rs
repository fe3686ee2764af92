//! The state of a session that readiness depends on: whether it is stopping or giving its shards away, whether it
//! serves all shards that it is to serve, whether the other nodes accept it, and whether its disk has enough space. The
//! tasks that find out write it; whoever asks whether the node is ready reads it.

use crate::{disk_pressure::DiskPressure, owner::Settling, shutdown::Shutdown};
use parking_lot::RwLock;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// See the module's text.
pub struct Health {
    draining: AtomicBool,
    leaving: AtomicBool,
    /// Whether what it is to serve has come.
    pub settling: Settling,
    refused: RwLock<Option<Arc<str>>>,
    disk: RwLock<Vec<DiskPressure>>,
    /// Nothing of this session counts any more.
    pub ended: Arc<Shutdown>,
}

impl Health {
    pub fn new(settling: Settling) -> Self {
        Self {
            draining: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            settling,
            refused: RwLock::new(None),
            disk: RwLock::default(),
            ended: Arc::default(),
        }
    }

    /// The node stops: no more fires.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// A node of a cluster gives its shards away; until they are gone it works on.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Why the other nodes do not take this one.
    pub fn set_refused(&self, why: Option<Arc<str>>) {
        *self.refused.write() = why;
    }
    pub fn refused(&self) -> Option<Arc<str>> {
        self.refused.read().clone()
    }

    /// What the node's disk was short of at the last look.
    pub fn set_disk(&self, short_of: Vec<DiskPressure>) {
        *self.disk.write() = short_of;
    }
    pub fn disk(&self) -> Vec<DiskPressure> {
        self.disk.read().clone()
    }
}
