//! The statements: migrations as this release has them, and what comes before all of them.

use crate::cql::{CqlOptions, dialect::Dialect};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Migrations from this number on only add tables. A release that does not know one passes over it, so nodes of an earlier release can run
/// beside those that use the tables, and an upgrade can be taken back.
pub const FIRST_ADDITION: i32 = 1001;

/// Number, name and text of each, in order.
pub const MIGRATIONS: [(i32, &str, &str); 6] = [
    (1, "ownership", include_str!("../../../../schema/cql/0001_ownership.cql")),
    (2, "journal", include_str!("../../../../schema/cql/0002_journal.cql")),
    (3, "history", include_str!("../../../../schema/cql/0003_history.cql")),
    (4, "packs", include_str!("../../../../schema/cql/0004_packs.cql")),
    (FIRST_ADDITION, "audit", include_str!("../../../../schema/cql/1001_audit.cql")),
    (1002, "definitions", include_str!("../../../../schema/cql/1002_definitions.cql")),
];

/// Options of tables whose rows go by their TTL: a window of a day at once, when all of it is over.
const HISTORY: &str = "compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', \
    'compaction_window_size': 1} AND gc_grace_seconds = 10800";

/// The statements of a migration: without comments, filled in.
pub fn statements(text: &str, options: &CqlOptions) -> Vec<String> {
    let code: String = text.lines().map(|line| line.split("--").next().unwrap_or(line).trim_end()).fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    );
    let filled = code
        .replace("{keyspace}", &options.keyspace)
        .replace("{logs}", &options.logs_keyspace())
        .replace("{history}", HISTORY);
    filled.split(';').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

/// Stands for the statements of a migration, whatever its comments and its keyspace are.
pub fn checksum(text: &str) -> String {
    let code = text.lines().map(|line| line.split("--").next().unwrap_or(line));
    let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
    hex::encode(&Sha256::digest(words.join(" "))[..8])
}

/// What comes before all migrations: the keyspaces, the lock, and what was applied. The tables' ids follow from their names, so that two
/// nodes that make them at once make the same ones.
pub fn foundation(options: &CqlOptions, dialect: Dialect) -> Vec<String> {
    let (keyspace, factor) = (&options.keyspace, options.replication);
    let replication = format!("{{'class': 'NetworkTopologyStrategy', '{}': {factor}}}", options.data_center);
    let suffix = dialect.keyspace_suffix();
    let mut all: Vec<String> = [keyspace.clone(), options.logs_keyspace()]
        .iter()
        .map(|name| format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}{suffix}"))
        .collect();
    let tables = [
        ("schema_lock", "name text PRIMARY KEY, owner text"),
        ("schema_versions", "number int PRIMARY KEY, name text, checksum text, applied_ms bigint"),
    ];
    for (table, columns) in tables {
        let id = table_id(keyspace, table);
        all.push(format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({columns}) WITH id = {id}"));
    }
    all
}

/// A UUID of version 5 in form, from the names.
fn table_id(keyspace: &str, table: &str) -> String {
    let mut hash: [u8; 32] = Sha256::digest(format!("{keyspace}.{table}")).into();
    hash[6] = hash[6] & 0x0f | 0x50;
    hash[8] = hash[8] & 0x3f | 0x80;
    let hex = hex::encode(&hash[..16]);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// All of it as a script for a CQL shell, for Cassandra.
pub fn script(options: &CqlOptions) -> String {
    let mut all = String::new();
    for statement in foundation(options, Dialect::Cassandra) {
        let _ = writeln!(all, "{statement};\n");
    }
    for (number, name, text) in MIGRATIONS {
        let _ = writeln!(all, "-- {number:04} {name}\n");
        for statement in statements(text, options) {
            let _ = writeln!(all, "{statement};\n");
        }
    }
    all
}
