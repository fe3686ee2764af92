//! Records of runs, and a tenant's lists. An entry of a list counts only if the run's record agrees with it.

use super::{
    super::{Core, connection::RequestKind, error},
    pack::{self, Packed},
    places::tenant_bucket,
    write::list_name,
};
use crate::tables::TenantList;
use campanile_ports::{RunPage, StoreError};
use campanile_schema::{
    frame,
    ids::{JobId, RunId},
    limits,
    record::RunRecord,
};
use futures_util::future::try_join_all;
use std::collections::BTreeMap;

pub const DOING: &str = "history is read";
/// Partitions of a list that are asked at once: a tenant that fails rarely has its runs in few of many.
const BUCKETS_AT_ONCE: usize = 8;

pub fn decode<T: serde::de::DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
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

/// The newest records of runs. All packs of a run's range are read, those of a range with one request; what is in none of them is looked for
/// among the rows of single runs.
pub async fn records(core: &Core, runs: &[RunId]) -> Result<BTreeMap<RunId, RunRecord>, StoreError> {
    let mut places: BTreeMap<(i32, i64), Vec<RunId>> = BTreeMap::new();
    for run in runs {
        places.entry(core.packs_of(*run)).or_default().push(*run);
    }
    let (link, statement) = (&core.link, &core.link.statements.read_packs);
    let asked = places.into_iter().map(|(place, runs)| async move {
        let rows = link.rows(RequestKind::View, statement, place, DOING).await?;
        let packs = rows.rows::<(&[u8],)>().map_err(|e| error::damaged(DOING, e))?;
        let unpacked = packs.map(|row| {
            let (bytes,) = row.map_err(|e| error::damaged(DOING, e))?;
            pack::unpack(bytes).map_err(|what| error::damaged(DOING, what))
        });
        let packs = unpacked.collect::<Result<Vec<_>, _>>()?;
        newest(&packs, &runs)
    });
    let mut found: BTreeMap<RunId, RunRecord> = try_join_all(asked).await?.into_iter().flatten().collect();
    let others: Vec<RunId> = runs.iter().copied().filter(|run| !found.contains_key(run)).collect();
    found.extend(single(core, &others).await?);
    Ok(found)
}

/// What packs say last of these runs; not of one whose last record is in none of them.
fn newest(packs: &[Vec<u8>], wanted: &[RunId]) -> Result<Vec<(RunId, RunRecord)>, StoreError> {
    let mut last: BTreeMap<RunId, Packed<'_>> = BTreeMap::new();
    for bytes in packs {
        let packed = pack::runs(bytes).map_err(|what| error::damaged(DOING, what))?;
        for packed in packed.into_iter().filter(|packed| wanted.contains(&packed.run)) {
            if last.get(&packed.run).is_none_or(|known| known.hlc < packed.hlc) {
                last.insert(packed.run, packed);
            }
        }
    }
    let records = last.into_iter().filter_map(|(run, packed)| Some((run, packed.record?)));
    records.map(|(run, bytes)| Ok((run, decode("run", bytes)?))).collect()
}

/// Rows of single runs, those of a partition with one request.
async fn single(core: &Core, runs: &[RunId]) -> Result<BTreeMap<RunId, RunRecord>, StoreError> {
    let mut places: BTreeMap<(i32, i64), Vec<i64>> = BTreeMap::new();
    for run in runs {
        places.entry(core.place_of(*run)).or_default().push(run.0.cast_signed());
    }
    let (link, statement) = (&core.link, &core.link.statements.read_runs);
    let asked = places.into_iter().map(|((shard, range), runs)| async move {
        link.rows(RequestKind::View, statement, (shard, range, runs), DOING).await
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
pub struct Filling {
    pub page: RunPage,
    limit: usize,
    last: Vec<u8>,
}

impl Filling {
    pub fn new(limit: usize) -> Self {
        Self { page: RunPage::default(), limit: limit.clamp(1, limits::PAGE_SIZE_MAX), last: Vec::new() }
    }

    /// One more than the page holds: it tells whether there is a next one.
    pub fn ask(&self) -> i32 {
        i32::try_from(self.limit + 1).unwrap_or(i32::MAX)
    }

    /// False: the page is full, and this record is the first of the next one.
    pub fn add(&mut self, record: RunRecord, token: Vec<u8>) -> bool {
        if self.page.items.len() == self.limit {
            self.page.next = Some(self.last.clone());
            return false;
        }
        self.page.items.push(record);
        self.last = token;
        true
    }
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
        let rows = core.link.rows(RequestKind::View, statement, values, DOING).await?;
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

pub async fn find_key(core: &Core, job: JobId, key: &str) -> Result<Option<RunId>, StoreError> {
    let values = (job.0.cast_signed(), key);
    let rows = core.link.rows(RequestKind::View, &core.link.statements.read_key, values, DOING).await?;
    let run = rows.maybe_first_row::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
    Ok(run.map(|(run,)| RunId(run.cast_unsigned())))
}

/// Buckets that a shard or a tenant has, oldest first.
pub async fn buckets(
    core: &Core,
    statement: &scylla::statement::prepared::PreparedStatement,
    of: impl scylla::serialize::value::SerializeValue,
) -> Result<Vec<i64>, StoreError> {
    let rows = core.link.rows(RequestKind::View, statement, (of,), DOING).await?;
    let numbers = rows.rows::<(i64,)>().map_err(|e| error::damaged(DOING, e))?;
    numbers.map(|row| row.map(|(bucket,)| bucket).map_err(|e| error::damaged(DOING, e))).collect()
}
