//! Archives and reports on the command line: opened, read with their progress, and shown.

use super::{
    failure::Failure,
    output::{self, Format},
    progress::{Progress, Unit},
};
use campanile_ports::StoreError;
use campanile_store::archive::ArchiveReader;
use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

/// As text for people, or its fields.
pub(super) fn show<T: std::fmt::Display + serde::Serialize>(report: &T, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table => {
            output::text(&format!("{}\n", report.to_string().trim_end()));
            Ok(())
        }
        Format::Json | Format::Yaml => {
            let value = serde_json::to_value(report);
            output::one(format, &value.map_err(|error| Failure::here(error.to_string()))?)
        }
    }
}

/// How far an archive was read: of its size, where it has one.
pub(super) fn reading(archive: &Path, what: &str) -> Progress {
    let size = std::fs::metadata(archive).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    Progress::new(format!("{what} {}", archive.display()), Unit::Bytes, size)
}

/// Opens an archive, or standard input.
pub(super) fn open(archive: &Path, reading: &Progress) -> Result<ArchiveReader<Box<dyn Read>>, StoreError> {
    if archive == Path::new("-") {
        return ArchiveReader::open(Box::new(reading.counting(std::io::stdin().lock())), "standard input");
    }
    let file = File::open(archive)
        .map_err(|e| StoreError::Refused(format!("{}: cannot be opened: {e}", archive.display())))?;
    let input = reading.counting(BufReader::with_capacity(1 << 20, file));
    ArchiveReader::open(Box::new(input), archive.display().to_string())
}

/// The wall clock, milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
