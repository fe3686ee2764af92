//! Statistics of a job's ended runs, computed when they are asked for from at most [`STATISTICS_RUNS`] records.

use super::{Scheduler, unavailable};
use campanile_schema::{
    error::Answer,
    ids::JobId,
    limits::{PAGE_SIZE_MAX, STATISTICS_RUNS},
    record::{RunRecord, RunState, Source},
    time::Timestamp,
    view::runs::{StateCount, StatisticsView, TimesView},
};

impl Scheduler {
    /// Of the runs that were created within the last `window_ms`.
    pub async fn statistics(&self, job: JobId, window_ms: i64) -> Answer<StatisticsView> {
        let handles = self.handles()?;
        let to_ms = handles.identity.time.now_ms();
        let from_ms = to_ms.saturating_sub(window_ms);
        handles.client.projector.shows_all().await;
        let (mut counted, mut after, mut truncated) = (Counted::default(), None, false);
        loop {
            let left = STATISTICS_RUNS - counted.runs;
            let page = handles.views.job_runs(job, after, left.clamp(1, PAGE_SIZE_MAX)).await;
            let page = page.map_err(|e| unavailable(&e))?;
            let within = |record: &&RunRecord| record.created_ms >= from_ms;
            let fitting = page.items.iter().take_while(within).count();
            if left == 0 {
                truncated = fitting > 0;
                break;
            }
            page.items[..fitting].iter().for_each(|record| counted.add(record));
            after = page.next;
            if fitting < page.items.len() || after.is_none() {
                break;
            }
        }
        Ok(counted.view(job, from_ms, to_ms, truncated))
    }
}

/// What was found so far, the newest run first.
#[derive(Default)]
struct Counted {
    runs: usize,
    oldest_ms: Option<i64>,
    /// In the order of [`RunState::ALL`].
    states: [u64; RunState::ALL.len()],
    retried: u64,
    durations: Vec<u64>,
    lateness: Vec<u64>,
}

impl Counted {
    fn add(&mut self, record: &RunRecord) {
        self.runs += 1;
        self.oldest_ms = Some(record.created_ms);
        if let Some(index) = RunState::ALL.iter().position(|state| *state == record.state) {
            self.states[index] += 1;
        }
        self.retried += u64::from(record.attempts.last().is_some_and(|attempt| attempt.attempt > 1));
        let Some(started) = record.started_ms else { return };
        if let Some(ended) = record.ended_ms {
            self.durations.push(ended.saturating_sub(started).max(0).cast_unsigned());
        }
        // A run that was started again keeps its instant, and begins whenever somebody wished it.
        if record.source == Source::Schedule
            && record.generation == 1
            && let Some(due) = record.logical_ms
        {
            self.lateness.push(started.saturating_sub(due).max(0).cast_unsigned());
        }
    }

    fn of(&self, state: RunState) -> u64 {
        RunState::ALL.iter().position(|known| *known == state).map_or(0, |index| self.states[index])
    }

    fn view(self, job_id: JobId, from_ms: i64, to_ms: i64, truncated: bool) -> StatisticsView {
        let (good, bad) = (self.of(RunState::Success), self.of(RunState::Failed) + self.of(RunState::Timeout));
        let rate = |part: u64| (good + bad > 0).then(|| part as f64 / (good + bad) as f64);
        let counts = RunState::ALL.iter().zip(self.states).map(|(state, count)| StateCount { state: *state, count });
        let from_ms = self.oldest_ms.filter(|_| truncated).unwrap_or(from_ms);
        StatisticsView {
            job_id,
            from: Timestamp(from_ms),
            to: Timestamp(to_ms),
            runs: self.runs as u64,
            truncated,
            outcomes: counts.filter(|count| count.count > 0).collect(),
            success_rate: rate(good),
            failure_rate: rate(bad),
            retried: self.retried,
            duration_ms: times(self.durations),
            lateness_ms: times(self.lateness),
        }
    }
}

/// None: there are none. A percentile is the smallest time that so many of a hundred do not exceed.
fn times(mut times: Vec<u64>) -> Option<TimesView> {
    times.sort_unstable();
    let (count, max) = (times.len(), *times.last()?);
    let percentile = |percent: usize| times[(count * percent).div_ceil(100).max(1) - 1];
    let mean = times.iter().map(|time| *time as f64).sum::<f64>() / count as f64;
    Some(TimesView { count: count as u64, mean, p50: percentile(50), p95: percentile(95), max })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::ids::RunId;

    fn record(state: RunState, started_ms: Option<i64>, ended_ms: i64) -> RunRecord {
        RunRecord {
            run: RunId(1),
            job: JobId(4),
            tenant: "finance".into(),
            state,
            source: Source::Schedule,
            logical_ms: Some(1_000),
            key: None,
            generation: 1,
            created_ms: 1_000,
            started_ms,
            ended_ms: Some(ended_ms),
            params: None,
            result: None,
            reason: None,
            by: None,
            dead_letter: false,
            attempts: Vec::new(),
            dag: None,
            depth: 0,
            marked: false,
            failed_hooks: Vec::new(),
            timeout_sec: None,
            graph: None,
            backfill: None,
            budget: None,
            compensated: false,
            priority: None,
            timing: None,
            sealed: None,
        }
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let all = times((1..=100).rev().collect()).unwrap();
        assert_eq!((all.count, all.p50, all.p95, all.max), (100, 50, 95, 100));
        assert_eq!(all.mean, 50.5);
        let one = times(vec![7]).unwrap();
        assert_eq!((one.p50, one.p95, one.max), (7, 7, 7));
        assert_eq!(times(vec![1, 9]).unwrap().p95, 9);
        assert_eq!(times(Vec::new()), None);
    }

    #[test]
    fn rates_are_of_runs_that_ended_by_themselves_and_lateness_is_of_schedules() {
        let mut counted = Counted::default();
        counted.add(&record(RunState::Success, Some(1_040), 1_100));
        counted.add(&record(RunState::Timeout, Some(1_000), 3_000));
        counted.add(&record(RunState::Canceled, None, 1_200));
        counted.add(&RunRecord { source: Source::Manual, ..record(RunState::Failed, Some(5_000), 5_001) });
        counted.add(&RunRecord { generation: 2, ..record(RunState::Success, Some(9_000), 9_010) });
        let view = counted.view(JobId(4), 0, 10_000, false);
        assert_eq!((view.runs, view.success_rate, view.failure_rate), (5, Some(0.5), Some(0.5)));
        let outcomes: Vec<(RunState, u64)> = view.outcomes.iter().map(|of| (of.state, of.count)).collect();
        let expected = [(RunState::Success, 2), (RunState::Failed, 1), (RunState::Timeout, 1), (RunState::Canceled, 1)];
        assert_eq!(outcomes, expected);
        let (duration, lateness) = (view.duration_ms.unwrap(), view.lateness_ms.unwrap());
        assert_eq!((duration.count, duration.max, lateness.count, lateness.max), (4, 2_000, 2, 40));
        let nothing = Counted::default().view(JobId(4), 0, 10_000, false);
        assert_eq!((nothing.success_rate, nothing.duration_ms, nothing.from), (None, None, Timestamp(0)));
    }
}
