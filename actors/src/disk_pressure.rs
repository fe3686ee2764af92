//! The reasons for which a node's disk is too small.

/// Free room that a node should have, bytes: a journal and snapshots of some million jobs, and a merge of tables.
pub const FREE_LEAST_BYTES: u64 = 2 << 30;

/// Why a disk will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskPressure {
    /// Less is free than [`FREE_LEAST_BYTES`].
    FreeRoomLow,
    /// History will need more than is free.
    HistoryOutgrowsDisk,
}

impl DiskPressure {
    pub const ALL: [Self; 2] = [Self::FreeRoomLow, Self::HistoryOutgrowsDisk];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::FreeRoomLow => "FREE_ROOM_LOW",
            Self::HistoryOutgrowsDisk => "HISTORY_OUTGROWS_DISK",
        }
    }
}
