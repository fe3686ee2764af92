//! The fire ledger from the events alone: intervals join without gap or overlap, and every due instant of the version in
//! force, found one by one, has exactly one outcome.
//!
//! | rule | what is checked |
//! |---|---|
//! | join | an interval begins where the one before ended (first: creation, or just before a ONCE); it names the version and the tzdb in force |
//! | whole | the entries of a `CursorMoved` name every instant in its interval once, in order, with right first, last and count |
//! | one run | the interval of a `RunCreated` holds its logical time and no other instant |
//! | never early | a run's logical time is not after the decision, nor are decided instants |
//! | late | FIRED_LATE exactly when more than `LATE_MS` after instant and jitter |
//! | coalesced | the run named carries a later instant and is created in the same decision |
//! | nothing forgotten | when the job wants no wake, no instant is due (paused, waiting behind a backlog, paced: see `policy`) |

use super::{due::Due, due::Instant, sim::Step};
use campanile_core::cron::tzdb_version;
use campanile_schema::{
    event::{Event, Interval, LedgerEntry, Outcome, SkipReason},
    ids::RunId,
    job::{ConcurrencyPolicy, JobStatus, MisfirePolicy},
    limits::LATE_MS,
    record::Source,
    stored::{StoredJob, StoredTrigger},
};
use std::collections::BTreeSet;

/// What the checker knows of the job.
pub struct Known {
    pub def: StoredJob,
    pub due: Due,
    pub version: u64,
    pub cursor_ms: i64,
    pub base_ms: i64,
    pub status: JobStatus,
    pub quarantined: bool,
    pub open: BTreeSet<RunId>,
}

impl Known {
    pub fn created(event: &Event) -> Result<Self, String> {
        let Event::JobCreated { spec, at_ms, .. } = event else { return Err(format!("begins with {event:?}")) };
        let cursor_ms = match spec.trigger {
            StoredTrigger::Once { at_ms: due } => (*at_ms).min(due - 1),
            StoredTrigger::Cron { .. }
            | StoredTrigger::FixedRate { .. }
            | StoredTrigger::FixedDelay { .. }
            | StoredTrigger::Manual {} => *at_ms,
        };
        Ok(Self {
            def: StoredJob::clone(spec),
            due: Due::of(spec),
            version: 1,
            cursor_ms,
            base_ms: *at_ms,
            status: JobStatus::Enabled,
            quarantined: false,
            open: BTreeSet::new(),
        })
    }

    /// What a fixed delay counts from now.
    pub fn base(&self) -> Option<i64> {
        self.open.is_empty().then_some(self.base_ms)
    }

    pub fn jitter_ms(&self) -> i64 {
        i64::from(self.def.jitter_sec) * 1000
    }

    pub fn threshold_ms(&self) -> i64 {
        i64::from(self.def.misfire_threshold_sec) * 1000
    }

    /// Follows an event that was judged.
    pub fn follow(&mut self, event: &Event) {
        match event {
            Event::JobReplaced { spec, version, at_ms, .. } => {
                self.def = StoredJob::clone(spec);
                self.due = Due::of(spec);
                self.version = *version;
                self.cursor_ms = self.cursor_ms.max(*at_ms);
                self.base_ms = self.cursor_ms;
            }
            Event::JobPaused { .. } => self.status = JobStatus::Paused,
            Event::JobResumed { at_ms, .. } => {
                self.status = JobStatus::Enabled;
                self.quarantined = false;
                self.base_ms = self.cursor_ms.max(*at_ms);
            }
            Event::JobDeleted { .. } => self.status = JobStatus::Deleted,
            Event::JobQuarantined { .. } => self.quarantined = true,
            Event::CursorMoved { interval, entries, .. } => {
                self.cursor_ms = interval.to_ms;
                if !entries.is_empty() {
                    self.base_ms = interval.to_ms;
                }
            }
            Event::RunCreated { run, interval, .. } => {
                self.open.insert(*run);
                self.cursor_ms = interval.as_ref().map_or(self.cursor_ms, |i| i.to_ms);
            }
            Event::RunEnded { record, .. } => {
                self.open.remove(&record.run);
                self.base_ms = self.cursor_ms.max(record.ended_ms.unwrap_or(i64::MIN));
            }
            Event::RunReopened { record, .. } => {
                self.open.insert(record.run);
            }
            Event::TenantSet { .. }
            | Event::TenantDeleted { .. }
            | Event::Lent { .. }
            | Event::PauseSet { .. }
            | Event::CreateKept { .. }
            | Event::Outbox { .. }
            | Event::BackfillChanged { .. }
            | Event::BulkChanged { .. }
            | Event::CalendarSet { .. }
            | Event::HookFailed { .. }
            | Event::Audited { .. }
            | Event::JobCreated { .. }
            | Event::RunReleased { .. }
            | Event::RetryDue { .. }
            | Event::AttemptStarted { .. }
            | Event::AttemptSuspected { .. }
            | Event::AttemptHeard { .. }
            | Event::AttemptStopping { .. }
            | Event::AttemptEnded { .. }
            | Event::RunConfirmed { .. }
            | Event::RunPrioritized { .. }
            | Event::GraphChanged { .. }
            | Event::DeadLetterDiscarded { .. } => {}
        }
    }
}

/// Checks a whole history.
pub fn check(steps: &[Step]) -> Result<(), String> {
    let mut known = Known::created(&steps[0].events[0])?;
    let mut fired = BTreeSet::new();
    for step in &steps[1..] {
        let mut coalesced: Option<(RunId, i64)> = None;
        for event in &step.events {
            let judged = match event {
                Event::CursorMoved { interval, entries, .. } => {
                    coalesced = entries.iter().rev().find_map(|e| e.run.map(|run| (run, e.last_ms)));
                    moved(&known, step, interval, entries)
                }
                Event::RunCreated { interval: Some(interval), source, logical_ms, at_ms, late, run, .. } => {
                    let carried = coalesced.take();
                    if carried.is_some_and(|(carrier, last)| carrier != *run || last >= interval.to_ms) {
                        return Err(format!("{carried:?} were not coalesced into {event:?}"));
                    }
                    if !fired.insert(*logical_ms) {
                        return Err(format!("{logical_ms:?} fired twice"));
                    }
                    created(&known, interval, *source, *logical_ms, *at_ms, *late)
                }
                Event::RunCreated { source: Source::Schedule, .. } => Err("a scheduled run has no interval".to_owned()),
                _ => Ok(()),
            };
            judged.map_err(|why| format!("at {}: {why}: {event:?}", step.now_ms))?;
            known.follow(event);
        }
        if let Some(lost) = coalesced {
            return Err(format!("at {}: {lost:?} coalesced into a run that is not there", step.now_ms));
        }
        nothing_forgotten(&known, step)?;
    }
    Ok(())
}

fn joins(known: &Known, interval: &Interval) -> Result<(), String> {
    if interval.from_ms != known.cursor_ms || interval.to_ms <= interval.from_ms {
        return Err(format!("the interval does not join at {}", known.cursor_ms));
    }
    if interval.version != known.version || interval.tzdb != tzdb_version() {
        return Err(format!("version {} is in force", known.version));
    }
    Ok(())
}

fn moved(known: &Known, step: &Step, interval: &Interval, entries: &[LedgerEntry]) -> Result<(), String> {
    joins(known, interval)?;
    let instants = known.due.between(interval.from_ms, interval.to_ms, known.base());
    let mut rest: &[Instant] = &instants;
    for entry in entries {
        let count = usize::try_from(entry.count).map_err(|e| e.to_string())?;
        if count == 0 || count > rest.len() {
            return Err(format!("count {count} of {} instants that are left", rest.len()));
        }
        let (these, others) = rest.split_at(count);
        if these[0].at_ms != entry.first_ms || these[count - 1].at_ms != entry.last_ms {
            return Err(format!("first and last are {} and {}", these[0].at_ms, these[count - 1].at_ms));
        }
        let gone = entry.outcome == Outcome::DstSkipped;
        if these.iter().any(|i| i.gone != gone) {
            return Err("daylight saving takes away other instants than these".to_owned());
        }
        let closed = entry.reason.filter(|reason| matches!(reason, SkipReason::Window | SkipReason::Blackout));
        if these.iter().any(|i| i.closed != closed) {
            return Err("windows take away other instants than these".to_owned());
        }
        let reason = matches!(entry.outcome, Outcome::Skipped | Outcome::Missed);
        if reason != entry.reason.is_some() || (entry.outcome == Outcome::Coalesced) != entry.run.is_some() {
            return Err("reason or run does not belong to the outcome".to_owned());
        }
        if matches!(entry.outcome, Outcome::Fired | Outcome::FiredLate) {
            return Err("fired instants are runs".to_owned());
        }
        if entry.last_ms > step.now_ms {
            return Err("decided before it was due".to_owned());
        }
        rest = others;
    }
    rest.first().map_or(Ok(()), |i| Err(format!("{} has no outcome", i.at_ms)))
}

fn created(
    known: &Known,
    interval: &Interval,
    source: Source,
    logical_ms: Option<i64>,
    at_ms: i64,
    late: bool,
) -> Result<(), String> {
    joins(known, interval)?;
    if source != Source::Schedule || logical_ms != Some(interval.to_ms) {
        return Err("only a scheduled run has an interval, up to its logical time".to_owned());
    }
    let instants = known.due.between(interval.from_ms, interval.to_ms, known.base());
    if instants != [Instant { at_ms: interval.to_ms, gone: false, closed: None }] {
        return Err(format!("the interval's instants are {instants:?}"));
    }
    let age = at_ms - interval.to_ms;
    if age < 0 {
        return Err("fired before it was due".to_owned());
    }
    if (late && age <= LATE_MS) || (!late && age > LATE_MS + known.jitter_ms()) {
        return Err(format!("late is {late} at {age} ms"));
    }
    Ok(())
}

fn nothing_forgotten(known: &Known, step: &Step) -> Result<(), String> {
    let fires = known.status == JobStatus::Enabled && !known.quarantined;
    let in_order = known.def.misfire == MisfirePolicy::FireAllMissed;
    let waits = in_order && known.def.concurrency != ConcurrencyPolicy::Allow && !known.open.is_empty();
    if !step.quiet || !fires {
        return Ok(());
    }
    let Some(due) = known.due.next_fire(known.cursor_ms, known.base()) else { return Ok(()) };
    // A backlog is paced (how, `policy` checks), and may wait for the active run.
    let backlog = in_order && step.now_ms - due > known.threshold_ms();
    if due + known.jitter_ms() <= step.now_ms && !waits && !backlog {
        return Err(format!("at {}: {due} is due and forgotten", step.now_ms));
    }
    Ok(())
}
