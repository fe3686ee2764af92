//! Keys of the views' tables. Big-endian, so that byte order is the order in which rows are listed.

use crate::tables::{TenantList, failed};
use campanile_schema::{
    ids::{JobId, RunId},
    record::RunRecord,
};

/// Time as eight bytes in order.
fn time(ms: i64) -> [u8; 8] {
    (ms.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn time_back(bytes: [u8; 8]) -> i64 {
    (u64::from_be_bytes(bytes) ^ (1 << 63)).cast_signed()
}

fn eight(key: &[u8], at: usize) -> Option<[u8; 8]> {
    key.get(at..at + 8)?.try_into().ok()
}

/// `runs`: by id, so that a flush packs many runs of a time together.
pub fn run(run: RunId) -> [u8; 8] {
    run.0.to_be_bytes()
}

/// `job_runs`: a job's runs, newest (highest id) first.
pub fn job_run(job: JobId, run: RunId) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&job.0.to_be_bytes());
    key[8..].copy_from_slice(&(!run.0).to_be_bytes());
    key
}

/// The run of a `job_runs` key.
pub fn run_of_job_run(key: &[u8]) -> Option<RunId> {
    eight(key, 8).map(|b| RunId(!u64::from_be_bytes(b)))
}

/// `keys`: a caller's key of a job.
pub fn caller_key(job: JobId, key: &str) -> Vec<u8> {
    let mut bytes = job.0.to_be_bytes().to_vec();
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

/// `ledger` and `fires`: a job's intervals by their end. Twenty bytes, which fjall keeps without an allocation: of the length only what
/// tells apart intervals with one end (empty ones).
pub fn ledger(job: JobId, to_ms: i64, from_ms: i64) -> [u8; 20] {
    let mut key = [0; 20];
    key[..16].copy_from_slice(&ledger_at(job, to_ms));
    let length = u32::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(u32::MAX);
    key[16..].copy_from_slice(&length.to_be_bytes());
    key
}

/// What the `ledger` keys of intervals that end at `to_ms` begin with.
pub fn ledger_at(job: JobId, to_ms: i64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&job.0.to_be_bytes());
    key[8..].copy_from_slice(&time(to_ms));
    key
}

/// End of the interval of a `ledger` key.
pub fn ledger_to(key: &[u8]) -> Option<i64> {
    eight(key, 8).map(time_back)
}

/// Job, end and beginning of a `ledger` key; None where the interval is longer than its key tells.
pub fn of_ledger(key: &[u8]) -> Option<(JobId, i64, i64)> {
    let length = u32::from_be_bytes(key.get(16..20)?.try_into().ok()?);
    let to_ms = ledger_to(key)?;
    let from_ms = to_ms.checked_sub(i64::from(length)).filter(|_| length < u32::MAX)?;
    Some((JobId(u64::from_be_bytes(eight(key, 0)?)), to_ms, from_ms))
}

/// What all keys of a tenant begin with.
pub fn tenant(tenant: &str) -> Vec<u8> {
    let mut bytes = (tenant.len() as u16).to_be_bytes().to_vec();
    bytes.extend_from_slice(tenant.as_bytes());
    bytes
}

/// `dead_letters`, `failed`: a tenant's runs, newest first.
pub fn tenant_run(tenant_name: &str, ended_ms: i64, run: RunId) -> Vec<u8> {
    let mut bytes = tenant(tenant_name);
    bytes.extend(time(ended_ms).map(|b| !b));
    bytes.extend((!run.0).to_be_bytes());
    bytes
}

/// `definitions`: versions of a job, newest first.
pub fn definition(job: JobId, version: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&job.0.to_be_bytes());
    key[8..].copy_from_slice(&(!version).to_be_bytes());
    key
}

/// `audit`: within a list, newest first.
pub fn newest_first(list: &[u8], at_ms: i64, id: u64) -> Vec<u8> {
    let mut bytes = list.to_vec();
    bytes.extend(time(at_ms).map(|b| !b));
    bytes.extend((!id).to_be_bytes());
    bytes
}

/// Time and run of a `dead_letters` or `failed` key.
pub fn of_tenant_run(key: &[u8]) -> Option<(i64, RunId)> {
    let at = key.len().checked_sub(16)?;
    let ended = eight(key, at)?.map(|b| !b);
    let run = eight(key, at + 8)?;
    Some((time_back(ended), RunId(!u64::from_be_bytes(run))))
}

/// `by_time`: what ended when, for retention; of several runs that share a row ([`super::packs`]) the first.
pub fn by_time(ended_ms: i64, run: RunId) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&time(ended_ms));
    key[8..].copy_from_slice(&run.0.to_be_bytes());
    key
}

/// The same of a pack. Longer: a run that leaves its lists takes only what is its own.
pub fn pack(ended_ms: i64, first: RunId) -> [u8; 17] {
    let mut key = [0; 17];
    key[..16].copy_from_slice(&by_time(ended_ms, first));
    key
}

/// Where `by_time` reaches `before_ms`.
pub fn by_time_end(before_ms: i64) -> [u8; 8] {
    time(before_ms)
}

/// Time and run of a `by_time` key.
pub fn of_by_time(key: &[u8]) -> Option<(i64, RunId)> {
    Some((time_back(eight(key, 0)?), RunId(u64::from_be_bytes(eight(key, 8)?))))
}

/// The value of `by_time` of a run that stands in lists: in which (bits), and its tenant.
pub fn by_time_value(record: &RunRecord) -> Option<Vec<u8>> {
    let lists = u8::from(record.dead_letter) | u8::from(failed(record.state)) << 1;
    (lists != 0).then(|| [&[lists], record.tenant.as_bytes()].concat())
}

/// The lists and the tenant of a `by_time` value.
pub fn of_by_time_value(value: &[u8]) -> (Vec<TenantList>, &str) {
    let (bits, tenant) = value.split_first().map_or((0, &[][..]), |(b, t)| (*b, t));
    let mut lists = Vec::new();
    if bits & 1 != 0 {
        lists.push(TenantList::DeadLetters);
    }
    if bits & 2 != 0 {
        lists.push(TenantList::Failed);
    }
    (lists, std::str::from_utf8(tenant).unwrap_or_default())
}

/// What all log chunks of a run begin with.
pub fn run_logs(run: RunId) -> [u8; 8] {
    run.0.to_be_bytes()
}

/// What all log chunks of an attempt begin with.
pub fn attempt_logs(run: RunId, attempt: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&run.0.to_be_bytes());
    key[8..].copy_from_slice(&attempt.to_be_bytes());
    key
}

/// A log chunk that begins at byte `offset` of its attempt.
pub fn log_chunk(run: RunId, attempt: u32, offset: u64) -> [u8; 20] {
    let mut key = [0; 20];
    key[..12].copy_from_slice(&attempt_logs(run, attempt));
    key[12..].copy_from_slice(&offset.to_be_bytes());
    key
}

/// Run and attempt of a log chunk.
pub fn of_log_chunk(key: &[u8]) -> Option<(RunId, u32)> {
    let attempt = key.get(8..12)?.try_into().ok()?;
    Some((RunId(u64::from_be_bytes(eight(key, 0)?)), u32::from_be_bytes(attempt)))
}

/// Offset of a log chunk.
pub fn log_offset(key: &[u8]) -> Option<u64> {
    eight(key, 12).map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_sort_as_rows_are_listed() {
        assert!(job_run(JobId(1), RunId(9)) < job_run(JobId(1), RunId(8)), "newest first");
        assert!(job_run(JobId(1), RunId(0)) < job_run(JobId(2), RunId(9)));
        assert!(ledger(JobId(1), -5, -9) < ledger(JobId(1), 3, -5), "before 1970 first");
        assert!(tenant_run("a", 20, RunId(1)) < tenant_run("a", 10, RunId(2)), "newest first");
        assert!(by_time(-1, RunId(7)) < by_time(0, RunId(3)));
        assert!(by_time(9, RunId(7)).as_slice() < by_time_end(10).as_slice());
        assert!(by_time(10, RunId(0)).as_slice() > by_time_end(10).as_slice());
    }

    #[test]
    fn keys_read_back() {
        assert_eq!(run_of_job_run(&job_run(JobId(5), RunId(77))), Some(RunId(77)));
        assert_eq!(of_tenant_run(&tenant_run("tenant", -44, RunId(8))), Some((-44, RunId(8))));
        assert_eq!(of_by_time(&by_time(1234, RunId(8))), Some((1234, RunId(8))));
        assert_eq!(ledger_to(&ledger(JobId(1), 55, 44)), Some(55));
        assert_eq!(of_ledger(&ledger(JobId(1), 55, -44)), Some((JobId(1), 55, -44)));
        assert_eq!(of_ledger(&ledger(JobId(1), 55, i64::MIN)), None);
        assert_eq!(log_offset(&log_chunk(RunId(1), 2, 333)), Some(333));
        assert_eq!(of_log_chunk(&log_chunk(RunId(1), 2, 333)), Some((RunId(1), 2)));
    }

    #[test]
    fn no_tenant_is_the_prefix_of_another() {
        assert!(!tenant_run("ab", 1, RunId(1)).starts_with(&tenant("a")));
    }
}
