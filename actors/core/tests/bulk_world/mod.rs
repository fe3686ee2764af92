//! A home shard with records, jobs, and a driver that may die anywhere.

use crate::support::make::{every, plain};
use campanile_core::{
    bulk::{self, Bulks},
    job::{BulkCommand, Command, Context, Ids, Job, Reply, apply::created, bulk::is_item, bulk_step, decide_next},
};
use campanile_schema::{
    error::ErrorCode,
    frame::{decode, encode},
    ids::{BulkId, Epoch, JobId},
    job::JobStatus,
    stored::{
        audit::CallOrigin,
        bulk::{BulkAction, BulkChange, BulkCounts, BulkItem, BulkPage, BulkPlace, BulkState, StoredBulk},
    },
};
use std::collections::{BTreeMap, BTreeSet};

pub const T0: i64 = 1_000_000;
pub const JOBS: u64 = 7;
/// Items of a page.
pub const PAGE: usize = 2;

pub struct World {
    pub bulks: Bulks,
    pub jobs: BTreeMap<u64, Job>,
    /// Runs that triggers made: of a key one of each job, without one as many as there are triggers.
    pub keyed: BTreeSet<(u64, String)>,
    pub runs: BTreeMap<u64, u64>,
    pub now_ms: i64,
    pub next: u64,
    pub wrong: Vec<String>,
}

impl World {
    pub fn new() -> Self {
        let job = |id| (id, created(JobId(id), plain(every(3_600, 0)), T0));
        Self {
            bulks: Bulks::new(),
            jobs: (1..=JOBS).map(job).collect(),
            keyed: BTreeSet::new(),
            runs: BTreeMap::new(),
            now_ms: T0 + 1,
            next: 1,
            wrong: Vec::new(),
        }
    }

    pub fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }

    /// As the shard does it, through the stored bytes.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = BulkChange>) {
        for change in changes {
            let change: BulkChange = decode("change", &encode(&change)).unwrap();
            bulk::apply(&mut self.bulks, &change);
        }
    }

    pub fn create(&mut self, asked: StoredBulk) -> Option<BulkId> {
        self.next += 1;
        let id = BulkId(self.next);
        let changes = bulk::create(&self.bulks, asked, id, self.now_ms).ok()?;
        self.apply(changes);
        Some(id)
    }

    pub fn begun(&mut self, action: BulkAction) -> BulkId {
        self.create(StoredBulk { action, tenant: Some("default".into()), ..StoredBulk::default() }).unwrap()
    }

    pub fn undo(&mut self, id: BulkId) -> Result<BulkId, ErrorCode> {
        self.next += 1;
        let new = BulkId(self.next);
        let changes = bulk::undo(&self.bulks, id, new, CallOrigin::default(), None, self.now_ms);
        self.apply(changes.map_err(|refused| refused.code)?);
        Ok(new)
    }

    pub fn abort(&mut self, id: BulkId) -> Result<(), ErrorCode> {
        let changes = bulk::abort(&self.bulks, id, None, self.now_ms).map_err(|refused| refused.code)?;
        self.apply(changes);
        Ok(())
    }

    pub fn tell(&mut self, job: u64, command: &Command) -> Result<Reply, ErrorCode> {
        let job = self.jobs.get_mut(&job).ok_or(ErrorCode::NotFound)?;
        let ctx = Context {
            now_ms: self.now_ms,
            ids: Ids { first: 5, count: 1_000 },
            epoch: Epoch(9),
            pauses: Vec::new(),
            queue_full: false,
            queue_half: false,
            node_room: 1_000,
            overloaded: false,
            held: None,
            tzdb: "2026b",
            sampling: None,
        };
        let (decision, next) = decide_next(job, command, &ctx).map_err(|refused| refused.code)?;
        *job = next;
        Ok(decision.reply)
    }

    pub fn status(&self, job: u64) -> JobStatus {
        self.jobs[&job].hot.status
    }

    pub fn with_status(&self, status: JobStatus) -> usize {
        self.jobs.values().filter(|job| job.hot.status == status).count()
    }

    /// The next page, as the walk over the shards finds it.
    pub fn look(&self, id: BulkId) -> BulkPage {
        let known = &self.bulks[&id];
        let after = match known.place {
            Some(BulkPlace::Shard { after, .. }) => after,
            Some(BulkPlace::Page { .. }) | None => 0,
        };
        let look = bulk::look(known, after, PAGE);
        let fits = |job: &Job| look.filter.status.is_none_or(|status| job.hot.status.code() == status);
        let is_item = |job: &&Job| job.id.0 > after && is_item(&look, &job.hot, || fits(job));
        let found: Vec<u64> = self.jobs.values().filter(is_item).map(|job| job.id.0).collect();
        let more = found.len() > PAGE;
        let items: Vec<BulkItem> = found.into_iter().take(PAGE).map(|id| BulkItem { id, generation: 0 }).collect();
        let next = items.last().filter(|_| more);
        let next = next.map(|last| BulkPlace::Shard { shard: 0, after: last.id, created_ms: None });
        BulkPage { items, next }
    }

    pub fn begin(&mut self, id: BulkId) -> bool {
        let (pages, page) = (self.bulks[&id].pages, self.look(id));
        let begun = bulk::begin(&self.bulks, id, pages, page).unwrap();
        let is_begun = begun.is_some();
        self.apply(begun);
        is_begun
    }

    /// Does the items of the open page; the first `upto` only, and then the driver dies.
    pub fn work(&mut self, id: BulkId, again: bool, upto: usize) -> BulkCounts {
        let work = bulk::work(&self.bulks[&id], again);
        let mut counts = BulkCounts::default();
        for item in work.items.iter().take(upto) {
            let reply = match bulk_step(&work) {
                Some(step) => {
                    let command = BulkCommand { bulk: work.bulk, step, undo_of: work.undo_of, reason: None };
                    self.tell(item.id, &Command::Bulk(Box::new(command)))
                }
                None => {
                    let is_new = bulk::key(id).is_none_or(|key| self.keyed.insert((item.id, key)));
                    *self.runs.entry(item.id).or_default() += u64::from(is_new);
                    Ok(Reply::Done)
                }
            };
            match reply {
                Ok(Reply::Unchanged) => counts.unchanged += 1,
                Ok(_) => counts.done += 1,
                Err(_) if again => counts.done += 1,
                Err(_) => counts.unchanged += 1,
            }
        }
        counts
    }

    pub fn report(&mut self, id: BulkId, pages: u64, counts: BulkCounts) -> bool {
        let done = bulk::report(&self.bulks, id, pages, counts, self.now_ms).unwrap();
        let is_counted = done.is_some();
        self.apply(done);
        is_counted
    }

    /// To its end. Every other page is done in part by a driver that dies, and whole by the next one.
    pub fn drive(&mut self, id: BulkId) {
        for turn in 0..100 {
            match self.bulks[&id].state {
                BulkState::Running | BulkState::Aborting => {}
                BulkState::Waiting | BulkState::Aborted | BulkState::Done => return,
            }
            if self.bulks[&id].page.is_none() && !self.begin(id) {
                return;
            }
            let dies = turn % 2 == 1;
            if dies {
                self.work(id, false, 1);
            }
            let counts = self.work(id, dies, PAGE);
            let pages = self.bulks[&id].pages;
            self.report(id, pages, counts.clone());
            // The report comes once more, because its answer was lost.
            self.report(id, pages, counts);
            for known in self.bulks.values() {
                let whole = encode(known);
                assert_eq!(&decode::<StoredBulk>("bulk", &whole).unwrap(), known);
            }
        }
        self.wrong.push("it never ends".to_owned());
    }

    pub fn counts(&self, id: BulkId) -> (u64, u64, u64) {
        let BulkCounts { done, unchanged, failed, .. } = self.bulks[&id].counts;
        (done, unchanged, failed)
    }
}
