//! Ended runs for days of history, of a directory that a node serves and of one that none does.

use super::{EmbeddedStore, guard};
use crate::tables::EndedRuns;
use campanile_ports::{Position, StoreError, rows::add_rows};
use campanile_schema::{format::FormatRow, frame::decode_batch, ids::SessionId};
use std::sync::{Arc, atomic::Ordering};

/// Batches of the journal that are projected at once, bytes.
const PROJECT_BYTES: usize = 16 << 20;

impl EmbeddedStore {
    /// What the directory is.
    pub fn format(&self) -> &FormatRow {
        &self.inner.format
    }

    /// Runs that ended from `from_ms` on and before `to_ms`, by when they ended, each followed by its logs. It breaks off when the
    /// store is opened anew after a failed write.
    pub fn ended(&self, from_ms: i64, to_ms: i64) -> Result<EndedRuns, StoreError> {
        let inner = Arc::clone(&self.inner);
        let session = SessionId(inner.session.load(Ordering::Acquire));
        let ended = inner.tables.ended(from_ms, to_ms)?;
        Ok(Box::new(ended.map(move |item| inner.still(session).and(item))))
    }

    /// Brings the read model to the end of the journal, as a start does: in a directory that no node serves nobody else does. Only in
    /// memory: the next start does it again.
    pub fn catch_up(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        let mut after: Position = inner.tables.position()?;
        loop {
            let batches = guard(&inner.log).read_after(after, PROJECT_BYTES)?;
            if batches.is_empty() {
                return Ok(());
            }
            for (position, bytes) in batches {
                let frames = decode_batch(&bytes).map_err(|e| StoreError::Corrupt(e.to_string()))?;
                let mut rows = Vec::new();
                frames.iter().for_each(|frame| add_rows(frame, &mut rows));
                inner.tables.apply(&rows, position)?;
                after = position;
            }
        }
    }
}
