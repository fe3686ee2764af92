//! What is said of files that are damaged or cannot be read.

use campanile_ports::StoreError;
use std::{io, path::Path};

/// What to do about damage; ends every message about it.
pub const ADVICE: &str = "Acknowledged data may be missing: keep a copy of the directory, run `campanile store check DIR` \
    to see what else is wrong, and restore the directory from a backup or a healthy disk";

/// A refusal that names file and offset.
pub fn corrupt(path: &Path, offset: u64, why: &str) -> StoreError {
    StoreError::Corrupt(format!("{}: offset {offset}: {why}. {ADVICE}", path.display()))
}

/// A read that the operating system refused.
pub fn cannot_read(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot read {}: {error}", path.display()))
}
