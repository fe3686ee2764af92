//! Ended runs in the portions that blocks hold: never of two days, and what a run's attempts said behind it.

use super::Day;
use campanile_ports::StoreError;
use campanile_schema::{
    limits::{ARCHIVE_ROWS, HISTORY_BLOCK_BYTES, HISTORY_LOG_BLOCK_BYTES},
    record::RunRecord,
};
use campanile_store::{
    archive::record::LogOf,
    tables::{Ended, EndedRuns},
};

/// Is handed ended runs by when they ended, and logs of those that it was handed last.
pub trait DaySink {
    /// All of one day.
    fn rows(&mut self, rows: Vec<RunRecord>) -> Result<(), StoreError>;
    fn logs(&mut self, logs: Vec<LogOf>) -> Result<(), StoreError>;
}

/// Hands everything over.
pub fn feed(ended: EndedRuns, sink: &mut dyn DaySink) -> Result<(), StoreError> {
    let mut batch = Batch { sink, rows: Vec::new(), row_bytes: 0, logs: Vec::new(), log_bytes: 0 };
    for ended in ended {
        match ended? {
            Ended::Run(record) => batch.row(*record)?,
            Ended::Log { run, attempt, bytes } => batch.log(LogOf { run, attempt, bytes })?,
        }
    }
    batch.flush()
}

struct Batch<'a> {
    sink: &'a mut dyn DaySink,
    rows: Vec<RunRecord>,
    row_bytes: usize,
    logs: Vec<LogOf>,
    log_bytes: usize,
}

impl Batch<'_> {
    fn row(&mut self, record: RunRecord) -> Result<(), StoreError> {
        let day = |record: &RunRecord| Day::of_ms(record.ended_ms.unwrap_or(i64::MIN));
        let full = self.rows.len() >= ARCHIVE_ROWS || self.row_bytes >= HISTORY_BLOCK_BYTES;
        // With no rows there are only logs of those before.
        if full || self.rows.first().is_none_or(|first| day(first) != day(&record)) {
            self.flush()?;
        }
        self.row_bytes += rough_bytes(&record);
        self.rows.push(record);
        Ok(())
    }

    fn log(&mut self, log: LogOf) -> Result<(), StoreError> {
        self.log_bytes += log.bytes.len();
        self.logs.push(log);
        if self.log_bytes >= HISTORY_LOG_BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        (self.row_bytes, self.log_bytes) = (0, 0);
        if !self.rows.is_empty() {
            self.sink.rows(std::mem::take(&mut self.rows))?;
        }
        if !self.logs.is_empty() {
            self.sink.logs(std::mem::take(&mut self.logs))?;
        }
        Ok(())
    }
}

/// What a run takes in a block before it is packed.
fn rough_bytes(record: &RunRecord) -> usize {
    let payloads = [&record.params, &record.result].into_iter().flatten().map(|payload| payload.0.len());
    let texts = [&record.key, &record.reason].into_iter().flatten().map(String::len);
    let attempts = record.attempts.iter().map(|attempt| 128 + attempt.error_message.as_ref().map_or(0, String::len));
    128 + payloads.chain(texts).chain(attempts).sum::<usize>()
}
