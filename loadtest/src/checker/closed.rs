//! Which instants the windows and blackouts of a job take away, by the civil clock of `chrono` and `chrono-tz`: worked out apart from the
//! node, which uses another library and another database.

use super::OracleError;
use campanile_schema::{
    event::SkipReason,
    job::{JobSpec, Trigger, Weekday, Window, WindowEffect},
};
use chrono::{DateTime, Datelike, TimeZone, Timelike};
use chrono_tz::Tz;

const DAYS: [Weekday; 7] =
    [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];

/// Why an instant of the trigger makes no run; None: it counts.
pub fn closed(spec: &JobSpec, at_ms: i64) -> Result<Option<SkipReason>, OracleError> {
    if spec.blackouts.iter().any(|blackout| blackout.from.0 <= at_ms && at_ms < blackout.to.0) {
        return Ok(Some(SkipReason::Blackout));
    }
    let zone = match &spec.trigger {
        Trigger::Cron { timezone, .. } => timezone.as_str(),
        Trigger::FixedRate { .. } | Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => "UTC",
    };
    let (mut allows, mut allowed, mut denied) = (false, false, false);
    for window in &spec.windows {
        let inside = holds(window, window.timezone.as_deref().unwrap_or(zone), at_ms)?;
        match window.effect {
            WindowEffect::Allow => (allows, allowed) = (true, allowed || inside),
            WindowEffect::Deny => denied |= inside,
        }
    }
    Ok((denied || (allows && !allowed)).then_some(SkipReason::Window))
}

fn holds(window: &Window, zone: &str, at_ms: i64) -> Result<bool, OracleError> {
    let zone: Tz = zone.parse().map_err(|e| OracleError(format!("zone '{zone}': {e}")))?;
    let local: DateTime<Tz> =
        zone.timestamp_millis_opt(at_ms).single().ok_or_else(|| OracleError(format!("instant {at_ms}")))?;
    let minute = local.hour() * 60 + local.minute();
    let today = local.weekday().num_days_from_monday() as usize;
    let begins_on = |day: usize| window.days.is_empty() || window.days.contains(&DAYS[day % 7]);
    let (from, to) = (u32::from(window.from.minutes()), u32::from(window.to.minutes()));
    Ok(if from < to {
        begins_on(today) && from <= minute && minute < to
    } else {
        (begins_on(today) && from <= minute) || (begins_on(today + 6) && minute < to)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::time::Timestamp;

    fn why(spec: &JobSpec, at: &str) -> Option<SkipReason> {
        closed(spec, at.parse::<Timestamp>().unwrap().0).unwrap()
    }

    #[test]
    fn a_window_is_read_by_the_clock_of_its_zone_and_may_go_over_midnight() {
        let spec: JobSpec = serde_json::from_value(serde_json::json!({
            "name": "j",
            "trigger": {"type": "CRON", "expr": "0 * * * *", "timezone": "Europe/Berlin"},
            "windows": [
                {"days": ["MON", "TUE"], "from": "09:00", "to": "17:00"},
                {"days": ["FRI"], "from": "22:00", "to": "01:00", "timezone": "Asia/Tokyo"},
                {"effect": "DENY", "from": "12:00", "to": "13:00"},
            ],
            "blackouts": [{"from": "2026-07-07T08:00:00Z", "to": "2026-07-07T09:00:00Z"}],
        }))
        .unwrap();
        let (window, blackout) = (Some(SkipReason::Window), Some(SkipReason::Blackout));
        for (at, wanted) in [
            ("2026-02-02T08:00:00Z", None), // Monday, 09:00
            ("2026-02-02T07:59:59Z", window),
            ("2026-02-02T11:00:00Z", window), // noon
            ("2026-02-02T16:00:00Z", window),
            ("2026-07-06T07:00:00Z", None), // in summer
            ("2026-07-07T08:00:00Z", blackout),
            ("2026-07-07T09:00:00Z", None),
            ("2026-02-06T13:00:00Z", None), // Friday, 22:00 in Tokyo
            ("2026-02-06T15:59:00Z", None),
            ("2026-02-06T16:00:00Z", window),
        ] {
            assert_eq!(why(&spec, at), wanted, "{at}");
        }
    }
}
