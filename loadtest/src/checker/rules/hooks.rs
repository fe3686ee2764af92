//! The end of a run starts the jobs of its hooks, once for each end; what undoes a run is started once for the run, however often it fails. A
//! run that a hook made names the run and the generation that started it, and nobody else makes one.

use super::{causes::specs, facts::us};
use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::{
    hooks::{Hook, HookKind, Hooks},
    record::{RunState, Source},
};
use std::collections::BTreeMap;

/// A message may be on its way so long before the end of the load, microseconds: the drain waits for runs, not for messages.
const ON_ITS_WAY_US: i64 = 5_000_000;

/// What the run of a hook says of itself: `onFailure of run 7, generation 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    kind: HookKind,
    run: u64,
    generation: u32,
}

fn told(reason: Option<&str>) -> Option<Told> {
    let (kind, rest) = reason?.split_once(" of run ")?;
    let (run, generation) = rest.split_once(", generation ")?;
    let kind = HookKind::ALL.into_iter().find(|known| known.field() == kind)?;
    Some(Told { kind, run: run.parse().ok()?, generation: generation.parse().ok()? })
}

/// Runs that hooks have made.
#[derive(Default)]
struct Started<'a> {
    /// By the end that started it and the job that was started.
    hooks: BTreeMap<(Told, u64), Vec<&'a Run>>,
    /// By the run that was undone and the job that undid it.
    undone: BTreeMap<(u64, u64), Vec<&'a Run>>,
}

pub fn check(history: &History, found: &mut Findings<'_>) {
    let mut started = Started::default();
    for run in history.runs.values().filter(|run| matches!(run.source, Source::Event | Source::Compensation)) {
        let Some(told) = told(run.reason.as_deref()).filter(|told| is_explained(history, run, *told)) else {
            let reason = run.reason.as_deref().unwrap_or_default();
            let text = format!("run {} was made by a hook, and no run that has one explains '{reason}'", run.run_id);
            found.of_run(ViolationKind::HookUnasked, run.job_id, run.run_id, Some(run.created_at.0), text);
            continue;
        };
        if run.source == Source::Compensation {
            started.undone.entry((told.run, run.job_id)).or_default().push(run);
        } else {
            started.hooks.entry((told, run.job_id)).or_default().push(run);
        }
    }
    for run in history.runs.values() {
        if let Some(job) = history.jobs.get(&run.job_id) {
            missing(history, job, run, &started, found);
        }
    }
    for ((told, target), runs) in &started.hooks {
        once(ViolationKind::HookDoubled, asked(history, *told, *target), runs, found);
    }
    for ((run, target), runs) in &started.undone {
        once(ViolationKind::CompensationDoubled, compensations(history, *run, *target), runs, found);
    }
}

/// How many hooks of this kind start that job; of a job that was edited, those of the definition with most.
fn asked(history: &History, told: Told, target: u64) -> usize {
    most(history, told.run, target, |hooks| hooks.of(told.kind).iter().filter(|hook| !hook.compensation).collect())
}

fn compensations(history: &History, run: u64, target: u64) -> usize {
    most(history, run, target, |hooks| {
        let all = HookKind::ALL.into_iter().flat_map(|kind| hooks.of(kind));
        all.filter(|hook| hook.compensation).collect()
    })
}

fn most(history: &History, run: u64, target: u64, of: impl Fn(&Hooks) -> Vec<&Hook>) -> usize {
    let job = history.runs.get(&run).and_then(|run| history.jobs.get(&run.job_id));
    let name = history.jobs.get(&target).map(|target| target.spec.name.as_str());
    let is_it = |hook: &&&Hook| Some(hook.job.as_str()) == name;
    let versions = job.into_iter().flat_map(|job| &job.versions);
    versions.map(|version| of(&version.spec.hooks).iter().filter(is_it).count()).max().unwrap_or(0)
}

fn once(kind: ViolationKind, most: usize, runs: &[&Run], found: &mut Findings<'_>) {
    if let Some(more) = runs.get(most.max(1)) {
        let ids: Vec<u64> = runs.iter().map(|run| run.run_id).collect();
        let reason = more.reason.as_deref().unwrap_or_default();
        let text = format!("the hook '{reason}' has the runs {ids:?}");
        found.of_run(kind, more.job_id, more.run_id, Some(more.created_at.0), text);
    }
}

/// Whether an end of this state starts hooks of this kind.
fn fits(kind: HookKind, run: &Run) -> bool {
    match kind {
        HookKind::Failure => matches!(run.state, RunState::Failed | RunState::Timeout),
        HookKind::Success => run.state == RunState::Success,
        HookKind::Timeout => run.state == RunState::Timeout,
        HookKind::DeadLetter => run.dead_letter,
    }
}

fn missing(history: &History, job: &Job, run: &Run, started: &Started<'_>, found: &mut Findings<'_>) {
    let ended_us = run.ended_at.map_or(i64::MAX, |at| us(at.0));
    let until_us = history.meta.as_ref().map_or(i64::MAX, |meta| us(meta.until_ms));
    let drained = history.meta.as_ref().is_none_or(|meta| meta.drained);
    // Runs of backfills start none.
    if !drained || ended_us.saturating_add(ON_ITS_WAY_US) > until_us || run.is_back() || run.backfill_id.is_some() {
        return;
    }
    // An edit while it ran may have changed them.
    let mut hooks = specs(job, run, ended_us).map(|spec| &spec.hooks);
    let Some(first) = hooks.next().filter(|first| hooks.all(|other| other == *first)) else { return };
    // A dead letter may have been put away since, or come back.
    for kind in [HookKind::Failure, HookKind::Success, HookKind::Timeout].into_iter().filter(|kind| fits(*kind, run)) {
        for hook in first.of(kind) {
            let is_target = |other: &&Job| other.spec.tenant_id == job.spec.tenant_id && other.spec.name == hook.job;
            let is_there = |other: &&Job| other.create_ack_us < us(run.created_at.0) && other.deleted.is_none();
            let Some(target) = history.jobs.values().find(is_target).filter(is_there) else { continue };
            let told = Told { kind, run: run.run_id, generation: run.generation };
            let was_started = if hook.compensation {
                started.undone.contains_key(&(run.run_id, target.id))
            } else {
                started.hooks.contains_key(&(told, target.id))
            };
            if !was_started {
                let text = format!(
                    "run {} of job {} ended {}, and its hook '{}' has no run",
                    run.run_id, job.id, run.state, hook.job
                );
                found.of_run(ViolationKind::HookMissing, job.id, run.run_id, run.ended_at.map(|at| at.0), text);
            }
        }
    }
}

/// The run is there, has come to that generation, and its job had a hook of that kind at some time. Of its last end the state is known.
fn is_explained(history: &History, by: &Run, told: Told) -> bool {
    let Some(run) = history.runs.get(&told.run) else { return false };
    let target = history.jobs.get(&by.job_id).map(|job| job.spec.name.as_str());
    let compensates = by.source == Source::Compensation;
    let is_it = |hook: &Hook| target.is_none_or(|name| hook.job == name) && hook.compensation == compensates;
    let has_hook = |job: &Job| job.versions.iter().any(|version| version.spec.hooks.of(told.kind).iter().any(is_it));
    // A dead letter may have been put away since.
    let by_its_end = told.kind == HookKind::DeadLetter || fits(told.kind, run);
    run.generation >= told.generation
        && (run.generation > told.generation || by_its_end)
        && history.jobs.get(&run.job_id).is_some_and(has_hook)
}
