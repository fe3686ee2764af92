//! What is asked of the list of ended runs over all jobs.

use campanile_schema::record::{RunRecord, RunState};

/// Which ended runs are asked for: all that fit every part that is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedQuery {
    /// None: of every tenant.
    pub tenant: Option<String>,
    /// Final states. Empty: all of them.
    pub states: Vec<RunState>,
    /// Of the end, both included.
    pub from_ms: i64,
    pub to_ms: i64,
}

impl EndedQuery {
    /// Everything.
    pub fn all() -> Self {
        Self { tenant: None, states: Vec::new(), from_ms: i64::MIN, to_ms: i64::MAX }
    }

    /// Whether only FAILED and TIMEOUT runs are asked for.
    pub fn is_of_failed(&self) -> bool {
        let failed = |state: &RunState| match state {
            RunState::Failed | RunState::Timeout => true,
            RunState::Pending
            | RunState::Queued
            | RunState::Running
            | RunState::RetryWait
            | RunState::SuspectedLost
            | RunState::NeedsConfirmation
            | RunState::Success
            | RunState::Canceled
            | RunState::Skipped => false,
        };
        !self.states.is_empty() && self.states.iter().all(failed)
    }

    /// A run that is open does not fit.
    pub fn fits(&self, record: &RunRecord) -> bool {
        record.state.is_final()
            && record.ended_ms.is_some_and(|ended| (self.from_ms..=self.to_ms).contains(&ended))
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == *record.tenant)
            && (self.states.is_empty() || self.states.contains(&record.state))
    }

    /// What lies behind the token of a page: runs before this end and id. Without a token: those up to the end of the query.
    pub fn before(&self, token: Option<&[u8]>) -> (i64, u64) {
        let of = |token: &[u8]| {
            let (ended, run) = token.split_first_chunk()?;
            Some((i64::from_be_bytes(*ended), u64::from_be_bytes(*run.first_chunk()?)))
        };
        let end = (self.to_ms.saturating_add(1), 0);
        token.and_then(of).map_or(end, |token| token.min(end))
    }

    /// Names the last run that was looked at.
    pub fn token(ended_ms: i64, run: u64) -> Vec<u8> {
        [ended_ms.to_be_bytes(), run.to_be_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_on_behind_the_last_run_that_was_looked_at() {
        let query = EndedQuery { to_ms: 50, ..EndedQuery::all() };
        assert_eq!(query.before(None), (51, 0));
        assert_eq!(query.before(Some(&EndedQuery::token(40, 7))), (40, 7));
        assert_eq!(query.before(Some(&EndedQuery::token(90, 7))), (51, 0), "a token of a query that went further");
        assert_eq!(query.before(Some(&[1, 2])), (51, 0), "it is no token");
        assert_eq!(EndedQuery::all().before(None), (i64::MAX, 0));
    }

    #[test]
    fn failed_means_failed_and_timeout_only() {
        let of = |states: &[RunState]| EndedQuery { states: states.to_vec(), ..EndedQuery::all() }.is_of_failed();
        assert!(of(&[RunState::Failed, RunState::Timeout]));
        assert!(!of(&[RunState::Failed, RunState::Canceled]));
        assert!(!of(&[]), "all of them");
    }
}
