//! The token file on disk: read again when it changes, and what is wrong with it when it cannot be taken over.

use super::{Entries, TokenFileError, parse};
use campanile_schema::limits::TOKEN_RELOAD_MS;
use parking_lot::{Mutex, MutexGuard};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

/// The file's entries, and when to look at it again.
pub(super) struct WatchedFile {
    path: PathBuf,
    state: Mutex<Watched>,
    /// Rises whenever other entries come into force.
    changes: watch::Sender<u64>,
}

struct Watched {
    entries: Entries,
    stamp: Option<Stamp>,
    looked_at: Instant,
    /// Why the file as it is now is not in force.
    refused: Option<String>,
    /// The last look found a file without a token. Only the next one believes it: an editor may be writing.
    emptied: bool,
}

/// What changes when a file is edited or replaced.
type Stamp = (SystemTime, u64);

impl WatchedFile {
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        let stamp = stamp(path);
        let entries = read(path)?;
        let state = Watched { entries, stamp, looked_at: Instant::now(), refused: None, emptied: false };
        metrics::gauge!("campanile_token_file_in_force").set(1.0);
        Ok(Self { path: path.to_owned(), state: Mutex::new(state), changes: watch::Sender::new(0) })
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn refused(&self) -> Option<String> {
        self.entries();
        self.lock().refused.clone()
    }

    pub fn entries(&self) -> Entries {
        let mut state = self.lock();
        if state.looked_at.elapsed() >= Duration::from_millis(TOKEN_RELOAD_MS) {
            state.looked_at = Instant::now();
            let stamp = stamp(&self.path);
            if stamp != state.stamp || state.emptied {
                state.stamp = stamp;
                self.take(&mut state);
            }
            metrics::gauge!("campanile_token_file_in_force").set(if state.refused.is_some() { 0.0 } else { 1.0 });
        }
        state.entries.clone()
    }

    fn take(&self, state: &mut Watched) {
        let emptied = std::mem::take(&mut state.emptied);
        match read(&self.path) {
            Ok(entries) => {
                tracing::info!(tokens = entries.len(), "token file read again");
                self.put(state, entries);
            }
            Err(TokenFileError::Empty { .. }) if !emptied => state.emptied = true,
            Err(error @ TokenFileError::Empty { .. }) => {
                tracing::error!(%error, "the token file lists nobody: from now on no token opens anything");
                self.put(state, Entries::default());
            }
            // A slip in the file must not lock everybody out; the tokens read before stay valid.
            Err(error) => {
                tracing::error!(%error, "the token file as it is now is not in force: the tokens read before stay valid");
                state.refused = Some(error.to_string());
            }
        }
    }

    fn put(&self, state: &mut Watched, entries: Entries) {
        state.refused = None;
        if state.entries != entries {
            state.entries = entries;
            self.changes.send_modify(|number| *number += 1);
        }
    }

    #[cfg(test)]
    pub fn look_again(&self) -> Entries {
        self.lock().looked_at = Instant::now() - Duration::from_millis(TOKEN_RELOAD_MS);
        self.entries()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(path: &Path) -> Result<Entries, TokenFileError> {
    let shown = path.display().to_string();
    let unreadable = |error| TokenFileError::Unreadable { path: shown.clone(), error };
    let mode = super::file_mode(path).map_err(unreadable)?;
    if mode & 0o022 != 0 {
        return Err(TokenFileError::TooOpen { path: shown, mode });
    }
    if mode & 0o004 != 0 {
        tracing::warn!(path = ?shown, "the token file can be read by everybody; chmod 600 is better");
    }
    let text = crate::text::read(path, true).map_err(unreadable)?;
    let entries =
        parse(&text).map_err(|(line, message)| TokenFileError::Line { path: shown.clone(), line, message })?;
    if entries.is_empty() {
        return Err(TokenFileError::Empty { path: shown });
    }
    Ok(entries.into())
}
