//! Shards that were claimed together come back together: their snapshots, then the rows of their spans. Shards of a lane share its
//! rows, so each row is read once for all of them.

use crate::{
    cluster::SharedStore,
    ports::{Position, StoreError},
    projector::project_now,
    shard::load,
};
use campanile_core::ownership::{
    replay::{Replay, SpanEnd},
    rows::{SnapshotPointer, Span},
};
use campanile_schema::{
    format::Formats,
    frame::{Frame, decode_batch_up_to},
    ids::{Epoch, SessionId, ShardId},
};
use hashbrown::HashMap;
use tokio::{sync::mpsc, task::JoinError};

/// Bytes of rows read at once.
const READ_BYTES: usize = 4 << 20;
/// Frames that are projected together.
const PROJECTED_FRAMES: usize = 2_000;

/// A shard to be loaded.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub spans: Vec<Span>,
    pub snapshot: Option<SnapshotPointer>,
}

/// What came of loading a shard.
pub(super) struct Loaded {
    pub wanted: Wanted,
    pub found: Result<Found, StoreError>,
}

/// A shard in memory.
pub(super) struct Found {
    pub epoch: Epoch,
    pub shard: load::Loaded,
    /// Its highest frame, and what each span holds.
    pub last: u64,
    pub ends: Vec<SpanEnd>,
}

/// What loading needs of the store.
#[derive(Clone)]
pub(super) struct Loader {
    pub store: SharedStore,
    /// What this build knows.
    pub reads: Formats,
}

/// A shard on its way into memory.
struct Loading {
    wanted: Wanted,
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
    /// Gives each shard as soon as it is there, or why it cannot be loaded now.
    pub async fn load(&self, wanted: Vec<Wanted>, done: mpsc::UnboundedSender<Loaded>) {
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
                Err(error) => tell(&done, wanted, Err(error)),
            }
        }
        // A shard needs its spans in order; at each step, those that read the same lane read it together.
        for step in 0.. {
            let mut groups = HashMap::<(SessionId, u16), Vec<Loading>>::new();
            for shard in std::mem::take(&mut loading) {
                match shard.wanted.spans.get(step) {
                    Some(span) => groups.entry((span.session, span.lane)).or_default().push(shard),
                    None => drop(tokio::spawn(self.clone().end(shard, done.clone()))),
                }
            }
            if groups.is_empty() {
                return;
            }
            let mut reading = Vec::new();
            for ((session, lane), shards) in groups {
                let members: Vec<Wanted> = shards.iter().map(|shard| shard.wanted.clone()).collect();
                let (loader, done) = (self.clone(), done.clone());
                let task = async move { loader.read(step, session, lane, shards, &done).await };
                reading.push((members, tokio::spawn(task)));
            }
            for (members, task) in reading {
                match task.await.unwrap_or_else(|e| Err(broke_off(&e))) {
                    Ok(shards) => loading.extend(shards),
                    // Those that failed for themselves are told a second time, which changes nothing: they are loaded again.
                    Err(error) => {
                        members.into_iter().for_each(|wanted| tell(&done, wanted, Err(error.clone())));
                    }
                }
            }
        }
    }

    async fn begin(&self, wanted: Wanted) -> Result<Loading, StoreError> {
        let number = wanted.snapshot.map(|pointer| pointer.number);
        let loaded = load::Loaded::of_cluster(&*self.store.snapshots, wanted.shard, number).await?;
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

    /// Rows of one lane, from the first that one of the shards needs to the last; the shards that go on.
    async fn read(
        &self,
        step: usize,
        session: SessionId,
        lane: u16,
        mut shards: Vec<Loading>,
        done: &mpsc::UnboundedSender<Loaded>,
    ) -> Result<Vec<Loading>, StoreError> {
        let spans = || shards.iter().filter_map(|shard| shard.wanted.spans.get(step));
        // An empty span ends before it begins.
        let first = spans().filter(|s| s.to.is_some_and(|to| to >= s.from)).map(|s| s.from).min();
        let last = spans().filter_map(|span| span.to).max().unwrap_or(0);
        let mut after = first.unwrap_or(last + 1).saturating_sub(1);
        while after < last {
            let rows = self.store.leases.read_lane(session, lane, after, last, READ_BYTES).await?;
            let Some((read, _)) = rows.last() else { break };
            after = *read;
            metrics::counter!("campanile_replayed_rows_total").increment(rows.len() as u64);
            metrics::counter!("campanile_replayed_bytes_total")
                .increment(rows.iter().map(|(_, row)| row.len() as u64).sum());
            for (seq, bytes) in &rows {
                let frames = decode_batch_up_to(bytes, self.reads.event).map_err(|e| {
                    StoreError::Corrupt(format!("session {session}, lane {lane}: row {seq} cannot be read: {e}"))
                })?;
                let mut of: HashMap<ShardId, Vec<Frame>> = HashMap::new();
                for frame in frames {
                    of.entry(frame.shard).or_default().push(frame);
                }
                let position = Position { session, lane, seq: *seq };
                let mut going_on = Vec::with_capacity(shards.len());
                for mut shard in shards {
                    let frames = of.remove(&shard.wanted.shard).unwrap_or_default();
                    match shard.row(step, position, frames) {
                        Ok(()) => going_on.push(shard),
                        Err(error) => tell(done, shard.wanted, Err(error)),
                    }
                }
                shards = going_on;
            }
            for shard in &mut shards {
                if shard.unseen.len() >= PROJECTED_FRAMES {
                    project_now(&*self.store.views, &std::mem::take(&mut shard.unseen)).await?;
                }
            }
        }
        Ok(shards)
    }

    async fn end(self, shard: Loading, done: mpsc::UnboundedSender<Loaded>) {
        let wanted = shard.wanted.clone();
        let found = self.found(shard).await;
        tell(&done, wanted, found);
    }

    async fn found(&self, shard: Loading) -> Result<Found, StoreError> {
        #[cfg(feature = "faults")]
        let shard = shard.without_tail()?;
        let Loading { wanted, mut loaded, replay, unseen, .. } = shard;
        let (last, ends) =
            replay.end().map_err(|hole| StoreError::Corrupt(format!("shard {}: {hole}", wanted.shard)))?;
        if !unseen.is_empty() {
            project_now(&*self.store.views, &unseen).await?;
        }
        loaded.settle(Position::default());
        Ok(Found { epoch: wanted.epoch, shard: loaded, last, ends })
    }
}

/// Nobody hears it when the session has ended.
fn tell(done: &mpsc::UnboundedSender<Loaded>, wanted: Wanted, found: Result<Found, StoreError>) {
    let _ = done.send(Loaded { wanted, found });
}

fn broke_off(error: &JoinError) -> StoreError {
    StoreError::Unavailable(format!("loading broke off: {error}"))
}

impl Loading {
    /// A row of its lane, with its frames in it; rows outside its span are others'.
    fn row(&mut self, step: usize, position: Position, frames: Vec<Frame>) -> Result<(), StoreError> {
        let Some(span) = self.wanted.spans.get(step) else { return Ok(()) };
        if position.seq < span.from || span.to.is_some_and(|to| position.seq > to) {
            return Ok(());
        }
        let seqs: Vec<u64> = frames.iter().map(|frame| frame.seq).collect();
        self.replay
            .row(position.session, position.lane, position.seq, &seqs)
            .map_err(|hole| StoreError::Corrupt(format!("shard {}: {hole}", self.wanted.shard)))?;
        for frame in frames {
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
        if !crate::faults::forget_tail() {
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
