//! Stretches of constant offset of a zone, in order of time, read from the zone's transitions.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneFollowingTransitions};

/// No offset from UTC and no change of one is this large, seconds. (Jiff allows offsets up to 25:59:59; the largest
/// changes on record, across the date line, are 24 hours.)
pub(super) const OFFSET_BOUND: i64 = 26 * 3_600;

/// A stretch of UTC time, `start..end` seconds, in which wall-clock time is UTC plus `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// A bound far enough in the past when the true start does not matter.
    pub start: i64,
    /// Far in the future when it has no end.
    pub end: i64,
    pub offset: i64,
    /// The neighbours' offsets.
    pub offset_before: i64,
    pub offset_after: i64,
}

impl Stretch {
    /// Wall-clock second of a UTC second.
    pub fn local(&self, utc: i64) -> i64 {
        utc + self.offset
    }

    /// Local seconds that are jumped over where this stretch starts: `from..to`.
    pub fn gap_before(&self) -> Option<(i64, i64)> {
        (self.offset > self.offset_before).then_some((self.start + self.offset_before, self.start + self.offset))
    }

    /// Seconds at the start whose wall-clock times the stretch before had too.
    pub fn repeated_at_start(&self) -> i64 {
        (self.offset_before - self.offset).max(0)
    }

    /// Seconds at the end whose wall-clock times the next stretch has again.
    pub fn repeated_at_end(&self) -> i64 {
        (self.offset - self.offset_after).max(0)
    }
}

/// Later than every instant and earlier than the overflow of sums of it.
const FAR: i64 = i64::MAX / 4;

/// The stretches of a zone, the first being the one that holds the instant `OFFSET_BOUND` before the one asked for:
/// so an overlap or a gap that still reaches past that instant is among them.
pub(super) struct Stretches<'z> {
    transitions: TimeZoneFollowingTransitions<'z>,
    start: i64,
    offset_before: i64,
    offset: i64,
    ended: bool,
}

impl<'z> Stretches<'z> {
    /// `from`: UTC seconds, within the years that jiff knows.
    pub fn from(zone: &'z TimeZone, from: i64) -> Stretches<'z> {
        let before = Timestamp::from_second(from - OFFSET_BOUND).unwrap_or(Timestamp::MAX);
        let offset = i64::from(zone.to_offset(before).seconds());
        Stretches { transitions: zone.following(before), start: -FAR, offset_before: offset, offset, ended: false }
    }
}

impl Iterator for Stretches<'_> {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        if self.ended {
            return None;
        }
        let (start, offset_before, offset) = (self.start, self.offset_before, self.offset);
        // A transition may change only the name or the summer time flag: then both offsets are equal, and nothing
        // happens where the stretches meet.
        let change = self
            .transitions
            .next()
            .map(|transition| (transition.timestamp().as_second(), i64::from(transition.offset().seconds())));
        let (end, offset_after) = change.unwrap_or((FAR, offset));
        self.ended = change.is_none();
        (self.start, self.offset_before, self.offset) = (end, offset, offset_after);
        Some(Stretch { start, end, offset, offset_before, offset_after })
    }
}
