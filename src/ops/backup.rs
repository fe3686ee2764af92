//! A backup of the store of this node, while it runs.

use super::{Answer, Operations, access, audit};
use crate::auth::Caller;
use campanile_actors::ports::StoreError;
use campanile_schema::error::{ApiError, ErrorCode};
use std::{
    io::Write,
    sync::{Arc, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A store that can be written into an archive while it is used.
pub trait BackupSource: Send + Sync + 'static {
    /// Blocks until all is written; `at_ms` is told in the archive.
    fn backup(&self, out: &mut dyn Write, at_ms: i64) -> Result<(), StoreError>;
}

/// What a node has for backups.
#[derive(Clone)]
pub(super) struct Backups {
    /// Weak: a stopped node lets its store go.
    source: Weak<dyn BackupSource>,
    /// One at a time: each holds up the trimming of the journal.
    place: Arc<Semaphore>,
}

impl Backups {
    pub(super) fn of(source: Weak<dyn BackupSource>) -> Self {
        Self { source, place: Arc::new(Semaphore::new(1)) }
    }
}

/// A backup that was allowed.
pub struct Backup {
    source: Arc<dyn BackupSource>,
    caller: Caller,
    at_ms: i64,
    _place: OwnedSemaphorePermit,
}

impl Backup {
    /// Writes it; blocks for as long as it takes.
    pub fn write(self, out: &mut dyn Write) {
        let done = self.source.backup(out, self.at_ms).map_err(|error| {
            tracing::warn!(%error, "a backup did not come to its end");
            ApiError::new(ErrorCode::NotReady, error.to_string())
        });
        audit(&self.caller, "store.backup", &"store", None, &done);
    }
}

impl Operations {
    /// An archive of everything on this node, for operators.
    pub fn store_backup(&self, caller: &Caller) -> Answer<Backup> {
        access::operator(caller)?;
        // Also says whether the node is ready.
        let at_ms = self.scheduler.now_ms()?;
        let Some(backups) = &self.backups else {
            return Err(ApiError::new(
                ErrorCode::IllegalState,
                "this node has no store of its own: what a cluster shares is backed up with the tools of its CQL servers",
            ));
        };
        let Some(source) = backups.source.upgrade() else {
            return Err(ApiError::new(ErrorCode::NotReady, "the node stops"));
        };
        let Ok(place) = backups.place.clone().try_acquire_owned() else {
            let message = "a backup is under way, and a node makes one at a time";
            return Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(10.0));
        };
        Ok(Backup { source, caller: caller.clone(), at_ms, _place: place })
    }
}
