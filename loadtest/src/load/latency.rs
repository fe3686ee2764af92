//! How late bodies started and ended, from executors' own files.

use crate::run_dir::lines::{ExecutorEvent, ExecutorLine};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

/// Highest lateness that is told apart, microseconds (ten minutes).
pub const HIGHEST_US: u64 = 600_000_000;

/// After the window's end a body counts as begun in time for so long, microseconds.
pub const IN_TIME_US: i64 = 1_000_000;

/// Percentiles, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Percentiles {
    pub count: u64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// What executors saw of the instants in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lateness {
    /// From the due instant to the line that the body wrote first.
    pub start: Percentiles,
    /// The same, of those that began no later than [`IN_TIME_US`] after the window.
    pub start_in_time: Percentiles,
    /// From the due instant to the line that it wrote last.
    pub end: Percentiles,
    /// Bodies without an instant (manual triggers).
    pub without_instant: u64,
    pub starts: u64,
    /// Starts per second of the window in which the last one fell.
    pub starts_per_sec: f64,
    /// The fewest starts within a whole second of the window.
    pub slowest_sec: u64,
    pub outcomes: BTreeMap<String, u64>,
}

/// Reads all `executor-*.jsonl` of a directory. Only instants in `[from_ms, until_ms)` count.
pub fn lateness(dir: &Path, from_ms: i64, until_ms: i64) -> io::Result<Lateness> {
    let histogram = || Histogram::<u64>::new_with_bounds(1, HIGHEST_US, 3).map_err(io::Error::other);
    let (mut start, mut in_time, mut end) = (histogram()?, histogram()?, histogram()?);
    let mut seen = Lateness::default();
    let mut by_second: BTreeMap<i64, u64> = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if !name.starts_with("executor-") || !name.ends_with(".jsonl") {
            continue;
        }
        for line in BufReader::with_capacity(1 << 20, File::open(&path)?).lines() {
            // A torn last line of a killed executor is the checker's to judge.
            let Ok(line) = serde_json::from_str::<ExecutorLine>(&line?) else {
                continue;
            };
            count(&line, from_ms..until_ms, (&mut start, &mut in_time, &mut end), &mut seen, &mut by_second);
        }
    }
    (seen.start, seen.end) = (percentiles(&start), percentiles(&end));
    seen.start_in_time = percentiles(&in_time);
    let seconds = by_second.keys().next_back().map_or(0, |last| last - from_ms.div_euclid(1000) + 1);
    seen.starts_per_sec = if seconds > 0 { seen.start.count as f64 / seconds as f64 } else { 0.0 };
    let whole = from_ms.div_euclid(1000) + 1..until_ms.div_euclid(1000);
    seen.slowest_sec = whole.map(|sec| by_second.get(&sec).copied().unwrap_or(0)).min().unwrap_or(0);
    Ok(seen)
}

fn count(
    line: &ExecutorLine,
    window: std::ops::Range<i64>,
    (start, in_time, end): (&mut Histogram<u64>, &mut Histogram<u64>, &mut Histogram<u64>),
    seen: &mut Lateness,
    by_second: &mut BTreeMap<i64, u64>,
) {
    let late_us = match line.logical {
        Some(logical) if !window.contains(&logical) => return,
        Some(logical) => Some(u64::try_from(line.t_us - logical * 1000).unwrap_or(0)),
        None => None,
    };
    match line.event {
        ExecutorEvent::Up | ExecutorEvent::Refused => {}
        ExecutorEvent::Start => {
            seen.starts += 1;
            match late_us {
                // Retries are late on purpose.
                Some(late) if line.attempt == 1 => {
                    start.saturating_record(late.max(1));
                    if line.t_us <= window.end * 1000 + IN_TIME_US {
                        in_time.saturating_record(late.max(1));
                    }
                    *by_second.entry(line.t_us.div_euclid(1_000_000)).or_default() += 1;
                }
                Some(_) => {}
                None => seen.without_instant += 1,
            }
        }
        ExecutorEvent::End => {
            if let (Some(late), 1) = (late_us, line.attempt) {
                end.saturating_record(late.max(1));
            }
            if let Some(outcome) = line.outcome {
                *seen.outcomes.entry(outcome.to_string()).or_default() += 1;
            }
        }
    }
}

/// Of a histogram of microseconds.
pub fn percentiles<C: hdrhistogram::Counter>(histogram: &Histogram<C>) -> Percentiles {
    let at = |q: f64| histogram.value_at_quantile(q) as f64 / 1000.0;
    Percentiles {
        count: histogram.len(),
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
        max_ms: histogram.max() as f64 / 1000.0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run_dir::record::Record;
    use campanile_schema::record::AttemptState;
    use std::time::Duration;

    #[test]
    fn lateness_counts_first_attempts_inside_the_window() {
        let dir = tempfile::tempdir().unwrap();
        let record = Record::open(&dir.path().join("executor-a.jsonl"), Duration::ZERO).unwrap();
        let line =
            |event, logical: Option<i64>, t_us| ExecutorLine { event, logical, t_us, attempt: 1, ..ExecutorLine::up() };
        for n in 0..100 {
            let logical = 10_000 + n * 10;
            record.body(&line(ExecutorEvent::Start, Some(logical), logical * 1000 + 1000 + n));
            let outcome = Some(AttemptState::Success);
            record.body(&ExecutorLine { outcome, ..line(ExecutorEvent::End, Some(logical), logical * 1000 + 3000) });
        }
        record.body(&line(ExecutorEvent::Start, Some(9_999), 20_000_000));
        record.body(&line(ExecutorEvent::Start, Some(11_000), 20_000_000));
        record.body(&line(ExecutorEvent::Start, None, 10_500_000));
        record.body(&ExecutorLine { attempt: 2, ..line(ExecutorEvent::Start, Some(10_000), 20_000_000) });
        record.close().unwrap();
        let seen = lateness(dir.path(), 10_000, 11_000).unwrap();
        assert_eq!((seen.start.count, seen.end.count, seen.without_instant, seen.starts), (100, 100, 1, 102));
        assert!((seen.start.p50_ms - 1.05).abs() < 0.01, "{seen:?}");
        assert!((seen.end.p99_ms - 3.0).abs() < 0.01, "{seen:?}");
        assert!((seen.start.max_ms - 1.099).abs() < 0.01);
        assert!((seen.starts_per_sec - 100.0).abs() < 0.1);
        assert_eq!(seen.outcomes.get("SUCCESS"), Some(&100));
    }

    #[test]
    fn what_begins_more_than_a_second_after_the_window_is_not_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let record = Record::open(&dir.path().join("executor-a.jsonl"), Duration::ZERO).unwrap();
        for (logical, t_us) in [(10_000, 11_900_000), (10_999, 12_000_000), (10_999, 12_000_001), (10_000, 30_000_000)]
        {
            let start =
                ExecutorLine { event: ExecutorEvent::Start, logical: Some(logical), t_us, ..ExecutorLine::up() };
            record.body(&ExecutorLine { attempt: 1, ..start });
        }
        record.close().unwrap();
        let seen = lateness(dir.path(), 10_000, 11_000).unwrap();
        assert_eq!((seen.start.count, seen.start_in_time.count), (4, 2));
        assert!((seen.start_in_time.max_ms - 1_900.0).abs() < 2.0, "{seen:?}");
    }
}
