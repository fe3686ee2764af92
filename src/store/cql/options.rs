//! What a node must know of its store, and what of it is refused before anything is asked of a server.

use campanile_ports::StoreError;
use std::{path::Path, time::Duration};

/// Longest name of a keyspace, characters; room for the suffix of the logs' keyspace is left below the server's 48.
const KEYSPACE_CHARS: usize = 40;

/// TLS to the servers. Empty = not set; files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CqlTls {
    /// CAs that are believed, and no others; empty: the machine's.
    pub ca_file: String,
    /// What each server's certificate must name; empty: the IP address at which the server is reached.
    pub name: String,
    /// This node's own, for servers that ask for one.
    pub cert_file: String,
    pub key_file: String,
}

/// Settings of the store, from `[cql]` and from what is the same on every node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CqlOptions {
    /// `host:port` of some servers; the others are found through them.
    pub contact_points: Vec<String>,
    /// The only one whose replicas are asked. A cluster keeps it for ever.
    pub data_center: String,
    pub keyspace: String,
    /// Replicas of every row in the data centre.
    pub replication: u32,
    /// Empty = no password is asked for.
    pub user: String,
    /// File with the user's password and nothing else.
    pub password_file: String,
    /// None: everything travels in clear.
    pub tls: Option<CqlTls>,
    /// Requests under way for the read model and snapshots; those of ownership and journal have bounds of their own.
    pub max_in_flight: usize,
    pub request_timeout: Duration,
    /// Days that history is kept, as TTL of its rows; 0 = for ever.
    pub retention_days: u32,
    /// Days that the audit trail is kept, in the same way.
    pub audit_days: u32,
    /// Name of the cluster: nodes of another one are refused.
    pub cluster: String,
    /// Shards of the cluster: nodes with another number are refused.
    pub shards: u16,
    /// Name of this node, for people who read the sessions.
    pub node: String,
}

impl CqlOptions {
    /// The keyspace of the logs of attempts.
    pub fn logs_keyspace(&self) -> String {
        format!("{}_logs", self.keyspace)
    }

    /// Seconds; 0 = for ever.
    pub fn history_ttl_s(&self) -> i32 {
        ttl_s(self.retention_days)
    }

    /// Seconds; 0 = for ever.
    pub fn audit_ttl_s(&self) -> i32 {
        ttl_s(self.audit_days)
    }

    /// Names go into statements as they stand, so they are held to what needs no quotes.
    pub fn check(&self) -> Result<(), StoreError> {
        let refuse = |why: String| Err(StoreError::Refused(why));
        if self.contact_points.is_empty() {
            return refuse("[cql] contact_points is empty: name at least one server, host:port".to_owned());
        }
        if !is_keyspace(&self.keyspace) {
            let name = &self.keyspace;
            return refuse(format!(
                "[cql] keyspace '{name}' is not a name: a letter, then letters, digits, '_', all small, at most {KEYSPACE_CHARS}"
            ));
        }
        if !is_data_center(&self.data_center) {
            return refuse(format!("[cql] data_center '{}' is not a name", self.data_center));
        }
        if self.retention_days > RETENTION_DAYS_MAX {
            return refuse(format!(
                "[history] retention_days is {}: a CQL server keeps rows with a TTL at most {RETENTION_DAYS_MAX} days; 0 keeps them for ever",
                self.retention_days
            ));
        }
        Ok(())
    }

    /// The user's password. None: nobody is asked for one.
    pub(super) fn password(&self) -> Result<Option<String>, StoreError> {
        if self.user.is_empty() {
            return Ok(None);
        }
        let file = Path::new(&self.password_file);
        let password = password_in(file)
            .map_err(|error| StoreError::Refused(format!("[cql] password_file {}: {error}", file.display())))?;
        Ok(Some(password))
    }
}

fn ttl_s(days: u32) -> i32 {
    i32::try_from(u64::from(days) * 24 * 3_600).unwrap_or(i32::MAX)
}

/// Without what an editor puts before and behind the line.
fn password_in(file: &Path) -> std::io::Result<String> {
    let text = campanile_security::text::read(file, false)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Ten years: servers of today refuse rows that expire after January 2038.
pub const RETENTION_DAYS_MAX: u32 = 3_650;

/// Whether a keyspace may have the name.
pub fn is_keyspace(name: &str) -> bool {
    name.len() <= KEYSPACE_CHARS
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether a data centre may have the name.
pub fn is_data_center(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_password_is_read_as_an_editor_of_windows_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        std::fs::write(&file, "\u{feff} pass word \r\n").unwrap();
        assert_eq!(password_in(&file).unwrap(), " pass word ");
    }
}
