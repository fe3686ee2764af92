//! What lists of runs and of dead letters are asked for, beside the page.

use super::fingerprint::{cause, dead_letter_reason};
use campanile_ports::EndedQuery;
use campanile_schema::{
    ids::JobId,
    peer::runs::RunFilter,
    record::{RunRecord, RunState},
};

/// Which runs.
#[derive(Clone, Debug)]
pub struct RunQuery {
    /// Its states are those of both parts.
    pub filter: RunFilter,
}

impl RunQuery {
    /// The states of open runs, or of ended ones.
    pub(super) fn states(&self, finals: bool) -> Vec<RunState> {
        let wanted = |state: &&RunState| state.is_final() == finals && self.filter.has_state(**state);
        RunState::ALL.iter().filter(wanted).copied().collect()
    }

    pub(super) fn ended(&self) -> EndedQuery {
        EndedQuery {
            tenant: self.filter.tenant.clone(),
            states: self.states(true),
            from_ms: self.filter.from_ms.unwrap_or(i64::MIN),
            to_ms: self.filter.to_ms.unwrap_or(i64::MAX),
        }
    }
}

/// Which dead letters: all that fit every part that is given.
#[derive(Clone, Debug)]
pub struct DeadLetterFilter {
    pub job: Option<JobId>,
    /// Of the end, both included.
    pub from_ms: i64,
    pub to_ms: i64,
    pub cause: Option<String>,
}

impl DeadLetterFilter {
    /// Everything.
    pub fn all() -> Self {
        Self { job: None, from_ms: i64::MIN, to_ms: i64::MAX, cause: None }
    }

    pub(super) fn fits(&self, record: &RunRecord) -> bool {
        (self.from_ms..=self.to_ms).contains(&record.last_ms())
            && self.job.is_none_or(|job| job == record.job)
            && self.cause.as_ref().is_none_or(|wanted| *wanted == cause(&dead_letter_reason(record)))
    }
}
