//! The right to change the schema, and the LWTs that it and the versions are written with.

use crate::cql::{connection::is_applied, error};
use campanile_ports::StoreError;
use scylla::{client::session::Session, serialize::row::SerializeRow};
use std::time::{Duration, Instant};

/// The lock of a node that died ends after this long, by the servers' clocks.
const LOCK_S: i32 = 60;
/// Waiting for another node that applies the schema.
const LOCK_WAIT: Duration = Duration::from_secs(90);
const LOCK_POLL: Duration = Duration::from_millis(500);

/// A row with a TTL, so that the servers' clocks end it and nobody's else.
pub struct Lock<'a> {
    pub session: &'a Session,
    pub keyspace: &'a str,
    pub who: &'a str,
}

impl Lock<'_> {
    pub async fn take(&self) -> Result<(), StoreError> {
        let keyspace = self.keyspace;
        let insert = format!(
            "INSERT INTO {keyspace}.schema_lock (name, owner) VALUES ('schema', ?) IF NOT EXISTS USING TTL {LOCK_S}"
        );
        let begin = Instant::now();
        loop {
            if lwt(self.session, &insert, (self.who,)).await? || self.renew().await.is_ok() {
                return Ok(());
            }
            if begin.elapsed() >= LOCK_WAIT {
                return Err(StoreError::Unavailable(format!(
                    "another node has been applying the schema of keyspace {keyspace} for {} s: see its log",
                    LOCK_WAIT.as_secs()
                )));
            }
            tokio::time::sleep(LOCK_POLL).await;
        }
    }

    pub async fn renew(&self) -> Result<(), StoreError> {
        let keyspace = self.keyspace;
        let update = format!(
            "UPDATE {keyspace}.schema_lock USING TTL {LOCK_S} SET owner = ? WHERE name = 'schema' IF owner = ?"
        );
        if lwt(self.session, &update, (self.who, self.who)).await? {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!("another node took the lock of keyspace {keyspace} over: run this again")))
    }

    pub async fn give_back(&self) -> Result<(), StoreError> {
        let keyspace = self.keyspace;
        let delete = format!("DELETE FROM {keyspace}.schema_lock WHERE name = 'schema' IF owner = ?");
        lwt(self.session, &delete, (self.who,)).await.map(|_| ())
    }
}

/// Whether it was applied.
pub async fn lwt(session: &Session, text: &str, values: impl SerializeRow) -> Result<bool, StoreError> {
    const DOING: &str = "the schema's lock and versions are written";
    let answer = session.query_unpaged(text, values).await.map_err(|e| error::written(DOING, &e))?;
    is_applied(answer).ok_or_else(|| error::damaged(DOING, "no answer to an LWT"))
}
