//! Copies what other nodes of the cluster write into this node's log, while somebody watches here: each of them is asked for what
//! came since the last time, one question after the other. Nothing is pushed, so nothing piles up anywhere: a node that asks too
//! late is told that it lost something, and tells it to those who watch.

use super::{Change, Copied, LogPlace, Part};
use crate::directory::Directory;
use campanile_schema::{
    ids::SessionId,
    limits::{WATCH_MIRROR_BYTES, WATCH_MIRROR_ITEMS, WATCH_MIRROR_MS},
};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

/// Between two questions that bring nothing.
const PAUSE: Duration = Duration::from_millis(WATCH_MIRROR_MS);
/// Longest wait of a new watch until every other node was asked once.
const READY: Duration = Duration::from_secs(2);

/// This node's own changes since a place; None = from now on.
pub fn since(directory: &Directory, place: Option<LogPlace>) -> Copied {
    let changes = &directory.changes;
    changes.asked(directory.identity.time.boot_ms());
    let here = |after| LogPlace { log: changes.id(), after };
    let Some(place) = place.filter(|place| place.log == changes.id()) else {
        return Copied { next: here(changes.end()), items: Vec::new(), dropped: place.is_some(), more: false };
    };
    let part = Part {
        after: place.after,
        most: WATCH_MIRROR_ITEMS,
        scan: usize::MAX,
        bytes: WATCH_MIRROR_BYTES,
        copies: false,
    };
    let page = changes.read(part, |_| true);
    let items = page.items.iter().map(|change| (**change).clone()).collect();
    Copied { next: here(page.next), items, dropped: page.dropped > 0, more: page.more }
}

/// Copies from now on, as long as it is wanted; waits until every other node was asked once.
pub(super) async fn begin(directory: &Arc<Directory>) {
    if directory.shards.is_alone() {
        return;
    }
    let changes = &directory.changes;
    if !changes.mirroring.swap(true, Ordering::AcqRel) {
        changes.mirrored.send_replace(false);
        tokio::spawn(keep(Arc::downgrade(directory)));
    }
    let mut mirrored = changes.mirrored.subscribe();
    // Later ones come from nodes that do not answer: their shards are being taken over.
    let _ = tokio::time::timeout(READY, mirrored.wait_for(|mirrored| *mirrored)).await;
}

/// The directory while its session lives.
fn living(directory: &Weak<Directory>) -> Option<Arc<Directory>> {
    directory.upgrade().filter(|directory| !directory.health.ended.is_over())
}

/// The same while somebody watches.
fn wanted(directory: &Weak<Directory>) -> Option<Arc<Directory>> {
    living(directory).filter(|directory| directory.changes.is_watched(directory.identity.time.boot_ms()))
}

/// One copier for each other node.
async fn keep(weak: Weak<Directory>) {
    let mut copiers: HashMap<SessionId, tokio::task::JoinHandle<()>> = HashMap::new();
    let mut first = true;
    while let Some(directory) = wanted(&weak) {
        let Some(membership) = directory.shards.membership() else { break };
        let others = membership.peers.others().into_iter().filter(|session| *session != directory.identity.session);
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
                tokio::spawn(copy_from(weak.clone(), session, asked.clone()))
            });
        }
        drop(asked);
        if !first && (gone || came) {
            // What it changed last, or first, was not heard.
            directory.changes.copy(Vec::new(), true, directory.identity.time.boot_ms());
        }
        if std::mem::take(&mut first) {
            // Nothing is sent: it ends when each of them has let go.
            let _ = tokio::time::timeout(READY, answered.recv()).await;
            directory.changes.mirrored.send_replace(true);
        }
        drop(directory);
        tokio::time::sleep(PAUSE).await;
    }
    for copier in copiers.into_values() {
        copier.abort();
    }
    if let Some(directory) = weak.upgrade() {
        directory.changes.mirrored.send_replace(false);
        directory.changes.mirroring.store(false, Ordering::Release);
        // One who came meanwhile found it still marked as copying.
        if wanted(&weak).is_some() && !directory.changes.mirroring.swap(true, Ordering::AcqRel) {
            tokio::spawn(again(weak));
        }
    }
}

/// A future that names itself would have no size.
fn again(weak: Weak<Directory>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(keep(weak))
}

async fn copy_from(weak: Weak<Directory>, session: SessionId, asked: tokio::sync::mpsc::Sender<()>) {
    let mut place = None;
    let mut first = Some(asked);
    while let Some(directory) = living(&weak) {
        let Some(membership) = directory.shards.membership() else { return };
        let peers = membership.peers.clone();
        let answer = peers.changes(session, place).await;
        drop(first.take());
        let more = match answer {
            Ok(copied) => {
                place = Some(copied.next);
                if copied.dropped || !copied.items.is_empty() {
                    directory.changes.copy(copied.items, copied.dropped, directory.identity.time.boot_ms());
                }
                copied.more
            }
            // It is asked again; what it did meanwhile is in its log, or told as lost.
            Err(error) => {
                tracing::debug!(%error, session = session.0, "another node does not tell its changes");
                false
            }
        };
        drop(directory);
        if !more {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
