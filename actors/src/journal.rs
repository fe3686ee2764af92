//! The journal writer: one thread that gathers frames of all shards into batches (group commit), appends them, tells each
//! shard what is durable, and hands what is durable to the projector, whole batches in the order of the log: only so does a
//! position of the read model cover everything before it. It never looks at a frame's events.
//!
//! A failed append ends the session: nothing more is written, the node is told, drops all shards and reopens the store at
//! its last durable position.

use crate::{
    ending,
    messages::{ShardMsg, ToProject},
    ports::{Journal, Position, StoreError},
    projector::ProjectorHandle,
};
use campanile_schema::{
    frame::Frame,
    ids::{SessionId, ShardId},
    limits,
};
use ractor::ActorRef;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedSender;

/// A frame that comes alone waits this long for those that the same event makes other shards write.
const GATHER: Duration = Duration::from_micros(200);

/// One frame on its way to the store.
pub struct Pending {
    pub frame: Arc<Frame>,
    pub bytes: Vec<u8>,
    pub from: ActorRef<ShardMsg>,
}

/// To the thread that writes.
pub enum ToWriter {
    Frame(Pending),
    /// To the lanes of a cluster's session: every row of the lane up to here counts.
    Acknowledged {
        lane: u16,
        upto: u64,
    },
    /// To the lanes of a cluster's session: nothing more can be written.
    Over,
}

/// The shards' end of the writer.
#[derive(Clone)]
pub struct JournalHandle {
    sender: mpsc::Sender<ToWriter>,
    in_flight: Arc<AtomicI64>,
    failed: Arc<AtomicBool>,
    durable: Arc<parking_lot::Mutex<Position>>,
}

/// How the writer groups.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    pub session: SessionId,
    /// From the beginning of a batch to that of the next one at the least, microseconds. More = fewer syncs and later answers while
    /// there is much to do; a frame that comes alone does not wait for it.
    pub linger_us: u64,
}

impl JournalHandle {
    /// The handle of a writer that somebody else runs ([`crate::owner::lanes`]), and what it hears.
    pub fn new(session: SessionId) -> (Self, mpsc::Sender<ToWriter>, mpsc::Receiver<ToWriter>) {
        let (sender, receiver) = mpsc::channel();
        let handle = Self {
            sender: sender.clone(),
            in_flight: Arc::new(AtomicI64::new(0)),
            failed: Arc::new(AtomicBool::new(false)),
            durable: Arc::new(parking_lot::Mutex::new(Position { session, lane: 0, seq: 0 })),
        };
        (handle, sender, receiver)
    }

    /// Starts the thread. An append that failed for good is told to `failures`.
    pub fn start(
        journal: Arc<dyn Journal>,
        projector: ProjectorHandle,
        options: JournalOptions,
        failures: UnboundedSender<StoreError>,
    ) -> std::io::Result<Self> {
        let (handle, _, receiver) = Self::new(options.session);
        let writer = Writer {
            receiver,
            journal,
            projector,
            options,
            in_flight: handle.in_flight.clone(),
            failed: handle.failed.clone(),
            durable: handle.durable.clone(),
        };
        ending::thread("journal", failures, move || writer.run())?;
        Ok(handle)
    }

    /// Hands a frame over, `bytes` is its encoded form. `from` hears `Durable` when it is, and `Projected` later.
    pub fn append(&self, frame: Arc<Frame>, bytes: Vec<u8>, from: ActorRef<ShardMsg>) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        // The thread ends only after a failure; then nothing is promised any more.
        let _ = self.sender.send(ToWriter::Frame(Pending { frame, bytes, from }));
    }
    pub fn is_full(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > limits::JOURNAL_IN_FLIGHT_FRAMES as i64
    }
    pub(crate) fn counter(&self) -> Arc<AtomicI64> {
        self.in_flight.clone()
    }
    pub fn in_flight(&self) -> i64 {
        self.in_flight.load(Ordering::Relaxed)
    }
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
    /// Everything up to here is durable.
    pub fn durable(&self) -> Position {
        *self.durable.lock()
    }
}

struct Writer {
    receiver: mpsc::Receiver<ToWriter>,
    journal: Arc<dyn Journal>,
    projector: ProjectorHandle,
    options: JournalOptions,
    in_flight: Arc<AtomicI64>,
    failed: Arc<AtomicBool>,
    durable: Arc<parking_lot::Mutex<Position>>,
}

impl Writer {
    fn run(self) -> Result<(), StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let mut seq = 0;
        let linger = Duration::from_micros(self.options.linger_us);
        let (mut before, mut more) = (Instant::now(), false);
        while let Ok(ToWriter::Frame(first)) = self.receiver.recv() {
            seq += 1;
            // Asleep, and not woken by each frame that comes: at 20,000 triggers/s that took more processor time than the writes. What a full
            // batch left has waited already.
            if !more {
                std::thread::sleep((before + linger).saturating_duration_since(Instant::now()).max(linger.min(GATHER)));
            }
            before = Instant::now();
            let batch;
            (batch, more) = self.gather(first);
            let mut bytes = Vec::with_capacity(batch.iter().map(|p| p.bytes.len()).sum());
            for pending in &batch {
                bytes.extend_from_slice(&pending.bytes);
            }
            #[cfg(feature = "faults")]
            if crate::faults::ack_before_sync() {
                tell(&batch, Position { session: self.options.session, lane: 0, seq });
                std::thread::sleep(crate::faults::HEARD_EARLY);
                crate::faults::point("before_append");
            }
            let started = Instant::now();
            let append = async {
                #[cfg(feature = "faults")]
                if crate::faults::skip_append() {
                    return Ok(());
                }
                self.journal.append(0, seq, &bytes).await
            };
            if let Err(error) = runtime.block_on(append) {
                tracing::error!(%error, "the journal cannot be written; this session ends");
                self.failed.store(true, Ordering::Release);
                return Err(error);
            }
            metrics::histogram!("campanile_journal_append_seconds").record(started.elapsed().as_secs_f64());
            metrics::counter!("campanile_journal_frames_total").increment(batch.len() as u64);
            metrics::counter!("campanile_journal_bytes_total").increment(bytes.len() as u64);
            metrics::counter!("campanile_journal_batches_total").increment(1);
            let position = Position { session: self.options.session, lane: 0, seq };
            *self.durable.lock() = position;
            #[cfg(feature = "faults")]
            crate::faults::point("after_append");
            // Handed over before anybody hears of it: who is told finds it in the lists ([`ProjectorHandle::shows_all`]).
            let frames: Vec<_> = batch.iter().map(|p| (p.frame.clone(), p.from.clone())).collect();
            let count = frames.len() as i64;
            self.projector.project(ToProject { frames, position });
            // Told twice after a fault is told once.
            tell(&batch, position);
            // Last, so that every frame counts here or in the projector until it is shown.
            self.in_flight.fetch_sub(count, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The first frame and what else is there, up to the limits; true = a limit was reached.
    fn gather(&self, first: Pending) -> (Vec<Pending>, bool) {
        let mut bytes = first.bytes.len();
        let mut batch = vec![first];
        while batch.len() < limits::JOURNAL_BATCH_FRAMES && bytes < limits::JOURNAL_BATCH_BYTES {
            let Ok(ToWriter::Frame(next)) = self.receiver.try_recv() else { return (batch, false) };
            bytes += next.bytes.len();
            batch.push(next);
        }
        (batch, true)
    }
}

/// One message per shard with its highest durable seq.
pub(crate) fn tell(batch: &[Pending], position: Position) {
    let mut highest: hashbrown::HashMap<ShardId, &Pending> = hashbrown::HashMap::new();
    for pending in batch {
        highest.insert(pending.frame.shard, pending);
    }
    for pending in highest.into_values() {
        let _ = pending.from.cast(ShardMsg::Durable { seq: pending.frame.seq, position });
    }
}
