//! What was acknowledged is never lost: each acknowledged create is there, each acknowledged trigger has exactly one run, and
//! what was refused was not done.

use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::record::Source;
use std::collections::HashMap;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for job in history.jobs.values() {
        create(job, found);
        triggers(history, job, found);
    }
}

fn create(job: &Job, found: &mut Findings<'_>) {
    if job.deleted.is_some() {
        if job.ledger.is_empty() {
            found.counts.ledgers_gone += 1;
        }
        return;
    }
    match &job.ledger_error {
        Some(code) if code.contains("NOT_FOUND") => {
            found.of_job(
                ViolationKind::CreateLost,
                job.id,
                None,
                format!("job {} '{}' was acknowledged and is not found", job.id, job.spec.name),
            );
        }
        Some(code) => {
            found.of_job(
                ViolationKind::ExportIncomplete,
                job.id,
                None,
                format!("the ledger of job {} was not exported: {code}", job.id),
            );
        }
        None if job.ledger.is_empty() => {
            found.of_job(
                ViolationKind::ExportIncomplete,
                job.id,
                None,
                format!("the ledger of job {} was not exported", job.id),
            );
        }
        None => {}
    }
}

fn triggers(history: &History, job: &Job, found: &mut Findings<'_>) {
    let mut by_key: HashMap<&str, Vec<&Run>> = HashMap::new();
    for run in history.runs_of.get(&job.id).into_iter().flatten().filter_map(|id| history.runs.get(id)) {
        if run.source == Source::Manual {
            by_key.entry(run.key.as_deref().unwrap_or_default()).or_default().push(run);
        }
    }
    for (key, runs) in &by_key {
        if let [first, second, ..] = runs.as_slice() {
            let text = format!("key '{key}' of job {} has the runs {} and {}", job.id, first.run_id, second.run_id);
            found.of_run(ViolationKind::TriggerDoubled, job.id, second.run_id, Some(second.created_at.0), text);
        }
    }
    for trigger in &job.triggers {
        let runs = by_key.get(trigger.key.as_str());
        let sent_ms = Some(trigger.sent_us / 1000);
        match (trigger.ack_us, runs) {
            (Some(_), None) if job.deleted.is_none() => {
                let text = format!("trigger '{}' of job {} was acknowledged and has no run", trigger.key, job.id);
                found.of_job(ViolationKind::TriggerLost, job.id, sent_ms, text);
            }
            (Some(_), Some(runs)) => {
                if let (Some(named), Some(run)) = (trigger.run, runs.first())
                    && runs.iter().all(|r| r.run_id != named)
                {
                    let text = format!(
                        "trigger '{}' was acknowledged with run {named}, but its run is {}",
                        trigger.key, run.run_id
                    );
                    found.of_run(ViolationKind::TriggerDoubled, job.id, run.run_id, sent_ms, text);
                }
            }
            (None, Some(runs)) => {
                if let (Some(code), Some(run)) = (&trigger.refused, runs.first()) {
                    let others = job.triggers.iter().any(|t| t.key == trigger.key && t.refused.is_none());
                    if !others {
                        let text = format!(
                            "trigger '{}' was refused with {code} and yet made run {}",
                            trigger.key, run.run_id
                        );
                        found.of_run(ViolationKind::TriggerRefusedYetRun, job.id, run.run_id, sent_ms, text);
                    }
                }
            }
            (Some(_) | None, None) => {}
        }
    }
    for (key, runs) in by_key {
        if job.triggers.iter().all(|t| t.key != key) {
            for run in runs {
                let text = format!("run {} of job {} has the key '{key}', which no caller sent", run.run_id, job.id);
                found.of_run(ViolationKind::TriggerUnasked, job.id, run.run_id, Some(run.created_at.0), text);
            }
        }
    }
}
