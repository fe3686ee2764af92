//! An instant is skipped for a full queue only when so many runs of the job were open, or of its tenant waited, that one was full; and
//! a person is asked only about jobs that are not idempotent.

use super::{
    facts::{entries, last_of, us},
    justified::decided_by_ms,
};
use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::{
    event::SkipReason,
    limits::{OPEN_RUNS_PER_JOB, QUEUED_RUNS_PER_TENANT},
    record::RunState,
};
use std::collections::HashMap;

/// When runs came, and when they went, each ascending.
#[derive(Default)]
struct QueueTimes {
    came_us: Vec<i64>,
    went_us: Vec<i64>,
}

impl QueueTimes {
    fn of<'a>(runs: impl Iterator<Item = &'a Run>, went_us: impl Fn(&Run) -> i64) -> Self {
        let mut waiting = Self::default();
        for run in runs {
            waiting.came_us.push(us(run.created_at.0));
            waiting.went_us.push(went_us(run));
        }
        waiting.came_us.sort_unstable();
        waiting.went_us.sort_unstable();
        waiting
    }

    /// How many may have been there at some moment of a stretch of time.
    fn most(&self, from_us: i64, to_us: i64) -> usize {
        let came = self.came_us.partition_point(|at| *at <= to_us);
        came - self.went_us.partition_point(|at| *at < from_us).min(came)
    }
}

pub fn check(history: &History, found: &mut Findings<'_>) {
    full(history, found);
    for run in history.runs.values() {
        if let Some(job) = history.jobs.get(&run.job_id) {
            asked(job, run, found);
        }
    }
}

fn ended_us(run: &Run) -> i64 {
    run.ended_at.map_or(i64::MAX, |at| us(at.0) + 999)
}

fn full(history: &History, found: &mut Findings<'_>) {
    let mut tenants: HashMap<&str, QueueTimes> = HashMap::new();
    for job in history.jobs.values() {
        for entry in entries(job).filter(|e| e.reason == Some(SkipReason::QueueFull)) {
            let tenant = job.spec.tenant_id.as_str();
            let waiting = tenants.entry(tenant).or_insert_with(|| {
                let of_tenant = |run: &&Run| history.jobs.get(&run.job_id).is_some_and(|j| j.spec.tenant_id == tenant);
                // It waits until an executor begins it.
                let begun = |run: &Run| history.bodies.get(&run.run_id).and_then(|all| all.first()).map(|b| b.start_us);
                QueueTimes::of(history.runs.values().filter(of_tenant), |run| begun(run).unwrap_or(ended_us(run)))
            });
            let limit = history.meta.as_ref().and_then(|meta| meta.queued.get(tenant)).filter(|limit| **limit > 0);
            let limit = limit.map_or(QUEUED_RUNS_PER_TENANT as usize, |limit| *limit as usize);
            let of_job = history.runs_of.get(&job.id).into_iter().flatten().filter_map(|id| history.runs.get(id));
            let open = QueueTimes::of(of_job, ended_us);
            let (from_us, to_us) = (us(entry.logical_time.0), us(decided_by_ms(history, job, last_of(entry))));
            let (waited, were_open) = (waiting.most(from_us, to_us), open.most(from_us, to_us));
            if waited < limit && were_open < OPEN_RUNS_PER_JOB {
                let text = format!(
                    "{} of job {} was skipped for a full queue: at most {were_open} runs of the job were open, and {waited} of its tenant waited, which may have {limit}",
                    entry.logical_time.0, job.id
                );
                found.of_job(ViolationKind::QueueNotFull, job.id, Some(entry.logical_time.0), text);
            }
        }
    }
}

fn asked(job: &Job, run: &Run, found: &mut Findings<'_>) {
    let decided = job.confirmed.iter().any(|c| c.asked.run == run.run_id && c.asked.ack_us.is_some());
    let waits = run.state == RunState::NeedsConfirmation;
    let mut specs = job.in_force(us(run.created_at.0), i64::MAX);
    if (decided || waits) && specs.all(|spec| spec.idempotent) {
        let text = format!("run {} of job {}, which is idempotent, asked for a person's word", run.run_id, job.id);
        found.of_run(ViolationKind::ConfirmationUndue, job.id, run.run_id, Some(run.created_at.0), text);
    }
}
