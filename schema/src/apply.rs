//! The request and the answers of `POST /plan` and `POST /apply`, which take many definitions at once. Both take the
//! same body; `plan` changes nothing.

use crate::{ids::JobId, job::upper_enum, payload::Payload};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// `POST /plan`, `POST /apply`, `job.plan`, `job.apply`: manifests, and what is done with jobs that are not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyBody {
    /// Files as they are written: YAML of one or several documents, or JSON.
    #[serde(default)]
    pub files: Vec<ManifestFile>,
    /// Manifests as values.
    #[serde(default)]
    pub manifests: Vec<Payload>,
    /// Tenant of manifests without a namespace. Default: the credential's; for operators `default`.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Whose jobs these are: kept with each as the label `apply.owner`. A job of another owner is refused.
    #[serde(default)]
    pub owner: Option<String>,
    /// Jobs of this owner that no manifest names are deleted.
    #[serde(default)]
    pub prune: bool,
    /// Jobs of other owners become this one's.
    #[serde(default)]
    pub take_over: bool,
    /// `planId` of a plan: refused with 409_STALE_VERSION when something else would be done by now.
    #[serde(default)]
    pub plan_id: Option<String>,
    /// Refuse objects of other kinds (a ServiceAccount beside a CronJob), which are passed over otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// A file with manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManifestFile {
    /// Stands in messages; nothing is read from there.
    pub name: String,
    pub text: String,
}

upper_enum!(/// What becomes of a job.
    PlanAction {
        Create = "CREATE" = 0,
        Change = "CHANGE" = 1,
        Unchanged = "UNCHANGED" = 2,
        Delete = "DELETE" = 3,
    } default Unchanged);

upper_enum!(/// How far it came with a job.
    ApplyOutcome {
        Done = "DONE" = 0,
        /// Refused or failed: `error` says why. What a repeat finds done it leaves alone.
        Failed = "FAILED" = 1,
        /// Not begun, because of what failed before.
        NotBegun = "NOT_BEGUN" = 2,
    } default NotBegun);

/// One field that differs, as manifests write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Such as `spec.schedule`.
    pub field: String,
    /// Left out: it had none, or the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Payload>,
    /// Left out: it will have none, or the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Payload>,
}

/// Why a job was not brought to what its manifest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyFailure {
    pub code: String,
    pub message: String,
}

/// One job of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    pub action: PlanAction,
    pub tenant_id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    /// Version that the plan was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Where its manifest stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(default)]
    pub changes: Vec<FieldChange>,
    /// What the manifest asks for and does not get, and what may surprise about it.
    #[serde(default)]
    pub hazards: Vec<String>,
    /// Of an apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ApplyOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApplyFailure>,
}

/// What would be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// Names exactly these changes.
    pub plan_id: String,
    pub create: u64,
    pub change: u64,
    pub unchanged: u64,
    pub delete: u64,
    pub items: Vec<PlanItem>,
    /// Objects of other kinds that are no jobs, and make none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<ManifestProblem>,
}

/// What was done. Jobs do not depend on each other: what failed for one is told with it, and applying again goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedView {
    pub created: u64,
    pub changed: u64,
    pub unchanged: u64,
    pub deleted: u64,
    pub failed: u64,
    pub not_begun: u64,
    pub items: Vec<PlanItem>,
}

/// One thing that is wrong with a manifest; a refused plan has all of them in `detail.errors` (HTTP: `context.errors`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestProblem {
    pub file: String,
    /// From 1.
    pub line: u64,
    /// From 1.
    pub column: u64,
    /// Such as `spec.schedule`; empty: the document.
    pub path: String,
    pub message: String,
}

impl std::fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, column, path, message } = self;
        write!(f, "{file}:{line}:{column}: ")?;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(message)
    }
}
