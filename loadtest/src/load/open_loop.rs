//! Calls during a run, open loop: manual triggers, pauses, deletes, new jobs. A call does not wait for the answers of
//! earlier calls.

use crate::{
    limits::CALLS_IN_FLIGHT,
    load::caller::{CallOutcome, Caller},
    random::Random,
    run_dir::lines::now_us,
    workload::{self, Plan},
};
use campanile_schema::{ids::JobId, job::JobSpec};
use parking_lot::Mutex;
use serde::Serialize;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// How calls ended.
#[derive(Debug, Default, Serialize)]
pub struct CallCounts {
    pub done: AtomicU64,
    pub refused: AtomicU64,
    pub open: AtomicU64,
    /// Not asked, because too many were under way.
    pub not_asked: AtomicU64,
}

impl CallCounts {
    fn count<T>(&self, known: &CallOutcome<T>) {
        match known {
            CallOutcome::Done(_) => &self.done,
            CallOutcome::Refused(_) => &self.refused,
            CallOutcome::Open => &self.open,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

fn is_over(until_ms: i64) -> bool {
    now_us() / 1000 >= until_ms
}

/// Triggers jobs by hand, `per_sec` a second at even distances, each with a key of its own.
pub async fn triggers(caller: Caller, jobs: Vec<JobId>, per_sec: f64, until_ms: i64, seed: u64) -> Arc<CallCounts> {
    let counts = Arc::new(CallCounts::default());
    if jobs.is_empty() || per_sec <= 0.0 {
        return counts;
    }
    let room = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let mut random = Random::new(seed);
    let mut calls = JoinSet::new();
    let begin = Instant::now();
    for n in 0_u32.. {
        sleep_until(begin + Duration::from_secs_f64(f64::from(n) / per_sec)).await;
        if is_over(until_ms) {
            break;
        }
        while calls.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            counts.not_asked.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (caller, job, counts) = (caller.clone(), *random.one_of(&jobs), Arc::clone(&counts));
        calls.spawn(async move {
            counts.count(&caller.trigger(job, format!("t-{seed}-{n}")).await);
            drop(permit);
        });
    }
    while calls.join_next().await.is_some() {}
    counts
}

/// Pauses and resumes jobs, and deletes some, one after the other.
pub async fn pauses(caller: Caller, jobs: Vec<JobId>, until_ms: i64, seed: u64) {
    let mut random = Random::new(seed);
    for job in jobs {
        if is_over(until_ms) {
            return;
        }
        if random.percent(20) {
            caller.delete(job).await;
        } else if matches!(caller.pause(job).await, CallOutcome::Done(()) | CallOutcome::Open) {
            // Also when nobody knows whether it was paused: its runs would wait for ever.
            sleep(Duration::from_millis(random.between(200, 4_000))).await;
            caller.resume(job).await;
        }
    }
}

/// Creates jobs, five a time, about `per_sec` a second, each changed by `with`. Their ids are added to `created`.
pub async fn creates(
    caller: Caller,
    plan: Plan,
    per_sec: f64,
    created: Arc<Mutex<Vec<JobId>>>,
    with: impl Fn(&mut JobSpec) + Send,
) {
    const AT_ONCE: u64 = 5;
    let mut random = Random::new(plan.seed ^ 0x00c0_ffee);
    let mut n = 0;
    let begin = Instant::now();
    while !is_over(plan.end_ms - 2_000) {
        let mut specs: Vec<_> = (n..n + AT_ONCE).map(|n| workload::extra(&plan, n, 10, &mut random)).collect();
        specs.iter_mut().for_each(&with);
        n += AT_ONCE;
        let ids = caller.create_many(&specs).await;
        created.lock().extend(ids.into_iter().flatten());
        sleep_until(begin + Duration::from_secs_f64(n as f64 / per_sec)).await;
    }
}
