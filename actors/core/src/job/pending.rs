//! Computes which effects a job still owes, from its state. It is called after a crash or a move of the shard, when the
//! effects of durable decisions may have been lost. A repeated effect is harmless: the pool knows runs by their id,
//! executors attempts by their token.

use super::{
    effect::{Effect, Need, WaitingRun},
    rules::{Rule, kept},
    state::{Job, OpenRun},
};
use crate::channels::Placed;
use campanile_schema::{record::RunState, rpc::executor::Held};

pub(crate) fn waiting(job: &Job, open: &OpenRun, since_ms: i64) -> Box<WaitingRun> {
    let (cpu, memory_mb, storage_mb) = job.def.resources.unwrap_or((0.1, 64, 0));
    Box::new(WaitingRun {
        run: open.id(),
        job: job.id,
        tenant: job.def.permits(),
        pool: job.def.place(),
        priority: open.record.priority.filter(|_| kept(Rule::OwnPriorityCounts)).unwrap_or(job.def.priority),
        backfill: open.record.is_back(),
        need: Need::of(&job.def),
        cpu,
        memory_mb,
        storage_mb,
        since_ms,
        target: job.def.target.clone(),
        retry: open.tried > 0,
    })
}

/// Takes back what the queued runs of a job asked for: it starts nothing from now on. Resuming it asks again.
pub fn withdrawn(job: &Job) -> Vec<Effect> {
    let queued = job.hot.runs.iter().filter(|open| open.state() == RunState::Queued);
    let (tenant, pool) = (job.def.permits(), job.def.place());
    queued.map(|open| Effect::Dequeue { run: open.id(), tenant: tenant.clone(), pool: pool.clone() }).collect()
}

/// Effects that the state calls for.
pub fn pending(job: &Job) -> Vec<Effect> {
    job.hot.runs.iter().filter_map(|open| owed(job, open)).flatten().collect()
}

fn owed(job: &Job, open: &OpenRun) -> Option<Vec<Effect>> {
    match open.state() {
        // It asks when the job is resumed.
        RunState::Queued if job.holds_runs() => None,
        RunState::Queued => Some(vec![Effect::Enqueue(waiting(job, open, open.record.created_ms))]),
        RunState::Running | RunState::SuspectedLost => {
            let (session, attempt) = (open.session?, open.attempt()?);
            let held = Held { run: open.id(), job: job.id, token: attempt.token };
            let mut owed = vec![Effect::Watch {
                session,
                credential: open.credential.clone(),
                held,
                tenant: job.def.permits(),
                pool: job.def.place(),
                executor: attempt.executor.clone(),
                moved_from: None,
                target: job.def.target.clone(),
            }];
            if open.stopping.is_some() {
                owed.push(Effect::Stop { session, held });
            }
            Some(owed)
        }
        RunState::Pending | RunState::RetryWait | RunState::NeedsConfirmation => None,
        RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => None,
    }
}
