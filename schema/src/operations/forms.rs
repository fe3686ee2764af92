//! Queries of HTTP that differ from the body in RPC on purpose.

use crate::{
    error::{ApiError, ErrorCode},
    record::RunState,
    view::TenantPageBody,
};
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

/// Which runs, across jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunFailedQuery {
    /// FAILED (it includes TIMEOUT): other states are listed by job.
    #[serde(default)]
    state: Option<RunState>,
    #[serde(default)]
    tenant_id: Option<String>,
    #[serde(default)]
    page_token: Option<String>,
    #[serde(default)]
    page: Option<usize>,
    #[serde(default)]
    page_size: Option<usize>,
}

impl RunFailedQuery {
    pub(super) fn checked(self) -> Result<TenantPageBody, ApiError> {
        if self.state.is_some_and(|state| state != RunState::Failed) {
            let message =
                "state: only FAILED (with TIMEOUT) is listed across jobs; others by /api/v1/jobs/{jobId}/runs";
            return Err(ApiError::new(ErrorCode::InvalidArgument, message));
        }
        let Self { state: _, tenant_id, page_token, page, page_size } = self;
        Ok(TenantPageBody { tenant_id, page_token, page, page_size })
    }
}

/// How long to wait for the end of a run.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunGetQuery {
    /// Answer when the run is final, at the latest after so many seconds (60 at most). Default: at once.
    #[serde(default)]
    pub(super) wait_sec: Option<u64>,
}
