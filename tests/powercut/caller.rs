//! A caller: one call after the other about jobs that are its own, so that at most one of them is open when the power goes.

use crate::{
    clock::TestClock,
    model::{Job, Key, Open},
    plan::Plan,
    random::Random,
    story::Story,
};
use campanile_actors::scheduler::Scheduler;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::RunId,
    job::JobStatus,
    view::{ConfirmDecision, TenantBody, TriggerBody},
};
use std::sync::Arc;
use tokio::sync::watch;

/// Jobs of one caller that are not deleted.
const JOBS: usize = 6;

/// What a call led to.
pub enum Said<T> {
    Yes(T),
    /// Refused: nothing changed.
    No(ApiError),
    /// It may or may not have happened.
    Nothing,
}

pub fn said<T>(answer: Answer<T>) -> Result<Said<T>, String> {
    match answer {
        Ok(yes) => Ok(Said::Yes(yes)),
        Err(e) => match e.known() {
            ErrorCode::NotReady | ErrorCode::Timeout => Ok(Said::Nothing),
            ErrorCode::Internal => Err(format!("a bug answered: {e}")),
            _ => Ok(Said::No(e)),
        },
    }
}

/// Quota and pause of a tenant; None: the last call about it had no answer.
#[derive(Default)]
pub struct Tenant {
    pub name: String,
    pub quota: Option<TenantBody>,
    pub paused: Option<bool>,
}

pub struct Caller {
    pub index: u64,
    pub random: Random,
    pub jobs: Vec<Job>,
    /// Creates without an answer.
    pub creating: Vec<(String, Plan)>,
    /// Names that were found not to be there after all.
    pub absent: Vec<String>,
    /// Each caller has a tenant of its own.
    pub tenant: Tenant,
    pub acknowledged: u64,
    pub clock: Arc<TestClock>,
    pub story: Story,
    names: u64,
}

impl Caller {
    pub fn new(index: u64, random: Random, clock: Arc<TestClock>, story: Story) -> Self {
        let tenant =
            Tenant { name: format!("tenant-{index}"), quota: Some(TenantBody::default()), paused: Some(false) };
        Self {
            index,
            random,
            jobs: Vec::new(),
            creating: Vec::new(),
            absent: Vec::new(),
            tenant,
            acknowledged: 0,
            clock,
            story,
            names: 0,
        }
    }

    /// Calls until it is told to stop, or a call had no answer.
    pub async fn work(
        mut self,
        node: Scheduler,
        stop: watch::Receiver<bool>,
        progress: watch::Sender<u64>,
    ) -> (Self, Result<(), String>) {
        while !*stop.borrow() {
            match self.call(&node).await {
                Ok(true) => progress.send_modify(|n| *n += 1),
                Ok(false) => break,
                Err(why) => return (self, Err(why)),
            }
        }
        (self, Ok(()))
    }

    /// One call. False when it had no answer.
    async fn call(&mut self, node: &Scheduler) -> Result<bool, String> {
        let live = self.jobs.iter().filter(|j| !j.is_deleted()).count();
        let before = self.acknowledged;
        let answered = match self.random.below(32) {
            _ if live == 0 => self.create(node).await,
            0..=2 if live < JOBS => self.create(node).await,
            3 if live < JOBS => self.create_many(node).await,
            4..=6 => self.set_status(node, JobStatus::Paused).await,
            7..=10 => self.set_status(node, JobStatus::Enabled).await,
            11 => self.set_status(node, JobStatus::Deleted).await,
            12..=14 => self.replace(node).await,
            15..=16 => self.cancel(node).await,
            17..=19 => self.retry(node).await,
            20 => self.confirm(node).await,
            21 => self.set_quota(node).await,
            22 => self.set_tenant_paused(node).await,
            _ => self.trigger(node).await,
        };
        if self.acknowledged == before && answered == Ok(false) {
            self.story.tell(format!("caller {}: no answer", self.index));
        }
        answered
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        self.acknowledged += 1;
        self.story.tell(format!("caller {}: {}", self.index, what()));
    }

    fn new_job(&mut self) -> (String, Plan) {
        self.names += 1;
        let plan = Plan::draw(&mut self.random, self.clock.now_ms());
        (format!("job-{}-{}", self.index, self.names), plan)
    }

    /// A job that is not deleted.
    fn some_job(&mut self) -> Option<usize> {
        let live: Vec<usize> = (0..self.jobs.len()).filter(|i| !self.jobs[*i].is_deleted()).collect();
        self.random.pick(&live).copied()
    }

    async fn create(&mut self, node: &Scheduler) -> Result<bool, String> {
        let (name, plan) = self.new_job();
        let spec = plan.spec(&self.tenant.name, &name);
        let key = self.random.one_in(2).then(|| name.clone());
        match said(node.create_job(spec, key).await)? {
            Said::Yes(created) => {
                self.tell(|| format!("created job {} '{name}' {:?}", created.job_id, plan.when));
                self.jobs.push(Job::new(created.job_id, &self.tenant.name, &name, plan));
            }
            // A ONCE that is over by now.
            Said::No(_) => self.absent.push(name),
            Said::Nothing => {
                self.creating.push((name, plan));
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn create_many(&mut self, node: &Scheduler) -> Result<bool, String> {
        let count = self.random.between(2, 4);
        let many: Vec<(String, Plan)> = (0..count).map(|_| self.new_job()).collect();
        let specs = many.iter().map(|(name, plan)| plan.spec(&self.tenant.name, name)).collect();
        let mut answered = true;
        for ((name, plan), answer) in many.into_iter().zip(node.create_jobs(specs).await) {
            match said(answer)? {
                Said::Yes(created) => {
                    self.tell(|| format!("created job {} '{name}' {:?} of many", created.job_id, plan.when));
                    self.jobs.push(Job::new(created.job_id, &self.tenant.name, &name, plan));
                }
                Said::No(_) => self.absent.push(name),
                Said::Nothing => {
                    self.creating.push((name, plan));
                    answered = false;
                }
            }
        }
        Ok(answered)
    }

    async fn set_status(&mut self, node: &Scheduler, status: JobStatus) -> Result<bool, String> {
        let Some(at) = self.some_job() else { return Ok(true) };
        let id = self.jobs[at].id;
        let answer = match status {
            JobStatus::Paused => node.pause_job(id, Some("test".to_owned())).await.map(Some),
            JobStatus::Enabled => node.resume_job(id, None).await.map(Some),
            JobStatus::Deleted => node.delete_job(id, None).await.map(|()| None),
        };
        match said(answer)? {
            Said::Yes(view) => {
                self.tell(|| format!("job {id} is {status}"));
                let job = &mut self.jobs[at];
                job.status = status;
                view.map_or(Ok(true), |view| job.seen(&view).map(|()| true))
            }
            Said::No(e) => Err(format!("job {id} could not become {status}: {e}")),
            Said::Nothing => {
                self.jobs[at].open = Some(Open::Status(status));
                Ok(false)
            }
        }
    }

    async fn replace(&mut self, node: &Scheduler) -> Result<bool, String> {
        let Some(at) = self.some_job() else { return Ok(true) };
        let plan = Plan::draw(&mut self.random, self.clock.now_ms());
        let job = &self.jobs[at];
        let (id, version, spec) = (job.id, job.version(), plan.spec(&job.tenant, &job.name));
        match said(node.replace_job(id, version, spec).await)? {
            Said::Yes(view) => {
                self.tell(|| format!("job {id} has version {} {:?}", version + 1, plan.when));
                let job = &mut self.jobs[at];
                job.plans.push(plan);
                job.seen(&view).map(|()| true)
            }
            // A ONCE that is over by now; an anchor or instant that cannot be.
            Said::No(e) if matches!(e.known(), ErrorCode::ScheduleNeverFires | ErrorCode::InvalidArgument) => Ok(true),
            Said::No(e) => Err(format!("version {version} of job {id} could not be replaced: {e}")),
            Said::Nothing => {
                self.jobs[at].open = Some(Open::Replaced(plan));
                Ok(false)
            }
        }
    }

    async fn trigger(&mut self, node: &Scheduler) -> Result<bool, String> {
        let Some(at) = self.some_job() else { return Ok(true) };
        let again = self.random.one_in(3);
        let key = match self.random.pick(&self.jobs[at].keys).filter(|_| again) {
            Some(key) => key.text.clone(),
            None => {
                let key = Key { text: format!("key-{}", self.jobs[at].keys.len()), run: None };
                self.jobs[at].keys.push(key.clone());
                key.text
            }
        };
        self.trigger_key(node, at, &key).await
    }

    /// Triggers with a key, old or new, and holds the answer against what is known of it.
    pub async fn trigger_key(&mut self, node: &Scheduler, at: usize, key: &str) -> Result<bool, String> {
        let job = &mut self.jobs[at];
        let body = TriggerBody { manual_run_id: Some(key.to_owned()), params: None, reason: None, callback: None };
        let answer = said(node.trigger(job.id, body).await)?;
        let Some(known) = job.keys.iter_mut().find(|k| k.text == key) else { return Ok(true) };
        match answer {
            Said::Yes(view) => {
                let run = *known.run.get_or_insert(view.run_id);
                if run != view.run_id {
                    return Err(format!("key {key} of job {} made run {run}, and now run {}", job.id, view.run_id));
                }
                if view.key.as_deref() != Some(key) {
                    return Err(format!("key {key} of job {} led to {view:?}", job.id));
                }
                job.run_seen(&view)?;
                let id = job.id;
                self.tell(|| format!("{key} of job {id} is run {run}, {}", view.state));
                Ok(true)
            }
            Said::No(e) => {
                if let Some(run) = known.run {
                    return Err(format!("key {key} of job {} made run {run}, and now: {e}", job.id));
                }
                let paused = job.status == JobStatus::Paused || self.tenant.paused != Some(false);
                let wrong = match e.known() {
                    ErrorCode::NotFound => !job.is_deleted(),
                    ErrorCode::JobPaused => !paused,
                    _ => false,
                };
                if wrong { Err(format!("job {} is {}, but: {e}", job.id, job.status)) } else { Ok(true) }
            }
            Said::Nothing => Ok(false),
        }
    }

    /// A known run of a job that is not deleted.
    fn some_run(&mut self, ended: bool) -> Option<(usize, RunId)> {
        let at = self.some_job()?;
        let runs: Vec<RunId> = self.jobs[at]
            .runs
            .iter()
            .filter(|(_, r)| r.ended.is_some_and(|(generation, _)| generation == r.generation) == ended)
            .map(|(id, _)| *id)
            .collect();
        self.random.pick(&runs).map(|run| (at, *run))
    }

    async fn cancel(&mut self, node: &Scheduler) -> Result<bool, String> {
        let Some((at, run)) = self.some_run(false) else { return Ok(true) };
        match said(node.cancel_run(run, None).await)? {
            Said::Yes(view) => {
                self.tell(|| format!("canceled run {run}, {}", view.state));
                self.jobs[at].run_seen(&view).map(|()| true)
            }
            Said::No(_) => Ok(true),
            Said::Nothing => Ok(false),
        }
    }

    async fn retry(&mut self, node: &Scheduler) -> Result<bool, String> {
        let Some((at, run)) = self.some_run(true) else { return Ok(true) };
        let Some(known) = self.jobs[at].runs.get_mut(&run) else { return Ok(true) };
        known.reopened += 1;
        let before = known.generation;
        let redrive = self.random.one_in(2);
        match said(node.retry_run(run, redrive, None).await)? {
            Said::Yes(view) => {
                self.tell(|| format!("run {run} again, generation {}", view.generation));
                self.jobs[at].run_seen(&view)?;
                if view.generation == before {
                    return Err(format!("a retry was answered and did not raise the generation: {view:?}"));
                }
            }
            Said::No(_) => {
                // This one did nothing; one before it, that had no answer and that nobody looked at since, may have.
                if let Some(known) = self.jobs[at].runs.get_mut(&run) {
                    known.reopened -= 1;
                }
            }
            Said::Nothing => return Ok(false),
        }
        Ok(true)
    }

    async fn confirm(&mut self, node: &Scheduler) -> Result<bool, String> {
        let Some((at, run)) = self.some_run(false) else { return Ok(true) };
        let decision = *self.random.pick(ConfirmDecision::ALL).unwrap_or(&ConfirmDecision::Rerun);
        match said(node.confirm_run(run, decision, None).await)? {
            Said::Yes(view) => {
                self.tell(|| format!("run {run} confirmed as {decision}, {}", view.state));
                self.jobs[at].run_seen(&view).map(|()| true)
            }
            Said::No(_) => Ok(true),
            Said::Nothing => Ok(false),
        }
    }

    async fn set_quota(&mut self, node: &Scheduler) -> Result<bool, String> {
        let quota = TenantBody {
            max_concurrent_runs: self.random.below(2) as u32 * 3,
            max_queued_runs: 500 + self.random.below(500) as u32,
            ..TenantBody::default()
        };
        // Whatever was known: this call settles it, or leaves it open.
        self.tenant.quota = None;
        match said(node.set_tenant(&self.tenant.name, quota.clone()).await)? {
            Said::Yes(_) => {
                self.tell(|| format!("quota {quota:?}"));
                self.tenant.quota = Some(quota);
                Ok(true)
            }
            Said::No(e) => Err(format!("the quota was refused: {e}")),
            Said::Nothing => Ok(false),
        }
    }

    async fn set_tenant_paused(&mut self, node: &Scheduler) -> Result<bool, String> {
        // Mostly back to work: a paused tenant shows little.
        let paused = self.tenant.paused == Some(false) && self.random.one_in(2);
        self.pause_tenant(node, paused).await
    }

    pub async fn pause_tenant(&mut self, node: &Scheduler, paused: bool) -> Result<bool, String> {
        self.tenant.paused = None;
        match said(node.set_paused(Some(&self.tenant.name), paused, None).await)? {
            // Kept, and on its way to some shards when the power went.
            Said::Yes(spread) if !spread.outstanding.is_empty() => Ok(false),
            Said::Yes(_) => {
                self.tell(|| format!("tenant paused: {paused}"));
                self.tenant.paused = Some(paused);
                Ok(true)
            }
            // It is known only once it has a job, a quota or a pause.
            Said::No(e) if e.known() == ErrorCode::NotFound => {
                self.tenant.paused = Some(false);
                Ok(true)
            }
            Said::No(e) => Err(format!("the pause was refused: {e}")),
            Said::Nothing => Ok(false),
        }
    }
}
