//! Decisions about a job that was restored from a backup. The old node may have continued after the backup, and nothing
//! here knows how far.

use super::{Draft, change::standing_reason, doubtful::doubt, due, lane};
use crate::{job::effect::Reply, reject::Rejection};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::RunId,
    record::RunState,
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
    lane::restored(draft);
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
