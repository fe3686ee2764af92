//! The public msgpack-rpc protocol: `[0,id,method,params]`, `[1,id,error,result]`, `[2,method,params]`; `params` is an array
//! of one map. Spec with examples: `docs/rpc.md`.

pub mod calls;
pub mod codec;
pub mod encode;
pub mod executor;
pub mod hello;
mod walk;

/// Methods that callers and executors call on a node.
pub mod method {
    pub const HELLO: &str = "session.hello";
    pub const JOB_CREATE: &str = "job.create";
    pub const JOB_CREATE_MANY: &str = "job.createMany";
    /// [`crate::apply::ApplyBody`] -> [`crate::apply::PlanView`].
    pub const JOB_PLAN: &str = "job.plan";
    /// [`crate::apply::ApplyBody`] -> [`crate::apply::AppliedView`].
    pub const JOB_APPLY: &str = "job.apply";
    pub const JOB_GET: &str = "job.get";
    pub const JOB_FIND: &str = "job.find";
    pub const JOB_LIST: &str = "job.list";
    pub const JOB_REPLACE: &str = "job.replace";
    pub const JOB_DELETE: &str = "job.delete";
    pub const JOB_PAUSE: &str = "job.pause";
    pub const JOB_RESUME: &str = "job.resume";
    pub const JOB_TRIGGER: &str = "job.trigger";
    pub const JOB_RUNS: &str = "job.runs";
    pub const JOB_LEDGER: &str = "job.ledger";
    pub const RUN_GET: &str = "run.get";
    pub const RUN_FAILED: &str = "run.failed";
    pub const RUN_CANCEL: &str = "run.cancel";
    pub const RUN_RETRY: &str = "run.retry";
    pub const RUN_CONFIRM: &str = "run.confirm";
    pub const RUN_LOG: &str = "run.log";
    pub const DLQ_LIST: &str = "dlq.list";
    pub const DLQ_REDRIVE: &str = "dlq.redrive";
    pub const DLQ_DISCARD: &str = "dlq.discard";
    pub const SCHEDULE_PREVIEW: &str = "schedule.preview";
    pub const TENANT_GET: &str = "tenant.get";
    pub const TENANT_LIST: &str = "tenant.list";
    pub const TENANT_SET: &str = "tenant.set";
    pub const TENANT_DELETE: &str = "tenant.delete";
    pub const TENANT_PAUSE: &str = "tenant.pause";
    pub const TENANT_RESUME: &str = "tenant.resume";
    pub const SYSTEM_PAUSE: &str = "system.pause";
    pub const SYSTEM_RESUME: &str = "system.resume";
    pub const CLOCK_ACCEPT: &str = "clock.accept";
    pub const SYSTEM_INFO: &str = "system.info";
    pub const EXECUTOR_LIST: &str = "executor.list";
    pub const POOL_LIST: &str = "pool.list";
    pub const CLUSTER_MEMBERS: &str = "cluster.members";
    pub const CLUSTER_SHARDS: &str = "cluster.shards";
    pub const CLUSTER_PLAN: &str = "cluster.plan";
    pub const CLUSTER_EVENTS: &str = "cluster.events";
    pub const CLUSTER_CORDON: &str = "cluster.cordon";
    pub const CLUSTER_UNCORDON: &str = "cluster.uncordon";
    /// Request: [`crate::watch::WatchRuns`] -> [`crate::watch::Watching`].
    pub const RUN_WATCH: &str = "run.watch";
    /// Request: [`crate::watch::WatchJobs`] -> [`crate::watch::Watching`].
    pub const JOB_WATCH: &str = "job.watch";
    /// Request: [`crate::watch::StopWatch`] -> an empty map.
    pub const WATCH_STOP: &str = "watch.stop";
    /// Notification from the node: [`crate::watch::Changed`] of [`crate::watch::RunChange`].
    pub const RUN_CHANGED: &str = "run.changed";
    /// Notification from the node: [`crate::watch::Changed`] of [`crate::watch::JobChange`].
    pub const JOB_CHANGED: &str = "job.changed";
    /// Notification from the node: [`crate::watch::WatchEnded`].
    pub const WATCH_ENDED: &str = "watch.ended";
    /// Request: [`super::executor::Register`] -> [`super::executor::Registered`].
    pub const EXECUTOR_REGISTER: &str = "executor.register";
    /// Notification: [`super::executor::Credit`].
    pub const EXECUTOR_CREDIT: &str = "executor.credit";
    /// Request, answered at once with an empty map (the answer is the executor's proof of contact), or notification:
    /// [`super::executor::Heartbeat`].
    pub const EXECUTOR_HEARTBEAT: &str = "executor.heartbeat";
    /// Request: [`super::executor::Announce`] -> [`super::executor::Announced`].
    pub const EXECUTOR_ANNOUNCE: &str = "executor.announce";
    /// Request: [`super::executor::Finish`] -> [`super::executor::Finished`], answered when durable.
    pub const EXECUTOR_FINISH: &str = "executor.finish";
    /// Request, answered with an empty map when stored, or notification: [`super::executor::LogChunk`].
    pub const EXECUTOR_LOG: &str = "executor.log";
    /// Notification: [`super::executor::Drain`].
    pub const EXECUTOR_DRAIN: &str = "executor.drain";
    /// Notification from the node: [`super::executor::Assign`].
    pub const ASSIGN: &str = "executor.assign";
    /// Notification from the node: [`super::executor::Stop`].
    pub const STOP: &str = "executor.stop";
    /// Notification from the node: [`super::executor::Registered`], with shards that it serves since then.
    pub const EPOCHS: &str = "executor.epochs";
    /// Notification from a node of a cluster: [`super::executor::ClusterNodes`].
    pub const MEMBERS: &str = "executor.members";
    /// Notification from the node: [`super::executor::Hint`].
    pub const HINT: &str = "executor.hint";
    /// Notification from the node before it closes a connection: the [`crate::error::ApiError`] that says why.
    pub const SESSION_ERROR: &str = "session.error";

    /// What callers can call, for telling the one that was meant.
    pub const OF_CALLERS: &[&str] = &[
        JOB_CREATE,
        JOB_CREATE_MANY,
        JOB_PLAN,
        JOB_APPLY,
        JOB_GET,
        JOB_FIND,
        JOB_LIST,
        JOB_REPLACE,
        JOB_DELETE,
        JOB_PAUSE,
        JOB_RESUME,
        JOB_TRIGGER,
        JOB_RUNS,
        JOB_LEDGER,
        RUN_GET,
        RUN_FAILED,
        RUN_CANCEL,
        RUN_RETRY,
        RUN_CONFIRM,
        RUN_LOG,
        DLQ_LIST,
        DLQ_REDRIVE,
        DLQ_DISCARD,
        SCHEDULE_PREVIEW,
        TENANT_GET,
        TENANT_LIST,
        TENANT_SET,
        TENANT_DELETE,
        TENANT_PAUSE,
        TENANT_RESUME,
        SYSTEM_PAUSE,
        SYSTEM_RESUME,
        CLOCK_ACCEPT,
        SYSTEM_INFO,
        EXECUTOR_LIST,
        POOL_LIST,
        CLUSTER_MEMBERS,
        CLUSTER_SHARDS,
        CLUSTER_PLAN,
        CLUSTER_EVENTS,
        CLUSTER_CORDON,
        CLUSTER_UNCORDON,
        RUN_WATCH,
        JOB_WATCH,
        WATCH_STOP,
    ];
}
