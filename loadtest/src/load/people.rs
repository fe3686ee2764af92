//! Operators during a run: they cancel runs, retry failed runs, redrive or discard dead letters, decide about runs that
//! wait for them, replace specifications, delete jobs, and pause a job, a tenant and the whole system for a moment.
//! Each job has one operator, who makes one call at a time for it; the caller records the calls.

use crate::{
    load::caller::{CallOutcome, Caller},
    random::Random,
    run_dir::lines::{BackfillLine, Verb, now_us},
    workload::worked::{BULKED, PACED, Role, edited},
};
use campanile_schema::{
    error::ErrorCode,
    ids::{BackfillId, JobId, RunId},
    job::JobSpec,
    payload::Payload,
    record::RunState,
    stored::backfill::{BackfillMode, BackfillState},
    view::{ConfirmDecision, RunView},
};
use std::{collections::VecDeque, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

/// A run must show what its person waits for within this time; longer it is left as it is.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);
/// Of its latest runs a person looks at so many again.
const LOOKED_AT: usize = 3;
/// Between two things that a person does with a job, milliseconds.
const PAUSE_MS: (u64, u64) = (300, 2_500);
/// The tenant works so long, and is paused so long, milliseconds; the same for the system.
const TENANT_MS: ((u64, u64), (u64, u64)) = ((2_000, 6_000), (300, 2_500));
const SYSTEM_MS: ((u64, u64), (u64, u64)) = ((8_000, 16_000), (300, 1_200));
/// A job is paused so long, and one that is deleted has lived so long, milliseconds.
const PAUSED_MS: (u64, u64) = (200, 3_000);
const LIFE_MS: (u64, u64) = (2_000, 20_000);
/// Calls that [`start`] makes and [`persons`] does not.
pub const OF_ALL_JOBS: [Verb; 4] = [Verb::PauseTenant, Verb::ResumeTenant, Verb::PauseSystem, Verb::ResumeSystem];
/// Whoever pauses must get it resumed, or nothing runs any more: tries, each of a caller's whole patience.
const RESUMES: u32 = 5;

fn is_over(until_ms: i64) -> bool {
    now_us() / 1000 >= until_ms
}

async fn rest(random: &mut Random, (from, to): (u64, u64)) {
    sleep(Duration::from_millis(random.between(from, to))).await;
}

/// Starts all of them; they end by themselves at `until_ms`.
pub fn start(work: &mut JoinSet<()>, caller: &Caller, jobs: Vec<(Role, JobId, JobSpec)>, until_ms: i64, seed: u64) {
    persons(work, caller, jobs, until_ms, seed);
    work.spawn(pauses_of_tenant(caller.clone(), until_ms, Random::new(seed ^ 0x7465_6e61)));
    work.spawn(pauses_of_system(caller.clone(), until_ms, Random::new(seed ^ 0x7379_7374)));
}

/// [`start`] without the pauses of a tenant and of the system. It is for loads that nodes of an earlier release carry:
/// 8f373c3 decided such pauses by the moment of the decision and not by the instant.
pub fn persons(work: &mut JoinSet<()>, caller: &Caller, jobs: Vec<(Role, JobId, JobSpec)>, until_ms: i64, seed: u64) {
    for (n, (role, job, spec)) in (1..).zip(jobs) {
        let random = Random::new(seed ^ (n << 20));
        let person = Person { caller: caller.clone(), job, spec, random, until_ms, latest: VecDeque::new() };
        work.spawn(person.work(role));
    }
}

/// Runs the past of these jobs as backfills, and cancels some of them; ends by itself at `until_ms`. What a restore has paused is resumed.
pub fn backfills(work: &mut JoinSet<()>, caller: &Caller, jobs: &[JobId], until_ms: i64, seed: u64) {
    for (n, job) in (1..).zip(jobs) {
        work.spawn(backfills_of(caller.clone(), *job, until_ms, Random::new(seed ^ (n << 24))));
    }
}

/// Pauses and resumes the jobs together by bulk operations, and retries the failed runs of the others by such; ends by itself at `until_ms`.
/// Not for loads that restore a node: that aborts bulk operations, or forgets that they were asked for.
pub fn bulks(
    work: &mut JoinSet<()>,
    caller: &Caller,
    together: &[JobId],
    failing: Vec<(JobId, JobSpec)>,
    until_ms: i64,
    seed: u64,
) {
    work.spawn(bulk_pauses(caller.clone(), together.to_vec(), until_ms, Random::new(seed ^ 0x6275_6c6b)));
    for (n, (job, spec)) in (1..).zip(failing) {
        let random = Random::new(seed ^ (n << 28));
        let mut person = Person { caller: caller.clone(), job, spec, random, until_ms, latest: VecDeque::new() };
        work.spawn(async move {
            let mut turn = 0;
            while !is_over(until_ms) {
                turn += 1;
                person.repeats_in_bulk(turn).await;
                rest(&mut person.random, PAUSE_MS).await;
            }
        });
    }
}

async fn bulk_pauses(caller: Caller, jobs: Vec<JobId>, until_ms: i64, mut random: Random) {
    loop {
        rest(&mut random, PAUSE_MS).await;
        if is_over(until_ms) {
            return;
        }
        let paused = caller.bulk_pause(&jobs, BULKED).await;
        if matches!(paused, CallOutcome::Refused(_)) {
            continue;
        }
        rest(&mut random, PAUSED_MS).await;
        // Also resumed when nobody knows whether they were paused.
        for turn in 0..RESUMES {
            let resumed = match &paused {
                CallOutcome::Done(id) if turn == 0 && random.percent(40) => caller.bulk_undo(&jobs, *id).await,
                CallOutcome::Done(_) | CallOutcome::Refused(_) | CallOutcome::Open => {
                    caller.bulk_resume(&jobs, BULKED).await
                }
            };
            if matches!(resumed, CallOutcome::Done(_)) {
                break;
            }
        }
    }
}

async fn backfills_of(caller: Caller, job: JobId, until_ms: i64, mut random: Random) {
    while !is_over(until_ms) {
        let to_ms = now_us() / 1000;
        let stretch = BackfillLine {
            id: None,
            mode: BackfillMode::Missing,
            from_ms: to_ms - random.between(10, 90) as i64 * 1_000,
            to_ms,
            parallelism: random.between(1, 4) as u32,
            unknown_run: false,
        };
        if let CallOutcome::Done(id) = caller.backfill(job, stretch).await {
            if random.percent(25) {
                rest(&mut random, (0, 300)).await;
                caller.cancel_backfill(job, BackfillLine { id: Some(id.0), ..stretch }).await;
            } else {
                backfill_ends(&caller, job, id).await;
            }
        } else {
            // One that a restored node remembers may be open, and paused.
            resume(&caller, job).await;
        }
        rest(&mut random, PAUSE_MS).await;
    }
}

async fn backfill_ends(caller: &Caller, job: JobId, id: BackfillId) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match caller.client().backfill_get(id).await {
            Ok(backfill) if backfill.state.is_some_and(BackfillState::is_final) => return,
            Ok(backfill) if backfill.state == Some(BackfillState::Paused) => resume(caller, job).await,
            // A node that was restored has forgotten it.
            Err(error) if error.api().is_some_and(|api| api.known() == ErrorCode::NotFound) => {
                return resume(caller, job).await;
            }
            Ok(_) | Err(_) => {}
        }
        sleep(LOOK).await;
    }
}

/// Lets the job's newest backfill go on, if a restore has paused it.
async fn resume(caller: &Caller, job: JobId) {
    let Ok(newest) = caller.client().job_backfill_get(job).await else { return };
    if let (Some(id), Some(BackfillState::Paused)) = (newest.backfill_id, newest.state) {
        // Without an answer the next look tries it again.
        let _ = caller.client().backfill_resume(id, Some("loadtest")).await;
    }
}

struct Person {
    caller: Caller,
    job: JobId,
    spec: JobSpec,
    random: Random,
    until_ms: i64,
    /// Its latest runs: one that ended may wait for a decision on a restored node, where it has not ended.
    latest: VecDeque<RunId>,
}

impl Person {
    async fn work(mut self, role: Role) {
        let mut turn = 0;
        while !is_over(self.until_ms) {
            turn += 1;
            match role {
                Role::Canceled => self.cancels(turn).await,
                Role::Fails => self.repeats(turn).await,
                Role::TimesOut => {
                    self.triggers(turn, None).await;
                }
                Role::NotIdempotent => self.decides(turn).await,
                Role::Secret => {
                    let params = self.random.percent(50).then(|| Payload(format!("{{\"bodyMs\":{turn}}}")));
                    self.triggers(turn, params).await;
                }
                Role::Edited => self.edits().await,
                Role::Paused => self.pauses().await,
                Role::Deleted => {
                    rest(&mut self.random, LIFE_MS).await;
                    self.caller.delete(self.job).await;
                    return;
                }
                // Their schedules say it all.
                Role::Jittered | Role::Delayed | Role::Paced => return,
            }
            rest(&mut self.random, PAUSE_MS).await;
        }
    }

    async fn triggers(&self, turn: u32, params: Option<Payload>) -> Option<RunId> {
        match self.caller.trigger_with(self.job, format!("p-{}-{turn}", self.job.0), params).await {
            CallOutcome::Done(run) => Some(run),
            CallOutcome::Refused(_) | CallOutcome::Open => None,
        }
    }

    /// The run, once it is as wanted.
    async fn until(&self, run: RunId, wanted: impl Fn(&RunView) -> bool) -> Option<RunView> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Ok(view) = self.caller.client().run_get(run).await
                && view.job_id == self.job
                && wanted(&view)
            {
                return Some(view);
            }
            sleep(LOOK).await;
        }
        None
    }

    async fn cancels(&mut self, turn: u32) {
        let Some(run) = self.triggers(turn, None).await else { return };
        // From before its body begins to after its end, where it must be refused.
        rest(&mut self.random, (0, 1_500)).await;
        // A node that was restored meanwhile may have given the id to another job's run.
        if self.caller.client().run_get(run).await.is_ok_and(|run| run.job_id == self.job) {
            self.caller.cancel(self.job, run).await;
        }
    }

    async fn repeats(&mut self, turn: u32) {
        let Some(run) = self.triggers(turn, None).await else { return };
        let failed = |run: &RunView| run.state == RunState::Failed;
        let Some(first) = self.until(run, failed).await else { return };
        let again = match self.random.below(3) {
            0 => self.caller.retry(self.job, run).await,
            1 => self.caller.redrive(self.job, run).await,
            _ => CallOutcome::Done(()),
        };
        if again != CallOutcome::Done(()) {
            return;
        }
        // Repeated, it fails once more, and is a dead letter again.
        if self
            .until(run, |run| failed(run) && (run.generation > first.generation || first.dead_letter))
            .await
            .is_some()
        {
            self.caller.discard(self.job, run).await;
        }
    }

    async fn repeats_in_bulk(&mut self, turn: u32) {
        let Some(run) = self.triggers(turn, None).await else { return };
        let failed = |run: &RunView| run.state == RunState::Failed;
        let Some(first) = self.until(run, failed).await else { return };
        let Some(ended_at) = first.ended_at else { return };
        if self.caller.bulk_retry(&first, ended_at).await == CallOutcome::Done(()) {
            self.until(run, |run| failed(run) && run.generation > first.generation).await;
        }
    }

    /// Most runs end by themselves; one whose executor was lost waits for a decision, and one whose end a restored node has forgotten.
    async fn decides(&mut self, turn: u32) {
        for run in self.latest.clone() {
            if let Ok(view) = self.caller.client().run_get(run).await
                && view.job_id == self.job
            {
                self.decide(&view).await;
            }
        }
        let Some(run) = self.triggers(turn, None).await else { return };
        self.latest.push_back(run);
        if self.latest.len() > LOOKED_AT {
            self.latest.pop_front();
        }
        let ended = |run: &RunView| run.ended_at.is_some() || run.state == RunState::NeedsConfirmation;
        let Some(view) = self.until(run, ended).await else { return };
        self.decide(&view).await;
    }

    async fn decide(&mut self, run: &RunView) {
        if run.state == RunState::NeedsConfirmation {
            let decision = *self.random.one_of(&[
                ConfirmDecision::Rerun,
                ConfirmDecision::Rerun,
                ConfirmDecision::Succeeded,
                ConfirmDecision::Failed,
            ]);
            self.caller.confirm(self.job, run.run_id, decision).await;
        }
    }

    async fn pauses(&mut self) {
        // Also resumed when nobody knows whether it was paused: its runs would wait for ever.
        if matches!(self.caller.pause(self.job).await, CallOutcome::Done(()) | CallOutcome::Open) {
            rest(&mut self.random, PAUSED_MS).await;
            for _ in 0..RESUMES {
                if self.caller.resume(self.job).await == CallOutcome::Done(()) {
                    break;
                }
            }
        }
    }

    async fn edits(&mut self) {
        let spec = edited(&self.spec, &mut self.random);
        if self.caller.edit(self.job, spec.clone()).await == CallOutcome::Done(()) {
            self.spec = spec;
        }
    }
}

async fn pauses_of_tenant(caller: Caller, until_ms: i64, mut random: Random) {
    loop {
        rest(&mut random, TENANT_MS.0).await;
        if is_over(until_ms) {
            return;
        }
        caller.pause_tenant(PACED).await;
        rest(&mut random, TENANT_MS.1).await;
        for _ in 0..RESUMES {
            if caller.resume_tenant(PACED).await == CallOutcome::Done(()) {
                break;
            }
        }
    }
}

async fn pauses_of_system(caller: Caller, until_ms: i64, mut random: Random) {
    loop {
        rest(&mut random, SYSTEM_MS.0).await;
        if is_over(until_ms) {
            return;
        }
        caller.pause_system().await;
        rest(&mut random, SYSTEM_MS.1).await;
        for _ in 0..RESUMES {
            if caller.resume_system().await == CallOutcome::Done(()) {
                break;
            }
        }
    }
}
