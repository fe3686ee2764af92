//! One watch: its position in the log, its filter, and the notifications that it gets.

use super::{Change, ChangedItem, Changes, ReadRange, filter::WatchFilter, mirror::Mirror};
use crate::{call_error::CallError, scheduler::Scheduler, shutdown::Shutdown, time::NodeTime};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::RunId,
    limits::{WATCH_BATCH, WATCH_BEAT_MS, WATCH_GATHER_MS, WATCH_SCAN, WATCHES},
    time::Timestamp,
    watch::RunChange,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{sync::watch as signal, time::Instant};

/// Between two looks whether the session of the node goes on.
const LOOK: Duration = Duration::from_millis(500);

/// What a watcher is told at once.
#[derive(Debug)]
pub struct Batch {
    pub items: Vec<Arc<Change>>,
    pub cursor: String,
    /// Lost before these, at least, count.
    pub dropped: u64,
}

/// A place among those who watch; given back when it is dropped.
struct WatchPermit {
    changes: Arc<Changes>,
    time: Arc<NodeTime>,
}

impl WatchPermit {
    fn take(changes: Arc<Changes>, time: Arc<NodeTime>) -> Answer<Self> {
        if changes.watchers.fetch_add(1, Ordering::AcqRel) >= WATCHES {
            changes.watchers.fetch_sub(1, Ordering::AcqRel);
            let message = format!("the node has {WATCHES} watches; end one, or watch more with one of them");
            return Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(5.0));
        }
        changes.watched_ms.store(time.boot_ms(), Ordering::Relaxed);
        changes.begin();
        metrics::gauge!("campanile_watches").increment(1.0);
        Ok(Self { changes, time })
    }
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        self.changes.watched_ms.store(self.time.boot_ms(), Ordering::Relaxed);
        self.changes.watchers.fetch_sub(1, Ordering::AcqRel);
        metrics::gauge!("campanile_watches").decrement(1.0);
    }
}

/// See the module's text. Its place is given back when it is dropped.
pub struct Watch {
    scheduler: Scheduler,
    /// Of the session that it was begun with.
    ended: Arc<Shutdown>,
    permit: WatchPermit,
    wanted: WatchFilter,
    after: u64,
    dropped: u64,
    /// The state of its one run is to be told before anything else.
    read_run: bool,
    told_final: bool,
    news: signal::Receiver<u64>,
    read_at: Option<Instant>,
}

/// A place in a log, as callers keep it.
fn cursor(log: u64, after: u64) -> String {
    format!("{log:x}-{after:x}")
}

fn parse_cursor(text: &str) -> Option<(u64, u64)> {
    let (log, after) = text.split_once('-')?;
    Some((u64::from_str_radix(log, 16).ok()?, u64::from_str_radix(after, 16).ok()?))
}

impl Scheduler {
    /// Changes that are wanted, from now on or after a cursor, as they become durable here or on another node.
    pub async fn watch(&self, wanted: WatchFilter, after: Option<&str>) -> Answer<Watch> {
        let place = after.map(parse_cursor);
        if place == Some(None) {
            let message = "after: is not a cursor that a node gave; leave it out to begin now";
            return Err(ApiError::new(ErrorCode::InvalidArgument, message));
        }
        let handles = self.handles()?;
        let changes = handles.changes.clone();
        let permit = WatchPermit::take(changes.clone(), handles.identity.time.clone())?;
        let (after, dropped) = match place.flatten() {
            Some((log, after)) if log == changes.id() => (after, 0),
            // Of another node, or of another start of this one: what came since is not known here.
            Some(_) => (changes.end(), 1),
            None => (changes.end(), 0),
        };
        let mirror = Mirror {
            changes: changes.clone(),
            identity: handles.identity.clone(),
            shards: handles.shards.clone(),
            ended: handles.health.ended.clone(),
        };
        mirror.begin().await;
        let news = changes.news.subscribe();
        let read_run = wanted.run.is_some();
        Ok(Watch {
            scheduler: self.clone(),
            ended: handles.health.ended.clone(),
            permit,
            wanted,
            after,
            dropped,
            read_run,
            told_final: false,
            news,
            read_at: None,
        })
    }
}

impl Watch {
    pub fn cursor(&self) -> String {
        cursor(self.changes().id(), self.after)
    }

    fn changes(&self) -> &Changes {
        &self.permit.changes
    }

    /// The next changes, or none after a while without any. None: the one run that was watched is final and was told.
    pub async fn next(&mut self) -> Answer<Option<Batch>> {
        if self.told_final {
            return Ok(None);
        }
        if let (true, Some(run)) = (std::mem::take(&mut self.read_run), self.wanted.run) {
            return self.state_now(run).await.map(Some);
        }
        let beat = Instant::now() + Duration::from_millis(WATCH_BEAT_MS);
        loop {
            // Many changes in one go: whoever reads each one alone costs the node more than the changes.
            if let Some(last) = self.read_at {
                tokio::time::sleep_until(last + Duration::from_millis(WATCH_GATHER_MS)).await;
            }
            self.news.mark_unchanged();
            let range =
                ReadRange { after: self.after, most: WATCH_BATCH, scan: WATCH_SCAN, bytes: usize::MAX, copies: true };
            let page = self.changes().read(range, |change| self.wanted.is(change));
            self.after = page.next;
            self.dropped += page.dropped;
            self.read_at = (!page.more).then(Instant::now);
            if self.dropped > 0
                && let Some(run) = self.wanted.run
            {
                // What was lost may have been its end.
                return self.state_now(run).await.map(Some);
            }
            if !page.items.is_empty() || self.dropped > 0 || Instant::now() >= beat {
                self.told_final |= page.items.iter().any(|change| self.is_its_end(change));
                return Ok(Some(self.batch(page.items)));
            }
            if page.more {
                tokio::task::yield_now().await;
                continue;
            }
            self.wait(beat).await?;
        }
    }

    /// For something new, but not past the beat; an error when the node's session is over.
    async fn wait(&mut self, beat: Instant) -> Answer<()> {
        while Instant::now() < beat {
            if self.ended.is_over() {
                return Err(CallError::Unanswered.into());
            }
            let until = beat.min(Instant::now() + LOOK);
            match tokio::time::timeout_at(until, self.news.changed()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) => return Err(CallError::Unanswered.into()),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn is_its_end(&self, change: &Change) -> bool {
        match &change.what {
            ChangedItem::Run(run) => self.wanted.run == Some(run.run_id) && run.state.is_final(),
            ChangedItem::Job(_) => false,
        }
    }

    fn batch(&mut self, items: Vec<Arc<Change>>) -> Batch {
        Batch { items, cursor: self.cursor(), dropped: std::mem::take(&mut self.dropped) }
    }

    /// The watched run as it is.
    async fn state_now(&mut self, run: RunId) -> Answer<Batch> {
        // What is in the log is durable, so the read that follows rests on it.
        self.after = self.changes().end();
        let view = self.scheduler.run(run).await?;
        // The name of a deleted job is not known any more.
        let name = self.scheduler.job(view.job_id).await.map(|job| job.spec.name).unwrap_or_default();
        let at = Timestamp(self.permit.time.now_ms());
        let what = ChangedItem::Run(RunChange::new(at, &name, &view));
        self.told_final = view.state.is_final();
        Ok(self.batch(vec![Arc::new(Change { what, labels: std::collections::BTreeMap::new() })]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_or_refused() {
        assert_eq!(parse_cursor(&cursor(0xabc, 77)), Some((0xabc, 77)));
        for wrong in ["", "-", "1", "1-", "-1", "x-1", "1-2-3", "11111111111111111-1"] {
            assert_eq!(parse_cursor(wrong), None, "{wrong}");
        }
    }
}
