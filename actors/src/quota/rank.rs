//! The order in which waiting runs get permits.

use std::cmp::Reverse;

/// Live before backfill, higher priority first, then first come. A live run that waits for long has a turn now and then
/// (`Quota::next_place`).
pub(super) type QueueRank = (bool, Reverse<u16>, u64);
