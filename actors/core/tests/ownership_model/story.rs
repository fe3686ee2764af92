//! Short words for statements and answers.

use campanile_core::ownership::{
    rows::{SessionRow, ShardRow},
    store::{Statement, StoreAnswer},
};

fn session_row(row: &SessionRow) -> String {
    let SessionRow { version, state, durable, sealed, .. } = row;
    format!("v{version} {state:?} durable {durable:?} sealed {sealed:?}")
}

fn shard_row(row: &ShardRow) -> String {
    let owner = row.owner.map_or("-".to_owned(), |owner| owner.to_string());
    let spans: Vec<_> = row
        .spans
        .iter()
        .map(|s| format!("{}/{}:{}..{}", s.session, s.lane, s.from, s.to.map_or(String::new(), |to| to.to_string())))
        .collect();
    let snapshot = row.snapshot.map_or(0, |pointer| pointer.seq);
    format!("v{} owner {owner} epoch {} spans {spans:?} snapshot {snapshot}", row.version, row.epoch)
}

pub fn statement(statement: &Statement) -> String {
    match statement {
        Statement::PutSession { session, expected, row } => {
            format!("put session {session} if {expected:?}: {}", session_row(row))
        }
        Statement::DropSession { session, .. } => format!("drop session {session}"),
        Statement::PutShard { shard, expected, row } => format!("put shard {shard} if {expected}: {}", shard_row(row)),
        Statement::ReadSession { session } => format!("read session {session}"),
        Statement::ReadShard { shard } => format!("read shard {shard}"),
        Statement::ReadShards => "read all shards".to_owned(),
        Statement::Append { lane, seq, .. } => format!("append lane {lane} row {seq}"),
        Statement::Rewrite { session, lane, rows } => {
            let rows: Vec<u64> = rows.iter().map(|(seq, _)| *seq).collect();
            format!("rewrite session {session} lane {lane} rows {rows:?}")
        }
        Statement::ReadLane { session, lane, after } => format!("read session {session} lane {lane} after {after}"),
        Statement::DeleteRows { session, lane, upto } => format!("delete session {session} lane {lane} upto {upto}"),
    }
}

pub fn answer(answer: &StoreAnswer) -> String {
    match answer {
        StoreAnswer::Done => "done".to_owned(),
        StoreAnswer::Session(None) => "no session".to_owned(),
        StoreAnswer::Session(Some(row)) => session_row(row),
        StoreAnswer::Shard(row) => shard_row(row),
        StoreAnswer::Shards(_) => "all shards".to_owned(),
        StoreAnswer::Lane(rows) => format!("rows up to {:?}", rows.last().map(|(seq, _)| *seq)),
        StoreAnswer::Unknown => "a timeout".to_owned(),
    }
}
