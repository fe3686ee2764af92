//! The job actor: a job while it is active. It owns the job's state, decides its commands one after the other, and says
//! what it decided to its shard, which makes it durable.
//!
//! Never here: I/O, time (the context brings it), sending anything to executors. A panic here ends only this actor; the
//! shard rebuilds the job from its bytes and the events since.

use crate::messages::{JobMsg, JobStart, ShardMsg};
use campanile_core::job::{Job, decide_next};
use campanile_schema::job::JobStatus;
use ractor::{Actor, ActorProcessingErr, ActorRef};

/// See the module's text.
pub struct JobActor;

/// State of the actor.
pub struct JobActorState {
    job: Box<Job>,
    shard: ActorRef<ShardMsg>,
}

impl Actor for JobActor {
    type Msg = JobMsg;
    type State = JobActorState;
    type Arguments = JobStart;

    async fn pre_start(&self, _: ActorRef<JobMsg>, start: JobStart) -> Result<Self::State, ActorProcessingErr> {
        Ok(JobActorState { job: start.job, shard: start.shard })
    }

    async fn handle(
        &self,
        _: ActorRef<JobMsg>,
        message: JobMsg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let JobMsg::Decide(envelope, context) = message;
        #[cfg(feature = "faults")]
        crate::faults::panic_if_poisoned(&state.job, &envelope.command);
        let result = decide_next(&state.job, &envelope.command, &context).map(|(decision, next)| {
            crate::measure::decision(&state.job, &next, &decision.events);
            *state.job = next;
            decision
        });
        let wake_ms = state.job.wake_at(context.now_ms);
        let none_open = state.job.hot.runs.is_empty();
        let gone = state.job.hot.status == JobStatus::Deleted && none_open;
        let idle = (none_open && !gone).then(|| state.job.encode_hot());
        // The shard is gone only when the node stops; then the decision was never promised.
        let _ = state.shard.cast(ShardMsg::Decided { envelope, result, wake_ms, gone, idle });
        Ok(())
    }
}
