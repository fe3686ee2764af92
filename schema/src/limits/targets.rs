//! Limits of targets (named downstreams), and of the order in which runs start.

/// When runs of several priorities wait, the highest goes first; but after so many of them one goes whose priority has gone without for
/// longest, count.
pub const STARTS_BY_PRIORITY: u32 = 16;
/// Runs at which a round of matching looks for such a turn, count.
pub const AGED_LOOKS: usize = 8;
/// Targets with settings that one tenant has at most, count.
pub const TARGETS_PER_TENANT: usize = 1_000;
/// Attempts of a target are counted for its breaker in stretches of so long, milliseconds.
pub const TARGET_WINDOW_MS: i64 = 10_000;
/// Retries that a target without any first attempts may start on one node, count.
pub const TARGET_RETRY_RESERVE: u32 = 10;
/// The reserve comes back with time: one retry in so long, milliseconds.
pub const TARGET_RETRY_EVERY_MS: i64 = 60_000;
/// Retries that a target can save up on one node, however many first attempts it has had, count.
pub const TARGET_RETRIES_SAVED: u32 = 100;
/// A breaker that opens again and again stays open at most so many times as long as at first, count.
pub const TARGET_OPEN_TIMES: i64 = 8;
/// A target that comes back has recovered when so many attempts may run at once on a node, count.
pub const TARGET_ROOM: u32 = 256;
/// The longest time for which a breaker may be set to open, seconds.
pub const TARGET_OPEN_SEC: u64 = 3_600;
