//! The one place that knows whether a server is ScyllaDB or Apache Cassandra. Statements are the same for both; these differ:
//!
//! - A keyspace of ScyllaDB may be split into tablets, on which LWTs are not allowed by all of its releases: they are switched off when it is made.
//! - Cassandra tells how it syncs its commit log; ScyllaDB is asked for nothing, as its nodes keep that in a file.
//! - Answers to LWTs that were not applied carry different columns: nobody reads more than "applied" (`connection.rs`).

use scylla::client::session::Session;

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Cassandra,
    Scylla,
}

/// By a table that only ScyllaDB has.
pub async fn dialect(session: &Session) -> Dialect {
    let own = "SELECT key FROM system.scylla_local LIMIT 1";
    if session.query_unpaged(own, ()).await.is_ok() { Dialect::Scylla } else { Dialect::Cassandra }
}

impl Dialect {
    /// What follows the replication of a new keyspace.
    pub fn keyspace_suffix(self) -> &'static str {
        match self {
            Self::Cassandra => "",
            Self::Scylla => " AND tablets = {'enabled': false}",
        }
    }
}

/// What an operator should know of the server, one sentence each.
pub async fn warnings(session: &Session) -> Vec<String> {
    let asked = "SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'";
    // Where it cannot be read there is nothing to say.
    let Ok(answer) = session.query_unpaged(asked, ()).await else { return Vec::new() };
    let value = answer.into_rows_result().ok().and_then(|rows| rows.maybe_first_row::<(String,)>().ok().flatten());
    match value {
        Some((value,)) if value == "periodic" => vec![
            "the CQL servers sync their commit log periodically: what they acknowledged in the last seconds is lost when a majority of \
             them loses power at once. Set commitlog_sync: batch or group in cassandra.yaml"
                .to_owned(),
        ],
        Some(_) | None => Vec::new(),
    }
}
