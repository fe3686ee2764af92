//! Keyspaces and tables: versioned migrations of `schema/cql`, applied by one node at a time, under a lock that ends by itself.
//!
//! A migration is never changed once it is released; a new one follows. One that only adds tables has a number from
//! [`text::FIRST_ADDITION`] on, and releases that do not know it pass over it. All statements are `IF NOT EXISTS`, so that a migration that
//! broke off is made whole by the next try.

mod lock;
mod shape;
mod text;

use super::{connection, dialect, error, format, options::CqlOptions};
use campanile_ports::StoreError;
use lock::{Lock, lwt};
use scylla::{
    client::session::Session,
    statement::{Consistency, Statement},
};
use std::{collections::BTreeMap, time::Duration};
use text::{FIRST_ADDITION, MIGRATIONS, checksum, foundation, statements};

/// Requests that make tables or look after them get at least so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is there of the schema.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// Number and name of what was applied.
    pub applied: Vec<(i32, String)>,
    /// Number and name of what this release needs beside it.
    pub missing: Vec<(i32, String)>,
    /// What an operator should know of the servers.
    pub warnings: Vec<String>,
}

/// All of it as a script for a CQL shell, for Cassandra.
pub fn print(options: &CqlOptions) -> Result<String, StoreError> {
    options.check()?;
    Ok(text::script(options))
}

/// Makes keyspaces and tables, or brings them up to this release, and says what the cluster is when nothing says it yet. `who` and
/// `now_ms` are for those who read the rows.
pub async fn apply(options: &CqlOptions, who: &str, now_ms: i64) -> Result<Report, StoreError> {
    options.check()?;
    let session = patient(options).await?;
    let dialect = dialect::dialect(&session).await;
    for statement in foundation(options, dialect) {
        change(&session, &statement).await?;
    }
    let lock = Lock { session: &session, keyspace: &options.keyspace, who };
    lock.take().await?;
    let done = apply_locked(&lock, options, now_ms).await;
    // Also after an error: others need not wait until it ends by itself.
    let given_back = lock.give_back().await;
    done?;
    given_back?;
    report(&session, options).await
}

/// A session for changes of the schema: servers are slow while they make tables, and nobody's lease waits here.
async fn patient(options: &CqlOptions) -> Result<Session, StoreError> {
    let request_timeout = options.request_timeout.max(PATIENCE);
    connection::open(&CqlOptions { request_timeout, ..options.clone() }).await
}

async fn apply_locked(lock: &Lock<'_>, options: &CqlOptions, now_ms: i64) -> Result<(), StoreError> {
    let session = lock.session;
    let known = applied(session, options).await?.unwrap_or_default();
    compare(&known, options)?;
    for (number, name, text) in MIGRATIONS.iter().filter(|(number, ..)| !known.contains_key(number)) {
        for statement in statements(text, options) {
            lock.renew().await?;
            change(session, &statement).await?;
        }
        let insert = format!(
            "INSERT INTO {}.schema_versions (number, name, checksum, applied_ms) VALUES (?, ?, ?, ?) IF NOT EXISTS",
            options.keyspace
        );
        lwt(session, &insert, (number, name, checksum(text), now_ms)).await?;
    }
    format::create(session, options, now_ms).await
}

/// What is there, without changing it.
pub async fn check(options: &CqlOptions) -> Result<Report, StoreError> {
    options.check()?;
    let session = patient(options).await?;
    let report = report(&session, options).await?;
    if report.missing.is_empty() {
        format::read(&session, options).await?;
    }
    Ok(report)
}

async fn report(session: &Session, options: &CqlOptions) -> Result<Report, StoreError> {
    let known = applied(session, options).await?.unwrap_or_default();
    compare(&known, options)?;
    if !known.is_empty() {
        shape::compare(session, options, |number| known.contains_key(&number)).await?;
    }
    let missing = MIGRATIONS.iter().filter(|(number, ..)| !known.contains_key(number));
    Ok(Report {
        missing: missing.map(|(number, name, _)| (*number, (*name).to_owned())).collect(),
        applied: known.into_iter().map(|(number, (name, _))| (number, name)).collect(),
        warnings: dialect::warnings(session).await,
    })
}

/// Refuses a keyspace that lacks what this release needs.
pub async fn require(session: &Session, options: &CqlOptions) -> Result<(), StoreError> {
    let keyspace = &options.keyspace;
    let advice = "run `campanile schema apply` with this configuration";
    let Some(known) = applied(session, options).await? else {
        return Err(StoreError::Refused(format!("the CQL servers have no keyspace {keyspace} of ours: {advice}")));
    };
    compare(&known, options)?;
    match MIGRATIONS.iter().find(|(number, ..)| !known.contains_key(number)) {
        None => shape::compare(session, options, |_| true).await,
        Some((number, name, _)) => {
            Err(StoreError::Refused(format!("keyspace {keyspace} lacks the migration {number:04} {name}: {advice}")))
        }
    }
}

/// Refuses what another release made: a newer one's, or a migration that was changed.
fn compare(known: &BTreeMap<i32, (String, String)>, options: &CqlOptions) -> Result<(), StoreError> {
    let keyspace = &options.keyspace;
    for (number, (name, sum)) in known {
        let Some((_, _, text)) = MIGRATIONS.iter().find(|(ours, ..)| ours == number) else {
            return Err(StoreError::Refused(format!(
                "keyspace {keyspace} has the migration {number:04} {name}, which this release does not know: start one that is at least as \
                 new as the one that applied it"
            )));
        };
        if checksum(text) != *sum {
            return Err(StoreError::Refused(format!(
                "keyspace {keyspace} has another migration {number:04} {name} than this release: it was made by a build that was not released"
            )));
        }
    }
    Ok(())
}

/// Name and checksum of what was applied; None: there is not even the table.
async fn applied(
    session: &Session,
    options: &CqlOptions,
) -> Result<Option<BTreeMap<i32, (String, String)>>, StoreError> {
    const DOING: &str = "the schema's version is read";
    let keyspace = &options.keyspace;
    let there =
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'schema_versions'";
    let answer = session.query_unpaged(there, (keyspace,)).await.map_err(|e| error::unavailable(DOING, &e))?;
    if answer.into_rows_result().map_err(|e| error::damaged(DOING, e))?.rows_num() == 0 {
        return Ok(None);
    }
    let mut known = BTreeMap::new();
    for (number, ..) in MIGRATIONS.iter().copied().chain(std::iter::once((next_number(), "", ""))) {
        let text = format!("SELECT name, checksum FROM {keyspace}.schema_versions WHERE number = ?");
        let mut statement = Statement::new(text);
        statement.set_consistency(Consistency::LocalSerial);
        let answer = session.query_unpaged(statement, (number,)).await.map_err(|e| error::unavailable(DOING, &e))?;
        let rows = answer.into_rows_result().map_err(|e| error::damaged(DOING, e))?;
        if let Some(row) = rows.maybe_first_row::<(String, String)>().map_err(|e| error::damaged(DOING, e))? {
            known.insert(number, row);
        }
    }
    Ok(Some(known))
}

/// The migration that a newer release would have first, and that this one could not work with.
fn next_number() -> i32 {
    let numbers = MIGRATIONS.iter().map(|(number, ..)| *number);
    numbers.filter(|number| *number < FIRST_ADDITION).max().map_or(1, |last| last + 1)
}

/// A change of the schema, on all servers when it returns.
async fn change(session: &Session, statement: &str) -> Result<(), StoreError> {
    let first = statement.lines().next().unwrap_or(statement);
    session.query_unpaged(statement, ()).await.map(|_| ()).map_err(|e| error::unavailable(&format!("'{first}'"), &e))
}
