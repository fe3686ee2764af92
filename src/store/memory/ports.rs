//! The ports of the store in memory. Every call asks the script first.

use super::{MemoryStore, faults::Op};
use crate::tables::{Tables, TenantList};
use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, DiskRoom, EndedQuery, Journal, LedgerRow, LocalViews, Manifest, PartRef,
    PortFuture, Position, RunPage, SnapshotPart, Snapshots, StoreError, ViewBatch, Views,
};
use campanile_schema::{
    ids::{JobId, RunId, ShardId},
    record::RunRecord,
};

fn ready<'a, T: Send + 'a>(result: Result<T, StoreError>) -> PortFuture<'a, T> {
    Box::pin(async move { result })
}

impl MemoryStore {
    fn write<T>(&self, op: Op, call: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.play(op, &call, &call)
    }

    /// A read of the tables; a stale one sees them as the last flush left them.
    fn view<T>(&self, call: impl Fn(&dyn Tables) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.play(Op::Read, || call(self.tables.as_ref()), || call(&self.tables.as_flushed()))
    }
}

impl Journal for MemoryStore {
    fn append<'a>(&'a self, lane: u16, seq: u64, batch: &'a [u8]) -> PortFuture<'a, ()> {
        let call = || self.state().append(lane, seq, batch);
        let result = self.play(Op::Append, call, call);
        if matches!(result, Err(StoreError::Unknown(_))) {
            self.state().unknown = Some((lane, seq));
        }
        ready(result)
    }

    fn read_after(&self, after: Position, max_bytes: usize) -> PortFuture<'_, Vec<(Position, Vec<u8>)>> {
        ready(self.write(Op::ReadAfter, || Ok(self.state().read_after(after, max_bytes))))
    }

    fn trim(&self, upto: Position) -> PortFuture<'_, ()> {
        ready(self.write(Op::Trim, || {
            self.state().trim(upto);
            Ok(())
        }))
    }

    fn stored_bytes(&self) -> u64 {
        self.state().journal.iter().map(|(_, batch)| batch.len() as u64).sum()
    }
}

impl Snapshots for MemoryStore {
    fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: Vec<Vec<u8>>,
    ) -> PortFuture<'_, PartRef> {
        ready(self.write(Op::WritePart, || {
            let mut state = self.state();
            let published = state.manifests.get(&shard);
            if published.is_some_and(|(_, m)| m.parts.iter().any(|p| p.number == number && p.part == part)) {
                return Err(StoreError::Refused(format!("shard {shard}: part {number} is published")));
            }
            let crc = chunks.iter().fold(0, |crc, chunk| crc32c::crc32c_append(crc, chunk));
            let bytes = chunks.iter().map(|c| c.len() as u64).sum();
            state.parts.insert((shard, number, part), chunks.clone());
            Ok(PartRef { number, part, chunks: chunks.len() as u32, bytes, crc })
        }))
    }

    fn publish(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        ready(self.write(Op::Publish, || {
            let mut state = self.state();
            let before = state.manifests.get(&shard).map(|(_, current)| current.clone());
            if let Some(current) = &before {
                if *current == manifest {
                    return Ok(());
                }
                if current.number >= manifest.number {
                    return Err(StoreError::Refused(format!(
                        "shard {shard}: snapshot {} was to be published after {}",
                        manifest.number, current.number
                    )));
                }
            }
            state.parts.retain(|(of, number, part), _| {
                *of != shard || manifest.parts.iter().any(|p| p.number == *number && p.part == *part)
            });
            state.manifests.insert(shard, (before, manifest.clone()));
            Ok(())
        }))
    }

    fn load(&self, shard: ShardId, number: Option<u64>) -> PortFuture<'_, Option<Manifest>> {
        let wanted = |manifest: &Manifest| number.is_none_or(|number| number == manifest.number);
        let now = || Ok(self.state().manifests.get(&shard).map(|(_, current)| current.clone()).filter(wanted));
        let before = || Ok(self.state().manifests.get(&shard).and_then(|(before, _)| before.clone()).filter(wanted));
        ready(self.play(Op::Load, now, before))
    }

    fn forget(&self, _: ShardId, _: Manifest) -> PortFuture<'_, ()> {
        // It counts since it was published, and the others went then.
        ready(Ok(()))
    }

    fn read_part(&self, shard: ShardId, part: PartRef) -> PortFuture<'_, Vec<Vec<u8>>> {
        ready(self.write(Op::ReadPart, || {
            let state = self.state();
            let chunks = state.parts.get(&(shard, part.number, part.part));
            chunks
                .filter(|c| c.iter().fold(0, |crc, chunk| crc32c::crc32c_append(crc, chunk)) == part.crc)
                .cloned()
                .ok_or_else(|| StoreError::Corrupt(format!("shard {shard}: part {} is missing", part.number)))
        }))
    }
}

impl Views for MemoryStore {
    fn apply(&self, batch: ViewBatch) -> PortFuture<'_, ()> {
        ready(self.write(Op::Apply, || {
            self.tables.apply(&batch.rows, batch.position)?;
            self.state().progress.note(&batch);
            Ok(())
        }))
    }

    fn applied(&self, shard: ShardId) -> PortFuture<'_, u64> {
        ready(self.play(Op::Read, || Ok(self.state().progress.of(shard)), || Ok(self.state().flushed.of(shard))))
    }

    fn run(&self, run: RunId) -> PortFuture<'_, Option<RunRecord>> {
        ready(self.view(|tables| tables.run(run)))
    }

    fn job_runs(&self, job: JobId, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        ready(self.view(|tables| tables.job_runs(job, after.as_deref(), limit)))
    }

    fn find_key(&self, job: JobId, key: &str) -> PortFuture<'_, Option<RunId>> {
        ready(self.view(|tables| tables.find_key(job, key)))
    }

    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> PortFuture<'_, Vec<LedgerRow>> {
        ready(self.view(|tables| tables.ledger(job, from_ms, to_ms, limit)))
    }

    fn dead_letters(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        ready(self.view(|tables| tables.tenant_runs(TenantList::DeadLetters, tenant, after.as_deref(), limit)))
    }

    fn failed_runs(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        ready(self.view(|tables| tables.tenant_runs(TenantList::Failed, tenant, after.as_deref(), limit)))
    }

    fn retain(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        ready(self.write(Op::Retain, || self.tables.retain(before_ms, max_rows)))
    }

    fn ended_runs(&self, query: EndedQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, Option<RunPage>> {
        ready(self.view(|tables| tables.ended_runs(&query, after.as_deref(), limit)).map(Some))
    }

    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> PortFuture<'_, Vec<DefinitionRow>> {
        ready(self.view(|tables| tables.definitions(job, before, limit)))
    }

    fn audit(&self, query: AuditQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, AuditPage> {
        ready(self.view(|tables| tables.audit(&query, after.as_deref(), limit)))
    }

    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        ready(self.write(Op::Retain, || self.tables.retain_audit(before_ms, max_rows)))
    }

    fn append_log(&self, run: RunId, attempt: u32, chunk: Vec<u8>) -> PortFuture<'_, ()> {
        ready(self.write(Op::AppendLog, || self.tables.append_log(run, attempt, &chunk)))
    }

    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> PortFuture<'_, Vec<u8>> {
        ready(self.view(|tables| tables.read_log(run, attempt, offset, max_bytes)))
    }
}

impl LocalViews for MemoryStore {
    fn flush(&self) -> PortFuture<'_, Position> {
        ready(self.write(Op::Flush, || {
            let mut state = self.state();
            self.tables.flush()?;
            state.flushed = state.progress.clone();
            Ok(state.flushed.position)
        }))
    }

    fn flushed(&self) -> Position {
        self.state().flushed.position
    }

    fn unflushed_bytes(&self) -> u64 {
        self.tables.unflushed_bytes()
    }

    fn keep_messages(&self, from_ms: i64) {
        self.tables.keep_messages(from_ms);
    }

    fn shrink(&self, _max_bytes: u64, _before_ms: i64) -> PortFuture<'_, u64> {
        ready(Ok(0))
    }

    fn room(&self) -> PortFuture<'_, Option<DiskRoom>> {
        ready(Ok(*self.room.lock()))
    }
}
