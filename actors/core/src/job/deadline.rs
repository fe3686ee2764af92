//! What events change of a job's deadlines, and when they pass.

use super::state::Job;
use crate::deadline::rules::{Rule, kept};
use campanile_schema::stored::deadline::{DeadlineChange, RunDeadline};

pub(super) fn changed(job: &mut Job, change: &DeadlineChange) {
    match change {
        DeadlineChange::Set { run, deadline } => {
            if let Some(open) = job.run_mut(*run) {
                open.deadline = Some(*deadline);
            }
        }
        DeadlineChange::Owed(owed) => job.hot.owed = Some(*owed),
        DeadlineChange::Missed { run: None, .. } => job.hot.owed = None,
        DeadlineChange::Missed { run: Some(run), until_ms } => {
            if let Some(open) = job.run_mut(*run) {
                if kept(Rule::MissedOnce) {
                    open.deadline = None;
                }
                let record = open.record_mut();
                record.timing.get_or_insert_default().missed_ms = Some(*until_ms);
            }
        }
        DeadlineChange::Excused { run } => {
            if let Some(open) = job.run_mut(*run) {
                open.deadline = None;
            }
        }
    }
}

impl Job {
    /// When the next deadline of a run, or of an instant that made none, passes.
    pub(super) fn next_deadline(&self) -> Option<i64> {
        let of_runs = self.hot.runs.iter().filter_map(|open| match open.deadline {
            Some(RunDeadline::Until(until_ms)) => Some(until_ms),
            Some(RunDeadline::FromStart(_)) | None => None,
        });
        of_runs.chain(self.hot.owed.map(|owed| owed.until_ms)).min()
    }
}
