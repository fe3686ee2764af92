//! The store: rows changed by linearizable LWTs, and a journal on three replicas where a plain write may have reached only some.

use super::random::Random;
use campanile_core::ownership::{
    Rule,
    rows::{SessionRow, ShardRow},
    store::{Batch, Statement, StoreAnswer},
};
use campanile_schema::ids::{SessionId, ShardId};
use std::collections::BTreeMap;

pub const REPLICAS: usize = 3;
/// Replicas that a quorum needs.
pub const QUORUM: usize = 2;
pub const NEVER: u64 = u64::MAX;

/// A row of the journal, with the time at which it is on each replica, microseconds.
#[derive(Clone, Debug)]
struct Written {
    batch: Batch,
    at_us: [u64; REPLICAS],
}

#[derive(Default)]
pub struct Store {
    pub sessions: BTreeMap<SessionId, SessionRow>,
    pub shards: BTreeMap<ShardId, ShardRow>,
    journal: BTreeMap<(SessionId, u16), BTreeMap<u64, Written>>,
    /// Every version of a shard's row there was: what an LWT without a version compares the owner with.
    versions: BTreeMap<(ShardId, u64), Option<SessionId>>,
    pub broken: Option<Rule>,
}

impl Store {
    pub fn new(shards: u16, broken: Option<Rule>) -> Self {
        let rows = (0..shards).map(|shard| (ShardId(shard), ShardRow { version: 1, ..ShardRow::default() }));
        let versions = (0..shards).map(|shard| ((ShardId(shard), 1), None)).collect();
        Self { shards: rows.collect(), versions, broken, ..Self::default() }
    }

    /// Executes an LWT, or a read of rows, at once.
    pub fn execute(&mut self, statement: &Statement) -> StoreAnswer {
        match statement {
            Statement::PutSession { session, expected, row } => {
                let stands = self.sessions.get(session);
                let mut fits = stands.map(|stands| stands.version) == *expected;
                if self.broken == Some(Rule::VersionInLwt) {
                    fits = stands.is_none_or(|stands| !stands.state.is_over() || row.sealed.is_some());
                }
                if fits {
                    self.sessions.insert(*session, row.clone());
                    return StoreAnswer::Done;
                }
                StoreAnswer::Session(stands.cloned())
            }
            Statement::DropSession { session, expected } => {
                let fits = self.sessions.get(session).is_some_and(|stands| stands.version == *expected);
                if fits {
                    self.sessions.remove(session);
                    return StoreAnswer::Done;
                }
                StoreAnswer::Session(self.sessions.get(session).cloned())
            }
            Statement::PutShard { shard, expected, row } => {
                let stands = &self.shards[shard];
                let mut fits = stands.version == *expected;
                if self.broken == Some(Rule::VersionInLwt) {
                    fits = self.versions.get(&(*shard, *expected)) == Some(&stands.owner);
                }
                if fits {
                    self.versions.insert((*shard, row.version), row.owner);
                    self.shards.insert(*shard, row.clone());
                    return StoreAnswer::Done;
                }
                StoreAnswer::Shard(stands.clone())
            }
            Statement::ReadSession { session } => StoreAnswer::Session(self.sessions.get(session).cloned()),
            Statement::ReadShard { shard } => StoreAnswer::Shard(self.shards[shard].clone()),
            Statement::ReadShards => {
                StoreAnswer::Shards(self.shards.iter().map(|(shard, row)| (*shard, row.clone())).collect())
            }
            Statement::DeleteRows { session, lane, upto } => {
                if let Some(rows) = self.journal.get_mut(&(*session, *lane)) {
                    rows.retain(|seq, _| seq > upto);
                }
                StoreAnswer::Done
            }
            Statement::Append { .. } | Statement::Rewrite { .. } | Statement::ReadLane { .. } => {
                unreachable!("a statement of the journal")
            }
        }
    }

    /// A plain write that is on each replica at these times.
    pub fn write(&mut self, session: SessionId, lane: u16, seq: u64, batch: &Batch, at_us: [u64; REPLICAS]) {
        let rows = self.journal.entry((session, lane)).or_default();
        let row = rows.entry(seq).or_insert_with(|| Written { batch: batch.clone(), at_us: [NEVER; REPLICAS] });
        assert_eq!(row.batch, *batch, "a row is repeated with the same bytes");
        for (known, at) in row.at_us.iter_mut().zip(at_us) {
            *known = at.min(*known);
        }
    }

    /// Rows of a lane in `from..=to` that a quorum read of two random replicas finds now, up to the first one that it misses.
    pub fn read(
        &self,
        session: SessionId,
        lane: u16,
        from: u64,
        to: u64,
        now_us: u64,
        random: &mut Random,
    ) -> Vec<(u64, Batch)> {
        let blind = random.below(REPLICAS as u64) as usize;
        let Some(rows) = self.journal.get(&(session, lane)) else { return Vec::new() };
        let sees = |row: &Written| row.at_us.iter().enumerate().any(|(at, us)| at != blind && *us <= now_us);
        let mut found = Vec::new();
        let mut seq = from;
        while seq <= to
            && let Some(row) = rows.get(&seq).filter(|row| sees(row))
        {
            found.push((seq, row.batch.clone()));
            seq += 1;
        }
        found
    }

    /// Whether a session may still do anything.
    pub fn lives(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|row| !row.state.is_over())
    }
}
