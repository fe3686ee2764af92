//! What people see of messages between jobs.

use crate::{
    hooks,
    ids::{JobId, RunId},
    job::upper_enum,
    record::{FailedHook, HookFailure},
    stored::outbox::MessageKind,
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// How a message between jobs fares that was not delivered.
    OutboxState {
        /// It is sent again and again until it is answered.
        Waiting = "WAITING" = 0,
        /// There was no answer for a day. It may have been acted on all the same.
        Undelivered = "UNDELIVERED" = 1,
        /// The job that it is for will never act on it.
        Refused = "REFUSED" = 2,
        /// It was not sent, because too many were not delivered.
        Dropped = "DROPPED" = 3,
    } default Waiting);

/// A message between jobs that waits or was given up: for example a hook whose job was not started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboxMessageView {
    /// The run that sends it.
    pub run_id: RunId,
    pub generation: u32,
    pub job_id: Option<JobId>,
    pub tenant_id: String,
    pub kind: MessageKind,
    /// Name of the job that it is for.
    pub target_job: Option<String>,
    pub state: OutboxState,
    /// Why it was refused or dropped.
    pub reason: Option<String>,
    pub decided_at: Timestamp,
    pub given_up_at: Option<Timestamp>,
    /// The job that it is for may have acted on it: there was no answer, or a restore lies between.
    pub may_have_run: bool,
}

/// A hook of a run whose job was not started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedHookView {
    /// Of the run when it ended.
    pub generation: u32,
    /// Which of the job's hooks: `onFailure`, `onSuccess`, `onTimeout`, `onDeadLetter`, `onDeadline`; or `callback`.
    pub hook: String,
    /// Name of the job that was to be started.
    pub target_job: String,
    pub state: HookFailure,
    /// Why it was refused or dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub at: Timestamp,
}

impl From<&FailedHook> for FailedHookView {
    fn from(failed: &FailedHook) -> Self {
        Self {
            generation: failed.generation,
            hook: hooks::name_of(failed.index).to_owned(),
            target_job: failed.job.to_string(),
            state: failed.state,
            reason: failed.reason.as_ref().map(ToString::to_string),
            at: Timestamp(failed.at_ms),
        }
    }
}
