//! The ports of the embedded store: threads and guards around the log, the snapshots and the tables.

use super::{EmbeddedStore, guard, history, position_of};
use crate::tables::TenantList;
use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, DiskRoom, EndedQuery, Journal, LedgerRow, LocalViews, Manifest, PartRef,
    PortFuture, Position, RunPage, SnapshotPart, Snapshots, StoreError, ViewBatch, Views,
};
use campanile_schema::{
    ids::{JobId, RunId, ShardId},
    record::RunRecord,
};
use std::sync::{Arc, atomic::Ordering};

impl Journal for EmbeddedStore {
    fn append<'a>(&'a self, lane: u16, seq: u64, batch: &'a [u8]) -> PortFuture<'a, ()> {
        // Where it is: the caller has a thread of its own.
        Box::pin(async move {
            let mut log = guard(&self.inner.log);
            let result = log.append(lane, seq, batch);
            self.inner.journal_bytes.store(log.stored_bytes(), Ordering::Relaxed);
            result
        })
    }

    fn read_after(&self, after: Position, max_bytes: usize) -> PortFuture<'_, Vec<(Position, Vec<u8>)>> {
        let inner = Arc::clone(&self.inner);
        self.reads.run(move || guard(&inner.log).read_after(after, max_bytes))
    }

    fn trim(&self, upto: Position) -> PortFuture<'_, ()> {
        let inner = Arc::clone(&self.inner);
        self.view_calls.run(move || {
            // Whatever was asked: what the views' tables do not hold durably stays.
            let upto = upto.min(position_of(&inner.flushed));
            let _one_at_a_time = guard(&inner.trimmer);
            if inner.snapshots.pins().load(Ordering::Acquire) > 0 {
                // A backup reads it.
                return Ok(());
            }
            let Some(mut trim) = guard(&inner.log).begin_trim(upto) else { return Ok(()) };
            let result = trim.run();
            let mut log = guard(&inner.log);
            log.end_trim(trim);
            inner.journal_bytes.store(log.stored_bytes(), Ordering::Relaxed);
            result
        })
    }

    fn stored_bytes(&self) -> u64 {
        self.inner.journal_bytes.load(Ordering::Relaxed)
    }
}

impl Snapshots for EmbeddedStore {
    fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: Vec<Vec<u8>>,
    ) -> PortFuture<'_, PartRef> {
        let snapshots = self.inner.snapshots.clone();
        self.snapshot_calls.run(move || snapshots.write_part(shard, number, part, &chunks))
    }

    fn publish(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        let snapshots = self.inner.snapshots.clone();
        self.snapshot_calls.run(move || snapshots.publish(shard, &manifest))
    }

    fn load(&self, shard: ShardId, number: Option<u64>) -> PortFuture<'_, Option<Manifest>> {
        let snapshots = self.inner.snapshots.clone();
        self.snapshot_calls.run(move || {
            let counts = snapshots.load(shard)?;
            Ok(counts.filter(|manifest| number.is_none_or(|wanted| wanted == manifest.number)))
        })
    }

    fn forget(&self, _: ShardId, _: Manifest) -> PortFuture<'_, ()> {
        // It counts since it was published, and the others went then.
        Box::pin(async { Ok(()) })
    }

    fn read_part(&self, shard: ShardId, part: PartRef) -> PortFuture<'_, Vec<Vec<u8>>> {
        let snapshots = self.inner.snapshots.clone();
        self.snapshot_calls.run(move || snapshots.read_part(shard, &part))
    }
}

impl Views for EmbeddedStore {
    fn apply(&self, batch: ViewBatch) -> PortFuture<'_, ()> {
        let inner = Arc::clone(&self.inner);
        self.view_calls.run(move || {
            let _one_at_a_time = guard(&inner.committer);
            inner.tables.apply(&batch.rows, batch.position)?;
            guard(&inner.progress).note(&batch);
            Ok(())
        })
    }

    fn applied(&self, shard: ShardId) -> PortFuture<'_, u64> {
        Box::pin(async move { Ok(guard(&self.inner.progress).of(shard)) })
    }

    // Points are read where they are asked for: mostly from memory, at most one block from disk.
    fn run(&self, run: RunId) -> PortFuture<'_, Option<RunRecord>> {
        Box::pin(async move { self.inner.tables.run(run) })
    }

    fn job_runs(&self, job: JobId, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        let tables = Arc::clone(&self.inner.tables);
        self.reads.run(move || tables.job_runs(job, after.as_deref(), limit))
    }

    fn find_key(&self, job: JobId, key: &str) -> PortFuture<'_, Option<RunId>> {
        let found = self.inner.tables.find_key(job, key);
        Box::pin(async move { found })
    }

    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> PortFuture<'_, Vec<LedgerRow>> {
        let tables = Arc::clone(&self.inner.tables);
        self.reads.run(move || tables.ledger(job, from_ms, to_ms, limit))
    }

    fn dead_letters(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.tenant_runs(TenantList::DeadLetters, tenant, after, limit)
    }

    fn failed_runs(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.tenant_runs(TenantList::Failed, tenant, after, limit)
    }

    fn retain(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        let inner = Arc::clone(&self.inner);
        self.view_calls.run(move || {
            let _one_at_a_time = guard(&inner.committer);
            inner.tables.retain(before_ms, max_rows)
        })
    }

    fn ended_runs(&self, query: EndedQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, Option<RunPage>> {
        let tables = Arc::clone(&self.inner.tables);
        self.reads.run(move || tables.ended_runs(&query, after.as_deref(), limit).map(Some))
    }

    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> PortFuture<'_, Vec<DefinitionRow>> {
        let tables = Arc::clone(&self.inner.tables);
        self.reads.run(move || tables.definitions(job, before, limit))
    }

    fn audit(&self, query: AuditQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, AuditPage> {
        let tables = Arc::clone(&self.inner.tables);
        self.reads.run(move || tables.audit(&query, after.as_deref(), limit))
    }

    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        let inner = Arc::clone(&self.inner);
        self.view_calls.run(move || {
            let _one_at_a_time = guard(&inner.committer);
            inner.tables.retain_audit(before_ms, max_rows)
        })
    }

    fn append_log(&self, run: RunId, attempt: u32, chunk: Vec<u8>) -> PortFuture<'_, ()> {
        let tables = Arc::clone(&self.inner.tables);
        self.log_calls.run(move || tables.append_log(run, attempt, &chunk))
    }

    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> PortFuture<'_, Vec<u8>> {
        let tables = Arc::clone(&self.inner.tables);
        self.reads.run(move || tables.read_log(run, attempt, offset, max_bytes))
    }
}

impl LocalViews for EmbeddedStore {
    fn flush(&self) -> PortFuture<'_, Position> {
        let inner = Arc::clone(&self.inner);
        self.view_calls.run(move || {
            let _one_at_a_time = guard(&inner.flusher);
            // Taken before the flush: everything up to here is in the tables already.
            let covered = guard(&inner.progress).clone();
            if covered == *guard(&inner.flushed) {
                return Ok(covered.position);
            }
            inner.tables.flush()?;
            history::write_mark(inner.files.as_ref(), &inner.dir, &covered)
                .map_err(|e| StoreError::Unavailable(format!("{}: cannot write FLUSHED: {e}", inner.dir.display())))?;
            *guard(&inner.flushed) = covered.clone();
            Ok(covered.position)
        })
    }

    fn flushed(&self) -> Position {
        position_of(&self.inner.flushed)
    }

    fn unflushed_bytes(&self) -> u64 {
        self.inner.tables.unflushed_bytes()
    }

    fn keep_messages(&self, from_ms: i64) {
        self.inner.tables.keep_messages(from_ms);
    }

    fn shrink(&self, max_bytes: u64, before_ms: i64) -> PortFuture<'_, u64> {
        let inner = Arc::clone(&self.inner);
        self.view_calls.run(move || inner.shrinking.run(inner.tables.as_ref(), &inner.committer, max_bytes, before_ms))
    }

    fn room(&self) -> PortFuture<'_, Option<DiskRoom>> {
        let inner = Arc::clone(&self.inner);
        // Not behind a compaction, which takes minutes.
        self.snapshot_calls.run(move || inner.room().map(Some))
    }
}

impl EmbeddedStore {
    fn tenant_runs(
        &self,
        list: TenantList,
        tenant: &str,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> PortFuture<'_, RunPage> {
        let tables = Arc::clone(&self.inner.tables);
        let tenant = tenant.to_owned();
        self.reads.run(move || tables.tenant_runs(list, &tenant, after.as_deref(), limit))
    }
}
