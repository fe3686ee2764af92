//! Which step of the table an event is.

use campanile_core::job::table::Step;
use campanile_schema::{
    event::{Event, Next},
    ids::RunId,
    record::RunState,
    stored::backfill::BackfillChange,
};

/// The step that an event takes a run through. `None`: it creates the run, or is not about a run's state.
pub fn step_of(event: &Event) -> Option<(RunId, Step)> {
    match event {
        Event::RunReleased { run, .. } => Some((*run, Step::Release)),
        Event::RetryDue { run, .. } => Some((*run, Step::RetryDue)),
        Event::AttemptStarted { run, .. } => Some((*run, Step::Start)),
        Event::AttemptSuspected { run, .. } => Some((*run, Step::Suspect)),
        Event::AttemptHeard { run, .. } => Some((*run, Step::Hear)),
        Event::AttemptStopping { run, .. } => Some((*run, Step::Stop)),
        Event::AttemptEnded { run, next, .. } => Some((
            *run,
            match next {
                Next::RetryAt(_) => Step::Retry,
                Next::Requeue => Step::Requeue,
                Next::Confirm => Step::AskConfirm,
            },
        )),
        Event::RunConfirmed { run, .. } => Some((*run, Step::Confirm)),
        Event::RunEnded { record, .. } => Some((
            record.run,
            match record.state {
                RunState::Success => Step::Succeed,
                RunState::Failed => Step::Fail,
                RunState::Timeout => Step::TimeOut,
                RunState::Canceled => Step::Cancel,
                other => panic!("a run ended as {other}"),
            },
        )),
        Event::RunReopened { record, .. } => Some((record.run, Step::Reopen)),
        Event::BackfillChanged { change: BackfillChange::Held { run }, .. } => Some((*run, Step::Hold)),
        Event::TenantSet { .. }
        | Event::TenantDeleted { .. }
        | Event::Lent { .. }
        | Event::PauseSet { .. }
        | Event::CreateKept { .. }
        | Event::Outbox { .. }
        | Event::BackfillChanged { .. }
        | Event::BulkChanged { .. }
        | Event::CalendarSet { .. }
        | Event::HookFailed { .. }
        | Event::Audited { .. }
        | Event::JobCreated { .. }
        | Event::JobReplaced { .. }
        | Event::JobPaused { .. }
        | Event::JobResumed { .. }
        | Event::JobDeleted { .. }
        | Event::JobQuarantined { .. }
        | Event::CursorMoved { .. }
        | Event::RunCreated { .. }
        | Event::GraphChanged { .. }
        | Event::RunPrioritized { .. }
        | Event::DeadLetterDiscarded { .. } => None,
    }
}
