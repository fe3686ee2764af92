//! Loads shards that were claimed together: first their snapshots, then the rows of their spans. Shards of a lane share
//! its rows, so each row is read once for all of them. What was read before the claim (see `ahead`) is used.

use crate::{projector::project_now, shard::load, shared_store::SharedStore};
use campanile_core::ownership::{
    replay::{Replay, SpanEnd},
    rows::{SnapshotPointer, Span},
};
use campanile_ports::{Position, StoreError};
use campanile_schema::{
    format::Formats,
    frame::{Frame, Skimmed, skim_batch},
    ids::{Epoch, SessionId, ShardId},
};
use hashbrown::HashMap;
use std::ops::Range;
use tokio::{
    sync::{Mutex, mpsc},
    task::{JoinError, JoinHandle},
};

/// Bytes of rows read at once.
const READ_BYTES: usize = 4 << 20;
/// Frames that are projected together.
const PROJECTED_FRAMES: usize = 2_000;

/// Behind every row of a lane.
const NO_END: u64 = i64::MAX as u64;

/// Shards of which something was read before they were claimed.
pub(super) type ReadAhead = HashMap<ShardId, Loading>;

/// A shard to be loaded.
#[derive(Clone, Debug)]
pub(super) struct LoadRequest {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub spans: Vec<Span>,
    pub snapshot: Option<SnapshotPointer>,
}

/// What came of loading a shard.
pub(super) struct Loaded {
    pub wanted: LoadRequest,
    pub found: Result<LoadedShard, StoreError>,
}

/// A shard in memory.
pub(super) struct LoadedShard {
    pub epoch: Epoch,
    pub shard: load::Loaded,
    /// Its highest frame, and what each span holds.
    pub last: u64,
    pub ends: Vec<SpanEnd>,
}

/// Rows of a lane with their seqs.
type Rows = Result<Vec<(u64, Vec<u8>)>, StoreError>;

/// What loading needs of the store.
#[derive(Clone)]
pub(super) struct Loader {
    pub store: SharedStore,
    /// What this build knows.
    pub reads: Formats,
}

/// Spans that are read together.
#[derive(Clone, Copy)]
struct Lane {
    /// Number of the span, of each of its shards.
    step: usize,
    session: SessionId,
    lane: u16,
    /// Not claimed yet: up to where rows end now.
    ahead: bool,
}

/// What came of reading a lane: shards that go on, and those that failed for themselves.
struct Read {
    shards: Vec<Loading>,
    failures: Vec<(LoadRequest, StoreError)>,
}

/// A shard on its way into memory.
pub(super) struct Loading {
    wanted: LoadRequest,
    loaded: load::Loaded,
    replay: Replay,
    /// Frames above it are projected anew.
    projected: u64,
    unseen: Vec<(Position, Frame)>,
    /// The last one so far, when it is to be forgotten.
    #[cfg(feature = "faults")]
    tail: Option<Frame>,
}

impl Loader {
    /// Gives each shard as soon as it is there, or why it cannot be loaded now. `read`: what was read of some of them before.
    pub async fn load(&self, wanted: Vec<LoadRequest>, read: &Mutex<ReadAhead>, done: mpsc::UnboundedSender<Loaded>) {
        let (mut loading, mut anew) = (Vec::new(), Vec::new());
        {
            // Whoever reads ahead has it until then: the rest of its work would have to be done here.
            let mut read = read.lock().await;
            for wanted in wanted {
                match read.remove(&wanted.shard).and_then(|begun| begun.go_on(&wanted)) {
                    Some(begun) => loading.push(begun),
                    None => anew.push(wanted),
                }
            }
        }
        metrics::counter!("campanile_shards_read_ahead_total").increment(loading.len() as u64);
        let tell_error = |wanted, error| tell(&done, wanted, Err(error));
        loading.extend(self.begin_all(anew, tell_error).await);
        // A shard needs its spans in order; at each step, those that read the same lane read it together.
        for step in 0.. {
            for shard in loading.extract_if(.., |shard| shard.wanted.spans.get(step).is_none()) {
                let done = done.clone();
                tokio::spawn(async move { tell(&done, shard.wanted.clone(), found(shard)) });
            }
            if loading.is_empty() {
                return;
            }
            loading = self.step(step, loading, false, tell_error).await;
        }
    }

    /// Reads shards that others own still, as far as their lanes go. What cannot be read is left to the load.
    pub async fn read_ahead(&self, wanted: Vec<LoadRequest>) -> ReadAhead {
        let left = |wanted: LoadRequest, error| tracing::debug!(shard = %wanted.shard, %error, "not read ahead");
        let mut loading = self.begin_all(wanted, left).await;
        let mut read = ReadAhead::new();
        for step in 0.. {
            let done = loading.extract_if(.., |shard| shard.wanted.spans.get(step).is_none());
            read.extend(done.map(|shard| (shard.wanted.shard, shard)));
            if loading.is_empty() {
                break;
            }
            loading = self.step(step, loading, true, left).await;
        }
        read
    }

    async fn begin_all(&self, wanted: Vec<LoadRequest>, failed: impl Fn(LoadRequest, StoreError)) -> Vec<Loading> {
        let begun: Vec<_> = wanted
            .into_iter()
            .map(|wanted| {
                let loader = self.clone();
                let task = wanted.clone();
                (wanted, tokio::spawn(async move { loader.begin(task).await }))
            })
            .collect();
        let mut loading = Vec::new();
        for (wanted, task) in begun {
            match task.await.unwrap_or_else(|e| Err(broke_off(&e))) {
                Ok(shard) => loading.push(shard),
                Err(error) => failed(wanted, error),
            }
        }
        loading
    }

    /// The spans with this number of all shards; the shards that go on.
    async fn step(
        &self,
        step: usize,
        loading: Vec<Loading>,
        ahead: bool,
        failed: impl Fn(LoadRequest, StoreError),
    ) -> Vec<Loading> {
        let mut groups = HashMap::<(SessionId, u16), Vec<Loading>>::new();
        for shard in loading {
            if let Some(span) = shard.wanted.spans.get(step) {
                groups.entry((span.session, span.lane)).or_default().push(shard);
            }
        }
        let mut reading = Vec::new();
        for ((session, lane), shards) in groups {
            let members: Vec<LoadRequest> = shards.iter().map(|shard| shard.wanted.clone()).collect();
            let (loader, lane) = (self.clone(), Lane { step, session, lane, ahead });
            reading.push((members, tokio::spawn(async move { loader.read(lane, shards).await })));
        }
        let mut going_on = Vec::new();
        for (members, task) in reading {
            match task.await.unwrap_or_else(|e| Err(broke_off(&e))) {
                Ok(Read { shards, failures }) => {
                    going_on.extend(shards);
                    failures.into_iter().for_each(|(wanted, error)| failed(wanted, error));
                }
                Err(error) => members.into_iter().for_each(|wanted| failed(wanted, error.clone())),
            }
        }
        going_on
    }

    async fn begin(&self, wanted: LoadRequest) -> Result<Loading, StoreError> {
        let number = wanted.snapshot.map(|pointer| pointer.number);
        let loaded = load::Loaded::of_cluster(&*self.store.snapshots, wanted.shard, number, self.reads.event).await?;
        let projected = self.store.views.applied(wanted.shard).await?;
        let replay = Replay::new(&wanted.spans, wanted.snapshot, projected);
        Ok(Loading {
            wanted,
            loaded,
            replay,
            projected,
            unseen: Vec::new(),
            #[cfg(feature = "faults")]
            tail: None,
        })
    }

    /// Rows of one lane, from the first that one of the shards needs to the last.
    async fn read(&self, of: Lane, mut shards: Vec<Loading>) -> Result<Read, StoreError> {
        let Lane { step, session, lane, ahead } = of;
        let ends =
            || shards.iter().filter_map(|shard| Some((shard.replay.next_row(step), shard.wanted.spans.get(step)?.to)));
        // An empty span ends before it begins.
        let first = ends().filter(|(next, to)| to.is_none_or(|to| to >= *next)).map(|(next, _)| next).min();
        let last = ends().map(|(_, to)| to.unwrap_or(NO_END)).max().unwrap_or(0);
        let indexes = |shards: &[Loading]| -> HashMap<ShardId, usize> {
            shards.iter().enumerate().map(|(index, shard)| (shard.wanted.shard, index)).collect()
        };
        let mut by_shard = indexes(&shards);
        let mut failures = Vec::new();
        let mut after = first.unwrap_or(last + 1).saturating_sub(1);
        let mut next = self.rows(of, after..last);
        while after < last {
            let rows = next.await.unwrap_or_else(|e| Err(broke_off(&e)))?;
            let Some((read, _)) = rows.last() else { break };
            after = *read;
            let bytes: usize = rows.iter().map(|(_, row)| row.len()).sum();
            let more = !ahead || bytes >= READ_BYTES;
            // While these are applied.
            next = self.rows(of, after..if more { last } else { after });
            metrics::counter!("campanile_replayed_rows_total").increment(rows.len() as u64);
            metrics::counter!("campanile_replayed_bytes_total").increment(bytes as u64);
            for (seq, bytes) in &rows {
                let needed =
                    |shard: ShardId, seq: u64| by_shard.get(&shard).is_some_and(|i| shards[*i].replay.needs(seq));
                let frames = skim_batch(bytes, self.reads.event, needed).map_err(|e| {
                    StoreError::Corrupt(format!("session {session}, lane {lane}: row {seq} cannot be read: {e}"))
                })?;
                let mut frames_of: HashMap<ShardId, Vec<Skimmed>> = HashMap::new();
                for frame in frames.into_iter().filter(|frame| by_shard.contains_key(&frame.shard)) {
                    frames_of.entry(frame.shard).or_default().push(frame);
                }
                let position = Position { session, lane, seq: *seq };
                let before = failures.len();
                shards.retain_mut(|shard| {
                    let frames = frames_of.remove(&shard.wanted.shard).unwrap_or_default();
                    let applied = shard.row(step, position, frames);
                    applied.map_err(|error| failures.push((shard.wanted.clone(), error))).is_ok()
                });
                if failures.len() > before {
                    by_shard = indexes(&shards);
                }
            }
            let many = shards.iter().map(|shard| shard.unseen.len()).sum::<usize>() >= PROJECTED_FRAMES;
            if ahead && (many || !more) {
                break;
            }
            if many {
                self.project(&mut shards).await?;
            }
        }
        // Together: what they have not projected is a second's worth of each, and a store pays for requests more than for rows.
        // Not ahead of the claim: whether these frames count is not known yet.
        if !ahead {
            self.project(&mut shards).await?;
        }
        Ok(Read { shards, failures })
    }

    /// Rows behind `places.start` up to and including `places.end`, from now on; none when that is empty.
    fn rows(&self, of: Lane, places: Range<u64>) -> JoinHandle<Rows> {
        let leases = self.store.leases.clone();
        tokio::spawn(async move {
            if places.is_empty() {
                return Ok(Vec::new());
            }
            leases.read_lane(of.session, of.lane, places.start, places.end, READ_BYTES).await
        })
    }

    /// What the views have not seen of these shards.
    async fn project(&self, shards: &mut [Loading]) -> Result<(), StoreError> {
        let unseen: Vec<_> = shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.unseen)).collect();
        if unseen.is_empty() {
            return Ok(());
        }
        project_now(&*self.store.views, &unseen).await
    }
}

fn found(shard: Loading) -> Result<LoadedShard, StoreError> {
    #[cfg(feature = "faults")]
    let shard = shard.without_tail()?;
    let Loading { wanted, mut loaded, replay, .. } = shard;
    let (last, ends) = replay.end().map_err(|hole| StoreError::Corrupt(format!("shard {}: {hole}", wanted.shard)))?;
    loaded.settle(Position::default());
    Ok(LoadedShard { epoch: wanted.epoch, shard: loaded, last, ends })
}

/// Nobody hears it when the session has ended.
fn tell(done: &mpsc::UnboundedSender<Loaded>, wanted: LoadRequest, found: Result<LoadedShard, StoreError>) {
    let _ = done.send(Loaded { wanted, found });
}

fn broke_off(error: &JoinError) -> StoreError {
    StoreError::Unavailable(format!("loading broke off: {error}"))
}

impl Loading {
    /// The same for the claim; None: what was read is not a beginning of what it says.
    fn go_on(mut self, claimed: &LoadRequest) -> Option<Self> {
        let fits = self.wanted.snapshot == claimed.snapshot && self.replay.claimed(&claimed.spans);
        self.wanted = claimed.clone();
        fits.then_some(self)
    }

    /// A row of its lane, with its frames in it; rows outside its span are others', or were read before.
    fn row(&mut self, step: usize, position: Position, frames: Vec<Skimmed>) -> Result<(), StoreError> {
        let Some(span) = self.wanted.spans.get(step) else { return Ok(()) };
        if position.seq < self.replay.next_row(step) || span.to.is_some_and(|to| position.seq > to) {
            return Ok(());
        }
        let seqs: Vec<u64> = frames.iter().map(|frame| frame.seq).collect();
        self.replay
            .row(position.session, position.lane, position.seq, &seqs)
            .map_err(|hole| StoreError::Corrupt(format!("shard {}: {hole}", self.wanted.shard)))?;
        for frame in frames.into_iter().filter_map(|skimmed| skimmed.frame) {
            self.apply(&frame)?;
            if frame.seq > self.projected {
                self.projected = frame.seq;
                self.unseen.push((position, frame));
            }
        }
        Ok(())
    }

    #[cfg(not(feature = "faults"))]
    fn apply(&mut self, frame: &Frame) -> Result<(), StoreError> {
        self.loaded.replay(frame)
    }

    /// One frame late, when the last one is to be forgotten.
    #[cfg(feature = "faults")]
    fn apply(&mut self, frame: &Frame) -> Result<(), StoreError> {
        if !campanile_ports::faults::forget_tail() {
            return self.loaded.replay(frame);
        }
        self.tail.replace(frame.clone()).map_or(Ok(()), |before| self.loaded.replay(&before))
    }

    /// The shard goes on behind the last frame, and knows nothing of it.
    #[cfg(feature = "faults")]
    fn without_tail(mut self) -> Result<Self, StoreError> {
        if let Some(mut tail) = self.tail.take() {
            tail.events.clear();
            self.loaded.replay(&tail)?;
        }
        Ok(self)
    }
}
