//! The columns of the table: what it says about one operation.

use super::subject::Subject;
use crate::error::ErrorCode;

/// The reason for which an interface does not have an operation.
pub type Reason = &'static str;

/// One operation, or one message of a connection, in every interface.
#[derive(Debug)]
pub struct Row {
    /// Its method in RPC, and its `operationId` in HTTP.
    pub name: &'static str,
    /// Its comment in the table.
    pub doc: &'static str,
    pub http: Result<Http, Reason>,
    pub rpc: Result<(), Reason>,
    /// Command and subcommand.
    pub cli: Result<&'static str, Reason>,
    pub python: Result<(), Reason>,
    /// The least that a credential must be.
    pub least: LeastRole,
    /// What its requests are about. `Nothing` in rows without a handler ([`super::own`]).
    pub subject: Subject,
    pub tenant: Tenant,
    pub audit: Audit,
    pub effect: CallEffect,
    /// The field in RPC with a key of the caller, which makes the call safe to repeat. HTTP has `Idempotency-Key` for each of them.
    pub key: Option<&'static str>,
    pub weight: Weight,
    /// Its error codes, besides those that every operation can have.
    pub errors: &'static [ErrorCode],
}

impl Row {
    /// What it does, in one line without a full stop.
    pub fn summary(&self) -> &'static str {
        self.doc.trim().trim_end_matches('.')
    }

    /// Its method of the Python client: `job_create_many` for `job.createMany`.
    pub fn python_name(&self) -> Result<String, Reason> {
        let lower = |c: char| match c {
            '.' => "_".to_owned(),
            c if c.is_ascii_uppercase() => format!("_{}", c.to_ascii_lowercase()),
            c => c.to_string(),
        };
        self.python.map(|()| self.name.chars().map(lower).collect())
    }

    /// The part of the name before the dot. The audit log shows it for an operation that is not about a single job, run, tenant or node.
    pub fn noun(&self) -> &'static str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// Whether callers use it: operators and tenants.
    pub fn is_of_callers(&self) -> bool {
        match self.least {
            LeastRole::Tenant | LeastRole::Operator => true,
            LeastRole::Public | LeastRole::Metrics | LeastRole::Executor => false,
        }
    }

    /// Its path in HTTP with the id or name of the job, run, tenant or node filled in.
    pub fn path_of(&self, named: impl std::fmt::Display) -> String {
        let path = self.path();
        match (path.split_once('{'), path.split_once('}')) {
            (Some((before, _)), Some((_, after))) => format!("{before}{named}{after}"),
            (None, _) | (_, None) => path.to_owned(),
        }
    }

    /// Its path in HTTP; empty where HTTP does not have it.
    pub const fn path(&self) -> &'static str {
        match self.http {
            Ok(http) => http.path,
            Err(_) => "",
        }
    }
}

/// The least role that may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastRole {
    /// Everybody who reaches the port, without a credential.
    Public,
    /// Credentials for metrics, and operators; everybody if the configuration says so.
    Metrics,
    /// Executors, on a connection of their own.
    Executor,
    /// Tenants, and operators.
    Tenant,
    Operator,
}

/// Where the tenant of a request is compared with the tenant of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenant {
    /// The dispatcher looks up the tenant of the job, run or tenant that the request is about, or narrows a list to the
    /// caller's own, before the handler begins.
    Before,
    /// The dispatcher compares the tenant that the answer names. Only for reads; they need no look-up of the tenant before the handler.
    InAnswer,
    /// The request has many subjects, or a definition that names its tenant: the handler checks each.
    Each,
    /// It is about no tenant.
    Nothing,
}

/// Where a call that was carried out leaves its record in the audit trail. A refusal of each of them but [`Self::No`] leaves
/// one too; a refusal of those only if the caller is not known or not allowed to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// In the frame of the change, to which the call carries it.
    Frame,
    /// No record: the run that it makes tells who called.
    Run,
    /// The change has no frame: the dispatcher has a record written, when the handler has ended.
    Home,
    /// The same, by the handler, because the work goes on behind the answer.
    Own,
    No,
}

impl Audit {
    /// Whether each call leaves a trace.
    pub fn is_kept(self) -> bool {
        match self {
            Self::Frame | Self::Run | Self::Home | Self::Own => true,
            Self::No => false,
        }
    }
}

/// Whether a client may send a call again without knowing whether the first one arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// It changes nothing.
    Read,
    /// A change that is safe to repeat only if it is keyed and carries its key.
    Once,
}

/// How much of a connection's budget a call takes in addition to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    One,
    /// Its answer can be large.
    List,
}

/// Methods of HTTP that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Where an HTTP request has the fields that are not in its path and headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpInput {
    Query,
    Body,
    /// An empty body counts as `{}`.
    OptionalBody,
    /// A body with a job's definition. A caller with a tenant's credential who writes another tenant's name is refused, even if the name is
    /// the default `default`.
    Definition,
}

/// The form of a successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpOutput {
    Json,
    /// No body.
    Nothing,
    /// A change of every shard: no body when all shards have it, otherwise 202 with the shards that do not have it yet.
    Spread,
    /// The same JSON with 202 when work goes on behind the answer, and with 200 when there is none.
    Accepted,
}

/// Routes without a handler of the table: `src/serve/api/routes.rs` answers each in its own way, and its match has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRoute {
    JobCreateLines,
    JobWatch,
    JobWatchOne,
    RunLog,
    RunWatch,
    RunWatchOne,
    StoreBackup,
    StoreHistory,
    AuditExport,
    SessionOpen,
    SessionGet,
    SessionClose,
    Root,
    Asset,
    Api,
    Errors,
    Healthz,
    Readyz,
    Metrics,
    Openapi,
    JobSchema,
}

/// An operation in HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Http {
    pub verb: Verb,
    pub path: &'static str,
    /// Status of a successful answer.
    pub status: u16,
    pub takes: HttpInput,
    pub gives: HttpOutput,
    /// None: the operation's handler answers, as in RPC.
    pub own: Option<OwnRoute>,
}

impl Http {
    const fn new(verb: Verb, path: &'static str, takes: HttpInput) -> Self {
        Self { verb, path, status: 200, takes, gives: HttpOutput::Json, own: None }
    }
    pub const fn get(path: &'static str) -> Self {
        Self::new(Verb::Get, path, HttpInput::Query)
    }
    pub const fn post(path: &'static str) -> Self {
        Self::new(Verb::Post, path, HttpInput::Body)
    }
    pub const fn put(path: &'static str) -> Self {
        Self::new(Verb::Put, path, HttpInput::Body)
    }
    pub const fn delete(path: &'static str) -> Self {
        Self::new(Verb::Delete, path, HttpInput::Query)
    }
    pub const fn takes(self, takes: HttpInput) -> Self {
        Self { takes, ..self }
    }
    pub const fn optional_body(self) -> Self {
        self.takes(HttpInput::OptionalBody)
    }
    pub const fn created(self) -> Self {
        Self { status: 201, ..self }
    }
    pub const fn nothing(self) -> Self {
        Self { status: 204, gives: HttpOutput::Nothing, ..self }
    }
    pub const fn spread(self) -> Self {
        Self { status: 204, gives: HttpOutput::Spread, ..self }
    }
    pub const fn accepted(self) -> Self {
        Self { gives: HttpOutput::Accepted, ..self }
    }
    pub const fn own(self, route: OwnRoute) -> Self {
        Self { own: Some(route), ..self }
    }
}
