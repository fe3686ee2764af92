//! The due instants of a definition, found one after the other, and what a fixed delay counts from: worked out from events,
//! apart from the job.

use super::civil::closed;
use campanile_core::{
    cron::{CronExpr, CronSchedule, OccurrenceKind},
    schedule::Schedule,
};
use campanile_schema::{
    event::SkipReason,
    ids::name_hash,
    stored::{StoredJob, StoredTrigger, StoredWindows},
};

/// One due instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    pub at_ms: i64,
    /// Daylight saving takes it away.
    pub gone: bool,
    /// A window or a blackout does.
    pub closed: Option<SkipReason>,
}

/// A definition's instants.
pub struct Due {
    schedule: Schedule,
    /// Of the trigger alone.
    trigger: Schedule,
    windows: StoredWindows,
    cron: Option<CronSchedule>,
    fixed_delay: Option<i64>,
    start_ms: i64,
    end_ms: i64,
}

impl Due {
    pub fn of(def: &StoredJob) -> Self {
        let (mut cron, mut fixed_delay) = (None, None);
        match &def.trigger {
            StoredTrigger::Cron { expr, dialect, zone, gap, overlap } => {
                let (expr, _) = CronExpr::parse(expr, *dialect, name_hash(&def.tenant, &def.name)).unwrap();
                cron = Some(CronSchedule::new(expr, zone, *gap, *overlap).unwrap());
            }
            StoredTrigger::FixedDelay { every_ms } => fixed_delay = Some(*every_ms),
            StoredTrigger::FixedRate { .. } | StoredTrigger::Once { .. } | StoredTrigger::Manual {} => {}
        }
        Self {
            schedule: Schedule::compile(def).unwrap(),
            trigger: Schedule::compile(&StoredJob { windows: None, ..def.clone() }).unwrap(),
            windows: def.windows.as_deref().cloned().unwrap_or_default(),
            cron,
            fixed_delay,
            start_ms: def.start_ms.unwrap_or(i64::MIN),
            end_ms: def.end_ms.unwrap_or(i64::MAX),
        }
    }

    pub fn is_fixed_delay(&self) -> bool {
        self.fixed_delay.is_some()
    }

    /// Every instant in `(from, to]`. `base`: what a fixed delay counts from, none while a run is active.
    pub fn between(&self, from_ms: i64, to_ms: i64, base: Option<i64>) -> Vec<Instant> {
        let mut instants = Vec::new();
        let mut after = from_ms;
        while let Some(next) = self.next(after, to_ms, base) {
            instants.push(next);
            after = next.at_ms;
        }
        instants
    }

    /// The first instant after `after` and up to `until`.
    pub fn next(&self, after_ms: i64, until_ms: i64, base: Option<i64>) -> Option<Instant> {
        let fires = |at_ms: i64| Instant { at_ms, gone: false, closed: closed(&self.windows, at_ms) };
        if let Some(every_ms) = self.fixed_delay {
            // It waits for the opening; when that is, `windows` checks.
            let at_ms = (base? + every_ms).max(self.start_ms);
            let waits = closed(&self.windows, at_ms).is_some();
            let at_ms = if waits { self.schedule.next(at_ms, base)? } else { at_ms };
            return (at_ms > after_ms && at_ms <= until_ms.min(self.end_ms)).then(|| fires(at_ms));
        }
        let Some(cron) = &self.cron else {
            return self.trigger.next(after_ms, None).filter(|at| *at <= until_ms).map(fires);
        };
        let after = after_ms.max(self.start_ms.saturating_sub(1));
        let next = cron.next_occurrence(after, until_ms.min(self.end_ms))?;
        let gone = next.kind == OccurrenceKind::DstSkipped;
        Some(Instant { gone, closed: fires(next.at_ms).closed.filter(|_| !gone), ..fires(next.at_ms) })
    }

    /// The first instant after `after` that counts.
    pub fn next_fire(&self, after_ms: i64, base: Option<i64>) -> Option<i64> {
        self.schedule.next(after_ms, base)
    }

    /// Instants in `(from, to]` that count.
    pub fn fires(&self, from_ms: i64, to_ms: i64, base: Option<i64>) -> u64 {
        self.between(from_ms, to_ms, base).iter().filter(|i| !i.gone && i.closed.is_none()).count() as u64
    }
}
