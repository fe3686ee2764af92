//! Bodies of explanations: why a run or a job is as it is.

use crate::{
    ids::{JobId, RunId},
    job::{JobStatus, upper_enum},
    reason::ReasonCode,
    record::RunState,
    time::Timestamp,
    wait::WaitCode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// `GET /jobs/{jobId}/explain`, `job.explain`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplainBody {
    /// Explain what became of this instant instead of how the job stands now.
    #[serde(default)]
    pub at: Option<Timestamp>,
}

upper_enum!(/// What a reason is about.
    ReasonTopic {
        /// Why the run exists.
        Origin = "ORIGIN" = 0,
        /// Why it is not running, or does not end.
        Wait = "WAIT" = 1,
        /// Why it began or ended later than it was due.
        Late = "LATE" = 2,
        /// How it ended.
        End = "END" = 3,
        /// When the job fires next, and why it does not.
        Schedule = "SCHEDULE" = 4,
        /// What became of the instant that was asked for.
        Instant = "INSTANT" = 5,
    } default Origin);

upper_enum!(/// What holds something.
    HolderKind {
        Run = "RUN" = 0,
        Job = "JOB" = 1,
        Executor = "EXECUTOR" = 2,
        /// A credential: `name` is its name.
        Caller = "CALLER" = 3,
        Tenant = "TENANT" = 4,
        Pool = "POOL" = 5,
        /// A node of a DAG.
        DagNode = "DAG_NODE" = 6,
        /// A named downstream.
        Target = "TARGET" = 7,
    } default Run);

/// Something that a run or a job waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HolderView {
    pub kind: HolderKind,
    /// Of a run, a job or a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its state, of a run or a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why, as its caller said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl HolderView {
    pub fn new(kind: HolderKind) -> Self {
        Self { kind, id: None, name: None, state: None, since: None, reason: None }
    }
}

/// One reason: a code, a sentence that rests on what is known now, who holds what is waited for, and what would free it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonView {
    pub topic: ReasonTopic,
    /// The codes are documented. Compare the code only; the sentence may change.
    pub code: String,
    pub sentence: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<HolderView>,
    /// What to do, or to wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_by: Option<String>,
}

impl ReasonView {
    pub fn new(topic: ReasonTopic, code: ReasonCode, sentence: impl Into<String>) -> Self {
        Self { topic, code: code.as_str().to_owned(), sentence: sentence.into(), held_by: Vec::new(), freed_by: None }
    }

    pub fn wait(code: WaitCode, sentence: impl Into<String>) -> Self {
        let (topic, sentence) = (ReasonTopic::Wait, sentence.into());
        Self { topic, code: code.as_str().to_owned(), sentence, held_by: Vec::new(), freed_by: None }
    }

    #[must_use]
    pub fn held_by(self, holders: impl IntoIterator<Item = HolderView>) -> Self {
        Self { held_by: holders.into_iter().collect(), ..self }
    }

    #[must_use]
    pub fn freed_by(self, what: impl Into<String>) -> Self {
        Self { freed_by: Some(what.into()), ..self }
    }
}

/// Why a run or a job is as it is. What cannot be known now is not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    pub tenant_id: String,
    pub job_id: JobId,
    /// Absent: the job was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Of an explanation of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_state: Option<RunState>,
    /// Of an explanation of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status: Option<JobStatus>,
    /// The instant that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When the node looked.
    pub now: Timestamp,
    pub reasons: Vec<ReasonView>,
}
