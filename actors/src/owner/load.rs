//! Shards that were claimed together come back together: their snapshots, then the rows of their spans. Shards of a lane share its
//! rows, so each row is read once for all of them.

use crate::{
    cluster::SharedStore,
    ports::{Position, StoreError},
    projector::project_now,
    shard::load::Loaded,
};
use campanile_core::ownership::{
    replay::{Replay, SpanEnd},
    rows::{SnapshotPointer, Span},
};
use campanile_schema::{
    frame::{Frame, decode_batch},
    ids::{Epoch, SessionId, ShardId},
};
use hashbrown::HashMap;

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

/// A shard in memory.
pub(super) struct Found {
    pub epoch: Epoch,
    pub loaded: Loaded,
    /// Its highest frame, and what each span holds.
    pub last: u64,
    pub ends: Vec<SpanEnd>,
}

/// What loading needs of the store.
#[derive(Clone)]
pub(super) struct Loader {
    pub store: SharedStore,
}

/// A shard on its way into memory.
struct Loading {
    wanted: Wanted,
    loaded: Loaded,
    replay: Replay,
    /// Frames above it are projected anew.
    projected: u64,
    unseen: Vec<(Position, Frame)>,
}

impl Loader {
    /// Each shard, or why it cannot be loaded now.
    pub async fn load(&self, wanted: Vec<Wanted>) -> Vec<(Wanted, Result<Found, StoreError>)> {
        let mut results = Vec::with_capacity(wanted.len());
        let mut loading = Vec::new();
        let mut begun = Vec::new();
        for wanted in wanted {
            let loader = self.clone();
            let task = tokio::spawn({
                let wanted = wanted.clone();
                async move { loader.begin(wanted).await }
            });
            begun.push((wanted, task));
        }
        for (wanted, task) in begun {
            match task.await.unwrap_or_else(|e| Err(StoreError::Unavailable(e.to_string()))) {
                Ok(shard) => loading.push(shard),
                Err(error) => results.push((wanted, Err(error))),
            }
        }
        // A shard needs its spans in order; at each step, those that read the same lane read it together.
        for step in 0.. {
            let (mut done, mut groups) = (Vec::new(), HashMap::<(SessionId, u16), Vec<Loading>>::new());
            for shard in std::mem::take(&mut loading) {
                match shard.wanted.spans.get(step) {
                    Some(span) => groups.entry((span.session, span.lane)).or_default().push(shard),
                    None => done.push(shard),
                }
            }
            for shard in done {
                let wanted = shard.wanted.clone();
                results.push((wanted, self.end(shard).await));
            }
            if groups.is_empty() {
                return results;
            }
            let mut tasks = Vec::new();
            for ((session, lane), shards) in groups {
                let (loader, members) = (self.clone(), shards.iter().map(|s| s.wanted.clone()).collect::<Vec<_>>());
                tasks.push((members, tokio::spawn(async move { loader.read(step, session, lane, shards).await })));
            }
            for (members, task) in tasks {
                match task.await.unwrap_or_else(|e| Err(StoreError::Unavailable(e.to_string()))) {
                    Ok(shards) => {
                        for shard in shards {
                            match shard {
                                Ok(shard) => loading.push(shard),
                                Err((wanted, error)) => results.push((wanted, Err(error))),
                            }
                        }
                    }
                    Err(error) => results.extend(members.into_iter().map(|wanted| (wanted, Err(error.clone())))),
                }
            }
        }
        results
    }

    async fn begin(&self, wanted: Wanted) -> Result<Loading, StoreError> {
        let number = wanted.snapshot.map(|pointer| pointer.number);
        let loaded = Loaded::of_cluster(&*self.store.snapshots, wanted.shard, number).await?;
        let projected = self.store.views.applied(wanted.shard).await?;
        let replay = Replay::new(&wanted.spans, wanted.snapshot, projected);
        Ok(Loading { wanted, loaded, replay, projected, unseen: Vec::new() })
    }

    /// Rows of one lane, from the first that one of the shards needs to the last.
    #[allow(clippy::type_complexity)]
    async fn read(
        &self,
        step: usize,
        session: SessionId,
        lane: u16,
        mut shards: Vec<Loading>,
    ) -> Result<Vec<Result<Loading, (Wanted, StoreError)>>, StoreError> {
        let spans = || shards.iter().filter_map(|shard| shard.wanted.spans.get(step));
        // An empty span ends before it begins.
        let first = spans().filter(|s| s.to.is_some_and(|to| to >= s.from)).map(|s| s.from).min();
        let last = spans().filter_map(|span| span.to).max().unwrap_or(0);
        let mut after = first.unwrap_or(last + 1).saturating_sub(1);
        let mut failed = Vec::new();
        while after < last {
            let rows = self.store.leases.read_lane(session, lane, after, last, READ_BYTES).await?;
            let Some((read, _)) = rows.last() else { break };
            after = *read;
            for (seq, bytes) in &rows {
                let frames = decode_batch(bytes).map_err(|e| {
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
                        Err(error) => failed.push((shard.wanted, error)),
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
        Ok(shards.into_iter().map(Ok).chain(failed.into_iter().map(Err)).collect())
    }

    async fn end(&self, shard: Loading) -> Result<Found, StoreError> {
        let Loading { wanted, mut loaded, replay, unseen, .. } = shard;
        let (last, ends) =
            replay.end().map_err(|hole| StoreError::Corrupt(format!("shard {}: {hole}", wanted.shard)))?;
        if !unseen.is_empty() {
            project_now(&*self.store.views, &unseen).await?;
        }
        loaded.settle(Position::default());
        Ok(Found { epoch: wanted.epoch, loaded, last, ends })
    }
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
            self.loaded.replay(&frame)?;
            if frame.seq > self.projected {
                self.projected = frame.seq;
                self.unseen.push((position, frame));
            }
        }
        Ok(())
    }
}
