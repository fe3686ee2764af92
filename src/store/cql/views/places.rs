//! Where rows of the read model are: partitions that are bounded and can be told from what a reader asks. All of it is part of what is stored.

use campanile_schema::ids::{JobId, RunId, SLOTS, ShardId};

/// Ids of a shard whose packed runs share a partition, all of which is read for one of them: some 10 KB, as a scheduled run takes eight ids; 128 KB
/// where each id is a run.
const IDS_PER_RANGE: u64 = 512;
/// Ids of a shard whose large records share a partition.
const RUNS_PER_RANGE: u64 = 4_096;
/// Shards whose fires share a partition: each partition of an apply costs as much as ten of its rows.
const SHARDS_PER_FIRES: u16 = 4;
/// Time in which fires share a partition: with 20,000 triggers/s on 256 shards some 2.3 million small rows.
const FIRES_BUCKET_MS: i64 = 2 * 3_600_000;
/// Time in which entries of a shard's jobs share a partition: with 20,000 triggers/s on 256 shards some 1.7 million small rows.
const HISTORY_BUCKET_MS: i64 = 6 * 3_600_000;
/// Time in which failed runs of a tenant share a partition: with 5,000 a second 18 million entries.
const TENANT_BUCKET_MS: i64 = 3_600_000;
/// Time in which records of the audit trail of a tenant share a partition: a bulk create of a million jobs makes some 250 MB.
const AUDIT_BUCKET_MS: i64 = 3_600_000;
/// Ids of jobs of a shard whose versions share a partition: some megabytes when each has all the versions that are kept.
const JOBS_PER_DEFINITIONS: u64 = 64;
/// The partition of all records stands under a name that no tenant can have.
pub const EVERY_TENANT: &str = "*";
/// Shards whose positions share a partition.
const SHARDS_PER_BUCKET: u16 = 64;

/// A partition that takes rows, and by which they are gathered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Partition {
    /// Shard and range of ids: runs that are too large for a pack.
    Runs(i32, i64),
    /// Shard and range of ids: runs.
    Packs(i32, i64),
    /// Four shards and two hours: intervals that fired a run, and so lists of jobs.
    Fires(i32, i64),
    /// Shard and six hours: other runs of jobs' lists and other intervals of ledgers, whose tables share their keys.
    History(i32, i64),
    /// Tenant and hour: the tenant's lists.
    Tenant(String, i64),
    /// Tenant, or [`EVERY_TENANT`], and hour: the audit trail.
    Audit(String, i64),
    /// Shard and range of ids of jobs: versions of definitions.
    Definitions(i32, i64),
    /// Job and caller's key.
    Key(i64, String),
    /// Positions of 64 shards.
    Applied(i32),
}

pub fn shard_column(shard: ShardId) -> i32 {
    i32::from(shard.0)
}

pub fn range_of(run: RunId) -> i64 {
    (run.counter() / RUNS_PER_RANGE).cast_signed()
}

pub fn pack_range(run: RunId) -> i64 {
    (run.counter() / IDS_PER_RANGE).cast_signed()
}

pub fn definitions_range(job: JobId) -> i64 {
    (job.0 / SLOTS / JOBS_PER_DEFINITIONS).cast_signed()
}

pub fn fires_shards(shard: ShardId) -> i32 {
    i32::from(shard.0 / SHARDS_PER_FIRES)
}

pub fn fires_bucket(to_ms: i64) -> i64 {
    to_ms.div_euclid(FIRES_BUCKET_MS)
}

pub fn history_bucket(at_ms: i64) -> i64 {
    at_ms.div_euclid(HISTORY_BUCKET_MS)
}

pub fn tenant_bucket(ended_ms: i64) -> i64 {
    ended_ms.div_euclid(TENANT_BUCKET_MS)
}

pub fn audit_bucket(at_ms: i64) -> i64 {
    at_ms.div_euclid(AUDIT_BUCKET_MS)
}

pub fn applied_bucket(shard: ShardId) -> i32 {
    i32::from(shard.0 / SHARDS_PER_BUCKET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_as_wide_before_1970_as_after() {
        assert_eq!((history_bucket(-1), history_bucket(0), history_bucket(HISTORY_BUCKET_MS)), (-1, 0, 1));
        assert_eq!((tenant_bucket(-TENANT_BUCKET_MS), tenant_bucket(TENANT_BUCKET_MS - 1)), (-1, 0));
        assert_eq!((fires_bucket(-1), fires_bucket(0), fires_bucket(FIRES_BUCKET_MS)), (-1, 0, 1));
        assert_eq!((pack_range(RunId(512 * 4_096 - 1)), pack_range(RunId(512 * 4_096))), (0, 1));
        assert_eq!((range_of(RunId(4_095)), range_of(RunId(4_096 * 4_096))), (0, 1));
    }
}
