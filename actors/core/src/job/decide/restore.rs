//! Decisions about a job that was restored from a backup. The old node may have continued after the backup, and nothing
//! here knows how far.

use super::{Draft, change::standing_reason, due};
use crate::{
    job::{effect::Reply, state::RESTORED},
    reject::Rejection,
};
use campanile_schema::{
    event::{Event, Next, Outcome, SkipReason},
    ids::{ExecutorSession, RunId},
    record::{AttemptState, RunState},
};

/// Runs of a job that is not idempotent wait for a person: their bodies may have begun after the backup. With `skip`, the
/// instants up to now are closed as skipped: they may have fired. Without it they are misfires, as after an outage.
pub(super) fn restored(draft: &mut Draft<'_>, skip: bool) -> Result<Reply, Rejection> {
    if draft.job.def.not_idempotent {
        let waiting: Vec<(RunId, RunState)> = draft.job.hot.runs.iter().map(|r| (r.id(), r.state())).collect();
        for (run, state) in waiting {
            doubt(draft, run, state);
        }
    }
    let now = draft.ctx.now_ms;
    if skip && draft.job.hot.next_due_ms.is_some_and(|due| due <= now) {
        let reason = if draft.job.fires() { skip_by_pauses(draft) } else { standing_reason(draft) };
        due::settle(draft, false, reason)?;
    }
    Ok(Reply::Done)
}

/// Each instant that is due is skipped with the reason of the pause that it is due in, or as restored. Gives the reason of what comes after
/// the last of them.
fn skip_by_pauses(draft: &mut Draft<'_>) -> SkipReason {
    let now = draft.ctx.now_ms;
    while let Some(due) = draft.job.hot.next_due_ms.filter(|due| *due <= now) {
        let (to_ms, reason) = match draft.pause_of(due) {
            Some(pause) => (pause.to_ms.unwrap_or(now).min(now), pause.reason),
            None => (draft.until_pause(due), SkipReason::Restored),
        };
        due::skip_until(draft, to_ms, Outcome::Skipped, reason);
    }
    SkipReason::Restored
}

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
