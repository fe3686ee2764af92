//! One page: the next instants that a backfill runs, up to a limit, and how far it has looked for them.

use super::{
    PastOf,
    look_up::{has_failed, records, runs_of_backfills},
};
use campanile_core::{
    backfill::{Stretch, Wanted, stretches},
    job::{BackfillPage, BackfillStart},
};
use campanile_ports::StoreError;
use campanile_schema::{
    ids::{BackfillId, RunId},
    limits::{BACKFILL_LOOK, BACKFILL_PAGE, BACKFILL_PAGE_OF_RUNS, BACKFILL_ROWS, BACKFILL_STARTS},
    payload::Payload,
    stored::backfill::{BackfillMode, PassedInstants},
};
use std::collections::VecDeque;

/// An instant that is to run.
#[derive(Debug)]
pub struct ReadStart {
    pub at_ms: i64,
    /// What lies before it, behind the one before.
    pub before: PassedInstants,
    /// The run that goes on: its record is read when its turn comes, for it may be retried by hand until then.
    pub run: Option<RunId>,
    pub params: Option<Payload>,
}

/// `(after, upto]` of the past of a job.
#[derive(Debug)]
pub struct ReadPage {
    pub id: BackfillId,
    pub after_ms: i64,
    pub upto_ms: i64,
    pub starts: VecDeque<ReadStart>,
    pub tail: PassedInstants,
}

impl ReadPage {
    /// The next part of it, at most so many runs. Its records are the caller's to fill in.
    pub fn part(&self, most: usize) -> BackfillPage {
        let count = most.min(BACKFILL_STARTS).min(self.starts.len());
        let whole = count == self.starts.len();
        let start = |start: &ReadStart| BackfillStart {
            at_ms: start.at_ms,
            before: start.before,
            record: None,
            params: start.params.clone(),
        };
        let starts: Vec<BackfillStart> = self.starts.iter().take(count).map(start).collect();
        let upto_ms = starts.last().filter(|_| !whole).map_or(self.upto_ms, |last| last.at_ms);
        let tail = if whole { self.tail } else { PassedInstants::default() };
        BackfillPage { id: self.id, after_ms: self.after_ms, upto_ms, starts, tail }
    }

    /// The backfill has come so far.
    pub fn moved(&mut self, cursor_ms: i64) {
        while self.starts.front().is_some_and(|start| start.at_ms <= cursor_ms) {
            self.starts.pop_front();
        }
        self.after_ms = cursor_ms;
    }
}

/// What is gathered for a page.
struct Gathering<'p> {
    of: &'p PastOf,
    page: ReadPage,
    most: usize,
    looked: u64,
}

/// Reads what follows `after`, up to `to`.
pub(crate) async fn read_page(of: &PastOf, id: BackfillId, after_ms: i64, to_ms: i64) -> Result<ReadPage, StoreError> {
    let most = match of.mode() {
        BackfillMode::Missing | BackfillMode::All => BACKFILL_PAGE,
        BackfillMode::Failed | BackfillMode::Replay => BACKFILL_PAGE_OF_RUNS,
    };
    let page = ReadPage { id, after_ms, upto_ms: after_ms, starts: VecDeque::new(), tail: PassedInstants::default() };
    let mut gathering = Gathering { of, page, most, looked: 0 };
    while gathering.page.upto_ms < to_ms && !gathering.is_full() {
        let at_ms = gathering.page.upto_ms;
        let rows = of.views.ledger(of.job, at_ms, to_ms, BACKFILL_ROWS).await?;
        let end_ms =
            if rows.len() < BACKFILL_ROWS { to_ms } else { rows.last().map_or(to_ms, |row| row.to_ms.min(to_ms)) };
        for stretch in stretches(&of.past, at_ms, end_ms, &rows) {
            if gathering.is_full() {
                break;
            }
            gathering.take(&stretch).await?;
        }
        if !gathering.is_full() {
            gathering.page.upto_ms = end_ms;
        }
    }
    Ok(gathering.page)
}

impl Gathering<'_> {
    fn is_full(&self) -> bool {
        self.page.starts.len() >= self.most || self.looked >= BACKFILL_LOOK
    }

    async fn take(&mut self, stretch: &Stretch) -> Result<(), StoreError> {
        let past = &self.of.past;
        match self.of.wish.of(stretch.known) {
            Wanted::No => {}
            // None that could be told.
            _ if stretch.next(past, stretch.after_ms).is_none() => self.page.tail.differing += stretch.count(past),
            Wanted::Unknown => self.page.tail.unknown += stretch.count(past),
            Wanted::Start { look: false } => return self.start(stretch, |_| None).await,
            Wanted::Start { look: true } | Wanted::RunOfBackfill => return self.look(stretch).await,
            Wanted::Run(run) => return self.start(stretch, move |_| Some(run)).await,
        }
        self.page.upto_ms = stretch.upto_ms;
        Ok(())
    }

    /// The next of its instants, as many as there is room for.
    fn instants(&mut self, stretch: &Stretch) -> Vec<i64> {
        let mut instants = Vec::new();
        let mut at_ms = self.page.upto_ms;
        let room = self.most - self.page.starts.len();
        while instants.len() < room && self.looked < BACKFILL_LOOK {
            let Some(next) = stretch.next(&self.of.past, at_ms) else { break };
            instants.push(next);
            at_ms = next;
            self.looked += 1;
        }
        instants
    }

    /// It ends where its last instant was taken, or with the stretch.
    fn came_to(&mut self, stretch: &Stretch, last_ms: Option<i64>) {
        let more = stretch.next(&self.of.past, last_ms.unwrap_or(stretch.after_ms)).is_some();
        self.page.upto_ms = last_ms.filter(|_| more).unwrap_or(stretch.upto_ms);
    }

    async fn start(&mut self, stretch: &Stretch, run: impl Fn(i64) -> Option<RunId>) -> Result<(), StoreError> {
        let instants = self.instants(stretch);
        let runs: Vec<Option<RunId>> = instants.iter().map(|at_ms| run(*at_ms)).collect();
        self.add(&instants, &runs).await?;
        self.came_to(stretch, instants.last().copied());
        Ok(())
    }

    /// Looks for the runs that earlier backfills made for the instants.
    async fn look(&mut self, stretch: &Stretch) -> Result<(), StoreError> {
        loop {
            let instants = self.instants(stretch);
            let Some(last_ms) = instants.last().copied() else {
                self.came_to(stretch, Some(self.page.upto_ms));
                return Ok(());
            };
            let runs = runs_of_backfills(&self.of.views, self.of.job, &instants).await?;
            match self.of.mode() {
                BackfillMode::Missing | BackfillMode::All => {
                    for (at_ms, run) in instants.iter().zip(&runs) {
                        match run {
                            Some(_) => self.page.tail.existing += 1,
                            None => self.push(*at_ms, None, None),
                        }
                    }
                }
                BackfillMode::Failed | BackfillMode::Replay => {
                    let there = |(at_ms, run): (&i64, &Option<RunId>)| run.map(|run| (*at_ms, Some(run)));
                    let (at, runs): (Vec<i64>, Vec<Option<RunId>>) =
                        instants.iter().zip(&runs).filter_map(there).unzip();
                    self.add(&at, &runs).await?;
                }
            }
            self.came_to(stretch, Some(last_ms));
            if self.is_full() || self.page.upto_ms >= stretch.upto_ms {
                return Ok(());
            }
        }
    }

    /// Instants with the runs that they go on with or run once more, if they do.
    async fn add(&mut self, instants: &[i64], runs: &[Option<RunId>]) -> Result<(), StoreError> {
        let mode = self.of.mode();
        let needs = match mode {
            BackfillMode::Missing | BackfillMode::All => false,
            BackfillMode::Failed | BackfillMode::Replay => true,
        };
        if !needs {
            instants.iter().for_each(|at_ms| self.push(*at_ms, None, None));
            return Ok(());
        }
        let found = records(&self.of.views, runs).await?;
        for ((at_ms, run), record) in instants.iter().zip(runs).zip(found) {
            match record {
                None => self.page.tail.gone += 1,
                Some(record) if mode == BackfillMode::Replay => self.push(*at_ms, None, record.params),
                // Only a person may start it again.
                Some(record) if has_failed(&record) && record.compensated => self.page.tail.gone += 1,
                Some(record) if has_failed(&record) => self.push(*at_ms, *run, None),
                // It ended well, or was started again meanwhile.
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, at_ms: i64, run: Option<RunId>, params: Option<Payload>) {
        let before = std::mem::take(&mut self.page.tail);
        self.page.starts.push_back(ReadStart { at_ms, before, run, params });
    }
}
