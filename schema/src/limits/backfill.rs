//! Limits of a backfill or a replay, and of the look at a job's past that comes before it.

/// Instants of one backfill, count; over it 413_TOO_MANY_INSTANTS names the largest `to`.
pub const BACKFILL_INSTANTS: u64 = 1_000_000;
/// Highest `parallelism`, count of open runs: a part of the open runs that a job may have.
pub const BACKFILL_PARALLEL_MAX: u32 = 200;
/// `parallelism` when none is given, count of open runs.
pub const BACKFILL_PARALLEL: u32 = 8;
/// Instants that one page hands to the job at most, count.
pub const BACKFILL_PAGE: usize = 1_024;
/// The same where each instant comes with a run that it goes on with or whose params it takes, count.
pub const BACKFILL_PAGE_OF_RUNS: usize = 64;
/// Instants that are looked at for one page at most, count: the rest of a stretch without anything to run follows in the next page.
pub const BACKFILL_LOOK: u64 = 65_536;
/// Rows of the ledger that are read at once, count.
pub const BACKFILL_ROWS: usize = 1_024;
/// Runs whose keys or records are looked up side by side, count.
pub const BACKFILL_LOOK_UPS: usize = 32;
/// Runs that one decision starts at most, count; the rest follow in the next decision.
pub const BACKFILL_STARTS: usize = 8;
/// Runs that one decision cancels at most, count; the rest follow in the next decision.
pub const BACKFILL_STOPS: usize = 64;
/// Decisions of one backfill in one turn of its shard, count; the rest follow behind what waits in the shard's mailbox.
pub const BACKFILL_STEPS: usize = 4;
/// A backfill waits this long for the read model to show what its job had decided, milliseconds.
pub const BACKFILL_SHOWN_MS: u64 = 10_000;
/// Between two looks whether the read model shows it, milliseconds.
pub const BACKFILL_LOOK_MS: u64 = 20;
/// Records of runs that a dry run reads at most to count those that failed, count; over it the number is not told.
pub const BACKFILL_RECORDS: u64 = 10_000;
/// Keys of runs of earlier backfills that a dry run looks up at most, count; instants behind them count as missing.
pub const BACKFILL_KEYS: u64 = 100_000;
/// Newest runs whose duration says how long a backfill will take, count.
pub const BACKFILL_DURATIONS: usize = 20;
/// Pages that a shard keeps for its backfills, count; over it a page is read again when its backfill goes on.
pub const BACKFILL_PAGES_KEPT: usize = 32;
/// Earliest instant of a backfill, milliseconds since 1970.
pub const BACKFILL_EARLIEST_MS: i64 = 0;
