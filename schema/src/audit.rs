//! What callers ask of the audit trail, and what they see of it.

use crate::{
    ids::{JobId, RunId},
    stored::audit::{AuditRecord, CallOrigin},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of a call that was carried out.
pub const DONE: &str = "DONE";
/// As a filter: every outcome but [`DONE`].
pub const REFUSED: &str = "REFUSED";

/// `GET /audit`, `audit.list`. Filters that are given must all fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditBody {
    /// Default: the credential's own; for operators every tenant, and what is about none.
    #[serde(default)]
    pub tenant_id: Option<String>,
    #[serde(default)]
    pub job_id: Option<JobId>,
    #[serde(default)]
    pub run_id: Option<RunId>,
    /// Name of a credential.
    #[serde(default)]
    pub who: Option<String>,
    /// Name of an operation, such as `job.pause`.
    #[serde(default)]
    pub operation: Option<String>,
    /// `DONE`, `REFUSED` (all others), or the code of an error.
    #[serde(default)]
    pub outcome: Option<String>,
    /// The first millisecond that is asked for.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The last one.
    #[serde(default)]
    pub to: Option<Timestamp>,
    #[serde(default)]
    pub page_token: Option<String>,
    /// Records of a page at most. One may have fewer although more follow: with filters a call looks at a bounded number.
    #[serde(default)]
    pub page_size: Option<usize>,
}

/// A record of the audit trail as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditView {
    pub at: Timestamp,
    /// Name of the credential. Absent: its token was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// IP address of the caller. Absent: the node itself called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub operation: String,
    /// Absent: it is about no tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What it was about, if neither a job nor a run: a tenant, a node, a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `DONE`, or the code of the error.
    pub outcome: String,
    /// Equal refusals within a minute, or things that one call changed.
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Of the call, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

impl From<&AuditRecord> for AuditView {
    fn from(record: &AuditRecord) -> Self {
        let CallOrigin { who, address, request, trace } = &record.origin;
        let text = |text: &Option<crate::text::Text>| text.as_ref().map(ToString::to_string);
        Self {
            at: Timestamp(record.at_ms),
            who: text(who),
            address: text(address),
            operation: record.operation.to_string(),
            tenant_id: text(&record.tenant),
            job_id: record.job,
            run_id: record.run,
            target: text(&record.target),
            reason: text(&record.reason),
            outcome: record.refused.as_ref().map_or_else(|| DONE.to_owned(), ToString::to_string),
            count: record.count,
            request_id: text(request),
            trace_id: trace.map(|context| context.trace.to_string()),
        }
    }
}

/// Who triggered a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggeredBy {
    /// Name of the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// IP address of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl From<&CallOrigin> for TriggeredBy {
    fn from(origin: &CallOrigin) -> Self {
        let text = |text: &Option<crate::text::Text>| text.as_ref().map(ToString::to_string);
        let CallOrigin { who, address, request, trace: _ } = origin;
        Self { who: text(who), address: text(address), request_id: text(request) }
    }
}
