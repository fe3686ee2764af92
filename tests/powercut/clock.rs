//! A clock that stands until it is moved. Each look moves it by a microsecond, as looks at a real one do.

use campanile_ports::Clock;
use std::sync::atomic::{AtomicI64, Ordering};

/// Where it starts, microseconds: 2027-01-15T08:00:00Z.
const START_US: i64 = 1_800_000_000_000_000;
/// How long the machine had been up then, microseconds.
const UP_US: i64 = 3_600_000_000;

pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn new() -> Self {
        Self(AtomicI64::new(START_US))
    }

    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms as i64 * 1000, Ordering::SeqCst);
    }

    pub fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst) / 1000
    }

    pub fn boot_ms(&self) -> u64 {
        self.boot_us() / 1000
    }
}

impl Clock for TestClock {
    fn wall_us(&self) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn boot_us(&self) -> u64 {
        (self.0.load(Ordering::SeqCst) - START_US + UP_US) as u64
    }
}
