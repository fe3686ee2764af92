//! What a body writes to its log, until it is sent: bounded per attempt; what does not fit is counted and said.

use super::key::Key;
use campanile_schema::limits::{EXECUTOR_LOG_UNSENT_BYTES, LOG_BYTES_PER_ATTEMPT, LOG_CHUNK_BYTES, LOG_UNSENT_BYTES};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{Notify, mpsc};

#[derive(Debug, Default)]
struct Text {
    unsent: Vec<u8>,
    /// All that was ever taken, bytes.
    total: usize,
    dropped: usize,
    /// The session knows that there is something to send.
    told: bool,
}

/// The log of one attempt.
#[derive(Debug)]
pub(super) struct AttemptLog {
    key: Key,
    text: Mutex<Text>,
    room: Notify,
    session: LogsOut,
}

/// Where the logs of all attempts of an executor go, and what they may hold together.
#[derive(Clone, Debug)]
pub(super) struct LogsOut {
    ready: mpsc::Sender<Key>,
    unsent: Arc<AtomicUsize>,
}

impl LogsOut {
    pub(super) fn new(ready: mpsc::Sender<Key>) -> Self {
        Self { ready, unsent: Arc::default() }
    }
}

impl AttemptLog {
    pub(super) fn new(key: Key, session: LogsOut) -> Self {
        Self { key, text: Mutex::default(), room: Notify::new(), session }
    }

    fn text(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all of `parts` or nothing; never waits.
    pub(super) fn write(&self, parts: &[&[u8]]) {
        let mut text = self.text();
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let full = text.unsent.len() + bytes > LOG_UNSENT_BYTES || text.total + bytes > LOG_BYTES_PER_ATTEMPT;
        if full || !self.reserve(bytes) {
            text.dropped += bytes;
            return;
        }
        for part in parts {
            text.unsent.extend_from_slice(part);
        }
        text.total += bytes;
        self.tell(&mut text);
    }

    /// Takes all of `bytes` up to the cap of an attempt, waiting while too much is unsent.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let freed = self.room.notified();
            {
                let mut text = self.text();
                let left = LOG_BYTES_PER_ATTEMPT.saturating_sub(text.total);
                if left == 0 {
                    text.dropped += bytes.len();
                    return;
                }
                let room = LOG_UNSENT_BYTES.saturating_sub(text.unsent.len()).min(left);
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                if self.reserve(now.len()) {
                    text.unsent.extend_from_slice(now);
                } else {
                    text.dropped += now.len();
                }
                text.total += now.len();
                bytes = later;
                self.tell(&mut text);
            }
            if !bytes.is_empty() && self.text().total < LOG_BYTES_PER_ATTEMPT {
                freed.await;
            }
        }
    }

    /// Takes bytes from what all attempts may hold together.
    fn reserve(&self, bytes: usize) -> bool {
        let before = self.session.unsent.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > EXECUTOR_LOG_UNSENT_BYTES {
            self.session.unsent.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    fn tell(&self, text: &mut Text) {
        // When the session is too busy to be told, the next write tries again and the end of the attempt sends all.
        text.told = text.told || self.session.ready.try_send(self.key).is_ok();
    }

    /// The next piece to send. `last`: the attempt is over, so what was dropped is said.
    pub(super) fn take(&self, last: bool) -> Option<Vec<u8>> {
        let mut text = self.text();
        text.told = false;
        if last && text.dropped > 0 {
            let note = format!("\n[{} bytes of log dropped]\n", text.dropped);
            text.dropped = 0;
            self.session.unsent.fetch_add(note.len(), Ordering::Relaxed);
            text.unsent.extend_from_slice(note.as_bytes());
        }
        if text.unsent.is_empty() {
            return None;
        }
        let chunk = if text.unsent.len() <= LOG_CHUNK_BYTES {
            std::mem::take(&mut text.unsent)
        } else {
            text.unsent.drain(..LOG_CHUNK_BYTES).collect()
        };
        self.session.unsent.fetch_sub(chunk.len(), Ordering::Relaxed);
        self.room.notify_waiters();
        Some(chunk)
    }
}

impl Drop for AttemptLog {
    fn drop(&mut self) {
        let unsent = self.text().unsent.len();
        self.session.unsent.fetch_sub(unsent, Ordering::Relaxed);
    }
}
