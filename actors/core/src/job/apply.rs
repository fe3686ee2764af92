//! How events change a job. `apply` is total: every event in every state gives a state, without a panic. Only `decide`
//! checks whether an event is valid; replay applies exactly what `decide` emitted.

use super::{
    backfill, dag,
    rules::{Rule, kept},
    state::{CATCH_UP_PACE_MS, HotState, Job, OpenRun},
    time_limit,
};
use crate::schedule::Schedule;
use campanile_schema::{
    event::{Event, Next},
    ids::JobId,
    job::{JobStatus, MisfirePolicy},
    limits::ATTEMPTS_KEPT,
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    stored::StoredJob,
};
use std::sync::Arc;

/// The job that `JobCreated` makes.
pub fn created(job: JobId, spec: impl Into<Arc<StoredJob>>, at_ms: i64) -> Job {
    let hot = HotState {
        status: JobStatus::Enabled,
        version: 1,
        created_ms: at_ms,
        updated_ms: at_ms,
        cursor_ms: at_ms,
        next_due_ms: None,
        delay_base_ms: at_ms,
        run_count: 0,
        last_run_ms: None,
        last_state: None,
        catch_up_ms: None,
        quarantine: None,
        runs: Vec::new(),
        backfill: None,
        bulk: None,
    };
    let mut job = Job::new(job, spec.into(), hot);
    // A ONCE that lies in the past by less than its misfire threshold is still due.
    if let campanile_schema::stored::StoredTrigger::Once { at_ms: due } = job.def.trigger {
        job.hot.cursor_ms = job.hot.cursor_ms.min(due - 1);
    }
    #[cfg(feature = "faults")]
    if crate::faults::active(crate::faults::Mutation::DelaySilent) && job.schedule.is_fixed_delay() {
        // Longer than what the outages of a short run can excuse.
        job.hot.delay_base_ms += 60_000;
    }
    job.refresh_next_due();
    job
}

/// Applies one event to its job. Events of other jobs or of the shard change nothing.
pub fn apply(job: &mut Job, event: &Event) {
    match event {
        Event::TenantSet { .. }
        | Event::TenantDeleted { .. }
        | Event::Lent { .. }
        | Event::PauseSet { .. }
        | Event::CreateKept { .. }
        | Event::Outbox { .. }
        | Event::Audited { .. }
        | Event::BulkChanged { .. }
        | Event::CalendarSet { .. }
        | Event::JobCreated { .. } => {}
        Event::JobReplaced { spec, version, at_ms, .. } => {
            job.def = spec.clone();
            job.schedule = Schedule::compile(spec).unwrap_or_else(|_| Schedule::never());
            if let Some(book) = &job.calendars {
                job.schedule.find_calendar(spec, book);
            }
            job.hot.version = *version;
            job.hot.updated_ms = *at_ms;
            job.hot.cursor_ms = job.hot.cursor_ms.max(*at_ms);
            job.hot.delay_base_ms = job.hot.cursor_ms;
            job.hot.catch_up_ms = None;
            job.refresh_next_due();
        }
        Event::JobPaused { at_ms, bulk, .. } => {
            job.hot.status = JobStatus::Paused;
            job.hot.bulk = *bulk;
            job.hot.updated_ms = *at_ms;
        }
        Event::JobResumed { at_ms, bulk, .. } => {
            job.hot.status = JobStatus::Enabled;
            job.hot.bulk = *bulk;
            job.hot.quarantine = None;
            job.hot.updated_ms = *at_ms;
            job.hot.delay_base_ms = job.hot.cursor_ms.max(*at_ms);
            job.hot.catch_up_ms = None;
            job.refresh_next_due();
        }
        Event::JobDeleted { at_ms, .. } => {
            job.hot.status = JobStatus::Deleted;
            job.hot.updated_ms = *at_ms;
        }
        Event::JobQuarantined { at_ms, reason, .. } => {
            job.hot.quarantine = Some(reason.clone());
            job.hot.updated_ms = *at_ms;
        }
        Event::CursorMoved { interval, entries, .. } => {
            if job.schedule.is_fixed_delay() && !entries.is_empty() {
                // Its one instant was decided without a run: the delay begins again.
                job.hot.delay_base_ms = interval.to_ms;
            }
            move_cursor(job, interval.to_ms);
        }
        Event::RunCreated {
            run,
            source,
            logical_ms,
            key,
            params,
            reason,
            by,
            held,
            at_ms,
            interval,
            dag,
            depth,
            marked,
            timeout_sec,
            backfill: of_backfill,
            budget,
            ..
        } => {
            let record = RunRecord {
                run: *run,
                job: job.id,
                tenant: job.def.tenant.clone(),
                state: if *held { RunState::Pending } else { RunState::Queued },
                source: *source,
                logical_ms: *logical_ms,
                key: key.clone(),
                generation: 1,
                created_ms: *at_ms,
                started_ms: None,
                ended_ms: None,
                params: params.clone(),
                result: None,
                reason: reason.clone(),
                by: by.clone(),
                dead_letter: false,
                attempts: Vec::new(),
                dag: *dag,
                depth: *depth,
                marked: *marked,
                failed_hooks: Vec::new(),
                timeout_sec: *timeout_sec,
                graph: None,
                backfill: *of_backfill,
                budget: *budget,
                compensated: false,
                priority: None,
            };
            job.hot.runs.reserve_exact(1);
            job.hot.runs.push(OpenRun::waiting(record));
            job.hot.run_count += 1;
            backfill::began(job, *of_backfill);
            if let Some(interval) = interval {
                let backlog = job.def.misfire == MisfirePolicy::FireAllMissed
                    && *source == Source::Schedule
                    && job.is_misfire(interval.to_ms, *at_ms);
                job.hot.catch_up_ms = backlog.then_some(*at_ms + CATCH_UP_PACE_MS);
                move_cursor(job, interval.to_ms);
            } else if job.schedule.is_fixed_delay() {
                job.refresh_next_due();
            }
        }
        Event::RunReleased { run, .. } | Event::RetryDue { run, .. } | Event::RunConfirmed { run, .. } => {
            if let Some(open) = job.run_mut(*run) {
                if let Event::RunConfirmed { at_ms, .. } = event
                    && kept(Rule::RerunHasTheWholeTime)
                {
                    open.time_from_ms = Some(*at_ms);
                }
                open.record_mut().state = RunState::Queued;
                open.retry_at_ms = None;
                open.stopping = None;
                open.stopping_since_ms = None;
            }
        }
        Event::RunPrioritized { run, priority, .. } => {
            if let Some(open) = job.run_mut(*run) {
                open.record_mut().priority = Some(*priority);
            }
        }
        Event::AttemptStarted { run, attempt, token, executor, session, credential, at_ms, .. } => {
            if let Some(open) = job.run_mut(*run) {
                open.session = Some(*session);
                open.credential.clone_from(credential);
                open.stopping = None;
                open.stopping_since_ms = None;
                open.retry_at_ms = None;
                let mut forgotten = None;
                let record = open.record_mut();
                record.state = RunState::Running;
                record.started_ms.get_or_insert(*at_ms);
                if record.attempts.len() >= ATTEMPTS_KEPT {
                    let gone = record.attempts.remove(0);
                    forgotten = (gone.generation == record.generation && time_limit::has_begun(&gone))
                        .then_some(gone.started_ms);
                }
                // Most runs have one attempt, and a vector that grows by itself begins with room for four.
                record.attempts.reserve_exact(1);
                record.attempts.push(AttemptRecord {
                    attempt: *attempt,
                    generation: record.generation,
                    state: AttemptState::Running,
                    token: *token,
                    executor: executor.clone(),
                    started_ms: *at_ms,
                    ended_ms: None,
                    error_code: None,
                    error_message: None,
                    cpu_ms: None,
                    max_rss_kb: None,
                    permanent: false,
                });
                if open.time_from_ms.is_none() && kept(Rule::FirstAttemptIsRemembered) {
                    open.time_from_ms = forgotten;
                }
            }
        }
        Event::AttemptSuspected { run, .. } => {
            if let Some(open) = job.run_mut(*run) {
                open.record_mut().state = RunState::SuspectedLost;
            }
        }
        Event::AttemptHeard { run, session, credential, .. } => {
            if let Some(open) = job.run_mut(*run) {
                open.record_mut().state = RunState::Running;
                open.session = Some(*session);
                if credential.is_some() {
                    open.credential.clone_from(credential);
                }
            }
        }
        Event::AttemptStopping { run, why, at_ms, .. } => {
            if let Some(open) = job.run_mut(*run) {
                open.stopping = Some(why.code());
                open.stopping_since_ms.get_or_insert(*at_ms);
            }
        }
        Event::AttemptEnded {
            run,
            token,
            state,
            error_code,
            error_message,
            cpu_ms,
            max_rss_kb,
            at_ms,
            next,
            uncounted,
            ..
        } => {
            if let Some(open) = job.run_mut(*run) {
                let record = open.record_mut();
                if let Some(attempt) = record.attempts.iter_mut().rev().find(|a| a.token == *token) {
                    attempt.state = *state;
                    attempt.ended_ms = Some(*at_ms);
                    attempt.error_code.clone_from(error_code);
                    attempt.error_message.clone_from(error_message);
                    attempt.cpu_ms = *cpu_ms;
                    attempt.max_rss_kb = *max_rss_kb;
                }
                (record.state, open.retry_at_ms) = match next {
                    Next::RetryAt(at) => (RunState::RetryWait, Some(*at)),
                    Next::Requeue => (RunState::Queued, None),
                    Next::Confirm => (RunState::NeedsConfirmation, None),
                };
                open.session = None;
                open.credential = None;
                open.stopping = None;
                open.stopping_since_ms = None;
                if *uncounted {
                    open.uncounted += 1;
                } else if *state != AttemptState::NotStarted {
                    open.tried += 1;
                }
            }
        }
        Event::RunEnded { record, .. } => {
            job.hot.runs.retain(|r| r.id() != record.run);
            job.graphs.remove(&record.run);
            job.hot.last_run_ms = record.ended_ms;
            job.hot.last_state = Some(record.state.code());
            backfill::ended(job, record);
            if job.schedule.is_fixed_delay() {
                // After the cursor even when the clock was put back: else the instant would never come.
                job.hot.delay_base_ms = record.ended_ms.map_or(job.hot.cursor_ms, |at| at.max(job.hot.cursor_ms));
                job.refresh_next_due();
            }
        }
        Event::RunReopened { record, at_ms, .. } => {
            dag::reopened(job, record, *at_ms);
            job.hot.runs.retain(|r| r.id() != record.run);
            job.hot.runs.push(OpenRun::waiting(record.clone()));
            backfill::began(job, record.backfill);
            if job.schedule.is_fixed_delay() {
                job.refresh_next_due();
            }
        }
        Event::HookFailed { run, failed, .. } => {
            // Of a run that has ended, the event has the record.
            if let Some(open) = job.run_mut(*run) {
                open.record_mut().add_failed_hook(failed.clone());
            }
        }
        Event::GraphChanged { run, generation, changes, at_ms, .. } => {
            dag::changed(job, *run, *generation, changes, *at_ms);
        }
        Event::BackfillChanged { change, at_ms, .. } => backfill::changed(job, change, *at_ms),
        Event::DeadLetterDiscarded { .. } => {}
    }
}

fn move_cursor(job: &mut Job, to_ms: i64) {
    // Never back: the cursor is what prevents doubles.
    if to_ms > job.hot.cursor_ms {
        job.hot.cursor_ms = to_ms;
        job.refresh_next_due();
    }
}
