//! What removes instants of a trigger: blackouts, the days of a calendar, and windows, in this order of the reason that is told.

use crate::{
    calendar::{book::CalendarBook, gate::DayGate},
    cron::ZoneError,
    windows::{Span, Windows},
};
use campanile_schema::{
    event::SkipReason,
    limits::CLOSED_STRETCHES,
    stored::{StoredJob, StoredJobCalendar},
};
use std::sync::Arc;

/// Windows, blackouts and the calendar of a job. It has at least one of them.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// Shared as a cron schedule is.
    windows: Option<Arc<Windows>>,
    days: Option<DayGate>,
}

impl Gate {
    /// None: the job has nothing of it.
    pub fn compile(def: &StoredJob) -> Result<Option<Self>, ZoneError> {
        let windows = def.windows.as_deref().map(Windows::compile).transpose()?.map(Arc::new);
        let days = def.calendar.as_deref().map(DayGate::compile).transpose()?;
        Ok((windows.is_some() || days.is_some()).then_some(Self { windows, days }))
    }

    pub fn find_calendar(&mut self, tenant: &str, calendar: &StoredJobCalendar, book: &CalendarBook) {
        if let Some(days) = &mut self.days {
            days.find(tenant, calendar, book);
        }
    }

    /// Whether a moment is open, and up to when that is sure.
    pub fn span(&self, at_ms: i64) -> Span {
        let by_windows = self.windows.as_ref().map(|windows| windows.span(at_ms));
        let by_days = self.days.as_ref().map(|days| days.span(at_ms));
        match (by_windows, by_days) {
            (None, None) => Span { closed: None, until_ms: i64::MAX },
            (Some(span), None) | (None, Some(span)) => span,
            // What it takes away needs no calendar.
            (Some(blackout), Some(_)) if blackout.closed == Some(SkipReason::Blackout) => blackout,
            (Some(windows), Some(days)) => {
                Span { closed: days.closed.or(windows.closed), until_ms: days.until_ms.min(windows.until_ms) }
            }
        }
    }

    /// The first open moment at or after this one. None: as far as anybody looks or knows there is none.
    pub fn opening(&self, mut at_ms: i64) -> Option<i64> {
        for _ in 0..CLOSED_STRETCHES {
            let span = self.span(at_ms);
            if span.closed.is_none() {
                return Some(at_ms);
            }
            if span.closed == Some(SkipReason::NoCalendar) {
                return None;
            }
            at_ms = span.until_ms;
        }
        None
    }

    /// The first closed moment after an open one, and before `until_ms`; else that.
    pub fn closing(&self, mut at_ms: i64, until_ms: i64) -> i64 {
        while at_ms < until_ms {
            let span = self.span(at_ms);
            if span.closed.is_some() {
                return at_ms;
            }
            at_ms = span.until_ms;
        }
        until_ms
    }
}
