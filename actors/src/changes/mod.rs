//! The changes that became durable on this node, for watchers. They are in a log in memory with a limited length.
//! Shards write it, and every watcher reads it at its own pace. A watcher that is too slow misses entries at the old
//! end and is told how many; it never delays a shard.
//!
//! Nothing is written while nobody watches: a shard then only reads one flag. The log is kept for a while after the
//! last watcher has gone, so that a watcher that lost its connection can continue. A node of a cluster also copies the
//! changes of other nodes ([`mirror`]).

pub mod filter;
pub mod mirror;
pub mod watch;

use campanile_schema::limits::{WATCH_KEEP_MS, WATCH_KEPT, WATCH_KEPT_BYTES};
pub use campanile_schema::peer::changes::{Change, ChangedItem, Copied, LogPlace};
use parking_lot::RwLock;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
};
use tokio::sync::watch as signal;

/// Long before any start.
const NEVER: i64 = i64::MIN / 2;

/// A place in the log.
struct Entry {
    /// None: others lost something here.
    change: Option<Arc<Change>>,
    bytes: usize,
    /// Copied from another node.
    copied: bool,
}

/// Entries from `first` on, numbered one after the other.
#[derive(Default)]
struct Log {
    first: u64,
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Log {
    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn push(&mut self, change: Option<Change>, copied: bool) {
        let bytes = size_of::<Entry>() + change.as_ref().map_or(0, Change::bytes);
        self.bytes += bytes;
        self.entries.push_back(Entry { change: change.map(Arc::new), bytes, copied });
        while self.entries.len() > WATCH_KEPT || self.bytes > WATCH_KEPT_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes;
            self.first += 1;
        }
    }

    /// Whoever stood anywhere before has lost something.
    fn begin_anew(&mut self) {
        self.first = self.next() + 1;
        self.entries = VecDeque::new();
        self.bytes = 0;
    }
}

/// What a reader gets.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    pub items: Vec<Arc<Change>>,
    /// Where to go on.
    pub next: u64,
    /// What fell off before the reader came, at least, count.
    pub dropped: u64,
    /// There is more to read already.
    pub more: bool,
}

/// Which part of the log a reader wants.
#[derive(Clone, Copy)]
pub struct ReadRange {
    pub after: u64,
    /// Items at most, count.
    pub most: usize,
    /// Entries looked at, at most, count.
    pub scan: usize,
    /// Bytes of items after which no more are taken.
    pub bytes: usize,
    /// Those that were copied from other nodes too.
    pub copies: bool,
}

/// See the module's text.
pub struct Changes {
    /// Names this log among those of all nodes and starts.
    id: u64,
    recording: AtomicBool,
    watchers: AtomicUsize,
    /// When a watcher last came or went, CLOCK_BOOTTIME ms.
    watched_ms: AtomicI64,
    /// When another node last asked, CLOCK_BOOTTIME ms.
    asked_ms: AtomicI64,
    mirroring: AtomicBool,
    log: RwLock<Log>,
    news: signal::Sender<u64>,
    /// Whether every other node was asked once since the mirror was started.
    mirrored: signal::Sender<bool>,
}

impl Changes {
    pub fn new(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            recording: AtomicBool::new(false),
            watchers: AtomicUsize::new(0),
            watched_ms: AtomicI64::new(NEVER),
            asked_ms: AtomicI64::new(NEVER),
            mirroring: AtomicBool::new(false),
            log: RwLock::default(),
            news: signal::Sender::new(0),
            mirrored: signal::Sender::new(false),
        })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether anybody wants to know. What every decision looks at.
    pub fn recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// Another node asks: from now on, and for a while, changes are written.
    fn asked(&self, boot_ms: i64) {
        self.asked_ms.store(boot_ms, Ordering::Relaxed);
        self.begin();
    }

    fn begin(&self) {
        if !self.recording() {
            let mut log = self.log.write();
            if !self.recording() {
                log.begin_anew();
                self.recording.store(true, Ordering::Release);
            }
        }
    }

    /// Somebody watches on this node, or did so a while ago.
    fn is_watched(&self, boot_ms: i64) -> bool {
        self.watchers.load(Ordering::Acquire) > 0 || lately(&self.watched_ms, boot_ms)
    }

    /// Durable changes of this node, in the order of their shard's log.
    pub fn push(&self, changes: Vec<Change>, boot_ms: i64) {
        self.write(changes.into_iter().map(|change| (Some(change), false)), boot_ms);
    }

    /// Changes of another node; `dropped`: some of its were lost before them.
    fn copy(&self, changes: Vec<Change>, dropped: bool, boot_ms: i64) {
        let lost = dropped.then_some((None, true));
        self.write(lost.into_iter().chain(changes.into_iter().map(|change| (Some(change), true))), boot_ms);
    }

    fn write(&self, entries: impl Iterator<Item = (Option<Change>, bool)>, boot_ms: i64) {
        let mut log = self.log.write();
        if !self.is_watched(boot_ms) && !lately(&self.asked_ms, boot_ms) {
            self.recording.store(false, Ordering::Relaxed);
            log.begin_anew();
            return;
        }
        let before = log.next();
        for (change, copied) in entries {
            log.push(change, copied);
        }
        let next = log.next();
        drop(log);
        if next != before {
            self.news.send_replace(next);
        }
    }

    /// The end of the log: what comes next will be new.
    pub fn end(&self) -> u64 {
        self.log.read().next()
    }

    pub fn read(&self, range: ReadRange, wanted: impl Fn(&Change) -> bool) -> Page {
        let log = self.log.read();
        // A place ahead of the log is of no log of ours.
        let lost = if range.after > log.next() { 1 } else { log.first.saturating_sub(range.after) };
        let begin = range.after.clamp(log.first, log.next());
        let mut page = Page { next: begin, dropped: lost, ..Page::default() };
        let mut bytes = 0;
        for entry in log.entries.range((begin - log.first) as usize..).take(range.scan) {
            page.next += 1;
            match &entry.change {
                _ if entry.copied && !range.copies => {}
                None => page.dropped += 1,
                Some(change) if wanted(change) => {
                    page.items.push(change.clone());
                    bytes += entry.bytes;
                }
                Some(_) => {}
            }
            if page.items.len() >= range.most || bytes >= range.bytes {
                break;
            }
        }
        page.more = page.next < log.next();
        page
    }
}

fn lately(at_ms: &AtomicI64, boot_ms: i64) -> bool {
    boot_ms.saturating_sub(at_ms.load(Ordering::Relaxed)) <= WATCH_KEEP_MS
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
