//! Every statement of a running node, prepared once. The whole partition key is bound in each of them.

use super::error;
use campanile_ports::StoreError;
use scylla::{
    client::session::Session,
    statement::{Consistency, prepared::PreparedStatement},
};

/// The names that statements are filled with.
pub struct Keyspaces {
    pub main: String,
    pub logs: String,
}

impl Keyspaces {
    pub fn fill(&self, text: &str) -> String {
        text.replace("{keyspace}", &self.main).replace("{logs}", &self.logs)
    }
}

/// Rows that one page of a lane or of a part's chunks has at most; each may be large.
const PAGE_ROWS: i32 = 64;

/// How a statement is executed.
enum How {
    /// At LOCAL_QUORUM; an LWT's condition at LOCAL_SERIAL.
    Quorum,
    /// A read that sees every LWT that was answered, and ends those that were not.
    Serial,
    /// At LOCAL_QUORUM, page by page.
    Paged,
}

async fn prepare(
    session: &Session,
    keyspaces: &Keyspaces,
    how: How,
    text: &str,
) -> Result<PreparedStatement, StoreError> {
    let text = keyspaces.fill(text);
    let prepared = session.prepare(text.as_str()).await;
    let mut statement =
        prepared.map_err(|e| StoreError::Unavailable(format!("the statement '{text}' cannot be prepared: {e}")))?;
    match how {
        How::Quorum => {}
        How::Serial => statement.set_consistency(Consistency::LocalSerial),
        How::Paged => statement.set_page_size(PAGE_ROWS),
    }
    if !statement.is_token_aware() {
        return Err(error::damaged("a statement", format!("'{text}' does not bind the whole partition key")));
    }
    Ok(statement)
}

macro_rules! statements {
    ($($name:ident: $how:ident $text:literal;)+) => {
        pub struct Statements { $(pub $name: PreparedStatement),+ }
        impl Statements {
            pub async fn prepare(session: &Session, keyspaces: &Keyspaces) -> Result<Self, StoreError> {
                Ok(Self { $($name: prepare(session, keyspaces, How::$how, $text).await?),+ })
            }
        }
    };
}

statements! {
    insert_session: Quorum "INSERT INTO {keyspace}.sessions (session, version, nonce_session, nonce_count, node, state, lease_ms, window, durable, sealed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS";
    update_session: Quorum "UPDATE {keyspace}.sessions SET version = ?, nonce_session = ?, nonce_count = ?, state = ?, lease_ms = ?, window = ?, durable = ?, sealed = ? WHERE session = ? IF version = ?";
    delete_session: Quorum "DELETE FROM {keyspace}.sessions WHERE session = ? IF version = ?";
    read_session: Serial "SELECT version, nonce_session, nonce_count, state, lease_ms, window, durable, sealed FROM {keyspace}.sessions WHERE session = ?";

    insert_shard: Quorum "INSERT INTO {keyspace}.shards (bucket, shard, version, nonce_session, nonce_count, owner, epoch, spans, snapshot_epoch, snapshot_number, snapshot_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS";
    update_shard: Quorum "UPDATE {keyspace}.shards SET version = ?, nonce_session = ?, nonce_count = ?, owner = ?, epoch = ?, spans = ?, snapshot_epoch = ?, snapshot_number = ?, snapshot_seq = ? WHERE bucket = ? AND shard = ? IF version = ?";
    read_shard: Serial "SELECT shard, version, nonce_session, nonce_count, owner, epoch, spans, snapshot_epoch, snapshot_number, snapshot_seq FROM {keyspace}.shards WHERE bucket = ? AND shard = ?";
    read_shards: Serial "SELECT shard, version, nonce_session, nonce_count, owner, epoch, spans, snapshot_epoch, snapshot_number, snapshot_seq FROM {keyspace}.shards WHERE bucket = ?";

    read_formats: Serial "SELECT version, event_format, wire_format FROM {keyspace}.format WHERE name = ?";
    raise_formats: Quorum "UPDATE {keyspace}.format SET version = ?, event_format = ?, wire_format = ? WHERE name = ? IF version = ?";
    read_number: Serial "SELECT last FROM {keyspace}.session_numbers WHERE name = ?";
    first_number: Quorum "INSERT INTO {keyspace}.session_numbers (name, last) VALUES (?, ?) IF NOT EXISTS";
    next_number: Quorum "UPDATE {keyspace}.session_numbers SET last = ? WHERE name = ? IF last = ?";

    append: Quorum "INSERT INTO {keyspace}.lanes (session, lane, bucket, seq, frames) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP 1";
    read_lane: Paged "SELECT seq, frames FROM {keyspace}.lanes WHERE session = ? AND lane = ? AND bucket = ? AND seq > ?";
    any_of_bucket: Quorum "SELECT seq FROM {keyspace}.lanes WHERE session = ? AND lane = ? AND bucket = ? LIMIT 1";
    delete_bucket: Quorum "DELETE FROM {keyspace}.lanes USING TIMESTAMP 2 WHERE session = ? AND lane = ? AND bucket = ?";
    read_deleted: Quorum "SELECT below FROM {keyspace}.lanes_deleted WHERE session = ? AND lane = ?";
    put_deleted: Quorum "INSERT INTO {keyspace}.lanes_deleted (session, lane, below) VALUES (?, ?, ?)";

    put_part: Quorum "INSERT INTO {keyspace}.snapshot_parts (shard, number, part, chunks) VALUES (?, ?, ?, ?)";
    read_parts: Quorum "SELECT number, part, chunks FROM {keyspace}.snapshot_parts WHERE shard = ? AND number <= ?";
    delete_part: Quorum "DELETE FROM {keyspace}.snapshot_parts WHERE shard = ? AND number = ? AND part = ?";
    put_chunk: Quorum "INSERT INTO {keyspace}.snapshot_chunks (shard, number, part, bucket, chunk, bytes) VALUES (?, ?, ?, ?, ?, ?)";
    read_chunks: Paged "SELECT chunk, bytes FROM {keyspace}.snapshot_chunks WHERE shard = ? AND number = ? AND part = ? AND bucket = ?";
    delete_chunks: Quorum "DELETE FROM {keyspace}.snapshot_chunks WHERE shard = ? AND number = ? AND part = ? AND bucket = ?";
    put_manifest: Quorum "INSERT INTO {keyspace}.manifests (shard, number, epoch, shard_seq, replay_session, replay_lane, replay_seq, last_hlc, parts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    read_manifest: Quorum "SELECT number, epoch, shard_seq, replay_session, replay_lane, replay_seq, last_hlc, parts FROM {keyspace}.manifests WHERE shard = ? AND number = ?";
    delete_manifests: Quorum "DELETE FROM {keyspace}.manifests WHERE shard = ? AND number < ?";

    put_run: Quorum "INSERT INTO {keyspace}.runs (shard, range, run, record) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_pack: Quorum "INSERT INTO {keyspace}.run_packs (shard, range, newest, sum, runs) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_fire: Quorum "INSERT INTO {keyspace}.fires (shards, bucket, job, to_ms, from_ms, row) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_job_run: Quorum "INSERT INTO {keyspace}.job_runs (shard, bucket, job, run) VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_ledger: Quorum "INSERT INTO {keyspace}.ledger (shard, bucket, job, to_ms, from_ms, row) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_tenant_run: Quorum "INSERT INTO {keyspace}.tenant_runs (tenant, bucket, list, ended_ms, run) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_key: Quorum "INSERT INTO {keyspace}.run_keys (job, key, run) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_definition: Quorum "INSERT INTO {keyspace}.definitions (shard, range, job, version, row) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
    delete_definitions: Quorum "DELETE FROM {keyspace}.definitions USING TIMESTAMP ? WHERE shard = ? AND range = ? AND job = ? AND version <= ?";
    put_audit: Quorum "INSERT INTO {keyspace}.audit (tenant, bucket, at_ms, id, record) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    put_audit_bucket: Quorum "INSERT INTO {keyspace}.audit_buckets (tenant, bucket) VALUES (?, ?) USING TTL ?";
    put_applied: Quorum "INSERT INTO {keyspace}.applied (bucket, shard, seq) VALUES (?, ?, ?) USING TIMESTAMP ?";
    put_history_bucket: Quorum "INSERT INTO {keyspace}.history_buckets (shard, bucket) VALUES (?, ?) USING TTL ?";
    put_fire_bucket: Quorum "INSERT INTO {keyspace}.fire_buckets (shards, bucket) VALUES (?, ?) USING TTL ?";
    put_tenant_bucket: Quorum "INSERT INTO {keyspace}.tenant_buckets (tenant, bucket) VALUES (?, ?) USING TTL ?";

    read_applied: Quorum "SELECT seq FROM {keyspace}.applied WHERE bucket = ? AND shard = ?";
    read_runs: Quorum "SELECT record FROM {keyspace}.runs WHERE shard = ? AND range = ? AND run IN ?";
    read_packs: Quorum "SELECT runs FROM {keyspace}.run_packs WHERE shard = ? AND range = ?";
    read_fires: Quorum "SELECT row FROM {keyspace}.fires WHERE shards = ? AND bucket = ? AND job = ? AND to_ms > ? ORDER BY job DESC, to_ms ASC, from_ms ASC LIMIT ?";
    read_newest_fires: Quorum "SELECT to_ms, row FROM {keyspace}.fires WHERE shards = ? AND bucket = ? AND job = ? AND to_ms < ? LIMIT ?";
    read_job_runs: Quorum "SELECT run FROM {keyspace}.job_runs WHERE shard = ? AND bucket = ? AND job = ? AND run < ? LIMIT ?";
    read_ledger: Quorum "SELECT row FROM {keyspace}.ledger WHERE shard = ? AND bucket = ? AND job = ? AND to_ms > ? LIMIT ?";
    read_tenant_runs: Quorum "SELECT ended_ms, run FROM {keyspace}.tenant_runs WHERE tenant = ? AND bucket = ? AND list = ? AND (ended_ms, run) < (?, ?) LIMIT ?";
    read_key: Quorum "SELECT run FROM {keyspace}.run_keys WHERE job = ? AND key = ?";
    read_definitions: Quorum "SELECT row FROM {keyspace}.definitions WHERE shard = ? AND range = ? AND job = ? AND version < ? LIMIT ?";
    read_audit: Quorum "SELECT at_ms, id, record FROM {keyspace}.audit WHERE tenant = ? AND bucket = ? AND (at_ms, id) < (?, ?) LIMIT ?";
    read_audit_buckets: Quorum "SELECT bucket FROM {keyspace}.audit_buckets WHERE tenant = ?";
    read_history_buckets: Quorum "SELECT bucket FROM {keyspace}.history_buckets WHERE shard = ?";
    read_fire_buckets: Quorum "SELECT bucket FROM {keyspace}.fire_buckets WHERE shards = ?";
    read_tenant_buckets: Quorum "SELECT bucket FROM {keyspace}.tenant_buckets WHERE tenant = ?";

    put_log: Quorum "INSERT INTO {logs}.chunks (run, attempt, begins, chunk) VALUES (?, ?, ?, ?) USING TTL ?";
    log_end: Quorum "SELECT begins, chunk FROM {logs}.chunks WHERE run = ? AND attempt = ? ORDER BY begins DESC LIMIT 1";
    log_at: Quorum "SELECT begins, chunk FROM {logs}.chunks WHERE run = ? AND attempt = ? AND begins <= ? ORDER BY begins DESC LIMIT 1";
    log_after: Paged "SELECT begins, chunk FROM {logs}.chunks WHERE run = ? AND attempt = ? AND begins > ? AND begins < ?";
}
