//! Limits of imports from other schedulers, and of the forecast of a plan.

/// An SQL dump that is imported, bytes: it is read as a stream, and only rows of the scheduler's tables are kept.
pub const IMPORT_DUMP_BYTES: u64 = 1 << 30;
/// A value, a name or a word of an SQL dump, bytes.
pub const IMPORT_VALUE_BYTES: usize = 1 << 20;
/// Columns of a table, and values of a row, of an SQL dump, count.
pub const IMPORT_COLUMNS: usize = 256;
/// Rows of the scheduler's tables that are kept of an SQL dump, count.
pub const IMPORT_ROWS: usize = 400_000;
/// Text of the rows that are kept of an SQL dump, bytes.
pub const IMPORT_ROW_BYTES: usize = 256 << 20;
/// An XML file that is imported, bytes: it is held in memory as a whole.
pub const IMPORT_XML_BYTES: u64 = 16 << 20;
/// Elements, attributes and texts of an XML file that is imported, count.
pub const IMPORT_XML_NODES: u32 = 1_000_000;
/// A unit file of systemd that is imported, bytes.
pub const IMPORT_UNIT_BYTES: u64 = 1 << 20;
/// Files of one import, count.
pub const IMPORT_FILES: usize = 10_000;
/// Jobs of one import, count.
pub const IMPORT_JOBS: usize = 100_000;
/// Objects of one import that are told as refused, count; the others are counted.
pub const IMPORT_REFUSED: usize = 1_000;
/// A file of manifests that an import writes, bytes, unless one manifest alone is larger.
pub const IMPORT_OUT_BYTES: usize = 1 << 20;

/// Next fires of a job that a forecast shows before and after, count.
pub const FORECAST_FIRES: usize = 20;
/// How far ahead a forecast looks for changes of the clock, days: 13 months.
pub const FORECAST_CLOCK_DAYS: i64 = 397;
/// How far ahead a forecast counts the instants of each minute, minutes: a day.
pub const FORECAST_MINUTES: i64 = 1_440;
/// Instants that changes add to a minute from which on a forecast names the minute, count.
pub const FORECAST_FULL: u64 = 60;
/// Full minutes that a forecast names, the fullest first, count.
pub const FORECAST_NAMED: usize = 10;
/// Instants that a forecast looks at, count; over it the numbers are too small, which is said.
pub const FORECAST_INSTANTS: u64 = 2_000_000;
/// Tenants whose use a forecast shows, count.
pub const FORECAST_TENANTS: usize = 100;
