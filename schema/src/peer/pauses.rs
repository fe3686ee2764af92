//! A pause on its way from its home shard to every other shard.

use crate::event::PauseScope;
use serde::{Deserialize, Serialize};

/// How a pause stands: its last change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub scope: PauseScope,
    pub paused: bool,
    /// Rises with each change.
    pub version: u64,
}
