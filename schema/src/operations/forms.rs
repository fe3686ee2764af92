//! Queries of HTTP that differ from the body in RPC on purpose.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which job.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobFindQuery {
    pub(super) name: String,
    /// Default: the credential's; for operators `default`.
    #[serde(default)]
    pub(super) tenant_id: Option<String>,
}

/// How long to wait for the end of a run.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunGetQuery {
    /// Answer when the run is final, at the latest after so many seconds (60 at most). Default: at once.
    #[serde(default)]
    pub(super) wait_sec: Option<u64>,
}
