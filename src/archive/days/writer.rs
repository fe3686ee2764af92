//! Writes days of history, a block at a time.

use campanile_ports::{Row, StoreError};
use campanile_schema::{ids::RunId, record::RunRecord};
use campanile_store::archive::{
    block::Packing,
    record::{DayHead, LogOf, Record, Totals},
    writer::BlockWriter,
};
use std::io::Write;

use super::DaySink;

/// Runs with a generation above the first in one block, count.
const AGAIN_ROWS: usize = 65_536;

/// See the module's text.
pub struct DayWriter<W: Write> {
    blocks: BlockWriter<W>,
    /// Runs that were started again, with their generation: readers of older days want to know them before they read.
    again: Vec<(RunId, u32)>,
}

impl<W: Write> DayWriter<W> {
    /// Begins one.
    pub fn begin(out: W, head: DayHead) -> Result<Self, StoreError> {
        let mut blocks = BlockWriter::begin(out, Packing::Zstd);
        blocks.put(&Record::Day(head))?;
        Ok(Self { blocks, again: Vec::new() })
    }

    /// It cannot be ended: readers are told why.
    pub fn give_up(self, why: &str) {
        self.blocks.give_up(why);
    }

    /// Gives what was written to, flushed, and how much of what stands in it.
    pub fn end(mut self) -> Result<(W, Totals), StoreError> {
        for again in self.again.chunks(AGAIN_ROWS) {
            self.blocks.put(&Record::Again(again.to_vec()))?;
        }
        self.blocks.end()
    }
}

impl<W: Write> DaySink for DayWriter<W> {
    fn rows(&mut self, rows: Vec<RunRecord>) -> Result<(), StoreError> {
        let again = rows.iter().filter(|record| record.generation > 1);
        self.again.extend(again.map(|record| (record.run, record.generation)));
        self.blocks.totals.rows += rows.len() as u64;
        self.blocks.put(&Record::Rows(rows.into_iter().map(|run| Row::Run(run.into())).collect()))
    }

    fn logs(&mut self, logs: Vec<LogOf>) -> Result<(), StoreError> {
        self.blocks.totals.logs += logs.len() as u64;
        self.blocks.put(&Record::Logs(logs))
    }
}
