//! Creates the jobs of all loads before the run.

use super::{early::Early, stop::Stop, traces::Traces};
use crate::{
    limits::{CALLS_IN_FLIGHT, CREATE_BATCH, CREATES_IN_FLIGHT},
    load::caller::Caller,
    run_dir::lines::now_us,
    scenario::{
        Api, LoadKind, Scenario,
        jobs::{Frame, Jobs},
    },
};
use campanile_schema::ids::JobId;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

/// First guesses of what one create takes, microseconds: some times what it takes on the slowest machine of docs/performance.md, as a guess that
/// was too short costs the whole creation.
const CREATE_US: i64 = if cfg!(debug_assertions) { 400 } else { 40 };
const CREATE_HTTP_US: i64 = if cfg!(debug_assertions) { 800 } else { 150 };
/// Tries to have all jobs there before the first instant.
const ROUNDS: u32 = 3;
/// Batches under way when somebody asks for the end get so long: what they make has to be deleted again.
const LAST_BATCHES: Duration = Duration::from_secs(10);

/// Who creates, who may ask for the end, and who has to know what was made.
pub(super) struct Maker<'a> {
    pub caller: &'a Caller,
    pub stop: &'a Stop,
    pub traces: &'a Traces,
    pub tell: &'a dyn Fn(&str),
}

/// What was created.
pub(super) struct Created {
    pub frame: Frame,
    /// In the order of the loads.
    pub jobs: Vec<Vec<JobId>>,
    pub took_ms: i64,
}

impl Created {
    pub fn all(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.iter().flatten().copied()
    }
}

/// Creates all jobs. Their anchors are part of them, so that the start of the run is fixed before: when the time was too short,
/// they are made anew.
pub(super) async fn create(scenario: &Scenario, maker: &Maker<'_>, mark: &str) -> Result<Created, Early> {
    let settle_ms = scenario.settle_s as i64 * 1000;
    let frame_at = |start_ms: i64, mark: String| Frame::new(scenario, (start_ms + 999).div_euclid(1000) * 1000, mark);
    let begin_ms = now_us() / 1000;
    let mut jobs: Vec<Vec<JobId>> = vec![Vec::new(); scenario.loads.len()];
    // What is never due needs no start, and tells how fast creates are.
    let early = frame_at(begin_ms, mark.to_owned());
    let idle = |n: &usize| matches!(scenario.loads[*n].kind, LoadKind::Idle);
    for n in (0..jobs.len()).filter(idle) {
        jobs[n] = maker.load(&Jobs::new(&scenario.loads[n], &early)).await?;
    }
    let idle_count = jobs.iter().map(Vec::len).sum::<usize>() as i64;
    let due: Vec<usize> = (0..jobs.len()).filter(|n| !idle(n)).collect();
    let count: u64 = due.iter().map(|n| Jobs::new(&scenario.loads[*n], &early).count()).sum();
    let seen_us = (now_us() / 1000 - begin_ms) * 1000;
    let first_guess = match scenario.create {
        Api::Rpc => CREATE_US,
        Api::Http => CREATE_HTTP_US,
    };
    let each_us = if idle_count >= 10_000 { seen_us / idle_count * 2 } else { first_guess };
    let mut guess_ms = count as i64 * each_us / 1000 + 500;
    for round in 1..=ROUNDS {
        let frame = frame_at(now_us() / 1000 + guess_ms + settle_ms, format!("{mark}-{round}"));
        for n in &due {
            jobs[*n] = maker.load(&Jobs::new(&scenario.loads[*n], &frame)).await?;
        }
        let now_ms = now_us() / 1000;
        if now_ms + settle_ms / 2 <= frame.start_ms {
            return Ok(Created { frame, jobs, took_ms: now_ms - begin_ms });
        }
        (maker.tell)("the jobs took longer to create than was foreseen; they are made anew with more time");
        let made: Vec<JobId> = due.iter().flat_map(|n| std::mem::take(&mut jobs[*n])).collect();
        tokio::select! {
            () = delete(maker.caller, &made) => {}
            () = maker.stop.wanted() => return Err(Early::Interrupted),
        }
        guess_ms *= 3;
    }
    Err(Early::NotRun(format!("{count} jobs take too long to create: give fewer jobs, or a longer settle_s")))
}

impl Maker<'_> {
    async fn load(&self, jobs: &Jobs<'_>) -> Result<Vec<JobId>, Early> {
        let count = jobs.count();
        let mut made: Vec<(u64, Vec<Option<JobId>>)> = Vec::new();
        let mut batches = JoinSet::new();
        let (mut next, mut told, mut done) = (0, now_us(), 0);
        loop {
            while next < count && batches.len() < CREATES_IN_FLIGHT && !self.stop.is_wanted() {
                let specs: Vec<_> = (next..(next + CREATE_BATCH as u64).min(count)).map(|n| jobs.spec(n)).collect();
                let (caller, traces, first) = (self.caller.clone(), self.traces.clone(), next);
                next += specs.len() as u64;
                batches.spawn(async move {
                    let made = caller.create_many(&specs).await;
                    traces.add_jobs(made.iter().flatten().copied());
                    (first, made)
                });
            }
            let batch = tokio::select! {
                batch = batches.join_next() => batch,
                () = self.stop.wanted() => {
                    let all = async { while batches.join_next().await.is_some() {} };
                    // What is still out then is looked for by its name.
                    let _ = timeout(LAST_BATCHES, all).await;
                    return Err(Early::Interrupted);
                }
            };
            let Some(batch) = batch else { break };
            let batch = batch.map_err(|error| Early::NotRun(error.to_string()))?;
            done += batch.1.len();
            if let Some(missing) = batch.1.iter().position(Option::is_none) {
                return Err(Early::NotRun(refused(self.caller, jobs, batch.0 + missing as u64).await));
            }
            made.push(batch);
            if now_us() - told > 2_000_000 {
                told = now_us();
                (self.tell)(&format!("{done} of {count} jobs created"));
            }
        }
        made.sort_unstable_by_key(|(first, _)| *first);
        Ok(made.into_iter().flat_map(|(_, ids)| ids).flatten().collect())
    }
}

/// Asks once more for the one that was not created, for the node's own words.
async fn refused(caller: &Caller, jobs: &Jobs<'_>, n: u64) -> String {
    let spec = jobs.spec(n);
    let name = spec.name.clone();
    match caller.create_once(spec).await {
        Ok(_) => {
            format!("the node first did not create the job {name}, then it did: it is overloaded or was restarted")
        }
        Err(error) => format!("the node does not create the job {name}: {error}"),
    }
}

/// Deletes jobs; those that are gone already are no error.
async fn delete(caller: &Caller, jobs: &[JobId]) {
    let room = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let mut calls = JoinSet::new();
    for job in jobs.iter().copied() {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let caller = caller.clone();
        calls.spawn(async move {
            caller.delete(job).await;
            drop(permit);
        });
        while calls.try_join_next().is_some() {}
    }
    while calls.join_next().await.is_some() {}
}
