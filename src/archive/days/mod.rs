//! Days of history in files of their own: ended runs with their attempts and logs, one file for each day (UTC) on which they ended, and
//! a further part when a day has grown since. `campanile history archive` writes them, from a running node or a stopped one's
//! directory. The form is told in `docs/guides/history.md`.
//!
//! The blocks are those of a backup; what is in them is sorted by when runs ended, so that two of them are compared, and one is read
//! newest first, a block at a time.
//!
//! What this never does: change a file that is whole, or delete anything.

mod batch;
mod day;
mod directory;
mod file;
mod find;
mod keep;
mod stream;
mod writer;

pub use batch::{DaySink, feed};
pub use day::Day;
pub use directory::{ArchiveDirectory, DayPart};
pub use file::DayFile;
pub use find::{Archive, RunFilter};
pub use keep::{DayKeeper, WrittenDay};
pub use stream::DayStream;
pub use writer::DayWriter;

use campanile_ports::StoreError;
use campanile_schema::{format::FormatRow, limits::HISTORY_CLOSED_AFTER_MS, record::RunRecord};
use campanile_store::{
    archive::record::{DAY_FORMAT, DayHead},
    tables::EndedRuns,
};
use std::{io::Write, ops::Range};

/// What ended before this instant ended on closed days: days that have been over for a while.
pub fn closed_before(now_ms: i64) -> i64 {
    Day::of_ms(now_ms.saturating_sub(HISTORY_CLOSED_AFTER_MS)).begin_ms()
}

/// The time of some closed days, both named ones included; None: from the first on, up to the last that is closed.
pub fn closed(from: Option<Day>, to: Option<Day>, now_ms: i64) -> Range<i64> {
    let end = to.map_or(i64::MAX, Day::end_ms).min(closed_before(now_ms));
    from.map_or(i64::MIN, Day::begin_ms)..end
}

/// Writes ended runs of some time as they are sent from one process to another: as one file of a long day.
pub fn send(
    out: &mut dyn Write,
    store: &FormatRow,
    time: Range<i64>,
    at_ms: i64,
    ended: EndedRuns,
) -> Result<(), StoreError> {
    let release = env!("CARGO_PKG_VERSION").to_owned();
    let (from_ms, to_ms) = (time.start, time.end);
    let head = DayHead { day_format: DAY_FORMAT, release, store: store.clone(), from_ms, to_ms, at_ms };
    let mut writer = DayWriter::begin(out, head)?;
    match feed(ended, &mut writer) {
        Ok(()) => writer.end().map(drop),
        Err(error) => {
            writer.give_up(&error.to_string());
            Err(error)
        }
    }
}

/// By this runs stand in a file: when they ended, then their id.
fn place(record: &RunRecord) -> (i64, u64) {
    (record.ended_ms.unwrap_or(i64::MIN), record.run.0)
}
