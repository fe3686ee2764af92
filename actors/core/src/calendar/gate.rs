//! Which moments a calendar leaves open: a day begins and ends by the clock of a zone.

use super::{
    book::{CalendarBook, Versions},
    number_of,
};
use crate::{
    cron::{ZoneError, find_zone},
    windows::Span,
};
use campanile_schema::{event::SkipReason, stored::StoredJobCalendar};
use jiff::{Timestamp, tz::TimeZone};
use std::sync::Arc;

/// What a job says of a calendar, with the versions of the calendar once they are found.
#[derive(Clone, Debug)]
pub struct DayGate {
    zone: TimeZone,
    not_on: bool,
    /// None: the calendar is not known here, and every instant is held.
    versions: Option<Arc<Versions>>,
}

impl DayGate {
    pub fn compile(stored: &StoredJobCalendar) -> Result<Self, ZoneError> {
        Ok(Self { zone: find_zone(&stored.zone)?, not_on: stored.not_on, versions: None })
    }

    pub fn find(&mut self, tenant: &str, stored: &StoredJobCalendar, book: &CalendarBook) {
        self.versions = book.get(tenant, &stored.name).cloned();
    }

    /// Whether a moment is open, and up to when that is sure: at most up to the end of its day. From a moment that nobody knows anything of on,
    /// nobody knows anything of later ones.
    pub fn span(&self, at_ms: i64) -> Span {
        let unknown = Span { closed: Some(SkipReason::NoCalendar), until_ms: i64::MAX };
        let (Some(versions), Ok(at)) = (&self.versions, Timestamp::from_millisecond(at_ms)) else { return unknown };
        let date = at.to_zoned(self.zone.clone()).date();
        let Some(has) = versions.answer(at_ms, number_of(date)) else { return unknown };
        let next_day = date.tomorrow().and_then(|next| next.to_zoned(self.zone.clone()));
        let end_ms = next_day.map_or(i64::MAX, |next| next.timestamp().as_millisecond());
        let change_ms = versions.next_change(at_ms).unwrap_or(i64::MAX);
        Span { closed: (has == self.not_on).then_some(SkipReason::Calendar), until_ms: end_ms.min(change_ms) }
    }
}
