//! Bodies of the history of a job's definition.

use crate::{apply::FieldChange, job::JobSpec, time::Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /jobs/{jobId}/versions`, `job.versions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionsBody {
    /// Compare each version with this one instead of the version before it.
    #[serde(default)]
    pub against: Option<u64>,
    #[serde(default)]
    pub page_token: Option<String>,
    /// 20 unless given, 1000 at most.
    #[serde(default)]
    pub page_size: Option<usize>,
}

/// `POST /jobs/{jobId}/rollback`, `job.rollback`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbackBody {
    /// The version whose definition the job gets, as a new version.
    pub to: u64,
    /// Refuse when the job is not of this version any more. Default: whichever it has.
    #[serde(default)]
    pub version: Option<u64>,
    #[serde(default)]
    pub reason: Option<String>,
}

/// A version of a definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionView {
    pub version: u64,
    pub at: Timestamp,
    /// Name of the credential. Absent: it is not known, because an earlier release made the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// IP address of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// By its name in RPC, such as `job.replace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The version that `changes` compares with. Absent: there is none, or its definition is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<u64>,
    /// What differs from that version, by the names of the fields of `spec`. Of secret params only the names are compared.
    #[serde(default)]
    pub changes: Vec<FieldChange>,
    pub spec: JobSpec,
}
