//! Every operation, and its name in each interface. An operation that an interface does not have says why.

/// Why an operation is legitimately not in an interface.
pub type Reason = &'static str;
/// Its name there, or why it has none.
pub type There = Result<&'static str, Reason>;

pub struct Operation {
    /// `operationId` of the OpenAPI document.
    pub http: There,
    /// Method of RPC.
    pub rpc: There,
    /// Command and subcommand.
    pub cli: There,
    /// Method of the Python client.
    pub python: There,
}

const fn all(name: &'static str, cli: &'static str, python: &'static str) -> Operation {
    Operation { http: Ok(name), rpc: Ok(name), cli: Ok(cli), python: Ok(python) }
}

const LOCAL: Reason = "`cron next` and `cron explain` do it without a node";
const ONE_CALL: Reason = "`job create FILE` calls job.create for each, `--bulk` job.createLines";
const LINES: Reason = "RPC has one message for many: job.createMany";
const MANY: Reason = "HTTP has lines for many: job.createLines";
const BY_NAME: Reason = "commands take a name wherever they take an id";
const NARROWED: Reason = "the same with runId or jobId in the map";
const CLOSED: Reason = "HTTP closes the connection";
const INTERRUPTED: Reason = "the command is interrupted";
const APPLIES: Reason = "`campanile apply` does both; with --dry-run only job.plan";
const ARCHIVE: Reason = "an archive has no size that is known: it is read as a stream over HTTP";
const HISTORY: Reason = "`campanile history archive`, beside the commands that read what it made";
const STORES: Reason = "`campanile store backup`, beside the commands that read what it made";
const CLOSES: Reason = "Changes.close";

pub const OPERATIONS: &[Operation] = &[
    all("job.create", "job create", "job_create"),
    Operation { http: Err(MANY), rpc: Ok("job.createMany"), cli: Err(ONE_CALL), python: Ok("job_create_many") },
    Operation { http: Ok("job.createLines"), rpc: Err(LINES), cli: Err(ONE_CALL), python: Err(LINES) },
    all("job.get", "job get", "job_get"),
    Operation { cli: Err(BY_NAME), ..all("job.find", "", "job_find") },
    all("job.list", "job list", "job_list"),
    all("job.replace", "job replace", "job_replace"),
    all("job.delete", "job delete", "job_delete"),
    all("job.pause", "job pause", "job_pause"),
    all("job.resume", "job resume", "job_resume"),
    all("job.trigger", "job trigger", "job_trigger"),
    all("job.runs", "job runs", "job_runs"),
    all("job.ledger", "job ledger", "job_ledger"),
    all("job.watch", "job watch", "job_watch"),
    Operation { rpc: Err(NARROWED), cli: Err(NARROWED), python: Err(NARROWED), ..all("job.watchOne", "", "") },
    all("run.get", "run get", "run_get"),
    all("run.failed", "run failed", "run_failed"),
    all("run.cancel", "run cancel", "run_cancel"),
    all("run.retry", "run retry", "run_retry"),
    all("run.confirm", "run confirm", "run_confirm"),
    all("run.log", "run log", "run_log"),
    all("run.watch", "run watch", "run_watch"),
    Operation { rpc: Err(NARROWED), cli: Err(NARROWED), python: Err(NARROWED), ..all("run.watchOne", "", "") },
    Operation { http: Err(CLOSED), rpc: Ok("watch.stop"), cli: Err(INTERRUPTED), python: Err(CLOSES) },
    all("dlq.list", "dlq list", "dlq_list"),
    all("dlq.redrive", "dlq redrive", "dlq_redrive"),
    all("dlq.discard", "dlq discard", "dlq_discard"),
    Operation { cli: Err(LOCAL), ..all("schedule.preview", "", "schedule_preview") },
    all("tenant.get", "tenant get", "tenant_get"),
    all("tenant.list", "tenant list", "tenant_list"),
    all("tenant.set", "tenant set", "tenant_set"),
    all("tenant.delete", "tenant delete", "tenant_delete"),
    all("tenant.pause", "tenant pause", "tenant_pause"),
    all("tenant.resume", "tenant resume", "tenant_resume"),
    all("system.info", "system info", "system_info"),
    all("system.pause", "system pause", "system_pause"),
    all("system.resume", "system resume", "system_resume"),
    all("clock.accept", "system accept-clock", "clock_accept"),
    all("executor.list", "system executors", "executor_list"),
    all("pool.list", "system pools", "pool_list"),
    all("cluster.members", "cluster members", "cluster_members"),
    all("cluster.shards", "cluster shards", "cluster_shards"),
    all("cluster.plan", "cluster plan", "cluster_plan"),
    all("cluster.events", "cluster events", "cluster_events"),
    all("cluster.cordon", "cluster cordon", "cluster_cordon"),
    all("cluster.uncordon", "cluster uncordon", "cluster_uncordon"),
    Operation { cli: Err(APPLIES), ..all("job.plan", "", "job_plan") },
    Operation { cli: Err(APPLIES), ..all("job.apply", "", "job_apply") },
    Operation { rpc: Err(ARCHIVE), cli: Err(STORES), python: Err(ARCHIVE), ..all("store.backup", "", "") },
    Operation { rpc: Err(ARCHIVE), cli: Err(HISTORY), python: Err(ARCHIVE), ..all("store.history", "", "") },
];

/// Commands under these talk to a node; all others work on this machine's files.
pub const NODE_COMMANDS: &[&str] = &["job", "run", "dlq", "tenant", "system", "cluster"];
/// Such commands that are several calls, and so no operation of their own.
pub const SEVERAL_CALLS: &[(&str, Reason)] = &[
    ("run wait", "run.get with waitSec, again and again"),
    ("run list", "reads a directory of `history archive`; no node is asked"),
    ("job edit", "job.get, an editor, job.replace"),
    ("cluster new-keys", "makes files; no node is asked"),
];
