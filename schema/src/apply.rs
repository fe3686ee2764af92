//! The request and the answers of `POST /plan` and `POST /apply`, which take many definitions at once. Both take the
//! same body; `plan` changes nothing.

use crate::{ids::JobId, job::upper_enum, payload::Payload, time::Timestamp};
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
    /// Jobs of this owner, or with `pruneLabels`, that no manifest names are deleted.
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
    /// With `prune`: only jobs with these labels are deleted, such as `team=payments`. With an owner too: of this owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_labels: Option<String>,
    /// Of a plan: also say what the changes do to next fires, to the fullest minutes, and to the limits of tenants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forecast: bool,
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
    /// Of a plan that asks for it: of jobs that are created, changed or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<JobForecast>,
}

/// When a job is due by its schedule of now and by the planned one. A paused job is not due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobForecast {
    /// The next 20 fires as it is now.
    pub before: Vec<Timestamp>,
    /// The next 20 fires after the change.
    pub after: Vec<Timestamp>,
    /// Changes of the clock within 13 months that remove or repeat an instant of the planned schedule.
    pub clock_changes: Vec<String>,
}

/// A minute of the next day to which a plan adds many more instants than it removes. Jobs whose schedule stays are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinuteForecast {
    /// The beginning of the minute.
    pub at: Timestamp,
    /// Instants that the changes add to it.
    pub adds: u64,
    /// Instants that the changes take from it.
    pub removes: u64,
    /// Instants that are due in it by the schedules of now. Absent: it is more than two hours ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
}

/// What a plan does to a limit of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantForecast {
    pub tenant_id: String,
    /// Jobs that it has now.
    pub jobs: u64,
    /// Jobs that it has after the plan was applied.
    pub after: u64,
    /// Its limit; 0: only that of the node.
    pub max_jobs: u64,
    /// The plan needs more than the limit allows: some of it would be refused.
    pub exceeds: bool,
}

/// What the changes of a plan mean together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanForecast {
    /// Minutes of the next 24 hours that get at least 60 instants more than they lose, at most 10, those that get most first.
    pub minutes: Vec<MinuteForecast>,
    /// Tenants with changes, at most 100.
    pub tenants: Vec<TenantForecast>,
    /// There are more instants than a forecast looks at: the numbers of the minutes are too small.
    pub truncated: bool,
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
    /// Of a plan that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<PlanForecast>,
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
