//! Decides when a step of a ramp holds: the whole life of its runs must keep up, not only their starts.

use crate::{report::Figures, scenario::Ramp};

/// So much of what was due may still be on its way at the end of a step, a part of 1.
const ON_ITS_WAY: f64 = 0.01;

/// A step that is over.
pub(super) struct Step<'a> {
    pub figures: &'a Figures,
    /// Due in its last second: their ends may come in the next one.
    pub due_last: u64,
    /// p99 over its seconds.
    pub lag_p99_ms: Option<f64>,
}

/// What did not hold, for people; nothing: it was followed.
pub(super) fn broken(ramp: &Ramp, step: &Step<'_>) -> Vec<String> {
    let f = step.figures;
    let mut broken = Vec::new();
    let mut late = |what: &str, got: f64, limit: f64| {
        if got > limit {
            broken.push(format!("{what} p99 {got:.0} ms, where {limit:.0} is the limit"));
        }
    };
    late("starts'", f.start.p99_ms, ramp.stop_p99_ms);
    late("durable ends'", f.durable.p99_ms, ramp.stop_durable_p99_ms);
    if let Some(lag) = step.lag_p99_ms {
        late("history lag's", lag, ramp.stop_lag_p99_ms);
    } else {
        broken.push("the history's lag is not known (its node's metrics: --http)".to_owned());
    }
    let mut missing = |what: &str, got: u64, may_miss: f64| {
        if f.due.saturating_sub(got) as f64 > may_miss {
            broken.push(format!("{got} of {} {what}", f.due));
        }
    };
    let few = f.due as f64 * ON_ITS_WAY;
    missing("received", f.start.count, few);
    missing("ended durably", f.durable.count, few + step.due_last as f64);
    broken
}

/// Value at p99, by nearest rank.
pub(super) fn p99(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * 0.99).ceil() as usize;
    values.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::latency::Percentiles;

    #[test]
    fn p99_is_a_value_that_was_seen() {
        assert_eq!(p99((1..=200).rev().map(f64::from)), Some(198.0));
        assert_eq!(p99([5.0, 7.0].into_iter()), Some(7.0));
        assert_eq!(p99(std::iter::empty()), None);
    }

    #[test]
    fn a_step_holds_only_with_starts_ends_and_history() {
        let rates = vec![100.0];
        let ramp = Ramp { rates, step_s: 10, stop_p99_ms: 250.0, stop_durable_p99_ms: 500.0, stop_lag_p99_ms: 1_000.0 };
        let seen = |count, p99_ms| Percentiles { count, p99_ms, ..Percentiles::default() };
        let told = |start, durable, lag| {
            let figures = Figures { due: 1_000, start, durable, ..Figures::default() };
            broken(&ramp, &Step { figures: &figures, due_last: 100, lag_p99_ms: lag }).join("; ")
        };
        let good = seen(1_000, 20.0);
        assert_eq!(told(seen(990, 250.0), seen(890, 500.0), Some(1_000.0)), "");
        for (started, durable, lag, sought) in [
            (seen(1_000, 251.0), good, Some(5.0), "starts' p99 251 ms"),
            (seen(989, 20.0), good, Some(5.0), "989 of 1000 received"),
            (good, seen(1_000, 501.0), Some(5.0), "durable ends' p99 501 ms"),
            (good, seen(889, 20.0), Some(5.0), "889 of 1000 ended durably"),
            (good, good, Some(1_001.0), "history lag's p99 1001 ms"),
            (good, good, None, "lag is not known"),
        ] {
            let told = told(started, durable, lag);
            assert!(told.contains(sought), "{told}, not {sought}");
            assert!(!told.contains("; "), "{told}, not {sought}");
        }
    }
}
