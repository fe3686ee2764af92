//! What happens, live, one line each: the terminal of `campanile dev`. It asks for jobs whose runs changed; a busy node
//! shows some of it, never slows down for it.

use super::output::{self, machine_zone};
use campanile_schema::{
    ids::{JobId, RunId},
    job::JobView,
    operations::{JobList, JobRuns},
    record::RunState,
    rpc::calls::JobCall,
    time::Timestamp,
    view::{JobFilter, PageBody, RunView},
};
use campanile_security::auth::Caller;
use campanile_serve::ops::Operations;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(400);
/// Jobs that are looked at.
const JOBS: usize = 100;
/// Newest runs of a changed job that are looked at.
const RUNS: usize = 5;
/// Shown runs that are remembered.
const REMEMBERED: usize = 1_000;

/// Shows runs until it is dropped.
pub(super) async fn show(operations: &Operations, caller: &Caller) {
    let mut shown = ShownFires::default();
    loop {
        let filter = JobFilter { page_size: Some(JOBS), ..JobFilter::default() };
        // A node that is not ready for a moment has nothing to show for that moment.
        if let Ok(page) = operations.call::<JobList>(caller, filter).await {
            for job in &page.items {
                if !shown.wants(job) {
                    continue;
                }
                let body = PageBody { page_size: Some(RUNS), ..PageBody::default() };
                if let Ok(runs) = operations.call::<JobRuns>(caller, JobCall::new(job.job_id, body)).await {
                    let lines: String =
                        runs.items.iter().rev().filter(|run| shown.is_new(run)).map(|run| line(job, run)).collect();
                    output::text(&lines);
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What was shown already.
#[derive(Default)]
struct ShownFires {
    states: BTreeMap<RunId, (RunState, u32)>,
    order: VecDeque<RunId>,
    jobs: BTreeMap<JobId, (u64, Option<RunState>)>,
}

impl ShownFires {
    /// The job has runs that are new, or that were not final when last seen.
    fn wants(&mut self, job: &JobView) -> bool {
        let now = (job.run_count, job.last_run_state);
        let before = self.jobs.insert(job.job_id, now);
        before != Some(now) && job.run_count > 0 || job.last_run_state.is_some_and(|state| !state.is_final())
    }

    fn is_new(&mut self, run: &RunView) -> bool {
        let now = (run.state, run.attempt_count);
        let before = self.states.insert(run.run_id, now);
        if before.is_none() {
            self.order.push_back(run.run_id);
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.states.remove(&oldest);
            }
        }
        before != Some(now)
    }
}

fn line(job: &JobView, run: &RunView) -> String {
    let at = run.ended_at.or(run.started_at).unwrap_or(run.created_at);
    let attempt = if run.attempt_count > 1 { format!(" attempt {}", run.attempt_count) } else { String::new() };
    let dead = if run.dead_letter { " (dead letter)" } else { "" };
    let error = run.last_error.as_deref().filter(|_| run.state != RunState::Success).unwrap_or_default();
    let error = error.lines().next().map(|error| format!("  {}", error.chars().take(80).collect::<String>()));
    let state = run.state.as_str();
    format!(
        "{}  {:<26} run {:<12} {state}{attempt}{dead}{}\n",
        local(at),
        job.spec.name,
        run.run_id.to_string(),
        error.unwrap_or_default()
    )
}

/// Time of day in the zone of this machine.
fn local(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.ms()) {
        Ok(instant) => instant.to_zoned(machine_zone()).strftime("%H:%M:%S%.3f").to_string(),
        Err(_) => at.to_string(),
    }
}
