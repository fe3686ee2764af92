//! One driver session, what is prepared on it, and how many requests may be under way.
//!
//! The driver never repeats a request that may have done something (`retry`): what came of it is the caller's to find out.

use super::{
    error,
    options::CqlOptions,
    retry::WhenUnprepared,
    statements::{Keyspaces, Statements},
    tls,
};
use campanile_ports::StoreError;
use campanile_schema::limits;
use scylla::{
    client::{PoolSize, execution_profile::ExecutionProfile, session::Session, session_builder::SessionBuilder},
    errors::ExecutionError,
    policies::load_balancing::DefaultPolicy,
    response::{
        PagingState, PagingStateResponse,
        query_result::{QueryResult, QueryRowsResult},
    },
    serialize::row::SerializeRow,
    statement::{
        Consistency, SerialConsistency,
        batch::{Batch, BatchStatement, BatchType},
        prepared::PreparedStatement,
    },
    value::CqlValue,
};
use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};

/// A server that does not take a connection in this time is passed over.
const CONNECT: Duration = Duration::from_secs(2);
/// A connection on which nothing comes back for this long, twice, is given up.
const KEEPALIVE: Duration = Duration::from_secs(2);

/// What a request is for: a stall of one kind must not hold up the kinds before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Rows of ownership: a heartbeat that waits is a session that ends.
    Lease,
    /// Lanes: what callers wait for.
    Journal,
    /// The read model and logs of attempts: nobody waits.
    View,
    /// Snapshots. They share the bound of the read model.
    Snapshot,
}

/// A connected store.
pub struct Connection {
    session: Session,
    pub statements: Statements,
    leases: Semaphore,
    journal: Semaphore,
    bulk: Semaphore,
    sent: AtomicU64,
    rows: AtomicU64,
}

/// A driver session to the servers of the data centre.
pub async fn open(options: &CqlOptions) -> Result<Session, StoreError> {
    let balancing = DefaultPolicy::builder()
        .prefer_datacenter(options.data_center.clone())
        .token_aware(true)
        .permit_dc_failover(false)
        .build();
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::LocalQuorum)
        .serial_consistency(Some(SerialConsistency::LocalSerial))
        .request_timeout(Some(options.request_timeout))
        .retry_policy(Arc::new(WhenUnprepared))
        .load_balancing_policy(balancing)
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&options.contact_points)
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(CONNECT)
        .keepalive_interval(KEEPALIVE)
        .keepalive_timeout(KEEPALIVE)
        .pool_size(PoolSize::PerHost(NonZeroUsize::MIN))
        .keyspaces_to_fetch([options.keyspace.clone(), options.logs_keyspace()]);
    if let Some(password) = options.password()? {
        builder = builder.user(&options.user, password);
    }
    if let Some(tls) = &options.tls {
        builder = builder.tls_context(Some(tls::client_config(tls).map_err(StoreError::Refused)?));
    }
    let session = builder.build().await.map_err(|e| error::not_connected(options, &e))?;
    check_data_center(&session, &options.data_center)?;
    Ok(session)
}

fn check_data_center(session: &Session, wanted: &str) -> Result<(), StoreError> {
    let cluster = session.get_cluster_state();
    let mut there: Vec<_> = cluster.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()).collect();
    there.sort();
    there.dedup();
    if there.iter().any(|name| name == wanted) {
        return Ok(());
    }
    if there.is_empty() {
        // The driver goes on without what a busy server did not tell it in time.
        return Err(StoreError::Unavailable("the CQL servers have not said in which data center they are".to_owned()));
    }
    Err(StoreError::Refused(format!(
        "[cql] data_center is '{wanted}', but the servers are in {}: write one of these",
        there.join(", ")
    )))
}

impl Connection {
    /// Prepares all statements; the schema must be there.
    pub async fn new(session: Session, options: &CqlOptions) -> Result<Self, StoreError> {
        let keyspaces = Keyspaces { main: options.keyspace.clone(), logs: options.logs_keyspace() };
        let statements = Statements::prepare(&session, &keyspaces).await?;
        Ok(Self {
            session,
            statements,
            leases: Semaphore::new(limits::CQL_LEASES_IN_FLIGHT),
            journal: Semaphore::new(limits::CQL_JOURNAL_IN_FLIGHT),
            bulk: Semaphore::new(options.max_in_flight),
            sent: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        })
    }

    /// Requests made since the start; a batch is one.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Rows of the read model written since the start.
    #[cfg(test)]
    pub fn rows_written(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Waits for its turn. Requests end within their timeout, so a turn comes.
    async fn turn(&self, kind: RequestKind) -> Option<SemaphorePermit<'_>> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let (semaphore, name) = match kind {
            RequestKind::Lease => (&self.leases, "lease"),
            RequestKind::Journal => (&self.journal, "journal"),
            RequestKind::View => (&self.bulk, "view"),
            RequestKind::Snapshot => (&self.bulk, "snapshot"),
        };
        metrics::counter!("campanile_cql_requests_total", "kind" => name).increment(1);
        // Closed never.
        semaphore.acquire().await.ok()
    }

    fn note<T>(answer: &Result<T, ExecutionError>) {
        if answer.is_err() {
            metrics::counter!("campanile_cql_errors_total").increment(1);
        }
    }

    /// Makes one request.
    pub async fn execute(
        &self,
        kind: RequestKind,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult, ExecutionError> {
        let _turn = self.turn(kind).await;
        let answer = self.session.execute_unpaged(statement, values).await;
        Self::note(&answer);
        answer
    }

    /// Rows of one request.
    pub async fn rows(
        &self,
        kind: RequestKind,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        doing: &str,
    ) -> Result<QueryRowsResult, StoreError> {
        let answer = self.execute(kind, statement, values).await.map_err(|e| error::unavailable(doing, &e))?;
        answer.into_rows_result().map_err(|e| error::damaged(doing, e))
    }

    /// One page, and where the next one begins.
    pub async fn page(
        &self,
        kind: RequestKind,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        from: PagingState,
        doing: &str,
    ) -> Result<(QueryRowsResult, Option<PagingState>), StoreError> {
        let _turn = self.turn(kind).await;
        let answer = self.session.execute_single_page(statement, values, from).await;
        Self::note(&answer);
        let (rows, next) = answer.map_err(|e| error::unavailable(doing, &e))?;
        let next = match next {
            PagingStateResponse::HasMorePages { state } => Some(state),
            PagingStateResponse::NoMorePages => None,
        };
        Ok((rows.into_rows_result().map_err(|e| error::damaged(doing, e))?, next))
    }

    /// Writes of one partition as one request.
    pub async fn batch(
        &self,
        kind: RequestKind,
        writes: Vec<(&PreparedStatement, Vec<CqlValue>)>,
    ) -> Result<(), ExecutionError> {
        let _turn = self.turn(kind).await;
        self.rows.fetch_add(writes.len() as u64, Ordering::Relaxed);
        metrics::counter!("campanile_cql_rows_written_total").increment(writes.len() as u64);
        let (statements, values): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        let answer = if let ([statement], [values]) = (statements.as_slice(), values.as_slice()) {
            self.session.execute_unpaged(statement, values).await
        } else {
            let statements = statements.into_iter().map(|s| BatchStatement::from(s.clone())).collect();
            let batch = Batch::new_with_statements(BatchType::Unlogged, statements);
            self.session.batch(&batch, values).await
        };
        Self::note(&answer);
        answer.map(|_| ())
    }

    /// An LWT. Some(true): applied; Some(false): the condition did not hold; None: nobody knows.
    pub async fn lwt(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Option<bool> {
        let answer = self.execute(RequestKind::Lease, statement, values).await;
        let applied = answer.ok().and_then(is_applied);
        if applied.is_none() {
            metrics::counter!("campanile_cql_unknown_lwts_total").increment(1);
        }
        applied
    }
}

/// The first column of an LWT's answer. Servers send the row that stands beside it or leave it out, each in their own way.
pub fn is_applied(answer: QueryResult) -> Option<bool> {
    let row = answer.into_rows_result().ok()?.single_row::<scylla::value::Row>().ok()?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(applied))) => Some(*applied),
        _ => None,
    }
}
