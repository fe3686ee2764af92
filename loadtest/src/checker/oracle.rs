//! When a job is due, told by `croner` and arithmetic only.

use crate::limits::ORACLE_INSTANTS;
use campanile_schema::{
    job::{JobSpec, Trigger},
    time::Timestamp,
};
use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;
use croner::Cron;
use std::{collections::HashMap, fmt, ops::Range, rc::Rc, str::FromStr};

/// A schedule that the oracle cannot follow; the workload must not use it.
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
            Trigger::Once { at: Some(at), .. } => {
                Ok(Some(Some(at.0).filter(|at| (from_ms + 1..=to_ms).contains(at)).into_iter().collect()))
            }
            Trigger::Once { at: None, .. } => {
                Err(OracleError("ONCE with a delay has no instant that a caller knows".into()))
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
