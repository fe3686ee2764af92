//! `campanile cron ...`: what a schedule means, without a node.

use super::{
    cron_compare, cron_lines,
    failure::Failure,
    output::{self, Format},
    server::environment,
};
use crate::{config::Config, zones};
use campanile_core::cron::{CronExpr, CronSchedule, daylight_saving, describe, hazards, tzdb_version};
use campanile_schema::{
    error::ErrorCode,
    job::{Dialect, Gap, Overlap},
    limits::PREVIEW_INSTANTS,
    time::Timestamp,
};
use jiff::{civil, tz::TimeZone};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// The next fires of an expression
    Next {
        #[arg(required_unless_present = "jsonl")]
        expr: Option<String>,
        #[command(flatten)]
        schedule: ScheduleFlags,
        /// Fires after this instant, or local time in the zone [default: now]
        #[arg(long, value_name = "INSTANT")]
        after: Option<String>,
        #[arg(long, default_value_t = 5)]
        count: usize,
        /// Read schedules from stdin, one JSON object a line (expr, dialect, tz, after, gap, overlap, count), and write
        /// {"next":[...]} or {"error":"..."} for each
        #[arg(long, conflicts_with = "expr")]
        jsonl: bool,
    },
    /// What an expression means: in words, its next fires, and what may surprise
    Explain {
        expr: String,
        #[command(flatten)]
        schedule: ScheduleFlags,
        /// Fires after this instant, or local time in the zone [default: now]
        #[arg(long, value_name = "INSTANT")]
        after: Option<String>,
        #[arg(long, default_value_t = 5)]
        count: usize,
        /// Beside what the Rust crates croner and cron say
        #[arg(long)]
        compare: bool,
    },
}

/// How an expression is read.
#[derive(clap::Args)]
pub(super) struct ScheduleFlags {
    /// auto, unix or quartz
    #[arg(long, default_value = "auto")]
    dialect: Dialect,
    /// Time zone, an IANA name
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    tz: String,
    /// What becomes of fixed times that daylight saving removes: shift or skip
    #[arg(long, default_value = "shift")]
    gap: Gap,
    /// What becomes of fixed times that daylight saving repeats: first, second or both
    #[arg(long, default_value = "first")]
    overlap: Overlap,
}

/// A schedule as it was asked for.
pub(super) struct Asked {
    pub expr: String,
    pub dialect: Dialect,
    pub tz: String,
    pub gap: Gap,
    pub overlap: Overlap,
}

impl Asked {
    fn new(expr: String, flags: ScheduleFlags) -> Self {
        let ScheduleFlags { dialect, tz, gap, overlap } = flags;
        Self { expr, dialect, tz, gap, overlap }
    }

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

fn local(at: Timestamp, zone: &TimeZone) -> String {
    let at = jiff::Timestamp::from_millisecond(at.ms());
    at.map_or_else(|_| "?".to_owned(), |at| at.to_zoned(zone.clone()).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string())
}

pub(super) fn run(command: Command, format: Format) -> Result<(), Failure> {
    // What a node with this environment would say.
    let config = Config::load(None, environment()).map_err(|errors| Failure::usage(errors.to_string()))?;
    zones::use_directory(&config.node.tzdb_dir).map_err(Failure::usage)?;
    match command {
        Command::Next { jsonl: true, .. } => cron_lines::answer(std::io::stdin().lock(), std::io::stdout().lock()),
        Command::Next { expr, schedule, after, count, jsonl: false } => {
            let asked = Asked::new(expr.unwrap_or_default(), schedule);
            next(&asked, after.as_deref(), at_most(count)?, format)
        }
        Command::Explain { expr, schedule, after, count, compare } => {
            explain(&Asked::new(expr, schedule), after.as_deref(), at_most(count)?, compare, format)
        }
    }
}

fn at_most(count: usize) -> Result<usize, Failure> {
    if count > PREVIEW_INSTANTS {
        return Err(Failure::usage(format!("--count: at most {PREVIEW_INSTANTS}")));
    }
    Ok(count)
}

fn next(asked: &Asked, after: Option<&str>, count: usize, format: Format) -> Result<(), Failure> {
    let (schedule, _) = asked.compile().map_err(Failure::usage)?;
    let after = instant(after, &schedule.zone).map_err(Failure::usage)?;
    let fires = fires(&schedule, after, count).map_err(Failure::usage)?;
    match format {
        Format::Table => {
            for at in &fires {
                output::text(&format!("{}  {}\n", whole_seconds(*at), local(*at, &schedule.zone)));
            }
            if fires.len() < count {
                eprintln!("then it never fires again");
            }
            Ok(())
        }
        Format::Json | Format::Yaml => {
            output::one(format, &json!({"next": fires.iter().map(|at| whole_seconds(*at)).collect::<Vec<_>>()}))
        }
    }
}

fn explain(asked: &Asked, after: Option<&str>, count: usize, compare: bool, format: Format) -> Result<(), Failure> {
    let (schedule, dialect) = asked.compile().map_err(Failure::usage)?;
    let after = instant(after, &schedule.zone).map_err(Failure::usage)?;
    let fires = fires(&schedule, after, count).map_err(Failure::usage)?;
    let description = describe(&schedule.expr, dialect);
    let hazards = hazards(&schedule, after.ms());
    let daylight_saving = daylight_saving(&schedule, after.ms());
    let others = if compare { cron_compare::others(asked, dialect, after, count) } else { Vec::new() };
    match format {
        Format::Table => {
            let mut out = format!(
                "{}  ({dialect}, {}, tzdb {})\n{description}\n{daylight_saving}\n\nnext fires after {}:\n",
                asked.expr,
                asked.tz,
                tzdb_version(),
                whole_seconds(after)
            );
            for at in &fires {
                out.push_str(&format!("  {}  {}\n", whole_seconds(*at), local(*at, &schedule.zone)));
            }
            if fires.len() < count {
                out.push_str("  then it never fires again\n");
            }
            out.push_str(if hazards.is_empty() { "\nno hazards\n" } else { "\nhazards:\n" });
            for hazard in &hazards {
                out.push_str(&format!("  {hazard}\n"));
            }
            out.push_str(&cron_compare::shown(&fires, &others));
            output::text(&out);
            Ok(())
        }
        Format::Json | Format::Yaml => {
            let mut value = json!({
                "expr": asked.expr, "dialect": dialect, "timezone": asked.tz, "tzdb": tzdb_version(),
                "description": description, "daylightSaving": daylight_saving, "hazards": hazards,
                "next": fires.iter().map(|at| whole_seconds(*at)).collect::<Vec<_>>(),
            });
            if compare {
                value["others"] = others.iter().map(cron_compare::Other::to_json).collect::<Value>();
            }
            output::one(format, &value)
        }
    }
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
        let asked = Asked {
            expr: "0 0 0 1 1 ? 2030-2031".into(),
            dialect: Dialect::Auto,
            tz: "UTC".into(),
            gap: Gap::Shift,
            overlap: Overlap::First,
        };
        let (schedule, dialect) = asked.compile().unwrap();
        assert_eq!(dialect, Dialect::Quartz);
        let shown: Vec<String> = fires(&schedule, Timestamp(0), 5).unwrap().into_iter().map(whole_seconds).collect();
        assert_eq!(shown, ["2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"]);
        let later = instant(Some("2031-01-01T00:00:00Z"), &TimeZone::UTC).unwrap();
        assert!(fires(&schedule, later, 5).unwrap_err().contains("never fires after 2031-01-01T00:00:00Z"));
    }
}
