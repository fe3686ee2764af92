//! Time zones of a directory of the machine instead of the bundled ones: `[node] tzdb_dir`.
//!
//! A zone that the directory does not hold is the bundled one. Read once, at the start: a schedule means the same as long
//! as the process lives.

use campanile_core::cron::{Zones, use_zones};
use campanile_schema::limits::{TZDB_DEPTH, TZDB_FILE_BYTES, TZDB_FILES};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// First bytes of a compiled time zone (RFC 8536).
const MAGIC: &[u8] = b"TZif";
/// The same zones once more; those in `right` count leap seconds, which UTC here does not.
const TWINS: [&str; 2] = ["posix", "right"];

/// Schedules are computed with the zones of `dir` from here on; empty = with the bundled ones. Called once, before any
/// schedule is read. The error is a sentence for the operator.
pub fn use_directory(dir: &str) -> Result<(), String> {
    if dir.is_empty() {
        return Ok(());
    }
    let zones = read(Path::new(dir))?;
    tracing::info!(dir, zones = zones.len(), version = zones.version(), "time zones of a directory");
    use_zones(zones).map_err(|_| "node.tzdb_dir: the time zones were chosen before".to_owned())
}

fn read(dir: &Path) -> Result<Zones, String> {
    let mut files = Vec::new();
    list(dir, "", TZDB_DEPTH, &mut files).map_err(|e| format!("node.tzdb_dir: {}: {e}", dir.display()))?;
    files.sort();
    let mut checksum = 0;
    let mut read = Vec::new();
    for (name, path) in files {
        let bytes = fs::read(&path).map_err(|e| format!("node.tzdb_dir: {}: {e}", path.display()))?;
        if bytes.starts_with(MAGIC) {
            checksum = crc32c::crc32c_append(crc32c::crc32c_append(checksum, name.as_bytes()), &bytes);
            read.push((name, path, bytes));
        }
    }
    let mut zones = Zones::new(version(dir).unwrap_or_else(|| format!("files-{checksum:08x}")));
    for (name, path, bytes) in read {
        zones.add(&name, &bytes).map_err(|e| format!("node.tzdb_dir: {}: {e}", path.display()))?;
    }
    if zones.is_empty() {
        return Err(format!(
            "node.tzdb_dir: {}: there are no compiled time zones in it; name one such as /usr/share/zoneinfo",
            dir.display()
        ));
    }
    Ok(zones)
}

/// Files of a size that a zone may have, with their names in the database.
fn list(dir: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        // A name that is not UTF-8 is no zone's.
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let whole = format!("{prefix}{name}");
        // Follows links: half of a database are aliases.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() {
            if depth > 1 && !(prefix.is_empty() && TWINS.contains(&name)) {
                list(&path, &format!("{whole}/"), depth - 1, files)?;
            }
        } else if metadata.is_file() && metadata.len() <= TZDB_FILE_BYTES {
            if files.len() >= TZDB_FILES {
                return Err(io::Error::other(format!("more than {TZDB_FILES} files")));
            }
            files.push((whole, path));
        }
    }
    Ok(())
}

/// What the directory says of itself: the first line of `tzdata.zi`, `# version 2026b`, or the file `+VERSION`.
fn version(dir: &Path) -> Option<String> {
    let first = |name: &str| Some(fs::read_to_string(dir.join(name)).ok()?.lines().next()?.trim().to_owned());
    let stated = first("tzdata.zi").and_then(|line| line.strip_prefix("# version ").map(str::to_owned));
    let stated = stated.or_else(|| first("+VERSION"))?;
    let plain = (1..=32).contains(&stated.len()) && stated.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    plain.then_some(stated)
}
