//! Instants of a trigger that do not count: those that daylight saving, windows and blackouts take away. The ledger tells them as stretches,
//! each with one cause and with nothing between its instants that counts.

use super::{DstStretch, Gate, Schedule, last_of};
use crate::windows::rules::{Rule, kept};
use campanile_schema::event::{LedgerEntry, Outcome, SkipReason};

/// What took instants away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedBy {
    DaylightSaving,
    /// WINDOW, BLACKOUT, CALENDAR or NO_CALENDAR.
    Reason(SkipReason),
}

/// Neighbouring instants that were taken away by one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedStretch {
    pub first_ms: i64,
    pub last_ms: i64,
    pub count: u64,
    pub by: RemovedBy,
}

impl From<RemovedStretch> for LedgerEntry {
    fn from(removed: RemovedStretch) -> Self {
        let RemovedStretch { first_ms, last_ms, count, by } = removed;
        let (outcome, reason) = match by {
            RemovedBy::DaylightSaving => (Outcome::DstSkipped, None),
            RemovedBy::Reason(reason) => (Outcome::Skipped, Some(reason)),
        };
        Self { first_ms, last_ms, count, outcome, reason, run: None }
    }
}

impl From<DstStretch> for RemovedStretch {
    fn from(gone: DstStretch) -> Self {
        let DstStretch { first_ms, last_ms, count } = gone;
        Self { first_ms, last_ms, count, by: RemovedBy::DaylightSaving }
    }
}

impl Schedule {
    /// Instants in `(after, until]` that are taken away, in order.
    pub fn removed(&self, after_ms: i64, until_ms: i64) -> Vec<RemovedStretch> {
        let gone = self.dst_stretches(after_ms, until_ms).into_iter().map(RemovedStretch::from);
        match &self.gate {
            // A fixed delay waits for the opening: nothing is taken away.
            Some(gate) if !self.is_fixed_delay() && kept(Rule::RemovedIsTold) => {
                self.with_closed(gate, after_ms, until_ms, gone.collect())
            }
            Some(_) | None => gone.collect(),
        }
    }

    /// `gone`: what daylight saving takes away. These are no fires of the trigger, so the windows do not see them.
    fn with_closed(
        &self,
        gate: &Gate,
        mut after_ms: i64,
        until_ms: i64,
        gone: Vec<RemovedStretch>,
    ) -> Vec<RemovedStretch> {
        let mut found: Vec<RemovedStretch> = Vec::new();
        let mut gone = gone.into_iter().peekable();
        // The last stretch goes on with the next one that has its cause.
        let mut goes_on = false;
        while let Some(due) = self.trigger_next(after_ms, None).filter(|due| *due <= until_ms) {
            while let Some(before) = gone.next_if(|gone| gone.first_ms < due) {
                found.push(before);
                goes_on = false;
            }
            let span = gate.span(due);
            let same_until = until_ms.min(span.until_ms - 1);
            after_ms = gone.peek().map_or(same_until, |gone| same_until.min(gone.first_ms));
            let Some(reason) = span.closed else {
                goes_on = false;
                continue;
            };
            let stretch = self.closed(due, after_ms, RemovedBy::Reason(reason));
            match found.last_mut().filter(|last| goes_on && last.by == stretch.by) {
                Some(last) => (last.last_ms, last.count) = (stretch.last_ms, last.count + stretch.count),
                None => found.push(stretch),
            }
            goes_on = true;
        }
        found.extend(gone);
        found
    }

    /// All instants of the trigger from `due`, which is one, up to `until`.
    fn closed(&self, due: i64, until_ms: i64, by: RemovedBy) -> RemovedStretch {
        let count = self.trigger_count(due - 1, until_ms, None);
        let due_in = |after: i64, until: i64| self.trigger_next(after, None).filter(|due| *due <= until);
        let last_ms = last_of(due - 1, until_ms, due_in).unwrap_or(due);
        RemovedStretch { first_ms: due, last_ms, count, by }
    }
}
