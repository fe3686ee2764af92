//! The file in which a node keeps a reading of its clocks. It is JSON.

use serde::{Deserialize, Serialize};

/// A reading saved by an earlier start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub boot_id: String,
    pub wall_us: i64,
    pub boot_us: u64,
}
