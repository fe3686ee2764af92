//! A backup of the store of this node, while it runs.

use super::{Answer, Operations, access, invalid};
use campanile_archive::days::{self, Day};
use campanile_ports::StoreError;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    operations::{Row, rows},
};
use campanile_security::auth::Caller;
use campanile_store::embedded::EmbeddedStore;
use std::{
    io::Write,
    ops::Range,
    sync::{Arc, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A store that can be written into an archive while it is used.
pub trait BackupSource: Send + Sync + 'static {
    /// Blocks until all is written; `at_ms` is told in the archive.
    fn backup(&self, out: &mut dyn Write, at_ms: i64) -> Result<(), StoreError>;
    /// Runs that ended in some time, as days of history; blocks until all is written.
    fn history(&self, out: &mut dyn Write, at_ms: i64, time: Range<i64>) -> Result<(), StoreError>;
}

impl BackupSource for EmbeddedStore {
    fn backup(&self, out: &mut dyn Write, at_ms: i64) -> Result<(), StoreError> {
        Self::backup(self, out, at_ms).map(drop)
    }

    fn history(&self, out: &mut dyn Write, at_ms: i64, time: Range<i64>) -> Result<(), StoreError> {
        days::send(out, self.format(), time.clone(), at_ms, self.ended(time.start, time.end)?)
    }
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
    ops: Operations,
    caller: Caller,
    at_ms: i64,
    what: BackupScope,
    _place: OwnedSemaphorePermit,
}

enum BackupScope {
    Everything,
    /// Runs that ended in this time, ms since 1970.
    History(Range<i64>),
}

impl Backup {
    /// Writes it; blocks for as long as it takes.
    pub fn write(self, out: &mut dyn Write) {
        let (row, written) = match self.what {
            BackupScope::Everything => (rows::STORE_BACKUP, self.source.backup(out, self.at_ms)),
            BackupScope::History(time) => (rows::STORE_HISTORY, self.source.history(out, self.at_ms, time)),
        };
        let done = written.map_err(|error| {
            tracing::warn!(%error, operation = row.name, "it did not come to its end");
            ApiError::new(ErrorCode::NotReady, error.to_string())
        });
        self.ops.leave_own_trace(&self.caller, row, &done);
    }
}

impl Operations {
    /// An archive of everything on this node, for operators.
    pub fn store_backup(&self, caller: &Caller) -> Answer<Backup> {
        self.source(caller, rows::STORE_BACKUP, |_| BackupScope::Everything)
    }

    /// Runs that ended on closed days, for operators. `from` and `to` are days such as 2026-02-01, both included.
    pub async fn store_history(&self, caller: &Caller, from: Option<&str>, to: Option<&str>) -> Answer<Backup> {
        let day = |field: &str, text: Option<&str>| {
            text.map(|text| text.parse::<Day>().map_err(|why| invalid(format!("{field}: {why}")))).transpose()
        };
        let (from, to) = (day("from", from)?, day("to", to)?);
        let of_days = |now_ms| BackupScope::History(days::closed(from, to, now_ms));
        let history = self.source(caller, rows::STORE_HISTORY, of_days)?;
        // A run that was started again has left its day.
        self.scheduler.shown().await?;
        Ok(history)
    }

    fn source(&self, caller: &Caller, row: &'static Row, what: impl FnOnce(i64) -> BackupScope) -> Answer<Backup> {
        let source = self.source_for(caller, row, what);
        source.map_err(|error| self.refused(Some(caller), row, error))
    }

    fn source_for(&self, caller: &Caller, row: &Row, what: impl FnOnce(i64) -> BackupScope) -> Answer<Backup> {
        access::least(caller, row.least)?;
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
            let message = "a backup or an archive of history is under way, and a node makes one at a time: ask again when it has ended";
            return Err(ApiError::new(ErrorCode::IllegalState, message).retry_after(10.0));
        };
        let (ops, caller) = (self.clone(), caller.clone());
        Ok(Backup { source, ops, caller, at_ms, what: what(at_ms), _place: place })
    }
}
