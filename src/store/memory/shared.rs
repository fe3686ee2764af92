//! The store that nodes of a cluster share, in memory: for tests with several nodes in one process. A node sees it through a
//! [`SharedEnd`], which can be cut off or made to lose answers ([`Weather`]).

use super::{
    tables::MemoryTables,
    weather::{Lost, Weather},
};
use crate::{
    progress::Progress,
    tables::{Tables, TenantList},
};
use campanile_core::ownership::{
    rows::{SessionRow, ShardRow},
    store::{Batch, Statement, StoreAnswer},
};
use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, EndedQuery, Leases, LedgerRow, Manifest, PartRef, PortFuture, RunPage,
    SnapshotPart, Snapshots, StoreError, ViewBatch, Views,
};
use campanile_schema::{
    format::Formats,
    ids::{Epoch, JobId, RunId, SessionId, ShardId},
    record::RunRecord,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// How long a cut-off node waits for an answer.
const TIMEOUT: Duration = Duration::from_millis(200);

/// So many rows of a lane are deleted at once, as on a CQL server.
const ROWS_PER_BUCKET: u64 = 4_096;

/// Of a part of a snapshot.
type Chunks = Vec<Vec<u8>>;

/// See the module's text.
pub struct SharedMemory {
    shards: u16,
    rows: Mutex<Rows>,
    parts: Mutex<BTreeMap<(ShardId, u64, SnapshotPart), Chunks>>,
    manifests: Mutex<BTreeMap<(ShardId, u64), Manifest>>,
    tables: MemoryTables,
    progress: Mutex<Progress>,
    formats: Mutex<Formats>,
    late: Mutex<Vec<(SessionId, Statement)>>,
}

#[derive(Default)]
struct Rows {
    last_session: u64,
    sessions: BTreeMap<SessionId, SessionRow>,
    shards: BTreeMap<ShardId, ShardRow>,
    lanes: BTreeMap<(SessionId, u16), Lane>,
}

#[derive(Default)]
struct Lane {
    rows: BTreeMap<u64, Batch>,
    /// Rows below were deleted: what is written there later does not come back.
    begins: u64,
}

impl Lane {
    fn write(&mut self, seq: u64, batch: Batch) {
        if seq >= self.begins {
            self.rows.insert(seq, batch);
        }
    }

    /// Whole buckets only.
    fn delete(&mut self, upto: u64) {
        self.begins = self.begins.max(upto.saturating_add(1) / ROWS_PER_BUCKET * ROWS_PER_BUCKET);
        self.rows = self.rows.split_off(&self.begins);
    }
}

/// A node's way to the store.
#[derive(Clone)]
pub struct SharedEnd {
    store: Arc<SharedMemory>,
    weather: Arc<Weather>,
}

impl SharedMemory {
    pub fn new(shards: u16) -> Arc<Self> {
        Self::of_formats(shards, Formats::OURS)
    }

    /// As a release with these formats made it.
    pub fn of_formats(shards: u16, formats: Formats) -> Arc<Self> {
        Arc::new(Self {
            shards,
            rows: Mutex::default(),
            parts: Mutex::default(),
            manifests: Mutex::default(),
            tables: MemoryTables::default(),
            progress: Mutex::default(),
            formats: Mutex::new(formats),
            late: Mutex::default(),
        })
    }

    pub fn end(self: &Arc<Self>) -> SharedEnd {
        SharedEnd { store: self.clone(), weather: Arc::default() }
    }

    /// Who owns each shard.
    pub fn owners(&self) -> BTreeMap<ShardId, SessionId> {
        self.rows.lock().shards.iter().filter_map(|(shard, row)| Some((*shard, row.owner?))).collect()
    }

    /// How often each shard was claimed.
    pub fn epochs(&self) -> BTreeMap<ShardId, Epoch> {
        self.rows.lock().shards.iter().map(|(shard, row)| (*shard, row.epoch)).collect()
    }

    /// What was lost to come late happens now: what became of each, which nobody hears any more.
    pub fn deliver_late(&self) -> Vec<(Statement, StoreAnswer)> {
        let late = std::mem::take(&mut *self.late.lock());
        late.into_iter().map(|(own, statement)| (statement.clone(), self.execute(own, statement))).collect()
    }

    fn execute(&self, own: SessionId, statement: Statement) -> StoreAnswer {
        let mut rows = self.rows.lock();
        match statement {
            Statement::PutSession { session, expected, row } => {
                let stands = rows.sessions.get(&session);
                if stands.map(|row| row.version) != expected {
                    return StoreAnswer::Session(stands.cloned());
                }
                rows.sessions.insert(session, row);
                StoreAnswer::Done
            }
            Statement::DropSession { session, expected } => {
                let stands = rows.sessions.get(&session);
                if stands.map(|row| row.version) != Some(expected) {
                    return StoreAnswer::Session(stands.cloned());
                }
                rows.sessions.remove(&session);
                StoreAnswer::Done
            }
            Statement::PutShard { shard, expected, row } => {
                let stands = rows.shards.entry(shard).or_default();
                if stands.version != expected {
                    return StoreAnswer::Shard(stands.clone());
                }
                *stands = row;
                StoreAnswer::Done
            }
            Statement::ReadSession { session } => StoreAnswer::Session(rows.sessions.get(&session).cloned()),
            Statement::ReadShard { shard } => StoreAnswer::Shard(rows.shards.entry(shard).or_default().clone()),
            Statement::ReadShards => {
                let row = |shard| (shard, rows.shards.get(&shard).cloned().unwrap_or_default());
                StoreAnswer::Shards((0..self.shards).map(ShardId).map(row).collect())
            }
            Statement::Append { lane, seq, batch } => {
                rows.lanes.entry((own, lane)).or_default().write(seq, batch);
                StoreAnswer::Done
            }
            Statement::Rewrite { session, lane, rows: again } => {
                let lane = rows.lanes.entry((session, lane)).or_default();
                again.into_iter().for_each(|(seq, batch)| lane.write(seq, batch));
                StoreAnswer::Done
            }
            Statement::ReadLane { session, lane, after } => {
                let known = rows.lanes.entry((session, lane)).or_default();
                let mut next = after;
                let contiguous = known.rows.range(after + 1..).map_while(|(seq, batch)| {
                    next += 1;
                    (*seq == next).then(|| (*seq, batch.clone()))
                });
                StoreAnswer::Lane(contiguous.collect())
            }
            Statement::DeleteRows { session, lane, upto } => {
                rows.lanes.entry((session, lane)).or_default().delete(upto);
                StoreAnswer::Done
            }
        }
    }
}

impl SharedEnd {
    pub fn weather(&self) -> &Weather {
        &self.weather
    }

    async fn through(&self) -> Result<(), StoreError> {
        if self.weather.cut.load(Ordering::Acquire) {
            tokio::time::sleep(TIMEOUT).await;
            return Err(StoreError::Unavailable("cut off".to_owned()));
        }
        Ok(())
    }

    fn call<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&SharedMemory) -> Result<T, StoreError> + Send + 'a,
    ) -> PortFuture<'a, T> {
        Box::pin(async move {
            self.through().await?;
            call(&self.store)
        })
    }
}

impl Leases for SharedEnd {
    fn execute(&self, own: SessionId, statement: Statement) -> Pin<Box<dyn Future<Output = StoreAnswer> + Send + '_>> {
        Box::pin(async move {
            if self.through().await.is_err() {
                return StoreAnswer::Unknown;
            }
            match self.weather.next(&statement) {
                None => self.store.execute(own, statement),
                Some(Lost::NotApplied) => StoreAnswer::Unknown,
                Some(Lost::Applied) => {
                    self.store.execute(own, statement);
                    StoreAnswer::Unknown
                }
                Some(Lost::Late) => {
                    self.store.late.lock().push((own, statement));
                    StoreAnswer::Unknown
                }
            }
        })
    }

    fn next_session(&self) -> PortFuture<'_, SessionId> {
        self.call(|store| {
            let mut rows = store.rows.lock();
            rows.last_session += 1;
            Ok(SessionId(rows.last_session))
        })
    }

    fn formats(&self) -> PortFuture<'_, Formats> {
        self.call(|store| Ok(*store.formats.lock()))
    }

    fn raise_formats(&self, to: Formats) -> PortFuture<'_, Formats> {
        self.call(move |store| {
            let mut stands = store.formats.lock();
            *stands = stands.newest(to);
            Ok(*stands)
        })
    }

    fn read_lane(
        &self,
        session: SessionId,
        lane: u16,
        after: u64,
        upto: u64,
        max_bytes: usize,
    ) -> PortFuture<'_, Vec<(u64, Vec<u8>)>> {
        self.call(move |store| {
            let rows = store.rows.lock();
            let Some(lane) = rows.lanes.get(&(session, lane)).filter(|_| after < upto) else { return Ok(Vec::new()) };
            let (mut next, mut bytes) = (after, 0);
            let page = lane.rows.range(after + 1..=upto).map_while(|(seq, batch)| {
                next += 1;
                let more = *seq == next && (bytes == 0 || bytes < max_bytes);
                bytes += batch.len();
                more.then(|| (*seq, batch.to_vec()))
            });
            Ok(page.collect())
        })
    }
}

impl Snapshots for SharedEnd {
    fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: Vec<Vec<u8>>,
    ) -> PortFuture<'_, PartRef> {
        self.call(move |store| {
            let crc = chunks.iter().fold(0, |crc, chunk| crc32c::crc32c_append(crc, chunk));
            let bytes = chunks.iter().map(|chunk| chunk.len() as u64).sum();
            let reference = PartRef { number, part, chunks: chunks.len() as u32, bytes, crc };
            store.parts.lock().insert((shard, number, part), chunks);
            Ok(reference)
        })
    }

    fn publish(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        self.call(move |store| {
            store.manifests.lock().insert((shard, manifest.number), manifest);
            Ok(())
        })
    }

    fn load(&self, shard: ShardId, number: Option<u64>) -> PortFuture<'_, Option<Manifest>> {
        self.call(move |store| Ok(number.and_then(|number| store.manifests.lock().get(&(shard, number)).cloned())))
    }

    fn read_part(&self, shard: ShardId, part: PartRef) -> PortFuture<'_, Vec<Vec<u8>>> {
        self.call(move |store| {
            let parts = store.parts.lock();
            let chunks = parts.get(&(shard, part.number, part.part)).cloned();
            chunks.ok_or_else(|| StoreError::Corrupt(format!("shard {shard}: part {} is missing", part.number)))
        })
    }

    fn forget(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        self.call(move |store| {
            store.manifests.lock().retain(|(of, number), _| *of != shard || *number >= manifest.number);
            let named =
                |number: u64, part: SnapshotPart| manifest.parts.iter().any(|p| p.number == number && p.part == part);
            store
                .parts
                .lock()
                .retain(|(of, number, part), _| *of != shard || *number > manifest.number || named(*number, *part));
            Ok(())
        })
    }
}

impl Views for SharedEnd {
    fn apply(&self, batch: ViewBatch) -> PortFuture<'_, ()> {
        self.call(move |store| {
            if self.weather.views_cut.load(Ordering::Acquire) {
                return Err(StoreError::Unavailable("the read model cannot be written".to_owned()));
            }
            store.tables.apply(&batch.rows, batch.position)?;
            store.progress.lock().note(&batch);
            Ok(())
        })
    }
    fn applied(&self, shard: ShardId) -> PortFuture<'_, u64> {
        self.call(move |store| Ok(store.progress.lock().of(shard)))
    }
    fn run(&self, run: RunId) -> PortFuture<'_, Option<RunRecord>> {
        self.call(move |store| store.tables.run(run))
    }
    fn job_runs(&self, job: JobId, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        self.call(move |store| store.tables.job_runs(job, after.as_deref(), limit))
    }
    fn find_key(&self, job: JobId, key: &str) -> PortFuture<'_, Option<RunId>> {
        let key = key.to_owned();
        self.call(move |store| store.tables.find_key(job, &key))
    }
    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> PortFuture<'_, Vec<LedgerRow>> {
        self.call(move |store| store.tables.ledger(job, from_ms, to_ms, limit))
    }
    fn dead_letters(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        let tenant = tenant.to_owned();
        self.call(move |store| store.tables.tenant_runs(TenantList::DeadLetters, &tenant, after.as_deref(), limit))
    }
    fn failed_runs(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage> {
        let tenant = tenant.to_owned();
        self.call(move |store| store.tables.tenant_runs(TenantList::Failed, &tenant, after.as_deref(), limit))
    }
    fn retain(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        self.call(move |store| store.tables.retain(before_ms, max_rows))
    }
    /// As on a CQL server.
    fn ended_runs(&self, _: EndedQuery, _: Option<Vec<u8>>, _: usize) -> PortFuture<'_, Option<RunPage>> {
        Box::pin(async { Ok(None) })
    }
    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> PortFuture<'_, Vec<DefinitionRow>> {
        self.call(move |store| store.tables.definitions(job, before, limit))
    }
    fn audit(&self, query: AuditQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, AuditPage> {
        self.call(move |store| store.tables.audit(&query, after.as_deref(), limit))
    }
    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64> {
        self.call(move |store| store.tables.retain_audit(before_ms, max_rows))
    }
    fn append_log(&self, run: RunId, attempt: u32, chunk: Vec<u8>) -> PortFuture<'_, ()> {
        self.call(move |store| store.tables.append_log(run, attempt, &chunk))
    }
    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> PortFuture<'_, Vec<u8>> {
        self.call(move |store| store.tables.read_log(run, attempt, offset, max_bytes))
    }
}
