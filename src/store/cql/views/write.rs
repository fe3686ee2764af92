//! One `apply`: rows gathered by partition, a request for each or for a few small ones, and then the positions.
//!
//! A run that a schedule started is in two rows: the interval that it closed, from which the job's list follows too, and a pack, which it shares
//! with what else ended in its shard.
//!
//! Nothing is read: an entry that a later event made stale stays until its TTL, and readers check every entry against the run's own row. So
//! rows may be applied again, in any order, by anybody: the newest event wins by its timestamp.

use super::{
    super::{Core, connection::RequestKind, error},
    pack,
    places::{
        EVERY_TENANT, Partition, applied_bucket, audit_bucket, definitions_range, fires_bucket, fires_shards,
        history_bucket, pack_range, range_of, shard_column, tenant_bucket,
    },
};
use crate::tables::{TenantList, discarded, failed, fired, is_listed_by_fire};
use campanile_ports::{DefinitionRow, LedgerRow, Row, StoreError, ViewBatch};
use campanile_schema::{
    frame,
    ids::{JobId, RunId, ShardId},
    limits,
    record::RunRecord,
    stored::audit::AuditRecord,
};
use futures_util::future::try_join_all;
use scylla::{statement::prepared::PreparedStatement, value::CqlValue};
use std::collections::BTreeMap;

type Write<'a> = (&'a PreparedStatement, Vec<CqlValue>);

pub fn list_name(list: TenantList) -> &'static str {
    match list {
        TenantList::DeadLetters => "DEAD",
        TenantList::Failed => "FAILED",
    }
}

/// Applies rows, and when all are there the positions.
pub async fn apply(core: &Core, batch: &ViewBatch) -> Result<(), StoreError> {
    let mut gathered = GatheredWrites::new(core);
    for (hlc, row) in &batch.rows {
        gathered.row(*hlc, row);
    }
    gathered.pack();
    let new: Vec<Partition> = gathered.places.keys().filter(|place| core.known.is_new(place)).cloned().collect();
    for place in &new {
        gathered.note_bucket(place);
    }
    // Before the packs that send readers to them.
    gathered.alone().send().await?;
    gathered.send().await?;
    core.known.add(new);
    let mut positions = GatheredWrites::new(core);
    for (shard, seq) in &batch.applied {
        positions.applied(*shard, *seq);
    }
    positions.send().await
}

/// Runs of a partition that are not packed yet: id, hybrid time and record, which is empty where it has a row of its own.
type Unpacked = Vec<(RunId, u64, Vec<u8>)>;

struct GatheredWrites<'a> {
    core: &'a Core,
    places: BTreeMap<Partition, Vec<Write<'a>>>,
    /// By shard and range.
    runs: BTreeMap<(i32, i64), Unpacked>,
}

fn long(number: u64) -> CqlValue {
    CqlValue::BigInt(number.cast_signed())
}

impl<'a> GatheredWrites<'a> {
    fn new(core: &'a Core) -> Self {
        Self { core, places: BTreeMap::new(), runs: BTreeMap::new() }
    }

    /// Takes out the rows of runs that are in no pack.
    fn alone(&mut self) -> Self {
        let places = self.places.extract_if(.., |place, _| matches!(place, Partition::Runs(..)));
        Self { core: self.core, places: places.collect(), runs: BTreeMap::new() }
    }

    fn put(&mut self, place: Partition, statement: &'a PreparedStatement, values: Vec<CqlValue>) {
        self.places.entry(place).or_default().push((statement, values));
    }

    fn row(&mut self, hlc: u64, row: &Row) {
        match row {
            Row::Run(record) => self.run(hlc, record),
            Row::Reopened(record) => self.record(hlc, record),
            Row::DeadLetterDiscarded(record) => self.run(hlc, &discarded(record)),
            Row::Ledger(row) => self.ledger(hlc.cast_signed(), row),
            // Its runs stay until retention.
            Row::JobDeleted(job) => self.forget_definitions(hlc.cast_signed(), *job, i64::MAX),
            Row::Audited(record) => self.audited(hlc.cast_signed(), record),
            Row::Defined(row) => self.defined(hlc.cast_signed(), row),
        }
    }

    /// A final run: its record, and where it stands in lists.
    fn run(&mut self, hlc: u64, record: &RunRecord) {
        self.record(hlc, record);
        let hlc = hlc.cast_signed();
        if let Some(key) = &record.key {
            let job = record.job.0.cast_signed();
            let values = vec![long(record.job.0), CqlValue::Text(key.clone()), long(record.run.0)];
            let ttl_s = self.core.key_ttl_s(record);
            self.put_for(Partition::Key(job, key.clone()), &self.core.link.statements.put_key, values, (hlc, ttl_s));
        }
        let Some(ended) = record.ended_ms else { return };
        let lists = [(TenantList::DeadLetters, record.dead_letter), (TenantList::Failed, failed(record.state))];
        for (list, _) in lists.into_iter().filter(|(_, stands)| *stands) {
            let bucket = tenant_bucket(ended);
            let values = vec![
                CqlValue::Text(record.tenant.to_string()),
                CqlValue::BigInt(bucket),
                CqlValue::Text(list_name(list).to_owned()),
                CqlValue::BigInt(ended),
                long(record.run.0),
            ];
            let place = Partition::Tenant(record.tenant.to_string(), bucket);
            self.put_history(place, &self.core.link.statements.put_tenant_run, values, hlc);
        }
    }

    fn record(&mut self, hlc: u64, record: &RunRecord) {
        let statements = &self.core.link.statements;
        let (shard, run) = (record.run.shard(self.core.shards), record.run);
        let mut bytes = frame::encode(record);
        if !pack::fits(&bytes) {
            let (column, range) = (shard_column(shard), range_of(run));
            let record = CqlValue::Blob(std::mem::take(&mut bytes));
            let values = vec![CqlValue::Int(column), CqlValue::BigInt(range), long(run.0), record];
            self.put_history(Partition::Runs(column, range), &statements.put_run, values, hlc.cast_signed());
        }
        self.runs.entry((shard_column(shard), pack_range(run))).or_default().push((run, hlc, bytes));
        if is_listed_by_fire(record) {
            return;
        }
        let (shard, bucket) = (self.core.shard_of(record.job), history_bucket(record.created_ms));
        let values = vec![CqlValue::Int(shard), CqlValue::BigInt(bucket), long(record.job.0), long(run.0)];
        self.put_history(Partition::History(shard, bucket), &statements.put_job_run, values, hlc.cast_signed());
    }

    /// Makes rows of what was gathered of runs.
    fn pack(&mut self) {
        for ((shard, range), runs) in std::mem::take(&mut self.runs) {
            for pack in pack::packs(&runs) {
                let (newest, sum) = (pack.newest.cast_signed(), pack.sum());
                let key =
                    [CqlValue::Int(shard), CqlValue::BigInt(range), CqlValue::BigInt(newest), CqlValue::BigInt(sum)];
                let values = key.into_iter().chain([CqlValue::Blob(pack.bytes)]).collect();
                self.put_history(Partition::Packs(shard, range), &self.core.link.statements.put_pack, values, newest);
            }
        }
    }

    fn ledger(&mut self, hlc: i64, row: &LedgerRow) {
        let statements = &self.core.link.statements;
        let shard = row.job.shard(self.core.shards);
        let (place, statement) = if fired(row).is_some() {
            (Partition::Fires(fires_shards(shard), fires_bucket(row.to_ms)), &statements.put_fire)
        } else {
            (Partition::History(shard_column(shard), history_bucket(row.to_ms)), &statements.put_ledger)
        };
        let (Partition::Fires(of, bucket) | Partition::History(of, bucket)) = place else { return };
        let values = vec![
            CqlValue::Int(of),
            CqlValue::BigInt(bucket),
            long(row.job.0),
            CqlValue::BigInt(row.to_ms),
            CqlValue::BigInt(row.from_ms),
            CqlValue::Blob(frame::encode(row)),
        ];
        self.put_history(place, statement, values, hlc);
    }

    /// A record stands in the list of all, and in its tenant's. Its id is below 2^63.
    fn audited(&mut self, hlc: i64, record: &AuditRecord) {
        let bucket = audit_bucket(record.at_ms);
        for list in record.tenant.as_deref().into_iter().chain([EVERY_TENANT]) {
            let values = vec![
                CqlValue::Text(list.to_owned()),
                CqlValue::BigInt(bucket),
                CqlValue::BigInt(record.at_ms),
                long(record.id),
                CqlValue::Blob(frame::encode(record)),
                CqlValue::BigInt(hlc),
                CqlValue::Int(self.core.audit_ttl_s),
            ];
            self.put(Partition::Audit(list.to_owned(), bucket), &self.core.link.statements.put_audit, values);
        }
    }

    /// A version, for as long as the job lives or until it is one too many: versions rise by one.
    fn defined(&mut self, hlc: i64, row: &DefinitionRow) {
        let (shard, range) = (self.core.shard_of(row.job), definitions_range(row.job));
        let values = vec![
            CqlValue::Int(shard),
            CqlValue::BigInt(range),
            long(row.job.0),
            long(row.version),
            CqlValue::Blob(frame::encode(row)),
            CqlValue::BigInt(hlc),
        ];
        self.put(Partition::Definitions(shard, range), &self.core.link.statements.put_definition, values);
        if let Some(gone) = row.version.checked_sub(limits::DEFINITIONS_KEPT).filter(|gone| *gone > 0) {
            self.forget_definitions(hlc, row.job, gone.cast_signed());
        }
    }

    /// Versions of a job up to and including this one, as far as they were written before.
    fn forget_definitions(&mut self, hlc: i64, job: JobId, upto: i64) {
        let (shard, range) = (self.core.shard_of(job), definitions_range(job));
        let key = [CqlValue::Int(shard), CqlValue::BigInt(range), long(job.0), CqlValue::BigInt(upto)];
        let values = [CqlValue::BigInt(hlc)].into_iter().chain(key).collect();
        self.put(Partition::Definitions(shard, range), &self.core.link.statements.delete_definitions, values);
    }

    /// With the event's time and the retention.
    fn put_history(&mut self, place: Partition, statement: &'a PreparedStatement, values: Vec<CqlValue>, hlc: i64) {
        self.put_for(place, statement, values, (hlc, self.core.history_ttl_s));
    }

    fn put_for(
        &mut self,
        place: Partition,
        statement: &'a PreparedStatement,
        mut values: Vec<CqlValue>,
        (hlc, ttl_s): (i64, i32),
    ) {
        values.extend([CqlValue::BigInt(hlc), CqlValue::Int(ttl_s)]);
        self.put(place, statement, values);
    }

    /// Says that a shard or a tenant has the bucket: twice a day and process, so it need not go with others.
    fn note_bucket(&mut self, place: &Partition) {
        let (statements, ttl) = (&self.core.link.statements, bucket_ttl(self.core.history_ttl_s));
        match place {
            Partition::History(shard, bucket) => {
                let values = vec![CqlValue::Int(*shard), CqlValue::BigInt(*bucket), ttl];
                self.put(Partition::History(*shard, i64::MIN), &statements.put_history_bucket, values);
            }
            Partition::Fires(shards, bucket) => {
                let values = vec![CqlValue::Int(*shards), CqlValue::BigInt(*bucket), ttl];
                self.put(Partition::Fires(*shards, i64::MIN), &statements.put_fire_bucket, values);
            }
            Partition::Tenant(tenant, bucket) => {
                let values = vec![CqlValue::Text(tenant.clone()), CqlValue::BigInt(*bucket), ttl];
                self.put(Partition::Tenant(tenant.clone(), i64::MIN), &statements.put_tenant_bucket, values);
            }
            Partition::Audit(list, bucket) => {
                let ttl = bucket_ttl(self.core.audit_ttl_s);
                let values = vec![CqlValue::Text(list.clone()), CqlValue::BigInt(*bucket), ttl];
                self.put(Partition::Audit(list.clone(), i64::MIN), &statements.put_audit_bucket, values);
            }
            Partition::Runs(..)
            | Partition::Packs(..)
            | Partition::Definitions(..)
            | Partition::Key(..)
            | Partition::Applied(_) => {}
        }
    }

    fn applied(&mut self, shard: ShardId, seq: u64) {
        let bucket = applied_bucket(shard);
        let values = vec![CqlValue::Int(bucket), CqlValue::Int(shard_column(shard)), long(seq), long(seq)];
        self.put(Partition::Applied(bucket), &self.core.link.statements.put_applied, values);
    }

    async fn send(self) -> Result<(), StoreError> {
        let link = &self.core.link;
        let requests = shared(self.places.into_values().flat_map(bounded));
        let sent = requests.into_iter().map(|writes| link.batch(RequestKind::View, writes));
        try_join_all(sent).await.map_err(|e| error::written("the read model is written", &e))?;
        Ok(())
    }
}

fn bytes_of(write: &Write<'_>) -> usize {
    write.1.iter().map(value_bytes).sum()
}

/// Small requests of several partitions as one: a request costs a server as much as dozens of rows. They stay below the size from which servers
/// warn of batches over several partitions; what breaks off within one is written again like all of an apply.
fn shared<'a>(parts: impl Iterator<Item = Vec<Write<'a>>>) -> Vec<Vec<Write<'a>>> {
    let mut requests: Vec<Vec<Write<'_>>> = Vec::new();
    let (mut bytes, mut partitions) = (0, 0);
    for part in parts {
        let size: usize = part.iter().map(bytes_of).sum();
        let fits = bytes + size <= limits::CQL_SHARED_BATCH_BYTES && partitions < limits::CQL_SHARED_BATCH_PARTITIONS;
        match requests.last_mut().filter(|_| fits) {
            Some(request) => {
                (bytes, partitions) = (bytes + size, partitions + 1);
                request.extend(part);
            }
            None => {
                (bytes, partitions) = (size, 1);
                requests.push(part);
            }
        }
    }
    requests
}

/// Writes of a partition as requests that no server calls too large.
fn bounded(writes: Vec<Write<'_>>) -> Vec<Vec<Write<'_>>> {
    let mut requests: Vec<Vec<Write<'_>>> = vec![Vec::new()];
    let mut bytes = 0;
    for write in writes {
        let size = bytes_of(&write);
        let full = requests.last().is_some_and(|r| {
            !r.is_empty() && (bytes + size > limits::CQL_BATCH_BYTES || r.len() >= limits::CQL_BATCH_ROWS)
        });
        if full {
            requests.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(request) = requests.last_mut() {
            request.push(write);
        }
    }
    requests
}

fn value_bytes(value: &CqlValue) -> usize {
    match value {
        CqlValue::Blob(bytes) => bytes.len() + 8,
        CqlValue::Text(text) => text.len() + 8,
        _ => 12,
    }
}

impl Core {
    /// Shard and range of a run's packs.
    pub fn packs_of(&self, run: RunId) -> (i32, i64) {
        (shard_column(run.shard(self.shards)), pack_range(run))
    }

    /// Shard and range of a run that is in no pack.
    pub fn place_of(&self, run: RunId) -> (i32, i64) {
        (shard_column(run.shard(self.shards)), range_of(run))
    }

    pub fn shard_of(&self, job: JobId) -> i32 {
        shard_column(job.shard(self.shards))
    }

    /// Keys of messages live as long as a repeat may come. Counted from when the row is written, so a restored one lives as long again.
    fn key_ttl_s(&self, record: &RunRecord) -> i32 {
        match self.history_ttl_s {
            0 => 0,
            ttl_s if record.is_of_message() => ttl_s.max((limits::MESSAGE_KEY_MS / 1_000) as i32),
            ttl_s => ttl_s,
        }
    }
}

/// A bucket's own row stays longer than the rows that are written while it is taken for noted (`NotedBuckets`).
fn bucket_ttl(of_rows_s: i32) -> CqlValue {
    const DAY_S: i32 = 24 * 3_600;
    CqlValue::Int(if of_rows_s == 0 { 0 } else { of_rows_s.saturating_add(DAY_S) })
}
