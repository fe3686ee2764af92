//! Files of a data directory that say what it is. They are JSON, so that a person can read them.

use crate::{format::FormatRow, ids::SessionId};
use serde::{Deserialize, Serialize};

/// The file `FORMAT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    #[serde(flatten)]
    pub row: FormatRow,
    /// Form of the newest rows in the read model: releases that do not know it would show less than there is.
    #[serde(default = "first_views_format")]
    pub views_format: u32,
}

/// Of directories that do not name one.
fn first_views_format() -> u32 {
    1
}

/// The file `SESSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starts {
    pub starts: SessionId,
}
