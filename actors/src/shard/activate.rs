//! Virtual actors: a job becomes a ractor actor, from its bytes, when a command comes, and bytes again when it is idle. The
//! actor then waits for another job.
//!
//! A panic ends only that actor. The job is rebuilt from its bytes and the events since; the command that broke it is
//! refused, the ones behind it are sent again. A job that breaks again and again is put into quarantine with the reason.

use super::{Live, Shard};
use crate::{
    job::JobActor,
    messages::{Envelope, JobMsg, ReplyTo, ShardMsg},
};
use campanile_core::job::{Command, Context, Ids, Job};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::Event,
    ids::JobId,
    limits,
};
use ractor::{ActorId, ActorRef, ActorRuntime};
use std::{collections::VecDeque, sync::Arc};

/// Events that an active job gathers before its bytes are renewed.
const EVENTS_KEPT: usize = 256;

impl Shard {
    /// Gives a command to its job's actor, activating it if need be.
    pub(super) fn submit(&mut self, myself: &ActorRef<ShardMsg>, envelope: Envelope) {
        self.send_to_job(myself, Arc::new(envelope));
    }

    pub(super) fn send_to_job(&mut self, myself: &ActorRef<ShardMsg>, envelope: Arc<Envelope>) {
        let id = envelope.job;
        if self.jobs.get(&id).is_some_and(|slot| slot.live.is_none()) && !self.activate(myself, id) {
            let reply = std::mem::take(&mut *envelope.reply.lock());
            return self.refuse(
                reply,
                ApiError::new(ErrorCode::Internal, format!("job {id} cannot be read; see the node's log")),
            );
        }
        let context = self.context(id, &envelope.command);
        let now = self.directory.time.boot_ms();
        let Some(live) = self.jobs.get_mut(&id).and_then(|s| s.live.as_mut()) else {
            let reply = std::mem::take(&mut *envelope.reply.lock());
            return self.refuse(reply, ApiError::new(ErrorCode::NotFound, format!("no job {id}")));
        };
        live.used_ms = now;
        live.in_flight.push_back(envelope.clone());
        self.undecided += 1;
        // An actor that just failed gets it again when its end is noticed.
        let _ = live.actor.cast(JobMsg::Decide(envelope, context));
    }

    fn context(&mut self, id: JobId, command: &Command) -> Context {
        let count = command.ids_wanted();
        let ids = Ids { first: self.state.counter + 1, count };
        // Reserved at once: a decision that comes later must not see them again.
        self.state.counter += count;
        let (paused, queue_full) = self.admission(id);
        Context {
            now_ms: self.now_ms(),
            ids,
            epoch: self.directory.epoch,
            paused,
            queue_full,
            tzdb: self.directory.tzdb,
        }
    }

    /// What the job cannot see: pauses of its tenant, and full queues.
    fn admission(&self, id: JobId) -> (Option<campanile_schema::event::SkipReason>, bool) {
        let Some(live) = self.jobs.get(&id).and_then(|s| s.live.as_ref()) else { return (None, false) };
        (self.state.paused(&live.tenant), live.gauge.queue_full() || self.directory.projector.is_full())
    }

    fn activate(&mut self, myself: &ActorRef<ShardMsg>, id: JobId) -> bool {
        let Some(job) = self.materialize(id) else { return false };
        self.spawn(myself, id, job, Vec::new(), VecDeque::new(), 0)
    }

    fn spawn(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        id: JobId,
        job: Job,
        events: Vec<Event>,
        in_flight: VecDeque<Arc<Envelope>>,
        panics: u32,
    ) -> bool {
        let tenant: Arc<str> = job.def.tenant.as_str().into();
        let gauge = self.directory.gauge(&tenant);
        let Some(actor) = self.an_actor(myself) else { return false };
        // One that failed meanwhile is noticed as a failure of this job.
        let _ = actor.cast(JobMsg::Become(Box::new(job)));
        self.actors.insert(actor.get_id(), id);
        crate::measure::hot().activations.increment(1);
        if let Some(slot) = self.jobs.get_mut(&id) {
            let used_ms = self.directory.time.boot_ms();
            slot.live = Some(Box::new(Live { actor, events, in_flight, used_ms, panics, tenant, gauge }));
        }
        true
    }

    /// One without a job.
    fn an_actor(&mut self, myself: &ActorRef<ShardMsg>) -> Option<ActorRef<JobMsg>> {
        let spare = self.spare.pop();
        self.spare_unused = self.spare_unused.min(self.spare.len());
        spare.or_else(|| {
            let spawned = ActorRuntime::spawn_linked_instant(None, JobActor, myself.clone(), myself.get_cell());
            spawned.ok().map(|(actor, _)| actor)
        })
    }

    /// Its job is bytes, or gone.
    pub(super) fn retire(&mut self, actor: ActorRef<JobMsg>) {
        self.actors.remove(&actor.get_id());
        self.spare.push(actor);
    }

    /// Once a second: half of the spare actors that nobody needed since the last time go. So there are as many as the load
    /// needs, and those of a peak do not stay.
    pub(super) fn thin_out_spare(&mut self) {
        let unneeded = self.spare_unused.div_ceil(2);
        for actor in self.spare.drain(..unneeded) {
            actor.stop(None);
        }
        self.spare_unused = self.spare.len();
    }

    /// Jobs whose runs take long become bytes between commands; the others do when their last run has ended.
    pub(super) fn passivate_idle(&mut self) {
        let now = self.directory.time.boot_ms();
        // Over the limit the idlest go first; nearly all are idle after one round trip anyway.
        let patience = if self.actors.len() > limits::ACTIVE_JOBS_PER_SHARD { 0 } else { limits::PASSIVATE_AFTER_MS };
        let idle: Vec<JobId> = self
            .actors
            .values()
            .copied()
            .filter(|id| {
                self.jobs.get(id).and_then(|s| s.live.as_ref()).is_some_and(|live| {
                    live.in_flight.is_empty() && (now - live.used_ms >= patience || live.events.len() > EVENTS_KEPT)
                })
            })
            .collect();
        for id in idle {
            if let Some(job) = self.materialize(id) {
                self.passivate(id, job.encode_hot());
            }
        }
    }

    /// The job becomes its bytes (`hot`, as of its last decision), unless a command is on its way to it.
    pub(super) fn passivate(&mut self, id: JobId, hot: Vec<u8>) {
        let Some(slot) = self.jobs.get_mut(&id) else { return };
        if let Some(live) = slot.live.take_if(|live| live.in_flight.is_empty()) {
            slot.hot = hot.into_boxed_slice();
            self.retire(live.actor);
        }
    }

    /// A job actor panicked: rebuild it, refuse the command that broke it, send the rest again.
    pub(super) fn job_actor_failed(&mut self, myself: &ActorRef<ShardMsg>, actor: ActorId, error: &str) {
        let Some(id) = self.actors.remove(&actor) else { return };
        let Some(mut live) = self.jobs.get_mut(&id).and_then(|s| s.live.take()) else { return };
        metrics::counter!("campanile_job_actor_panics_total").increment(1);
        self.undecided -= live.in_flight.len();
        let broken = live.in_flight.pop_front();
        let panics = live.panics + 1;
        tracing::error!(job = %id, %error, panics, "a job actor failed; the job is rebuilt from its journal");
        let was_wake = broken.as_ref().is_some_and(|e| matches!(e.command, Command::Wake));
        if let Some(broken) = &broken {
            let reply = std::mem::take(&mut *broken.reply.lock());
            self.refuse(
                reply,
                ApiError::new(ErrorCode::Internal, format!("job {id} failed on this command; see the node's log")),
            );
        }
        let waiting = std::mem::take(&mut live.in_flight);
        // Events first: they are part of the job.
        if let Some(slot) = self.jobs.get_mut(&id) {
            slot.live = Some(Box::new(Live { in_flight: VecDeque::new(), ..*live }));
        }
        let Some(job) = self.materialize(id) else { return };
        let events = self.jobs.get_mut(&id).and_then(|s| s.live.take()).map(|l| l.events).unwrap_or_default();
        self.spawn(myself, id, job, events, VecDeque::new(), panics);
        if panics >= limits::PANICS_BEFORE_QUARANTINE {
            let reason = format!("its actor failed {panics} times in a row: {}", first_line(error));
            self.quarantine(myself, id, reason);
        }
        for envelope in waiting {
            self.send_to_job(myself, envelope);
        }
        if was_wake && panics < limits::PANICS_BEFORE_QUARANTINE {
            self.send_to_job(
                myself,
                Arc::new(Envelope { job: id, command: Command::Wake, reply: parking_lot::Mutex::new(ReplyTo::Nobody) }),
            );
        }
    }

    /// Written by the shard itself: the job's own code is what is broken.
    fn quarantine(&mut self, myself: &ActorRef<ShardMsg>, id: JobId, reason: String) {
        tracing::error!(job = %id, %reason, "job put into quarantine");
        let event = Event::JobQuarantined { job: id, at_ms: self.now_ms(), reason };
        let Some(mut job) = self.materialize(id) else { return };
        campanile_core::job::apply::apply(&mut job, &event);
        if let Some(slot) = self.jobs.get_mut(&id) {
            slot.hot = job.encode_hot().into_boxed_slice();
            if let Some(live) = slot.live.take() {
                self.retire(live.actor);
            }
        }
        self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(campanile_core::job::Reply::Done));
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(limits::REASON_BYTES / 4).collect()
}
