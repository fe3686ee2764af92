//! `campanile cron ...`: what a schedule means, without a node.

use super::{
    cron_compare, cron_lines,
    cron_query::{CronQuery, fires, instant, whole_seconds},
    failure::Failure,
    output::{self, Format},
    server::environment,
};
use crate::{config::Config, zones};
use campanile_core::cron::{daylight_saving, describe, hazards, tzdb_version};
use campanile_schema::{
    job::{Dialect, Gap, Overlap},
    limits::PREVIEW_INSTANTS,
    time::Timestamp,
};
use jiff::tz::TimeZone;
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

impl ScheduleFlags {
    fn of(self, expr: String) -> CronQuery {
        let Self { dialect, tz, gap, overlap } = self;
        CronQuery { expr, dialect, tz, gap, overlap }
    }
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
            let query = schedule.of(expr.unwrap_or_default());
            next(&query, after.as_deref(), at_most(count)?, format)
        }
        Command::Explain { expr, schedule, after, count, compare } => {
            explain(&schedule.of(expr), after.as_deref(), at_most(count)?, compare, format)
        }
    }
}

fn at_most(count: usize) -> Result<usize, Failure> {
    if count > PREVIEW_INSTANTS {
        return Err(Failure::usage(format!("--count: at most {PREVIEW_INSTANTS}")));
    }
    Ok(count)
}

fn next(query: &CronQuery, after: Option<&str>, count: usize, format: Format) -> Result<(), Failure> {
    let (schedule, _) = query.compile().map_err(Failure::usage)?;
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

fn explain(query: &CronQuery, after: Option<&str>, count: usize, compare: bool, format: Format) -> Result<(), Failure> {
    let (schedule, dialect) = query.compile().map_err(Failure::usage)?;
    let after = instant(after, &schedule.zone).map_err(Failure::usage)?;
    let fires = fires(&schedule, after, count).map_err(Failure::usage)?;
    let description = describe(&schedule.expr, dialect);
    let hazards = hazards(&schedule, after.ms());
    let daylight_saving = daylight_saving(&schedule, after.ms());
    let others = if compare { cron_compare::others(query, dialect, after, count) } else { Vec::new() };
    match format {
        Format::Table => {
            let mut out = format!(
                "{}  ({dialect}, {}, tzdb {})\n{description}\n{daylight_saving}\n\nnext fires after {}:\n",
                query.expr,
                query.tz,
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
                "expr": query.expr, "dialect": dialect, "timezone": query.tz, "tzdb": tzdb_version(),
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
