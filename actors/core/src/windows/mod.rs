//! Which moments the windows and blackouts of a job leave open.
//!
//! The question is asked of a moment, and the answer holds for a stretch of time behind it, so that a search passes over a night in one step
//! instead of looking at each instant in it. Nothing here knows the trigger; [`crate::schedule`] puts the two together.

pub mod rules;

use crate::cron::{ZoneError, find_zone};
use campanile_schema::{event::SkipReason, stored::StoredWindows};
use jiff::{Timestamp, tz::TimeZone};
use rules::{Rule, kept};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
const WEEK_MS: i64 = 7 * DAY_MS;
/// The first Monday lies so long after 1970-01-01, a Thursday.
const FIRST_MONDAY_MS: i64 = 4 * DAY_MS;

/// Windows and blackouts with their zones looked up.
#[derive(Debug)]
pub struct Windows {
    windows: Vec<CompiledWindow>,
    /// From and to, ms; the end is outside.
    blackouts: Vec<(i64, i64)>,
    allows: bool,
}

#[derive(Debug)]
struct CompiledWindow {
    deny: bool,
    /// Since Monday 00:00 by the clock of the zone.
    begins_ms: Vec<i64>,
    length_ms: i64,
    zone: TimeZone,
}

/// What holds from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Why instants are removed; None: they count.
    pub closed: Option<SkipReason>,
    /// The first moment that must be asked for anew; the answer may be the same.
    pub until_ms: i64,
}

impl Windows {
    pub fn compile(stored: &StoredWindows) -> Result<Self, ZoneError> {
        let compiled = stored.windows.iter().map(|window| {
            let days = (0..7).filter(|day| window.days >> day & 1 == 1);
            let (from, to) = (i64::from(window.from), i64::from(window.to));
            let minutes = if to > from || !kept(Rule::OverMidnight) { (to - from).max(0) } else { to - from + 1_440 };
            Ok(CompiledWindow {
                deny: window.deny,
                begins_ms: days.map(|day| day * DAY_MS + from * MINUTE_MS).collect(),
                length_ms: minutes * MINUTE_MS + i64::from(!kept(Rule::EndIsOutside)),
                zone: find_zone(&window.zone)?,
            })
        });
        let windows: Vec<_> = compiled.collect::<Result<_, ZoneError>>()?;
        let allows = windows.iter().any(|window| !window.deny);
        Ok(Self { windows, blackouts: stored.blackouts.iter().map(|b| (b.from_ms, b.to_ms)).collect(), allows })
    }

    /// Whether a moment is open, and up to when that is sure.
    pub fn span(&self, at_ms: i64) -> Span {
        let mut until_ms = i64::MAX;
        for (from_ms, to_ms) in self.blackouts.iter().copied().filter(|(_, to_ms)| *to_ms > at_ms) {
            if from_ms > at_ms {
                until_ms = until_ms.min(from_ms);
            } else if kept(Rule::BlackoutGoesFirst) {
                return Span { closed: Some(SkipReason::Blackout), until_ms: to_ms };
            }
        }
        let (mut allowed, mut denied) = (false, false);
        for window in &self.windows {
            let (inside, until) = window.holds(at_ms);
            until_ms = until_ms.min(until);
            allowed |= inside && !window.deny;
            denied |= inside && window.deny;
        }
        let outside = self.allows && !allowed && kept(Rule::AllowCloses);
        let denied = denied && kept(Rule::DenyGoesFirst);
        Span { closed: (outside || denied).then_some(SkipReason::Window), until_ms }
    }
}

impl CompiledWindow {
    /// Whether a moment is in it, and up to when that is sure.
    fn holds(&self, at_ms: i64) -> (bool, i64) {
        // Beyond the years that a zone knows nothing is due.
        let Ok(at) = Timestamp::from_millisecond(at_ms) else { return (false, i64::MAX) };
        let offset_ms = if kept(Rule::ClockOfZone) { i64::from(self.zone.to_offset(at).seconds()) * 1_000 } else { 0 };
        let local_ms = at_ms + offset_ms - FIRST_MONDAY_MS;
        let (mut inside, mut next_ms) = (false, WEEK_MS);
        for begin_ms in &self.begins_ms {
            let since_ms = (local_ms - begin_ms).rem_euclid(WEEK_MS);
            let is_in = since_ms < self.length_ms;
            inside |= is_in;
            next_ms = next_ms.min(if is_in { self.length_ms - since_ms } else { WEEK_MS - since_ms });
        }
        let change = self.zone.following(at).next().filter(|_| kept(Rule::ChangeOfClock));
        let change_ms = change.map_or(i64::MAX, |change| change.timestamp().as_millisecond());
        (inside, change_ms.min(at_ms + next_ms))
    }
}
