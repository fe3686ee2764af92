//! When a job is due, computed by `croner` and arithmetic only; and also by `cron` where both mean the same: then they
//! must agree.

use crate::limits::ORACLE_INSTANTS;
use campanile_schema::{
    job::{JobSpec, Trigger},
    time::{Moment, Timestamp},
};
use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;
use cron::Schedule;
use croner::Cron;
use std::{collections::HashMap, fmt, ops::Range, rc::Rc, str::FromStr};

/// A schedule that the oracle cannot follow, or of which two of them think differently; the workload must not use it.
#[derive(Clone, Debug, PartialEq)]
pub struct OracleError(pub String);

impl fmt::Display for OracleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for OracleError {}

/// Due instants in one window of time. Lists of equal cron expressions are made once.
pub struct Oracle {
    /// Exclusive start and inclusive end, milliseconds since 1970 UTC.
    from_ms: i64,
    to_ms: i64,
    cron: HashMap<(String, String), Rc<[i64]>>,
}

impl Oracle {
    /// Instants in `(from_ms, to_ms]` can be asked for.
    pub fn new(from_ms: i64, to_ms: i64) -> Self {
        Self { from_ms, to_ms, cron: HashMap::new() }
    }

    /// Due instants of `spec` in `(from_ms, to_ms]`, ascending. None: not given by the clock (MANUAL, FIXED_DELAY).
    pub fn due(&mut self, spec: &JobSpec, from_ms: i64, to_ms: i64) -> Result<Option<Vec<i64>>, OracleError> {
        let (from_ms, to_ms) = (from_ms.max(self.from_ms), to_ms.min(self.to_ms));
        match &spec.trigger {
            Trigger::Manual {} | Trigger::FixedDelay { .. } => Ok(None),
            Trigger::Once { at: Some(Moment::Instant(at)), .. } => {
                Ok(Some(Some(at.0).filter(|at| (from_ms + 1..=to_ms).contains(at)).into_iter().collect()))
            }
            Trigger::Once { at: Some(Moment::Local(_)) | None, .. } => {
                Err(OracleError("ONCE with a delay or a local time has no instant that a caller knows".into()))
            }
            Trigger::FixedRate { every_sec, anchor_at: Some(anchor), start_at, end_at, .. } => {
                let every = i64::try_from(*every_sec)
                    .ok()
                    .and_then(|sec| sec.checked_mul(1000))
                    .filter(|ms| *ms > 0)
                    .ok_or_else(|| OracleError(format!("everySec {every_sec}")))?;
                let window = window(from_ms, to_ms, *start_at, *end_at);
                Ok(Some(arithmetic(anchor.0, every, &window)?))
            }
            Trigger::FixedRate { anchor_at: None, .. } => {
                Err(OracleError("FIXED_RATE without an anchor has no instants that a caller knows".into()))
            }
            Trigger::Cron { expr, timezone, start_at, end_at, .. } => {
                let all = self.cron_list(expr, timezone)?;
                let window = window(from_ms, to_ms, *start_at, *end_at);
                let first = all.partition_point(|t| *t < window.start);
                let end = all.partition_point(|t| *t < window.end);
                Ok(Some(all.get(first..end).unwrap_or_default().to_vec()))
            }
        }
    }

    fn cron_list(&mut self, expr: &str, zone: &str) -> Result<Rc<[i64]>, OracleError> {
        let key = (expr.to_owned(), zone.to_owned());
        if let Some(list) = self.cron.get(&key) {
            return Ok(Rc::clone(list));
        }
        let list: Rc<[i64]> = croner_instants(expr, zone, self.from_ms, self.to_ms)?.into();
        if let Some(other) = cron_instants(expr, zone, self.from_ms, self.to_ms)? {
            agree(expr, zone, &list, &other)?;
        }
        self.cron.insert(key, Rc::clone(&list));
        Ok(list)
    }
}

/// The half-open range of instants inside `(from, to]` and the trigger's own window, whose ends both belong to it.
fn window(from_ms: i64, to_ms: i64, start: Option<Timestamp>, end: Option<Timestamp>) -> Range<i64> {
    let first = start.map_or(from_ms + 1, |s| s.0.max(from_ms + 1));
    let last = end.map_or(to_ms, |e| e.0.min(to_ms));
    first..last.saturating_add(1)
}

fn arithmetic(anchor: i64, every: i64, window: &Range<i64>) -> Result<Vec<i64>, OracleError> {
    // An anchor in the future is the first instant.
    let from = window.start.max(anchor);
    let behind = (from - anchor).rem_euclid(every);
    let first = if behind == 0 { from } else { from + (every - behind) };
    let count = if first < window.end { (window.end - 1 - first) / every + 1 } else { 0 };
    if usize::try_from(count).map_or(true, |n| n > ORACLE_INSTANTS) {
        return Err(OracleError(format!("more than {ORACLE_INSTANTS} instants")));
    }
    Ok((0..count).map(|n| first + n * every).collect())
}

fn croner_instants(expr: &str, zone: &str, from_ms: i64, to_ms: i64) -> Result<Vec<i64>, OracleError> {
    let cron = Cron::from_str(expr).map_err(|e| OracleError(format!("croner refuses '{expr}': {e}")))?;
    let zone: Tz = zone.parse().map_err(|e| OracleError(format!("zone '{zone}': {e}")))?;
    let from: DateTime<Tz> =
        zone.timestamp_millis_opt(from_ms).single().ok_or_else(|| OracleError(format!("instant {from_ms}")))?;
    let mut instants = Vec::new();
    for next in cron.iter_after(from) {
        let ms = next.timestamp_millis();
        if ms > to_ms {
            break;
        }
        if ms <= from_ms {
            continue;
        }
        if instants.len() >= ORACLE_INSTANTS {
            return Err(OracleError(format!("more than {ORACLE_INSTANTS} instants of '{expr}'")));
        }
        instants.push(ms);
    }
    Ok(instants)
}

/// Between two looks at a zone's offset, milliseconds: no offset was ever in force for less.
const OFFSET_LOOK_MS: usize = 6 * 3_600_000;
const DAY_MS: i64 = 86_400_000;

/// What `cron` says. None: it does not mean the same by the expression, or is known to be wrong in this time.
fn cron_instants(expr: &str, zone: &str, from_ms: i64, to_ms: i64) -> Result<Option<Vec<i64>>, OracleError> {
    let zone: Tz = zone.parse().map_err(|e| OracleError(format!("zone '{zone}': {e}")))?;
    let text = as_cron_means_it(expr).filter(|_| is_steady(zone, from_ms, to_ms));
    let Some(schedule) = text.and_then(|text| Schedule::from_str(&text).ok()) else { return Ok(None) };
    let from: DateTime<Tz> =
        zone.timestamp_millis_opt(from_ms).single().ok_or_else(|| OracleError(format!("instant {from_ms}")))?;
    let instants = schedule.after(&from).map(|next| next.timestamp_millis()).take_while(|ms| *ms <= to_ms);
    Ok(Some(instants.filter(|ms| *ms > from_ms).take(ORACLE_INSTANTS).collect()))
}

/// `cron` wants seconds, counts weekdays from Sunday = 1, knows no `L W # ?` as we do, and wants both day fields to hold.
fn as_cron_means_it(expr: &str) -> Option<String> {
    let mut fields: Vec<&str> = expr.split_ascii_whitespace().collect();
    if fields.len() == 5 {
        fields.insert(0, "0");
    }
    let plain = |field: &str| field.chars().all(|c| c.is_ascii_digit() || "*,-/".contains(c));
    let named = |field: &str| field.chars().all(|c| c.is_ascii_alphabetic() || ",-".contains(c));
    let [seconds, minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
    let same_days = *weekdays == "*" || (*days == "*" && named(weekdays));
    let same =
        [seconds, minutes, hours, days].into_iter().all(|field| plain(field)) && (plain(months) || named(months));
    (same && same_days).then(|| fields.join(" "))
}

/// The zone's offset stays as it is, a day before and after too: in an overlap `cron` goes back, in a gap it skips.
fn is_steady(zone: Tz, from_ms: i64, to_ms: i64) -> bool {
    let offset = |ms: i64| {
        let at = zone.timestamp_millis_opt(ms).single()?;
        Some(at.offset().fix().local_minus_utc())
    };
    let (from, to) = (from_ms.saturating_sub(DAY_MS), to_ms.saturating_add(DAY_MS));
    let first = offset(from);
    first.is_some() && offset(to) == first && (from..to).step_by(OFFSET_LOOK_MS).all(|ms| offset(ms) == first)
}

/// Where two independent oracles differ, at least one of them is wrong, and neither proves anything.
fn agree(expr: &str, zone: &str, croner: &[i64], cron: &[i64]) -> Result<(), OracleError> {
    if croner == cron {
        return Ok(());
    }
    let at = croner.iter().zip(cron).position(|(one, other)| one != other).unwrap_or(croner.len().min(cron.len()));
    let told = |list: &[i64]| list.get(at).map_or("nothing more".to_owned(), i64::to_string);
    let (one, other) = (told(croner), told(cron));
    Err(OracleError(format!("the oracles differ about '{expr}' in {zone}: croner says {one}, cron says {other}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2026-02-02T02:40:00Z.
    const T0: i64 = 1_770_000_000_000;

    fn spec(trigger: serde_json::Value) -> JobSpec {
        serde_json::from_value(serde_json::json!({"name":"j","trigger":trigger})).unwrap()
    }

    fn due(trigger: serde_json::Value, from: i64, to: i64) -> Vec<i64> {
        let mut oracle = Oracle::new(T0 - 1_000_000, T0 + 100_000_000);
        let list = oracle.due(&spec(trigger), T0 + from, T0 + to).unwrap().unwrap();
        list.into_iter().map(|t| t - T0).collect()
    }

    #[test]
    fn fixed_rate_counts_from_its_anchor_and_stays_in_its_window() {
        let at = |ms: i64| Timestamp(T0 + ms);
        let rate = |start: i64, end: i64| serde_json::json!({"type":"FIXED_RATE","everySec":10,"anchorAt":at(3_500),"startAt":at(start),"endAt":at(end)});
        assert_eq!(due(rate(-99_000, 99_000), -50_000, 33_500), [3_500, 13_500, 23_500, 33_500]);
        // The start of the interval is outside, both ends of the trigger's window are inside.
        assert_eq!(due(rate(-99_000, 99_000), 13_500, 30_000), [23_500]);
        assert_eq!(due(rate(13_500, 23_500), -50_000, 90_000), [13_500, 23_500]);
        assert_eq!(due(rate(13_501, 23_499), -50_000, 90_000), [0_i64; 0]);
    }

    #[test]
    fn cron_has_seconds_zones_and_both_ends_right() {
        let cron = |expr: &str, zone: &str| serde_json::json!({"type":"CRON","expr":expr,"timezone":zone});
        assert_eq!(due(cron("*/20 * * * * *", "UTC"), 0, 60_000), [20_000, 40_000, 60_000]);
        assert_eq!(due(cron("* * * * *", "UTC"), -1, 120_000), [0, 60_000, 120_000]);
        // 02:40 UTC is 03:40 in Berlin.
        assert_eq!(due(cron("41 3 * * *", "Europe/Berlin"), 0, 3_600_000), [60_000]);
    }

    #[test]
    fn a_second_oracle_is_asked_where_both_mean_the_same_and_must_agree() {
        let (from, to) = (T0 - 500, T0 + 9 * DAY_MS);
        for expr in
            ["*/5 30 */2 * * *", "7,41 3 * * *", "0 12 1-10/3 2,8 *", "15 10 * * MON-FRI", "0 0 9 * FEB SUN,TUE"]
        {
            for zone in ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"] {
                let croner = croner_instants(expr, zone, from, to).unwrap();
                let cron = cron_instants(expr, zone, from, to).unwrap().expect(expr);
                assert_eq!(agree(expr, zone, &croner, &cron), Ok(()));
                assert!(!croner.is_empty(), "{expr}");
                let short = agree(expr, zone, &croner, &cron[1..]).unwrap_err().0;
                assert!(short.contains(&format!("croner says {}, cron says ", croner[0])), "{short}");
                assert!(agree(expr, zone, &croner[..croner.len() - 1], &cron).unwrap_err().0.contains("nothing more"));
            }
        }
    }

    #[test]
    fn the_second_oracle_is_not_asked_where_it_means_something_else() {
        for expr in
            ["0 0 * * 0", "0 0 * * 2", "0 0 L * *", "0 0 15W * *", "0 0 * * L", "0 0 1 * MON", "0 0 12 ? * 2", "@daily"]
        {
            assert_eq!(cron_instants(expr, "UTC", T0, T0 + DAY_MS), Ok(None), "{expr}");
        }
        // 2026-03-29, when Berlin goes forward, is no day for it, and neither are its neighbours.
        let spring = 1_774_746_000_000;
        for (from, to, asked) in
            [(-3 * DAY_MS, -2 * DAY_MS, true), (-2 * DAY_MS, 0, false), (DAY_MS / 2, DAY_MS, false)]
        {
            let said = cron_instants("0 * * * *", "Europe/Berlin", spring + from, spring + to).unwrap();
            assert_eq!(said.is_some(), asked, "{from}");
        }
    }

    /// What is left out above would be told, had it not been left out.
    #[test]
    fn where_they_mean_different_things_the_difference_is_told() {
        let (expr, from, to) = ("0 0 0 1 * MON", T0, T0 + 40 * DAY_MS);
        let cron = Schedule::from_str(expr).unwrap();
        let start = chrono_tz::UTC.timestamp_millis_opt(from).unwrap();
        let both: Vec<i64> = cron.after(&start).map(|at| at.timestamp_millis()).take_while(|ms| *ms <= to).collect();
        let either = croner_instants(expr, "UTC", from, to).unwrap();
        assert!(agree(expr, "UTC", &either, &both).unwrap_err().0.contains("the oracles differ about '0 0 0 1 * MON'"));
    }

    #[test]
    fn once_is_due_once_and_what_has_no_clock_is_told() {
        let once = serde_json::json!({"type":"ONCE","at":Timestamp(T0 + 5)});
        assert_eq!(due(once.clone(), 4, 5), [5]);
        assert_eq!(due(once, 5, 9), [0_i64; 0]);
        let mut oracle = Oracle::new(T0, T0 + 1000);
        assert_eq!(oracle.due(&spec(serde_json::json!({"type":"MANUAL"})), T0, T0 + 9), Ok(None));
        let refused = [
            serde_json::json!({"type":"ONCE","delaySec":5}),
            serde_json::json!({"type":"FIXED_RATE","everySec":5}),
            serde_json::json!({"type":"CRON","expr":"61 * * * *"}),
            serde_json::json!({"type":"CRON","expr":"* * * * *","timezone":"Mars/Base"}),
        ];
        for trigger in refused {
            assert!(oracle.due(&spec(trigger), T0, T0 + 9).is_err());
        }
    }
}
