//! Limits of the load driver and the checker, each with its unit. The scheduler's own are in `campanile_schema::limits`.

/// Violations of one kind that are kept with their details, count; the rest are only counted.
pub const VIOLATIONS_KEPT: usize = 200;
/// Lines of one story, count.
pub const STORY_LINES: usize = 16;
/// Due instants of one schedule that the oracle lists at most, count; over it the workload is not checkable.
pub const ORACLE_INSTANTS: usize = 2_000_000;
/// Lines gathered for a file before their writer writes them itself, bytes.
pub const RECORD_BUFFER_BYTES: usize = 1 << 20;
/// Between two syncs of such a file, milliseconds: the kernel never has much of it to write at once.
pub const RECORD_SYNC_MS: u64 = 200;
/// Jobs in one `job.createMany`, count.
pub const CREATE_BATCH: usize = 500;
/// Requests of a caller under way at once, count.
pub const CALLS_IN_FLIGHT: usize = 256;
/// Lines of a node's output that wait to be read, count.
pub const NODE_OUTPUT_LINES: usize = 1_024;
