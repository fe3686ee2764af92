//! Rows that have no handler: streams, pages, the messages of executors, and the first call of a connection. The code
//! that serves them answers each in its own way. They share the table's columns.

use super::{Audit, CallEffect, Http, LeastRole, OwnRoute, Reason, Row, Subject, Tenant, Weight};
use crate::error::ErrorCode as E;

macro_rules! own {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $text:literal { $($column:ident: $value:expr),+ $(,)? }
    )+) => {
        /// The rows by name.
        pub mod rows {
            use super::*;
            $(
                $(#[doc = $doc])+
                pub const $name: &Row = &Row {
                    name: $text,
                    doc: concat!($($doc),+),
                    subject: Subject::Nothing,
                    effect: CallEffect::Once,
                    weight: Weight::One,
                    $($column: $value),+
                };
            )+
        }
        /// Every row of this kind, in the order of the table.
        pub static OWN: &[&Row] = &[$(rows::$name),+];
    };
}

const LINES: Reason = "RPC has one message for many: job.createMany";
const ONE_CALL: Reason = "`job create FILE` calls job.create for each, `--bulk` job.createLines";
const NARROWED: Reason = "the same with runId or jobId in the map";
const CLOSED: Reason = "HTTP closes the connection";
const INTERRUPTED: Reason = "the command is interrupted";
const CLOSES: Reason = "Changes.close";
const ARCHIVE: Reason = "an archive has no size that is known: it is read as a stream over HTTP";
const HISTORY: Reason = "`campanile history archive`, beside the commands that read what it made";
const STORES: Reason = "`campanile store backup`, beside the commands that read what it made";
const PAGES: Reason = "the pages of audit.list, one after the other";
const PAGE: Reason = "a page of HTTP, for people and monitoring";
const CONNECTION: Reason = "a message of an RPC connection";
const BROWSERS: Reason = "for the console in a browser; others send their token with each call";
const EXECUTORS: Reason = "a message of executors, which only RPC has";

const BAD_WATCH: &[E] = &[E::InvalidArgument, E::NotFound];

own! {
    /// Create many jobs: one in each line, an answer for each line.
    JOB_CREATE_LINES = "job.createLines" {
        http: Ok(Http::post("/api/v1/jobs/bulk").own(OwnRoute::JobCreateLines)), rpc: Err(LINES),
        cli: Err(ONE_CALL), python: Err(LINES),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::Frame, key: Some("idempotencyKey"), errors: &[E::UnsupportedMediaType],
    }

    /// Runs as they change, as server-sent events.
    RUN_WATCH = "run.watch" {
        http: Ok(Http::get("/api/v1/runs/watch").own(OwnRoute::RunWatch)), rpc: Ok(()),
        cli: Ok("run watch"), python: Ok(()),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, key: None, errors: BAD_WATCH,
    }

    /// A run as it changes, until its end.
    RUN_WATCH_ONE = "run.watchOne" {
        http: Ok(Http::get("/api/v1/runs/{runId}/watch").own(OwnRoute::RunWatchOne)), rpc: Err(NARROWED),
        cli: Err(NARROWED), python: Err(NARROWED),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, key: None, errors: BAD_WATCH,
    }

    /// Definitions of jobs as they change, as server-sent events.
    JOB_WATCH = "job.watch" {
        http: Ok(Http::get("/api/v1/jobs/watch").own(OwnRoute::JobWatch)), rpc: Ok(()),
        cli: Ok("job watch"), python: Ok(()),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, key: None, errors: BAD_WATCH,
    }

    /// A job's definition as it changes.
    JOB_WATCH_ONE = "job.watchOne" {
        http: Ok(Http::get("/api/v1/jobs/{jobId}/watch").own(OwnRoute::JobWatchOne)), rpc: Err(NARROWED),
        cli: Err(NARROWED), python: Err(NARROWED),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, key: None, errors: BAD_WATCH,
    }

    /// End a watch of this connection.
    WATCH_STOP = "watch.stop" {
        http: Err(CLOSED), rpc: Ok(()), cli: Err(INTERRUPTED), python: Err(CLOSES),
        least: LeastRole::Tenant, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// An archive of everything on this node, sent while it is made.
    STORE_BACKUP = "store.backup" {
        http: Ok(Http::get("/api/v1/cluster/backup").own(OwnRoute::StoreBackup)), rpc: Err(ARCHIVE),
        cli: Err(STORES), python: Err(ARCHIVE),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Own, key: None, errors: &[E::IllegalState],
    }

    /// Runs that ended on closed days, with attempts and logs, oldest first: days of history, sent while they are read.
    STORE_HISTORY = "store.history" {
        http: Ok(Http::get("/api/v1/cluster/history").own(OwnRoute::StoreHistory)), rpc: Err(ARCHIVE),
        cli: Err(HISTORY), python: Err(ARCHIVE),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Own, key: None,
        errors: &[E::InvalidArgument, E::IllegalState],
    }

    /// The audit trail as lines of JSON, newest first, sent while it is read.
    AUDIT_EXPORT = "audit.export" {
        http: Ok(Http::get("/api/v1/audit/export").own(OwnRoute::AuditExport)), rpc: Err(PAGES),
        cli: Ok("audit export"), python: Err(PAGES),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, key: None, errors: &[E::InvalidArgument],
    }

    /// Open a session of the console: the answer to a call with a token sets a cookie that stands for it.
    SESSION_OPEN = "session.open" {
        http: Ok(Http::post("/api/v1/session").own(OwnRoute::SessionOpen)), rpc: Err(BROWSERS), cli: Err(BROWSERS),
        python: Err(BROWSERS),
        least: LeastRole::Tenant, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Whose call this is.
    SESSION_GET = "session.get" {
        http: Ok(Http::get("/api/v1/session").own(OwnRoute::SessionGet)), rpc: Err(BROWSERS), cli: Err(BROWSERS),
        python: Err(BROWSERS),
        least: LeastRole::Tenant, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// End a session of the console: the browser forgets the cookie.
    SESSION_CLOSE = "session.close" {
        http: Ok(Http::delete("/api/v1/session").nothing().own(OwnRoute::SessionClose)), rpc: Err(BROWSERS),
        cli: Err(BROWSERS), python: Err(BROWSERS),
        least: LeastRole::Tenant, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// The console; without one what this is, with links.
    PAGE_ROOT = "page.root" {
        http: Ok(Http::get("/").own(OwnRoute::Root)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// A file of the console.
    PAGE_ASSET = "page.asset" {
        http: Ok(Http::get("/assets/{file}").own(OwnRoute::Asset)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[E::NotFound],
    }

    /// What this is, with links and every route.
    PAGE_API = "page.api" {
        http: Ok(Http::get("/api").own(OwnRoute::Api)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Every error code and what it means.
    PAGE_ERRORS = "page.errors" {
        http: Ok(Http::get("/errors").own(OwnRoute::Errors)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// The process answers.
    PAGE_HEALTHZ = "page.healthz" {
        http: Ok(Http::get("/healthz").own(OwnRoute::Healthz)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// The node can take calls; 503 with the reasons when not.
    PAGE_READYZ = "page.readyz" {
        http: Ok(Http::get("/readyz").own(OwnRoute::Readyz)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[E::NotReady],
    }

    /// Metrics in Prometheus' text form.
    PAGE_METRICS = "page.metrics" {
        http: Ok(Http::get("/metrics").own(OwnRoute::Metrics)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Metrics, tenant: Tenant::Nothing, audit: Audit::No, key: None,
        errors: &[E::Unauthenticated, E::Forbidden, E::NotFound],
    }

    /// This document.
    PAGE_OPENAPI = "page.openapi" {
        http: Ok(Http::get("/openapi.json").own(OwnRoute::Openapi)), rpc: Err(PAGE), cli: Err(PAGE), python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// JSON Schema of manifests (kind: Job), for editors.
    PAGE_JOB_SCHEMA = "page.jobSchema" {
        http: Ok(Http::get("/schemas/job.json").own(OwnRoute::JobSchema)), rpc: Err(PAGE), cli: Err(PAGE),
        python: Err(PAGE),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// The first call of every connection: [`crate::rpc::hello::Hello`] -> [`crate::rpc::hello::Welcome`].
    HELLO = "session.hello" {
        http: Err(CONNECTION), rpc: Ok(()), cli: Err(CONNECTION), python: Err(CONNECTION),
        least: LeastRole::Public, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Request: [`crate::rpc::executor::Register`] -> [`crate::rpc::executor::Registered`].
    EXECUTOR_REGISTER = "executor.register" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Notification: [`crate::rpc::executor::Credit`].
    EXECUTOR_CREDIT = "executor.credit" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Request, answered at once with an empty map (the answer is the executor's proof of contact), or notification:
    /// [`crate::rpc::executor::Heartbeat`].
    EXECUTOR_HEARTBEAT = "executor.heartbeat" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Request: [`crate::rpc::executor::Announce`] -> [`crate::rpc::executor::Announced`].
    EXECUTOR_ANNOUNCE = "executor.announce" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Request: [`crate::rpc::executor::Finish`] -> [`crate::rpc::executor::Finished`], answered when durable.
    EXECUTOR_FINISH = "executor.finish" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Request, answered with an empty map when stored, or notification: [`crate::rpc::executor::LogChunk`].
    EXECUTOR_LOG = "executor.log" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }

    /// Notification: [`crate::rpc::executor::Drain`].
    EXECUTOR_DRAIN = "executor.drain" {
        http: Err(EXECUTORS), rpc: Ok(()), cli: Err(EXECUTORS), python: Err(EXECUTORS),
        least: LeastRole::Executor, tenant: Tenant::Nothing, audit: Audit::No, key: None, errors: &[],
    }
}

/// Methods of RPC that are no operations: requests that are served in their own way, and what a node notifies.
pub mod method {
    use super::rows;

    pub const HELLO: &str = rows::HELLO.name;
    /// Request: [`crate::watch::WatchRuns`] -> [`crate::watch::Watching`].
    pub const RUN_WATCH: &str = rows::RUN_WATCH.name;
    /// Request: [`crate::watch::WatchJobs`] -> [`crate::watch::Watching`].
    pub const JOB_WATCH: &str = rows::JOB_WATCH.name;
    /// Request: [`crate::watch::StopWatch`] -> an empty map.
    pub const WATCH_STOP: &str = rows::WATCH_STOP.name;
    pub const EXECUTOR_REGISTER: &str = rows::EXECUTOR_REGISTER.name;
    pub const EXECUTOR_CREDIT: &str = rows::EXECUTOR_CREDIT.name;
    pub const EXECUTOR_HEARTBEAT: &str = rows::EXECUTOR_HEARTBEAT.name;
    pub const EXECUTOR_ANNOUNCE: &str = rows::EXECUTOR_ANNOUNCE.name;
    pub const EXECUTOR_FINISH: &str = rows::EXECUTOR_FINISH.name;
    pub const EXECUTOR_LOG: &str = rows::EXECUTOR_LOG.name;
    pub const EXECUTOR_DRAIN: &str = rows::EXECUTOR_DRAIN.name;

    /// Notification from the node: [`crate::watch::Changed`] of [`crate::watch::RunChange`].
    pub const RUN_CHANGED: &str = "run.changed";
    /// Notification from the node: [`crate::watch::Changed`] of [`crate::watch::JobChange`].
    pub const JOB_CHANGED: &str = "job.changed";
    /// Notification from the node: [`crate::watch::WatchEnded`].
    pub const WATCH_ENDED: &str = "watch.ended";
    /// Notification from the node: [`crate::rpc::executor::Assign`].
    pub const ASSIGN: &str = "executor.assign";
    /// Notification from the node: [`crate::rpc::executor::Stop`].
    pub const STOP: &str = "executor.stop";
    /// Notification from the node: [`crate::rpc::executor::Registered`], with shards that it serves since then.
    pub const EPOCHS: &str = "executor.epochs";
    /// Notification from a node of a cluster: [`crate::rpc::executor::ClusterNodes`].
    pub const MEMBERS: &str = "executor.members";
    /// Notification from the node: [`crate::rpc::executor::Hint`].
    pub const HINT: &str = "executor.hint";
    /// Notification from the node before it closes a connection: the [`crate::error::ApiError`] that says why.
    pub const SESSION_ERROR: &str = "session.error";
}
