//! Small files that are replaced whole: one line of JSON, one line with its checksum. A person can read them; a damaged
//! one is refused. Replaced by: write a new file, sync it, rename it over the old one, sync the directory.

use super::{Files, Open, SyncSite, read_whole};
use campanile_ports::StoreError;
use campanile_schema::limits;
use serde::{Serialize, de::DeserializeOwned};
use std::{io, path::Path};

/// Reads a stamped file; None when there is none.
pub fn read<T: DeserializeOwned>(files: &dyn Files, path: &Path, advice: &str) -> Result<Option<T>, StoreError> {
    let bytes = match read_whole(files, path, limits::STORE_SMALL_FILE_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => {
            return Err(corrupt(path, &e.to_string(), advice));
        }
        Err(e) => {
            return Err(StoreError::Unavailable(format!("cannot read {}: {e}", path.display())));
        }
    };
    parse(&bytes).map(Some).map_err(|why| corrupt(path, &why, advice))
}

/// Replaces a stamped file; durable when this returns, its name only if `dir_site` is given.
pub fn write<T: Serialize>(
    files: &dyn Files,
    path: &Path,
    value: &T,
    file_site: SyncSite,
    dir_site: Option<SyncSite>,
) -> io::Result<()> {
    let json = serde_json::to_string(value).map_err(io::Error::other)?;
    let text = format!("{json}\ncrc32c {:08x}\n", crc32c::crc32c(json.as_bytes()));
    if text.len() as u64 > limits::STORE_SMALL_FILE_BYTES {
        return Err(io::Error::other(format!("{} would be {} bytes long", path.display(), text.len())));
    }
    let new = path.with_extension("tmp");
    let file = files.open(&new, Open::Create)?;
    file.write_at(text.as_bytes(), 0)?;
    file.sync_data(file_site)?;
    files.rename(&new, path)?;
    let Some(dir_site) = dir_site else {
        return Ok(());
    };
    let dir = path.parent().ok_or_else(|| io::Error::other("a file without a directory"))?;
    files.sync_dir(dir, dir_site)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("offset {}: not text", e.valid_up_to()))?;
    let mut lines = text.split('\n');
    let json = lines.next().unwrap_or_default();
    let stamp = lines.next().and_then(|l| l.strip_prefix("crc32c ")).unwrap_or_default();
    let expected = u32::from_str_radix(stamp, 16)
        .map_err(|_| format!("offset {}: the checksum line is missing", json.len() + 1))?;
    if crc32c::crc32c(json.as_bytes()) != expected {
        return Err("offset 0: the checksum does not match".into());
    }
    serde_json::from_str(json).map_err(|e| format!("offset {}: {e}", e.column()))
}

fn corrupt(path: &Path, why: &str, advice: &str) -> StoreError {
    StoreError::Corrupt(format!("{}: {why}. {advice}", path.display()))
}
