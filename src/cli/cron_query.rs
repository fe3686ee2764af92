//! A schedule as `campanile cron ...` is asked for it, its fires, and how instants are read and written there.

use campanile_core::cron::{CronExpr, CronSchedule};
use campanile_schema::{
    error::ErrorCode,
    job::{Dialect, Gap, Overlap},
    time::Timestamp,
};
use jiff::{civil, tz::TimeZone};

/// A schedule as it was asked for.
pub(super) struct CronQuery {
    pub expr: String,
    pub dialect: Dialect,
    pub tz: String,
    pub gap: Gap,
    pub overlap: Overlap,
}

impl CronQuery {
    /// The schedule, and the dialect that it was read in.
    pub fn compile(&self) -> Result<(CronSchedule, Dialect), String> {
        let (expr, dialect) = CronExpr::parse(&self.expr, self.dialect, 0).map_err(|error| {
            let told = error.to_string();
            if error.never_fires { never(&told) } else { told }
        })?;
        let schedule = CronSchedule::new(expr, &self.tz, self.gap, self.overlap).map_err(|error| error.to_string())?;
        Ok((schedule, dialect))
    }
}

/// The code that the API gives to such a schedule, before the sentence: a script need not read the sentence.
fn never(told: &str) -> String {
    format!("{}: {told}", ErrorCode::ScheduleNeverFires.as_str())
}

/// The next fires, fewer when it ends. Error: there is none, as creating such a job is refused too, by the same code.
pub(super) fn fires(schedule: &CronSchedule, after: Timestamp, count: usize) -> Result<Vec<Timestamp>, String> {
    let next = |at: &Timestamp| schedule.next_fire(at.ms()).map(Timestamp);
    let Some(first) = next(&after) else {
        return Err(never(&format!("this never fires after {}; check day, month and year", whole_seconds(after))));
    };
    Ok(std::iter::successors(Some(first), next).take(count).collect())
}

/// An instant with an offset, or a local time in the zone. None = now.
pub(super) fn instant(text: Option<&str>, zone: &TimeZone) -> Result<Timestamp, String> {
    let Some(text) = text else { return Ok(Timestamp(jiff::Timestamp::now().as_millisecond())) };
    text.parse::<Timestamp>().or_else(|told| {
        let local = text.parse::<civil::DateTime>().map_err(|_| told)?;
        let zoned = local.to_zoned(zone.clone()).map_err(|error| error.to_string())?;
        Ok(Timestamp(zoned.timestamp().as_millisecond()))
    })
}

/// Seconds are all that cron has: `2028-02-29T07:00:00Z`.
pub(super) fn whole_seconds(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.ms()).map_or_else(|_| at.to_string(), |at| format!("{at:.0}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn instants_are_read_with_an_offset_or_in_the_zone() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let seconds = |text: &str| whole_seconds(instant(Some(text), &berlin).unwrap());
        assert_eq!(seconds("2028-02-29T07:30:00+01:00"), "2028-02-29T06:30:00Z");
        assert_eq!(seconds("2028-02-29T07:30:00Z"), "2028-02-29T07:30:00Z");
        assert_eq!(seconds("2028-02-29T07:30:00"), "2028-02-29T06:30:00Z");
        assert_eq!(seconds("2028-02-29"), "2028-02-28T23:00:00Z");
        assert!(instant(Some("tomorrow"), &berlin).unwrap_err().contains("RFC 3339"));
    }

    #[test]
    fn fires_end_when_the_years_do() {
        let query = CronQuery {
            expr: "0 0 0 1 1 ? 2030-2031".into(),
            dialect: Dialect::Auto,
            tz: "UTC".into(),
            gap: Gap::Shift,
            overlap: Overlap::First,
        };
        let (schedule, dialect) = query.compile().unwrap();
        assert_eq!(dialect, Dialect::Quartz);
        let shown: Vec<String> = fires(&schedule, Timestamp(0), 5).unwrap().into_iter().map(whole_seconds).collect();
        assert_eq!(shown, ["2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"]);
        let later = instant(Some("2031-01-01T00:00:00Z"), &TimeZone::UTC).unwrap();
        assert!(fires(&schedule, later, 5).unwrap_err().contains("never fires after 2031-01-01T00:00:00Z"));
    }
}
