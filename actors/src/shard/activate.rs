//! Virtual actors: when a command comes for a job, this module makes an actor from the job's bytes, and bytes again
//! when the job is idle.
//!
//! A panic ends only that turn, and the command that caused it is refused. A job that panics three times in a row is
//! put into quarantine with the reason.

use super::Shard;
use crate::{
    call_error::CallError,
    job::{After, JobActor, Turn},
    journal::Waiter,
    messages::{Envelope, ReplyTo, ShardMsg},
};
use campanile_core::job::{Command, Context, Ids, Reply, pending};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::Event,
    ids::JobId,
    limits,
};
use ractor::ActorRef;
use std::sync::atomic::Ordering;

/// Both clocks, ms. Looked at once for some jobs that come together: for each turn of each, that was a hundredth of the node's time.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub now_ms: i64,
    boot_ms: i64,
}

impl Shard {
    pub(super) fn moment(&self) -> Moment {
        Moment { now_ms: self.now_ms(), boot_ms: self.deps.time.boot_ms() }
    }

    /// Gives a command to its job's actor, activating it if need be.
    pub(super) fn submit(&mut self, myself: &ActorRef<ShardMsg>, envelope: Envelope) {
        self.submit_at(myself, envelope, self.moment());
    }

    /// [`Self::submit`] of one of several that come together.
    pub(super) fn submit_at(&mut self, myself: &ActorRef<ShardMsg>, envelope: Envelope, moment: Moment) {
        let Envelope { job: id, command, reply } = envelope;
        if self.stopping {
            // Its frame would be nobody's, and a shard that stays after all would have a hole in its journal.
            return self.refuse(reply, CallError::NotServed);
        }
        if !self.activate(id) {
            let error = if self.jobs.contains_key(&id) {
                ApiError::new(ErrorCode::Internal, format!("job {id} cannot be read; see the node's log"))
            } else {
                ApiError::new(ErrorCode::NotFound, format!("no job {id}"))
            };
            return self.refuse(reply, error);
        }
        // A wake that panics is tried again until the job is put aside: its instants must not be lost.
        let mut reply = Some(reply);
        while let Some(error) = self.turn(myself, id, &command, &mut reply, moment) {
            if is_message(&command) {
                // The message is broken, not the job: its sender counts the tries.
                if let Some(live) = self.jobs.get_mut(&id).and_then(|slot| slot.live.as_mut()) {
                    live.panics = live.panics.saturating_sub(1);
                }
                break;
            }
            if self.quarantine_if_hopeless(myself, id, &error) || !matches!(command, Command::Wake) {
                break;
            }
        }
    }

    /// One turn of an active job. Some = it panicked with this message.
    fn turn(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        id: JobId,
        command: &Command,
        reply: &mut Option<ReplyTo>,
        Moment { now_ms, boot_ms }: Moment,
    ) -> Option<String> {
        let count = command.ids_wanted();
        let (overloaded, held) = self.deps.projector.holds(now_ms);
        let ids = Ids { first: self.state.counter + 1, count };
        let live = self.jobs.get_mut(&id)?.live.as_mut()?;
        live.used_ms = boot_ms;
        let context = Context {
            now_ms,
            ids,
            epoch: self.epoch,
            pauses: self.state.pauses_since(&live.tenant, live.job.hot.cursor_ms),
            queue_full: live.gauge.queue_full(),
            queue_half: live.gauge.queue_half(),
            node_room: self.dags.room(),
            overloaded,
            held,
            tzdb: self.deps.identity.tzdb,
            sampling: self.deps.identity.tracer.sampling(),
        };
        let crowded = live.gauge.waiting.load(Ordering::Relaxed) > 0 || self.deps.waiting_results.is_starved();
        let turn = live.turn(command, &context);
        let after = live.after();
        let instants = live.job.wake_for_instants(now_ms);
        let postpones = overloaded && instants.is_some_and(|at| at <= now_ms);
        let wake = live.job.wake_for_runs(now_ms);
        if live.job.open_backfill().is_some() {
            self.backfills.due.insert(id);
        }
        let wake = if postpones { wake } else { wake.into_iter().chain(instants).min() };
        self.state.counter += count;
        let reply = reply.take().unwrap_or_default();
        let error = match turn {
            #[cfg(feature = "faults")]
            Turn::Decided(decision)
                if matches!(command, Command::Trigger { .. }) && campanile_ports::faults::refuse_yet_run(now_ms) =>
            {
                self.accept(myself, decision, ReplyTo::Nobody, crowded);
                let told = "concurrencyPolicy FORBID and a run is active; wait for it or cancel it";
                self.refuse(reply, ApiError::new(ErrorCode::RunActive, told));
                None
            }
            Turn::Decided(decision) => {
                self.accept(myself, decision, reply, crowded);
                None
            }
            Turn::Rejected(rejection) => {
                self.refuse(reply, ApiError::from(rejection));
                None
            }
            Turn::Panicked(error) => {
                metrics::counter!("campanile_job_actor_panics_total").increment(1);
                tracing::error!(job = %id, %error, "a job's turn failed; nothing of it was kept");
                let told = format!("job {id} failed on this command; see the node's log");
                self.refuse(reply, ApiError::new(ErrorCode::Internal, told));
                Some(error)
            }
        };
        match after {
            // It stays, so that its panics are counted.
            _ if error.is_some() => return error,
            After::Busy => {}
            After::Idle => self.passivate(id),
            After::Gone => {
                self.drop_deleted(id);
                return None;
            }
        }
        if postpones && self.postponed.insert(id) {
            metrics::counter!("campanile_jobs_postponed_total").increment(1);
        }
        self.schedule(id, wake);
        None
    }

    /// Jobs whose instants waited for the read model, when it has caught up: some at a time, so that what is due now need not wait for all.
    pub(super) fn take_postponed(&mut self, due: &mut Vec<JobId>) {
        if self.postponed.is_empty() || self.deps.projector.is_full() {
            return;
        }
        let some: Vec<JobId> = self.postponed.iter().copied().take(limits::POSTPONED_PER_TICK).collect();
        for id in some {
            self.postponed.remove(&id);
            if let Some(slot) = self.jobs.get_mut(&id) {
                slot.wake_ms = i64::MIN;
                due.push(id);
            }
        }
    }

    pub(super) fn activate(&mut self, id: JobId) -> bool {
        match self.jobs.get(&id) {
            None => return false,
            Some(slot) if slot.live.is_some() => return true,
            Some(_) => {}
        }
        let Some(job) = self.materialize(id) else { return false };
        let tenant = job.def.tenant.clone();
        let gauge = self.deps.tenants.gauge(&job.def.tenant);
        crate::measure::hot().activations.increment(1);
        self.active.insert(id);
        self.dags.at_rest.remove(&id);
        if let Some(slot) = self.jobs.get_mut(&id) {
            slot.live = Some(Box::new(JobActor { job, used_ms: 0, panics: 0, tenant, gauge }));
        }
        true
    }

    /// Jobs whose runs take long become bytes between commands; the others do when their last run has ended.
    pub(super) fn passivate_idle(&mut self) {
        let now = self.deps.time.boot_ms();
        // Over the limit the idlest go first; nearly all are idle after one round trip anyway.
        let patience = if self.active.len() > limits::ACTIVE_JOBS_PER_SHARD { 0 } else { limits::PASSIVATE_AFTER_MS };
        let is_idle = |id: &JobId| {
            let live = self.jobs.get(id).and_then(|slot| slot.live.as_ref());
            live.is_some_and(|live| now - live.used_ms >= patience)
        };
        let idle: Vec<JobId> = self.active.iter().copied().filter(is_idle).collect();
        for id in idle {
            self.passivate(id);
        }
    }

    /// The job becomes its bytes, as of its last decision.
    fn passivate(&mut self, id: JobId) {
        let Some(slot) = self.jobs.get_mut(&id) else { return };
        if let Some(live) = slot.live.take() {
            live.job.encode_hot_over(&mut slot.hot);
            if !live.job.graphs.is_empty() {
                self.dags.at_rest.insert(id, live.job.graphs);
            }
        }
        self.active.remove(&id);
    }

    /// A job that fails again and again is put aside, by the shard itself: the job's own code is what is broken.
    fn quarantine_if_hopeless(&mut self, myself: &ActorRef<ShardMsg>, id: JobId, error: &str) -> bool {
        let Some(live) = self.jobs.get_mut(&id).and_then(|s| s.live.as_mut()) else { return true };
        if live.panics < limits::PANICS_BEFORE_QUARANTINE {
            return false;
        }
        let reason = format!("its turns failed {} times in a row: {}", live.panics, first_line(error));
        tracing::error!(job = %id, %reason, "job put into quarantine");
        let event = Event::JobQuarantined { job: id, at_ms: self.deps.time.now_ms(), reason };
        let effects = if live.job.holds_runs() { Vec::new() } else { pending::withdrawn(&live.job) };
        campanile_core::job::apply::apply(&mut live.job, &event);
        self.passivate(id);
        // Not the change of a caller whose command was the last to panic: that is refused.
        self.append_for(myself, Waiter::Caller, vec![event], effects, ReplyTo::Nobody, Ok(Reply::Done));
        true
    }
}

/// What another job's message asks.
fn is_message(command: &Command) -> bool {
    match command {
        Command::Take(_) | Command::StartNode(_) | Command::CancelNode(_) | Command::Graph { .. } => true,
        Command::Wake
        | Command::Replace { .. }
        | Command::Pause { .. }
        | Command::Resume
        | Command::Delete
        | Command::Quarantine { .. }
        | Command::Trigger { .. }
        | Command::ChangeGraph { .. }
        | Command::Backfill(_)
        | Command::Bulk(_)
        | Command::Start { .. }
        | Command::Claimed { .. }
        | Command::Finish(_)
        | Command::Suspect { .. }
        | Command::Heard { .. }
        | Command::Lost { .. }
        | Command::Cancel { .. }
        | Command::Confirm { .. }
        | Command::Prioritize { .. }
        | Command::Reopen { .. }
        | Command::Discard { .. }
        | Command::Restored { .. } => false,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(limits::REASON_BYTES / 4).collect()
}
