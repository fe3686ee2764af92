//! Figures, not checks: `make bench-cql`. One server and one client share the machine, so they are lower bounds.

use super::{open, options, runtime, server::Server};
use crate::{
    cql::CqlStore,
    samples::{at, fired, scheduled},
};
use campanile_core::ownership::{
    rows::{Nonce, SessionRow, SessionState},
    store::{Statement, StoreAnswer},
};
use campanile_ports::{Leases, Row, SnapshotPart, Snapshots, ViewBatch, Views};
use campanile_schema::{
    frame,
    ids::{SLOTS, SessionId, ShardId},
    record::RunState,
};
use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const LENGTH: Duration = Duration::from_secs(8);

fn view(round: u64, each: u64) -> ViewBatch {
    let now_ms = 1_790_000_000_000;
    let mut rows = Vec::new();
    for shard in 0..256 {
        for n in 0..each {
            let id = shard + SLOTS * (9_000_000 + round * each + n);
            rows.push((round * 1_000 + n, Row::Run(scheduled(id, id, RunState::Success, now_ms).into())));
            rows.push((round * 1_000 + n, Row::Ledger(fired(id, id, now_ms - 1_000, now_ms))));
        }
    }
    ViewBatch { rows, applied: (0..256).map(|shard| (ShardId(shard), round)).collect(), position: at(1, round) }
}

async fn views(store: &Arc<CqlStore>, each: u64, rounds: &mut u64) -> u64 {
    let (begin, before, written, mut triggers) = (Instant::now(), store.requests(), store.written_rows(), 0);
    while begin.elapsed() < LENGTH {
        *rounds += 1;
        store.apply(view(*rounds, each)).await.unwrap();
        triggers += 256 * each;
    }
    let (seconds, requests) = (begin.elapsed().as_secs_f64(), store.requests() - before);
    let rows = store.written_rows() - written;
    println!(
        "views, {each} a shard and apply: {:.0} triggers/s, {:.0} rows/s, {:.2} requests a trigger",
        triggers as f64 / seconds,
        rows as f64 / seconds,
        requests as f64 / triggers as f64
    );
    triggers
}

/// Files of rows of a table.
fn table_bytes(keyspace: &Path, table: &str) -> u64 {
    let tables = fs::read_dir(keyspace).unwrap().map(|entry| entry.unwrap());
    let ours = tables.filter(|dir| dir.file_name().to_string_lossy().starts_with(&format!("{table}-")));
    let files = ours.flat_map(|dir| fs::read_dir(dir.path()).unwrap()).map(|file| file.unwrap());
    let rows = files.filter(|file| file.file_name().to_string_lossy().ends_with("-Data.db"));
    rows.map(|file| file.metadata().unwrap().len()).sum()
}

/// Appends `callers` rows at a time.
async fn lanes(store: &Arc<CqlStore>, session: SessionId, callers: u64, bytes: usize) {
    let begin = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|lane| {
            let store = store.clone();
            tokio::spawn(async move {
                let (mut seq, batch) = (0, vec![7; bytes].into());
                while begin.elapsed() < LENGTH {
                    seq += 1;
                    let append = Statement::Append { lane: lane as u16, seq, batch: Arc::clone(&batch) };
                    assert_eq!(store.execute(session, append).await, StoreAnswer::Done);
                }
                seq
            })
        })
        .collect();
    let mut rows = 0;
    for task in tasks {
        rows += task.await.unwrap();
    }
    println!(
        "lanes, {callers} at a time of {} KiB: {:.0} rows/s",
        bytes >> 10,
        rows as f64 / begin.elapsed().as_secs_f64()
    );
}

/// Heartbeats of one session, one after the other.
async fn heartbeats(store: &Arc<CqlStore>, session: SessionId) {
    let (begin, mut count, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while begin.elapsed() < LENGTH {
        let sent = Instant::now();
        count += 1;
        let row = row(session, count + 1);
        assert_eq!(
            store.execute(session, Statement::PutSession { session, expected: Some(count), row }).await,
            StoreAnswer::Done
        );
        slowest = slowest.max(sent.elapsed());
    }
    println!("heartbeats: {:.1} ms each, {slowest:.1?} at most", begin.elapsed().as_secs_f64() * 1e3 / count as f64);
}

/// All shards claimed at once by one node.
async fn claims(store: &Arc<CqlStore>, session: SessionId) {
    let StoreAnswer::Shards(rows) = store.execute(session, Statement::ReadShards).await else { panic!("no rows") };
    let begin = Instant::now();
    let claims: Vec<_> = rows
        .into_iter()
        .map(|(shard, mut row)| {
            let expected = row.version;
            row.version += 1;
            row.owner = Some(session);
            let store = store.clone();
            tokio::spawn(async move { store.execute(session, Statement::PutShard { shard, expected, row }).await })
        })
        .collect();
    for claim in claims {
        assert_eq!(claim.await.unwrap(), StoreAnswer::Done);
    }
    println!("256 shards claimed in {:.2?}", begin.elapsed());
    let begin = Instant::now();
    for _ in 0..20 {
        store.execute(session, Statement::ReadShards).await;
    }
    println!("all shards read in {:.1?}", begin.elapsed() / 20);
}

async fn snapshots(store: &Arc<CqlStore>) {
    let chunks = vec![vec![3; 64 << 10]; 128];
    let begin = Instant::now();
    let part = store.write_part(ShardId(1), 1, SnapshotPart::Definitions, chunks).await.unwrap();
    let written = begin.elapsed();
    store.read_part(ShardId(1), part).await.unwrap();
    println!("8 MiB of a snapshot: written in {written:.2?}, read in {:.2?}", begin.elapsed() - written);
}

fn row(session: SessionId, version: u64) -> SessionRow {
    SessionRow {
        version,
        nonce: Nonce { session, count: version },
        lease_ms: 2_500,
        window: 64,
        state: SessionState::Active,
        durable: vec![version; 4],
        sealed: None,
    }
}

#[test]
#[ignore = "figures: make bench-cql"]
fn bench_on_one_server() {
    let rows = view(1, 1).rows;
    for (_, row) in &rows[..2] {
        let bytes = match row {
            Row::Run(record) | Row::Reopened(record) | Row::DeadLetterDiscarded(record) => frame::encode(record).len(),
            Row::Ledger(row) => frame::encode(row).len(),
            Row::JobDeleted(_) | Row::Audited(_) | Row::Defined(_) => 0,
        };
        println!("{bytes} bytes: {row:?}");
    }
    let mut server = Server::start(1);
    let store = open(options(&server, "bench"));
    let triggers = runtime().block_on(async move {
        let session = store.next_session().await.unwrap();
        let insert = Statement::PutSession { session, expected: None, row: row(session, 1) };
        assert_eq!(store.execute(session, insert).await, StoreAnswer::Done);
        heartbeats(&store, session).await;
        claims(&store, session).await;
        snapshots(&store).await;
        lanes(&store, session, 4, 16 << 10).await;
        lanes(&store, session, 64, 16 << 10).await;
        let mut rounds = 0;
        let mut triggers = 0;
        for each in [1, 2, 5, 20] {
            triggers += views(&store, each, &mut rounds).await;
        }
        triggers
    });
    // A server that starts again writes what its commit log holds into the tables' files.
    server.tell("kill 1", "killed 1");
    server.tell("start 1", "ready 1");
    for table in ["run_packs", "fires"] {
        let bytes = table_bytes(&server.dir.join("node1/data/bench"), table);
        println!("{table}: {:.0} bytes a trigger on disk, compressed", bytes as f64 / triggers as f64);
    }
}
