//! A run whose body may have run without this state knowing of it waits for a person.

use super::Draft;
use crate::job::state::RESTORED;
use campanile_schema::{
    event::{Event, Next},
    ids::{ExecutorSession, RunId},
    record::{AttemptState, RunState},
};

/// An attempt that perhaps was: the run goes the way of one whose executor was lost. Bodies that ran at the time of the backup
/// need no doubt of their own: their lease ends, or their executor announces them.
pub(super) fn doubt(draft: &mut Draft<'_>, run: RunId, state: RunState) {
    let (job, at_ms) = (draft.job.id, draft.ctx.now_ms);
    match state {
        RunState::Queued => {}
        RunState::Pending => draft.emit(Event::RunReleased { job, run, at_ms }),
        RunState::RetryWait => draft.emit(Event::RetryDue { job, run, at_ms }),
        RunState::Running | RunState::SuspectedLost | RunState::NeedsConfirmation => return,
        RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => return,
    }
    let attempt = draft.job.run(run).and_then(|r| r.record.attempts.last()).map_or(1, |a| a.attempt + 1);
    let token = draft.new_token();
    draft.emit(Event::AttemptStarted {
        job,
        run,
        attempt,
        token,
        executor: "unknown".into(),
        session: ExecutorSession(0),
        credential: None,
        at_ms,
    });
    draft.emit(Event::AttemptEnded {
        job,
        run,
        token,
        state: AttemptState::Lost,
        error_code: Some(RESTORED.to_owned()),
        error_message: Some("restored from a backup: its body may have run after the backup was made".to_owned()),
        cpu_ms: None,
        max_rss_kb: None,
        at_ms,
        next: Next::Confirm,
        uncounted: false,
    });
}
