//! The job actor: a job while it is active. It owns the job's state, decides its commands one after the other, and says
//! what it decided to its shard, which makes it durable. When its job has become bytes again it waits for another one: to
//! spawn an actor and to see it end costs more than all the decisions of a run.
//!
//! Never here: I/O, time (the context brings it), sending anything to executors. A panic here ends only this actor; the
//! shard rebuilds the job from its bytes and the events since.

use crate::messages::{JobMsg, ShardMsg};
use campanile_core::job::{Job, decide_next};
use campanile_schema::job::JobStatus;
use ractor::{Actor, ActorProcessingErr, ActorRef};

/// See the module's text.
pub struct JobActor;

/// State of the actor.
pub struct JobActorState {
    /// None until it becomes one.
    job: Option<Box<Job>>,
    shard: ActorRef<ShardMsg>,
}

impl Actor for JobActor {
    type Msg = JobMsg;
    type State = JobActorState;
    /// Its shard.
    type Arguments = ActorRef<ShardMsg>;

    async fn pre_start(
        &self,
        _: ActorRef<JobMsg>,
        shard: ActorRef<ShardMsg>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(JobActorState { job: None, shard })
    }

    async fn handle(
        &self,
        _: ActorRef<JobMsg>,
        message: JobMsg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let (envelope, context) = match message {
            JobMsg::Become(job) => {
                state.job = Some(job);
                return Ok(());
            }
            JobMsg::Decide(envelope, context) => (envelope, context),
        };
        // Its shard sends a job first; an error here counts as a panic of the job.
        let job = state.job.as_mut().ok_or("asked to decide before it was a job")?;
        #[cfg(feature = "faults")]
        crate::faults::panic_if_poisoned(job, &envelope.command);
        let result = decide_next(job, &envelope.command, &context).map(|(decision, next)| {
            crate::measure::decision(job, &next, &decision.events);
            **job = next;
            decision
        });
        let wake_ms = job.wake_at(context.now_ms);
        let none_open = job.hot.runs.is_empty();
        let gone = job.hot.status == JobStatus::Deleted && none_open;
        let idle = (none_open && !gone).then(|| job.encode_hot());
        // The shard is gone only when the node stops; then the decision was never promised.
        let _ = state.shard.cast(ShardMsg::Decided { envelope, result, wake_ms, gone, idle });
        Ok(())
    }
}
