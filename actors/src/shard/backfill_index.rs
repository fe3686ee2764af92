//! Which jobs of a shard have backfills, and the pages of their past that were read for them.

use crate::backfill::ReadPage;
use campanile_schema::{
    ids::{BackfillId, JobId},
    limits::BACKFILL_PAGES_KEPT,
};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;

/// What a served shard has of backfills.
#[derive(Default)]
pub(super) struct Backfills {
    /// The newest of each job that has one, and the other way round.
    of_job: HashMap<JobId, BackfillId>,
    jobs: HashMap<BackfillId, JobId>,
    /// Jobs whose backfill has not ended.
    pub open: BTreeSet<JobId>,
    /// Of these, those to be looked at in this turn.
    pub due: BTreeSet<JobId>,
    pub pages: HashMap<JobId, ReadPage>,
    /// Jobs for which a page is being read.
    pub reading: HashSet<JobId>,
}

impl Backfills {
    /// A job has this one as its newest.
    pub fn found(&mut self, job: JobId, id: BackfillId, open: bool) {
        if let Some(before) = self.of_job.insert(job, id) {
            self.jobs.remove(&before);
        }
        self.jobs.insert(id, job);
        self.pages.remove(&job);
        if open {
            self.open.insert(job);
            self.due.insert(job);
        } else {
            self.ended(job);
        }
    }

    pub fn ended(&mut self, job: JobId) {
        self.open.remove(&job);
        self.due.remove(&job);
        self.pages.remove(&job);
    }

    /// The job has left the shard.
    pub fn gone(&mut self, job: JobId) {
        self.ended(job);
        if let Some(id) = self.of_job.remove(&job) {
            self.jobs.remove(&id);
        }
    }

    pub fn job(&self, id: BackfillId) -> Option<JobId> {
        self.jobs.get(&id).copied()
    }

    pub fn keep(&mut self, job: JobId, page: ReadPage) {
        if self.pages.len() >= BACKFILL_PAGES_KEPT && !self.pages.contains_key(&job) {
            let other = self.pages.keys().next().copied();
            other.map(|other| self.pages.remove(&other));
        }
        self.pages.insert(job, page);
    }
}
