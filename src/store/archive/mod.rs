//! The format of archives, in which data leaves a store: blocks, how the records in them (`schema/src/stored/archive.rs`) are
//! written, and how they are read. A backup of
//! the embedded store writes it; the crate `campanile-archive` does everything else with it.

pub mod block;
pub mod reader;
pub mod writer;

pub use campanile_schema::stored::archive as record;
pub use reader::ArchiveReader;
pub use record::{DAY_FORMAT, DayHead, Head, LogOf, Record, Totals};
pub use writer::ArchiveWriter;
