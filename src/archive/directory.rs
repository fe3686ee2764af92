//! The directory of a stopped node, read as if it were an archive: what needs its content has one way to it.

use campanile_ports::StoreError;
use campanile_store::{
    archive::reader::ArchiveReader,
    embedded::{EmbeddedOptions, EmbeddedStore},
};
use std::{
    io::{BufWriter, PipeReader, pipe},
    path::Path,
    sync::Arc,
};

/// Bytes that are gathered before they go through the pipe.
const BUFFER: usize = 1 << 20;

/// Opens a directory that is a store, as a node does: a torn tail of its journal is cut.
fn open(dir: &Path) -> Result<Arc<EmbeddedStore>, StoreError> {
    if !dir.join("FORMAT").exists() {
        return Err(StoreError::Refused(format!("{}: there is no store here (no file FORMAT)", dir.display())));
    }
    EmbeddedStore::open(EmbeddedOptions::new(dir)).map(|(store, _)| store)
}

/// Lets `read` read its bytes as an archive.
pub fn with_bytes<T>(
    dir: &Path,
    at_ms: i64,
    read: impl FnOnce(PipeReader) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let store = open(dir)?;
    let (reader, writer) = pipe().map_err(|e| StoreError::Unavailable(format!("no pipe: {e}")))?;
    std::thread::scope(|scope| {
        // When it breaks off, the reader is told why.
        scope.spawn(move || store.backup(&mut BufWriter::with_capacity(BUFFER, writer), at_ms).map(drop));
        read(reader)
    })
}

/// Lets `read` read it record by record.
pub fn with_reader<T>(
    dir: &Path,
    at_ms: i64,
    read: impl FnOnce(ArchiveReader<PipeReader>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    with_bytes(dir, at_ms, |bytes| ArchiveReader::open(bytes, dir.display().to_string()).and_then(read))
}
