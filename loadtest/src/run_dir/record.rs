//! Appends lines to a file of the run directory so that they survive a kill -9 of the node (another process) without fsync.
//!
//! Two ways: each line by its own write(2) (`flush` zero; survives a kill of the writer too), or gathered and written every few
//! milliseconds (a killed writer loses at most that much). It never drops a line: over its buffer limit the caller writes.
//!
//! Gathered files are also pushed to the disk several times a second. Left to the kernel, half a minute of them (hundreds of MB at
//! 20,000 runs/s) would go there at once, and the node's syncs, which share the disk, would wait behind them: the harness would
//! measure itself.
//!
//! How callers write each verb ([`crate::run_dir::lines::CallerLine`]): SENT with the whole request before its first byte leaves, then ACK,
//! REFUSED (`code`) or UNKNOWN (no answer, `code` says why). A call that is tried again keeps its number `call`. Of one job (or tenant,
//! or the system) a caller asks one thing at a time.
//!
//! | verb | SENT holds | ACK adds |
//! |---|---|---|
//! | `CREATE` | `spec` | `job` |
//! | `EDIT` | `job`, `spec` (the whole new one) | |
//! | `TRIGGER` | `job`, `key`, `params` | `run` |
//! | `PAUSE`, `RESUME`, `DELETE` | `job` | |
//! | `CANCEL`, `DISCARD` | `job`, `run` | |
//! | `RETRY`, `REDRIVE` | `job`, `run` | `generation` |
//! | `CONFIRM` | `job`, `run`, `decision` | `generation` |
//! | `PAUSE_TENANT`, `RESUME_TENANT` | `tenant` | written only when every shard holds it |
//! | `PAUSE_SYSTEM`, `RESUME_SYSTEM` | | written only when every shard holds it |
//!
//! A CREATE without an answer leaves open whether the job exists; its caller looks it up by its name before it gives up. An edit keeps
//! the kind of the trigger, and edits of FIXED_RATE name `anchorAt`: without it nobody but the node knows the instants.

use crate::{
    limits::{RECORD_BUFFER_BYTES, RECORD_SYNC_MS},
    run_dir::lines::ExecutorLine,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::Serialize;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

struct Shared {
    state: Mutex<State>,
    closing: Condvar,
    gathers: bool,
}

struct State {
    file: File,
    buffer: Vec<u8>,
    /// First error; shown at the end, since a history with holes proves nothing.
    error: Option<io::Error>,
    closed: bool,
}

/// An append-only file of lines, for many threads.
pub struct Record {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    forgets: bool,
}

impl State {
    fn flush(&mut self) {
        if let Err(error) = self.file.write_all(&self.buffer) {
            self.error.get_or_insert(error);
        }
        self.buffer.clear();
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    // A panic while holding it leaves at worst a torn line, which the checker sees.
    shared.state.lock()
}

impl Record {
    /// `flush` zero: each line at once.
    pub fn open(path: &Path, flush: Duration) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let on_disk = file.try_clone()?;
        let state = State { file, buffer: Vec::new(), error: None, closed: false };
        let gathers = !flush.is_zero();
        let shared = Arc::new(Shared { state: Mutex::new(state), closing: Condvar::new(), gathers });
        let mut record = Self { shared: Arc::clone(&shared), threads: Vec::new(), forgets: false };
        if gathers {
            let thread = || std::thread::Builder::new().name("record".into());
            let (flushing, syncing) = (Arc::clone(&shared), shared);
            record.threads.push(thread().spawn(move || flush_often(&flushing, flush))?);
            record.threads.push(thread().spawn(move || sync_often(&syncing, &on_disk))?);
        }
        Ok(record)
    }

    /// Forgets every line: for runs that nobody checks.
    pub fn nowhere() -> io::Result<Self> {
        let mut record = Self::open(Path::new("/dev/null"), Duration::ZERO)?;
        record.forgets = true;
        Ok(record)
    }

    /// Appends what `write` writes, and a line's end.
    fn append(&self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) {
        if self.forgets {
            return;
        }
        let mut state = lock(&self.shared);
        if let Err(error) = write(&mut state.buffer) {
            state.error.get_or_insert(error);
        }
        state.buffer.push(b'\n');
        if !self.shared.gathers || state.buffer.len() >= RECORD_BUFFER_BYTES {
            state.flush();
        }
    }

    /// Any line.
    pub fn line<T: Serialize>(&self, line: &T) {
        self.append(|buffer| serde_json::to_writer(buffer, line).map_err(io::Error::from));
    }

    /// A START or END of an executor, without serde: there are tens of thousands a second.
    pub fn body(&self, line: &ExecutorLine) {
        self.append(|buffer| {
            let event = match line.event {
                crate::run_dir::lines::ExecutorEvent::Up => "UP",
                crate::run_dir::lines::ExecutorEvent::Start => "START",
                crate::run_dir::lines::ExecutorEvent::End => "END",
                crate::run_dir::lines::ExecutorEvent::Refused => "REFUSED",
            };
            write!(
                buffer,
                "{{\"event\":\"{event}\",\"t_us\":{},\"run\":{},\"job\":{},\"token\":{},\"attempt\":{},\"generation\":{},\"epoch\":{},\"shard\":{}",
                line.t_us, line.run, line.job, line.token, line.attempt, line.generation, line.epoch, line.shard
            )?;
            if let Some(logical) = line.logical {
                write!(buffer, ",\"logical\":{logical}")?;
            }
            if let Some(outcome) = line.outcome {
                write!(buffer, ",\"outcome\":\"{outcome}\"")?;
            }
            for (name, payload) in [("params", &line.params), ("result", &line.result)] {
                if let Some(payload) = payload {
                    write!(buffer, ",\"{name}\":")?;
                    serde_json::to_writer(&mut *buffer, payload)?;
                }
            }
            if !line.secrets.is_empty() {
                buffer.write_all(b",\"secrets\":")?;
                serde_json::to_writer(&mut *buffer, &line.secrets)?;
            }
            if let Some(error) = &line.error {
                buffer.write_all(b",\"error\":")?;
                serde_json::to_writer(&mut *buffer, error)?;
            }
            if line.permanent {
                buffer.write_all(b",\"permanent\":true")?;
            }
            buffer.write_all(b"}")
        });
    }

    /// Writes what is gathered; the first error of all writes, if there was one.
    pub fn close(mut self) -> io::Result<()> {
        self.shut();
        lock(&self.shared).error.take().map_or(Ok(()), Err)
    }

    fn shut(&mut self) {
        lock(&self.shared).closed = true;
        self.shared.closing.notify_all();
        for thread in self.threads.drain(..) {
            // A flusher that panicked has left its buffer; it is written below.
            let _ = thread.join();
        }
        lock(&self.shared).flush();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.shut();
    }
}

fn flush_often(shared: &Shared, every: Duration) {
    let mut state = lock(shared);
    while !state.closed {
        shared.closing.wait_for(&mut state, every);
        if !state.buffer.is_empty() {
            state.flush();
        }
    }
}

/// Outside the lock: lines are gathered meanwhile.
fn sync_often(shared: &Shared, on_disk: &File) {
    let every = Duration::from_millis(RECORD_SYNC_MS);
    let mut state = lock(shared);
    while !state.closed {
        shared.closing.wait_for(&mut state, every);
        drop(state);
        let synced = on_disk.sync_data();
        state = lock(shared);
        if let Err(error) = synced {
            state.error.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run_dir::lines::ExecutorEvent;
    use campanile_schema::record::AttemptState;

    #[test]
    fn hand_written_lines_read_back_the_same_in_both_ways() {
        for flush_ms in [0, 1] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("executor-x.jsonl");
            let start = ExecutorLine {
                event: ExecutorEvent::Start,
                run: 7,
                job: 8,
                token: u64::MAX,
                attempt: 2,
                params: Some(campanile_schema::payload::Payload(r#"{"bodyMs":5,"who":"\"a\""}"#.into())),
                secrets: [("key".to_owned(), "\"v\"".to_owned())].into(),
                ..ExecutorLine::up()
            };
            let end = ExecutorLine {
                event: ExecutorEvent::End,
                logical: Some(-5),
                shard: 9,
                epoch: 3,
                generation: 4,
                outcome: Some(AttemptState::NotStarted),
                params: None,
                secrets: Default::default(),
                result: Some(campanile_schema::payload::Payload("[1,null]".into())),
                error: Some("A \"B\"".to_owned()),
                permanent: true,
                ..start.clone()
            };
            let record = Record::open(&path, Duration::from_millis(flush_ms)).unwrap();
            record.body(&start);
            record.body(&end);
            record.line(&end);
            record.close().unwrap();
            let read: Vec<ExecutorLine> =
                std::fs::read_to_string(&path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            assert_eq!(read, [start, end.clone(), end]);
        }
    }

    #[test]
    fn a_line_written_at_once_is_in_the_file_before_the_writer_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let record = Record::open(&path, Duration::ZERO).unwrap();
        record.line(&1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }
}
