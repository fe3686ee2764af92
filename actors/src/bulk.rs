//! Which bulk operations a node carries on: the open ones whose home shard it serves. Their records are in the shard; here are only their
//! ids, and when each is to go on.
//!
//! The driver is in `scheduler/bulk_drive.rs`. A node that loses the home shard forgets its operations, and whoever takes the shard
//! notes them when it has loaded it.

use campanile_schema::ids::{BulkId, ShardId};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};
use tokio::sync::Notify;

/// An operation that has not ended.
struct OpenBulk {
    home: ShardId,
    /// It goes on then.
    not_before: Instant,
    driven: bool,
    /// Which note it is of. Whoever drives an operation of an earlier note, before its shard left and came back, says nothing of this one.
    note: u64,
}

/// An operation that is being driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBulk {
    pub id: BulkId,
    note: u64,
}

/// See the module's text.
#[derive(Default)]
pub struct OpenBulks {
    open: Mutex<BTreeMap<BulkId, OpenBulk>>,
    notes: AtomicU64,
    changed: Notify,
}

impl OpenBulks {
    /// One that is to be carried on from now on.
    pub(crate) fn note(&self, id: BulkId, home: ShardId) {
        let note = self.notes.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(id, OpenBulk { home, not_before: Instant::now(), driven: false, note });
        self.changed.notify_one();
    }

    /// The shard is not served here any more.
    pub(crate) fn leave(&self, home: ShardId) {
        self.open.lock().retain(|_, bulk| bulk.home != home);
    }

    /// Some operation was noted.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes one that is due, the one that has waited longest.
    pub(crate) fn take(&self, now: Instant) -> Option<TakenBulk> {
        let mut open = self.open.lock();
        let due = open.iter_mut().filter(|(_, bulk)| !bulk.driven && bulk.not_before <= now);
        let (id, bulk) = due.min_by_key(|(_, bulk)| bulk.not_before)?;
        bulk.driven = true;
        Some(TakenBulk { id: *id, note: bulk.note })
    }

    /// Gives it back. None: it has ended, or is not this node's.
    pub(crate) fn put_back(&self, taken: TakenBulk, not_before: Option<Instant>) {
        let mut open = self.open.lock();
        let Some(bulk) = open.get_mut(&taken.id).filter(|bulk| bulk.note == taken.note) else { return };
        match not_before {
            Some(not_before) => (bulk.driven, bulk.not_before) = (false, not_before),
            None => drop(open.remove(&taken.id)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_operation_is_taken_by_one_task_and_the_longest_waiting_goes_first() {
        let bulks = OpenBulks::default();
        bulks.note(BulkId(1), ShardId(3));
        bulks.note(BulkId(2), ShardId(4));
        let now = Instant::now();
        let first = bulks.take(now).unwrap();
        let second = bulks.take(now).unwrap();
        assert_eq!((first.id, second.id), (BulkId(1), BulkId(2)));
        assert_eq!(bulks.take(now), None, "both are driven");
        bulks.put_back(first, Some(now + Duration::from_secs(9)));
        bulks.put_back(second, Some(now));
        assert_eq!(bulks.take(now), Some(second));
        assert_eq!(bulks.take(now), None, "the other one waits");
        assert_eq!(bulks.take(now + Duration::from_secs(9)), Some(first));
        bulks.put_back(first, None);
        bulks.put_back(second, Some(now));
        bulks.leave(ShardId(4));
        assert_eq!(bulks.take(now + Duration::from_mins(1)), None);
        assert!(bulks.open.lock().is_empty());
    }

    /// Its shard has left and come back, while a task that drove it before goes on with its last step.
    #[test]
    fn whoever_drove_an_operation_before_its_shard_left_does_not_end_it_for_the_next() {
        let bulks = OpenBulks::default();
        bulks.note(BulkId(1), ShardId(3));
        let before = bulks.take(Instant::now()).unwrap();
        bulks.leave(ShardId(3));
        bulks.note(BulkId(1), ShardId(3));
        bulks.put_back(before, None);
        let now = bulks.take(Instant::now());
        assert_eq!(now.map(|taken| taken.id), Some(BulkId(1)), "it is carried on");
        assert_ne!(now, Some(before));
    }
}
