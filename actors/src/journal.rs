//! The journal writer: one thread that collects frames of all shards into batches (group commit) and appends them. It
//! tells each shard which of its frames are durable, and passes durable batches to the projector. It passes whole
//! batches in the order of the log: only then does a position of the read model cover everything before it. It never
//! looks at a frame's events.
//!
//! A failed append ends the session: nothing more is written, and the node drops all shards and reopens the store at
//! its last durable position.

use crate::{
    messages::{ShardMsg, ToProject},
    projector::ProjectorHandle,
    shutdown,
};
use campanile_ports::{Journal, Position, StoreError};
use campanile_schema::{
    frame::Frame,
    ids::{SessionId, ShardId},
    limits,
};
use ractor::ActorRef;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
        mpsc,
    },
    thread::Thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedSender;

/// A frame that a caller waits for is held back this long, microseconds, so that frames of other shards for the same call share its write.
const CALLER_WAITS_US: u64 = 200;

/// A frame that nobody waits for is held back this many times [`JournalOptions::linger_us`]. With the default that is as long as from one tick
/// to the next, which makes other frames.
const NOBODY_WAITS: u64 = 5;

/// Who waits for a frame to be durable. The frame waits accordingly for others, which share its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiter {
    /// The body has ended, and no run waits for its place.
    Nobody,
    /// A run that is about to start.
    Run,
    Caller,
}

/// One frame on its way to the store.
pub struct QueuedFrame {
    pub frame: Arc<Frame>,
    pub bytes: Vec<u8>,
    pub from: ActorRef<ShardMsg>,
}

/// To the thread that writes.
pub enum ToWriter {
    Frame(QueuedFrame),
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
    /// None: lanes have rounds of their own.
    timer: Option<Arc<WriteTimer>>,
}

/// How the writer collects frames into batches.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    pub session: SessionId,
    /// From the beginning of a batch to that of the next one at the least, microseconds. More = fewer syncs and later answers while
    /// there is much to do; a frame that comes alone does not wait for it.
    pub linger_us: u64,
}

/// Tells the writer thread when to begin its next batch; it sleeps until then. Waking it for each frame took more processor time than
/// the writes, at 20,000 triggers/s.
struct WriteTimer {
    begun: Instant,
    linger_us: u64,
    /// Microseconds after `begun`; MAX: nothing waits.
    due_us: AtomicU64,
    writer: OnceLock<Thread>,
}

impl WriteTimer {
    fn new(linger_us: u64) -> Self {
        Self { begun: Instant::now(), linger_us, due_us: AtomicU64::new(u64::MAX), writer: OnceLock::new() }
    }

    fn now_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    /// Notes a frame with this waiter. True: the writer sleeps for longer than the frame may wait, and must be woken.
    fn wants(&self, waiter: Waiter) -> bool {
        let patience_us = match waiter {
            Waiter::Caller => self.linger_us.min(CALLER_WAITS_US),
            Waiter::Run => self.linger_us,
            Waiter::Nobody => self.linger_us.saturating_mul(NOBODY_WAITS),
        };
        let due_us = self.now_us().saturating_add(patience_us);
        let before_us = self.due_us.fetch_min(due_us, Ordering::AcqRel);
        before_us != u64::MAX && due_us < before_us
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Sleeps until what waits is due, and `not_before_us` at the least. Then nothing waits as far as is known.
    fn until_due(&self, not_before_us: u64) {
        loop {
            // An earlier round has reset the time of frames that came meanwhile: they are written as soon as possible.
            let due_us = match self.due_us.load(Ordering::Acquire) {
                u64::MAX => not_before_us,
                due_us => due_us.max(not_before_us),
            };
            let left_us = due_us.saturating_sub(self.now_us());
            if left_us == 0 {
                self.due_us.store(u64::MAX, Ordering::Release);
                return;
            }
            std::thread::park_timeout(Duration::from_micros(left_us));
        }
    }
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
            timer: None,
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
        let (mut handle, _, receiver) = Self::new(options.session);
        let timer = Arc::new(WriteTimer::new(options.linger_us));
        handle.timer = Some(timer.clone());
        let writer = Writer {
            receiver,
            timer,
            journal,
            projector,
            options,
            in_flight: handle.in_flight.clone(),
            failed: handle.failed.clone(),
            durable: handle.durable.clone(),
        };
        shutdown::thread("journal", failures, move || writer.run())?;
        Ok(handle)
    }

    /// Hands a frame over, `bytes` is its encoded form. `from` hears `Durable` when it is, and `Projected` later.
    pub fn append(&self, frame: Arc<Frame>, bytes: Vec<u8>, from: ActorRef<ShardMsg>, waiter: Waiter) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let timer = self.timer.as_ref().filter(|timer| timer.wants(waiter));
        // The thread ends only after a failure; then nothing is promised any more.
        let _ = self.sender.send(ToWriter::Frame(QueuedFrame { frame, bytes, from }));
        if let Some(timer) = timer {
            timer.wake();
        }
    }
    /// A caller waits for what was handed over.
    pub fn hurry(&self) {
        if let Some(timer) = self.timer.as_ref().filter(|timer| timer.wants(Waiter::Caller)) {
            timer.wake();
        }
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
    timer: Arc<WriteTimer>,
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
        // Set once, here.
        let _ = self.timer.writer.set(std::thread::current());
        let (mut before_us, mut more) = (0, false);
        while let Ok(ToWriter::Frame(first)) = self.receiver.recv() {
            seq += 1;
            // What a full batch left has waited already.
            if !more {
                self.timer.until_due(before_us + self.options.linger_us);
            }
            before_us = self.timer.now_us();
            let batch;
            (batch, more) = self.gather(first);
            let mut bytes = Vec::with_capacity(batch.iter().map(|p| p.bytes.len()).sum());
            for queued in &batch {
                bytes.extend_from_slice(&queued.bytes);
            }
            #[cfg(feature = "faults")]
            if campanile_ports::faults::ack_before_sync() {
                tell(&batch, Position { session: self.options.session, lane: 0, seq });
                std::thread::sleep(campanile_ports::faults::HEARD_EARLY);
                campanile_ports::faults::point("before_append");
            }
            let started = Instant::now();
            let append = async {
                #[cfg(feature = "faults")]
                if campanile_ports::faults::skip_append() {
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
            campanile_ports::faults::point("after_append");
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
    fn gather(&self, first: QueuedFrame) -> (Vec<QueuedFrame>, bool) {
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
pub(crate) fn tell(batch: &[QueuedFrame], position: Position) {
    let mut highest: hashbrown::HashMap<ShardId, &QueuedFrame> = hashbrown::HashMap::new();
    for queued in batch {
        highest.insert(queued.frame.shard, queued);
    }
    for queued in highest.into_values() {
        let _ = queued.from.cast(ShardMsg::Durable { seq: queued.frame.seq, position });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_is_woken_only_when_somebody_cannot_wait_as_long_as_it_sleeps() {
        let timer = WriteTimer::new(20_000_000);
        assert!(!timer.wants(Waiter::Nobody), "the first frame wakes the thread anyway");
        assert!(!timer.wants(Waiter::Nobody));
        assert!(timer.wants(Waiter::Run));
        assert!(!timer.wants(Waiter::Run));
        assert!(!timer.wants(Waiter::Nobody));
        assert!(timer.wants(Waiter::Caller));
        let due_us = timer.due_us.load(Ordering::Acquire);
        assert!(due_us <= timer.now_us() + CALLER_WAITS_US, "{due_us}");
        timer.until_due(0);
        assert!(timer.now_us() >= due_us);
        assert_eq!(timer.due_us.load(Ordering::Acquire), u64::MAX);
        assert!(!timer.wants(Waiter::Caller), "nothing waits any more: the next frame is the first again");
    }

    #[test]
    fn a_wake_ends_a_longer_wait() {
        // Two minutes: longer than a busy machine keeps a thread from running.
        let timer = Arc::new(WriteTimer::new(120_000_000));
        timer.wants(Waiter::Nobody);
        let due_us = timer.due_us.load(Ordering::Acquire);
        let writer = std::thread::spawn({
            let timer = timer.clone();
            move || {
                timer.writer.set(std::thread::current()).unwrap();
                timer.until_due(0);
            }
        });
        while timer.writer.get().is_none() {
            std::thread::yield_now();
        }
        assert!(timer.wants(Waiter::Caller));
        timer.wake();
        writer.join().unwrap();
        assert!(timer.now_us() < due_us, "it slept on");
    }
}
