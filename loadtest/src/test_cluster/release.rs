//! Nodes of a later release, which knows formats that this one does not: `actors/ports/release.rs` lets a node say so.

use super::TestCluster;
use std::{
    io,
    time::{Duration, Instant},
};

/// Formats that all nodes know are written within this time, and a look at the row between.
const RAISED: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);

impl TestCluster {
    /// From its next start on a node is a release that knows so many formats more.
    pub fn set_release(&mut self, n: usize, later: u32) {
        self.nodes[n].later = later;
    }

    /// What is written may be read by this release. It asks the store's format row, as a node of it does before it starts.
    pub fn is_readable(&self) -> io::Result<()> {
        self.run(&["schema", "check"], None).map(drop)
    }

    /// Waits until this release is refused for what the row says, in words that hold `why`.
    pub fn gets_unreadable(&self, why: &str) -> io::Result<()> {
        let deadline = Instant::now() + RAISED;
        let mut told = "all of it is read".to_owned();
        while Instant::now() < deadline {
            match self.is_readable() {
                Err(error) if error.to_string().contains(why) => return Ok(()),
                Err(error) => told = error.to_string(),
                Ok(()) => {}
            }
            std::thread::sleep(LOOK);
        }
        Err(io::Error::other(format!("this release is not refused with '{why}': {told}")))
    }
}
