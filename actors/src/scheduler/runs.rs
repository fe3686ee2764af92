//! Calls about runs.

use super::{
    Scheduler,
    jobs::{clamp_page, named},
    log_part::LogPart,
    no_such, unavailable,
};
use crate::{
    ask::ask,
    calls::{FinalAction, ShardCall},
    messages::ShardMsg,
    shard_map::ShardPlace,
};
use campanile_core::{
    hooks,
    job::{Command, Reply},
    outbox::keys,
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    format::MESSAGES_FORMAT,
    ids::{JobId, RunId},
    limits,
    record::RunState,
    view::{ConfirmDecision, Page, RetryBody, RunView, TriggerBody},
};
use std::time::Duration;
use tokio::sync::oneshot;

/// Between two looks at a run of another node whose end is waited for.
const REMOTE_WAIT: Duration = Duration::from_millis(100);

impl Scheduler {
    /// The run; the same caller's key again answers with the same run.
    pub async fn trigger(&self, job: JobId, body: TriggerBody) -> Answer<RunView> {
        let too_long = |what: &str, max: usize| {
            ApiError::new(ErrorCode::InvalidArgument, format!("{what} takes at most {max} bytes"))
        };
        if body.manual_run_id.as_ref().is_some_and(|k| k.is_empty() || k.len() > limits::KEY_BYTES) {
            return Err(too_long("manualRunId (not empty)", limits::KEY_BYTES));
        }
        if body.manual_run_id.as_deref().is_some_and(keys::is_reserved) {
            let why = "manualRunId: the character U+0001 is not allowed: keys of the scheduler itself begin with it";
            return Err(ApiError::new(ErrorCode::InvalidArgument, why));
        }
        if body.params.as_ref().is_some_and(|p| p.len() > limits::PARAMS_BYTES) {
            return Err(too_long("params", limits::PARAMS_BYTES));
        }
        if body.reason.as_ref().is_some_and(|r| r.len() > limits::REASON_BYTES) {
            return Err(too_long("reason", limits::REASON_BYTES));
        }
        let handles = self.handles()?;
        let TriggerBody { manual_run_id: key, params, reason, callback } = body;
        // The run tells who asked for it; there is no record beside it.
        let sealed = match callback {
            Some(callback) => Some(self.callback(&handles, job, callback).await?),
            None => None,
        };
        let command = Command::Trigger { key, params, reason, by: self.caller(), sealed };
        let reply = ask(&handles.client, job.shard(handles.identity.shards), ShardCall::Trigger { job, command })
            .await
            .map_err(|e| named(e, "job", job))?;
        metrics::counter!("campanile_manual_triggers_total").increment(1);
        run_view(reply)
    }

    /// Live and final runs, newest first.
    pub async fn job_runs(&self, job: JobId, page_token: Option<String>, page_size: usize) -> Answer<Page<RunView>> {
        let handles = self.handles()?;
        let size = clamp_page(page_size);
        let after = page_token.as_deref().map(parse_token).transpose()?;
        let first = after.is_none();
        let mut open: Vec<RunView> = if first {
            match ask(&handles.client, job.shard(handles.identity.shards), ShardCall::OpenRuns(job)).await {
                Ok(runs) => runs,
                // A deleted job keeps its history.
                Err(error) if error.code() == ErrorCode::NotFound => Vec::new(),
                Err(error) => return Err(error.into()),
            }
        } else {
            Vec::new()
        };
        let page = handles.views.job_runs(job, after, size).await.map_err(|e| unavailable(&e))?;
        let live: std::collections::HashSet<RunId> = open.iter().map(|r| r.run_id).collect();
        open.extend(page.items.iter().filter(|r| !live.contains(&r.run)).map(RunView::from));
        // Ids rise with creation within a job.
        open.sort_by_key(|r| std::cmp::Reverse(r.run_id));
        Ok(Page { items: open, next_page_token: page.next.as_deref().map(token) })
    }

    pub async fn run(&self, run: RunId) -> Answer<RunView> {
        let handles = self.handles()?;
        let live: Option<Box<RunView>> =
            ask(&handles.client, run.shard(handles.identity.shards), ShardCall::GetRun(run)).await?;
        let mut view = match live {
            Some(view) => *view,
            None => handles
                .views
                .run(run)
                .await
                .map_err(|e| unavailable(&e))?
                .as_ref()
                .map(RunView::from)
                .ok_or_else(|| no_such("run", run))?,
        };
        if view.state == RunState::Queued
            && let Some(why) = self.why_waiting(&view).await
        {
            view.wait_reason = Some(why);
        }
        Ok(view)
    }

    pub async fn tenant_of_run(&self, run: RunId) -> Answer<String> {
        self.run(run).await.map(|r| r.tenant_id)
    }

    pub async fn cancel_run(&self, run: RunId, reason: Option<String>) -> Answer<RunView> {
        let view = self.run(run).await?;
        run_view(self.command(view.job_id, Command::Cancel { run, reason }).await?)
    }

    /// A final run again: next generation, fresh budget. `redrive`: only dead letters.
    /// The run of a DAG's node is retried by its DAG, which then goes on.
    pub async fn retry_run(&self, run: RunId, redrive: bool, reason: Option<String>) -> Answer<RunView> {
        self.retry_run_anyway(run, redrive, RetryBody { reason, force: false }).await
    }

    /// The same; with `force` also if the run was compensated.
    pub async fn retry_run_anyway(&self, run: RunId, redrive: bool, body: RetryBody) -> Answer<RunView> {
        let RetryBody { reason, force } = body;
        let view = self.run(run).await?;
        if let Some(node) = view.dag_run_id.zip(view.dag_node) {
            self.retry_node(&view, node, redrive, RetryBody { reason, force }).await?;
            return self.opened_again(run, view.generation).await;
        }
        run_view(self.on_final(run, FinalAction::Reopen { redrive, reason, force }).await?)
    }

    /// The run of a DAG's node, at its DAG run.
    pub(super) async fn retry_node(
        &self,
        view: &RunView,
        (dag, place): (RunId, u32),
        redrive: bool,
        body: RetryBody,
    ) -> Answer<()> {
        if redrive && !view.dead_letter {
            let why = "the run is not a dead letter (it may have been redriven)";
            return Err(ApiError::new(ErrorCode::IllegalState, why));
        }
        if view.compensated {
            hooks::ask_if_undone(view.run_id, body.force)?;
        }
        self.retry_at_parent(dag, place, body.reason).await.map(drop)
    }

    pub async fn discard_dead_letter(&self, run: RunId, reason: Option<String>) -> Answer<()> {
        self.because(reason).on_final(run, FinalAction::Discard).await.map(|_| ())
    }

    /// The run of a node when its DAG's message has opened it again, or as it is a moment later: the message may wait for room.
    async fn opened_again(&self, run: RunId, generation: u32) -> Answer<RunView> {
        let until = tokio::time::Instant::now() + Duration::from_millis(limits::NODE_OPENED_MS);
        loop {
            let view = self.run(run).await?;
            if view.generation > generation || tokio::time::Instant::now() >= until {
                return Ok(view);
            }
            tokio::time::sleep(Duration::from_millis(limits::NODE_LOOK_MS)).await;
        }
    }

    async fn on_final(&self, run: RunId, action: FinalAction) -> Answer<Reply> {
        let handles = self.handles()?;
        let change = self.with_record(&handles, ShardCall::OnFinal { run, action });
        Ok(ask(&handles.client, run.shard(handles.identity.shards), change).await?)
    }

    pub async fn confirm_run(&self, run: RunId, decision: ConfirmDecision, reason: Option<String>) -> Answer<RunView> {
        let view = self.run(run).await?;
        run_view(self.command(view.job_id, Command::Confirm { run, decision, reason }).await?)
    }

    /// Gives a run that waits a priority of its own.
    pub async fn set_run_priority(&self, run: RunId, priority: u16, reason: Option<String>) -> Answer<RunView> {
        let handles = self.handles()?;
        if handles.in_use.event() < MESSAGES_FORMAT {
            let why = "not all nodes of the cluster run the release that knows priorities of runs; repeat the call when they do";
            return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
        }
        let view = self.run(run).await?;
        run_view(self.because(reason).command(view.job_id, Command::Prioritize { run, priority }).await?)
    }

    /// Returns as soon as the run is final, or its view as it is after `timeout_ms`.
    pub async fn wait_run(&self, run: RunId, timeout_ms: u64) -> Answer<RunView> {
        let handles = self.handles()?;
        let shard = run.shard(handles.identity.shards);
        let until = tokio::time::Instant::now() + Duration::from_millis(timeout_ms);
        if let ShardPlace::Here = handles.shards.place(shard) {
            let (port, ended) = oneshot::channel();
            handles.shards.send(shard, ShardMsg::Watch(run, port));
            // Too late is no error: the caller sees the state.
            let _ = tokio::time::timeout_at(until, handles.health.ended.or_answer(ended)).await;
            return self.run(run).await;
        }
        loop {
            let view = self.run(run).await?;
            if view.state.is_final() || tokio::time::Instant::now() >= until {
                return Ok(view);
            }
            // A call that is held open for so long would stand in the way of others between the two nodes.
            tokio::time::sleep_until(until.min(tokio::time::Instant::now() + REMOTE_WAIT)).await;
        }
    }

    /// `attempt` None = the newest. About `most` bytes, and of a log that grows only whole characters. An `offset` inside of a
    /// character means the place before it: the answer says from where its text is.
    pub async fn run_log(&self, run: RunId, attempt: Option<u32>, offset: u64, most: usize) -> Answer<LogPart> {
        let view = self.run(run).await?;
        let Some(newest) = view.attempts.last() else {
            return Ok(LogPart { attempt: 0, offset, bytes: Vec::new(), end: view.state.is_final() });
        };
        let attempt = attempt.unwrap_or(newest.attempt);
        let known = view.attempts.iter().find(|a| a.attempt == attempt);
        let ended = known.is_none_or(|a| a.ended_at.is_some());
        let handles = self.handles()?;
        let most = most.min(limits::LOG_BYTES_PER_ATTEMPT);
        // Enough before the offset to see whether it is inside of a character.
        let before = offset.min(CHARACTER_BYTES as u64 - 1);
        let read = handles.views.read_log(run, attempt, offset - before, most + before as usize);
        let mut bytes = read.await.map_err(|e| unavailable(&e))?;
        let before = before as usize;
        let end = ended && bytes.len() < limits::LOG_BYTES_PER_ATTEMPT.min(most) + before;
        // A log that has ended with a begun character is not read again from there.
        let begin = if end && bytes.len() <= before { bytes.len() } else { character_at(&bytes, before) };
        bytes.drain(..begin);
        // Behind the end of the log nothing is to be found; the caller's place stays.
        let offset = if bytes.is_empty() { offset } else { offset - (before - begin) as u64 };
        if !end {
            bytes.truncate(whole_characters(&bytes));
        }
        Ok(LogPart { attempt, offset, bytes, end })
    }
}

/// Bytes of the longest character.
const CHARACTER_BYTES: usize = 4;

/// Where the character begins that the byte at `at` belongs to: `at` itself between characters, in what is no UTF-8, and
/// behind the end. A character that is still to come whole counts too.
fn character_at(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    let reaches = |from: usize| {
        let there = &bytes[from..bytes.len().min(from + CHARACTER_BYTES)];
        let whole = match std::str::from_utf8(there) {
            Ok(text) => text,
            // Begun, and cut off by the end of what there is.
            Err(error) if error.valid_up_to() == 0 => return error.error_len().is_none(),
            Err(error) => std::str::from_utf8(&there[..error.valid_up_to()]).unwrap_or_default(),
        };
        whole.chars().next().is_some_and(|first| from + first.len_utf8() > at)
    };
    (at.saturating_sub(CHARACTER_BYTES - 1)..at).find(|from| reaches(*from)).unwrap_or(at)
}

/// How much of it is there without a character at its end that is still to come: also nothing, when that character is all
/// there is. What is no UTF-8 at all counts as it is.
fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(CHARACTER_BYTES);
    let begun = bytes[last..].iter().rposition(|byte| byte & 0xc0 != 0x80).map_or(bytes.len(), |at| last + at);
    match std::str::from_utf8(&bytes[begun..]) {
        Err(error) if error.error_len().is_none() => begun,
        Ok(_) | Err(_) => bytes.len(),
    }
}

pub(super) fn run_view(reply: Reply) -> Answer<RunView> {
    match reply {
        Reply::Run(view) => Ok(*view),
        Reply::Final(record) => Ok(RunView::from(&*record)),
        Reply::Done | Reply::Unchanged | Reply::Backfill(_) | Reply::Stale => {
            Err(ApiError::new(ErrorCode::Internal, "the run answered without its view"))
        }
    }
}

/// Page tokens are opaque to callers: hex of what the view gave.
pub(super) fn token(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

pub(super) fn parse_token(text: &str) -> Answer<Vec<u8>> {
    let bad = || ApiError::new(ErrorCode::InvalidArgument, "pageToken is not one that this server gave");
    if text.len() > 512 {
        return Err(bad());
    }
    hex::decode(text).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::{character_at, whole_characters};

    #[test]
    fn a_place_inside_of_a_character_means_the_one_before_it() {
        let text = "ab\u{4e2d}cd\u{1f600}\u{e9}";
        for at in 0..=text.len() {
            let expected = (0..=at).rev().find(|before| text.is_char_boundary(*before)).unwrap();
            assert_eq!(character_at(text.as_bytes(), at), expected, "{at}");
        }
        // Begun, and the rest is still to come.
        assert_eq!(character_at(b"ab\xe4\xb8", 3), 2);
        // What is no UTF-8 has no characters.
        assert_eq!(character_at(b"\xe4\xb8ab", 1), 1);
        assert_eq!(character_at(b"\x80\x80\x80\x80", 3), 3);
        assert_eq!(character_at(b"ab", 5), 2);
        assert_eq!(character_at(b"ab\xe4", 3), 2);
    }

    #[test]
    fn a_log_is_cut_between_characters_however_its_bytes_arrive() {
        let text = "ab\u{4e2d}cd\u{1f600}\u{e9}".as_bytes();
        for arrived in 0..=text.len() {
            let whole = whole_characters(&text[..arrived]);
            // Each look begins where the one before ended, so that a begun character may be all that it finds.
            for from in (0..=whole).filter(|from| std::str::from_utf8(&text[*from..whole]).is_ok()) {
                assert_eq!(from + whole_characters(&text[from..arrived]), whole, "{from} to {arrived}");
            }
        }
        assert_eq!(whole_characters(b"\xe4\xb8"), 0);
        // What never becomes a character is not waited for.
        assert_eq!(whole_characters(b"a\xff"), 2);
        assert_eq!(whole_characters(b"\x80\x80"), 2);
    }
}
