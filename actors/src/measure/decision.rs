//! What a job actor measures of its own decisions.

use super::shares::{self, Count, Counts};
use campanile_core::job::Job;
use campanile_schema::{
    event::{Event, LedgerEntry, Next, Outcome, SkipReason},
    record::{RunRecord, RunState},
    stored::backfill::BackfillChange,
};
use metrics::{Counter, Histogram};
use std::sync::OnceLock;

/// What is counted several times for each run. Looking a metric up by its name takes as long as a small decision.
pub(crate) struct Hot {
    trigger_delay: Histogram,
    dispatch_delay: Histogram,
    fires: Counter,
    misfires: Counter,
    retries: Counter,
    run_duration: Histogram,
    pub activations: Counter,
    pub assignments: Counter,
    ended: Vec<(RunState, Counter)>,
}

impl Hot {
    fn new() -> Self {
        let ended = |state: RunState| (state, metrics::counter!("runs_ended_total", "state" => state.as_str()));
        Self {
            trigger_delay: metrics::histogram!("trigger_delay_ms"),
            dispatch_delay: metrics::histogram!("dispatch_delay_ms"),
            fires: metrics::counter!("schedule_fires_total"),
            misfires: metrics::counter!("misfire_count"),
            retries: metrics::counter!("campanile_retries_total"),
            run_duration: metrics::histogram!("campanile_run_duration_ms"),
            activations: metrics::counter!("campanile_job_activations_total"),
            assignments: metrics::counter!("campanile_assignments_total"),
            ended: RunState::ALL.iter().copied().filter(|s| s.is_final()).map(ended).collect(),
        }
    }
}

/// Not before the recorder is there: handles made earlier would count nothing.
pub(crate) fn hot() -> &'static Hot {
    static HOT: OnceLock<Hot> = OnceLock::new();
    HOT.get_or_init(Hot::new)
}

/// Delays and counts of one decision; `before` and `after` are the job around it.
pub(crate) fn decision(before: &Job, after: &Job, events: &[Event]) {
    let mut counts = Counts::default();
    for event in events {
        match event {
            Event::RunCreated { logical_ms: Some(at), at_ms, interval: Some(_), .. } => {
                let delay = (at_ms - after.due_with_jitter(*at)).max(0);
                hot().trigger_delay.record(delay as f64);
                hot().fires.increment(1);
                counts.add(Count::Fires, 1);
                if after.is_misfire(*at, *at_ms) {
                    misfires(&mut counts, 1);
                }
            }
            Event::AttemptStarted { run, attempt: 1, at_ms, .. } => {
                if let Some(open) = after.run(*run) {
                    let delay = (at_ms - open.record.created_ms).max(0);
                    hot().dispatch_delay.record(delay as f64);
                    counts.add(Count::Started, 1);
                    counts.add(Count::DispatchMs, delay.cast_unsigned());
                }
            }
            Event::AttemptEnded { next: Next::RetryAt(_), .. } => {
                hot().retries.increment(1);
                counts.add(Count::Retries, 1);
            }
            Event::CursorMoved { entries, .. } => entries.iter().for_each(|entry| closed(entry, &mut counts)),
            Event::RunEnded { record, .. } => ended(record, &mut counts),
            Event::RunCreated { backfill: Some(_), .. } => {
                metrics::counter!("campanile_backfill_runs_total").increment(1);
            }
            Event::BackfillChanged { change: BackfillChange::Ended { state }, .. } => {
                metrics::counter!("campanile_backfills_ended_total", "state" => state.as_str()).increment(1);
            }
            Event::RunCreated { .. }
            | Event::AttemptStarted { .. }
            | Event::TenantSet { .. }
            | Event::TenantDeleted { .. }
            | Event::Lent { .. }
            | Event::PauseSet { .. }
            | Event::CreateKept { .. }
            | Event::Outbox { .. }
            | Event::HookFailed { .. }
            | Event::GraphChanged { .. }
            | Event::BackfillChanged { .. }
            | Event::BulkChanged { .. }
            | Event::CalendarSet { .. }
            | Event::Audited { .. }
            | Event::JobCreated { .. }
            | Event::JobReplaced { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobDeleted { .. }
            | Event::JobQuarantined { .. }
            | Event::RunReleased { .. }
            | Event::RetryDue { .. }
            | Event::AttemptSuspected { .. }
            | Event::AttemptHeard { .. }
            | Event::AttemptStopping { .. }
            | Event::AttemptEnded { .. }
            | Event::RunConfirmed { .. }
            | Event::RunPrioritized { .. }
            | Event::RunReopened { .. }
            | Event::DeadLetterDiscarded { .. } => {}
        }
    }
    let change = retries(after) - retries(before);
    if change != 0.0 {
        metrics::gauge!("retry_queue_depth").increment(change);
    }
    shares::tenants().add(&after.def.tenant, &counts);
    shares::pools().add(&after.def.pool, &counts);
}

fn misfires(counts: &mut Counts, more: u64) {
    hot().misfires.increment(more);
    counts.add(Count::Misfires, more);
}

/// Instants that made no run.
fn closed(entry: &LedgerEntry, counts: &mut Counts) {
    metrics::counter!("campanile_ledger_instants_total", "outcome" => entry.outcome.as_str()).increment(entry.count);
    if let Some(reason) = entry.reason {
        metrics::counter!("campanile_instants_skipped_total", "reason" => reason.as_str()).increment(entry.count);
    }
    if is_misfire(entry.outcome, entry.reason) {
        misfires(counts, entry.count);
    }
}

/// Whether an instant made no run because it was decided later than the job's misfire threshold. Pauses, concurrency policies,
/// full queues and changes of the job leave instants out for reasons of their own.
fn is_misfire(outcome: Outcome, reason: Option<SkipReason>) -> bool {
    match outcome {
        Outcome::Coalesced | Outcome::Missed => true,
        Outcome::Skipped => match reason {
            Some(SkipReason::Misfire | SkipReason::CatchUpCap) => true,
            Some(
                SkipReason::Paused
                | SkipReason::TenantPaused
                | SkipReason::SystemPaused
                | SkipReason::RunActive
                | SkipReason::OneQueued
                | SkipReason::QueueFull
                | SkipReason::Quarantined
                | SkipReason::Window
                | SkipReason::Blackout
                | SkipReason::Calendar
                | SkipReason::NoCalendar
                | SkipReason::Deleted
                | SkipReason::Edited
                | SkipReason::Restored,
            )
            | None => false,
        },
        // These have runs, and are counted with them.
        Outcome::Fired | Outcome::FiredLate => false,
        Outcome::DstSkipped => false,
    }
}

fn ended(record: &RunRecord, counts: &mut Counts) {
    if let Some((_, ended)) = hot().ended.iter().find(|(state, _)| *state == record.state) {
        ended.increment(1);
    }
    counts.ended(record.state);
    if let (Some(started), Some(ended)) = (record.started_ms, record.ended_ms) {
        let took = (ended - started).max(0);
        hot().run_duration.record(took as f64);
        counts.add(Count::RunMs, took.cast_unsigned());
    }
    if record.dead_letter {
        metrics::counter!("dead_letters_total").increment(1);
        counts.add(Count::DeadLetters, 1);
    }
}

/// Runs of a job that wait for their next attempt.
pub(crate) fn retries(job: &Job) -> f64 {
    job.hot.runs.iter().filter(|r| r.state() == RunState::RetryWait).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_instant_that_came_too_late_is_a_misfire() {
        let reasons = |wanted: bool| {
            let of = SkipReason::ALL.iter().filter(|reason| is_misfire(Outcome::Skipped, Some(**reason)) == wanted);
            of.map(|reason| reason.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(reasons(true), ["MISFIRE", "CATCH_UP_CAP"]);
        assert!(["PAUSED", "TENANT_PAUSED", "SYSTEM_PAUSED", "RUN_ACTIVE"].iter().all(|r| reasons(false).contains(r)));
        assert!(is_misfire(Outcome::Coalesced, None));
        assert!(is_misfire(Outcome::Missed, Some(SkipReason::CatchUpCap)));
        assert!(!is_misfire(Outcome::DstSkipped, None));
    }
}
