//! The CQL store that all tests share, as if each test had one of its own: ids, shards and tenants are moved to where no other test is.

use crate::cql::{CqlStore, tests::shared};
use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, EndedQuery, LedgerRow, Manifest, PartRef, PortFuture, Row, RunPage,
    SnapshotPart, Snapshots, ViewBatch, Views,
};
use campanile_schema::{
    ids::{JobId, RunId, ShardId},
    record::RunRecord,
    stored::audit::AuditRecord,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Ids of one test: a multiple of the slots, so that everything keeps its shard.
const IDS: u64 = 1 << 36;
/// Shards that a test names at most.
const SHARDS: u16 = 8;

pub struct Apart {
    store: Arc<CqlStore>,
    test: u64,
}

impl Apart {
    pub fn new() -> Self {
        static TESTS: AtomicU64 = AtomicU64::new(1);
        Self { store: shared().store.clone(), test: TESTS.fetch_add(1, Ordering::Relaxed) }
    }

    fn job(&self, job: JobId) -> JobId {
        JobId(job.0 + self.test * IDS)
    }

    fn id(&self, run: RunId) -> RunId {
        RunId(run.0 + self.test * IDS)
    }

    fn shard(&self, shard: ShardId) -> ShardId {
        assert!(shard.0 < SHARDS);
        ShardId(shard.0 + self.test as u16 * SHARDS)
    }

    fn tenant(&self, tenant: &str) -> String {
        format!("{}/{tenant}", self.test)
    }

    fn there(&self, record: &RunRecord) -> Arc<RunRecord> {
        let tenant = self.tenant(&record.tenant);
        Arc::new(RunRecord {
            job: self.job(record.job),
            run: self.id(record.run),
            tenant: tenant.into(),
            ..record.clone()
        })
    }

    fn here(&self, record: RunRecord) -> RunRecord {
        let tenant = record.tenant.split_once('/').unwrap().1.to_owned();
        let (job, run) = (record.job.0 - self.test * IDS, record.run.0 - self.test * IDS);
        RunRecord { job: JobId(job), run: RunId(run), tenant: tenant.into(), ..record }
    }

    /// A record without a tenant stays without one.
    fn record_there(&self, record: &AuditRecord) -> Arc<AuditRecord> {
        Arc::new(AuditRecord {
            id: record.id + self.test * IDS,
            tenant: record.tenant.as_ref().map(|tenant| self.tenant(tenant).into()),
            job: record.job.map(|job| self.job(job)),
            run: record.run.map(|run| self.id(run)),
            ..record.clone()
        })
    }

    /// None: another test's.
    fn record_here(&self, record: AuditRecord) -> Option<AuditRecord> {
        let back = self.test * IDS;
        let id = record.id.checked_sub(back).filter(|id| *id < IDS)?;
        let tenant = record.tenant.map(|tenant| tenant.split_once('/').unwrap().1.into());
        let (job, run) = (record.job.map(|job| JobId(job.0 - back)), record.run.map(|run| RunId(run.0 - back)));
        Some(AuditRecord { id, tenant, job, run, ..record })
    }

    fn page<'a>(&'a self, page: PortFuture<'a, RunPage>) -> PortFuture<'a, RunPage> {
        Box::pin(async move {
            let page = page.await?;
            let items = page.items.into_iter().map(|record| self.here(record)).collect();
            Ok(RunPage { items, next: page.next })
        })
    }
}

/// With other names for its job and its runs.
fn named(mut row: LedgerRow, job: impl Fn(JobId) -> JobId, run: impl Fn(RunId) -> RunId) -> LedgerRow {
    row.job = job(row.job);
    for entry in &mut row.entries {
        entry.run = entry.run.map(&run);
    }
    row
}

impl Snapshots for Apart {
    fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: Vec<Vec<u8>>,
    ) -> PortFuture<'_, PartRef> {
        self.store.write_part(self.shard(shard), number, part, chunks)
    }
    fn publish(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        self.store.publish(self.shard(shard), manifest)
    }
    fn load(&self, shard: ShardId, number: Option<u64>) -> PortFuture<'_, Option<Manifest>> {
        self.store.load(self.shard(shard), number)
    }
    fn forget(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        self.store.forget(self.shard(shard), manifest)
    }
    fn read_part(&self, shard: ShardId, part: PartRef) -> PortFuture<'_, Vec<Vec<u8>>> {
        self.store.read_part(self.shard(shard), part)
    }
}

impl Views for Apart {
    fn apply(&self, batch: ViewBatch) -> PortFuture<'_, ()> {
        let row = |row| match row {
            Row::Run(record) => Row::Run(self.there(&record)),
            Row::Reopened(record) => Row::Reopened(self.there(&record)),
            Row::DeadLetterDiscarded(record) => Row::DeadLetterDiscarded(self.there(&record)),
            Row::Ledger(row) => Row::Ledger(named(row, |job| self.job(job), |run| self.id(run))),
            Row::JobDeleted(job) => Row::JobDeleted(self.job(job)),
            Row::Audited(record) => Row::Audited(self.record_there(&record)),
            Row::Defined(row) => {
                Row::Defined(Arc::new(DefinitionRow { job: self.job(row.job), ..DefinitionRow::clone(&row) }))
            }
        };
        self.store.apply(ViewBatch {
            rows: batch.rows.into_iter().map(|(hlc, r)| (hlc, row(r))).collect(),
            applied: batch.applied.into_iter().map(|(shard, seq)| (self.shard(shard), seq)).collect(),
            position: batch.position,
        })
    }
    fn applied(&self, shard: ShardId) -> PortFuture<'_, u64> {
        self.store.applied(self.shard(shard))
    }
    fn run(&self, run: RunId) -> PortFuture<'_, Option<RunRecord>> {
        let found = self.store.run(self.id(run));
        Box::pin(async move { Ok(found.await?.map(|record| self.here(record))) })
    }
    fn job_runs(&self, job: JobId, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.page(self.store.job_runs(self.job(job), after, limit))
    }
    fn find_key(&self, job: JobId, key: &str) -> PortFuture<'_, Option<RunId>> {
        let found = self.store.find_key(self.job(job), key);
        Box::pin(async move { Ok(found.await?.map(|run| RunId(run.0 - self.test * IDS))) })
    }
    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> PortFuture<'_, Vec<LedgerRow>> {
        let found = self.store.ledger(self.job(job), from_ms, to_ms, limit);
        let back = self.test * IDS;
        let here = move |row| named(row, |job: JobId| JobId(job.0 - back), |run: RunId| RunId(run.0 - back));
        Box::pin(async move { Ok(found.await?.into_iter().map(here).collect()) })
    }
    fn dead_letters(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.page(self.store.dead_letters(&self.tenant(tenant), after, limit))
    }
    fn failed_runs(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.page(self.store.failed_runs(&self.tenant(tenant), after, limit))
    }
    fn ended_runs(&self, query: EndedQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, Option<RunPage>> {
        let tenant = query.tenant.as_ref().map(|tenant| self.tenant(tenant));
        let found = self.store.ended_runs(EndedQuery { tenant, ..query }, after, limit);
        Box::pin(async move {
            let Some(page) = found.await? else { return Ok(None) };
            let items = page.items.into_iter().map(|record| self.here(record)).collect();
            Ok(Some(RunPage { items, next: page.next }))
        })
    }
    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> PortFuture<'_, Vec<DefinitionRow>> {
        let found = self.store.definitions(self.job(job), before, limit);
        Box::pin(async move { Ok(found.await?.into_iter().map(|row| DefinitionRow { job, ..row }).collect()) })
    }
    fn retain(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        self.store.retain(before_ms, max_rows)
    }
    /// Without a tenant it sees what every test wrote: records of its own only.
    fn audit(&self, query: AuditQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, AuditPage> {
        let tenant = query.tenant.as_ref().map(|tenant| self.tenant(tenant));
        let job = query.job.map(|job| self.job(job));
        let run = query.run.map(|run| self.id(run));
        let found = self.store.audit(AuditQuery { tenant, job, run, ..query }, after, limit);
        Box::pin(async move {
            let page = found.await?;
            let items = page.items.into_iter().filter_map(|record| self.record_here(record)).collect();
            Ok(AuditPage { items, next: page.next })
        })
    }
    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        self.store.retain_audit(before_ms, max_rows)
    }
    fn append_log(&self, run: RunId, attempt: u32, chunk: Vec<u8>) -> PortFuture<'_, ()> {
        self.store.append_log(self.id(run), attempt, chunk)
    }
    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> PortFuture<'_, Vec<u8>> {
        self.store.read_log(self.id(run), attempt, offset, max_bytes)
    }
}
