//! Membership: which nodes are alive. It is SWIM by the `foca` crate over sealed UDP packets, on a thread and a runtime
//! of its own.
//!
//! On the node's busy runtime its timers came late, and it considered live nodes dead. Its result is a hint: two nodes
//! may see different members, and only the store's rows decide who may act for a shard. `docs/adr/0015-membership.md`
//! has the reasons.
//!
//! Never here: a decision about shards; an unsealed packet that changes anything.

mod card;
mod clocks;
mod codec;
mod driver;
mod effects;
mod gate;
mod identity;
mod members;
mod refusal;
mod replay;
mod seal;
mod settings;
mod swim;
#[cfg(test)]
mod tests;
mod thread;
mod upkeep;
mod view;

pub use card::{Addresses, Versions};
pub use members::{Counters, Member, Members};
pub use refusal::Reason;
pub use settings::up_to;

use campanile_actors::time::AgreedTime;
use campanile_core::placement::NodeId;
use campanile_ports::Clock;
use campanile_schema::{ids::SessionId, limits::CLUSTER_SEEDS};
use campanile_security::secrets::KeyRing;
use card::Card;
use parking_lot::Mutex;
use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::watch;

/// Longest wait until farewells are said.
const LEAVE_WAIT: Duration = Duration::from_secs(2);

/// Where and with whom.
pub struct Options {
    /// Name of the cluster: packets of another one are refused.
    pub cluster: String,
    /// The first key seals, all of them open.
    pub keys: KeyRing,
    /// UDP. Port 0: a free one.
    pub listen: SocketAddr,
    /// As others reach `listen`. None: `listen`.
    pub advertised: Option<SocketAddr>,
    /// HOST:PORT of members, or of some of them; names are resolved again and again. Empty: this is the first node.
    pub seeds: Vec<String>,
    pub clock: Arc<dyn Clock>,
    /// Told what most clocks say.
    pub agreed: AgreedTime,
}

/// What this node is.
#[derive(Clone, Debug)]
pub struct Me {
    pub node: NodeId,
    pub name: String,
    /// From a stored counter that rises with each start. Not from a clock: one that goes back would make the node an old one.
    pub generation: u64,
    pub session: SessionId,
    pub addresses: Addresses,
    /// See [`Card::executors_at`].
    pub executors_at: Option<String>,
    pub build: String,
    pub event_format: Versions,
    pub wire_format: Versions,
    pub shards: u16,
    pub cordoned: bool,
}

impl Me {
    fn card(&self, process: u32) -> Card {
        Card {
            node: self.node.0,
            generation: self.generation,
            process,
            revision: 0,
            name: self.name.clone(),
            session: self.session.0,
            addresses: self.addresses,
            executors_at: self.executors_at.clone(),
            build: self.build.clone(),
            event_format: self.event_format,
            wire_format: self.wire_format,
            shards: self.shards,
            draining: false,
            cordoned: self.cordoned,
            clock_off_ms: 0,
            clock_wrong: false,
        }
    }
}

/// What the node wants said; the thread looks at it when it changes.
#[derive(Clone, Copy)]
struct OwnStatus {
    session: SessionId,
    draining: bool,
    cordoned: bool,
    leaving: bool,
}

/// This node as a member. Dropped without [`Membership::leave`], it falls silent like one that was killed.
pub struct Membership {
    members: watch::Receiver<Arc<Members>>,
    wanted: watch::Sender<OwnStatus>,
    counters: Arc<Mutex<Counters>>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Membership {
    /// Begins to join and returns at once: the first view has this node only. Errors are sentences for the operator.
    pub fn start(options: Options, me: Me) -> Result<Self, String> {
        if options.seeds.len() > CLUSTER_SEEDS {
            return Err(format!("{} seeds are too many: at most {CLUSTER_SEEDS}", options.seeds.len()));
        }
        let listen = options.listen;
        let taken = |error| {
            format!(
                "membership cannot listen on UDP {listen}: {error}; is another node running? Choose another address"
            )
        };
        let socket = UdpSocket::bind(listen).map_err(taken)?;
        let address = options.advertised.map_or_else(|| socket.local_addr(), Ok).map_err(taken)?;
        if address.ip().is_unspecified() {
            return Err(format!("other nodes cannot send to {address}: set cluster.gossip_advertise"));
        }
        let wanted = OwnStatus { session: me.session, draining: false, cordoned: me.cordoned, leaving: false };
        let (wanted, said) = watch::channel(wanted);
        let counters = Arc::new(Mutex::new(Counters::default()));
        let (thread, members) = thread::start(socket, options, &me, address, said, counters.clone())?;
        Ok(Self { members, wanted, counters, address, thread: Some(thread) })
    }

    /// Who lives, this node included. It changes when anybody's card or standing does.
    pub fn members(&self) -> watch::Receiver<Arc<Members>> {
        self.members.clone()
    }

    /// This node has another session now; all are told.
    pub fn set_session(&self, session: SessionId) {
        self.wanted.send_modify(|wanted| wanted.session = session);
    }

    /// This node gives its shards away, or no longer; all are told.
    pub fn set_draining(&self, draining: bool) {
        self.wanted.send_modify(|wanted| wanted.draining = draining);
    }

    /// This node takes nothing new, or does again; all are told.
    pub fn set_cordoned(&self, cordoned: bool) {
        self.wanted.send_modify(|wanted| wanted.cordoned = cordoned);
    }

    /// Tells all that this node goes, so that nobody has to find out.
    pub async fn leave(mut self) {
        self.wanted.send_modify(|wanted| wanted.leaving = true);
        // The thread ends, and with it the sender, when all was said.
        let ended = async { while self.members.changed().await.is_ok() {} };
        if tokio::time::timeout(LEAVE_WAIT, ended).await.is_err() {
            tracing::warn!("this node left the cluster without saying so to all");
        }
    }

    pub fn counters(&self) -> Counters {
        *self.counters.lock()
    }

    /// Where others send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // The thread sees that nobody wants anything any more.
        let (gone, _) = watch::channel(*self.wanted.borrow());
        drop(std::mem::replace(&mut self.wanted, gone));
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("membership ended with a panic");
        }
    }
}
