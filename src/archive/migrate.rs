//! What a stopped node kept becomes what a cluster keeps, in another number of shards perhaps.
//!
//! Everything is written before the first shard's row names it, so nodes that look meanwhile see an empty cluster. Every write may
//! be repeated: after a kill the same call goes on. It takes the memory of a node that serves the same jobs.
//!
//! What it never does: change a row that a node of the cluster has written.

use super::{
    image::{Image, Sink},
    report::Report,
    restore::runtime,
};
use campanile_actors::at_rest::Loaded;
use campanile_core::ownership::{
    rows::{Nonce, ShardRow, SnapshotPointer},
    store::{Statement, StoreAnswer},
};
use campanile_ports::{Leases, Position, Row, Snapshots, StoreError, ViewBatch, Views};
use campanile_schema::{
    format::Formats,
    ids::{Epoch, RunId, SessionId, ShardId},
    limits::{MIGRATE_TRIES, RESTORED_SESSIONS},
};
use campanile_store::archive::{reader::ArchiveReader, record::Head};
use std::{collections::HashMap, io::Read, time::Duration};
use tokio::runtime::Runtime;

/// In rows that no session wrote.
const NOBODY: SessionId = SessionId(0);
/// Bits of a snapshot's number below its epoch.
const NUMBER_BITS: u32 = 20;
/// Before an answer that did not come is asked for again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The ports of a cluster's store.
pub struct Cluster<'a> {
    pub leases: &'a dyn Leases,
    pub snapshots: &'a dyn Snapshots,
    pub views: &'a dyn Views,
    pub shards: u16,
}

/// Writes all of it. `told` hears what is being done.
pub fn into_cluster<R: Read>(
    reader: ArchiveReader<R>,
    to: &Cluster<'_>,
    told: &mut dyn FnMut(&str),
) -> Result<Report, StoreError> {
    let runtime = runtime()?;
    let mut moving = Moving { to, runtime: &runtime, pointer: pointer(reader.head()), sent: HashMap::new() };
    moving.refuse_used()?;
    moving.refuse_newer(reader.head().store.formats())?;
    told("history");
    let image = Image::read(reader, &mut moving)?;
    let report = Report::of(&image)?;
    told("jobs");
    let shards = Loaded::reshard(image.shards, to.shards);
    for shard in &shards {
        moving.shard(shard)?;
    }
    let applied = shards.iter().map(|shard| (shard.id, shard.state().seq)).collect();
    let batch = ViewBatch { rows: Vec::new(), applied, position: Position::default() };
    runtime.block_on(to.views.apply(batch))?;
    told("the shards' rows");
    for shard in &shards {
        moving.name(shard.id, shard.state().seq)?;
    }
    Ok(report)
}

/// The same directory at the same place of its journal gives the same; another one does not.
fn pointer(head: &Head) -> SnapshotPointer {
    let epoch = Epoch(head.cut.session.0 + RESTORED_SESSIONS);
    let low = (head.cut.seq ^ head.store.cluster_id.0) & ((1 << NUMBER_BITS) - 1);
    SnapshotPointer { epoch, number: epoch.0 << NUMBER_BITS | low, seq: 0 }
}

struct Moving<'a> {
    to: &'a Cluster<'a>,
    runtime: &'a Runtime,
    /// `seq` differs by shard.
    pointer: SnapshotPointer,
    /// Bytes of each attempt's log so far.
    sent: HashMap<(RunId, u32), u64>,
}

impl Moving<'_> {
    fn ask(&self, statement: &Statement) -> StoreAnswer {
        self.runtime.block_on(self.to.leases.execute(NOBODY, statement.clone()))
    }

    /// Whether the row is as this migration leaves it.
    fn is_ours(&self, row: &ShardRow) -> bool {
        let same = |p: SnapshotPointer| p.epoch == self.pointer.epoch && p.number == self.pointer.number;
        row.owner.is_none() && row.snapshot.is_some_and(same)
    }

    fn refuse_used(&self) -> Result<(), StoreError> {
        for _ in 0..MIGRATE_TRIES {
            if let StoreAnswer::Shards(rows) = self.ask(&Statement::ReadShards) {
                let used = rows.iter().find(|(_, row)| *row != ShardRow::default() && !self.is_ours(row));
                return used.map_or(Ok(()), |(shard, row)| Err(used_by(*shard, row)));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
        Err(StoreError::Unavailable("the rows of shards cannot be read; run it again, it goes on".to_owned()))
    }

    /// A cluster in which nodes of an earlier release live must not get what those cannot read.
    fn refuse_newer(&self, ours: Formats) -> Result<(), StoreError> {
        let theirs = self.runtime.block_on(self.to.leases.formats())?;
        theirs.check(ours).map_err(|_| {
            StoreError::Refused(format!(
                "the directory is in event format {}, and nodes of the cluster may know {} only: replace them by this release first",
                ours.event, theirs.event
            ))
        })
    }

    fn shard(&self, shard: &Loaded) -> Result<(), StoreError> {
        let SnapshotPointer { epoch, number, .. } = self.pointer;
        let there = self.runtime.block_on(self.to.snapshots.load(shard.id, Some(number)))?;
        if there.is_none() {
            self.runtime.block_on(shard.write(self.to.snapshots, number, epoch, Position::default()))?;
        }
        #[cfg(feature = "faults")]
        campanile_ports::faults::point("migrate");
        Ok(())
    }

    /// From here on the shard is what it was.
    fn name(&self, shard: ShardId, seq: u64) -> Result<(), StoreError> {
        let row = ShardRow {
            version: 1,
            nonce: Nonce { session: NOBODY, count: self.pointer.number },
            epoch: self.pointer.epoch,
            snapshot: Some(SnapshotPointer { seq, ..self.pointer }),
            ..ShardRow::default()
        };
        for _ in 0..MIGRATE_TRIES {
            match self.ask(&Statement::PutShard { shard, expected: 0, row: row.clone() }) {
                StoreAnswer::Done => return Ok(()),
                StoreAnswer::Shard(stands) if self.is_ours(&stands) => return Ok(()),
                StoreAnswer::Shard(stands) => return Err(used_by(shard, &stands)),
                // The next try finds it, if it was applied.
                StoreAnswer::Unknown => std::thread::sleep(RETRY_PAUSE),
                StoreAnswer::Session(_) | StoreAnswer::Shards(_) | StoreAnswer::Lane(_) => {
                    return Err(StoreError::Corrupt(format!("shard {shard}: another answer than was asked for")));
                }
            }
        }
        Err(StoreError::Unavailable(format!("shard {shard}: its row cannot be written; run it again, it goes on")))
    }
}

fn used_by(shard: ShardId, row: &ShardRow) -> StoreError {
    let who = match row.owner {
        Some(owner) => format!("session {owner} of a node owns shard {shard}"),
        None => format!("shard {shard} holds what did not come from this directory"),
    };
    StoreError::Refused(format!(
        "the cluster is not empty: {who}. A directory moves into a keyspace that no node has used; name another one in [cql] keyspace"
    ))
}

impl Sink for Moving<'_> {
    fn rows(&mut self, rows: Vec<(u64, Row)>) -> Result<(), StoreError> {
        let batch = ViewBatch { rows, applied: Vec::new(), position: Position::default() };
        self.runtime.block_on(self.to.views.apply(batch))
    }

    /// Logs have no keys that say "again": what an earlier try sent is passed over.
    fn log(&mut self, run: RunId, attempt: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        let sent = self.sent.entry((run, attempt)).or_default();
        let from = *sent;
        *sent += bytes.len() as u64;
        let there = self.runtime.block_on(self.to.views.read_log(run, attempt, from, bytes.len()))?;
        let rest = bytes.get(there.len()..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        self.runtime.block_on(self.to.views.append_log(run, attempt, rest.to_vec()))
    }
}
