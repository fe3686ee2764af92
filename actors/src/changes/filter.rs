//! Decides which changes are sent to a watcher.

use super::{Change, ChangedItem};
use crate::filter::JobMatcher;
use campanile_schema::{
    ids::{JobId, RunId},
    record::RunState,
    view::JobFilter,
    watch::{WatchJobs, WatchRuns},
};

/// Of what a change tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchKind {
    Runs,
    Jobs,
}

/// See the module's text. Compiled: it is asked for every change of the node.
#[derive(Clone, Debug)]
pub struct WatchFilter {
    kind: WatchKind,
    pub run: Option<RunId>,
    job: Option<JobId>,
    tenant: Option<String>,
    state: Option<RunState>,
    labels: Option<JobMatcher>,
}

/// A selector that was checked at the door.
fn labels(selector: Option<&String>) -> Option<JobMatcher> {
    selector.map(|labels| JobMatcher::lenient(&JobFilter { labels: Some(labels.clone()), ..JobFilter::default() }))
}

impl From<&WatchRuns> for WatchFilter {
    fn from(body: &WatchRuns) -> Self {
        Self {
            kind: WatchKind::Runs,
            run: body.run_id,
            job: body.job_id,
            tenant: body.tenant_id.clone(),
            state: body.state,
            labels: labels(body.labels.as_ref()),
        }
    }
}

impl From<&WatchJobs> for WatchFilter {
    fn from(body: &WatchJobs) -> Self {
        Self {
            kind: WatchKind::Jobs,
            run: None,
            job: body.job_id,
            tenant: body.tenant_id.clone(),
            state: None,
            labels: labels(body.labels.as_ref()),
        }
    }
}

impl WatchFilter {
    pub fn is(&self, change: &Change) -> bool {
        let (kind, job, tenant) = match &change.what {
            ChangedItem::Run(run) => (WatchKind::Runs, run.job_id, &run.tenant_id),
            ChangedItem::Job(job) => (WatchKind::Jobs, job.job_id, &job.tenant_id),
        };
        let of_run = match &change.what {
            ChangedItem::Run(run) => {
                self.run.is_none_or(|id| id == run.run_id) && self.state.is_none_or(|state| state == run.state)
            }
            ChangedItem::Job(_) => true,
        };
        kind == self.kind
            && of_run
            && self.job.is_none_or(|id| id == job)
            && self.tenant.as_ref().is_none_or(|own| own == tenant)
            && self.labels.as_ref().is_none_or(|terms| terms.labels(&change.labels))
    }
}
