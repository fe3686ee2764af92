//! The read model in maps.

use crate::tables::{Ended, EndedRuns, Stored, StoredRows, Tables, TenantList, discarded, stored_run};
use campanile_ports::{
    AuditFilling, AuditPage, AuditQuery, DefinitionRow, EndedQuery, LedgerRow, Position, Row, RunPage, StoreError,
};
use campanile_schema::{
    ids::{JobId, RunId},
    limits,
    record::RunRecord,
    stored::audit::AuditRecord,
};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};

/// Tables, and what they were at the last flush.
#[derive(Default)]
pub struct MemoryTables {
    now: Mutex<Maps>,
    flushed: Mutex<Maps>,
    logs: Mutex<BTreeMap<(RunId, u32), Vec<u8>>>,
    /// Runs of messages that ended then or later stay.
    messages_from_ms: Mutex<Option<i64>>,
}

#[derive(Clone, Default)]
struct Maps {
    position: Position,
    runs: BTreeMap<RunId, RunRecord>,
    job_runs: BTreeSet<(JobId, RunId)>,
    keys: BTreeMap<(JobId, String), RunId>,
    ledger: BTreeMap<(JobId, i64, i64), LedgerRow>,
    /// Of the runs that are final.
    by_time: BTreeSet<(i64, RunId)>,
    /// By time and id.
    audit: BTreeMap<(i64, u64), AuditRecord>,
    /// By job and version.
    definitions: BTreeMap<(JobId, u64), DefinitionRow>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl MemoryTables {
    /// What a crash leaves.
    pub fn revert_to_last_flush(&self) {
        *guard(&self.now) = guard(&self.flushed).clone();
    }

    /// The same tables as they were at the last flush: for stale reads.
    pub fn as_flushed(&self) -> Self {
        let maps = guard(&self.flushed).clone();
        Self { now: Mutex::new(maps), ..Self::default() }
    }

    /// Forgets everything and stands at `position`.
    pub fn begin_at(&self, position: Position) {
        let maps = Maps { position, ..Maps::default() };
        *guard(&self.flushed) = maps.clone();
        *guard(&self.now) = maps;
    }
}

impl Maps {
    fn put_run(&mut self, record: &RunRecord) {
        if let Some(ended) = self.runs.get(&record.run).and_then(|old| old.ended_ms) {
            self.by_time.remove(&(ended, record.run));
        }
        if let Some(ended) = record.ended_ms.filter(|_| record.state.is_final()) {
            self.by_time.insert((ended, record.run));
        }
        if let Some(key) = &record.key {
            self.keys.insert((record.job, key.clone()), record.run);
        }
        self.job_runs.insert((record.job, record.run));
        self.runs.insert(record.run, record.clone());
    }

    fn remove_run(&mut self, ended: i64, run: RunId) {
        self.by_time.remove(&(ended, run));
        let Some(record) = self.runs.remove(&run) else {
            return;
        };
        self.job_runs.remove(&(record.job, run));
        if let Some(key) = record.key
            && self.keys.get(&(record.job, key.clone())) == Some(&run)
        {
            self.keys.remove(&(record.job, key));
        }
    }

    /// Newest first: `order` is rising in age.
    fn page<'a, K: AsRef<[u8]>>(&self, entries: impl Iterator<Item = (K, &'a RunRecord)>, limit: usize) -> RunPage {
        let limit = limit.clamp(1, limits::PAGE_SIZE_MAX);
        let mut page = RunPage::default();
        let mut last = Vec::new();
        for (token, record) in entries {
            if page.items.len() == limit {
                page.next = Some(last);
                break;
            }
            last = token.as_ref().to_vec();
            page.items.push(record.clone());
        }
        page
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    eight.map_or(0, u64::from_be_bytes)
}

impl Tables for MemoryTables {
    fn apply(&self, rows: &[(u64, Row)], position: Position) -> Result<(), StoreError> {
        let mut maps = guard(&self.now);
        for (_, row) in rows {
            match row {
                Row::Run(record) | Row::Reopened(record) => maps.put_run(record),
                Row::DeadLetterDiscarded(record) => maps.put_run(&discarded(record)),
                Row::Ledger(row) => {
                    maps.ledger.insert((row.job, row.to_ms, row.from_ms), row.clone());
                }
                Row::JobDeleted(job) => maps.definitions.retain(|(of, _), _| of != job),
                Row::Audited(record) => {
                    maps.audit.insert((record.at_ms, record.id), AuditRecord::clone(record));
                }
                Row::Defined(row) => {
                    maps.definitions.insert((row.job, row.version), DefinitionRow::clone(row));
                    let gone = row.version.saturating_sub(limits::DEFINITIONS_KEPT);
                    maps.definitions.retain(|(of, version), _| *of != row.job || *version > gone);
                }
            }
        }
        maps.position = position;
        Ok(())
    }

    fn position(&self) -> Result<Position, StoreError> {
        Ok(guard(&self.now).position)
    }

    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn flush(&self) -> Result<(), StoreError> {
        *guard(&self.flushed) = guard(&self.now).clone();
        Ok(())
    }

    fn revive(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(guard(&self.now).runs.get(&run).cloned())
    }

    fn job_runs(&self, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
        let maps = guard(&self.now);
        let before = after.map_or(RunId(u64::MAX), |token| RunId(number(token, 0)));
        let entries = maps.job_runs.range((job, RunId(0))..(job, before)).rev();
        let records = entries
            .filter_map(|(_, run)| maps.runs.get(run))
            .filter(|r| r.state.is_final())
            .map(|r| (r.run.0.to_be_bytes(), r));
        Ok(maps.page(records, limit))
    }

    fn find_key(&self, job: JobId, key: &str) -> Result<Option<RunId>, StoreError> {
        Ok(guard(&self.now).keys.get(&(job, key.to_owned())).copied())
    }

    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        let maps = guard(&self.now);
        let first = (job, from_ms.saturating_add(1), i64::MIN);
        let rows = maps.ledger.range(first..=(job, i64::MAX, i64::MAX)).map(|(_, row)| row);
        let touching = rows.take_while(|row| row.from_ms < to_ms);
        Ok(touching.take(limit).cloned().collect())
    }

    fn tenant_runs(
        &self,
        list: TenantList,
        tenant: &str,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<RunPage, StoreError> {
        let maps = guard(&self.now);
        let end = after
            .map_or((i64::MAX, RunId(u64::MAX)), |token| (number(token, 0).cast_signed(), RunId(number(token, 8))));
        let records = maps
            .by_time
            .range(..end)
            .rev()
            .filter_map(|(ended, run)| maps.runs.get(run).map(|r| (*ended, r)))
            .filter(|(_, r)| r.tenant == tenant && list.holds(r))
            .map(|(ended, r)| ([ended.cast_unsigned().to_be_bytes(), r.run.0.to_be_bytes()].concat(), r));
        Ok(maps.page(records, limit))
    }

    fn retain(&self, before_ms: i64, max_rows: usize) -> Result<u64, StoreError> {
        let mut maps = guard(&self.now);
        let max_rows = max_rows.min(limits::RETAIN_ROWS);
        let messages_from_ms = guard(&self.messages_from_ms).unwrap_or(i64::MAX);
        let goes = |(ended, run): &&(i64, RunId)| {
            *ended < messages_from_ms || !maps.runs.get(run).is_some_and(RunRecord::is_of_message)
        };
        let old = maps.by_time.range(..(before_ms, RunId(0)));
        let gone: Vec<_> = old.filter(goes).take(max_rows).copied().collect();
        for (ended, run) in &gone {
            maps.remove_run(*ended, *run);
            guard(&self.logs).retain(|(of, _), _| of != run);
        }
        if gone.len() < max_rows {
            maps.ledger.retain(|(_, to_ms, _), _| *to_ms >= before_ms);
        }
        Ok(gone.len() as u64)
    }

    fn keep_messages(&self, from_ms: i64) {
        *guard(&self.messages_from_ms) = Some(from_ms);
    }

    fn ended_runs(&self, query: &EndedQuery, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
        let maps = guard(&self.now);
        let (ended_ms, run) = query.before(after);
        let fitting = maps
            .by_time
            .range(..(ended_ms, RunId(run)))
            .rev()
            .filter_map(|(ended, run)| Some((EndedQuery::token(*ended, run.0), maps.runs.get(run)?)))
            .filter(|(_, record)| query.fits(record));
        Ok(maps.page(fitting, limit))
    }

    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> Result<Vec<DefinitionRow>, StoreError> {
        let maps = guard(&self.now);
        let versions = maps.definitions.range((job, 0)..(job, before.unwrap_or(u64::MAX)));
        Ok(versions.rev().take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn audit(&self, query: &AuditQuery, after: Option<&[u8]>, limit: usize) -> Result<AuditPage, StoreError> {
        let maps = guard(&self.now);
        let before = AuditFilling::before(query, after);
        let mut filling = AuditFilling::new(query, limit.min(limits::PAGE_SIZE_MAX), limits::AUDIT_LOOKS);
        let newest_first = maps.audit.range(..before).rev().take_while(|((at, _), _)| *at >= query.from_ms);
        let of_tenant = newest_first
            .filter(|(_, record)| query.tenant.is_none() || query.tenant.as_deref() == record.tenant.as_deref());
        for (_, record) in of_tenant {
            if !filling.look(record.clone()) {
                break;
            }
        }
        Ok(filling.end())
    }

    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> Result<u64, StoreError> {
        let mut maps = guard(&self.now);
        let gone: Vec<_> = maps.audit.range(..(before_ms, 0)).take(max_rows).map(|(key, _)| *key).collect();
        for key in &gone {
            maps.audit.remove(key);
        }
        Ok(gone.len() as u64)
    }

    fn runs_stored(&self) -> u64 {
        guard(&self.now).by_time.len() as u64
    }

    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn rows(&self) -> Result<StoredRows, StoreError> {
        let maps = guard(&self.now);
        let runs = maps.runs.values().cloned().map(stored_run);
        let ledger = maps.ledger.values().cloned().map(Row::Ledger);
        let audit = maps.audit.values().cloned().map(|record| Row::Audited(record.into()));
        let defined = maps.definitions.values().cloned().map(|row| Row::Defined(row.into()));
        let mut rows: Vec<_> = runs.chain(ledger).chain(audit).chain(defined).map(|row| Ok(Stored::Row(row))).collect();
        let logs = guard(&self.logs);
        rows.extend(
            logs.iter()
                .map(|((run, attempt), bytes)| Ok(Stored::Log { run: *run, attempt: *attempt, bytes: bytes.clone() })),
        );
        Ok(Box::new(rows.into_iter()))
    }

    fn ended(&self, from_ms: i64, to_ms: i64) -> Result<EndedRuns, StoreError> {
        let maps = guard(&self.now);
        let within = |record: &&RunRecord| record.ended_ms.is_some_and(|ended| (from_ms..to_ms).contains(&ended));
        let mut runs: Vec<RunRecord> =
            maps.runs.values().filter(|r| r.state.is_final()).filter(within).cloned().collect();
        runs.sort_by_key(|record| (record.ended_ms, record.run));
        let logs = guard(&self.logs);
        let mut ended = Vec::new();
        for record in runs {
            let run = record.run;
            ended.push(Ok(Ended::Run(Box::new(record))));
            let of_run = logs.range((run, 0)..=(run, u32::MAX));
            ended.extend(
                of_run.map(|((run, attempt), bytes)| {
                    Ok(Ended::Log { run: *run, attempt: *attempt, bytes: bytes.clone() })
                }),
            );
        }
        Ok(Box::new(ended.into_iter()))
    }

    fn append_log(&self, run: RunId, attempt: u32, chunk: &[u8]) -> Result<(), StoreError> {
        let mut logs = guard(&self.logs);
        let log = logs.entry((run, attempt)).or_default();
        let room = limits::LOG_BYTES_PER_ATTEMPT.saturating_sub(log.len());
        log.extend_from_slice(&chunk[..chunk.len().min(room)]);
        Ok(())
    }

    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> Result<Vec<u8>, StoreError> {
        let logs = guard(&self.logs);
        let log = logs.get(&(run, attempt)).map_or(&[][..], Vec::as_slice);
        let rest = log.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest[..rest.len().min(max_bytes)].to_vec())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}
