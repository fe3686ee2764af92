//! What each process of a stored command may use at most.

use crate::job::CommandLimits;
use serde::{Deserialize, Serialize};

/// Limits of a stored command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredLimits {
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    pub cpu_sec: Option<u64>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    #[serde(rename = "f", skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub file_size_mb: Option<u64>,
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

impl From<CommandLimits> for StoredLimits {
    fn from(limits: CommandLimits) -> Self {
        let CommandLimits { cpu_sec, memory_mb, open_files, file_size_mb, processes } = limits;
        Self { cpu_sec, memory_mb, open_files, file_size_mb, processes }
    }
}
impl From<StoredLimits> for CommandLimits {
    fn from(limits: StoredLimits) -> Self {
        let StoredLimits { cpu_sec, memory_mb, open_files, file_size_mb, processes } = limits;
        Self { cpu_sec, memory_mb, open_files, file_size_mb, processes }
    }
}
