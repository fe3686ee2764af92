//! Makes the changes that watchers are told from the events of a decision. It is called only while somebody watches.

use super::Shard;
use crate::changes::{Change, ChangedItem};
use campanile_core::job::Job;
use campanile_schema::{
    event::Event,
    ids::RunId,
    record::RunRecord,
    stored::backfill::BackfillChange,
    time::Timestamp,
    view::RunView,
    watch::{JobChange, JobStep, RunChange},
};

/// What an event says of a watched thing.
enum Step<'a> {
    /// The state of this run is another one.
    Run(RunId),
    /// This run is over: it is not with its job any more.
    Ended(&'a RunRecord),
    Job(JobStep),
    Nothing,
}

fn step(event: &Event) -> Step<'_> {
    match event {
        Event::RunCreated { run, .. }
        | Event::RunReleased { run, .. }
        | Event::RetryDue { run, .. }
        | Event::AttemptStarted { run, .. }
        | Event::AttemptSuspected { run, .. }
        | Event::AttemptHeard { run, .. }
        | Event::AttemptEnded { run, .. }
        | Event::RunConfirmed { run, .. }
        | Event::RunPrioritized { run, .. }
        | Event::GraphChanged { run, .. }
        | Event::BackfillChanged { change: BackfillChange::Held { run }, .. } => Step::Run(*run),
        Event::RunReopened { record, .. } => Step::Run(record.run),
        Event::RunEnded { record, .. } => Step::Ended(record),
        Event::JobCreated { .. } => Step::Job(JobStep::Created),
        Event::JobReplaced { .. } => Step::Job(JobStep::Replaced),
        Event::JobPaused { .. } => Step::Job(JobStep::Paused),
        Event::JobResumed { .. } => Step::Job(JobStep::Resumed),
        Event::JobDeleted { .. } => Step::Job(JobStep::Deleted),
        Event::JobQuarantined { .. } => Step::Job(JobStep::Quarantined),
        Event::AttemptStopping { .. }
        | Event::CursorMoved { .. }
        | Event::DeadLetterDiscarded { .. }
        | Event::TenantSet { .. }
        | Event::TenantDeleted { .. }
        | Event::Lent { .. }
        | Event::PauseSet { .. }
        | Event::CreateKept { .. }
        | Event::Outbox { .. }
        | Event::HookFailed { .. }
        | Event::BackfillChanged { .. }
        | Event::BulkChanged { .. }
        | Event::CalendarSet { .. }
        | Event::Audited { .. } => Step::Nothing,
    }
}

impl Shard {
    /// The runs and jobs that a decision changed, as it left them. Its events were applied.
    pub(super) fn changes_of(&self, events: &[Event]) -> Vec<Change> {
        let at = Timestamp(self.now_ms());
        let mut changes = Vec::new();
        let mut told: Vec<RunId> = Vec::new();
        let mut found: Option<Job> = None;
        // As it is after all of them: the last event about a run is the one that tells.
        for event in events.iter().rev() {
            let (Some(id), step) = (event.job(), step(event)) else { continue };
            if matches!(step, Step::Nothing) {
                continue;
            }
            // Nearly always all events are of one job.
            if found.as_ref().is_none_or(|job| job.id != id) {
                found = self.materialize(id);
            }
            let Some(job) = &found else { continue };
            let run = match step {
                Step::Run(run) if !told.contains(&run) => job.run(run).map(|open| job.run_view(open)),
                Step::Ended(record) if !told.contains(&record.run) => Some(RunView::from(record)),
                Step::Job(change) => {
                    changes.push(of(job, ChangedItem::Job(of_job(job, at, change))));
                    None
                }
                Step::Run(_) | Step::Ended(_) | Step::Nothing => None,
            };
            if let Some(run) = run {
                told.push(run.run_id);
                changes.push(of(job, ChangedItem::Run(RunChange::new(at, &job.def.name, &run))));
            }
        }
        changes.reverse();
        changes
    }
}

fn of(job: &Job, what: ChangedItem) -> Change {
    Change { what, labels: job.def.labels.to_map() }
}

fn of_job(job: &Job, at: Timestamp, change: JobStep) -> JobChange {
    JobChange {
        at,
        job_id: job.id,
        job_name: job.def.name.to_string(),
        tenant_id: job.def.tenant.to_string(),
        change,
        status: job.hot.status,
        version: job.hot.version,
    }
}
