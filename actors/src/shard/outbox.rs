//! Messages of the shard's jobs to other jobs: what is owed, which travel now, and what arrives (ADR 0028).
//!
//! Decisions name what they send; [`Shard::post`] numbers it and puts it into their frame. When that is durable, a message is ready
//! to travel; deliveries begin at the end of a turn. A `Deliver` that arrives leaves the shard while the view is asked for its keys,
//! and comes back as a message of its own, so nobody waits for the view.

use super::{Shard, owed::Owed};
use crate::{
    calls::{Port, ShardAnswer, ShardCall, ask},
    messages::{Answer, Envelope, ReplyTo, ShardMsg},
};
use campanile_core::{
    job::{Command, Decision, Reply, Taken},
    outbox::{
        Batch, Courier, KeyMemory, LookUp, Now, Sending, Take, body, keys,
        memory::Known,
        parcel,
        receiver::{JobFacts, ShardFacts, take, takes},
    },
};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    frame::decode,
    ids::{Epoch, JobId, RunId, ShardId},
    limits,
    peer::outbox::{Deliver, Delivered, HookBody, Parcel, RunFacts, Said},
    record::Source,
    stored::outbox::{Failure, Message, MessageId, MessageKind, OutboxEvent, Refusal},
};
use ractor::ActorRef;
use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, atomic::Ordering},
    time::Duration,
};
use tokio::sync::{Semaphore, oneshot};

/// Deliveries of this process that are under way. It hands its places out in the order in which they were asked for, so no shard can
/// keep them from another one.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(limits::DELIVERS_IN_FLIGHT));

/// Messages of a shard that is served.
pub(super) struct Post {
    pub owed: Owed,
    courier: Courier,
    pub keys: KeyMemory<(RunId, Source)>,
    /// Messages whose frame is not durable, with its seq.
    undurable: VecDeque<(u64, MessageId)>,
    /// There may be something to send or to settle.
    due: bool,
    /// `Deliver` calls whose keys are being looked up.
    arrived: usize,
}

/// A `Deliver` whose keys were looked up.
pub struct LookedUp {
    deliver: Deliver,
    /// By the message's place. None: there is no such job.
    keys: Vec<Option<(JobId, LookUp<(RunId, Source)>)>>,
    port: Port<Delivered>,
}

impl Post {
    pub fn new(owed: Owed, epoch: Epoch, now: Now) -> Self {
        let courier = Courier::load(&owed.outbox, now);
        let due = !owed.outbox.is_empty();
        Self { owed, courier, keys: KeyMemory::new(epoch), undurable: VecDeque::new(), due, arrived: 0 }
    }

    /// A run was made under this key, or came with the shard.
    pub fn made(&mut self, job: JobId, key: &str, run: (RunId, Source)) {
        if keys::is_reserved(key) {
            self.keys.made(job, key, run);
        }
    }
}

impl Shard {
    fn both_clocks(&self) -> Now {
        Now { wall_ms: self.now_ms(), boot_ms: self.directory.time.boot_ms() }
    }

    /// What a decision sends, as events of its frame.
    pub(super) fn post(&mut self, decision: &mut Decision) {
        if decision.sends.is_empty() {
            return;
        }
        let mut sending = Sending::new(&self.post.owed.outbox, self.now_ms());
        for wanted in std::mem::take(&mut decision.sends) {
            let run = wanted.run;
            // Hooks always become an event; other kinds are not sent yet.
            if let Err(full) = sending.send(wanted) {
                tracing::error!(%run, ?full, "a message has no room");
            }
        }
        for event in &sending.events {
            if let OutboxEvent::Dropped { message, .. } = event {
                told(message, "dropped");
                tracing::warn!(run = %message.run, job = message.job.as_deref(), "a hook is dropped: too many messages of its shard or tenant are not delivered");
            }
        }
        decision.events.extend(sending.events.into_iter().map(|change| Event::Outbox { change }));
    }

    /// Events were applied to the shard, as part of frame `seq`.
    pub(super) fn posted(&mut self, events: &[Event], seq: u64) {
        if !events.iter().any(|event| matches!(event, Event::Outbox { .. })) {
            return;
        }
        self.post.owed.apply(events);
        for event in events {
            let Event::Outbox { change } = event else { continue };
            self.post.courier.applied(change);
            if let OutboxEvent::Sent(message) = change {
                self.post.undurable.push_back((seq, message.id));
            }
        }
    }

    /// Everything up to `seq` is durable: its messages may travel.
    pub(super) fn posted_durably(&mut self, seq: u64) {
        let now = self.both_clocks();
        while self.post.undurable.front().is_some_and(|(of, _)| *of <= seq) {
            let Some((_, id)) = self.post.undurable.pop_front() else { break };
            if let Some(message) = self.post.owed.outbox.get(id) {
                self.post.courier.durable(message, self.directory.shards, now);
                self.post.due = true;
            }
        }
    }

    /// Once a second.
    pub(super) fn look_after_post(&mut self) {
        self.post.keys.forget(self.directory.time.boot_ms());
        let now = self.directory.time.boot_ms();
        self.post.due |= self.post.courier.wake_at().is_some_and(|at| at <= now);
    }

    /// At the end of a turn: settles, gives up and sends what is due.
    pub(super) fn carry_post(&mut self, myself: &ActorRef<ShardMsg>) {
        if !std::mem::take(&mut self.post.due) || self.stopping {
            return;
        }
        let now = self.both_clocks();
        let events = self.post.courier.events(&self.post.owed.outbox, now);
        for event in &events {
            if let OutboxEvent::Failed { id, why, .. } = event
                && let Some(message) = self.post.owed.outbox.get(*id)
            {
                told(message, if matches!(why, Failure::Undelivered) { "undelivered" } else { "refused" });
                tracing::warn!(run = %message.run, job = message.job.as_deref(), ?why, "a hook was not started");
            }
        }
        if !events.is_empty() {
            let events = events.into_iter().map(|change| Event::Outbox { change }).collect();
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        let batches = self.post.courier.next(&self.post.owed.outbox, now, usize::MAX);
        // Those that are given up for their age.
        self.post.due = self.post.courier.wake_at() == Some(i64::MIN);
        for batch in batches {
            self.deliver_batch(myself, batch);
        }
    }

    fn deliver_batch(&mut self, myself: &ActorRef<ShardMsg>, Batch { to, number, ids }: Batch) {
        let owed = &self.post.owed;
        let travels = |id: MessageId| {
            let message = owed.outbox.get(id)?;
            Some(parcel(message, body::hook(message, owed.record(message)?)))
        };
        let parcels: Vec<Parcel> = ids.into_iter().filter_map(travels).collect();
        let (directory, myself, from) = (self.directory.clone(), myself.clone(), self.id);
        tokio::spawn(async move {
            let Ok(_place) = PLACES.acquire().await else { return };
            let deliver = Deliver { from, to, at_ms: directory.time.now_ms(), parcels };
            let call = ask::<Delivered>(&directory, to, ShardCall::Deliver(Box::new(deliver)));
            let answer = tokio::time::timeout(Duration::from_millis(limits::DELIVER_ANSWER_MS), call).await;
            let answer = answer.ok().and_then(Result::ok);
            let _ = myself.cast(ShardMsg::Delivered { to, number, answer });
        });
    }

    /// A shard has answered a `Deliver`, or has not.
    pub(super) fn delivered(&mut self, to: ShardId, number: u64, answer: Option<Delivered>) {
        let now = self.both_clocks();
        if let Some(Delivered::Each(said)) = &answer {
            for (id, said) in said {
                if let (Said::Settled { .. }, Some(message)) = (said, self.post.owed.outbox.get(*id)) {
                    told(message, "started");
                }
            }
        }
        match answer {
            Some(answer) => self.post.courier.answered(to, number, &answer, now),
            None => self.post.courier.unanswered(to, number, now),
        }
        self.post.due = true;
    }

    /// Messages for jobs of this shard. The view is asked for their keys first.
    pub(super) fn deliver(&mut self, myself: &ActorRef<ShardMsg>, deliver: Deliver, port: Port<Delivered>) {
        let waiting = self.directory.mailbox[usize::from(self.id.0)].load(Ordering::Relaxed);
        let waiting = usize::try_from(waiting).unwrap_or_default() + self.post.arrived;
        if let Err(ms) = takes(&deliver, waiting, limits::SHARD_MAILBOX, self.now_ms()) {
            return port.send(Ok(Delivered::Later(ms)));
        }
        self.post.arrived += 1;
        let jobs: Vec<Option<JobId>> =
            (deliver.parcels.iter()).map(|parcel| self.find_name(&parcel.tenant, parcel.job.as_deref()?)).collect();
        let (views, epoch, boot_ms) = (self.directory.views.clone(), self.epoch, self.directory.time.boot_ms());
        let myself = myself.clone();
        tokio::spawn(async move {
            let mut keys = Vec::with_capacity(jobs.len());
            for (parcel, job) in deliver.parcels.iter().zip(jobs) {
                let Some(job) = job else {
                    keys.push(None);
                    continue;
                };
                let found = match views.find_key(job, &parcel.key).await {
                    Ok(None) => Ok(None),
                    Ok(Some(run)) => views.run(run).await.map(|record| record.map(|record| (run, record.source))),
                    Err(error) => Err(error),
                };
                match found {
                    Ok(found) => keys.push(Some((job, LookUp { epoch, boot_ms, found }))),
                    // All of it comes again.
                    Err(_) => {
                        let _ = myself.cast(ShardMsg::NotLookedUp);
                        return port.send(Ok(Delivered::Later(limits::DELIVER_LATER_MS)));
                    }
                }
            }
            let _ = myself.cast(ShardMsg::LookedUp(Box::new(LookedUp { deliver, keys, port })));
        });
    }

    pub(super) fn not_looked_up(&mut self) {
        self.post.arrived = self.post.arrived.saturating_sub(1);
    }

    /// Decides on messages whose keys were looked up. Each is answered when what it is answered with is durable.
    pub(super) fn looked_up(&mut self, myself: &ActorRef<ShardMsg>, LookedUp { deliver, keys, port }: LookedUp) {
        self.not_looked_up();
        if self.stopping || self.admits().is_err() {
            return port.send(Ok(Delivered::Later(limits::DELIVER_LATER_MS)));
        }
        let mut answers: Vec<(MessageId, oneshot::Receiver<Said>)> = Vec::new();
        for (parcel, looked_up) in deliver.parcels.iter().zip(keys) {
            let (said, answer) = oneshot::channel();
            answers.push((parcel.id, answer));
            self.take_message(myself, parcel, looked_up, said);
        }
        tokio::spawn(async move {
            let mut each = Vec::with_capacity(answers.len());
            for (id, answer) in answers {
                // Without an answer the shard went away: it comes again.
                if let Ok(said) = answer.await {
                    each.push((id, said));
                }
            }
            port.send(Ok(Delivered::Each(each)));
        });
    }

    fn take_message(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        parcel: &Parcel,
        looked_up: Option<(JobId, LookUp<(RunId, Source)>)>,
        said: oneshot::Sender<Said>,
    ) {
        match self.judge_message(parcel, looked_up) {
            Err(what) => self.when_durable(move || {
                let _ = said.send(what);
            }),
            Ok((job, taken)) => {
                let (to, answer) = oneshot::channel();
                let command = Command::Take(Box::new(taken));
                self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(Port::new(to)) });
                tokio::spawn(async move {
                    if let Ok(answer) = answer.await {
                        let _ = said.send(said_of(answer));
                    }
                });
            }
        }
    }

    /// The job that a message is for, and the run that it makes; or what is said to it.
    fn judge_message(
        &self,
        parcel: &Parcel,
        looked_up: Option<(JobId, LookUp<(RunId, Source)>)>,
    ) -> Result<(JobId, Taken), Said> {
        // As it is now: it may have gone since its key was looked up.
        let job = parcel.job.as_deref().and_then(|name| self.find_name(&parcel.tenant, name));
        let facts = job.and_then(|id| self.materialize(id)).map(|job| JobFacts {
            tenant: job.def.tenant.clone(),
            created_ms: job.hot.created_ms,
            not_idempotent: job.def.not_idempotent,
        });
        let looked_up = looked_up.filter(|(of, _)| Some(*of) == job).map(|(_, looked_up)| looked_up);
        let known = match job {
            Some(id) => self.post.keys.find(id, &parcel.key, looked_up, self.directory.time.boot_ms()),
            None => Known::Absent,
        };
        let outbox = &self.post.owed.outbox;
        let shard = ShardFacts { children: 0, usage: outbox.usage(), bounds: outbox.bounds(), queue_full: false };
        let confirm = match take(parcel, facts.as_ref(), known, shard) {
            Take::Make { confirm } => confirm,
            // Of hooks nobody asks how the run fares.
            Take::Found(_) => return Err(Said::Settled { run: None }),
            Take::Refuse(why) => return Err(Said::Refused(why)),
            Take::Later(ms) => return Err(Said::Later(ms)),
            Take::LookUp => return Err(Said::Later(limits::DELIVER_LATER_MS)),
        };
        let kind = MessageKind::from_code(parcel.kind);
        let (Some(job), Some(source)) = (job, kind.and_then(keys::source)) else {
            return Err(Said::Later(limits::DELIVER_LATER_MS));
        };
        let HookBody { params, reason, .. } = decode("hook", &parcel.body).map_err(|_| Said::Broken)?;
        let (key, depth, marked) = (parcel.key.clone(), parcel.depth, parcel.marked);
        Ok((job, Taken { key, source, params, reason, depth, confirm, marked }))
    }
}

/// What a job's answer to a message means.
fn said_of(answer: Answer<ShardAnswer>) -> Said {
    let facts = |run, generation, state| Said::Settled { run: Some(RunFacts { run, generation, state }) };
    match answer {
        Ok(ShardAnswer::Reply(Reply::Run(view))) => facts(view.run_id, view.generation, view.state),
        Ok(ShardAnswer::Reply(Reply::Final(record))) => facts(record.run, record.generation, record.state),
        Ok(_) => Said::Settled { run: None },
        Err(error) => match error.known() {
            ErrorCode::NotFound => Said::Refused(Refusal::JobDeleted),
            // The job panicked over it.
            ErrorCode::Internal => Said::Broken,
            _ => Said::Later(limits::DELIVER_LATER_MS),
        },
    }
}

/// Counts what became of a hook.
fn told(message: &Message, outcome: &'static str) {
    if campanile_core::outbox::bounds::is_hook(message.kind) {
        metrics::counter!("campanile_hooks_total", "outcome" => outcome).increment(1);
    }
}
