//! A job's ledger, read as anybody reads it, one line per instant.

use campanile_client::Client;
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::{JobId, RunId},
    time::Timestamp,
    view::{LedgerBody, PageBody, RunView},
};

/// What became of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub outcome: Outcome,
    pub reason: Option<SkipReason>,
    pub run: Option<RunId>,
}

impl Line {
    /// A run carries this very instant, in time or late.
    pub fn fired(&self) -> bool {
        matches!(self.outcome, Outcome::Fired | Outcome::FiredLate)
    }
    pub fn skipped(&self, reason: SkipReason) -> bool {
        self.outcome == Outcome::Skipped && self.reason == Some(reason)
    }
}

/// Every instant that was decided, oldest first. `every_ms`: distance of the instants of a fixed rate, of which none may be
/// missing or there twice; None for jobs whose instants have no fixed distance.
pub async fn ledger(client: &Client, job: JobId, every_ms: Option<i64>) -> Vec<Line> {
    let body = LedgerBody { from: Some(Timestamp(0)), to: Some(Timestamp(i64::MAX / 2)), page_size: Some(1000) };
    let view = client.job_ledger(job, body).await.unwrap();
    assert!(!view.truncated);
    let mut lines = Vec::new();
    for entry in view.items {
        let (first, last) = (entry.logical_time.ms(), entry.until.unwrap_or(entry.logical_time).ms());
        let every = every_ms.unwrap_or(1);
        assert_eq!((last - first) / every + 1, entry.count as i64, "{entry:?}");
        lines.extend((first..=last).step_by(every as usize).map(|at_ms| Line {
            at_ms,
            outcome: entry.outcome,
            reason: entry.reason,
            run: entry.run_id,
        }));
    }
    for pair in lines.windows(2) {
        let apart = pair[1].at_ms - pair[0].at_ms;
        assert!(every_ms.map_or(apart > 0, |every| apart == every), "missing or twice: {pair:?} of {lines:?}");
    }
    lines
}

/// The instants that runs carry.
pub fn fired(lines: &[Line]) -> Vec<i64> {
    lines.iter().filter(|line| line.fired()).map(|line| line.at_ms).collect()
}

/// Every run of a job, the first created first.
pub async fn runs(client: &Client, job: JobId) -> Vec<RunView> {
    let page = client.job_runs(job, PageBody { page_size: Some(1000), ..PageBody::default() }).await.unwrap();
    assert_eq!(page.next_page_token, None);
    let mut runs = page.items;
    runs.sort_by_key(|run| run.run_id);
    runs
}
