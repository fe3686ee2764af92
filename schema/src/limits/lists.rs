//! Limits of lists, statistics and explanations.

/// Open runs that a shard looks at for one call of the list of runs, count. Then it says how to go on.
pub const OPEN_RUN_LOOKS: usize = 2_000;
/// Calls that each shard gets for one page of the list of runs, count.
pub const OPEN_RUN_ROUNDS: usize = 8;
/// Ended runs that one call of the list of runs looks at, count. With filters that fit few of them a page ends there.
pub const ENDED_RUN_LOOKS: usize = 10_000;
/// Runs that the statistics of a job are computed from, count: the newest of the window.
pub const STATISTICS_RUNS: usize = 10_000;
/// Longest window of the statistics of a job, milliseconds.
pub const STATISTICS_WINDOW_MS: u64 = 366 * 24 * 3_600_000;
/// Dead letters that are grouped by their causes, count: the newest.
pub const CAUSE_LOOKS: usize = 10_000;
/// Groups of dead letters that an answer has, count: the most frequent.
pub const CAUSES: usize = 200;
/// Minutes ahead of which the load is told, count.
pub const LOAD_MINUTES: u32 = 120;
/// Jobs that a shard looks at for one call about the load, count. Then it says how to go on.
pub const LOAD_LOOKS: usize = 20_000;
/// Instants that a shard counts for one call about the load, count.
pub const LOAD_INSTANTS: u64 = 10_000;
/// Calls about the load that each shard gets for one answer, count.
pub const LOAD_ROUNDS: usize = 32;
/// Runs that an explanation names as holders of what a run waits for, count.
pub const HOLDERS_NAMED: usize = 5;
/// Newest runs of a tenant among which an explanation looks for those holders, count.
pub const HOLDER_LOOKS: usize = 100;
/// Versions of the definition of a job that its history has, count. The oldest go first.
pub const DEFINITIONS_KEPT: u64 = 100;
/// Longest `displayName` and `owner` of a job, characters.
pub const DISPLAY_NAME_CHARS: usize = 256;
/// Longest `description` of a job, bytes.
pub const DESCRIPTION_BYTES: usize = 8 << 10;
/// Annotations of a job, count.
pub const ANNOTATIONS: usize = 64;
/// Longest key of an annotation, bytes.
pub const ANNOTATION_KEY_BYTES: usize = 256;
/// Longest value of an annotation, bytes.
pub const ANNOTATION_BYTES: usize = 4 << 10;
