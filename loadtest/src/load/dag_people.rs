//! Those who work with DAGs during a run: each triggers one DAG again and again, waits for its end, cancels some runs while their nodes run, and
//! lets some that failed go on.

use crate::{
    load::caller::{CallOutcome, Caller},
    random::Random,
    run_dir::lines::now_us,
    workload::dags::DagJobs,
};
use campanile_schema::{
    ids::{JobId, RunId},
    job::JobSpec,
    payload::Payload,
    record::RunState,
    view::RunView,
};
use std::time::Duration;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// A run is waited for so long; then its person goes on with the next one.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(150);
/// Between two triggers of one DAG, and from a trigger to its cancel, milliseconds.
const PAUSE_MS: (u64, u64) = (100, 900);
const CANCEL_MS: (u64, u64) = (0, 1_200);
/// Of 100 runs: those that are canceled, and, of those that failed, those that go on.
const CANCELED: u64 = 15;
const RETRIED: u64 = 60;

/// A cluster that has just begun takes DAGs when all of its nodes have said that they know them.
const CREATED: Duration = Duration::from_secs(20);

/// DAGs that were created.
#[derive(Clone, Debug, Default)]
pub struct DagIds {
    pub all: Vec<JobId>,
    /// Those that nobody but a person triggers.
    pub by_hand: Vec<JobId>,
}

/// Creates DAGs; the jobs of their nodes must be there.
pub async fn create(caller: &Caller, specs: &[JobSpec]) -> Result<DagIds, String> {
    let deadline = Instant::now() + CREATED;
    let mut ids = DagIds::default();
    let mut left: Vec<&JobSpec> = specs.iter().collect();
    while !left.is_empty() {
        let batch: Vec<JobSpec> = left.iter().map(|spec| (*spec).clone()).collect();
        let made = caller.create_many(&batch).await;
        for (spec, job) in left.iter().zip(&made) {
            ids.all.extend(job);
            ids.by_hand.extend(job.filter(|_| DagJobs::is_by_hand(spec)));
        }
        left = left.into_iter().zip(made).filter(|(_, job)| job.is_none()).map(|(spec, _)| spec).collect();
        if !left.is_empty() && Instant::now() > deadline {
            return Err(format!("only {} of {} DAGs were created", ids.all.len(), specs.len()));
        }
        if !left.is_empty() {
            sleep(LOOK).await;
        }
    }
    Ok(ids)
}

/// Starts all of them; they end by themselves at `until_ms`.
pub fn start(work: &mut JoinSet<()>, caller: &Caller, dags: &[JobId], until_ms: i64, seed: u64) {
    for (n, job) in (1..).zip(dags) {
        let person = Person { caller: caller.clone(), job: *job, random: Random::new(seed ^ (n << 28)) };
        work.spawn(person.work(until_ms));
    }
}

struct Person {
    caller: Caller,
    job: JobId,
    random: Random,
}

impl Person {
    async fn work(mut self, until_ms: i64) {
        let mut turn = 0;
        while now_us() / 1000 < until_ms {
            turn += 1;
            let params = self.random.percent(50).then(|| Payload(format!("{{\"turn\":{turn}}}")));
            let asked = self.caller.trigger_with(self.job, format!("d-{}-{turn}", self.job.0), params);
            if let CallOutcome::Done(run) = asked.await {
                self.follow(run).await;
            }
            self.rest(PAUSE_MS).await;
        }
    }

    async fn follow(&mut self, run: RunId) {
        if self.random.percent(CANCELED) {
            self.rest(CANCEL_MS).await;
            // A node that was restored meanwhile may have given the id to another job's run.
            if self.is_mine(run).await {
                self.caller.cancel(self.job, run).await;
            }
        }
        let Some(ended) = self.end_of(run).await else { return };
        if ended.state == RunState::Failed && self.random.percent(RETRIED) {
            let retried = match self.random.percent(50) {
                true => self.caller.retry_undone(self.job, run).await,
                // Refused, where what it did was undone.
                false => self.caller.retry(self.job, run).await,
            };
            if retried == CallOutcome::Done(()) {
                self.end_of(run).await;
            }
        }
    }

    async fn is_mine(&self, run: RunId) -> bool {
        self.caller.client().run_get(run).await.is_ok_and(|run| run.job_id == self.job)
    }

    async fn end_of(&self, run: RunId) -> Option<RunView> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Ok(view) = self.caller.client().run_get(run).await
                && view.job_id == self.job
                && view.ended_at.is_some()
            {
                return Some(view);
            }
            sleep(LOOK).await;
        }
        None
    }

    async fn rest(&mut self, (from, to): (u64, u64)) {
        sleep(Duration::from_millis(self.random.between(from, to))).await;
    }
}
