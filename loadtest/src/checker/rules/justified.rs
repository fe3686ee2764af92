//! An outcome must be one that the job's policy allows and the facts bear out: nothing is skipped as "paused" that no caller
//! paused, nothing is missed while the node was up.

use super::{
    facts::{entries, jitter_us, last_of, misfire, told_closed},
    windows::{Expect, expect, may_be_paused, may_be_paused_above},
};
use crate::checker::{Disturbance, Findings, History, Job, Outage, ViolationKind};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::{ConcurrencyPolicy, JobSpec, MisfirePolicy, Trigger},
    limits::LATE_MS,
    view::LedgerEntryView,
};

/// The node's reading of a moment and ours may differ by this much, milliseconds (a slot of the wheel and rounding).
const READING_MS: i64 = 50;
/// A node that is up decides an instant within this time, milliseconds; later it owes an outage.
const DECIDED_WITHIN_MS: i64 = 2_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for job in history.jobs.values() {
        // `outcomes` judges the others.
        for entry in entries(job).filter(|e| told_closed(e).is_none()) {
            if let Err(why) = justified(history, job, entry) {
                let text =
                    format!("{} for {} of job {} '{}': {why}", name(entry), entry.logical_time, job.id, job.spec.name);
                found.add(crate::checker::Violation {
                    kind: ViolationKind::OutcomeUnjustified,
                    job: Some(job.id),
                    run: entry.run_id.map(|r| r.0),
                    at_ms: Some(entry.logical_time.0),
                    text,
                });
            }
        }
    }
}

fn name(entry: &LedgerEntryView) -> String {
    entry.reason.map_or_else(|| entry.outcome.to_string(), |reason| format!("{}({reason})", entry.outcome))
}

fn justified(history: &History, job: &Job, entry: &LedgerEntryView) -> Result<(), String> {
    let (first, last) = (entry.logical_time.0, last_of(entry));
    match entry.outcome {
        Outcome::Fired | Outcome::FiredLate => {
            not_while_paused(job, first)?;
            let Some(run) = entry.run_id.and_then(|id| history.runs.get(&id.0)) else {
                return Ok(());
            };
            let late_ms = run.created_at.0 - first;
            // Late is what begins after its jitter.
            if entry.outcome == Outcome::Fired && late_ms > LATE_MS + READING_MS + jitter_us(job) / 1000 {
                return Err(format!("the run was made {late_ms} ms after the instant, which is late"));
            }
            if entry.outcome == Outcome::FiredLate && late_ms < LATE_MS - READING_MS {
                return Err(format!("the run was made {late_ms} ms after the instant, which is not late"));
            }
            Ok(())
        }
        Outcome::Coalesced => {
            not_while_paused(job, first)?;
            not_while_paused(job, last)?;
            misfires_by(history, job, entry, MisfirePolicy::FireOnceNow)?;
            disturbed(history, job, first)
        }
        Outcome::Skipped | Outcome::Missed => {
            let Some(reason) = entry.reason else {
                return Err("without a reason".to_owned());
            };
            let names_pause =
                matches!(reason, SkipReason::Paused | SkipReason::TenantPaused | SkipReason::SystemPaused);
            if expect(job, first) == Expect::Paused && !names_pause {
                return Err("the job was paused, which is the reason to name".to_owned());
            }
            skipped(history, job, reason, entry)
        }
        Outcome::DstSkipped => match &job.spec.trigger {
            Trigger::Cron { timezone, .. } if timezone != "UTC" => Ok(()),
            Trigger::Cron { .. }
            | Trigger::FixedRate { .. }
            | Trigger::FixedDelay { .. }
            | Trigger::Once { .. }
            | Trigger::Manual {} => Err("its schedule knows no daylight saving".to_owned()),
        },
    }
}

fn not_while_paused(job: &Job, at_ms: i64) -> Result<(), String> {
    match expect(job, at_ms) {
        Expect::Paused | Expect::StillPaused => Err("the job was paused".to_owned()),
        Expect::Deleted => Err("the job was deleted".to_owned()),
        Expect::Required | Expect::Free => Ok(()),
    }
}

fn skipped(history: &History, job: &Job, reason: SkipReason, entry: &LedgerEntryView) -> Result<(), String> {
    let (first, last) = (entry.logical_time.0, last_of(entry));
    let policy = job.spec.concurrency_policy;
    let has_policy = |wanted: ConcurrencyPolicy| in_force(history, job, entry).any(|s| s.concurrency_policy == wanted);
    match reason {
        SkipReason::Paused => {
            let paused = may_be_paused(job, first) && may_be_paused(job, last);
            if paused || waited_when_paused(history, job, entry) {
                Ok(())
            } else {
                Err("no caller paused it then".to_owned())
            }
        }
        SkipReason::RunActive if !has_policy(ConcurrencyPolicy::Forbid) => {
            Err(format!("its concurrency policy is {policy}"))
        }
        SkipReason::OneQueued if !has_policy(ConcurrencyPolicy::QueueOne) => {
            Err(format!("its concurrency policy is {policy}"))
        }
        SkipReason::RunActive | SkipReason::OneQueued => {
            active_run(history, job, first)?;
            active_run(history, job, last)
        }
        SkipReason::Misfire => {
            misfires_by(history, job, entry, MisfirePolicy::Skip)?;
            disturbed(history, job, first)
        }
        SkipReason::CatchUpCap => {
            misfires_by(history, job, entry, MisfirePolicy::FireAllMissed)?;
            disturbed(history, job, first)
        }
        // Judged by `queues`.
        SkipReason::QueueFull => Ok(()),
        SkipReason::TenantPaused | SkipReason::SystemPaused => {
            let may = |at: i64| may_be_paused_above(history, job, reason, at, decided_by_ms(history, job, at));
            if may(first) && may(last) {
                Ok(())
            } else {
                Err("no caller paused the tenant or the system then".to_owned())
            }
        }
        SkipReason::Quarantined => Err("the job's actor failed again and again".to_owned()),
        // Not asked for.
        SkipReason::Window | SkipReason::Blackout => Ok(()),
        SkipReason::Deleted => match job.deleted {
            Some((sent_us, ack_us)) if closed_by(history, job, entry, sent_us, ack_us) => Ok(()),
            Some(_) => Err("it was due long before its job was deleted".to_owned()),
            None => Err("no caller deleted it".to_owned()),
        },
        SkipReason::Edited => {
            let mut edits = job.versions.iter().skip(1);
            if edits.any(|edit| closed_by(history, job, entry, edit.sent_us, edit.ack_us)) {
                Ok(())
            } else {
                Err("no caller edited it then".to_owned())
            }
        }
        SkipReason::Restored => restored(history, first, last),
        SkipReason::Calendar | SkipReason::NoCalendar => Err("no load sets a calendar".to_owned()),
    }
}

/// A delete or an edit closes what is due by then and was not yet decided.
fn closed_by(history: &History, job: &Job, entry: &LedgerEntryView, sent_us: i64, ack_us: Option<i64>) -> bool {
    let first = entry.logical_time.0;
    let in_turn = in_force(history, job, entry).any(|s| misfire(&s.trigger) == Some(MisfirePolicy::FireAllMissed));
    let undecided = decided_by_ms(history, job, first).saturating_mul(1000) >= sent_us || in_turn;
    undecided && ack_us.is_none_or(|ack_us| last_of(entry).saturating_mul(1000) <= ack_us)
}

/// Definitions that may have been in force when the entry was decided.
fn in_force<'a>(
    history: &History,
    job: &'a Job,
    entry: &LedgerEntryView,
) -> impl Iterator<Item = &'a JobSpec> + use<'a> {
    let by_us = decided_by_ms(history, job, last_of(entry)).saturating_mul(1000);
    job.in_force(entry.logical_time.0.saturating_mul(1000), by_us)
}

fn misfires_by(history: &History, job: &Job, entry: &LedgerEntryView, wanted: MisfirePolicy) -> Result<(), String> {
    if in_force(history, job, entry).any(|spec| misfire(&spec.trigger) == Some(wanted)) {
        Ok(())
    } else {
        Err(format!("its misfire policy is {:?}", misfire(&job.spec.trigger)))
    }
}

/// Missed instants that fire in order wait for the runs before them. Those that still wait when a pause comes share its reason: all that
/// were due by then, and behind what an outage delayed. No pause leaves anything to a later one.
fn waited_when_paused(history: &History, job: &Job, entry: &LedgerEntryView) -> bool {
    if misfire(&job.spec.trigger) != Some(MisfirePolicy::FireAllMissed) {
        return false;
    }
    let decided: Vec<_> = entries(job).filter(|e| told_closed(e).is_none()).collect();
    let Some(place) = decided.iter().position(|e| e.logical_time == entry.logical_time) else { return false };
    let (before, after) = decided.split_at(place + 1);
    let is_paused = |e: &LedgerEntryView| e.reason == Some(SkipReason::Paused);
    let shard = history.shard_of(job.id);
    let by_outage = |at: i64| {
        let by_act = |d: &Disturbance| d.is_about(shard) && touches(d.from_us, d.to_us, at);
        history.outages.iter().any(|o| touches(o.from_us, o.to_us, at)) || history.disturbances.iter().any(by_act)
    };
    let waited = |e: &LedgerEntryView| is_paused(e) && !may_be_paused(job, e.logical_time.0);
    let behind = before
        .iter()
        .rev()
        .take_while(|e| waited(e) || matches!(e.outcome, Outcome::FiredLate | Outcome::Missed))
        .any(|e| by_outage(e.logical_time.0) || by_outage(last_of(e)));
    let due_by = |at_ms: i64, sent_us: i64| at_ms.saturating_mul(1000) <= sent_us;
    behind
        && job.pauses.iter().any(|pause| {
            due_by(entry.logical_time.0, pause.sent_us)
                && (due_by(last_of(entry), pause.sent_us) || may_be_paused(job, last_of(entry)))
                && after.iter().take_while(|e| due_by(e.logical_time.0, pause.sent_us)).all(|e| is_paused(e))
        })
}

/// The node was down when the instants were due, and came back from an archive.
fn restored(history: &History, first: i64, last: i64) -> Result<(), String> {
    let came_back = |outage: &Outage| outage.restored && outage.holds(first * 1000) && outage.holds(last * 1000);
    if history.outages.iter().any(came_back) {
        Ok(())
    } else {
        Err("no restore from a backup passed over it".to_owned())
    }
}

/// Another run of the job was active when the instant was decided.
fn active_run(history: &History, job: &Job, at_ms: i64) -> Result<(), String> {
    let decided_by = decided_by_ms(history, job, at_ms);
    let active = history
        .runs_of
        .get(&job.id)
        .into_iter()
        .flatten()
        .filter_map(|id| history.runs.get(id))
        // An instant that meets a run of a backfill is held, and not skipped.
        .filter(|run| !run.is_back() && run.logical_time.is_none_or(|l| l.0 != at_ms))
        .any(|run| run.created_at.0 <= decided_by && run.ended_at.is_none_or(|ended| ended.0 + READING_MS >= at_ms));
    if active { Ok(()) } else { Err("no other run of the job was active".to_owned()) }
}

/// By when a node had to decide the instant: at once, or soon after the job was served again.
pub(super) fn decided_by_ms(history: &History, job: &Job, at_ms: i64) -> i64 {
    let shard = history.shard_of(job.id);
    let outages = history.outages.iter().map(|o| (o.from_us, o.to_us));
    let acts = history.disturbances.iter().filter(|d| d.is_about(shard)).map(|d| (d.from_us, d.to_us));
    let after_ms = outages
        .chain(acts)
        .filter(|(from, to)| touches(*from, *to, at_ms))
        .map(|(_, to)| to / 1000)
        .max()
        .unwrap_or(at_ms);
    after_ms.max(at_ms).saturating_add(DECIDED_WITHIN_MS + jitter_us(job) / 1000)
}

fn touches(from_us: i64, to_us: i64, at_ms: i64) -> bool {
    from_us / 1000 - DECIDED_WITHIN_MS <= at_ms && at_ms <= to_us / 1000 + DECIDED_WITHIN_MS
}

/// An instant is handled as a misfire only because the node was down (or the job was not its own to decide) for some time.
fn disturbed(history: &History, job: &Job, at_ms: i64) -> Result<(), String> {
    let shard = history.shard_of(job.id);
    let by_act = |d: &Disturbance| d.is_about(shard) && touches(d.from_us, d.to_us, at_ms);
    let by_outage =
        history.outages.iter().any(|o| touches(o.from_us, o.to_us, at_ms)) || history.disturbances.iter().any(by_act);
    let by_pause = job.all_pauses().any(|p| touches(p.sent_us, p.over_us(), at_ms));
    if by_outage || by_pause { Ok(()) } else { Err("the node was up and the job enabled".to_owned()) }
}
