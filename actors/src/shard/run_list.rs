//! The shard's part of the list of open runs, newest first.
//!
//! Ids of a shard rise with the creation of runs, so the list follows the ids. One call looks at a bounded number of runs, and says where
//! the next one goes on: a filter that fits few of them does not hold the shard up.

use super::Shard;
use crate::{calls::Responder, filter::JobMatcher};
use campanile_core::job::Job;
use campanile_schema::{
    ids::{JobId, RunId},
    limits,
    peer::runs::{OpenRunsPart, RunFilter, RunPlace},
    view::JobFilter,
};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Which runs a list shows.
struct RunMatcher<'a> {
    filter: &'a RunFilter,
    labels: JobMatcher,
}

impl<'a> RunMatcher<'a> {
    fn new(filter: &'a RunFilter) -> Self {
        let labels = JobMatcher::lenient(&JobFilter { labels: filter.labels.clone(), ..JobFilter::default() });
        Self { filter, labels }
    }

    fn has_job(&self, job: &Job) -> bool {
        let of_tenant = self.filter.tenant.as_ref().is_none_or(|tenant| *tenant == *job.def.tenant);
        let labels: BTreeMap<String, String> =
            if self.filter.labels.is_some() { job.def.labels.to_map() } else { BTreeMap::new() };
        of_tenant && self.filter.job.is_none_or(|id| id == job.id) && self.labels.labels(&labels)
    }
}

impl Shard {
    pub(super) fn list_runs(
        &mut self,
        filter: &RunFilter,
        after: Option<RunPlace>,
        limit: usize,
        responder: Responder<OpenRunsPart>,
    ) {
        let part = self.open_runs_part(filter, after, limit.min(limits::PAGE_SIZE_MAX));
        self.when_durable(move || responder.send(Ok(part)));
    }

    fn open_runs_part(&self, filter: &RunFilter, after: Option<RunPlace>, limit: usize) -> OpenRunsPart {
        let of_job = |job: JobId| filter.job.is_none_or(|wanted| wanted == job);
        let mut ids: Vec<(RunId, JobId)> =
            self.open_runs.iter().filter(|(_, job)| of_job(**job)).map(|(run, job)| (*run, *job)).collect();
        ids.sort_unstable_by_key(|(run, _)| std::cmp::Reverse(*run));
        // A job with many open runs is read once. None: it has none that fit.
        let mut jobs: HashMap<JobId, Option<Job>> = HashMap::new();
        let matcher = RunMatcher::new(filter);
        let first = after.map_or(0, |after| self.behind(&ids, after));
        let (mut items, mut next) = (Vec::new(), None);
        for (looked, (run, id)) in ids[first..].iter().enumerate() {
            if items.len() >= limit || looked >= limits::OPEN_RUN_LOOKS {
                return OpenRunsPart { items, next };
            }
            let job = jobs.entry(*id).or_insert_with(|| self.materialize(*id));
            let Some((job, open)) = job.as_ref().and_then(|job| Some((job, job.run(*run)?))) else { continue };
            next = Some(RunPlace { created_ms: open.record.created_ms, run: *run });
            let record = &open.record;
            let fits = filter.has_state(record.state)
                && filter.has_source(record.source)
                && filter.has_time(record.created_ms)
                && matcher.has_job(job);
            if fits {
                items.push(job.run_view(open));
            }
        }
        OpenRunsPart { items, next: None }
    }

    /// How many of these runs, newest first, do not stand behind a place.
    fn behind(&self, ids: &[(RunId, JobId)], after: RunPlace) -> usize {
        let created = |(run, job): &(RunId, JobId)| {
            let job = self.materialize(*job)?;
            Some(job.run(*run)?.record.created_ms)
        };
        ids.partition_point(|entry| {
            created(entry).is_some_and(|created_ms| RunPlace { created_ms, run: entry.0 } >= after)
        })
    }
}
