//! Reading a shard before it can be claimed: whenever a load goes on with what was read then, it must find what it finds anew. Its random
//! numbers are its own, so that seeds tell the same histories as without it.

use super::{
    random::Random,
    shard::{Frame, State},
    store::{NEVER, Store},
    world::{SHARDS, World},
};
use campanile_core::ownership::{
    replay::{Hole, Replay, SpanEnd},
    rows::{SnapshotPointer, Span},
};
use campanile_schema::ids::{Epoch, SessionId, ShardId};

/// A shard read in part.
pub struct Begun {
    snapshot: Option<SnapshotPointer>,
    replay: Replay,
    state: State,
}

/// What a load found.
pub struct Found<'a> {
    pub last: u64,
    pub ends: &'a [SpanEnd],
    pub state: &'a State,
}

impl Begun {
    /// Rows of the spans that it has not read yet, as far as a quorum shows them.
    fn go_on(
        &mut self,
        shard: ShardId,
        spans: &[Span],
        (store, batches, now_us): (&Store, &[Vec<Frame>], u64),
        random: &mut Random,
    ) -> Result<(), Hole> {
        let from = self.snapshot.map_or(0, |pointer| pointer.seq);
        for (index, span) in spans.iter().enumerate() {
            let (next, to) = (self.replay.next_row(index), span.to.unwrap_or(NEVER));
            for (row, batch) in store.read(span.session, span.lane, next, to, now_us, random) {
                let batch = u64::from_le_bytes(batch[..8].try_into().unwrap()) as usize;
                let frames: Vec<_> = batches[batch].iter().filter(|frame| frame.shard == shard).collect();
                let seqs: Vec<u64> = frames.iter().map(|frame| frame.seq).collect();
                self.replay.row(span.session, span.lane, row, &seqs)?;
                for frame in frames.iter().filter(|frame| frame.seq > from) {
                    frame.changes.iter().for_each(|change| self.state.apply(*change));
                }
            }
        }
        Ok(())
    }
}

impl World {
    /// Now and then a session reads some shard that another one owns.
    pub fn read_ahead(&mut self, session: SessionId) {
        let mut random = self.ahead_random.clone();
        if random.percent(20) {
            let shard = ShardId(random.below(u64::from(SHARDS)) as u16);
            let row = self.store.shards[&shard].clone();
            if row.owner.is_some_and(|owner| owner != session && row.is_claimed_by(owner)) {
                let snapshot = row.snapshot;
                let projected = self.projected.get(&shard).copied().unwrap_or(0);
                let state = snapshot.map_or_else(State::new, |pointer| self.snapshots[&pointer.number].clone());
                let mut begun = Begun { snapshot, replay: Replay::new(&row.spans, snapshot, projected), state };
                let world = (&self.store, &self.batches[..], self.now_us);
                if begun.go_on(shard, &row.spans, world, &mut random).is_ok() {
                    self.ahead.insert((session, shard), begun);
                }
            }
        }
        self.ahead_random = random;
    }

    /// The owner has loaded a shard: what was read ahead, gone on with, is the same.
    pub fn check_ahead(
        &mut self,
        (session, shard, epoch): (SessionId, ShardId, Epoch),
        spans: &[Span],
        snapshot: Option<SnapshotPointer>,
        found: &Found<'_>,
    ) {
        let Some(mut begun) = self.ahead.remove(&(session, shard)) else { return };
        if begun.snapshot != snapshot || !begun.replay.claimed(spans) {
            self.table.read_in_vain += 1;
            return;
        }
        self.table.read_ahead += 1;
        let mut random = self.ahead_random.clone();
        let world = (&self.store, &self.batches[..], self.now_us);
        let rest = begun.go_on(shard, spans, world, &mut random).and_then(|()| begun.replay.end());
        self.ahead_random = random;
        let same = |last: u64, ends: &[SpanEnd], state: &State| {
            (last, ends, &state.values, &state.open) == (found.last, found.ends, &found.state.values, &found.state.open)
        };
        match rest {
            Ok((last, ends)) if same(last, &ends, &begun.state) => {}
            Ok((last, _)) => {
                let what = format!("what was read ahead ends with frame {last}, and the shard with {}", found.last);
                self.hole(session, shard, epoch, what);
            }
            Err(hole) => self.hole(session, shard, epoch, format!("read ahead: {hole}")),
        }
    }
}
