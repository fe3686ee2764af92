//! Ids of records of the audit trail, for all who make them.

use campanile_core::mix::mix;
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// An id for a record. Below 2^62, so that others can be counted on from it.
pub fn new_record_id() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u64));
    static COUNT: AtomicU64 = AtomicU64::new(0);
    mix(SEED.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed))) >> 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_differ_and_leave_room_to_count_on() {
        let ids: BTreeSet<u64> = (0..1_000).map(|_| new_record_id()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| *id < 1 << 62));
    }
}
