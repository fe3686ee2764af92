//! What a model does in a zone, by walking the time line step by step. It knows nothing of transitions: it sees the
//! wall clock jump.

use super::Model;
use campanile_core::cron::OccurrenceKind;
use campanile_schema::job::{Gap, Overlap};
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use std::collections::BTreeMap;

/// How much is walked before and after the span, so that both ends of every jump are seen. Seconds.
const MARGIN: i64 = 2 * 86_400;

pub struct Walk<'a> {
    pub zone: &'a TimeZone,
    pub gap: Gap,
    pub overlap: Overlap,
    /// Seconds; the clock's changes must fall on it.
    pub step: i64,
}

impl Walk<'_> {
    /// Every occurrence in `from..=to`, UTC seconds, multiples of the step.
    pub fn occurrences(&self, model: &Model, from: i64, to: i64) -> Vec<(i64, OccurrenceKind)> {
        let mut found = BTreeMap::new();
        let mut matched: BTreeMap<DateTime, Vec<i64>> = BTreeMap::new();
        let mut jumps = Vec::new();
        let mut before: Option<DateTime> = None;
        let mut at = from - MARGIN;
        while at <= to + MARGIN {
            let wall = self.zone.to_datetime(Timestamp::from_second(at).unwrap());
            if model.matches(wall) {
                matched.entry(wall).or_default().push(at);
            }
            if let Some(before) = before
                && wall.duration_since(before) > SignedDuration::from_secs(self.step)
            {
                jumps.push((at, before, wall));
            }
            before = Some(wall);
            at += self.step;
        }
        for instants in matched.into_values() {
            let chosen = match self.overlap {
                _ if model.elapsed() => None,
                Overlap::First => instants.first().copied(),
                Overlap::Second => instants.last().copied(),
                Overlap::Both => None,
            };
            for at in instants {
                let fires = chosen.is_none_or(|chosen| chosen == at);
                found.insert(at, if fires { OccurrenceKind::Fire } else { OccurrenceKind::DstSkipped });
            }
        }
        for (at, before, after) in jumps.into_iter().filter(|_| !model.elapsed()) {
            let step = SignedDuration::from_secs(self.step);
            let mut missing = before.checked_add(step).unwrap();
            let mut any = false;
            while missing < after {
                any |= model.matches(missing);
                missing = missing.checked_add(step).unwrap();
            }
            match self.gap {
                Gap::Shift if any => {
                    found.insert(at, OccurrenceKind::Fire);
                }
                Gap::Skip if any => {
                    found.entry(at).or_insert(OccurrenceKind::DstSkipped);
                }
                Gap::Shift | Gap::Skip => {}
            }
        }
        found.into_iter().filter(|(at, _)| (from..=to).contains(at)).collect()
    }
}
