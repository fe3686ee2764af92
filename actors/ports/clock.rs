//! The operating system's clocks, and the reading that is kept between starts.

use crate::{Clock, private};
use campanile_core::clock::Saved;
use rustix::time::{ClockId, clock_gettime};
use std::{fs, io, path::Path};

/// File of the last clock reading, in the data directory. Not journaled: losing it only loses one check at start.
const CLOCK_FILE: &str = "CLOCK";

/// Wall clock and CLOCK_BOOTTIME.
pub struct SystemClock;

fn micros(clock: ClockId) -> i64 {
    let t = clock_gettime(clock);
    t.tv_sec * 1_000_000 + t.tv_nsec / 1_000
}

impl Clock for SystemClock {
    fn wall_us(&self) -> i64 {
        #[cfg(feature = "faults")]
        let offset = fault_offset_us();
        #[cfg(not(feature = "faults"))]
        let offset = 0;
        micros(ClockId::Realtime) + offset
    }
    fn boot_us(&self) -> u64 {
        micros(ClockId::Boottime).unsigned_abs()
    }
}

/// `CAMPANILE_CLOCK_OFFSET_MS`: this node's wall clock is off by so much. A path instead of a number is read again and
/// again, so that a test can make the clock jump.
#[cfg(feature = "faults")]
fn fault_offset_us() -> i64 {
    let Ok(setting) = std::env::var("CAMPANILE_CLOCK_OFFSET_MS") else { return 0 };
    let text = if setting.starts_with('/') { fs::read_to_string(&setting).unwrap_or_default() } else { setting };
    text.trim().parse::<i64>().unwrap_or(0) * 1_000
}

/// Names this boot of the machine.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|t| t.trim().to_owned()).unwrap_or_default()
}

/// The reading of an earlier start, if there is a readable one.
pub fn load(dir: &Path) -> Option<Saved> {
    serde_json::from_slice(&fs::read(dir.join(CLOCK_FILE)).ok()?).ok()
}

/// Keeps a reading for the next start.
pub fn save(dir: &Path, reading: &Saved) -> io::Result<()> {
    private::put_file(dir, CLOCK_FILE, &serde_json::to_vec(reading)?)
}
