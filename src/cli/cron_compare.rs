//! `campanile cron explain --compare`: what two public crates make of the same expression. They are independent of us;
//! where they differ, the design says why we do not follow them.

use super::cron_query::{CronQuery, whole_seconds};
use campanile_schema::{job::Dialect, time::Timestamp};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};
use serde_json::{Value, json};
use std::str::FromStr;

/// What a crate says.
pub(super) struct Other {
    name: &'static str,
    fires: Result<Vec<Timestamp>, String>,
}

impl Other {
    pub fn to_json(&self) -> Value {
        match &self.fires {
            Ok(fires) => {
                json!({"crate": self.name, "next": fires.iter().map(|at| whole_seconds(*at)).collect::<Vec<_>>()})
            }
            Err(error) => json!({"crate": self.name, "error": error}),
        }
    }
}

pub(super) fn others(query: &CronQuery, dialect: Dialect, after: Timestamp, count: usize) -> Vec<Other> {
    let from = |zone: Tz| {
        let after = DateTime::<Utc>::from_timestamp_millis(after.ms());
        after.map(|after| after.with_timezone(&zone)).ok_or_else(|| "the instant is out of its range".to_owned())
    };
    let zone = Tz::from_str(&query.tz).map_err(|_| format!("chrono-tz has no zone {}", query.tz));
    let croner = zone.clone().and_then(|zone| croner_fires(&query.expr, dialect, &from(zone)?, count));
    let cron = zone.and_then(|zone| cron_fires(&query.expr, &from(zone)?, count));
    vec![Other { name: "croner", fires: croner }, Other { name: "cron", fires: cron }]
}

fn croner_fires(expr: &str, dialect: Dialect, after: &DateTime<Tz>, count: usize) -> Result<Vec<Timestamp>, String> {
    let parser = CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Optional)
        .alternative_weekdays(dialect == Dialect::Quartz)
        .build();
    let schedule = parser.parse(expr).map_err(|error| error.to_string())?;
    Ok(schedule.iter_after(*after).take(count).map(|at| Timestamp(at.timestamp_millis())).collect())
}

fn cron_fires(expr: &str, after: &DateTime<Tz>, count: usize) -> Result<Vec<Timestamp>, String> {
    // It knows no form without seconds.
    let with_seconds = if expr.split_whitespace().count() == 5 { format!("0 {expr}") } else { expr.to_owned() };
    let schedule = cron::Schedule::from_str(&with_seconds).map_err(|error| error.to_string())?;
    Ok(schedule.after(after).take(count).map(|at| Timestamp(at.timestamp_millis())).collect())
}

/// As text; empty when nothing was compared.
pub(super) fn shown(ours: &[Timestamp], others: &[Other]) -> String {
    let mut out = String::new();
    for other in others {
        out.push_str(&match &other.fires {
            Err(error) => format!("\n{} refuses it: {error}\n", other.name),
            Ok(theirs) if theirs == ours => format!("\n{} says the same\n", other.name),
            Ok(theirs) => {
                let list: String = theirs.iter().map(|at| format!("  {}\n", whole_seconds(*at))).collect();
                format!(
                    "\n{} differs (its zones are those of chrono-tz, tzdb {}):\n{list}",
                    other.name,
                    chrono_tz::IANA_TZDB_VERSION
                )
            }
        });
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::cron_query::fires;
    use campanile_schema::job::{Gap, Overlap};

    #[test]
    fn plain_expressions_are_the_same_everywhere_and_others_are_told() {
        let query = |expr: &str| CronQuery {
            expr: expr.into(),
            dialect: Dialect::Unix,
            tz: "Europe/Berlin".into(),
            gap: Gap::Shift,
            overlap: Overlap::First,
        };
        let after = Timestamp(1_780_000_000_000);
        let plain = query("15 8 * * *");
        let (schedule, dialect) = plain.compile().unwrap();
        let ours = fires(&schedule, after, 5).unwrap();
        let told = shown(&ours, &others(&plain, dialect, after, 5));
        assert!(told.contains("croner says the same"), "{told}");
        assert!(told.contains("cron says the same"), "{told}");
        let sunday = query("0 0 * * 0");
        let (schedule, dialect) = sunday.compile().unwrap();
        let told = shown(&fires(&schedule, after, 5).unwrap(), &others(&sunday, dialect, after, 5));
        assert!(told.contains("croner says the same"), "{told}");
        assert!(told.contains("cron refuses it"), "{told}");
    }
}
