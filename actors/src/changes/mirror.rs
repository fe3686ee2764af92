//! Copies the changes of other nodes of the cluster into this node's log, while somebody watches here. It asks each
//! node for the changes since the last question, one question after the other. Nodes send nothing unasked, so no queue
//! can grow. A node that asks too late learns that it lost changes, and tells its watchers.

use super::{Change, Changes, Copied, LogPlace, ReadRange};
use crate::{identity::Identity, shard_map::ShardMap, shutdown::Shutdown, time::NodeTime};
use campanile_schema::{
    ids::SessionId,
    limits::{WATCH_MIRROR_BYTES, WATCH_MIRROR_ITEMS, WATCH_MIRROR_MS},
};
use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Between two questions that bring nothing.
const PAUSE: Duration = Duration::from_millis(WATCH_MIRROR_MS);
/// Longest wait of a new watch until every other node was asked once.
const READY: Duration = Duration::from_secs(2);

/// This node's own changes since a place; None = from now on.
pub fn since(changes: &Changes, time: &NodeTime, place: Option<LogPlace>) -> Copied {
    changes.asked(time.boot_ms());
    let here = |after| LogPlace { log: changes.id(), after };
    let Some(place) = place.filter(|place| place.log == changes.id()) else {
        return Copied { next: here(changes.end()), items: Vec::new(), dropped: place.is_some(), more: false };
    };
    let range = ReadRange {
        after: place.after,
        most: WATCH_MIRROR_ITEMS,
        scan: usize::MAX,
        bytes: WATCH_MIRROR_BYTES,
        copies: false,
    };
    let page = changes.read(range, |_| true);
    let items = page.items.iter().map(|change| (**change).clone()).collect();
    Copied { next: here(page.next), items, dropped: page.dropped > 0, more: page.more }
}

/// What copying needs of the session.
#[derive(Clone)]
pub(super) struct Mirror {
    pub changes: Arc<Changes>,
    pub identity: Arc<Identity>,
    pub shards: Arc<ShardMap>,
    pub ended: Arc<Shutdown>,
}

impl Mirror {
    /// Copies from now on, as long as it is wanted; waits until every other node was asked once.
    pub async fn begin(&self) {
        if self.shards.is_alone() {
            return;
        }
        if !self.changes.mirroring.swap(true, Ordering::AcqRel) {
            self.changes.mirrored.send_replace(false);
            tokio::spawn(self.clone().keep());
        }
        let mut mirrored = self.changes.mirrored.subscribe();
        // Later ones come from nodes that do not answer: their shards are being taken over.
        let _ = tokio::time::timeout(READY, mirrored.wait_for(|mirrored| *mirrored)).await;
    }

    /// While the session lives and somebody watches.
    fn is_wanted(&self) -> bool {
        !self.ended.is_over() && self.changes.is_watched(self.identity.time.boot_ms())
    }

    fn copy(&self, items: Vec<Change>, dropped: bool) {
        self.changes.copy(items, dropped, self.identity.time.boot_ms());
    }

    /// One copier for each other node.
    async fn keep(self) {
        let mut copiers: HashMap<SessionId, tokio::task::JoinHandle<()>> = HashMap::new();
        let mut first = true;
        while self.is_wanted() {
            let Some(membership) = self.shards.membership() else { break };
            let others = membership.peers.others().into_iter().filter(|session| *session != self.identity.session);
            let others: HashSet<SessionId> = others.collect();
            let known = copiers.len();
            copiers.retain(|session, copier| {
                let stays = others.contains(session);
                if !stays {
                    copier.abort();
                }
                stays
            });
            let gone = copiers.len() < known;
            let (asked, mut answered) = tokio::sync::mpsc::channel::<()>(1);
            let mut came = false;
            for session in others {
                copiers.entry(session).or_insert_with(|| {
                    came = true;
                    tokio::spawn(self.clone().copy_from(session, asked.clone()))
                });
            }
            drop(asked);
            if !first && (gone || came) {
                // What it changed last, or first, was not heard.
                self.copy(Vec::new(), true);
            }
            if std::mem::take(&mut first) {
                // Nothing is sent: it ends when each of them has let go.
                let _ = tokio::time::timeout(READY, answered.recv()).await;
                self.changes.mirrored.send_replace(true);
            }
            tokio::time::sleep(PAUSE).await;
        }
        for copier in copiers.into_values() {
            copier.abort();
        }
        self.changes.mirrored.send_replace(false);
        self.changes.mirroring.store(false, Ordering::Release);
        // One who came meanwhile found it still marked as copying.
        if self.is_wanted() && !self.changes.mirroring.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.again());
        }
    }

    /// A future that names itself would have no size.
    fn again(self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.keep())
    }

    async fn copy_from(self, session: SessionId, asked: tokio::sync::mpsc::Sender<()>) {
        let mut place = None;
        let mut first = Some(asked);
        while !self.ended.is_over() {
            let Some(membership) = self.shards.membership() else { return };
            let answer = membership.peers.changes(session, place).await;
            drop(first.take());
            let more = match answer {
                Ok(copied) => {
                    place = Some(copied.next);
                    if copied.dropped || !copied.items.is_empty() {
                        self.copy(copied.items, copied.dropped);
                    }
                    copied.more
                }
                // It is asked again; what it did meanwhile is in its log, or told as lost.
                Err(error) => {
                    tracing::debug!(%error, session = session.0, "another node does not tell its changes");
                    false
                }
            };
            if !more {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
