//! Places in the journal, and the file that says where it begins.

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};

/// A place in the journal: everything up to and including `seq` of this session and lane. Ordered by session, then seq
/// (positions of different lanes are not compared).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    pub session: SessionId,
    pub lane: u16,
    pub seq: u64,
}

/// The file `TRIM`: segments below `first_segment` are gone for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimMark {
    pub first_segment: u64,
    /// Last position that was in the removed ones.
    pub upto: Position,
}

impl TrimMark {
    /// Nothing was ever trimmed.
    pub const BEGINNING: Self = Self { first_segment: 1, upto: Position { session: SessionId(0), lane: 0, seq: 0 } };
}
