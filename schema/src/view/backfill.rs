//! Backfills and replays as callers ask for them and see them.

use crate::{
    ids::{BackfillId, JobId},
    job::upper_enum,
    stored::backfill::{BackfillMode, BackfillState},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// What a backfill does with instants of which the ledger says nothing any more.
    UnknownInstants {
        /// It counts them and runs none.
        Skip = "SKIP" = 0,
        /// It runs them by the schedule of now, though they may have run before.
        Run = "RUN" = 1,
    } default Skip);

/// `job.backfill`, `POST /jobs/{jobId}/backfill`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackfillBody {
    /// First instant, included.
    pub from: Timestamp,
    /// Last instant, included. Instants that are not decided yet are left to the schedule.
    pub to: Timestamp,
    /// Runs that are open at once, 1 to 200; 1 under FORBID and QUEUE_ONE, whatever is asked for. Default 8.
    #[serde(default)]
    pub parallelism: Option<u32>,
    /// MISSING, FAILED or ALL; default MISSING.
    #[serde(default)]
    pub mode: Option<BackfillMode>,
    /// What happens with instants of which the ledger says nothing any more.
    #[serde(default)]
    pub unknown: UnknownInstants,
    /// Start the job's hooks when a run fails. Default: no.
    #[serde(default)]
    pub hooks: bool,
    /// Only say what it would do.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub reason: Option<String>,
}

/// `job.replay`, `POST /jobs/{jobId}/replay`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplayBody {
    /// First instant, included.
    pub from: Timestamp,
    /// Last instant, included.
    pub to: Timestamp,
    /// Runs that are open at once, 1 to 200; 1 under FORBID and QUEUE_ONE, whatever is asked for. Default 8.
    #[serde(default)]
    pub parallelism: Option<u32>,
    /// Start the job's hooks when a run fails. Default: no.
    #[serde(default)]
    pub hooks: bool,
    /// Only say what it would do.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub reason: Option<String>,
}

/// A backfill or a replay as read. A dry run answers with the same without an id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill_id: Option<BackfillId>,
    pub job_id: JobId,
    pub tenant_id: String,
    /// Absent in the answer of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<BackfillState>,
    pub mode: BackfillMode,
    pub from: Timestamp,
    /// The job's newest decided instant, where less of the interval is decided than was asked for.
    pub to: Timestamp,
    /// As it is used: 1 under FORBID and QUEUE_ONE.
    pub parallelism: u32,
    pub unknown_instants: UnknownInstants,
    pub hooks: bool,
    /// Instants of the interval.
    pub instants: u64,
    /// ... that made no run, though they should have, and for which no earlier backfill made one.
    pub missing: u64,
    /// ... whose run failed. Absent: there are too many runs to look at each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// ... for which an earlier backfill made a run.
    pub existing: u64,
    /// ... of which the ledger says nothing any more.
    pub unknown: u64,
    /// ... that cannot be told one by one, because the schedule was another one then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub differing: u64,
    /// ... whose run has not ended, is not kept any more, or (of FAILED) was compensated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: u64,
    /// Runs that it makes or opens again.
    pub to_run: u64,
    /// By the usual duration of the job's runs, and of those that it has ended; for the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_sec: Option<u64>,
    /// Two of this kind run each instant twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hazard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<BackfillProgress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// Why it is PAUSED, or was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Why it starts no run now: a code and a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// What became of a backfill so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillProgress {
    /// Every instant up to here is decided; absent: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_until: Option<Timestamp>,
    /// Runs that it made or opened again.
    pub started: u64,
    /// ... that have not ended.
    pub active: u64,
    pub succeeded: u64,
    /// FAILED or TIMEOUT.
    pub failed: u64,
    pub canceled: u64,
    /// Instants that it passed over, because they had a run already.
    pub existing: u64,
    /// ... because nothing is known of them.
    pub unknown: u64,
    /// ... because they cannot be told one by one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub differing: u64,
    /// ... because their run had not ended, or is not kept any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u64) -> bool {
    *n == 0
}
