//! Bulk operations as callers ask for them and see them.

use crate::{
    ids::{BulkId, JobId},
    job::JobStatus,
    record::Source,
    stored::bulk::{BulkAction, BulkState},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which jobs or runs a bulk operation is about: all that fit every field that is given. Of jobs (PAUSE, RESUME, TRIGGER, DELETE):
/// `status`, `labels`, `text`. Of open runs (CANCEL): `state`, `jobId`, `labels`, `source`, `from`, `to`. Of failed runs (RETRY): the
/// same. Of dead letters (REDRIVE): `jobId`, `from`, `to`, `cause`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BulkFilter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<JobStatus>,
    /// `key=value,key2!=value2,key3`, of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// A part of the name, display name, description, owner or an annotation of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// One or several states of runs, with commas between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The first millisecond in which a run ended, or was created if it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// The `cause` of a dead letter, as `dlq.causes` tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// `bulk.create`, `POST /bulk`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BulkBody {
    pub action: BulkAction,
    /// Default: the credential's own; for operators every tenant. REDRIVE of operators needs it.
    #[serde(default)]
    pub tenant_id: Option<String>,
    #[serde(default)]
    pub filter: BulkFilter,
    /// Every job or run of the tenant is meant. Without it a filter needs at least one field.
    #[serde(default)]
    pub all: bool,
    /// Only of DELETE: the jobs are paused now and deleted so many seconds later. Until then `bulk.undo` resumes them.
    #[serde(default)]
    pub grace_sec: Option<u64>,
    /// Only count, and show the first items.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub reason: Option<String>,
}

/// An item that an operation is about: a job, or a run and its job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkItemView {
    /// The id of the job or the run.
    pub id: u64,
    /// Name of the job; absent: it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Status of the job, or state of the run.
    pub state: String,
}

/// An item that was not done, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkFailureView {
    /// The id of the job or the run.
    pub id: u64,
    pub code: String,
    pub message: String,
}

/// A bulk operation with its progress. A dry run answers with the same without `bulkId`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk_id: Option<BulkId>,
    pub action: BulkAction,
    /// Absent: of all tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    pub filter: BulkFilter,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<BulkState>,
    /// Items that were counted before it began.
    pub matched: u64,
    /// There were more: `matched` is a lower bound.
    pub matched_more: bool,
    pub done: u64,
    /// Items that were as they should be already, or are gone.
    pub unchanged: u64,
    pub failed: u64,
    /// Runs that RETRY and REDRIVE left as they are, because their compensation was started: `run.retry` with `force` runs one again.
    #[serde(default)]
    pub compensated: u64,
    /// Items that are still to be done; absent when `matched` is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// The first 10 that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<BulkFailureView>,
    /// Of a dry run: the first items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<BulkItemView>,
    /// Of a delete with a grace: when the deletion begins, as soon as the jobs are paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_sec: Option<u64>,
    /// The operation that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<BulkId>,
    /// The operation that takes this one back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<BulkId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The credential that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// Why it was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}
