//! The store of a cluster: ScyllaDB or Apache Cassandra by CQL. It implements the ports [`Leases`], [`Snapshots`] and [`Views`]; tables are
//! in `schema/cql`.
//!
//! **What a trigger costs.** Requests, not rows, are what a server feels (up to a millisecond of its CPU each here), so what belongs together goes
//! together. The journal has one for each row of a lane, which holds some hundred frames. Of the read model, what one `apply` brings of a shard's
//! ended runs is one row, a pack, and packs share requests; intervals that fired runs are a row each, a request for four shards, and also what lists
//! of jobs are read from. At 256 shards, 5,000 triggers/s and an apply each half a second that is a twentieth of a request a trigger. Not packed: a
//! caller's key, a failed run's lists, and what no schedule fired.
//!
//! **What is never mixed.** Tables of LWTs are never written plainly. Plain writes carry a timestamp that is part of what they say (the
//! event's hybrid clock, the position itself, or a constant), so no client's clock decides anything.
//!
//! Calls run on the runtime that connected, to their end, whoever stops waiting for them. Never here: a retry, a decision, or a scan over a
//! table.
//!
//! [`Leases`]: campanile_ports::Leases
//! [`Snapshots`]: campanile_ports::Snapshots
//! [`Views`]: campanile_ports::Views

pub mod connection;
mod dialect;
mod error;
mod format;
mod lanes;
mod leases;
pub mod options;
mod retry;
mod rows;
pub mod schema;
mod snapshots;
mod statements;
mod tls;
mod views;

#[cfg(test)]
pub mod tests;

pub use options::{CqlOptions, CqlTls};

use campanile_ports::{PortFuture, StoreError, log_once::LogOnce};
use campanile_schema::format::FormatRow;
use connection::Connection;
use std::{future::Future, sync::Arc};
use tokio::{runtime::Handle, sync::Mutex};

/// The store of a cluster.
pub struct CqlStore {
    core: Arc<Core>,
    /// Where requests run: callers may have other runtimes, or none.
    runtime: Handle,
}

/// What requests need.
struct Core {
    link: Connection,
    node: String,
    shards: u16,
    /// Seconds that history is kept; 0 = for ever.
    history_ttl_s: i32,
    audit_ttl_s: i32,
    /// By partition of the shards' rows.
    shard_turns: Vec<Mutex<()>>,
    deleted: lanes::Deleted,
    known: views::NotedBuckets,
    logs: views::Logs,
    unanswered: LogOnce,
}

impl CqlStore {
    /// Connects to a cluster whose schema is there, and refuses one that this node does not belong to.
    pub async fn connect(options: &CqlOptions) -> Result<(Arc<Self>, FormatRow), StoreError> {
        options.check()?;
        let session = connection::open(options).await?;
        schema::require(&session, options).await?;
        let format = format::read(&session, options).await?;
        for warning in dialect::warnings(&session).await {
            tracing::warn!("{warning}");
        }
        let link = Connection::new(session, options).await?;
        let core = Core {
            link,
            node: options.node.clone(),
            shards: format.shards,
            history_ttl_s: options.history_ttl_s(),
            audit_ttl_s: options.audit_ttl_s(),
            shard_turns: (0..format.shards.div_ceil(leases::SHARDS_PER_BUCKET)).map(|_| Mutex::default()).collect(),
            deleted: lanes::Deleted::default(),
            known: views::NotedBuckets::default(),
            logs: views::Logs::default(),
            unanswered: LogOnce::new("statements of the ownership protocol have no answer"),
        };
        Ok((Arc::new(Self { core: Arc::new(core), runtime: Handle::current() }), format))
    }

    /// Requests made since the start; a batch is one.
    pub fn requests(&self) -> u64 {
        self.core.link.sent()
    }

    /// Rows written by batches since the start.
    #[cfg(test)]
    fn written_rows(&self) -> u64 {
        self.core.link.rows_written()
    }

    /// Runs a call to its end, even when its caller goes away.
    fn spawn<T, F>(&self, call: impl FnOnce(Arc<Core>) -> F) -> PortFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let task = self.runtime.spawn(call(self.core.clone()));
        Box::pin(async move {
            let ended = task.await;
            ended.unwrap_or_else(|error| Err(StoreError::Unknown(format!("a call of the store broke off: {error}"))))
        })
    }
}
