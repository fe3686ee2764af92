//! Calls beside the load, open loop: each is due at its instant whether earlier ones were answered or not, and its latency counts
//! from there. A call that was sent late, for want of room or of processor, is late.

use crate::{
    limits::CALLS_IN_FLIGHT,
    load::{
        caller::{CallOutcome, Caller},
        latency::{HIGHEST_US, percentiles},
    },
    random::Random,
    report::CallFigures,
    run_dir::lines::now_us,
    scenario::{
        Call, CallVerb, Load, LoadKind, Scenario,
        jobs::{Frame, Jobs},
    },
};
use campanile_client::ClientError;
use campanile_schema::{
    ids::JobId,
    payload::Payload,
    view::{JobFilter, PageBody},
};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

/// What is known of one kind of call.
struct CallStats {
    latency: Histogram<u64>,
    failed: BTreeMap<String, u64>,
}

/// Shared with those who answer for it at the end, whenever that is.
#[derive(Clone)]
pub(super) struct CallSeries {
    name: String,
    /// When each is due, microseconds since 1970 UTC, in order.
    due_us: Arc<Vec<i64>>,
    stats: Arc<Mutex<CallStats>>,
}

impl CallSeries {
    fn new(name: &str, due_us: Vec<i64>) -> Self {
        // Only bounds out of order are refused.
        let latency = Histogram::new_with_bounds(1, HIGHEST_US, 3).unwrap_or_else(|_| unreachable!("sound bounds"));
        let stats = Arc::new(Mutex::new(CallStats { latency, failed: BTreeMap::new() }));
        Self { name: name.to_owned(), due_us: Arc::new(due_us), stats }
    }

    fn note(&self, due_us: i64, outcome: Result<(), String>) {
        let mut stats = self.stats.lock();
        match outcome {
            Ok(()) => stats.latency.saturating_record((now_us() - due_us).max(1).unsigned_abs()),
            Err(code) => *stats.failed.entry(code).or_default() += 1,
        }
    }

    /// What is due until then, and what became of it. What has no answer yet is a failure.
    pub fn figures(&self, until_us: i64) -> CallFigures {
        let stats = self.stats.lock();
        let due = self.due_us.iter().filter(|due| **due < until_us).count() as u64;
        let mut failed = stats.failed.clone();
        let known = stats.latency.len() + failed.values().sum::<u64>();
        if known < due {
            failed.insert("NOT_ANSWERED".to_owned(), due - known);
        }
        CallFigures {
            name: self.name.clone(),
            due,
            answered: stats.latency.len(),
            failed,
            latency: percentiles(&stats.latency),
        }
    }
}

/// All calls of a run: dropping it ends those under way.
pub(super) struct Calls {
    tasks: JoinSet<()>,
    pub series: Vec<CallSeries>,
    /// Jobs that calls created.
    pub created: Arc<Mutex<Vec<JobId>>>,
}

impl Calls {
    /// `jobs`: of the loads, in their order.
    pub fn start(scenario: &Scenario, frame: &Frame, caller: &Caller, jobs: &[Vec<JobId>]) -> Self {
        let mut calls = Self { tasks: JoinSet::new(), series: Vec::new(), created: Arc::default() };
        for (load, ids) in scenario.loads.iter().zip(jobs).filter(|(load, _)| load.kind == LoadKind::Trigger) {
            calls.triggers(load, frame, caller.clone(), ids.clone());
        }
        let remembered =
            |ids: &Vec<JobId>| ids.iter().take(crate::limits::JOBS_REMEMBERED).copied().collect::<Vec<_>>();
        let known: Arc<Vec<JobId>> = Arc::new(jobs.iter().flat_map(remembered).collect());
        for call in &scenario.calls {
            calls.call(call, frame, caller.clone(), Arc::clone(&known));
        }
        calls
    }

    fn triggers(&mut self, load: &Load, frame: &Frame, caller: Caller, ids: Vec<JobId>) {
        let jobs = Jobs::new(load, frame);
        let series = CallSeries::new(&load.name, (0..jobs.triggers()).map(|n| jobs.trigger_us(n)).collect());
        let key = format!("{}-{}", load.name, frame.mark);
        self.series.push(series.clone());
        self.tasks.spawn(open_loop(series, move |n, due_us| {
            let (caller, job, key) = (caller.clone(), ids[n % ids.len()], format!("{key}-{n}"));
            // The executor measures from when it was due, not from when it was sent.
            let params = Some(Payload(format!("{{\"dueUs\":{due_us}}}")));
            async move {
                match caller.trigger_with(job, key, params).await {
                    CallOutcome::Done(_) => Ok(()),
                    CallOutcome::Refused(code) => Err(code.as_str().to_owned()),
                    CallOutcome::Open => Err("NO_ANSWER".to_owned()),
                }
            }
        }));
    }

    fn call(&mut self, call: &Call, frame: &Frame, caller: Caller, known: Arc<Vec<JobId>>) {
        let window = frame.window(&call.phases);
        let begin_us = (frame.start_ms + window.start as i64 * 1000) * 1000;
        let count = (call.rate * (window.end - window.start) as f64).floor() as u64;
        let due = (0..count).map(|n| begin_us + (n as f64 * 1e6 / call.rate) as i64).collect();
        let series = CallSeries::new(&call.name, due);
        self.series.push(series.clone());
        let (verb, created) = (call.verb, Arc::clone(&self.created));
        // A job that is not due within the run, made like those of an idle load.
        let idle = Load { kind: LoadKind::Idle, jobs: count, name: call.name.clone(), ..Load::default() };
        let frame = Arc::new(frame.clone());
        let seed = frame.seed;
        self.tasks.spawn(open_loop(series, move |n, _| {
            let job = if known.is_empty() { None } else { Some(*Random::new(seed ^ n as u64).one_of(&known)) };
            let spec = (verb == CallVerb::Create).then(|| Jobs::new(&idle, &frame).spec(n as u64));
            let (caller, created) = (caller.clone(), Arc::clone(&created));
            async move {
                let client = caller.client();
                let page = |size| PageBody { page_size: Some(size), ..PageBody::default() };
                match (verb, job, spec) {
                    (CallVerb::Create, _, Some(spec)) => match caller.create_many(&[spec]).await.first() {
                        Some(Some(id)) => {
                            created.lock().push(*id);
                            Ok(())
                        }
                        Some(None) | None => Err("NOT_CREATED".to_owned()),
                    },
                    (CallVerb::List, ..) => {
                        let filter = JobFilter { page_size: Some(50), ..JobFilter::default() };
                        answered(client.job_list(filter).await)
                    }
                    (CallVerb::Get, Some(job), _) => answered(client.job_get(job).await),
                    (CallVerb::Runs, Some(job), _) => answered(client.job_runs(job, page(20)).await),
                    (CallVerb::Create | CallVerb::Get | CallVerb::Runs, ..) => Err("NO_JOBS".to_owned()),
                }
            }
        }));
    }

    /// Waits until all calls have ended, but not for longer.
    pub async fn finish(&mut self, patience: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // What is still out is counted as not answered.
        let _ = tokio::time::timeout(patience, all).await;
    }
}

fn answered<T>(answer: Result<T, ClientError>) -> Result<(), String> {
    answer.map(drop).map_err(|error| match error {
        ClientError::Api(api) => api.code,
        ClientError::Io { .. } => "CONNECTION_LOST".to_owned(),
        ClientError::Timeout { .. } => "NO_ANSWER".to_owned(),
        ClientError::Protocol(_) => "PROTOCOL".to_owned(),
    })
}

/// Makes each call when it is due. With too many under way the next ones wait, and are late.
async fn open_loop<F>(series: CallSeries, call: impl Fn(usize, i64) -> F)
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let mut under_way = JoinSet::new();
    for n in 0..series.due_us.len() {
        let due_us = series.due_us[n];
        let early = due_us - now_us();
        if early > 0 {
            sleep(Duration::from_micros(early.unsigned_abs())).await;
        }
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let (asked, series) = (call(n, due_us), series.clone());
        under_way.spawn(async move {
            series.note(due_us, asked.await);
            drop(permit);
        });
        while under_way.try_join_next().is_some() {}
    }
    while under_way.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_was_sent_late_is_late() {
        // All were due ten seconds ago, and the first ones fill the room for a while.
        let due = now_us() - 10_000_000;
        let series = CallSeries::new("a", vec![due; CALLS_IN_FLIGHT + 10]);
        open_loop(series.clone(), |n, _| async move { if n == 0 { Err("REFUSED".to_owned()) } else { Ok(()) } }).await;
        let figures = series.figures(due + 1);
        assert_eq!((figures.due, figures.answered), (CALLS_IN_FLIGHT as u64 + 10, CALLS_IN_FLIGHT as u64 + 9));
        assert!(figures.latency.p50_ms >= 9_990.0, "{figures:?}");
        assert_eq!(figures.failed, BTreeMap::from([("REFUSED".to_owned(), 1)]));
        assert_eq!(series.figures(due).due, 0);
    }

    #[test]
    fn what_has_no_answer_has_failed() {
        let series = CallSeries::new("a", vec![1, 2, 3]);
        series.note(1, Ok(()));
        assert_eq!(series.figures(3).failed, BTreeMap::from([("NOT_ANSWERED".to_owned(), 1)]));
    }
}
