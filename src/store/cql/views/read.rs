//! Pages of runs and of a job's ledger. An entry of a list counts only if the run's own row agrees with it.

use super::{
    super::{Core, connection::Kind, error},
    places::{history_bucket, tenant_bucket},
    write::list_name,
};
use crate::store::tables::TenantList;
use campanile_actors::ports::{LedgerRow, RunPage, StoreError};
use campanile_schema::{
    frame,
    ids::{JobId, RunId},
    limits,
    record::RunRecord,
};
use futures_util::future::try_join_all;
use std::collections::BTreeMap;

const DOING: &str = "history is read";
/// Partitions of a list that are asked at once: a job that runs rarely has its runs in few of many.
const BUCKETS_AT_ONCE: usize = 8;

fn decode<T: serde::de::DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    frame::decode(what, bytes).map_err(|e| error::damaged(DOING, e))
}

/// Numbers of a token, which is ours.
fn numbers(token: Option<&[u8]>) -> Option<(i64, i64)> {
    let (first, second) = token?.split_first_chunk::<8>()?;
    Some((i64::from_be_bytes(*first), i64::from_be_bytes(*second.first_chunk()?)))
}

fn token(first: i64, second: i64) -> Vec<u8> {
    [first.to_be_bytes(), second.to_be_bytes()].concat()
}

pub async fn run(core: &Core, run: RunId) -> Result<Option<RunRecord>, StoreError> {
    Ok(records(core, &[run]).await?.remove(&run))
}

/// The runs' own rows, those of a partition with one request.
async fn records(core: &Core, runs: &[RunId]) -> Result<BTreeMap<RunId, RunRecord>, StoreError> {
    let mut places: BTreeMap<(i32, i64), Vec<i64>> = BTreeMap::new();
    for run in runs {
        places.entry(core.place_of(*run)).or_default().push(run.0.cast_signed());
    }
    let (link, statement) = (&core.link, &core.link.statements.read_runs);
    let asked = places.into_iter().map(|((shard, range), runs)| async move {
        link.rows(Kind::View, statement, (shard, range, runs), DOING).await
    });
    let mut found = BTreeMap::new();
    for rows in try_join_all(asked).await? {
        for row in rows.rows::<(Vec<u8>,)>().map_err(|e| error::damaged(DOING, e))? {
            let (bytes,) = row.map_err(|e| error::damaged(DOING, e))?;
            let record: RunRecord = decode("run", &bytes)?;
            found.insert(record.run, record);
        }
    }
    Ok(found)
}

/// A page that is being filled.
struct Filling {
    page: RunPage,
    limit: usize,
    last: Vec<u8>,
}

impl Filling {
    fn new(limit: usize) -> Self {
        Self { page: RunPage::default(), limit: limit.clamp(1, limits::PAGE_SIZE_MAX), last: Vec::new() }
    }

    /// One more than the page holds: it tells whether there is a next one.
    fn ask(&self) -> i32 {
        i32::try_from(self.limit + 1).unwrap_or(i32::MAX)
    }

    /// False: the page is full, and this record is the first of the next one.
    fn add(&mut self, record: RunRecord, token: Vec<u8>) -> bool {
        if self.page.items.len() == self.limit {
            self.page.next = Some(self.last.clone());
            return false;
        }
        self.page.items.push(record);
        self.last = token;
        true
    }
}

/// Final runs of a job, newest first.
pub async fn job_runs(core: &Core, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
    let shard = core.shard_of(job);
    let (first, before) = numbers(after).unwrap_or((i64::MAX, i64::MAX));
    let mut filling = Filling::new(limit);
    let mut buckets = buckets(core, &core.link.statements.read_history_buckets, shard).await?;
    buckets.retain(|bucket| *bucket <= first);
    buckets.reverse();
    let entries = |bucket: i64, before: i64, ask: i32| async move {
        let statement = &core.link.statements.read_job_runs;
        let values = (shard, bucket, job.0.cast_signed(), before, ask);
        let rows = core.link.rows(Kind::View, statement, values, DOING).await?;
        rows.rows::<(i64,)>()
            .map_err(|e| error::damaged(DOING, e))?
            .map(|row| row.map(|(run,)| run))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| error::damaged(DOING, e))
    };
    for some in buckets.chunks(BUCKETS_AT_ONCE) {
        let begin = |bucket: i64| if bucket == first { before } else { i64::MAX };
        let asked = some.iter().map(|bucket| entries(*bucket, begin(*bucket), filling.ask()));
        let found = try_join_all(asked).await?;
        for (bucket, mut runs) in some.iter().zip(found) {
            loop {
                let ids: Vec<RunId> = runs.iter().map(|run| RunId(run.cast_unsigned())).collect();
                let mut records = records(core, &ids).await?;
                for run in ids {
                    if let Some(record) = records.remove(&run).filter(|r| r.state.is_final())
                        && !filling.add(record, token(*bucket, run.0.cast_signed()))
                    {
                        return Ok(filling.page);
                    }
                }
                match runs.last() {
                    Some(last) if runs.len() as u64 == u64::from(filling.ask().cast_unsigned()) => {
                        runs = entries(*bucket, *last, filling.ask()).await?;
                    }
                    Some(_) | None => break,
                }
            }
        }
    }
    Ok(filling.page)
}

/// A tenant's list, newest first.
pub async fn tenant_runs(
    core: &Core,
    list: TenantList,
    tenant: &str,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<RunPage, StoreError> {
    let before = numbers(after).unwrap_or((i64::MAX, i64::MAX));
    let mut filling = Filling::new(limit);
    let mut buckets = buckets(core, &core.link.statements.read_tenant_buckets, tenant).await?;
    buckets.retain(|bucket| *bucket <= tenant_bucket(before.0));
    buckets.reverse();
    let entries = |bucket: i64, before: (i64, i64), ask: i32| async move {
        let statement = &core.link.statements.read_tenant_runs;
        let values = (tenant, bucket, list_name(list), before.0, before.1, ask);
        let rows = core.link.rows(Kind::View, statement, values, DOING).await?;
        rows.rows::<(i64, i64)>()
            .map_err(|e| error::damaged(DOING, e))?
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| error::damaged(DOING, e))
    };
    for some in buckets.chunks(BUCKETS_AT_ONCE) {
        let found = try_join_all(some.iter().map(|bucket| entries(*bucket, before, filling.ask()))).await?;
        for (bucket, mut runs) in some.iter().zip(found) {
            loop {
                let ids: Vec<RunId> = runs.iter().map(|(_, run)| RunId(run.cast_unsigned())).collect();
                let records = records(core, &ids).await?;
                for (ended, run) in &runs {
                    let record = records.get(&RunId(run.cast_unsigned()));
                    if let Some(record) = record.filter(|r| r.ended_ms == Some(*ended) && list.holds(r))
                        && !filling.add(record.clone(), token(*ended, *run))
                    {
                        return Ok(filling.page);
                    }
                }
                match runs.last() {
                    Some(last) if runs.len() as u64 == u64::from(filling.ask().cast_unsigned()) => {
                        runs = entries(*bucket, *last, filling.ask()).await?;
                    }
                    Some(_) | None => break,
                }
            }
        }
    }
    Ok(filling.page)
}

/// Intervals of a job that touch `(from, to]`, oldest first: they join, so they are those that end after `from` and begin before `to`.
pub async fn ledger(
    core: &Core,
    job: JobId,
    from_ms: i64,
    to_ms: i64,
    limit: usize,
) -> Result<Vec<LedgerRow>, StoreError> {
    let shard = core.shard_of(job);
    let limit = limit.min(limits::PAGE_SIZE_MAX);
    let mut buckets = buckets(core, &core.link.statements.read_history_buckets, shard).await?;
    buckets.retain(|bucket| *bucket >= history_bucket(from_ms.saturating_add(1)));
    let ask = i32::try_from(limit).unwrap_or(i32::MAX);
    let mut found = Vec::new();
    for some in buckets.chunks(BUCKETS_AT_ONCE) {
        let asked = some.iter().map(|bucket| async move {
            let values = (shard, *bucket, job.0.cast_signed(), from_ms, ask.max(1));
            core.link.rows(Kind::View, &core.link.statements.read_ledger, values, DOING).await
        });
        for rows in try_join_all(asked).await? {
            for row in rows.rows::<(Vec<u8>,)>().map_err(|e| error::damaged(DOING, e))? {
                let (bytes,) = row.map_err(|e| error::damaged(DOING, e))?;
                let row: LedgerRow = decode("ledger row", &bytes)?;
                if found.len() >= limit || row.from_ms >= to_ms {
                    return Ok(found);
                }
                found.push(row);
            }
        }
    }
    Ok(found)
}

pub async fn find_key(core: &Core, job: JobId, key: &str) -> Result<Option<RunId>, StoreError> {
    let values = (job.0.cast_signed(), key);
    let rows = core.link.rows(Kind::View, &core.link.statements.read_key, values, DOING).await?;
    let run = rows.maybe_first_row::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
    Ok(run.map(|(run,)| RunId(run.cast_unsigned())))
}

/// Buckets that a shard or a tenant has, oldest first.
async fn buckets(
    core: &Core,
    statement: &scylla::statement::prepared::PreparedStatement,
    of: impl scylla::serialize::value::SerializeValue,
) -> Result<Vec<i64>, StoreError> {
    let rows = core.link.rows(Kind::View, statement, (of,), DOING).await?;
    let numbers = rows.rows::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
    numbers.map(|row| row.map(|(bucket,)| bucket).map_err(|e| error::damaged(DOING, e))).collect()
}
