//! A schedule on the time line: an expression in a zone, with what daylight saving does to it.
//!
//! A zone is a row of *stretches* of constant offset from UTC. Inside a stretch wall-clock and UTC seconds go in step,
//! so the work is in `local`. Where two stretches meet, wall-clock time jumps ahead (a gap) or back (an overlap), and a
//! fixed-time schedule follows its policy there. Nearly every question is far from such a place, and is answered by
//! one look at the offset and one at the next change (the fast way in `seek`).
//!
//! Never: reads a clock, caches behind a lock, or counts sub-second time (instants are whole seconds).

use super::calendar::DAY_SECONDS;
use super::error::ZoneError;
use super::expr::CronExpr;
use super::stretch::{OFFSET_BOUND, Stretch, Stretches};
use super::zone;
use campanile_schema::job::{Gap, Overlap};
use campanile_schema::limits::CRON_SEARCH_WINDOWS;
use jiff::tz::TimeZone;

/// First second at which anything fires: 1970-01-01T00:00:00Z.
const EARLIEST: i64 = 0;
/// Last second at which anything fires: the end of the year 9998, UTC.
const LATEST: i64 = 253_370_764_799;

/// An expression in a zone with its daylight saving policy.
#[derive(Clone, Debug)]
pub struct CronSchedule {
    pub expr: CronExpr,
    pub zone: TimeZone,
    pub gap: Gap,
    pub overlap: Overlap,
}

/// What becomes of a due instant, as far as the calendar goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccurrenceKind {
    Fire,
    /// It falls away by the daylight saving policy (DST_SKIPPED in the ledger).
    DstSkipped,
}

/// One due instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// UTC, milliseconds since 1970.
    pub at_ms: i64,
    pub kind: OccurrenceKind,
}

/// Which occurrences a search stops at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchFor {
    Fires,
    All,
}

/// UTC seconds of a stretch that are looked at, both ends included, and the part of them in which fixed times fire.
struct Fixed {
    fires_from: i64,
    fires_until: i64,
}

impl CronSchedule {
    /// `zone_name` is an IANA name in any case.
    pub fn new(expr: CronExpr, zone_name: &str, gap: Gap, overlap: Overlap) -> Result<CronSchedule, ZoneError> {
        Ok(CronSchedule { expr, zone: zone::find(zone_name)?, gap, overlap })
    }

    /// The first occurrence after `after_ms` and not after `until_ms`, those that fall away included.
    ///
    /// Instants rise strictly; where a skipped gap ends on a regular fire there is one occurrence, the fire.
    pub fn next_occurrence(&self, after_ms: i64, until_ms: i64) -> Option<Occurrence> {
        self.seek(second_after(after_ms), until_ms.div_euclid(1_000), SearchFor::All)
    }

    /// The first fire after `after_ms`; `None` = it never fires again.
    pub fn next_fire(&self, after_ms: i64) -> Option<i64> {
        self.seek(second_after(after_ms), LATEST, SearchFor::Fires).map(|occurrence| occurrence.at_ms)
    }

    /// Fires after `after_ms` and not after `until_ms`, exactly. Costs per change of the zone's offset and per month,
    /// not per fire.
    pub fn count_fires(&self, after_ms: i64, until_ms: i64) -> u64 {
        let from = second_after(after_ms).max(EARLIEST);
        let until = until_ms.div_euclid(1_000).min(LATEST);
        if from > until {
            return 0;
        }
        let mut count = 0;
        for stretch in Stretches::from(&self.zone, from).take_while(|stretch| stretch.start <= until) {
            if stretch.start >= from
                && let Some(occurrence) = self.at_gap(&stretch)
            {
                // The regular fire at the gap's end is counted with the stretch.
                let regular = self.expr.any_local(stretch.local(stretch.start), stretch.local(stretch.start) + 1);
                count += u64::from(occurrence.kind == OccurrenceKind::Fire && !regular);
            }
            let fixed = self.fixed_part(&stretch);
            let first = from.max(fixed.fires_from);
            let end = (until + 1).min(fixed.fires_until);
            if first < end {
                count += self.expr.count_local(stretch.local(first), stretch.local(end));
            }
        }
        count
    }

    /// The first wanted occurrence in `from..=until`, UTC seconds.
    fn seek(&self, from: i64, until: i64, wanted: SearchFor) -> Option<Occurrence> {
        let from = from.max(EARLIEST);
        let until = until.min(LATEST);
        if from > until {
            return None;
        }
        let mut stretches = Stretches::from(&self.zone, from);
        let here = stretches.next()?;
        let near = self.expr.next_local(here.local(from)).map(|local| local - here.offset);
        if let Some(at) = near
            && at < here.end - OFFSET_BOUND
        {
            // No change in sight, neither behind (the first stretch holds `from`) nor ahead: policies cannot matter.
            let kind = OccurrenceKind::Fire;
            return (at <= until).then_some(Occurrence { at_ms: at * 1_000, kind });
        }
        self.seek_near_changes(from, until, wanted)
    }

    /// The careful way: windows around one candidate after another, until one holds an occurrence that is wanted.
    fn seek_near_changes(&self, mut from: i64, until: i64, wanted: SearchFor) -> Option<Occurrence> {
        for _ in 0..CRON_SEARCH_WINDOWS {
            // Every local second from here on is at least `from - OFFSET_BOUND`.
            let candidate = self.expr.next_local(from - OFFSET_BOUND)?;
            from = from.max(candidate - OFFSET_BOUND);
            let window_end = candidate + OFFSET_BOUND + DAY_SECONDS;
            for stretch in Stretches::from(&self.zone, from) {
                if stretch.start > window_end.min(until) {
                    break;
                }
                let found = self.first_in(&stretch, from, wanted);
                if let Some(occurrence) = found {
                    return (occurrence.at_ms <= until * 1_000).then_some(occurrence);
                }
            }
            from = window_end + 1;
            if from > until {
                return None;
            }
        }
        None
    }

    /// The first wanted occurrence of a stretch at or after `from`.
    fn first_in(&self, stretch: &Stretch, from: i64, wanted: SearchFor) -> Option<Occurrence> {
        if stretch.start >= from
            && let Some(occurrence) = self.at_gap(stretch)
            && (wanted == SearchFor::All || occurrence.kind == OccurrenceKind::Fire)
        {
            return Some(occurrence);
        }
        let fixed = self.fixed_part(stretch);
        let (first, end) = match wanted {
            SearchFor::Fires => (from.max(fixed.fires_from), fixed.fires_until),
            SearchFor::All => (from.max(stretch.start), stretch.end),
        };
        if first >= end {
            return None;
        }
        let at = self.expr.next_local(stretch.local(first))? - stretch.offset;
        let fires = (fixed.fires_from..fixed.fires_until).contains(&at);
        let kind = if fires { OccurrenceKind::Fire } else { OccurrenceKind::DstSkipped };
        (at < end).then_some(Occurrence { at_ms: at * 1_000, kind })
    }

    /// What happens at the start of a stretch when fixed times were jumped over there.
    fn at_gap(&self, stretch: &Stretch) -> Option<Occurrence> {
        let (missing_from, missing_to) = stretch.gap_before()?;
        if self.expr.follows_elapsed_time() || !self.expr.any_local(missing_from, missing_to) {
            return None;
        }
        let regular = self.expr.any_local(missing_to, missing_to + 1);
        let kind = match self.gap {
            Gap::Shift => OccurrenceKind::Fire,
            Gap::Skip if regular => OccurrenceKind::Fire,
            Gap::Skip => OccurrenceKind::DstSkipped,
        };
        Some(Occurrence { at_ms: stretch.start * 1_000, kind })
    }

    /// The part of a stretch (end excluded) in which matching seconds fire: all of it, less the hour of an overlap
    /// that the policy gives to the neighbour.
    fn fixed_part(&self, stretch: &Stretch) -> Fixed {
        let mut part = Fixed { fires_from: stretch.start, fires_until: stretch.end };
        if !self.expr.follows_elapsed_time() {
            match self.overlap {
                Overlap::First => part.fires_from += stretch.repeated_at_start(),
                Overlap::Second => part.fires_until -= stretch.repeated_at_end(),
                Overlap::Both => {}
            }
        }
        part
    }
}

/// The first whole second after an instant.
fn second_after(ms: i64) -> i64 {
    ms.div_euclid(1_000) + 1
}
