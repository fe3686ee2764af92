//! The table of all legal steps of a run and of a job. `decide` looks steps up in it, tests check all of it, and
//! `docs/states.md` shows it.

use campanile_schema::{job::JobStatus, record::RunState};

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Release,
    /// Of a run of a backfill, for a live one.
    Hold,
    Start,
    Suspect,
    Hear,
    Stop,
    Retry,
    RetryDue,
    Requeue,
    AskConfirm,
    Confirm,
    Succeed,
    Fail,
    TimeOut,
    Cancel,
    Reopen,
}

impl Step {
    pub const ALL: [Self; 16] = [
        Self::Release,
        Self::Hold,
        Self::Start,
        Self::Suspect,
        Self::Hear,
        Self::Stop,
        Self::Retry,
        Self::RetryDue,
        Self::Requeue,
        Self::AskConfirm,
        Self::Confirm,
        Self::Succeed,
        Self::Fail,
        Self::TimeOut,
        Self::Cancel,
        Self::Reopen,
    ];
}

/// The state after a step; None = illegal.
pub fn run_after(from: RunState, step: Step) -> Option<RunState> {
    use RunState as S;
    let body = matches!(from, S::Running | S::SuspectedLost);
    let resting = matches!(from, S::Pending | S::Queued | S::RetryWait | S::NeedsConfirmation);
    match step {
        Step::Release => (from == S::Pending).then_some(S::Queued),
        Step::Hold => (from == S::Queued).then_some(S::Pending),
        Step::Start => (from == S::Queued).then_some(S::Running),
        Step::Suspect => (from == S::Running).then_some(S::SuspectedLost),
        Step::Hear => body.then_some(S::Running),
        Step::Stop => body.then_some(from),
        Step::Retry => body.then_some(S::RetryWait),
        Step::RetryDue => (from == S::RetryWait).then_some(S::Queued),
        Step::Requeue => body.then_some(S::Queued),
        Step::AskConfirm => body.then_some(S::NeedsConfirmation),
        Step::Confirm => (from == S::NeedsConfirmation).then_some(S::Queued),
        Step::Succeed => (body || from == S::NeedsConfirmation).then_some(S::Success),
        Step::Fail => (body || from == S::NeedsConfirmation).then_some(S::Failed),
        // Also of a run whose time in all ends while it waits for its next attempt.
        Step::TimeOut => (body || matches!(from, S::Queued | S::RetryWait)).then_some(S::Timeout),
        Step::Cancel => (body || resting).then_some(S::Canceled),
        Step::Reopen => from.is_final().then_some(S::Queued),
    }
}

/// A step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobStep {
    Pause,
    Resume,
    Replace,
    Delete,
    Trigger,
}

impl JobStep {
    pub const ALL: [Self; 5] = [Self::Pause, Self::Resume, Self::Replace, Self::Delete, Self::Trigger];
}

/// The state after a step; None = illegal. Pausing a paused job and resuming an enabled one change nothing.
pub fn job_after(from: JobStatus, step: JobStep) -> Option<JobStatus> {
    use JobStatus as S;
    match (from, step) {
        (S::Deleted, _) => None,
        (S::Enabled | S::Paused, JobStep::Pause) => Some(S::Paused),
        (S::Enabled | S::Paused, JobStep::Resume) => Some(S::Enabled),
        (S::Enabled | S::Paused, JobStep::Replace) => Some(from),
        (S::Enabled | S::Paused, JobStep::Delete) => Some(S::Deleted),
        (S::Enabled, JobStep::Trigger) => Some(S::Enabled),
        (S::Paused, JobStep::Trigger) => None,
    }
}

/// Both tables as Markdown; `docs/states.md` holds exactly this (a test compares them).
pub fn markdown() -> String {
    let mut text = String::from("| run | ");
    text += &RunState::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(" | ");
    text += " |\n|---";
    text += &"|---".repeat(RunState::ALL.len());
    text += "|\n";
    for step in Step::ALL {
        let cells: Vec<&str> = RunState::ALL.iter().map(|s| run_after(*s, step).map_or("", RunState::as_str)).collect();
        text += &format!("| {step:?} | {} |\n", cells.join(" | "));
    }
    text += "\n| job | ENABLED | PAUSED | DELETED |\n|---|---|---|---|\n";
    for step in JobStep::ALL {
        let cells: Vec<&str> =
            JobStatus::ALL.iter().map(|s| job_after(*s, step).map_or("", JobStatus::as_str)).collect();
        text += &format!("| {step:?} | {} |\n", cells.join(" | "));
    }
    text
}
