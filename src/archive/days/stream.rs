//! Reads days of history from their beginning to their end: what a node sends, or a file that is to be verified.

use super::{DaySink, place};
use campanile_ports::{Row, StoreError};
use campanile_schema::record::RunRecord;
use campanile_store::archive::{
    reader::{Blocks, Subject},
    record::{DAY_FORMAT, DayHead, Record, Totals},
};
use std::{io::Read, sync::Arc};

/// See the module's text.
pub struct DayStream<R> {
    blocks: Blocks<R>,
    head: DayHead,
    /// Of the last run.
    last: Option<(i64, u64)>,
}

impl<R: Read> DayStream<R> {
    /// Reads the head; `name` stands in messages.
    pub fn open(input: R, name: impl Into<String>) -> Result<Self, StoreError> {
        let mut blocks = Blocks::begin(input, name.into(), Subject::Days)?;
        let head = match blocks.record()? {
            Some(Record::Day(head)) => head,
            Some(_) | None => return Err(blocks.damaged("it begins as no day of history does: is it a backup?")),
        };
        check_head(&head, blocks.name())?;
        Ok(Self { blocks, head, last: None })
    }

    pub fn head(&self) -> &DayHead {
        &self.head
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    /// Hands everything over, up to the end, which alone says that it was whole.
    pub fn read(&mut self, sink: &mut dyn DaySink) -> Result<Totals, StoreError> {
        while let Some(record) = self.blocks.record()? {
            match record {
                Record::Rows(rows) => sink.rows(self.runs(rows)?)?,
                Record::Logs(logs) => sink.logs(logs)?,
                Record::Again(_) => {}
                Record::Head(_)
                | Record::Day(_)
                | Record::Snapshot(_)
                | Record::Chunk(_)
                | Record::Log(_)
                | Record::Batch(_)
                | Record::Broken(_)
                | Record::End(_) => return Err(self.blocks.damaged("a record that no day of history has")),
            }
        }
        Ok(self.blocks.totals())
    }

    /// In their order, and of the time that the head names.
    fn runs(&mut self, rows: Vec<Row>) -> Result<Vec<RunRecord>, StoreError> {
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let Row::Run(record) = row else { return Err(self.blocks.damaged("a row that is no ended run")) };
            let at = place(&record);
            if self.last.is_some_and(|last| last >= at) || !(self.head.from_ms..self.head.to_ms).contains(&at.0) {
                return Err(self.blocks.damaged(&format!("run {} does not belong here", record.run)));
            }
            self.last = Some(at);
            runs.push(Arc::unwrap_or_clone(record));
        }
        Ok(runs)
    }
}

/// Refuses what a newer release wrote.
pub fn check_head(head: &DayHead, name: &str) -> Result<(), StoreError> {
    if head.day_format != DAY_FORMAT {
        return Err(StoreError::Refused(format!(
            "{name}: days of history of form {}, this release reads form {DAY_FORMAT}; use release {} or newer",
            head.day_format, head.release
        )));
    }
    head.store.check().map_err(|e| StoreError::Refused(format!("{name}: {e}")))
}
