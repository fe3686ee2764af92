//! The end of the log. A decision's events are applied to memory at once and added to the open frame. The frame goes to
//! the journal at the end of the shard's turn, or earlier when it has enough decisions. Replies and effects wait here
//! until it is durable.

use super::{Forget, Shard};
use crate::{
    call_error::CallError,
    journal::Waiter,
    messages::{PoolMsg, ReplyTo, ShardMsg},
};
use campanile_core::job::{Decision, Effect, Reply};
use campanile_ports::Position;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::Event,
    frame::{Frame, encode},
    ids::{JobId, RunId},
};
use ractor::ActorRef;
use std::sync::{Arc, atomic::Ordering};

/// Something that happens when everything up to `seq` is durable.
pub(super) struct Awaiting {
    pub seq: u64,
    pub what: WhenDurable,
}

pub(super) enum WhenDurable {
    /// A decision's effects and answer.
    Decision { effects: Vec<Effect>, reply: ReplyTo, answer: Result<Reply, CallError> },
    /// An answer that rests on what was enqueued before.
    Call(Box<dyn FnOnce() + Send + 'static>),
}

/// Decisions after which a frame is sealed although others are on their way. A decision takes half a MiB at most (eight runs with the
/// largest params), so a batch with it fits into the smallest segment.
const FRAME_DECISIONS: usize = 16;

/// Ids of jobs that are gone which the list of ids may hold beside as many as there are jobs.
const ORDER_SLACK: usize = 64;

/// A frame that gathers decisions. It has its seq, so whatever rests on them waits for it.
pub(super) struct OpenFrame {
    frame: Frame,
    decisions: usize,
    forget: Vec<Forget>,
    waiter: Waiter,
}

impl Shard {
    /// Runs `then`, which a caller waits for, when all that was enqueued so far is durable: at once when it is.
    pub(super) fn when_durable(&mut self, then: impl FnOnce() + Send + 'static) {
        if self.durable_seq < self.state.seq {
            self.deps.journal.hurry();
        }
        self.behind_durable(then);
    }

    /// [`Self::when_durable`] that nobody is kept waiting by.
    pub(super) fn behind_durable(&mut self, then: impl FnOnce() + Send + 'static) {
        if self.durable_seq >= self.state.seq {
            then();
        } else {
            self.awaiting.push_back(Awaiting { seq: self.state.seq, what: WhenDurable::Call(Box::new(then)) });
        }
    }

    /// Puts a decision that a caller waits for into the log: applied to memory now, effects and answer when durable.
    pub(super) fn append(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        mut events: Vec<Event>,
        effects: Vec<Effect>,
        reply: ReplyTo,
        answer: Result<Reply, CallError>,
    ) {
        self.audit(&mut events);
        self.append_for(myself, Waiter::Caller, events, effects, reply, answer);
    }

    /// [`Self::append`] that those who are named wait for.
    pub(super) fn append_for(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        waiter: Waiter,
        events: Vec<Event>,
        effects: Vec<Effect>,
        reply: ReplyTo,
        answer: Result<Reply, CallError>,
    ) {
        let effects = self.ask_at_once(&events, effects);
        let watched = self.deps.changes.recording();
        let mut open = self.open.take().unwrap_or_else(|| self.open_frame());
        for event in &events {
            self.state.apply(event);
            self.count_dags(event);
            self.index_backfill(event);
            self.index_calendar(event);
            self.index(event, &mut open.forget);
        }
        self.posted(&events, open.frame.seq);
        let changes = if watched { self.changes_of(&events) } else { Vec::new() };
        let spans = if self.deps.identity.tracer.is_on() { self.spans_of(&events, open.frame.seq) } else { Vec::new() };
        if open.frame.events.is_empty() && self.frame_events <= events.len() {
            // Nothing is copied for a frame of one decision.
            open.frame.events = events;
        } else {
            let missing = self.frame_events.saturating_sub(open.frame.events.len());
            open.frame.events.reserve(missing.max(events.len()));
            open.frame.events.extend(events);
        }
        open.decisions += 1;
        open.waiter = open.waiter.max(waiter);
        self.state.hlc = open.frame.hlc + open.frame.events.len().max(1) as u64 - 1;
        let (seq, full) = (open.frame.seq, open.decisions >= FRAME_DECISIONS);
        self.open = Some(open);
        self.awaiting.push_back(Awaiting { seq, what: WhenDurable::Decision { effects, reply, answer } });
        if !changes.is_empty() {
            let deps = self.deps.clone();
            self.behind_durable(move || deps.changes.push(changes, deps.time.boot_ms()));
        }
        self.record_when_durable(spans);
        if full {
            self.seal(myself);
        }
    }

    /// A new run asks for its permit and its executor while its frame is on the way to the disk: both live in memory as the run
    /// does, and its attempt's frame comes behind this one in the log, so nothing is sent before both are durable. Runs that
    /// had an attempt wait, or their permit of before would come back behind the new one. Returns the other effects.
    fn ask_at_once(&mut self, events: &[Event], mut effects: Vec<Effect>) -> Vec<Effect> {
        let is_new = |id: RunId| events.iter().any(|e| matches!(e, Event::RunCreated { run, .. } if *run == id));
        self.asking.extend(effects.extract_if(.., |e| matches!(e, Effect::Enqueue(waiting) if is_new(waiting.run))));
        effects
    }

    /// After each message: what it decided is one frame, and its new runs ask together.
    pub(super) fn end_of_turn(&mut self, myself: &ActorRef<ShardMsg>) {
        self.seal(myself);
        self.deps.pool.release(std::mem::take(&mut self.asking));
    }

    fn open_frame(&mut self) -> OpenFrame {
        debug_assert!(!self.stopping, "shard {}: decided something after it was told to stop", self.id);
        let hlc = self.state.next_hlc(self.deps.time.now_us());
        self.state.seq += 1;
        let format = self.deps.in_use.event();
        let frame = Frame { shard: self.id, epoch: self.epoch, seq: self.state.seq, hlc, events: Vec::new(), format };
        OpenFrame { frame, decisions: 0, forget: Vec::new(), waiter: Waiter::Nobody }
    }

    /// Hands the open frame to the journal.
    pub(super) fn seal(&mut self, myself: &ActorRef<ShardMsg>) {
        let Some(OpenFrame { frame, forget, waiter, .. }) = self.open.take() else { return };
        self.frame_events = frame.events.len();
        let bytes = encode(&frame);
        self.snapshots.owe(bytes.len(), self.deps.time.boot_ms());
        if !forget.is_empty() {
            self.unprojected.push_back((frame.seq, forget));
        }
        self.deps.journal.append(Arc::new(frame), bytes, myself.clone(), waiter);
    }

    /// Keeps the shard's own look-ups in step with an event.
    pub(super) fn index(&mut self, event: &Event, forget: &mut Vec<Forget>) {
        match event {
            // Its tenant has counted it: `TenantGauge::count_job`.
            Event::JobCreated { job, spec, .. } => {
                self.add_name(&spec.tenant, &spec.name, *job);
                self.snapshots.changed.insert(*job);
            }
            Event::JobReplaced { job, spec, .. } => {
                if let Some(slot) = self.jobs.get_mut(job) {
                    slot.def = encode(spec).into_boxed_slice();
                }
                self.snapshots.changed.insert(*job);
            }
            Event::JobDeleted { job, .. } => {
                if let Some(known) = self.materialize(*job) {
                    self.remove_name(&known.def.tenant, &known.def.name, *job);
                    self.deps.tenants.gauge(&known.def.tenant).jobs.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Event::RunCreated { job, run, key, source, .. } => {
                self.open_runs.insert(*run, *job);
                if let Some(key) = key {
                    self.keys.insert((*job, key.clone()), *run);
                    self.post.made(*job, key, (*run, *source));
                }
            }
            Event::RunReopened { job, record, .. } => {
                self.open_runs.insert(record.run, *job);
                self.recent.remove(&record.run);
            }
            Event::RunEnded { job, record } => {
                self.open_runs.remove(&record.run);
                self.recent.insert(record.run, (self.state.seq, record.clone()));
                forget.push(Forget::Run(record.run));
                if let Some(key) = &record.key {
                    forget.push(Forget::Key(*job, key.clone()));
                }
                if let Some(watchers) = self.watchers.remove(&record.run) {
                    self.when_durable(move || {
                        for watcher in watchers {
                            let _ = watcher.send(());
                        }
                    });
                }
            }
            Event::DeadLetterDiscarded { record, .. } | Event::HookFailed { record: Some(record), .. } => {
                self.recent.insert(record.run, (self.state.seq, record.clone()));
                forget.push(Forget::Run(record.run));
            }
            Event::CursorMoved { .. }
            | Event::TenantSet { .. }
            | Event::TenantDeleted { .. }
            | Event::Lent { .. }
            | Event::PauseSet { .. }
            | Event::CreateKept { .. }
            | Event::Outbox { .. }
            | Event::HookFailed { record: None, .. }
            | Event::Audited { .. }
            | Event::GraphChanged { .. }
            | Event::BackfillChanged { .. }
            | Event::BulkChanged { .. }
            | Event::CalendarSet { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobQuarantined { .. }
            | Event::RunReleased { .. }
            | Event::RetryDue { .. }
            | Event::AttemptStarted { .. }
            | Event::AttemptSuspected { .. }
            | Event::AttemptHeard { .. }
            | Event::AttemptStopping { .. }
            | Event::AttemptEnded { .. }
            | Event::RunConfirmed { .. }
            | Event::RunPrioritized { .. } => {}
        }
    }

    /// A job actor decided. `crowded`: runs of its tenant wait.
    pub(super) fn accept(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        mut decision: Decision,
        reply: ReplyTo,
        crowded: bool,
    ) {
        // A message stands behind the event that causes it; who asked for all of them comes last.
        self.post(&mut decision);
        if let ReplyTo::Caller(_) = reply {
            self.audit(&mut decision.events);
        }
        if decision.events.is_empty() {
            // Rests on what was enqueued before.
            let effects = decision.effects;
            let deps = self.deps.clone();
            let answer = decision.reply;
            let called = matches!(reply, ReplyTo::Caller(_));
            let then = move || {
                deps.pool.release(effects);
                reply.answer(Ok(answer));
            };
            return if called { self.when_durable(then) } else { self.behind_durable(then) };
        }
        let ends =
            |event: &Event| matches!(event, Event::AttemptEnded { .. } | Event::RunEnded { .. } | Event::Outbox { .. });
        let waiter = match &reply {
            ReplyTo::Caller(_) => Waiter::Caller,
            ReplyTo::Finish(..) if !crowded && decision.events.iter().all(ends) => Waiter::Nobody,
            ReplyTo::Finish(..) | ReplyTo::Pool { .. } | ReplyTo::Nobody => Waiter::Run,
        };
        self.append_for(myself, waiter, decision.events, decision.effects, reply, Ok(decision.reply));
    }

    /// Nothing changed. The answer still waits for what was decided before.
    pub(super) fn refuse(&mut self, reply: ReplyTo, error: impl Into<CallError>) {
        let error = error.into();
        if let ReplyTo::Pool { run, session } = reply {
            let paused = error.code() == ErrorCode::JobPaused;
            self.deps.pool.send(PoolMsg::Unbind { run, session, paused });
            return;
        }
        self.when_durable(move || reply.answer(Err(error)));
    }

    /// The journal says that everything up to `seq` is on disk.
    pub(super) fn durable(&mut self, seq: u64, position: Position) {
        self.durable_seq = self.durable_seq.max(seq);
        self.durable_position = self.durable_position.max(position);
        let mut effects = Vec::with_capacity(self.awaiting.len().min(FRAME_DECISIONS));
        while self.awaiting.front().is_some_and(|a| a.seq <= seq) {
            let Some(done) = self.awaiting.pop_front() else { break };
            match done.what {
                WhenDurable::Decision { effects: mut owed, reply, answer } => {
                    effects.append(&mut owed);
                    reply.answer(answer);
                }
                WhenDurable::Call(then) => {
                    // Effects of frames before it go first.
                    self.deps.pool.release(std::mem::take(&mut effects));
                    then();
                }
            }
        }
        self.deps.pool.release(effects);
        self.posted_durably(seq);
    }

    /// The view shows everything up to `seq`: what was kept for readers and for dedup may go.
    pub(super) fn projected(&mut self, seq: u64) {
        if let Some(membership) = self.deps.shards.membership() {
            membership.owner.projected(self.id, seq);
        }
        while self.unprojected.front().is_some_and(|(s, _)| *s <= seq) {
            let Some((_, forget)) = self.unprojected.pop_front() else { break };
            for item in forget {
                match item {
                    Forget::Run(run) => {
                        if self.recent.get(&run).is_some_and(|(ended, _)| *ended <= seq) {
                            self.recent.remove(&run);
                        }
                    }
                    Forget::Key(job, key) => {
                        let ended = self.keys.get(&(job, key.clone())).is_some_and(|r| !self.open_runs.contains_key(r));
                        if ended {
                            self.post.shown(job, &key, self.deps.time.boot_ms());
                            self.keys.remove(&(job, key));
                        }
                    }
                }
            }
        }
    }

    /// A deleted job leaves memory with its last run.
    pub(super) fn drop_deleted(&mut self, id: JobId) {
        self.active.remove(&id);
        self.backfills.gone(id);
        if self.jobs.remove(&id).is_some() && self.order.len() > 2 * self.jobs.len() + ORDER_SLACK {
            self.order.retain(|id| self.jobs.contains_key(id));
        }
    }
}

/// Error of a call while the node cannot take it.
pub(super) fn not_found(what: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("no such {what}"))
}
