//! The port `Views`: the read model, as rows that are only ever written. Retention is their TTL.

mod audit;
mod definitions;
mod lists;
mod logs;
mod pack;
mod places;
mod read;
mod write;

pub use logs::Logs;

use super::CqlStore;
use super::{connection::RequestKind, error};
use crate::tables::TenantList;
use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, EndedQuery, LedgerRow, PortFuture, RunPage, ViewBatch, Views,
};
use campanile_schema::{
    ids::{JobId, RunId, ShardId},
    record::RunRecord,
};
use places::{Partition, applied_bucket, shard_column};
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Buckets that are remembered as noted; with more all are forgotten, and noted again.
const REMEMBERED: usize = 65_536;
/// Then a bucket is noted again: its row would end before rows that are written now.
const NOTED_FOR: Duration = Duration::from_hours(12);

/// Buckets that this process has noted in the store, and when.
#[derive(Default)]
pub struct NotedBuckets(Mutex<BTreeMap<Partition, Instant>>);

impl NotedBuckets {
    fn is_new(&self, place: &Partition) -> bool {
        match place {
            Partition::History(..) | Partition::Fires(..) | Partition::Tenant(..) | Partition::Audit(..) => {
                let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                known.get(place).is_none_or(|noted| noted.elapsed() > NOTED_FOR)
            }
            Partition::Runs(..)
            | Partition::Packs(..)
            | Partition::Definitions(..)
            | Partition::Key(..)
            | Partition::Applied(_) => false,
        }
    }

    fn add(&self, places: Vec<Partition>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let now = Instant::now();
        known.extend(places.into_iter().map(|place| (place, now)));
    }
}

impl Views for CqlStore {
    fn apply(&self, batch: ViewBatch) -> PortFuture<'_, ()> {
        self.spawn(|core| async move { write::apply(&core, &batch).await })
    }

    fn applied(&self, shard: ShardId) -> PortFuture<'_, u64> {
        const DOING: &str = "how far a shard is projected is read";
        self.spawn(move |core| async move {
            let values = (applied_bucket(shard), shard_column(shard));
            let rows = core.link.rows(RequestKind::View, &core.link.statements.read_applied, values, DOING).await?;
            let seq = rows.maybe_first_row::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
            Ok(seq.map_or(0, |(seq,)| seq.cast_unsigned()))
        })
    }

    fn run(&self, run: RunId) -> PortFuture<'_, Option<RunRecord>> {
        self.spawn(move |core| async move { read::run(&core, run).await })
    }

    fn job_runs(&self, job: JobId, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.spawn(move |core| async move { lists::job_runs(&core, job, after.as_deref(), limit).await })
    }

    fn find_key(&self, job: JobId, key: &str) -> PortFuture<'_, Option<RunId>> {
        let key = key.to_owned();
        self.spawn(move |core| async move { read::find_key(&core, job, &key).await })
    }

    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> PortFuture<'_, Vec<LedgerRow>> {
        self.spawn(move |core| async move { lists::ledger(&core, job, from_ms, to_ms, limit).await })
    }

    fn dead_letters(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.tenant_list(TenantList::DeadLetters, tenant, after, limit)
    }

    fn failed_runs(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.tenant_list(TenantList::Failed, tenant, after, limit)
    }

    /// An entry for each run that ended would be one more row for each trigger (docs/adr/0026-two-rows-a-run.md).
    fn ended_runs(&self, _: EndedQuery, _: Option<Vec<u8>>, _: usize) -> PortFuture<'_, Option<RunPage>> {
        Box::pin(async { Ok(None) })
    }

    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> PortFuture<'_, Vec<DefinitionRow>> {
        self.spawn(move |core| async move { definitions::list(&core, job, before, limit).await })
    }

    fn audit(&self, query: AuditQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, AuditPage> {
        self.spawn(move |core| async move { audit::list(&core, &query, after.as_deref(), limit).await })
    }

    /// Rows go by their TTL.
    fn retain_audit(&self, _before_ms: i64, _max_rows: usize) -> PortFuture<'_, u64> {
        Box::pin(async { Ok(0) })
    }

    /// Rows go by their TTL.
    fn retain(&self, _before_ms: i64, _max_rows: usize) -> PortFuture<'_, u64> {
        Box::pin(async { Ok(0) })
    }

    fn append_log(&self, run: RunId, attempt: u32, chunk: Vec<u8>) -> PortFuture<'_, ()> {
        self.spawn(move |core| async move { logs::append(&core, run, attempt, chunk).await })
    }

    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> PortFuture<'_, Vec<u8>> {
        self.spawn(move |core| async move { logs::read(&core.link, run, attempt, offset, max_bytes).await })
    }
}

impl CqlStore {
    fn tenant_list(
        &self,
        list: TenantList,
        tenant: &str,
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> PortFuture<'_, RunPage> {
        let tenant = tenant.to_owned();
        self.spawn(move |core| async move { read::tenant_runs(&core, list, &tenant, after.as_deref(), limit).await })
    }
}
