//! Whether the views in a directory may be used, must be rebuilt from the journal, or are lost.
//!
//! Lost views are rebuilt when the journal still holds everything that was ever appended. When it was trimmed, finished
//! runs, their attempts, the ledger and the dead letters of the trimmed part exist nowhere else: that is said, and only
//! an explicit setting goes on without them.

use super::{EmbeddedOptions, log::Log};
use crate::{
    file::{Files, SyncSite, stamped},
    progress::Progress,
    tables::Tables,
};
use campanile_ports::{Position, StoreError};
use std::{io, path::Path, sync::Arc};

/// Where tables come from.
pub trait TableSource: Send + Sync {
    /// Opens the tables that are there; says why when they are missing or cannot be used.
    fn open(&self, options: &EmbeddedOptions) -> Result<Arc<dyn Tables>, String>;
    /// Removes what is there and begins empty ones that stand at `position`, durably.
    fn begin(&self, options: &EmbeddedOptions, position: Position) -> Result<Arc<dyn Tables>, StoreError>;
}

const ADVICE: &str = "Remove the file: the position then falls back to the file `log/TRIM`";

/// What the last flush covered; None when the file is missing.
pub fn read_mark(files: &dyn Files, dir: &Path) -> Result<Option<Progress>, StoreError> {
    stamped::read(files, &dir.join("FLUSHED"), ADVICE)
}

/// Writes down what a flush covered; durable when this returns.
pub fn write_mark(files: &dyn Files, dir: &Path, mark: &Progress) -> io::Result<()> {
    stamped::write(files, &dir.join("FLUSHED"), mark, SyncSite::FlushedFile, Some(SyncSite::FlushedDir))
}

/// Opens, rebuilds or refuses. Also gives what the tables are known to cover: rows after it are to be applied again.
pub fn open_tables(
    files: &dyn Files,
    options: &EmbeddedOptions,
    source: &dyn TableSource,
    mark: Option<Progress>,
    log: &Log,
) -> Result<(Arc<dyn Tables>, Progress), StoreError> {
    // The journal is trimmed only after a flush that covers it, so the trim mark is a lower bound that is always true.
    let trimmed = log.trimmed_upto();
    let mark = match mark {
        Some(mark) if mark.position >= trimmed => mark,
        Some(_) | None => Progress { position: trimmed, applied: Vec::new() },
    };
    let covered = mark.position > Position::default();
    let why = match source.open(options) {
        Ok(tables) => match tables.position() {
            Ok(position) if position >= mark.position => return Ok((tables, mark)),
            Ok(position) => format!(
                "they hold session {} seq {} where FLUSHED says session {} seq {}: an older copy?",
                position.session, position.seq, mark.position.session, mark.position.seq
            ),
            Err(e) => e.to_string(),
        },
        Err(why) => why,
    };
    let dir = options.dir.join("views");
    let whole = log.reaches_beginning();
    if covered && !whole && !options.accept_history_loss {
        return Err(StoreError::Corrupt(format!(
            "{}: the views cannot be used: {why}. The journal was trimmed up to session {} seq {}: finished runs with \
             their attempts, the ledger and the dead letters up to there cannot be rebuilt (jobs and open runs are not \
             touched). Restore `views` and `FLUSHED` from a backup, or start once with `accept_loss = true` in \
             [history] of the configuration, or with CAMPANILE_HISTORY__ACCEPT_LOSS=true in the environment, to go on \
             without them",
            dir.display(),
            trimmed.session,
            trimmed.seq
        )));
    }
    if covered {
        tracing::warn!(dir = %dir.display(), %why, whole, "the views are rebuilt from the journal");
    }
    // Empty tables stand where the journal begins. The mark follows them: a crash in between is found again as a loss.
    let fresh = Progress { position: trimmed, applied: Vec::new() };
    let tables = source.begin(options, trimmed)?;
    if mark != fresh {
        write_mark(files, &options.dir, &fresh)
            .map_err(|e| StoreError::WriteFailed(format!("{}: cannot write FLUSHED: {e}", options.dir.display())))?;
    }
    Ok((tables, fresh))
}
