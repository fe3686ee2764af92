//! What the changes of a zone's clock do to a schedule.
//!
//! Every sentence about daylight saving comes from here: the hazards, and the line that sums them up. Both are read
//! from the fires that the schedule has around each change, never from its fields or its policy alone, so no text can
//! say otherwise than what happens. `tests/cron_clock_changes.rs` compares them with a walk along the time line.

use super::calendar::{DAY_SECONDS, date_of, show_local, show_time};
use super::expr::CronExpr;
use super::schedule::CronSchedule;
use super::stretch::{Stretch, Stretches};
use campanile_schema::limits::CRON_HAZARD_DAYS;

const MINUTE_SECONDS: i64 = 60;

/// A change of the clock that removes or repeats times which the schedule names.
pub(super) struct ClockChange {
    /// Local seconds that do not exist, or come twice: `from..to`.
    from: i64,
    to: i64,
    /// The first of these that the schedule names, and how many it names.
    first: i64,
    count: u64,
    /// UTC second of the change.
    at: i64,
    effect: ChangeEffect,
    /// In elapsed time the fires around the change are as far apart as they would be without it.
    keeps_rhythm: bool,
}

/// Seen from the fires of the schedule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeEffect {
    Removed {
        /// It fires at the end of the gap.
        fires: bool,
        /// The schedule names the end of the gap too.
        regular: bool,
    },
    Repeated {
        /// UTC seconds of the two times that the first local second comes, and whether it fires at them.
        early: (i64, bool),
        late: (i64, bool),
    },
}

/// The changes from `from_ms` on, two years ahead, in order. `None` = the clock does not change in that time.
pub(super) fn ahead(schedule: &CronSchedule, from_ms: i64) -> Option<Vec<ClockChange>> {
    let from = from_ms.div_euclid(1_000).max(0);
    let until = from + CRON_HAZARD_DAYS * DAY_SECONDS;
    let mut changes = None;
    for stretch in Stretches::from(&schedule.zone, from).take_while(|stretch| stretch.start <= until) {
        if stretch.start > from && stretch.offset != stretch.offset_before {
            changes.get_or_insert_with(Vec::new).extend(of(schedule, &stretch));
        }
    }
    changes
}

/// One sentence: what kind of schedule it is, and what the changes of two years do to it.
pub fn daylight_saving(schedule: &CronSchedule, from_ms: i64) -> String {
    let kind = if schedule.expr.follows_elapsed_time() {
        "has an open time field (*, */n or a/n)".to_owned()
    } else {
        format!("is a fixed time of day: gap {}, overlap {}", schedule.gap, schedule.overlap)
    };
    format!("{kind}; {}", summary(schedule, from_ms))
}

fn summary(schedule: &CronSchedule, from_ms: i64) -> String {
    let Some(changes) = ahead(schedule, from_ms) else {
        return "in the next two years the clock of its zone does not change".to_owned();
    };
    if changes.is_empty() {
        return "no change of the clock in the next two years removes or repeats one of its times".to_owned();
    }
    let mut clauses = Vec::new();
    let (removing, repeating): (Vec<_>, Vec<_>) =
        changes.iter().partition(|change| matches!(change.effect, ChangeEffect::Removed { .. }));
    // In the same order on both sides of the equator.
    for change in removing.into_iter().chain(repeating).filter(|change| !change.is_unnoticed(schedule)) {
        let clause = match change.effect {
            ChangeEffect::Removed { fires: false, .. } => {
                "a time that the clock skips does not fire and is not made up"
            }
            ChangeEffect::Removed { regular: true, .. } => {
                "a time that the clock skips does not fire, the regular fire after it stays"
            }
            ChangeEffect::Removed { .. } => "a time that the clock skips fires at the first instant after it",
            ChangeEffect::Repeated { early: (_, true), late: (_, true) } => "a time that comes twice fires both times",
            ChangeEffect::Repeated { early: (_, true), .. } => "a time that comes twice fires the first time",
            ChangeEffect::Repeated { late: (_, true), .. } => "a time that comes twice fires the second time",
            ChangeEffect::Repeated { .. } => "a time that comes twice does not fire",
        };
        if !clauses.contains(&clause) {
            clauses.push(clause);
        }
    }
    if clauses.is_empty() {
        return "changes of the clock in the next two years leave its fires as far apart as ever in elapsed time"
            .to_owned();
    }
    clauses.join(", ")
}

impl ClockChange {
    /// Whether nobody notices it: the schedule runs on as if the clock had not changed.
    pub(super) fn is_unnoticed(&self, schedule: &CronSchedule) -> bool {
        schedule.expr.follows_elapsed_time() && self.keeps_rhythm
    }

    /// When the clock changes, ms.
    pub(super) fn at_ms(&self) -> i64 {
        self.at * 1_000
    }

    pub(super) fn hazard(&self, schedule: &CronSchedule, zone: &str) -> String {
        let is_open = schedule.expr.follows_elapsed_time();
        match self.effect {
            ChangeEffect::Removed { fires, regular } => {
                let (left, right) = (clock(self.from, self.first), clock(self.to, self.first));
                let missing = format!(
                    "{} not exist in {zone}: the clock goes from {left} to {right}",
                    self.times(["does", "do"])
                );
                let at = utc(self.at);
                let policy = if is_open { "an open time field".to_owned() } else { format!("gap {}", schedule.gap) };
                match (fires, regular) {
                    (false, _) if is_open => format!("{missing}; it has {policy}, so nothing runs instead"),
                    (false, _) => format!("{missing}; {policy}: it does not fire"),
                    (true, true) if is_open => {
                        format!("{missing}; it has {policy}, so nothing runs instead; the regular fire at {at} stays")
                    }
                    (true, true) => format!("{missing}; {policy}: only the regular fire at {at} stays"),
                    (true, false) => format!("{missing}; {policy}: it fires once, at {at}"),
                }
            }
            ChangeEffect::Repeated { early: (early, first_fires), late: (late, second_fires) } => {
                let (left, right) = (clock(self.to, self.first), clock(self.from, self.first));
                let twice = format!(
                    "{} twice in {zone}: the clock goes back from {left} to {right}",
                    self.times(["comes", "come"])
                );
                let policy = format!("overlap {}", schedule.overlap);
                let (early, late) = (utc(early), utc(late));
                match (first_fires, second_fires) {
                    (true, true) if is_open => format!("{twice}; it has an open time field, so it runs both times"),
                    (true, true) => format!("{twice}; {policy}: it fires at {early} and again at {late}"),
                    (true, false) => format!("{twice}; {policy}: it fires at {early}, not at {late}"),
                    (false, true) => format!("{twice}; {policy}: it fires at {late}, not at {early}"),
                    (false, false) => format!("{twice}; {policy}: it fires at neither {early} nor {late}"),
                }
            }
        }
    }

    /// The named times in words.
    fn times(&self, [one, more]: [&str; 2]) -> String {
        let shown = show_local(self.first);
        match self.count {
            1 => format!("{shown} {one}"),
            2 => format!("{shown} and 1 other time {more}"),
            count => format!("{shown} and {} other times {more}", count - 1),
        }
    }
}

/// The change where `stretch` starts; `None` when the schedule names none of its times.
fn of(schedule: &CronSchedule, stretch: &Stretch) -> Option<ClockChange> {
    let begin = stretch.local(stretch.start);
    let (from, to) = stretch.gap_before().unwrap_or((begin, begin + stretch.repeated_at_start()));
    let first = schedule.expr.next_local(from).filter(|first| *first < to)?;
    let fires_at = |second: i64| schedule.next_fire(second * 1_000 - 1) == Some(second * 1_000);
    let effect = if stretch.offset > stretch.offset_before {
        // The named times of a gap are not on the time line; what stands for them is at its end.
        let regular = schedule.expr.any_local(to, to + 1);
        let fires = fires_at(stretch.start);
        ChangeEffect::Removed { fires, regular }
    } else {
        let (early, late) = (first - stretch.offset_before, first - stretch.offset);
        ChangeEffect::Repeated { early: (early, fires_at(early)), late: (late, fires_at(late)) }
    };
    let count = schedule.expr.count_local(from, to);
    let keeps_rhythm = keeps_rhythm(&schedule.expr, stretch.offset - stretch.offset_before);
    Some(ClockChange { from, to, first, count, at: stretch.start, effect, keeps_rhythm })
}

/// Whether the times of day are the same when all of them move by `size` seconds: then a schedule that runs on through
/// the change fires at the same distances in elapsed time, and as often in a day.
fn keeps_rhythm(expr: &CronExpr, size: i64) -> bool {
    // When minutes move as a whole, one second of each tells of all.
    let step = if size % MINUTE_SECONDS == 0 { MINUTE_SECONDS } else { 1 };
    let names = |second: i64| {
        let second = second.rem_euclid(DAY_SECONDS);
        let minute = second / MINUTE_SECONDS;
        let at_second = step > 1 || expr.seconds >> (second % MINUTE_SECONDS) & 1 == 1;
        at_second && expr.minutes >> (minute % 60) & 1 == 1 && expr.hours >> (minute / 60) & 1 == 1
    };
    (0..DAY_SECONDS / step).all(|at| names(at * step) == names(at * step + size))
}

/// The time of `local`, with its date when that differs from the one of `beside`.
fn clock(local: i64, beside: i64) -> String {
    let day = |local: i64| date_of(local.div_euclid(DAY_SECONDS));
    if day(local) == day(beside) { show_time(local.rem_euclid(DAY_SECONDS)) } else { show_local(local) }
}

fn utc(second: i64) -> String {
    format!("{} UTC", show_local(second))
}
