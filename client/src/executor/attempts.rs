//! Everything an executor holds: attempts that run, and results that no node has called durable yet.
//!
//! Pure but for the handles of the bodies: clocks are arguments, and what to send is asked for.

use super::{
    body_span::BodySpan,
    config::OnBodyEnd,
    context::Context,
    key::Key,
    report::{Report, code},
    stop::StopReason,
};
use campanile_schema::{
    job::OnLostContact,
    limits::{ERROR_MESSAGE_BYTES, EXECUTOR_BATCH, FINISH_AGAIN_MS, RPC_UNSENT_BYTES},
    record::AttemptState,
    rpc::executor::{Ended, Held, LogChunk},
};
use hashbrown::HashMap;
use std::collections::{BTreeSet, VecDeque};
use tokio::task::AbortHandle;

struct Running {
    ctx: Context,
    abort: AbortHandle,
    span: Option<BodySpan>,
    /// The connection that it came over.
    link: usize,
    /// When its time is over, or, once told to stop, its grace.
    deadline_ms: u64,
    stopping: Option<StopReason>,
    ending: Ending,
}

/// What ends a body that was told to stop and has used up its grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its future is dropped at the next `await`.
    Dropped,
    /// It kills its processes itself and returns when they are gone. Dropping it would report an end that has not happened.
    ByItself,
}

struct Outcome {
    ended: Ended,
    link: usize,
    /// What is left of its log, to be sent before it.
    ctx: Option<Context>,
}

/// Results to send, in order, and their logs.
#[derive(Default)]
pub(super) struct Batch<'a> {
    pub keys: Vec<Key>,
    pub items: Vec<&'a Ended>,
    pub logs: Vec<LogChunk>,
}

/// See the module's text.
pub(super) struct Attempts {
    running: HashMap<Key, Running>,
    deadlines: BTreeSet<(u64, Key)>,
    results: HashMap<Key, Outcome>,
    /// Results to send, per connection.
    unsent: Vec<VecDeque<Key>>,
    /// Results that a node did not take, with the time to send them again.
    again: VecDeque<(u64, Key)>,
    grace_ms: u64,
}

impl Attempts {
    pub(super) fn new(grace_ms: u64) -> Self {
        Self {
            running: HashMap::new(),
            deadlines: BTreeSet::new(),
            results: HashMap::new(),
            unsent: Vec::new(),
            again: VecDeque::new(),
            grace_ms,
        }
    }

    /// There is a connection of this number.
    pub(super) fn open(&mut self, link: usize) {
        if self.unsent.len() <= link {
            self.unsent.resize_with(link + 1, VecDeque::new);
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }
    pub(super) fn unacknowledged(&self) -> usize {
        self.results.len()
    }
    pub(super) fn holds(&self, key: Key) -> bool {
        self.running.contains_key(&key) || self.results.contains_key(&key)
    }
    pub(super) fn context(&self, key: Key) -> Option<(&Context, usize)> {
        self.running.get(&key).map(|r| (&r.ctx, r.link))
    }

    pub(super) fn started(
        &mut self,
        key: Key,
        ctx: Context,
        body: (AbortHandle, Ending),
        span: Option<BodySpan>,
        link: usize,
        now_ms: u64,
    ) {
        let deadline_ms = now_ms.saturating_add(ctx.assignment().timeout_sec.saturating_mul(1000));
        self.deadlines.insert((deadline_ms, key));
        let (abort, ending) = body;
        self.running.insert(key, Running { ctx, abort, span, link, deadline_ms, stopping: None, ending });
    }

    /// An operator said that a body has ended: its slot is free, and its result is nobody's news any more.
    pub(super) fn forget(&mut self, key: Key) {
        if let Some(running) = self.running.remove(&key) {
            tracing::warn!(run = %key.run, "an operator said that a body has ended; its slot is free again");
            self.deadlines.remove(&(running.deadline_ms, key));
            running.ctx.stop(StopReason::Canceled);
            running.abort.abort();
        }
    }

    /// Tells a body to stop. The first reason stands.
    pub(super) fn stop(&mut self, key: Key, reason: StopReason, now_ms: u64) {
        let Some(running) = self.running.get_mut(&key) else {
            return;
        };
        if running.stopping.is_some() {
            return;
        }
        running.stopping = Some(reason);
        running.ctx.stop(reason);
        self.deadlines.remove(&(running.deadline_ms, key));
        running.deadline_ms = now_ms.saturating_add(self.grace_ms);
        self.deadlines.insert((running.deadline_ms, key));
    }

    pub(super) fn stop_all(&mut self, reason: StopReason, now_ms: u64) {
        let keys: Vec<Key> = self.running.keys().copied().collect();
        for key in keys {
            self.stop(key, reason, now_ms);
        }
    }

    /// The bodies of a connection that has gone silent which must not outlive their lease.
    pub(super) fn stop_out_of_contact(&mut self, link: usize, now_ms: u64) {
        let must_stop = |r: &Running| match r.ctx.assignment().on_lost_contact {
            OnLostContact::Stop => r.link == link && r.stopping.is_none(),
            OnLostContact::Continue => false,
        };
        let keys: Vec<Key> = self.running.iter().filter(|(_, r)| must_stop(r)).map(|(key, _)| *key).collect();
        for key in keys {
            self.stop(key, StopReason::LostContact, now_ms);
        }
    }

    /// Acts on deadlines that have passed: over time = told to stop, over the grace = dropped. A body that neither ends by itself
    /// nor can be dropped keeps its slot, and the node is told of no end.
    pub(super) fn expire(&mut self, now_ms: u64) {
        while let Some((at, key)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now_ms) {
            match self.running.get(&key) {
                Some(running) if running.stopping.is_none() => self.stop(key, StopReason::Timeout, now_ms),
                Some(running) => {
                    match running.ending {
                        // Its end is told when the task is gone; a body that never yields keeps its slot until then.
                        Ending::Dropped => running.abort.abort(),
                        Ending::ByItself => {}
                    }
                    self.deadlines.remove(&(at, key));
                }
                None => drop(self.deadlines.remove(&(at, key))),
            }
        }
        while self.again.front().is_some_and(|(at, _)| *at <= now_ms) {
            if let Some((_, key)) = self.again.pop_front() {
                self.queue(key);
            }
        }
    }

    /// A body is gone; its result is kept until a node calls it durable or refused.
    pub(super) fn ended(&mut self, key: Key, report: Option<Report>, told: Option<&OnBodyEnd>) {
        let Some(running) = self.running.remove(&key) else {
            return;
        };
        self.deadlines.remove(&(running.deadline_ms, key));
        let ended = conclude(key, &running, report);
        if let (Some(told), Some(span)) = (told, running.span) {
            told(span.end(running.ctx.assignment(), &ended));
        }
        self.results.insert(key, Outcome { ended, link: running.link, ctx: Some(running.ctx) });
        self.queue(key);
    }

    /// Keeps the result of an attempt that never ran.
    pub(super) fn refused(&mut self, ended: Ended, link: usize) {
        let key = Key { run: ended.run, token: ended.token };
        self.results.insert(key, Outcome { ended, link, ctx: None });
        self.queue(key);
    }

    fn queue(&mut self, key: Key) {
        if let Some(outcome) = self.results.get(&key)
            && let Some(queue) = self.unsent.get_mut(outcome.link)
        {
            queue.push_back(key);
        }
    }

    /// The next batch of results for a connection, with the logs that go before them.
    pub(super) fn batch(&mut self, link: usize) -> Batch<'_> {
        let mut batch = Batch::default();
        let mut bytes = 0;
        while batch.keys.len() < EXECUTOR_BATCH && bytes < RPC_UNSENT_BYTES {
            let Some(key) = self.unsent[link].pop_front() else {
                break;
            };
            // One that was called durable meanwhile is gone.
            let Some(outcome) = self.results.get_mut(&key) else {
                continue;
            };
            if let Some(ctx) = outcome.ctx.take() {
                while let Some(data) = ctx.take_log(true) {
                    bytes += data.len();
                    batch.logs.push(LogChunk { run: key.run, token: key.token, attempt: ctx.attempt(), data });
                }
            }
            bytes += weight(&outcome.ended);
            batch.keys.push(key);
        }
        // Once no log is taken any more, the results can be lent.
        batch.items = batch.keys.iter().filter_map(|key| self.results.get(key)).map(|o| &o.ended).collect();
        batch
    }

    pub(super) fn has_unsent(&self, link: usize) -> bool {
        !self.unsent[link].is_empty()
    }

    /// A node has spoken about a result: it need not be held any more.
    pub(super) fn settled(&mut self, key: Key) {
        self.results.remove(&key);
    }

    /// A node did not take it now.
    pub(super) fn again(&mut self, key: Key, now_ms: u64) {
        self.again.push_back((now_ms + FINISH_AGAIN_MS, key));
    }

    /// What came over a connection that is gone is told over another one of the same cluster: any node passes it on.
    pub(super) fn rehome(&mut self, from: usize, to: usize) {
        self.running.values_mut().filter(|r| r.link == from).for_each(|r| r.link = to);
        let mut moved = Vec::new();
        for (key, outcome) in self.results.iter_mut().filter(|(_, o)| o.link == from) {
            outcome.link = to;
            moved.push(*key);
        }
        self.unsent[from].clear();
        self.again.retain(|(_, key)| !moved.contains(key));
        self.unsent[to].extend(moved);
    }

    /// Whether anything is to be told over a connection.
    pub(super) fn is_home(&self, link: usize) -> bool {
        self.running.values().any(|r| r.link == link) || self.results.values().any(|o| o.link == link)
    }

    /// A connection came back: all its results are sent again, since nobody knows which arrived.
    pub(super) fn resend(&mut self, link: usize) {
        self.unsent[link].clear();
        self.again.retain(|(_, key)| self.results.get(key).is_some_and(|o| o.link != link));
        let mine = self.results.iter().filter(|(_, o)| o.link == link).map(|(key, _)| *key);
        self.unsent[link].extend(mine);
    }

    /// Everything held, for an announcement.
    pub(super) fn held(&self) -> Vec<Held> {
        let running = self.running.iter().map(|(key, r)| Held { run: key.run, job: r.ctx.job_id(), token: key.token });
        let ended = self.results.values().map(|o| Held { run: o.ended.run, job: o.ended.job, token: o.ended.token });
        running.chain(ended).collect()
    }
}

impl Drop for Attempts {
    /// The executor is gone, and so are its bodies.
    fn drop(&mut self) {
        for running in self.running.values() {
            running.abort.abort();
        }
    }
}

/// About what a result takes in a frame, bytes.
fn weight(ended: &Ended) -> usize {
    64 + ended.error_message.as_ref().map_or(0, String::len) + ended.result.as_ref().map_or(0, |r| r.len())
}

fn conclude(key: Key, running: &Running, report: Option<Report>) -> Ended {
    let used = report.as_ref().map(|r| (r.cpu_ms, r.max_rss_kb)).unwrap_or_default();
    let said = report.as_ref().and_then(|r| r.outcome.as_ref().err()).map(|e| format!(" ({e})")).unwrap_or_default();
    let permanent = running.stopping.is_none()
        && report.as_ref().is_some_and(|r| r.outcome.as_ref().is_err_and(|error| error.permanent));
    let stopped = |code: &str, why: &str| (Some(code.to_owned()), Some(format!("{why}{said}")), None);
    let (state, (error_code, error_message, result)) = match (running.stopping, report) {
        (None, Some(Report { outcome: Ok(result), .. })) => (AttemptState::Success, (None, None, result)),
        (None, Some(Report { outcome: Err(e), .. })) => (AttemptState::Failed, (Some(e.code), Some(e.message), None)),
        (None, None) => (AttemptState::Failed, stopped(code::BODY_ABORTED, "the body was aborted")),
        // The node asked for it and counts on it: even a body that says it was done in time is reported as stopped.
        (Some(StopReason::Canceled), _) => (AttemptState::Canceled, stopped(code::CANCELED, "stopped on request")),
        (Some(StopReason::Timeout), _) => (
            AttemptState::Timeout,
            stopped(code::TIMEOUT, &format!("stopped after {} s", running.ctx.assignment().timeout_sec)),
        ),
        // Failed, not canceled: the retry policy shall start it elsewhere.
        (Some(StopReason::LostContact), _) => {
            (AttemptState::Failed, stopped(code::LOST_CONTACT, "stopped before the lease ended: no node answered"))
        }
        (Some(StopReason::Shutdown), _) => {
            (AttemptState::Failed, stopped(code::EXECUTOR_SHUTDOWN, "stopped because the executor shut down"))
        }
    };
    let mut ended = Ended {
        run: key.run,
        job: running.ctx.job_id(),
        token: key.token,
        state,
        error_code,
        error_message: error_message.map(cut),
        result,
        cpu_ms: used.0,
        max_rss_kb: used.1,
        permanent,
    };
    // Here already, and not only at the node: a frame would be lost over it.
    if ended.drop_large_result() {
        tracing::warn!(run = %ended.run, job = %ended.job, why = ended.error_message.as_deref(), "a result is too large");
    }
    ended
}

fn cut(mut message: String) -> String {
    if message.len() > ERROR_MESSAGE_BYTES {
        let mut end = ERROR_MESSAGE_BYTES - 3;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str("...");
    }
    message
}
