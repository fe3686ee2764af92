//! Who a process is in the protocol: small, because every packet names several.

use campanile_core::placement::NodeId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One life of one process of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// [`NodeId`], the same for as long as the node has its name.
    pub node: u64,
    /// Where packets for it go.
    pub address: SocketAddr,
    /// Rises with each start.
    pub generation: u64,
    /// Drawn at each start, so that two processes of one generation (a copied directory) are told apart.
    pub process: u32,
    /// Rises when others took this process for down and it comes back.
    pub life: u32,
}

/// Later ones win.
pub type Order = (u64, u32, u32);

impl Identity {
    /// For an announcement to an address of which only the address is known: whoever is there.
    pub fn whoever(address: SocketAddr) -> Self {
        Self { node: 0, address, generation: 0, process: 0, life: 0 }
    }

    /// Whether it names no process.
    pub fn is_whoever(&self) -> bool {
        self.node == 0
    }

    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }

    pub fn order(&self) -> Order {
        (self.generation, self.process, self.life)
    }

    /// The same process, whatever happened to it.
    pub fn same_process(&self, other: &Self) -> bool {
        (self.node, self.generation, self.process) == (other.node, other.generation, other.process)
    }
}

impl foca::Identity for Identity {
    /// Both: another node may get the address of one that is gone, and must not inherit its generation.
    type Addr = (SocketAddr, u64);

    fn renew(&self) -> Option<Self> {
        Some(Self { life: self.life + 1, ..*self })
    }

    fn addr(&self) -> Self::Addr {
        (self.address, self.node)
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.order() > adversary.order()
    }
}
