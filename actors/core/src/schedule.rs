//! When a job is due: one type for cron, fixed rate, fixed delay and once, with the beginning and the end of their
//! validity, and the windows and blackouts that remove some of their instants.
//!
//! All instants are milliseconds since 1970 UTC, logical (before jitter). Never here: jitter, misfires, pauses.

mod gate;
mod removed;

pub use removed::{RemovedBy, RemovedStretch};

use crate::{
    calendar::book::CalendarBook,
    cron::{CronError, CronExpr, CronSchedule, OccurrenceKind, ZoneError},
    windows::rules::{Rule, kept},
};
use campanile_schema::{
    event::SkipReason,
    ids::name_hash,
    limits::CLOSED_STRETCHES,
    stored::{StoredJob, StoredTrigger},
};
use gate::Gate;
use std::sync::Arc;

/// A compiled schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    kind: ScheduleKind,
    start_ms: i64,
    end_ms: i64,
    /// None: every instant of the trigger counts.
    gate: Option<Gate>,
}

#[derive(Clone, Debug)]
enum ScheduleKind {
    /// Shared: a decision works on a copy of its job.
    Cron(Arc<CronSchedule>),
    FixedRate {
        every_ms: i64,
        anchor_ms: i64,
    },
    /// Due once, `every` after the base (the end of the last run); has no instant while the base is not known.
    FixedDelay {
        every_ms: i64,
    },
    Once {
        at_ms: i64,
    },
    Never,
}

/// The definition's schedule cannot be compiled. Definitions are checked when they are created, so this means that the
/// zone database lost a zone or that the definition came from a newer release.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error("{0}")]
    Cron(#[from] CronError),
    #[error("{0}")]
    Zone(#[from] ZoneError),
}

impl Schedule {
    pub fn compile(def: &StoredJob) -> Result<Self, ScheduleError> {
        let kind = match &def.trigger {
            StoredTrigger::Cron { expr, dialect, zone, gap, overlap } => {
                let (expr, _) = CronExpr::parse(expr, *dialect, name_hash(&def.tenant, &def.name))?;
                ScheduleKind::Cron(Arc::new(CronSchedule::new(expr, zone, *gap, *overlap)?))
            }
            StoredTrigger::FixedRate { every_ms, anchor_ms } => {
                ScheduleKind::FixedRate { every_ms: *every_ms, anchor_ms: *anchor_ms }
            }
            StoredTrigger::FixedDelay { every_ms } => ScheduleKind::FixedDelay { every_ms: *every_ms },
            StoredTrigger::Once { at_ms } => ScheduleKind::Once { at_ms: *at_ms },
            StoredTrigger::Manual {} => ScheduleKind::Never,
        };
        let (start_ms, end_ms) = (def.start_ms.unwrap_or(i64::MIN), def.end_ms.unwrap_or(i64::MAX));
        Ok(Self { kind, start_ms, end_ms, gate: Gate::compile(def)? })
    }

    /// A schedule that is never due: stands in when [`Self::compile`] fails, so that the job stays visible.
    pub fn never() -> Self {
        Self { kind: ScheduleKind::Never, start_ms: i64::MIN, end_ms: i64::MAX, gate: None }
    }

    /// Looks the calendar of the definition up. Until it is found no instant counts, and none is decided.
    pub fn find_calendar(&mut self, def: &StoredJob, book: &CalendarBook) {
        if let (Some(gate), Some(calendar)) = (&mut self.gate, def.calendar.as_deref()) {
            gate.find_calendar(&def.tenant, calendar, book);
        }
    }

    pub fn is_fixed_delay(&self) -> bool {
        matches!(self.kind, ScheduleKind::FixedDelay { .. })
    }

    /// First instant strictly after `after` that counts. `delay_base`: end of the last run, for FIXED_DELAY.
    pub fn next(&self, after_ms: i64, delay_base: Option<i64>) -> Option<i64> {
        self.next_until(after_ms, i64::MAX, delay_base)
    }

    /// The same, up to `until`.
    fn next_until(&self, after_ms: i64, until_ms: i64, delay_base: Option<i64>) -> Option<i64> {
        match &self.gate {
            None => self.trigger_next(after_ms, delay_base).filter(|due| *due <= until_ms),
            Some(gate) => self.next_open(gate, after_ms, until_ms, delay_base),
        }
    }

    fn next_open(&self, gate: &Gate, after_ms: i64, until_ms: i64, delay_base: Option<i64>) -> Option<i64> {
        if let ScheduleKind::FixedDelay { every_ms } = &self.kind {
            // It has one instant, which waits for the opening instead of being lost.
            let due = (delay_base? + every_ms).max(self.start_ms);
            let open = if kept(Rule::DelayWaits) { gate.opening(due)? } else { due };
            return Some(open).filter(|due| *due > after_ms && *due <= until_ms.min(self.end_ms));
        }
        let mut after_ms = after_ms;
        for _ in 0..CLOSED_STRETCHES {
            let due = self.trigger_next(after_ms, delay_base).filter(|due| *due <= until_ms)?;
            let span = gate.span(due);
            if span.closed.is_none() {
                return Some(due);
            }
            if span.closed == Some(SkipReason::NoCalendar) {
                // Nobody knows yet whether it counts: it is held.
                return None;
            }
            after_ms = span.until_ms - 1;
        }
        None
    }

    /// Up to when jitter may put an instant off: the end of its window, and at most until `until_ms`.
    pub fn closing(&self, at_ms: i64, until_ms: i64) -> i64 {
        match &self.gate {
            Some(gate) if kept(Rule::JitterStaysInside) => gate.closing(at_ms, until_ms),
            Some(_) | None => until_ms,
        }
    }

    /// First instant of the trigger strictly after `after`, whatever the windows say.
    fn trigger_next(&self, after_ms: i64, delay_base: Option<i64>) -> Option<i64> {
        let after = after_ms.max(self.start_ms.saturating_sub(1));
        let due = match &self.kind {
            ScheduleKind::Cron(cron) => cron.next_fire(after)?,
            ScheduleKind::FixedRate { every_ms, anchor_ms } => {
                if after < *anchor_ms {
                    *anchor_ms
                } else {
                    anchor_ms + ((after - anchor_ms) / every_ms + 1) * every_ms
                }
            }
            ScheduleKind::FixedDelay { every_ms } => {
                // One instant per base: what comes after it depends on when its run ends.
                Some((delay_base? + every_ms).max(self.start_ms)).filter(|due| *due > after)?
            }
            ScheduleKind::Once { at_ms } if *at_ms > after => *at_ms,
            ScheduleKind::Once { .. } | ScheduleKind::Never => return None,
        };
        (due <= self.end_ms).then_some(due)
    }

    /// Instants in `(after, until]` that count.
    pub fn count(&self, after_ms: i64, until_ms: i64, delay_base: Option<i64>) -> u64 {
        match &self.gate {
            None => self.trigger_count(after_ms, until_ms, delay_base),
            Some(_) if self.is_fixed_delay() => u64::from(self.next_until(after_ms, until_ms, delay_base).is_some()),
            Some(gate) => self.open_count(gate, after_ms, until_ms),
        }
    }

    fn open_count(&self, gate: &Gate, after_ms: i64, until_ms: i64) -> u64 {
        let (mut count, mut after_ms) = (0, after_ms);
        while let Some(due) = self.trigger_next(after_ms, None).filter(|due| *due <= until_ms) {
            let span = gate.span(due);
            let last_ms = until_ms.min(span.until_ms - 1);
            if span.closed.is_none() {
                count += self.trigger_count(due - 1, last_ms, None);
            }
            after_ms = last_ms;
        }
        count
    }

    /// Instants of the trigger in `(after, until]`.
    fn trigger_count(&self, after_ms: i64, until_ms: i64, delay_base: Option<i64>) -> u64 {
        let after = after_ms.max(self.start_ms.saturating_sub(1));
        let until = until_ms.min(self.end_ms);
        if until <= after {
            return 0;
        }
        match &self.kind {
            ScheduleKind::Cron(cron) => cron.count_fires(after, until),
            ScheduleKind::FixedRate { every_ms, anchor_ms } => {
                let upto = |t: i64| if t < *anchor_ms { 0 } else { (t - anchor_ms) / every_ms + 1 };
                (upto(until) - upto(after)) as u64
            }
            ScheduleKind::FixedDelay { .. } | ScheduleKind::Once { .. } | ScheduleKind::Never => {
                u64::from(self.trigger_next(after, delay_base).is_some_and(|due| due <= until))
            }
        }
    }

    /// Last instant in `(after, until]` that counts.
    pub fn last(&self, after_ms: i64, until_ms: i64, delay_base: Option<i64>) -> Option<i64> {
        last_of(after_ms, until_ms, |after, until| self.next_until(after, until, delay_base))
    }

    /// The instant after which exactly `keep` instants remain up to `until`: everything up to it is dropped.
    pub fn drop_before(&self, after_ms: i64, until_ms: i64, keep: u64, delay_base: Option<i64>) -> i64 {
        let (mut low, mut high) = (after_ms, until_ms);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.count(middle, until_ms, delay_base) > keep {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Instants in `(after, until]` that daylight saving takes away, in order. Looks only near changes of the zone's
    /// offset, so that a long span of frequent fires stays cheap; there are about two such changes a year.
    fn dst_stretches(&self, after_ms: i64, until_ms: i64) -> Vec<DstStretch> {
        let ScheduleKind::Cron(cron) = &self.kind else { return Vec::new() };
        let mut after = after_ms.max(self.start_ms.saturating_sub(1));
        let until = until_ms.min(self.end_ms);
        if cron.expr.follows_elapsed_time() || cron.next_occurrence(after, until).is_none() {
            return Vec::new();
        }
        let mut stretches: Vec<DstStretch> = Vec::new();
        let Ok(looked_from) = jiff::Timestamp::from_millisecond(after - OFFSET_CHANGE_MS) else { return stretches };
        let mut offset = cron.zone.to_offset(looked_from).seconds();
        for change in cron.zone.following(looked_from) {
            let (at, before) = (change.timestamp().as_millisecond(), offset);
            offset = change.offset().seconds();
            let reach = i64::from((offset - before).abs()) * 1_000;
            if at - reach > until {
                break;
            }
            // A gap ends at the change; the hours of an overlap lie on both sides of it.
            let mut in_stretch = false;
            after = after.max(at - reach - 1);
            while let Some(next) = cron.next_occurrence(after, until.min(at + reach)) {
                after = next.at_ms;
                match (next.kind, stretches.last_mut()) {
                    (OccurrenceKind::Fire, _) => in_stretch = false,
                    (OccurrenceKind::DstSkipped, Some(open)) if in_stretch => {
                        (open.last_ms, open.count) = (after, open.count + 1);
                    }
                    (OccurrenceKind::DstSkipped, _) => {
                        in_stretch = true;
                        stretches.push(DstStretch { first_ms: after, last_ms: after, count: 1 });
                    }
                }
            }
        }
        stretches
    }
}

/// No change of a zone's offset is larger, milliseconds (those across the date line are 24 hours).
const OFFSET_CHANGE_MS: i64 = 26 * 3_600_000;

/// Neighbouring instants that fall away by daylight saving, none that fires between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DstStretch {
    first_ms: i64,
    last_ms: i64,
    count: u64,
}

/// Last instant in `(after, until]`, by bisection: at most ~50 look-ups. `due_in`: the first one in such an interval.
fn last_of(after_ms: i64, until_ms: i64, due_in: impl Fn(i64, i64) -> Option<i64>) -> Option<i64> {
    let mut found = due_in(after_ms, until_ms)?;
    match due_in(found, until_ms) {
        Some(second) => found = second,
        None => return Some(found),
    }
    let (mut low, mut high) = (found, until_ms);
    // Invariant: `found` is an instant; none is known beyond `high`.
    while low < high {
        let middle = low + (high - low) / 2;
        match due_in(middle, high) {
            Some(due) => {
                found = due;
                low = due;
            }
            None => high = middle,
        }
    }
    Some(found)
}
