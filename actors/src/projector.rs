//! The projector converts acknowledged frames into rows of the read model. No acknowledgement waits for it. It makes
//! rows from the events alone, which carry everything that is needed, so a lost view can be rebuilt from the log.
//!
//! It may lag by a limited time; shards keep what it has not shown yet.

use crate::{
    degradation::Degradation,
    messages::{ShardMsg, ToProject},
    shutdown,
};
use campanile_core::job::HeldTimes;
use campanile_ports::{Position, StoreError, ViewBatch, Views, log_once::LogOnce, rows::add_rows};
use campanile_schema::{frame::Frame, ids::ShardId, limits, view::DegradationLevel};
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use ractor::ActorRef;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// Events from which no further batch of the journal is taken into one of the read model, while the node keeps up.
const BATCH_EVENTS: usize = 8_192;
/// So many times as many are taken when the read model is stretched: a large batch costs less for each row, and is shown later.
const STRETCH: usize = 4;

/// Before rows that could not be written are written again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What is done when the read model cannot be written.
pub enum OnFailure {
    EndSession,
    /// It is tried again until it can be, or nobody is left who waits for it.
    TryAgain,
}

/// The shards' end of the projector.
#[derive(Clone)]
pub struct ProjectorHandle {
    sender: std::sync::mpsc::Sender<(Instant, ToProject)>,
    waiting: Arc<AtomicI64>,
    /// So many events may wait.
    most: Arc<AtomicI64>,
    oldest: Arc<OldestUnshown>,
    /// Batches handed over, and batches shown.
    handed: Arc<AtomicU64>,
    shown: watch::Receiver<u64>,
    flush_request: Arc<FlushRequest>,
    /// Whether due instants ever had to wait, and when.
    /// What the node does without while it cannot keep up.
    pub degradation: Arc<Degradation>,
    has_held: Arc<AtomicBool>,
    held: Arc<Mutex<Arc<HeldTimes>>>,
}

/// When the oldest batch was handed over that is not shown yet. The thread notes it, once for many batches.
struct OldestUnshown {
    begin: Instant,
    /// Microseconds since `begin`; [`NOTHING`]: all is shown.
    at_us: AtomicU64,
}

/// See [`OldestUnshown`].
const NOTHING: u64 = u64::MAX;

impl OldestUnshown {
    fn new() -> Self {
        Self { begin: Instant::now(), at_us: AtomicU64::new(NOTHING) }
    }

    fn set(&self, handed: Option<Instant>) {
        let at = handed.map_or(NOTHING, |at| at.saturating_duration_since(self.begin).as_micros() as u64);
        self.at_us.store(at, Ordering::Relaxed);
    }

    fn age(&self) -> Duration {
        let at = self.at_us.load(Ordering::Relaxed);
        if at == NOTHING { Duration::ZERO } else { self.begin.elapsed().saturating_sub(Duration::from_micros(at)) }
    }
}

/// Whether somebody waits for what is being gathered.
#[derive(Default)]
struct FlushRequest {
    asked: Mutex<bool>,
    told: Condvar,
}

impl FlushRequest {
    fn ask(&self) {
        *self.asked.lock() = true;
        self.told.notify_one();
    }

    /// Waits so long, or until somebody asks.
    fn wait(&self, gather: Duration) {
        let mut asked = self.asked.lock();
        self.told.wait_while_for(&mut asked, |asked| !*asked, gather);
        *asked = false;
    }
}

impl ProjectorHandle {
    /// Starts the thread; it ends when all handles are gone. What is durable waits for more for the time `gather`.
    pub fn start(
        views: Arc<dyn Views>,
        gather: Duration,
        on_failure: OnFailure,
        failures: mpsc::UnboundedSender<StoreError>,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = Arc::new(AtomicI64::new(0));
        let (show, shown) = watch::channel(0);
        let flush_request = Arc::<FlushRequest>::default();
        let degradation = Arc::<Degradation>::default();
        let gathering =
            Gathering { time: gather, flush_request: flush_request.clone(), degradation: degradation.clone() };
        let oldest = Arc::new(OldestUnshown::new());
        let most = Arc::new(AtomicI64::new(limits::PROJECTOR_QUEUE_EVENTS as i64));
        let handle = Self {
            sender,
            waiting: waiting.clone(),
            most,
            oldest: oldest.clone(),
            handed: Arc::default(),
            shown,
            flush_request,
            degradation,
            has_held: Arc::default(),
            held: Arc::default(),
        };
        shutdown::thread("projector", failures, move || {
            run(&receiver, &*views, waiting, &oldest, &show, &gathering, on_failure)
        })?;
        Ok(handle)
    }
    pub fn project(&self, batch: ToProject) {
        self.handed.fetch_add(1, Ordering::AcqRel);
        self.waiting.fetch_add(events(&batch.frames) as i64, Ordering::Relaxed);
        // The thread ends only after a failure; then the session ends.
        let _ = self.sender.send((Instant::now(), batch));
    }
    /// Waits until what was durable at the call is shown: so a caller finds in a list what it has just been told. What is being gathered
    /// goes at once then. Not longer than [`limits::SHOWN_WAIT_MS`]: a list that lags is better than none.
    pub async fn shows_all(&self) {
        let handed = self.handed.load(Ordering::Acquire);
        let mut shown = self.shown.clone();
        if *shown.borrow() < handed {
            self.flush_request.ask();
        }
        let wait = Duration::from_millis(limits::SHOWN_WAIT_MS);
        let _ = tokio::time::timeout(wait, shown.wait_for(|shown| *shown >= handed)).await;
    }
    /// Whether due instants have to wait, and when they had to.
    pub fn holds(&self, now_ms: i64) -> (bool, Option<Arc<HeldTimes>>) {
        let holds = self.is_full();
        if !holds && !self.has_held.load(Ordering::Relaxed) {
            return (false, None);
        }
        self.has_held.store(true, Ordering::Relaxed);
        let mut held = self.held.lock();
        if held.differs(holds) {
            Arc::make_mut(&mut held).look(holds, now_ms);
        }
        (holds, Some(held.clone()))
    }
    pub fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.most.load(Ordering::Relaxed)
    }
    /// For proofs that cannot wait until so many events are made.
    #[cfg(feature = "faults")]
    pub fn full_above(&self, events: i64) {
        self.most.store(events, Ordering::Relaxed);
    }
    /// The backlog looks how large it is.
    pub fn look_at_backlog(&self) {
        let most = self.most.load(Ordering::Relaxed).max(1);
        let percent = self.waiting.load(Ordering::Relaxed).max(0) * 100 / most;
        self.degradation.look(percent.unsigned_abs());
    }
    pub fn lag_events(&self) -> i64 {
        self.waiting.load(Ordering::Relaxed)
    }
    /// How long the oldest durable batch has waited that is not shown yet.
    pub fn lag(&self) -> Duration {
        self.oldest.age()
    }
}

fn events(frames: &[(Arc<Frame>, ActorRef<ShardMsg>)]) -> usize {
    frames.iter().map(|(frame, _)| frame.events.len()).sum()
}

/// What is durable waits for more so long, unless somebody waits for it.
struct Gathering {
    time: Duration,
    flush_request: Arc<FlushRequest>,
    degradation: Arc<Degradation>,
}

impl Gathering {
    /// Events from which no further batch of the journal is taken into one of the read model.
    fn batch_events(&self) -> usize {
        if self.degradation.level() >= DegradationLevel::ReadModelStretched {
            BATCH_EVENTS * STRETCH
        } else {
            BATCH_EVENTS
        }
    }
}

fn run(
    receiver: &std::sync::mpsc::Receiver<(Instant, ToProject)>,
    views: &dyn Views,
    waiting: Arc<AtomicI64>,
    oldest: &OldestUnshown,
    show: &watch::Sender<u64>,
    gathering: &Gathering,
    on_failure: OnFailure,
) -> Result<(), StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let log = LogOnce::new("the read model cannot be written; it is tried again");
    while let Ok((handed, first)) = receiver.recv() {
        oldest.set(Some(handed));
        // Nobody waits for the read model, and a batch costs as much as many rows. With a batch full already there is nothing to wait for.
        if waiting.load(Ordering::Relaxed) < BATCH_EVENTS as i64 {
            gathering.flush_request.wait(gathering.time);
        }
        let mut frames = first.frames;
        let mut batches = 1;
        let mut taken = events(&frames);
        // Journal batches are taken whole: the position must cover all that it names.
        let mut position = first.position;
        let most = gathering.batch_events();
        while taken < most
            && let Ok((_, next)) = receiver.try_recv()
        {
            taken += events(&next.frames);
            batches += 1;
            frames.extend(next.frames);
            position = next.position;
        }
        let mut batch = ViewBatch { position, ..ViewBatch::default() };
        let mut shards: HashMap<ShardId, (u64, ActorRef<ShardMsg>)> = HashMap::new();
        for (frame, from) in &frames {
            add_rows(frame, &mut batch.rows);
            shards.insert(frame.shard, (frame.seq, from.clone()));
        }
        batch.applied = shards.iter().map(|(shard, (seq, _))| (*shard, *seq)).collect();
        let rows = batch.rows.len() as u64;
        // Kept only where it may be written again.
        let again = match &on_failure {
            OnFailure::EndSession => None,
            OnFailure::TryAgain => Some(batch.clone()),
        };
        let mut written = runtime.block_on(views.apply(batch));
        while let Err(error) = written {
            // With the count known to nobody else, all handles are gone.
            let Some(batch) = again.clone().filter(|_| Arc::strong_count(&waiting) > 1) else {
                tracing::error!(%error, "the read model cannot be written; this session ends");
                return Err(error);
            };
            metrics::counter!("campanile_projection_failures_total").increment(1);
            log.failed(&error);
            std::thread::sleep(RETRY_PAUSE);
            written = runtime.block_on(views.apply(batch));
        }
        log.recovered();
        metrics::counter!("campanile_projected_rows_total").increment(rows);
        waiting.fetch_sub(taken as i64, Ordering::Relaxed);
        // What waits behind it is taken at once, with its own time.
        oldest.set(None);
        show.send_modify(|shown| *shown += batches);
        for (seq, shard) in shards.into_values() {
            let _ = shard.cast(ShardMsg::Projected { seq });
        }
    }
    Ok(())
}

/// Projects frames during recovery, before anything is served.
pub async fn project_now(views: &dyn Views, frames: &[(Position, Frame)]) -> Result<(), StoreError> {
    let mut batch = ViewBatch::default();
    let mut applied: HashMap<ShardId, u64> = HashMap::new();
    for (position, frame) in frames {
        add_rows(frame, &mut batch.rows);
        applied.insert(frame.shard, frame.seq);
        batch.position = batch.position.max(*position);
    }
    batch.applied = applied.into_iter().collect();
    views.apply(batch).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing here ends by itself.
    const FOR_EVER: Duration = Duration::from_secs(86_400);

    #[test]
    fn what_waits_is_as_old_as_its_hand_over_and_what_is_shown_has_no_age() {
        let begin = Instant::now();
        let oldest = OldestUnshown { begin, ..OldestUnshown::new() };
        assert_eq!(oldest.age(), Duration::ZERO);
        let told = begin + Duration::from_millis(5);
        while begin.elapsed() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        oldest.set(Some(told));
        let (age, most) = (oldest.age(), told.elapsed());
        assert!((Duration::from_millis(15)..=most).contains(&age), "{age:?}, at most {most:?}");
        oldest.set(None);
        assert_eq!(oldest.age(), Duration::ZERO);
    }

    #[test]
    fn what_is_gathered_goes_when_somebody_asks_before_or_meanwhile() {
        let flush_request = Arc::<FlushRequest>::default();
        flush_request.ask();
        flush_request.wait(FOR_EVER);
        let waiting = flush_request.clone();
        let gathering = std::thread::spawn(move || waiting.wait(FOR_EVER));
        flush_request.ask();
        assert!(gathering.join().is_ok());
        assert!(!*flush_request.asked.lock(), "one that asked is served once");
    }
}
