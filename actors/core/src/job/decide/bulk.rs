//! What a bulk operation changes in a job.

use super::{
    super::{
        bulk::{Verdict, verdict},
        bulk_command::BulkCommand,
        effect::Reply,
    },
    Draft, change,
};
use crate::reject::Rejection;
use campanile_schema::event::Event;

pub(super) fn carry_out(draft: &mut Draft<'_>, command: &BulkCommand) -> Result<Reply, Rejection> {
    match verdict(&draft.job.hot, command)? {
        Verdict::Pause(mark) => change::pause(draft, command.reason.clone(), Some(mark)),
        Verdict::Mark(mark) => {
            let (job, at_ms) = (draft.job.id, draft.ctx.now_ms);
            draft.emit(Event::JobPaused { job, at_ms, reason: command.reason.clone(), bulk: Some(mark) });
            Ok(Reply::Done)
        }
        Verdict::Resume(mark) => change::resume(draft, Some(mark)),
        Verdict::Delete => change::delete(draft),
        Verdict::Reply(outcome) => Ok(outcome.reply()),
    }
}
