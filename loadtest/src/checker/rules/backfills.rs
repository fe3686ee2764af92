//! A backfill runs what was missing, and nothing else: each instant once, no more at a time than was asked for. What was missing is
//! computed here from the schedule (by the oracle), from the creates and from the ledger as the API shows it.
//!
//! What cannot be decided is left out: instants about the moment of the job's creation, and instants so shortly before the call that the
//! schedule may not have decided them yet, or that lie beside an outage.

use super::facts::{entries, last_of, us};
use crate::checker::{Body, Findings, History, Job, Oracle, Run, ViolationKind, history::AskedBackfill};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::ConcurrencyPolicy,
    record::{AttemptState, Source},
    stored::backfill::BackfillMode,
};
use std::collections::{BTreeMap, BTreeSet};

/// An instant is certainly decided so long after it was due, milliseconds.
const DECIDED_MS: i64 = 5_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for job in history.jobs.values() {
        let runs: Vec<&Run> =
            history.runs_of.get(&job.id).into_iter().flatten().filter_map(|id| history.runs.get(id)).collect();
        let back: Vec<&Run> = runs.iter().copied().filter(|run| run.source == Source::Backfill).collect();
        asked_for(job, &back, found);
        once(job, &back, found);
        missing(history, job, &back, found);
        at_once(history, job, &runs, found);
    }
}

/// What became of an instant, as far as a backfill of missing instants is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Missing,
    NotMissing,
    Unclear,
}

fn fate(job: &Job, at_ms: i64) -> Fate {
    if us(at_ms) < job.create_sent_us {
        return Fate::Missing;
    }
    let told = entries(job).find(|entry| (entry.logical_time.0..=last_of(entry)).contains(&at_ms));
    match told.map(|entry| (entry.outcome, entry.reason)) {
        Some((
            Outcome::Skipped,
            Some(SkipReason::Window | SkipReason::Blackout | SkipReason::Calendar | SkipReason::Deleted),
        )) => Fate::NotMissing,
        Some((Outcome::Skipped | Outcome::Missed, _)) => Fate::Missing,
        Some((Outcome::Fired | Outcome::FiredLate | Outcome::Coalesced | Outcome::DstSkipped, _)) => Fate::NotMissing,
        None => Fate::Unclear,
    }
}

fn covers(asked: &AskedBackfill, at_ms: i64) -> bool {
    (asked.from_ms..=asked.to_ms).contains(&at_ms)
}

/// Each run of a backfill has a call that asked for it.
fn asked_for(job: &Job, back: &[&Run], found: &mut Findings<'_>) {
    for run in back {
        let Some(at_ms) = run.logical_time.map(|at| at.0) else { continue };
        let explains = |asked: &&AskedBackfill| match asked.mode {
            _ if !covers(asked, at_ms) || asked.sent_us > us(run.created_at.0 + 1) => false,
            BackfillMode::All => true,
            BackfillMode::Missing => asked.unknown_run || fate(job, at_ms) != Fate::NotMissing,
            // They make no runs of this source.
            BackfillMode::Failed | BackfillMode::Replay => false,
        };
        if !job.backfills.iter().any(|asked| explains(&asked)) {
            let text =
                format!("run {} of a backfill is for {at_ms} of job {}, and nobody asked for it", run.run_id, job.id);
            found.of_run(ViolationKind::BackfillUnasked, job.id, run.run_id, Some(at_ms), text);
        } else if due(job, at_ms - 1, at_ms).is_some_and(|due| due.is_empty()) {
            let text =
                format!("run {} of a backfill is for {at_ms}, which is no due instant of job {}", run.run_id, job.id);
            found.of_run(ViolationKind::BackfillUnasked, job.id, run.run_id, Some(at_ms), text);
        }
    }
}

/// By the schedule that the job has had all the time; None: it was edited, or the oracle cannot follow it.
fn due(job: &Job, after_ms: i64, to_ms: i64) -> Option<Vec<i64>> {
    let [only] = job.versions.as_slice() else { return None };
    Oracle::new(after_ms, to_ms).due(&only.spec, after_ms, to_ms).ok()?
}

/// Backfills of missing instants make one run for an instant however many they are, one of all instants makes one of its own.
fn once(job: &Job, back: &[&Run], found: &mut Findings<'_>) {
    let mut of_instant: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for run in back {
        if let Some(at) = run.logical_time {
            of_instant.entry(at.0).or_default().push(run.run_id);
        }
    }
    for (at_ms, runs) in of_instant {
        let of = |mode: BackfillMode| job.backfills.iter().filter(move |a| a.mode == mode && covers(a, at_ms)).count();
        let most = of(BackfillMode::Missing).min(1) + of(BackfillMode::All);
        if runs.len() > most.max(1) {
            let text = format!("backfills have made the runs {runs:?} for {at_ms} of job {}", job.id);
            found.of_job(ViolationKind::BackfillDoubled, job.id, Some(at_ms), text);
        }
    }
}

/// What was missing when it was asked for has a run.
fn missing(history: &History, job: &Job, back: &[&Run], found: &mut Findings<'_>) {
    let drained = history.meta.as_ref().is_some_and(|meta| meta.drained && meta.complete);
    if !drained || job.deleted.is_some() {
        return;
    }
    let has_run: BTreeSet<i64> = back.iter().filter_map(|run| Some(run.logical_time?.0)).collect();
    for asked in job.backfills.iter().filter(|asked| asked.ack_us.is_some() && asked.canceled_us.is_none()) {
        let wanted = match asked.mode {
            BackfillMode::Missing => |fate: Fate| fate == Fate::Missing,
            BackfillMode::All => |_: Fate| true,
            BackfillMode::Failed | BackfillMode::Replay => continue,
        };
        let to_ms = asked.to_ms.min(asked.sent_us.div_euclid(1_000) - DECIDED_MS);
        let Some(due) = due(job, asked.from_ms - 1, to_ms) else { continue };
        let unclear = |at_ms: i64| {
            let about_create = (job.create_sent_us..=job.create_ack_us).contains(&us(at_ms));
            about_create || history.outages.iter().any(|o| o.to_us >= us(at_ms) && o.from_us <= asked.sent_us)
        };
        for at_ms in due.into_iter().filter(|at_ms| wanted(fate(job, *at_ms)) && !unclear(*at_ms)) {
            if !has_run.contains(&at_ms) {
                let text =
                    format!("{at_ms} of job {} was to run by the backfill {:?}, and has no run", job.id, asked.id);
                found.of_job(ViolationKind::BackfillMissing, job.id, Some(at_ms), text);
            }
        }
    }
}

/// No more bodies of one backfill run at once than was asked for, and one where the policy allows one.
fn at_once(history: &History, job: &Job, runs: &[&Run], found: &mut Findings<'_>) {
    let one = job.versions.iter().all(|version| match version.spec.concurrency_policy {
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne => true,
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Replace => false,
    });
    for asked in job.backfills.iter().filter(|asked| asked.id.is_some()) {
        let of_it = runs.iter().filter(|run| run.backfill_id == asked.id);
        let held = |body: &&Body| {
            let run = history.runs.get(&body.run);
            run.and_then(|run| run.attempt_of(body.token)).is_none_or(|a| a.state != AttemptState::Lost)
        };
        let mut moments: Vec<(i64, i64)> = Vec::new();
        for body in of_it.filter_map(|run| history.bodies.get(&run.run_id)).flatten().filter(held) {
            let end_us = body.end.map_or_else(|| history.died_us(body.executor), |(at, _)| at);
            moments.extend([(body.start_us, 1), (end_us, -1)]);
        }
        // What ends at a moment makes room for what begins then.
        moments.sort_unstable();
        let most = if one { 1 } else { asked.parallelism };
        let mut open = 0;
        for (at_us, change) in moments {
            open += change;
            if open > most {
                let text =
                    format!("{open} bodies of backfill {:?} of job {} run at once; {most} may", asked.id, job.id);
                found.of_job(ViolationKind::BackfillTooMany, job.id, Some(at_us / 1_000), text);
                break;
            }
        }
    }
}
