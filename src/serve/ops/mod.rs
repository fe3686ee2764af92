//! Every operation of callers, once. HTTP and RPC both call [`Operations::call`], which reads the table of operations
//! ([`campanile_schema::operations`]), checks the caller's permissions, and calls the operation's handler. Each handler
//! is an implementation of `Handle` in one of the files here.
//!
//! A tenant's credential sees and changes only its tenant. An id that belongs to another tenant is answered as unknown
//! (404), and a body that names another tenant is refused (403).
//!
//! Never here: decisions about jobs and runs (the core), names and defaults of a spec (the core), or transport.

mod access;
pub mod apply;
mod audit;
mod backfills;
mod backup;
mod bulk;
mod bulk_operations;
mod calendars;
mod cluster;
mod dags;
mod dead_letters;
mod dispatch;
mod files;
mod history;
mod jobs;
mod labels;
mod log_search;
mod outbox;
mod paging;
mod parsing;
mod runs;
mod targets;
mod tenants;
mod traced;
mod watch;

pub use audit::{AuditTrail, CameFrom};
pub use backup::{Backup, BackupSource};
pub use files::FilesState;

use backup::Backups;
use campanile_actors::scheduler::Scheduler;
use campanile_cluster::admin::ClusterAdmin;
use campanile_ports::spans::Tracer;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    limits::{KEY_BYTES, PARAMS_BYTES, REASON_BYTES},
    payload::Payload,
    time::Timestamp,
};
use parsing::Parsers;
use std::sync::{Arc, Weak};

/// See the module's text. Cheap to clone.
#[derive(Clone)]
pub struct Operations {
    pub scheduler: Scheduler,
    /// None: the node is alone.
    cluster: Option<Arc<ClusterAdmin>>,
    /// How the directory of files stands.
    pub files: FilesState,
    backups: Option<Backups>,
    /// Who writes what no change carries ([`AuditTrail::run`]) has it too.
    pub trail: AuditTrail,
    /// Of the call that is carried out.
    came_from: CameFrom,
    tracer: Tracer,
    pub(crate) parsers: Parsers,
}

impl Operations {
    pub fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            cluster: None,
            files: FilesState::default(),
            backups: None,
            trail: AuditTrail::default(),
            came_from: CameFrom::default(),
            tracer: Tracer::default(),
            parsers: Parsers::default(),
        }
    }

    /// Where operators ask about the cluster; None: the node is alone.
    pub fn with_cluster(self, cluster: Option<Arc<ClusterAdmin>>) -> Self {
        Self { cluster, ..self }
    }

    /// Where spans of calls go.
    pub fn with_tracer(self, tracer: Tracer) -> Self {
        Self { tracer, ..self }
    }

    /// The node's own store, for as long as it is there.
    pub fn with_backups(self, source: Weak<dyn BackupSource>) -> Self {
        Self { backups: Some(Backups::of(source)), ..self }
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidArgument, message)
}

fn check_reason(reason: Option<&str>) -> Answer<()> {
    at_most("reason", reason, REASON_BYTES)
}

fn check_times(from: Option<Timestamp>, to: Option<Timestamp>) -> Answer<()> {
    match (from, to) {
        (Some(from), Some(to)) if from > to => Err(invalid(format!("from: {from} is after to, {to}"))),
        (Some(_) | None, _) => Ok(()),
    }
}

fn check_key(field: &str, key: Option<&str>) -> Answer<()> {
    match key {
        Some("") => Err(invalid(format!("{field}: must not be empty"))),
        Some(_) | None => at_most(field, key, KEY_BYTES),
    }
}

fn check_params(params: Option<&Payload>) -> Answer<()> {
    at_most("params", params.map(|params| params.0.as_str()), PARAMS_BYTES)
}

fn at_most(field: &str, text: Option<&str>, bytes: usize) -> Answer<()> {
    match text {
        Some(text) if text.len() > bytes => {
            Err(invalid(format!("{field}: {} bytes; at most {bytes} are allowed", text.len())))
        }
        Some(_) | None => Ok(()),
    }
}
