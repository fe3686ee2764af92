//! The end of the log: a decision's events become a frame, are applied to memory at once, and go to the journal; what must
//! happen outside waits here until the frame is durable.

use super::{Forget, Shard, Slot};
use crate::{
    messages::{Envelope, PoolMsg, QuotaMsg, ReplyTo, ShardMsg, Watched},
    ports::Position,
};
use campanile_core::{
    job::{Decision, Effect, Reply},
    reject::Rejection,
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::Event,
    frame::{Frame, encode},
    ids::JobId,
};
use ractor::ActorRef;
use std::sync::{Arc, atomic::Ordering};

/// Something that happens when everything up to `seq` is durable.
pub(super) struct Awaiting {
    pub seq: u64,
    pub what: Then,
}

pub(super) enum Then {
    /// A frame of ours, with its effects and answer.
    Frame { frame: Arc<Frame>, effects: Vec<Effect>, reply: ReplyTo, answer: Result<Reply, ApiError> },
    /// An answer that rests on what was enqueued before.
    Call(Box<dyn FnOnce() + Send + 'static>),
}

impl Shard {
    /// Runs `then` when all that was enqueued so far is durable: at once when it is.
    pub(super) fn when_durable(&mut self, then: impl FnOnce() + Send + 'static) {
        if self.durable_seq >= self.state.seq {
            then();
        } else {
            self.awaiting.push_back(Awaiting { seq: self.state.seq, what: Then::Call(Box::new(then)) });
        }
    }

    /// Puts a frame into the log: applied to memory now, effects and answer when durable.
    pub(super) fn append(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        events: Vec<Event>,
        effects: Vec<Effect>,
        reply: ReplyTo,
        answer: Result<Reply, ApiError>,
    ) {
        let hlc = self.state.next_hlc(self.directory.time.now_us());
        let frame = Frame { shard: self.id, epoch: self.directory.epoch, seq: self.state.seq + 1, hlc, events };
        self.state.seq = frame.seq;
        self.state.hlc = hlc + frame.events.len().max(1) as u64 - 1;
        let mut forget = Vec::new();
        for event in &frame.events {
            self.state.apply(event);
            self.index(event, &mut forget);
        }
        let bytes = encode(&frame);
        let (seq, frame) = (frame.seq, Arc::new(frame));
        self.snapshots.bytes_since += bytes.len();
        self.snapshots.oldest_ms.get_or_insert(self.directory.time.boot_ms());
        self.directory.journal.append(frame.clone(), bytes, myself.clone());
        if !forget.is_empty() {
            self.unprojected.push_back((seq, forget));
        }
        self.awaiting.push_back(Awaiting { seq, what: Then::Frame { frame, effects, reply, answer } });
    }

    /// Keeps the shard's own look-ups in step with an event.
    pub(super) fn index(&mut self, event: &Event, forget: &mut Vec<Forget>) {
        match event {
            Event::JobCreated { job, spec, .. } => {
                self.add_name(&spec.tenant, &spec.name, *job);
                self.directory.gauge(&spec.tenant).jobs.fetch_add(1, Ordering::Relaxed);
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
                    self.directory.gauge(&known.def.tenant).jobs.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Event::RunCreated { job, run, key, .. } => {
                self.open_runs.insert(*run, *job);
                if let Some(key) = key {
                    self.keys.insert((*job, key.clone()), *run);
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
            }
            Event::DeadLetterDiscarded { record, .. } => {
                self.recent.insert(record.run, (self.state.seq, record.clone()));
                forget.push(Forget::Run(record.run));
            }
            Event::CursorMoved { .. }
            | Event::TenantSet { .. }
            | Event::TenantDeleted { .. }
            | Event::PauseSet { .. }
            | Event::CreateKept { .. }
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
            | Event::RunConfirmed { .. } => {}
        }
    }

    /// A job actor decided.
    pub(super) fn decided(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        envelope: &Arc<Envelope>,
        result: Result<Decision, Rejection>,
        wake_ms: Option<i64>,
        gone: bool,
        idle: Option<Vec<u8>>,
    ) {
        let id = envelope.job;
        let now = self.directory.time.boot_ms();
        if let Some(live) = self.jobs.get_mut(&id).and_then(|s| s.live.as_mut()) {
            // Decisions come in the order of the commands; one of a restarted actor is the first again.
            if live.in_flight.front().is_none_or(|first| !Arc::ptr_eq(first, envelope)) {
                return;
            }
            live.in_flight.pop_front();
            live.used_ms = now;
            live.panics = 0;
        } else {
            return;
        }
        let reply = std::mem::take(&mut *envelope.reply.lock());
        match result {
            Ok(decision) => self.accept(myself, id, decision, reply),
            Err(rejection) => self.refuse(reply, rejection.into()),
        }
        if gone {
            self.drop_deleted(id);
        } else {
            self.schedule(id, wake_ms);
            if let Some(hot) = idle {
                self.passivate(id, hot);
            }
        }
    }

    fn accept(&mut self, myself: &ActorRef<ShardMsg>, id: JobId, decision: Decision, reply: ReplyTo) {
        if decision.events.is_empty() {
            // Rests on what was enqueued before.
            let effects = decision.effects;
            let directory = self.directory.clone();
            let answer = decision.reply;
            self.when_durable(move || {
                release_effects(&directory, effects);
                reply.answer(Ok(answer));
            });
            return;
        }
        if let Some(live) = self.jobs.get_mut(&id).and_then(|s| s.live.as_mut()) {
            live.events.extend(decision.events.iter().cloned());
        }
        self.append(myself, decision.events, decision.effects, reply, Ok(decision.reply));
    }

    /// Nothing changed. The answer still waits for what was decided before.
    pub(super) fn refuse(&mut self, reply: ReplyTo, error: ApiError) {
        if let ReplyTo::Pool { run, session } = reply {
            self.directory.to_pool(PoolMsg::Unbind(run, session));
            return;
        }
        self.when_durable(move || reply.answer(Err(error)));
    }

    /// The journal says that everything up to `seq` is on disk.
    pub(super) fn durable(&mut self, seq: u64, position: Position) {
        self.durable_seq = self.durable_seq.max(seq);
        self.durable_position = self.durable_position.max(position);
        let mut effects = Vec::new();
        while self.awaiting.front().is_some_and(|a| a.seq <= seq) {
            let Some(done) = self.awaiting.pop_front() else { break };
            match done.what {
                Then::Frame { frame, effects: mut owed, reply, answer } => {
                    effects.append(&mut owed);
                    self.wake_watchers(&frame);
                    reply.answer(answer);
                }
                Then::Call(then) => {
                    // Effects of frames before it go first.
                    release_effects(&self.directory, std::mem::take(&mut effects));
                    then();
                }
            }
        }
        release_effects(&self.directory, effects);
    }

    /// The view shows everything up to `seq`: what was kept for readers and for dedup may go.
    pub(super) fn projected(&mut self, seq: u64) {
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
                            self.keys.remove(&(job, key));
                        }
                    }
                }
            }
        }
    }

    fn wake_watchers(&mut self, frame: &Frame) {
        if self.watchers.is_empty() {
            return;
        }
        for event in &frame.events {
            if let Event::RunEnded { record, .. } = event {
                for watcher in self.watchers.remove(&record.run).into_iter().flatten() {
                    let _ = watcher.send(());
                }
            }
        }
    }

    /// A deleted job leaves memory with its last run, unless a command to it is still under way.
    fn drop_deleted(&mut self, id: JobId) {
        let idle = |slot: &Slot| slot.live.as_ref().is_none_or(|l| l.in_flight.is_empty());
        if self.jobs.get(&id).is_some_and(idle)
            && let Some(Slot { live: Some(live), .. }) = self.jobs.remove(&id)
        {
            self.actors.remove(&live.actor.get_id());
            live.actor.stop(None);
        }
    }
}

/// Lets durable effects go.
pub(super) fn release_effects(directory: &Arc<crate::directory::Directory>, effects: Vec<Effect>) {
    if effects.is_empty() {
        return;
    }
    let mut wants: Vec<(String, Vec<campanile_core::job::Waiting>)> = Vec::new();
    let mut ended: Vec<(String, Vec<campanile_schema::ids::RunId>)> = Vec::new();
    let (mut assigns, mut ends, mut watched) = (Vec::new(), Vec::new(), Vec::new());
    for effect in effects {
        match effect {
            Effect::Enqueue(run) => group(&mut wants, &run.tenant.clone()).push(run),
            Effect::Dequeue { run, tenant, pool } => {
                // Asked for and given up in one go: a permit that is lent to nobody never comes back.
                for (_, runs) in &mut wants {
                    runs.retain(|wanted| wanted.run != run);
                }
                cast(&directory.quota(&tenant), QuotaMsg::Dequeue(run));
                directory.to_pool(PoolMsg::Dequeue { run, tenant, pool });
            }
            Effect::Assign(assign) => assigns.push(*assign),
            Effect::Ended { run, token, session, tenant } => {
                group(&mut ended, &tenant).push(run);
                ends.push((run, token, session));
            }
            Effect::Stop { session, held } => directory.to_pool(PoolMsg::Stop(session, held)),
            Effect::Watch { session, held, tenant, pool, executor } => {
                cast(&directory.quota(&tenant), QuotaMsg::Adopt(vec![held.run]));
                watched.push(Watched { session, held, pool, executor });
            }
        }
    }
    // Permits come back before new ones are asked for.
    for (tenant, runs) in ended {
        cast(&directory.quota(&tenant), QuotaMsg::Ended(runs));
    }
    if !ends.is_empty() {
        directory.to_pool(PoolMsg::Ended(ends));
    }
    for (tenant, runs) in wants {
        cast(&directory.quota(&tenant), QuotaMsg::Want(runs));
    }
    if !assigns.is_empty() {
        directory.to_pool(PoolMsg::Assign(assigns));
    }
    if !watched.is_empty() {
        directory.to_pool(PoolMsg::Watch(watched));
    }
}

fn cast(quota: &ActorRef<QuotaMsg>, message: QuotaMsg) {
    // A quota actor ends only with its session.
    let _ = quota.cast(message);
}

fn group<'g, T>(groups: &'g mut Vec<(String, Vec<T>)>, tenant: &str) -> &'g mut Vec<T> {
    let index = match groups.iter().position(|(name, _)| name == tenant) {
        Some(index) => index,
        None => {
            groups.push((tenant.to_owned(), Vec::new()));
            groups.len() - 1
        }
    };
    &mut groups[index].1
}

/// Error of a call while the node cannot take it.
pub(super) fn not_found(what: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("no such {what}"))
}
