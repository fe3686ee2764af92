//! What a backfill would do: counts over the whole interval, before anything begins.

use super::{
    PastOf,
    look_up::{has_failed, records, runs_of_backfills},
};
use campanile_core::backfill::{Instants, Known, Stretch, is_due, is_missing, stretches};
use campanile_ports::StoreError;
use campanile_schema::{
    event::Outcome,
    ids::RunId,
    limits::{BACKFILL_DURATIONS, BACKFILL_INSTANTS, BACKFILL_KEYS, BACKFILL_PAGE, BACKFILL_RECORDS, BACKFILL_ROWS},
    record::RunState,
    stored::backfill::{BackfillMode, BackfillPlan},
};

/// What is counted.
struct Counting<'p> {
    of: &'p PastOf,
    plan: BackfillPlan,
    /// Instants that the job is to run, whatever became of them.
    due: u64,
    /// Instants that made a run by the schedule.
    fired: u64,
    /// Instants of which nothing is known, and for which an earlier backfill made a run.
    unknown_existing: u64,
    /// Keys that were looked up.
    keys: u64,
    /// Runs whose records are still to be read; None: they were too many.
    runs: Option<Vec<Option<RunId>>>,
    failed: u64,
    records: u64,
}

/// Counts `(after, to]`. Over the limit of instants it stops counting.
pub(crate) async fn plan(of: &PastOf, after_ms: i64, to_ms: i64) -> Result<BackfillPlan, StoreError> {
    let mut counting = Counting {
        of,
        plan: BackfillPlan::default(),
        due: 0,
        fired: 0,
        unknown_existing: 0,
        keys: 0,
        runs: Some(Vec::new()),
        failed: 0,
        records: 0,
    };
    let mut at_ms = after_ms;
    while at_ms < to_ms && counting.plan.instants <= BACKFILL_INSTANTS {
        let rows = of.views.ledger(of.job, at_ms, to_ms, BACKFILL_ROWS).await?;
        let end_ms =
            if rows.len() < BACKFILL_ROWS { to_ms } else { rows.last().map_or(to_ms, |row| row.to_ms.min(to_ms)) };
        for stretch in stretches(&of.past, at_ms, end_ms, &rows) {
            counting.count(&stretch).await?;
        }
        counting.read_records().await?;
        at_ms = end_ms;
    }
    let mut plan = counting.finish();
    plan.usual_ms = usual_ms(of).await?;
    Ok(plan)
}

impl Counting<'_> {
    async fn count(&mut self, stretch: &Stretch) -> Result<(), StoreError> {
        let count = stretch.count(&self.of.past);
        let (missing, due) = match stretch.known {
            Known::Before => (true, true),
            Known::Nothing => (false, true),
            Known::Outcome { outcome, reason, .. } => (is_missing(outcome, reason), is_due(outcome, reason)),
        };
        if !due {
            return Ok(());
        }
        self.plan.instants += count;
        if matches!(stretch.instants, Instants::Differing(_)) {
            self.plan.passed.differing += count;
            return Ok(());
        }
        self.due += count;
        match stretch.known {
            Known::Nothing => self.plan.passed.unknown += count,
            Known::Outcome { outcome: Outcome::Fired | Outcome::FiredLate, run, .. } => {
                self.fired += count;
                self.note_run(run);
            }
            Known::Outcome { .. } | Known::Before => {}
        }
        let looks = missing || (stretch.known == Known::Nothing && self.of.wish.unknown_run);
        let existing = if looks && !self.of.wish.first { self.existing(stretch).await? } else { 0 };
        self.plan.passed.existing += existing;
        if missing {
            self.plan.missing += count - existing;
        } else {
            self.unknown_existing += existing;
        }
        Ok(())
    }

    /// Instants of the stretch for which an earlier backfill has made a run.
    async fn existing(&mut self, stretch: &Stretch) -> Result<u64, StoreError> {
        let (mut at_ms, mut found) = (stretch.after_ms, 0);
        while self.keys < BACKFILL_KEYS {
            let mut instants = Vec::new();
            while instants.len() < BACKFILL_PAGE
                && let Some(next) = stretch.next(&self.of.past, at_ms)
            {
                instants.push(next);
                at_ms = next;
            }
            if instants.is_empty() {
                break;
            }
            self.keys += instants.len() as u64;
            for run in runs_of_backfills(&self.of.views, self.of.job, &instants).await? {
                found += u64::from(run.is_some());
                self.note_run(run);
            }
        }
        Ok(found)
    }

    fn note_run(&mut self, run: Option<RunId>) {
        if let (Some(runs), Some(run)) = (&mut self.runs, run) {
            runs.push(Some(run));
            if self.records + runs.len() as u64 > BACKFILL_RECORDS {
                self.runs = None;
            }
        }
    }

    async fn read_records(&mut self) -> Result<(), StoreError> {
        let Some(runs) = self.runs.as_mut().map(std::mem::take) else { return Ok(()) };
        self.records += runs.len() as u64;
        let found = records(&self.of.views, &runs).await?;
        let failed = found.iter().flatten().filter(|record| has_failed(record));
        let (undone, failed): (Vec<_>, Vec<_>) = failed.partition(|record| record.compensated);
        self.failed += failed.len() as u64;
        self.plan.passed.gone += found.iter().filter(|record| record.is_none()).count() as u64;
        if self.of.mode() == BackfillMode::Failed {
            self.plan.passed.gone += undone.len() as u64;
        }
        Ok(())
    }

    fn finish(self) -> BackfillPlan {
        let mut plan = self.plan;
        plan.failed = self.runs.map(|_| self.failed);
        let passed = &mut plan.passed;
        let unknown = if self.of.wish.unknown_run { passed.unknown } else { 0 };
        plan.to_run = match self.of.mode() {
            BackfillMode::Missing => plan.missing + unknown - self.unknown_existing,
            BackfillMode::All => self.due - passed.unknown + unknown,
            BackfillMode::Failed => plan.failed.unwrap_or(0),
            BackfillMode::Replay => (self.fired + passed.existing).saturating_sub(passed.gone),
        };
        match self.of.mode() {
            // They need no records.
            BackfillMode::Missing | BackfillMode::All => passed.gone = 0,
            BackfillMode::Failed | BackfillMode::Replay => {}
        }
        plan
    }
}

/// The mean duration of the job's newest runs that succeeded.
async fn usual_ms(of: &PastOf) -> Result<Option<u64>, StoreError> {
    let page = of.views.job_runs(of.job, None, BACKFILL_DURATIONS).await?;
    let took: Vec<u64> = page
        .items
        .iter()
        .filter(|record| record.state == RunState::Success)
        .filter_map(|record| Some((record.ended_ms? - record.started_ms?).max(0).cast_unsigned()))
        .collect();
    Ok((!took.is_empty()).then(|| took.iter().sum::<u64>() / took.len() as u64))
}
