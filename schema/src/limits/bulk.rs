//! Limits of bulk operations.

/// Items of one page, count: they are done with one call to a shard, in one of its turns.
pub const BULK_PAGE: usize = 64;
/// Jobs that a shard looks at for one page, count; the rest follow with the next call.
pub const BULK_LOOKS: usize = 512;
/// Shortest time of a page, milliseconds: an operation does at most 64 items in it.
pub const BULK_PAGE_MS: u64 = 50;
/// Bulk operations that a node carries on side by side, count. Each has one call to a shard under way.
pub const BULK_DRIVEN: usize = 4;
/// Triggers and retries of one page that are under way side by side, count.
pub const BULK_AT_ONCE: usize = 8;
/// An operation waits while the read model is so many events behind, count: a twentieth of where callers are refused.
pub const BULK_LAG_EVENTS: i64 = 50_000;
/// An operation waits so long when a node is overloaded or cannot be reached, milliseconds; twice as long each time.
pub const BULK_BACK_OFF_MS: u64 = 200;
/// The longest of these waits, milliseconds.
pub const BULK_BACK_OFF_MAX_MS: u64 = 5_000;
/// Failures that an operation names, count: the first.
pub const BULK_FAILURES: usize = 10;
/// Longest message of a failure, bytes.
pub const BULK_FAILURE_BYTES: usize = 256;
/// Open operations of a tenant, count.
pub const BULK_OPEN_OF_TENANT: usize = 8;
/// Open operations whose home is one shard, count.
pub const BULK_OPEN_OF_SHARD: usize = 64;
/// Ended operations that a shard keeps, count: the newest.
pub const BULK_KEPT: usize = 64;
/// Jobs and runs that are counted before an operation begins, count. Over it the number is a lower bound.
pub const BULK_COUNTED: u64 = 1_000_000;
/// The count before an operation begins takes at most so long, milliseconds. Then the number is a lower bound.
pub const BULK_COUNT_MS: u64 = 5_000;
/// Items that a dry run shows, count.
pub const BULK_SHOWN: usize = 5;
/// Longest grace of a delete, milliseconds.
pub const BULK_GRACE_MAX_MS: i64 = 90 * 24 * 3_600_000;
/// Longest text or selector of a filter, bytes.
pub const BULK_FILTER_BYTES: usize = 4 << 10;
