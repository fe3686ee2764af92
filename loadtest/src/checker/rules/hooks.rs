//! A run that failed for good starts the job of its hook, once for each end. A hook's run names the run and the generation that started
//! it, and nobody else makes one.

use super::{causes::specs, facts::us};
use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::record::{RunState, Source};
use std::collections::HashMap;

/// A message may be on its way so long before the end of the load, microseconds: the drain waits for runs, not for messages.
const ON_ITS_WAY_US: i64 = 5_000_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    let mut started: HashMap<&str, Vec<&Run>> = HashMap::new();
    for run in history.runs.values().filter(|run| run.source == Source::Event) {
        started.entry(run.reason.as_deref().unwrap_or_default()).or_default().push(run);
    }
    let failed = |run: &&Run| matches!(run.state, RunState::Failed | RunState::Timeout);
    for run in history.runs.values().filter(failed) {
        if let Some(job) = history.jobs.get(&run.job_id) {
            missing(history, job, run, &started, found);
        }
    }
    for (reason, runs) in started {
        if let [first, second, ..] = runs.as_slice() {
            let text = format!("the hook '{reason}' has the runs {} and {}", first.run_id, second.run_id);
            found.of_run(ViolationKind::HookDoubled, second.job_id, second.run_id, Some(second.created_at.0), text);
        }
        if !is_explained(history, reason) {
            for run in runs {
                let text =
                    format!("run {} was made by a hook, and no run that has one explains '{reason}'", run.run_id);
                found.of_run(ViolationKind::HookUnasked, run.job_id, run.run_id, Some(run.created_at.0), text);
            }
        }
    }
}

fn missing(history: &History, job: &Job, run: &Run, started: &HashMap<&str, Vec<&Run>>, found: &mut Findings<'_>) {
    let ended_us = run.ended_at.map_or(i64::MAX, |at| us(at.0));
    let until_us = history.meta.as_ref().map_or(i64::MAX, |meta| us(meta.until_ms));
    let drained = history.meta.as_ref().is_none_or(|meta| meta.drained);
    if !drained || ended_us.saturating_add(ON_ITS_WAY_US) > until_us {
        return;
    }
    // An edit while it ran may have changed it.
    let mut targets = specs(job, run, ended_us).map(|spec| spec.hooks.on_failure.first().map(|hook| hook.job.as_str()));
    let Some(Some(target)) = targets.next() else { return };
    if targets.any(|other| other != Some(target)) {
        return;
    }
    let is_target = |other: &&Job| other.spec.tenant_id == job.spec.tenant_id && other.spec.name == target;
    let is_there = |other: &Job| other.create_ack_us < us(run.created_at.0) && other.deleted.is_none();
    let reason = format!("onFailure of run {}, generation {}", run.run_id, run.generation);
    if history.jobs.values().find(is_target).is_some_and(is_there) && !started.contains_key(reason.as_str()) {
        let text =
            format!("run {} of job {} ended {}, and its hook '{target}' has no run", run.run_id, job.id, run.state);
        found.of_run(ViolationKind::HookMissing, job.id, run.run_id, run.ended_at.map(|at| at.0), text);
    }
}

/// The run is there, has come to that generation, and its job had a hook at some time.
fn is_explained(history: &History, reason: &str) -> bool {
    let told = reason.strip_prefix("onFailure of run ").and_then(|told| told.split_once(", generation "));
    let Some((Ok(run), Ok(generation))) = told.map(|(run, generation)| (run.parse::<u64>(), generation.parse::<u32>()))
    else {
        return false;
    };
    let Some(run) = history.runs.get(&run) else { return false };
    let has_hook = |job: &Job| job.versions.iter().any(|version| !version.spec.hooks.is_empty());
    run.generation >= generation && history.jobs.get(&run.job_id).is_some_and(has_hook)
}
