//! What a trigger costs the server by how its rows are laid out: the figures behind docs/adr/0021. Nothing of the store is in it but its samples.
//!
//! `LAYOUT_SECONDS` (12) a layout, `LAYOUT_TRIGGERS` (8) a shard and apply, `JVM` as in `deploy/cassandra/cassandra.sh`.

use super::{options, runtime, server::Server};
use crate::{
    cql::connection,
    samples::{ledger, run},
};
use campanile_schema::{
    frame,
    ids::SLOTS,
    record::{RunRecord, RunState, Source},
};
use futures_util::future::try_join_all;
use scylla::{
    client::session::Session,
    statement::{
        batch::{Batch, BatchStatement, BatchType},
        prepared::PreparedStatement,
    },
    value::CqlValue,
};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const SHARDS: i32 = 256;
/// As far apart as applies are at 5,000 triggers/s, so that the server is as busy as with nodes.
const RATE: u64 = 5_000;

/// Rows of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// A row for the record, for the job's list and for the ledger.
    Three,
    /// Records packed; a row for the list and one for the ledger.
    PackListLedger,
    /// Records packed; a row for the ledger, from which lists follow.
    PackLedger,
    /// The same, a partition of the ledger for four shards.
    PackLedgerOfFour,
    /// The same, packs compressed and small requests of several partitions together: what was built.
    Built,
    /// Records packed; a row for the ledger, and the pack in the ledger's partition.
    PackLedgerTogether,
    /// Records packed; ledger rows without a value.
    PackKeys,
    /// The same with one statement for all of them.
    PackIn,
    /// Records and ledger packed, nothing by job: the bound below which no row can get us.
    Pack,
}

/// Requests under way, as nodes have by default.
const IN_FLIGHT: usize = 64;

type Writes<'a> = Vec<(&'a PreparedStatement, Vec<CqlValue>)>;

impl Rows {
    fn are_of_four(self) -> bool {
        matches!(self, Self::PackLedgerOfFour | Self::Built)
    }
}

/// As `views/write.rs` does it.
fn shared(requests: Vec<Writes<'_>>) -> Vec<Writes<'_>> {
    let bytes = |writes: &Writes<'_>| -> usize {
        let value = |value: &CqlValue| if let CqlValue::Blob(bytes) = value { bytes.len() + 8 } else { 12 };
        writes.iter().flat_map(|(_, values)| values).map(value).sum()
    };
    let mut all: Vec<(usize, usize, Writes<'_>)> = Vec::new();
    for writes in requests {
        let more = bytes(&writes);
        match all.last_mut() {
            Some((size, count, request)) if *size + more <= 4_096 && *count < 10 => {
                (*size, *count) = (*size + more, *count + 1);
                request.extend(writes);
            }
            _ => all.push((more, 1, writes)),
        }
    }
    all.into_iter().map(|(.., request)| request).collect()
}

struct Bench {
    session: Session,
    put_run: PreparedStatement,
    put_list: PreparedStatement,
    put_ledger: PreparedStatement,
    put_key: PreparedStatement,
    put_keys: PreparedStatement,
    put_pack: PreparedStatement,
}

const TABLES: [&str; 6] = [
    "runs (shard int, range bigint, run bigint, record blob, PRIMARY KEY ((shard, range), run))",
    "list (shard int, bucket bigint, job bigint, run bigint, PRIMARY KEY ((shard, bucket), job, run))",
    "ledger (shard int, bucket bigint, job bigint, to_ms bigint, from_ms bigint, row blob, PRIMARY KEY ((shard, bucket), job, to_ms, from_ms))",
    "keys (shard int, bucket bigint, job bigint, to_ms bigint, from_ms bigint, PRIMARY KEY ((shard, bucket), job, to_ms, from_ms))",
    "valued (shard int, bucket bigint, job bigint, to_ms bigint, from_ms bigint, zone text, PRIMARY KEY ((shard, bucket), job, to_ms, from_ms))",
    "packs (shard int, range bigint, pack bigint, records blob, PRIMARY KEY ((shard, range), pack))",
];

impl Bench {
    async fn new(server: &Server) -> Self {
        let session = connection::open(&options(server, "layouts")).await.unwrap();
        let make = "CREATE KEYSPACE layouts WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}";
        session.query_unpaged(make, ()).await.unwrap();
        for table in TABLES {
            let windows = "compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 1}";
            session.query_unpaged(format!("CREATE TABLE layouts.{table} WITH {windows}"), ()).await.unwrap();
        }
        let end = "USING TIMESTAMP ? AND TTL ?";
        let put = async |text: String| session.prepare(text).await.unwrap();
        Self {
            put_run: put(format!("INSERT INTO layouts.runs (shard, range, run, record) VALUES (?, ?, ?, ?) {end}")).await,
            put_list: put(format!("INSERT INTO layouts.list (shard, bucket, job, run) VALUES (?, ?, ?, ?) {end}")).await,
            put_ledger: put(format!("INSERT INTO layouts.ledger (shard, bucket, job, to_ms, from_ms, row) VALUES (?, ?, ?, ?, ?, ?) {end}")).await,
            put_key: put(format!("INSERT INTO layouts.keys (shard, bucket, job, to_ms, from_ms) VALUES (?, ?, ?, ?, ?) {end}")).await,
            put_keys: put("UPDATE layouts.valued USING TIMESTAMP ? AND TTL ? SET zone = ? WHERE shard = ? AND bucket = ? AND (job, to_ms, from_ms) IN ?".to_owned()).await,
            put_pack: put(format!("INSERT INTO layouts.packs (shard, range, pack, records) VALUES (?, ?, ?, ?) {end}")).await,
            session,
        }
    }

    async fn send(
        &self,
        writes: Vec<(&PreparedStatement, Vec<CqlValue>)>,
    ) -> Result<(), scylla::errors::ExecutionError> {
        let (statements, values): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        if let ([statement], [values]) = (statements.as_slice(), values.as_slice()) {
            return self.session.execute_unpaged(statement, values).await.map(|_| ());
        }
        let statements = statements.into_iter().map(|s| BatchStatement::from(s.clone())).collect();
        self.session.batch(&Batch::new_with_statements(BatchType::Unlogged, statements), values).await.map(|_| ())
    }

    /// Requests of one apply.
    async fn apply(&self, rows: Rows, round: u64, each: u64) -> u64 {
        let all: Vec<_> = (0..SHARDS).map(|shard| self.shard(rows, shard, round, each)).collect();
        let of_four = if rows.are_of_four() { 4 } else { 1 };
        let mut requests: Vec<Vec<_>> = all.iter().map(|(pack, _)| pack.clone()).collect();
        requests.extend(all.chunks(of_four).map(|some| some.iter().flat_map(|(_, ledger)| ledger.clone()).collect()));
        requests.retain(|writes| !writes.is_empty());
        if rows == Rows::Built {
            requests = shared(requests);
        }
        let count = requests.len() as u64;
        let turns = Semaphore::new(IN_FLIGHT);
        let sent = requests.into_iter().map(|writes| async {
            let _turn = turns.acquire().await;
            self.send(writes).await
        });
        try_join_all(sent).await.unwrap();
        count
    }

    fn shard(&self, rows: Rows, shard: i32, round: u64, each: u64) -> (Writes<'_>, Writes<'_>) {
        let long = |n: u64| CqlValue::BigInt(n.cast_signed());
        let end = |n: u64| [long(1_790_000_000_000_000 + round * 1_000 + n), CqlValue::Int(2_592_000)];
        let now_ms = (1_790_000_000_000 + round * 400).cast_signed();
        let bucket = CqlValue::BigInt(now_ms / 21_600_000);
        let of = if rows.are_of_four() { shard / 4 } else { shard };
        let (mut first, mut second, mut pack, mut keys) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for n in 0..each {
            // Jobs come again each twenty rounds or so.
            let job = (round % 50 * each + n) * SLOTS + shard.unsigned_abs() as u64;
            let id = (round * each + n) * SLOTS + shard.unsigned_abs() as u64;
            let record = RunRecord {
                key: None,
                source: Source::Schedule,
                logical_ms: Some(now_ms),
                ..run(job, id, RunState::Success, now_ms)
            };
            let (record, row) = (frame::encode(&record), ledger(job, now_ms - 20_000, now_ms));
            let key = |more: Vec<CqlValue>| {
                [vec![CqlValue::Int(of), bucket.clone(), long(job)], more, end(n).to_vec()].concat()
            };
            let interval = [CqlValue::BigInt(row.to_ms), CqlValue::BigInt(row.from_ms)];
            match rows {
                Rows::Three => {
                    let range = long(round * each / 4_096);
                    first.push((
                        &self.put_run,
                        [vec![CqlValue::Int(shard), range, long(id), CqlValue::Blob(record)], end(n).to_vec()].concat(),
                    ));
                }
                Rows::Pack => {
                    pack.extend(record);
                    pack.extend(frame::encode(&row));
                }
                _ => pack.extend(record),
            }
            if matches!(rows, Rows::Three | Rows::PackListLedger) {
                second.push((&self.put_list, key(vec![long(id)])));
            }
            match rows {
                Rows::Three
                | Rows::PackListLedger
                | Rows::PackLedger
                | Rows::PackLedgerOfFour
                | Rows::Built
                | Rows::PackLedgerTogether => {
                    second.push((
                        &self.put_ledger,
                        key([interval.to_vec(), vec![CqlValue::Blob(frame::encode(&row))]].concat()),
                    ));
                }
                Rows::PackKeys => second.push((&self.put_key, key(interval.to_vec()))),
                Rows::PackIn => keys.push(CqlValue::Tuple(
                    [vec![long(job)], interval.to_vec()].concat().into_iter().map(Some).collect(),
                )),
                Rows::Pack => {}
            }
        }
        if !keys.is_empty() {
            let key = [
                end(0).to_vec(),
                vec![CqlValue::Text("2026b".to_owned()), CqlValue::Int(shard), bucket.clone(), CqlValue::List(keys)],
            ];
            second.push((&self.put_keys, key.concat()));
        }
        if rows == Rows::Built {
            pack = lz4_flex::block::compress_prepend_size(&pack);
        }
        if !pack.is_empty() {
            let together = rows == Rows::PackLedgerTogether;
            let range = if together { bucket } else { long(round * each / 64) };
            let values =
                [vec![CqlValue::Int(shard), range, long(round * each), CqlValue::Blob(pack)], end(0).to_vec()].concat();
            if together { &mut second } else { &mut first }.push((&self.put_pack, values));
        }
        (first, second)
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
#[ignore = "figures: make bench-cql"]
fn bench_layouts_of_rows() {
    let (length, each) = (Duration::from_secs(setting("LAYOUT_SECONDS", 12)), setting("LAYOUT_TRIGGERS", 8));
    let server = Server::start(1);
    runtime().block_on(async {
        let bench = Bench::new(&server).await;
        let mut round = 0;
        let pause = Duration::from_micros(SHARDS.unsigned_abs() as u64 * each * 1_000_000 / RATE);
        let all = [
            Rows::Three,
            Rows::PackListLedger,
            Rows::PackLedger,
            Rows::PackLedgerOfFour,
            Rows::Built,
            Rows::PackLedgerTogether,
            Rows::PackKeys,
            Rows::PackIn,
            Rows::Pack,
        ];
        // The first time is the server's warm-up.
        for (turn, rows) in [Rows::Three].into_iter().chain(all).chain(all).enumerate() {
            let (begin, cpu, mut triggers, mut requests) = (Instant::now(), server.cpu_us(), 0, 0);
            let mut next = tokio::time::interval(pause);
            next.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while begin.elapsed() < length {
                next.tick().await;
                round += 1;
                requests += bench.apply(rows, round, each).await;
                triggers += SHARDS.unsigned_abs() as u64 * each;
            }
            println!(
                "{turn} {rows:?}: {:.1} us of the server's CPU a trigger, {:.3} requests, {:.0} triggers/s",
                (server.cpu_us() - cpu) as f64 / triggers as f64,
                requests as f64 / triggers as f64,
                triggers as f64 / begin.elapsed().as_secs_f64()
            );
        }
    });
}
