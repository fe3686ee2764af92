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
/// Jobs in one `job.createMany`, or lines of one `POST /api/v1/jobs/bulk`, count.
pub const CREATE_BATCH: usize = 500;
/// Requests of a caller under way at once, count.
pub const CALLS_IN_FLIGHT: usize = 256;
/// Longest run of all chaos scenarios, minutes.
pub const CHAOS_MINUTES: u64 = 120;
/// Lines of a node's output that wait to be read, count.
pub const NODE_OUTPUT_LINES: usize = 1_024;
/// Executor processes of one workload, count.
pub const EXECUTORS: u32 = 64;
/// Loads, and calls, of one workload, count each.
pub const GROUPS: usize = 32;
/// Phases of one workload, count.
pub const PHASES: usize = 64;
/// Jobs of one load, count.
pub const LOAD_JOBS: u64 = 10_000_000;
/// Due instants or calls of one load, per second.
pub const LOAD_RATE: f64 = 1_000_000.0;
/// Length of a workload's run, seconds (a week).
pub const RUN_SECONDS: u64 = 7 * 86_400;
/// Batches of creates under way at once, count.
pub const CREATES_IN_FLIGHT: usize = 8;
/// Jobs of the loads that calls may draw from, count: the first so many of each load.
pub const JOBS_REMEMBERED: usize = 100_000;
/// A second's own histograms are kept open so long for what comes late, seconds; later bodies only raise its maximum.
pub const LATE_SECONDS_OPEN: i64 = 120;
/// Executors' summaries that one read takes at once, bytes.
pub const STATS_READ_BYTES: usize = 4 << 20;
/// Points of one curve in the HTML report, count; of more, neighbours are put together.
pub const PLOT_POINTS: usize = 600;
/// A probe of availability must be answered within this time, milliseconds.
pub const PROBE_MS: u64 = 1_000;
/// Processors that others may use on the machine on average before a run is called disturbed, count.
pub const OTHERS_CORES: f64 = 0.25;
/// Runs of one workload that `--repeat` makes at most, count.
pub const REPEATS: u32 = 100;
/// Probes in a row without any answer after which a node that others started is taken for gone, count.
pub const SILENT_PROBES: usize = 5;
/// Disk that must stay free for a run to start and go on, MiB, unless a flag names another.
pub const LEAST_FREE_MIB: u64 = 512;
/// Largest workload file, bytes.
pub const WORKLOAD_BYTES: u64 = 1 << 20;
