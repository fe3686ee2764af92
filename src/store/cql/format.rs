//! What the cluster is. Written once with the schema, and read by every node before it does anything; its formats are raised when all
//! nodes know newer ones.

use super::{
    connection::{Connection, RequestKind, is_applied},
    error,
    options::CqlOptions,
};
use campanile_ports::{StoreError, release};
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow, Formats, WIRE_FORMAT},
    ids::ClusterId,
};
use scylla::{
    client::session::Session,
    statement::{Consistency, Statement},
};

const NAME: &str = "cluster";
/// Ids are below 2^53, so that JSON carries them.
const ID_BITS: u32 = 53;

/// `cluster, cluster_id, data_center, shards, event_format, wire_format, created_ms`.
type Columns = (String, i64, String, i32, i32, i32, i64);

/// Writes the row of a new cluster; the row of an old one stays as it is.
pub async fn create(session: &Session, options: &CqlOptions, now_ms: i64) -> Result<(), StoreError> {
    const DOING: &str = "the cluster's format is written";
    let id =
        getrandom::u64().map_err(|e| StoreError::Unavailable(format!("no randomness: {e}")))? >> (u64::BITS - ID_BITS);
    let text = format!(
        "INSERT INTO {}.format (name, version, cluster, cluster_id, data_center, shards, event_format, wire_format, created_ms) \
         VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS",
        options.keyspace
    );
    let formats = (EVENT_FORMAT.cast_signed(), WIRE_FORMAT.cast_signed());
    let values = (
        NAME,
        &options.cluster,
        id.cast_signed(),
        &options.data_center,
        i32::from(options.shards),
        formats.0,
        formats.1,
        now_ms,
    );
    let answer = session.query_unpaged(text, values).await.map_err(|e| error::written(DOING, &e))?;
    is_applied(answer).map(|_| ()).ok_or_else(|| error::damaged(DOING, "no answer to an LWT"))
}

/// Reads the row, and refuses what this node is not configured for.
pub async fn read(session: &Session, options: &CqlOptions) -> Result<FormatRow, StoreError> {
    const DOING: &str = "the cluster's format is read";
    let keyspace = &options.keyspace;
    let mut statement = Statement::new(format!(
        "SELECT cluster, cluster_id, data_center, shards, event_format, wire_format, created_ms FROM {keyspace}.format WHERE name = ?"
    ));
    statement.set_consistency(Consistency::LocalSerial);
    let answer = session.query_unpaged(statement, (NAME,)).await.map_err(|e| error::unavailable(DOING, &e))?;
    let rows = answer.into_rows_result().map_err(|e| error::damaged(DOING, e))?;
    let row = rows.maybe_first_row::<Columns>().map_err(|e| error::damaged(DOING, e))?;
    let Some((cluster, id, data_center, shards, event, wire, created_ms)) = row else {
        return Err(StoreError::Refused(format!(
            "keyspace {keyspace} does not say which cluster it is of: run `campanile schema apply`"
        )));
    };
    let refuse = |what: &str, theirs: &dyn std::fmt::Display, ours: &dyn std::fmt::Display| {
        Err(StoreError::Refused(format!(
            "keyspace {keyspace} is of a cluster whose {what} is {theirs}; this node is configured for {ours}"
        )))
    };
    if cluster != options.cluster {
        return refuse("name", &cluster, &options.cluster);
    }
    if data_center != options.data_center {
        return refuse("data centre ([cql] data_center)", &data_center, &options.data_center);
    }
    if shards != i32::from(options.shards) {
        return refuse("number of shards ([node] shards)", &shards, &options.shards);
    }
    let format = FormatRow {
        event_format: event.cast_unsigned(),
        wire_format: wire.cast_unsigned(),
        cluster_id: ClusterId(id.cast_unsigned()),
        shards: options.shards,
        created_ms,
    };
    release::formats().check(format.formats()).map_err(|e| StoreError::Refused(format!("keyspace {keyspace}: {e}")))?;
    Ok(format)
}

/// Formats that may be written, and the row's version.
async fn standing(link: &Connection) -> Result<(i64, Formats), StoreError> {
    const DOING: &str = "the cluster's formats are read";
    let found = link.rows(RequestKind::Lease, &link.statements.read_formats, (NAME,), DOING).await?;
    let (version, event, wire) = found.first_row::<(i64, i32, i32)>().map_err(|e| error::damaged(DOING, e))?;
    Ok((version, Formats { event: event.cast_unsigned(), wire: wire.cast_unsigned() }))
}

pub async fn stand(link: &Connection) -> Result<Formats, StoreError> {
    Ok(standing(link).await?.1)
}

/// Raises them, never lowers one; what stands afterwards, whoever raised it.
pub async fn raise(link: &Connection, to: Formats) -> Result<Formats, StoreError> {
    let (version, stands) = standing(link).await?;
    let raised = stands.newest(to);
    if raised != stands {
        let formats = (raised.event.cast_signed(), raised.wire.cast_signed());
        // Another node may be first, and the answer may be lost: the row tells.
        link.lwt(&link.statements.raise_formats, (version + 1, formats.0, formats.1, NAME, version)).await;
    }
    stand(link).await
}
