//! Runs one session of a cluster: the ownership protocol of the core (`campanile_core::ownership`) with a real clock
//! and a real store. This module executes the protocol's statements and gives their answers back.
//!
//! `keeper` carries out what the protocol decides about shards, `lanes` writes frames into the session's lanes, `load`
//! loads shards, `ahead` begins to read the shards of a dead node, and `hints` combines what membership and placement
//! say.
//!
//! Everything that sends heartbeats or watches other sessions runs on a thread of its own: a busy node must not lose
//! its lease.

mod ahead;
mod formats;
mod hints;
pub mod keeper;
pub mod lanes;
mod load;
mod settling;

pub use formats::InUse;
pub use hints::{ClusterMember, PlacementInput};
pub use settling::Settling;

use crate::{journal::ToWriter, shutdown};
use campanile_core::ownership::{
    Hints, Output, Ownership, Refused, Settings,
    replay::SpanEnd,
    rows::ShardRow,
    store::{Batch, Statement, StoreAnswer, Ticket},
};
use campanile_ports::{Clock, Leases, StoreError};
use campanile_schema::ids::{Epoch, SessionId, ShardId};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};
use tokio::sync::mpsc as tokio_mpsc;

/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(10);
/// Before an unknown answer is given to the protocol, which asks again at once: a store that refuses within microseconds would be
/// asked without end.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(20);

/// The session's end of the protocol, shared by all who act for it.
#[derive(Clone)]
pub struct OwnerHandle {
    inner: Arc<Inner>,
}

struct Inner {
    protocol: Mutex<Ownership>,
    session: SessionId,
    clock: Arc<dyn Clock>,
    store: Arc<dyn Leases>,
    /// End of the right to act, CLOCK_BOOTTIME ms: what everybody asks before everything, without the lock.
    acts_until_ms: AtomicU64,
    stopped: AtomicBool,
    to_lanes: mpsc::Sender<ToWriter>,
    to_keeper: tokio_mpsc::UnboundedSender<Output>,
    /// By shard: the session that owns it, as the rows were read last.
    owners: RwLock<Vec<Option<SessionId>>>,
    /// By shard that is served here: the sessions that its quotas lend to.
    borrowers: Mutex<BTreeMap<ShardId, BTreeSet<SessionId>>>,
    runtime: tokio::runtime::Handle,
}

/// What a session is started with.
pub struct OwnerParts {
    pub settings: Settings,
    pub shards: u16,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Leases>,
    pub to_lanes: mpsc::Sender<ToWriter>,
    /// What is to be done with shards, in order.
    pub to_keeper: tokio_mpsc::UnboundedSender<Output>,
}

impl OwnerHandle {
    /// Starts the thread; it ends when the session is over, or when nobody has the handle any more.
    pub fn start(parts: OwnerParts, failures: tokio_mpsc::UnboundedSender<StoreError>) -> std::io::Result<Self> {
        let OwnerParts { settings, shards, clock, store, to_lanes, to_keeper } = parts;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let session = settings.session;
        let now_ms = clock.boot_us() / 1000;
        let inner = Arc::new(Inner {
            protocol: Mutex::new(Ownership::new(settings, now_ms)),
            session,
            clock,
            store,
            acts_until_ms: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            to_lanes,
            to_keeper,
            owners: RwLock::new(vec![None; usize::from(shards)]),
            borrowers: Mutex::default(),
            runtime: runtime.handle().clone(),
        });
        let watched = Arc::downgrade(&inner);
        shutdown::thread("owner", failures, move || {
            runtime.block_on(tick(watched));
            Ok(())
        })?;
        Ok(Self { inner })
    }

    pub fn session(&self) -> SessionId {
        self.inner.session
    }

    /// Whether this session may acknowledge, send and fire now.
    pub fn may_act(&self) -> bool {
        !self.inner.stopped.load(Ordering::Acquire)
            && self.inner.now_ms() < self.inner.acts_until_ms.load(Ordering::Acquire)
    }

    /// Nothing can be done under this session any more.
    pub fn is_over(&self) -> bool {
        self.inner.stopped.load(Ordering::Acquire) || self.inner.protocol.lock().is_over()
    }

    /// The session that owns a shard, as it was read last.
    pub fn owner_of(&self, shard: ShardId) -> Option<SessionId> {
        self.inner.owners.read().get(usize::from(shard.0)).copied().flatten()
    }

    /// Takes a row for a lane. `frames`: shard, epoch and seq of each, in order; bytes of those that are to be written. Frames of
    /// shards that are not served here at their epoch are nobody's: their indexes are given back first, and nothing is written.
    pub(crate) fn append(
        &self,
        lane: u16,
        frames: &[(ShardId, Epoch, u64)],
        bytes: impl FnOnce() -> Batch,
    ) -> Result<u64, AppendError> {
        self.inner.drive(|protocol, now_ms| {
            let not_served = |(_, (shard, epoch, _)): &(usize, &(ShardId, Epoch, u64))| {
                !protocol.serves(*shard) || protocol.epoch(*shard) != Some(*epoch)
            };
            let not_served: Vec<usize> = frames.iter().enumerate().filter(not_served).map(|(index, _)| index).collect();
            if !not_served.is_empty() {
                return Err(AppendError::NotServed(not_served));
            }
            let seqs: Vec<_> = frames.iter().map(|(shard, _, seq)| (*shard, *seq)).collect();
            protocol.append(now_ms, lane, &seqs, bytes()).map_err(|refused| match refused {
                Refused::Full | Refused::NoLease => AppendError::RetryLater,
                Refused::NotServed => AppendError::NotServed((0..frames.len()).collect()),
            })
        })
    }

    /// Gives every shard away, then ends the session: [`Output::Over`] tells.
    pub fn drain(&self) {
        self.inner.drive(|protocol, _| protocol.drain());
    }

    /// Stops at once: others will find out.
    pub fn stop(&self) {
        self.inner.stopped.store(true, Ordering::Release);
        // The lanes' thread holds this handle, which holds the way to it: it would never end by itself.
        let _ = self.inner.to_lanes.send(ToWriter::Over);
    }

    /// A peer says that it has released a shard to this session.
    pub fn peer_released(&self, shard: ShardId) {
        self.inner.drive(|protocol, _| protocol.peer_released(shard));
    }

    pub(crate) fn snapshot_written(&self, shard: ShardId, number: u64, seq: u64) {
        self.inner.drive(|protocol, now_ms| protocol.snapshot_written(now_ms, shard, number, seq));
    }

    /// The snapshot that the shard's row names.
    pub(crate) fn published(&self, shard: ShardId) -> Option<u64> {
        self.inner.protocol.lock().published(shard)
    }

    pub(crate) fn projected(&self, shard: ShardId, seq: u64) {
        self.inner.protocol.lock().projected(shard, seq);
    }

    /// A shard is in memory.
    fn loaded(&self, shard: ShardId, epoch: Epoch, last: u64, ends: Vec<SpanEnd>) {
        self.inner.drive(|protocol, _| protocol.loaded(shard, epoch, last, ends));
    }

    /// Whether a shard is held at this epoch.
    fn holds(&self, shard: ShardId, epoch: Epoch) -> bool {
        self.inner.protocol.lock().epoch(shard) == Some(epoch)
    }

    /// A shard decides nothing any more.
    fn stopped(&self, shard: ShardId) {
        self.inner.drive(|protocol, now_ms| protocol.stopped(now_ms, shard));
    }

    /// A shard lends to these sessions: it has to know when they are over.
    pub(crate) fn lends_to(&self, shard: ShardId, borrowers: BTreeSet<SessionId>) {
        let mut all = self.inner.borrowers.lock();
        if borrowers.is_empty() {
            all.remove(&shard);
        } else {
            all.insert(shard, borrowers);
        }
    }

    /// Own hand-overs that have begun, with their successors.
    pub(crate) fn leaving(&self) -> Vec<(ShardId, SessionId)> {
        self.inner.protocol.lock().leaving()
    }

    /// Whether claims of what other sessions left are under way.
    fn takes_over(&self) -> bool {
        self.inner.protocol.lock().takes_over()
    }

    fn borrowers(&self) -> BTreeSet<SessionId> {
        self.inner.borrowers.lock().values().flatten().copied().collect()
    }

    /// All shard rows as they were read last, and the sessions that were known to be over before.
    pub(crate) fn look_at_rows<T>(&self, look: impl FnOnce(&[(ShardId, ShardRow)], &[SessionId]) -> T) -> T {
        let protocol = self.inner.protocol.lock();
        let (rows, over) = protocol.rows();
        look(rows, &over)
    }

    /// Hints from all shard rows as they were read last, the sessions that were over by then, and the own hand-overs.
    fn hint_by(&self, hints: impl FnOnce(&[(ShardId, ShardRow)], &[SessionId], &[(ShardId, SessionId)]) -> Hints) {
        self.inner.drive(|protocol, now_ms| {
            let leaving = protocol.leaving();
            let (rows, over) = protocol.rows();
            let mut hints = hints(rows, &over, &leaving);
            hints.borrowers = self.borrowers();
            protocol.hint(now_ms, hints);
        });
    }
}

/// Why a row was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AppendError {
    /// The window is full, or the lease has run out for the moment.
    RetryLater,
    /// These frames are of shards that are not served here.
    NotServed(Vec<usize>),
}

impl Inner {
    fn now_ms(&self) -> u64 {
        self.clock.boot_us() / 1000
    }

    /// Gives the protocol an input and does what it says. Acknowledgements leave under the lock, so that no later input can have
    /// ended the right to make them.
    fn drive<T>(self: &Arc<Self>, input: impl FnOnce(&mut Ownership, u64) -> T) -> T {
        let mut protocol = self.protocol.lock();
        let result = input(&mut protocol, self.now_ms());
        self.carry_out(&mut protocol);
        result
    }

    fn carry_out(self: &Arc<Self>, protocol: &mut Ownership) {
        for output in protocol.outputs() {
            match output {
                Output::Store { ticket, statement } => {
                    let answered = execute(Arc::downgrade(self), self.store.clone(), self.session, ticket, statement);
                    self.runtime.spawn(answered);
                }
                Output::Acknowledge { lane, upto } => {
                    let _ = self.to_lanes.send(ToWriter::Acknowledged { lane, upto });
                }
                Output::Took(transition) => {
                    metrics::counter!("campanile_ownership_transitions_total", "transition" => transition.name())
                        .increment(1);
                    tracing::debug!(session = self.session.0, ?transition, "ownership");
                }
                other => {
                    if matches!(other, Output::RowsRead | Output::Released { .. }) {
                        self.note_owners(protocol);
                    }
                    let _ = self.to_keeper.send(other);
                }
            }
        }
        self.acts_until_ms.store(protocol.acts_until_ms(), Ordering::Release);
    }

    fn note_owners(&self, protocol: &Ownership) {
        let mut owners = self.owners.write();
        for (shard, row) in protocol.rows().0 {
            if let Some(owner) = owners.get_mut(usize::from(shard.0)) {
                *owner = row.owner;
            }
        }
    }
}

/// Once, and gives the answer back.
async fn execute(inner: Weak<Inner>, store: Arc<dyn Leases>, session: SessionId, ticket: Ticket, statement: Statement) {
    let answer = store.execute(session, statement).await;
    if answer == StoreAnswer::Unknown {
        metrics::counter!("campanile_ownership_unknown_answers_total").increment(1);
        tokio::time::sleep(UNKNOWN_PAUSE).await;
    }
    if let Some(inner) = inner.upgrade().filter(|inner| !inner.stopped.load(Ordering::Acquire)) {
        inner.drive(|protocol, now_ms| protocol.answered(now_ms, ticket, answer));
    }
}

async fn tick(inner: Weak<Inner>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade().filter(|inner| !inner.stopped.load(Ordering::Acquire)) else { return };
        if inner.drive(|protocol, now_ms| {
            protocol.tick(now_ms);
            protocol.is_over()
        }) {
            return;
        }
        #[cfg(feature = "faults")]
        if campanile_ports::faults::leave_at_deadline()
            && (1..inner.now_ms()).contains(&inner.acts_until_ms.load(Ordering::Acquire))
        {
            let _ = inner.to_keeper.send(Output::Over);
            return;
        }
    }
}
