//! Which bulk operations a node carries on: the open ones whose home shard it serves. Their records are in the shard; here are only their
//! ids, and when each is to go on.
//!
//! The driver is in `scheduler/bulk_drive.rs`. A node that loses the home shard forgets its operations, and whoever takes the shard
//! notes them when it has loaded it.

use campanile_schema::ids::{BulkId, ShardId};
use parking_lot::Mutex;
use std::{collections::BTreeMap, time::Instant};
use tokio::sync::Notify;

/// An operation that has not ended.
struct OpenBulk {
    home: ShardId,
    /// It goes on then.
    not_before: Instant,
    driven: bool,
}

/// See the module's text.
#[derive(Default)]
pub struct OpenBulks {
    open: Mutex<BTreeMap<BulkId, OpenBulk>>,
    changed: Notify,
}

impl OpenBulks {
    /// One that is to be carried on from now on.
    pub(crate) fn note(&self, id: BulkId, home: ShardId) {
        let now = Instant::now();
        self.open.lock().entry(id).and_modify(|bulk| bulk.not_before = now).or_insert(OpenBulk {
            home,
            not_before: now,
            driven: false,
        });
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
    pub(crate) fn take(&self, now: Instant) -> Option<BulkId> {
        let mut open = self.open.lock();
        let due = open.iter_mut().filter(|(_, bulk)| !bulk.driven && bulk.not_before <= now);
        let (id, bulk) = due.min_by_key(|(_, bulk)| bulk.not_before)?;
        bulk.driven = true;
        Some(*id)
    }

    /// Gives it back. None: it has ended, or is not this node's.
    pub(crate) fn put_back(&self, id: BulkId, not_before: Option<Instant>) {
        let mut open = self.open.lock();
        match not_before {
            Some(not_before) => {
                if let Some(bulk) = open.get_mut(&id) {
                    (bulk.driven, bulk.not_before) = (false, not_before);
                }
            }
            None => drop(open.remove(&id)),
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
        assert_eq!(bulks.take(now), Some(BulkId(1)));
        assert_eq!(bulks.take(now), Some(BulkId(2)));
        assert_eq!(bulks.take(now), None, "both are driven");
        bulks.put_back(BulkId(1), Some(now + Duration::from_secs(9)));
        bulks.put_back(BulkId(2), Some(now));
        assert_eq!(bulks.take(now), Some(BulkId(2)));
        assert_eq!(bulks.take(now), None, "the other one waits");
        assert_eq!(bulks.take(now + Duration::from_secs(9)), Some(BulkId(1)));
        bulks.put_back(BulkId(1), None);
        bulks.put_back(BulkId(2), Some(now));
        bulks.leave(ShardId(4));
        assert_eq!(bulks.take(now + Duration::from_mins(1)), None);
        assert!(bulks.open.lock().is_empty());
    }
}
