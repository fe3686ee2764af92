//! The format of archives, in which data leaves a store: blocks, the records in them, and how they are written and read. A backup of
//! the embedded store writes it; the crate `campanile-archive` does everything else with it.

pub mod block;
pub mod reader;
pub mod record;
pub mod writer;

pub use reader::ArchiveReader;
pub use record::{DAY_FORMAT, DayHead, Head, LogOf, Record, Totals};
pub use writer::ArchiveWriter;
