//! What a run may use, and what it needs of an executor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What each process of a command may use at most; the system it runs on sees to it. None = what the executor itself may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CommandLimits {
    /// Seconds of CPU; then SIGXCPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_sec: Option<u64>,
    /// MiB of address space; then the process gets no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Files open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// MiB of a file that is written; then SIGXFSZ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_mb: Option<u64>,
    /// Processes and threads of the executor's user, all counted; root is not bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

impl CommandLimits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a run needs of an executor, for placing it: nothing holds it to that (see [`CommandLimits`]). CPU in cores, memory and storage in MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    pub cpu: f64,
    pub memory_mb: u64,
    pub storage_mb: u64,
}
impl Default for Resources {
    fn default() -> Self {
        Self { cpu: 0.1, memory_mb: 64, storage_mb: 0 }
    }
}
