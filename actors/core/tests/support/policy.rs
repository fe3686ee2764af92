//! What the policies promise, from the events alone.
//!
//! Misfire: an instant is a *misfire* when it is decided more than `misfireThresholdSec` after instant and jitter.
//!
//! | policy | within the threshold | misfires |
//! |---|---|---|
//! | `SKIP` | each fires | SKIPPED(MISFIRE), no run |
//! | `FIRE_ONCE_NOW` | each fires | one run with the latest instant that is due, the earlier ones COALESCED into it |
//! | `FIRE_ALL_MISSED` | each fires | in order, at most `RUNS_PER_WAKE` a wake and `CATCH_UP_RUNS_PER_SEC` a second, one after the other unless ALLOW; beyond `maxCatchUp` the oldest are MISSED(CATCH_UP_CAP), so that exactly the cap remains |
//!
//! Concurrency (*active* = any state that is not final):
//!
//! | policy | a run is active | |
//! |---|---|---|
//! | `ALLOW` | fires | never held |
//! | `FORBID` | SKIPPED(RUN_ACTIVE) | a run is created only when none is active |
//! | `QUEUE_ONE` | held once, then SKIPPED(ONE_QUEUED) | at most one pending by the schedule |
//! | `REPLACE` | held until the old body has ended | all others have ended or were told to stop |
//!
//! A held run goes on only when nothing but held runs is active. A full queue is SKIPPED(QUEUE_FULL), a pause of job,
//! tenant or system SKIPPED with that reason; nothing fires while paused, quarantined or deleted, and no attempt starts while
//! paused or quarantined. A pause of tenant or system holds by the instant: what was due before it fires, also when that is decided in it.

use super::{ledger::Known, sim::Step};
use campanile_core::shard::Pause;
use campanile_schema::{
    event::{Event, LedgerEntry, Outcome, SkipReason},
    ids::RunId,
    job::{ConcurrencyPolicy, JobStatus, MisfirePolicy},
    limits::{CATCH_UP_RUNS_PER_SEC, OPEN_RUNS_PER_JOB, RUNS_PER_WAKE},
    record::{RunState, Source},
};
use std::collections::BTreeMap;

/// A run as far as policies look at it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Held,
    /// No body.
    Waits,
    Body,
    /// A body that was told to stop.
    Stopping,
}

struct Policy {
    known: Known,
    runs: BTreeMap<RunId, Run>,
    /// When the last run of a backlog was created and how many then; none after something that ends the pace.
    pace: Option<(i64, u64)>,
}

/// Checks a whole history.
pub fn check(steps: &[Step]) -> Result<(), String> {
    let known = Known::created(&steps[0].events[0])?;
    let mut policy = Policy { known, runs: BTreeMap::new(), pace: None };
    for step in &steps[1..] {
        for event in &step.events {
            policy.judge(step, event).map_err(|why| format!("at {}: {why}: {event:?}", step.now_ms))?;
            policy.follow(event);
            policy.known.follow(event);
        }
    }
    Ok(())
}

fn lasts(step: &Step) -> bool {
    step.pauses.iter().any(|pause| pause.to_ms.is_none())
}

/// A pause that lasts and began later than now began when the clock was ahead: all that is not decided yet is due in it.
fn holds(step: &Step, pause: &Pause, due_ms: i64) -> bool {
    (pause.to_ms.is_none() && pause.from_ms > step.now_ms) || pause.holds(due_ms)
}

fn in_pause(step: &Step, due_ms: i64) -> bool {
    step.pauses.iter().any(|pause| holds(step, pause, due_ms))
}

/// When the first pause after the instant began.
fn until_pause(step: &Step, due_ms: i64) -> i64 {
    let began = step.pauses.iter().filter(|pause| pause.to_ms.is_some() || pause.from_ms <= step.now_ms);
    began.map(|pause| pause.from_ms).filter(|from_ms| *from_ms >= due_ms).min().unwrap_or(i64::MAX)
}

impl Policy {
    fn judge(&mut self, step: &Step, event: &Event) -> Result<(), String> {
        match event {
            Event::CursorMoved { interval, entries, .. } => {
                entries.iter().try_for_each(|e| self.reason(step, e, interval.to_ms))
            }
            Event::RunCreated { source, logical_ms, held, at_ms, .. } => {
                self.may_fire(step, logical_ms.filter(|_| *source == Source::Schedule))?;
                self.admitted(*held)?;
                match (source, logical_ms) {
                    (Source::Schedule, Some(at)) => self.misfire(step, *at, *at_ms),
                    _ => Ok(()),
                }
            }
            Event::AttemptStarted { .. } => self.may_start(step),
            Event::RunReleased { .. } if self.runs.values().any(|r| *r != Run::Held) => {
                Err("released while another run is active".to_owned())
            }
            Event::RunReopened { record, .. } => {
                self.may_fire(step, None)?;
                let alone = self.runs.is_empty() || self.known.def.concurrency == ConcurrencyPolicy::Allow;
                if alone == (record.state == RunState::Queued) { Ok(()) } else { Err("held or not".to_owned()) }
            }
            _ => Ok(()),
        }
    }

    /// `due_ms`: the instant that it is for, None of a run by hand.
    fn may_fire(&self, step: &Step, due_ms: Option<i64>) -> Result<(), String> {
        let known = &self.known;
        let paused = due_ms.map_or_else(|| lasts(step), |due_ms| in_pause(step, due_ms));
        if known.status != JobStatus::Enabled || known.quarantined || paused {
            return Err(format!("{} (quarantined: {}) or {:?}", known.status, known.quarantined, step.pauses));
        }
        if step.queue_full || self.runs.len() >= OPEN_RUNS_PER_JOB {
            return Err("the queue is full".to_owned());
        }
        Ok(())
    }

    /// A pause of any kind lets open bodies go on, and nothing new start: no retry, no run that waited.
    fn may_start(&self, step: &Step) -> Result<(), String> {
        let known = &self.known;
        if known.status == JobStatus::Paused || known.quarantined || lasts(step) {
            return Err(format!("started: {} (quarantined: {}) or {:?}", known.status, known.quarantined, step.pauses));
        }
        Ok(())
    }

    fn admitted(&self, held: bool) -> Result<(), String> {
        let any = |wanted: Run| self.runs.values().any(|r| *r == wanted);
        let active = !self.runs.is_empty();
        let right = match self.known.def.concurrency {
            ConcurrencyPolicy::Allow => !held,
            ConcurrencyPolicy::Forbid => !active && !held,
            ConcurrencyPolicy::QueueOne => held == active && !any(Run::Held),
            ConcurrencyPolicy::Replace => held == active && !any(Run::Held) && !any(Run::Waits) && !any(Run::Body),
        };
        if right { Ok(()) } else { Err(format!("{} lets it not in", self.known.def.concurrency)) }
    }

    fn misfire(&mut self, step: &Step, logical_ms: i64, at_ms: i64) -> Result<(), String> {
        let (known, age) = (&self.known, at_ms - logical_ms);
        let surely = age > known.threshold_ms() + known.jitter_ms();
        match known.def.misfire {
            MisfirePolicy::Skip if surely => Err("a misfire fired under SKIP".to_owned()),
            MisfirePolicy::FireOnceNow if surely => {
                let later = known.due.next_fire(logical_ms, None).filter(|due| due + known.jitter_ms() <= at_ms);
                let later = later.filter(|due| *due <= until_pause(step, logical_ms));
                later.map_or(Ok(()), |later| Err(format!("{later} is later and due")))
            }
            MisfirePolicy::FireAllMissed if surely => self.paced(at_ms),
            MisfirePolicy::Skip | MisfirePolicy::FireOnceNow | MisfirePolicy::FireAllMissed => {
                self.pace = None;
                Ok(())
            }
        }
    }

    fn paced(&mut self, at_ms: i64) -> Result<(), String> {
        let pace_ms = RUNS_PER_WAKE as i64 * 1000 / CATCH_UP_RUNS_PER_SEC;
        if !self.runs.is_empty() && self.known.def.concurrency != ConcurrencyPolicy::Allow {
            return Err("a backlog goes on before the active run has ended".to_owned());
        }
        let (last, count) = self.pace.unwrap_or((i64::MIN, 0));
        let count = if last == at_ms { count + 1 } else { 1 };
        // Equal: the same wake. Earlier: the clock was put back.
        if count > RUNS_PER_WAKE || (last < at_ms && at_ms < last.saturating_add(pace_ms)) {
            return Err(format!("too fast: {count} at {at_ms} after {last}"));
        }
        self.pace = Some((at_ms, count));
        Ok(())
    }

    /// The reason is true, and the outcome the policy's.
    fn reason(&self, step: &Step, entry: &LedgerEntry, to_ms: i64) -> Result<(), String> {
        let known = &self.known;
        let has = |wanted: fn(&Event) -> bool| step.events.iter().any(wanted);
        let surely_misfire = step.now_ms - entry.last_ms > known.threshold_ms();
        let paused = in_pause(step, entry.first_ms) || in_pause(step, entry.last_ms);
        let right = match (entry.outcome, entry.reason) {
            (Outcome::DstSkipped, None) => true,
            (Outcome::Coalesced, None) => {
                !paused
                    && known.def.misfire == MisfirePolicy::FireOnceNow
                    && step.now_ms - entry.first_ms > known.threshold_ms()
            }
            (Outcome::Missed, Some(SkipReason::CatchUpCap)) => {
                let sure = step.now_ms - known.threshold_ms() - known.jitter_ms() - 1;
                let sure = sure.min(until_pause(step, entry.first_ms)).max(to_ms);
                let kept = known.due.fires(to_ms, sure, None);
                !paused
                    && known.def.misfire == MisfirePolicy::FireAllMissed
                    && surely_misfire
                    && kept == u64::from(known.def.max_catch_up)
            }
            (Outcome::Skipped, Some(reason)) => match reason {
                SkipReason::Misfire => !paused && known.def.misfire == MisfirePolicy::Skip && surely_misfire,
                SkipReason::RunActive => {
                    !paused && known.def.concurrency == ConcurrencyPolicy::Forbid && !self.runs.is_empty()
                }
                SkipReason::OneQueued => {
                    let held = self.runs.values().any(|r| *r == Run::Held);
                    !paused && known.def.concurrency == ConcurrencyPolicy::QueueOne && held
                }
                SkipReason::QueueFull => !paused && (step.queue_full || self.runs.len() >= OPEN_RUNS_PER_JOB),
                SkipReason::Quarantined => known.quarantined,
                SkipReason::Paused => {
                    !known.quarantined
                        && (known.status == JobStatus::Paused || has(|e| matches!(e, Event::JobPaused { .. })))
                }
                SkipReason::TenantPaused | SkipReason::SystemPaused => step.pauses.iter().any(|pause| {
                    pause.reason == reason && holds(step, pause, entry.first_ms) && holds(step, pause, entry.last_ms)
                }),
                SkipReason::Deleted => has(|e| matches!(e, Event::JobDeleted { .. })),
                SkipReason::Edited => has(|e| matches!(e, Event::JobReplaced { .. })),
                // `ledger` knows which.
                SkipReason::Window | SkipReason::Blackout => true,
                // These definitions name no calendar.
                SkipReason::CatchUpCap | SkipReason::Restored | SkipReason::Calendar | SkipReason::NoCalendar => false,
            },
            (_, _) => false,
        };
        if right { Ok(()) } else { Err(format!("{entry:?} is not what happened")) }
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::RunCreated { run, held, .. } => {
                self.runs.insert(*run, if *held { Run::Held } else { Run::Waits });
            }
            Event::RunReopened { record, .. } => {
                let held = record.state == RunState::Pending;
                self.runs.insert(record.run, if held { Run::Held } else { Run::Waits });
            }
            Event::RunReleased { run, .. } | Event::AttemptEnded { run, .. } => {
                self.runs.insert(*run, Run::Waits);
            }
            Event::AttemptStarted { run, .. } => {
                self.runs.insert(*run, Run::Body);
            }
            Event::AttemptStopping { run, .. } => {
                self.runs.insert(*run, Run::Stopping);
            }
            Event::RunEnded { record, .. } => {
                self.runs.remove(&record.run);
            }
            Event::JobReplaced { .. } | Event::JobResumed { .. } => self.pace = None,
            _ => {}
        }
    }
}
