//! When a run misses its deadline, and what that starts.
//!
//! **Problem.** Somebody has to hear that the report of the night is late: while it runs too long, while it waits, and also when it
//! never began, because an instant was skipped or missed. Nobody wants to hear it twice, or for what was paused on purpose.
//!
//! **What has a deadline.** An open run ([`RunDeadline`]): `by` and `of: DUE` are known when the run is made, `of: START` when its first
//! attempt starts. An instant that made no run ([`OwedDeadline`]): a job keeps the oldest one only, so a stretch of them costs no more
//! than one, and starts its hooks once. What is not an instant of a schedule has no due time: there, only `of: START` counts.
//!
//! **What happens.** The job is woken when the deadline passes, and decides `DeadlineChange::Missed` once. The run goes on. Hooks of
//! `onDeadline` are sent in the same frame, as messages that hold all they tell: the run has not ended, and there may be none.
//!
//! **What this never does:** end or stop a run (`timeoutSec` does), or look at instants that are not decided yet.

pub mod rules;

use crate::cron::find_zone;
use campanile_schema::{
    event::{LedgerEntry, Outcome, SkipReason},
    hooks::HookKind,
    limits::SECONDS_MAX,
    record::RunRecord,
    stored::{
        StoredJob,
        deadline::{OwedDeadline, RunDeadline, StoredDeadline},
    },
};
use jiff::{Timestamp, civil, tz::TimeZone};
pub use rules::Rule;
use rules::kept;

use crate::hooks::{DueHook, divided};

/// The deadline of a run that stands for an instant. None: it counts from the start of the run, or its zone is gone.
pub fn of_instant(deadline: &StoredDeadline, instant_ms: i64) -> Option<i64> {
    match deadline {
        StoredDeadline::Due { within_sec } => Some(after(instant_ms, *within_sec)),
        StoredDeadline::By { second, zone } => next_time_of_day(*second, zone, instant_ms),
        StoredDeadline::Start { .. } => None,
    }
}

/// What is wrong with a deadline, behind the name of its field (`.withinSec: ...`).
pub fn check(deadline: &StoredDeadline) -> Result<(), String> {
    match deadline {
        StoredDeadline::By { zone, .. } => find_zone(zone).map(drop).map_err(|why| format!(".timezone: {why}")),
        StoredDeadline::Due { within_sec } | StoredDeadline::Start { within_sec } => {
            if (1..=SECONDS_MAX).contains(within_sec) {
                return Ok(());
            }
            Err(format!(".withinSec: it must be 1 to {SECONDS_MAX}"))
        }
    }
}

/// So many seconds after a time, ms.
pub fn after(at_ms: i64, seconds: u64) -> i64 {
    at_ms.saturating_add(seconds.min(SECONDS_MAX) as i64 * 1000)
}

/// The first such time of day after an instant. One that daylight saving leaves out comes as much later; of two it is the first.
fn next_time_of_day(second: u32, zone: &str, after_ms: i64) -> Option<i64> {
    let zone = if kept(Rule::ByIsLocal) { find_zone(zone).ok()? } else { TimeZone::UTC };
    let part = |value: u32| i8::try_from(value).ok();
    let time = civil::Time::new(part(second / 3_600)?, part(second / 60 % 60)?, part(second % 60)?, 0).ok()?;
    let mut date = Timestamp::from_millisecond(after_ms).ok()?.to_zoned(zone.clone()).date();
    // A zone may leave a whole day out.
    for _ in 0..3 {
        let at_ms = date.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp().as_millisecond();
        if at_ms > after_ms {
            return Some(at_ms);
        }
        date = date.tomorrow().ok()?;
    }
    None
}

/// The deadline of the oldest of these instants that made no run though one was to be made.
pub fn of_unstarted(deadline: &StoredDeadline, entries: &[LedgerEntry]) -> Option<OwedDeadline> {
    if !kept(Rule::UnstartedIsOwed) {
        return None;
    }
    entries.iter().find_map(|entry| {
        let reason = entry.reason.filter(|reason| is_failure(entry.outcome, *reason))?;
        let until_ms = of_instant(deadline, entry.first_ms)?;
        Some(OwedDeadline { instant_ms: entry.first_ms, until_ms, reason })
    })
}

/// Whether nobody wanted these instants to make no run.
fn is_failure(outcome: Outcome, reason: SkipReason) -> bool {
    match outcome {
        Outcome::Missed => true,
        Outcome::Skipped => match reason {
            SkipReason::RunActive | SkipReason::QueueFull | SkipReason::Misfire | SkipReason::CatchUpCap => true,
            SkipReason::Paused
            | SkipReason::TenantPaused
            | SkipReason::SystemPaused
            // The run that waits already is for this one as well.
            | SkipReason::OneQueued
            | SkipReason::Quarantined
            | SkipReason::Window
            | SkipReason::Deleted
            | SkipReason::Edited
            | SkipReason::Restored => !kept(Rule::OnlyWhatFailed),
        },
        Outcome::Fired | Outcome::FiredLate | Outcome::Coalesced | Outcome::DstSkipped => false,
    }
}

/// The deadline that a run has from its start on. `own`: what its node says.
pub fn from_start(def: &StoredJob, own: Option<RunDeadline>, at_ms: i64) -> Option<RunDeadline> {
    let seconds = match (own, def.deadline()) {
        (Some(RunDeadline::FromStart(seconds)), _) => seconds,
        (None, Some(StoredDeadline::Start { within_sec })) => *within_sec,
        (Some(RunDeadline::Until(_)), _) | (None, Some(_) | None) => return None,
    };
    Some(RunDeadline::Until(after(at_ms, seconds)))
}

/// The hooks of a deadline that was missed. `record`: of the run; None: there is none.
pub fn hooks<'a>(def: &'a StoredJob, record: Option<&RunRecord>) -> Vec<DueHook<'a>> {
    let numbered = (0..).zip(def.hooks_of(HookKind::Deadline));
    let due = numbered.map(|(place, hook)| (hook, HookKind::Deadline.number(place))).collect();
    divided(crate::hooks::budget_of_deadline(def, record), due)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn by(time: u32, zone: &str, after: &str) -> String {
        let deadline = StoredDeadline::By { second: time, zone: zone.into() };
        Timestamp::from_millisecond(of_instant(&deadline, ms(after)).unwrap()).unwrap().to_string()
    }

    #[test]
    fn a_time_of_day_is_the_first_one_after_the_instant_in_its_zone() {
        let four = 4 * 3_600;
        assert_eq!(by(four, "Europe/Berlin", "2026-06-15T00:00:00Z"), "2026-06-15T02:00:00Z");
        assert_eq!(by(four, "Europe/Berlin", "2026-06-15T02:00:00Z"), "2026-06-16T02:00:00Z", "and never at once");
        assert_eq!(by(four, "America/New_York", "2026-06-15T02:00:00Z"), "2026-06-15T08:00:00Z");
        assert_eq!(by(four + 90, "UTC", "2026-06-15T05:00:00Z"), "2026-06-16T04:01:30Z");
    }

    #[test]
    fn daylight_saving_moves_it_and_takes_none_away() {
        let half_past_two = 2 * 3_600 + 1_800;
        assert_eq!(by(half_past_two, "Europe/Berlin", "2026-03-28T20:00:00Z"), "2026-03-29T01:30:00Z", "03:30 there");
        assert_eq!(by(half_past_two, "Europe/Berlin", "2026-10-24T20:00:00Z"), "2026-10-25T00:30:00Z", "the first");
        assert_eq!(by(half_past_two, "Europe/Berlin", "2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
        // Apia leaves 30 December 2011 out.
        assert_eq!(by(4 * 3_600, "Pacific/Apia", "2011-12-30T09:00:00Z"), "2011-12-30T14:00:00Z");
    }

    #[test]
    fn a_zone_that_is_gone_has_no_deadline() {
        let gone = StoredDeadline::By { second: 0, zone: "Nowhere/Town".into() };
        assert_eq!(of_instant(&gone, 0), None);
    }
}
