//! Measures one number of nodes: a new server, a new cluster, the jobs, the load, the measurement, and the end of all
//! of it.

use super::{
    ClusterBenchArgs,
    jobs::{self, Jobs},
    metrics::REQUESTS,
    report::Measured,
    sample::Sample,
    take_over,
};
use crate::{
    load::{
        latency::{HIGHEST_US, Percentiles, percentiles},
        stats::{StatsLine, Tail},
    },
    process::node::{ExecutorProcess, ExecutorSetup},
    run_dir::{lines::now_us, record::Record},
    test_cluster::{Founding, TestCluster, host::Host, ready, store::Store},
};
use campanile_client::Client;
use campanile_schema::{cluster::ShardFilter, view::TenantBody};
use hdrhistogram::Histogram;
use std::{error::Error, ops::Range, path::Path, sync::Arc, time::Duration};
use tokio::{
    task::block_in_place,
    time::{Instant, sleep},
};

/// Deadline of one try of a call.
const CALL: Duration = Duration::from_secs(30);
/// Until every shard is where it should be.
const BALANCED: Duration = Duration::from_secs(120);
/// What was late gets so long after the last second that counts, and so long without one more of it.
const CATCH_UP: Duration = Duration::from_secs(90);
const STILL: Duration = Duration::from_secs(15);
/// Executors write their counts ten times a second.
const LOOK: Duration = Duration::from_millis(500);
const STOP: Duration = Duration::from_secs(10);
/// Of the nodes that calls go through.
const SEED: u64 = 1;

/// Starts everything, measures, ends everything.
pub async fn measure(args: &ClusterBenchArgs, nodes: usize, dir: &Path) -> Result<Measured, Box<dyn Error>> {
    let faults = Arc::new(Record::open(&dir.join("faults.jsonl"), Duration::ZERO)?);
    let store = block_in_place(|| Store::start(&args.store, dir, 1, false, Some(&args.store_heap)))?;
    let founding = Founding {
        binary: &args.server_bin,
        earlier: None,
        dir,
        hosts: vec![Host::loopback(); nodes],
        shards: args.shards,
        contact_points: &store.contact_points,
        keyspace: "bench",
        replication: 1,
        fault: "",
        clocks: Vec::new(),
        disks: Vec::new(),
        settings: settings(args, nodes),
    };
    let mut cluster = block_in_place(|| TestCluster::new(founding, Arc::clone(&faults)))?;
    for n in 0..nodes {
        block_in_place(|| cluster.start(n, ""))?;
    }
    let executors = block_in_place(|| start_executors(args, &cluster, dir, &faults))?;
    let clients = cluster.connect_each(CALL).await?;
    ready(&clients, executors.len()).await?;
    balanced(&clients).await?;
    let mut site = Site { args, cluster, store, executors, clients, dir };
    let measured = site.measure(nodes).await;
    block_in_place(|| site.end())?;
    measured
}

fn settings(args: &ClusterBenchArgs, nodes: usize) -> Vec<(String, String)> {
    let (lease, threads) = (args.lease.to_string(), args.threads_of(nodes).to_string());
    let mut all = vec![("CLUSTER__LEASE_MS".to_owned(), lease), ("NODE__THREADS".to_owned(), threads)];
    all.extend(args.set.iter().cloned());
    all
}

fn start_executors(
    args: &ClusterBenchArgs,
    cluster: &TestCluster,
    dir: &Path,
    faults: &Arc<Record>,
) -> std::io::Result<Vec<ExecutorProcess>> {
    let setup = ExecutorSetup {
        rpc: cluster.rpc(),
        token: cluster.token.clone(),
        pool: "default".to_owned(),
        slots: args.slots,
        fail_percent: 0,
        flush_ms: 5,
        dir: dir.to_owned(),
        // Whose shard a body was of, only the log tells.
        log: args.leaves(),
        stats: true,
        ends: None,
    };
    let log = dir.join("executors.log");
    (1..=args.executors).map(|n| ExecutorProcess::start(&setup, &name(n), &log, faults)).collect()
}

fn name(n: usize) -> String {
    format!("executor-{n}")
}

async fn balanced(clients: &[Client]) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + BALANCED;
    let asked = clients.first().ok_or("there is no node")?;
    loop {
        match asked.cluster_plan().await {
            Ok(plan) if plan.balanced => return Ok(()),
            Ok(plan) if Instant::now() > deadline => {
                return Err(format!("{} shards are not where they should be", plan.moves.len()).into());
            }
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Ok(_) | Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn until_s(second: i64) {
    sleep(Duration::from_micros((second * 1_000_000 - now_us()).max(0).unsigned_abs())).await;
}

/// All processes of one number of nodes.
struct Site<'a> {
    args: &'a ClusterBenchArgs,
    cluster: TestCluster,
    store: Store,
    executors: Vec<ExecutorProcess>,
    clients: Vec<Client>,
    dir: &'a Path,
}

impl Site<'_> {
    async fn measure(&mut self, nodes: usize) -> Result<Measured, Box<dyn Error>> {
        let version = self.clients.first().ok_or("there is no node")?.system_info().await?.version;
        let caller = self.cluster.caller(CALL, Arc::new(Record::nowhere()?), SEED).await?;
        let jobs = Jobs::new(&self.args.size(), now_us() / 1000)?;
        for tenant in jobs.tenants() {
            // No quota of theirs shall be what is measured.
            caller.client().tenant_set(&tenant, TenantBody::default()).await?;
        }
        let (ids, create_ms) = jobs::create(jobs, &caller).await?;
        println!("    {} jobs created in {create_ms} ms; {:.0} instants/s from now on", ids.len(), jobs.rate());
        let begin_s = now_us() / 1_000_000 + 1 + self.args.warm_seconds() as i64;
        let window = begin_s..begin_s + self.args.seconds as i64;
        until_s(window.start).await;
        let calls = caller.answered().into_iter().enumerate().map(|(n, calls)| (TestCluster::name(n), calls)).collect();
        let measured = Measured { nodes, version, jobs: ids.len() as u64, create_ms, calls, ..Measured::default() };
        let departed = if self.args.leaves() { Some(self.leave(caller.client()).await?) } else { None };
        let before = self.sample()?;
        until_s(window.end).await;
        let after = self.sample()?;
        let due = jobs.due_in(window.clone());
        let (lateness, slowest_second, caught_up_ms) = self.caught_up(&window, due).await?;
        let used = after.since(&before);
        let each = |value: f64| value / lateness.count.max(1) as f64;
        let requests = after.counters.by_label(REQUESTS, &before.counters);
        let take_over = match departed {
            Some(departed) => {
                Some(take_over::figures(departed, &window, self.dir, (&before.counters, &after.counters))?)
            }
            None => None,
        };
        // An attempt that a dead node could not send is repeated as the second one, which only the log tells.
        let started = take_over.as_ref().map_or(lateness.count, |take_over| take_over.started);
        Ok(Measured {
            due,
            started,
            all_started: started >= due,
            caught_up_ms,
            started_per_s: started as f64 / self.args.seconds as f64,
            slowest_second,
            lateness,
            nodes_us: each(used.nodes_us as f64),
            store_us: each(used.store_us as f64),
            executors_us: each(used.executors_us as f64),
            harness_us: each(used.harness_us as f64),
            all_us: each((used.nodes_us + used.store_us + used.executors_us) as f64),
            others_cores: used.others_us as f64 / 1e6 / used.seconds.max(1e-9),
            nodes_rss_mb: used.node_rss_mb,
            store_rss_mb: used.store_rss_mb,
            store_written_bytes: each(used.store_written_bytes as f64),
            requests: each(requests.values().sum()),
            requests_by_kind: requests.into_iter().map(|(kind, count)| (kind, each(count))).collect(),
            errors: after.counters.sum("campanile_cql_errors_total")
                - before.counters.sum("campanile_cql_errors_total"),
            take_over,
            ..measured
        })
    }

    /// Lateness of what was due in these seconds, the fewest starts of what was due in one of them, and how long after their end all of it was
    /// started, milliseconds. The load goes on meanwhile: a cluster that is behind does not get rid of its backlog by a pause.
    async fn caught_up(
        &self,
        window: &Range<i64>,
        due: u64,
    ) -> Result<(Percentiles, u64, Option<i64>), Box<dyn Error>> {
        let deadline = Instant::now() + CATCH_UP;
        let (mut seen, mut moved) = (0, Instant::now());
        loop {
            sleep(LOOK).await;
            let (lateness, slowest) = block_in_place(|| self.lateness(window))?;
            if lateness.count >= due {
                return Ok((lateness, slowest, Some(now_us() / 1000 - window.end * 1000)));
            }
            if lateness.count > seen {
                (seen, moved) = (lateness.count, Instant::now());
            }
            if Instant::now() > deadline || moved.elapsed() > STILL {
                return Ok((lateness, slowest, None));
            }
        }
    }

    fn sample(&self) -> Result<Sample, Box<dyn Error>> {
        block_in_place(|| Sample::take(&self.cluster, &self.store, &self.executors))
    }

    /// kill -9 of the node that owns most shards, or its stop, as an operator stops it.
    async fn leave(&mut self, client: &Client) -> Result<take_over::DepartedNode, Box<dyn Error>> {
        let shards = client.cluster_shards(ShardFilter::default()).await?;
        let of = |n: usize| -> Vec<u16> {
            let name = TestCluster::name(n);
            shards.iter().filter(|shard| shard.node.as_deref() == Some(&name)).map(|shard| shard.shard).collect()
        };
        let victim = (0..self.cluster.len()).max_by_key(|n| of(*n).len()).ok_or("there is no node")?;
        let at_us = now_us();
        let (node, shards, all) = (TestCluster::name(victim), of(victim), shards.len());
        let stopped_ms = if self.args.drain {
            block_in_place(|| self.cluster.stop(&[victim]))?;
            Some((now_us() - at_us) / 1000)
        } else {
            block_in_place(|| self.cluster.kill(victim))?;
            None
        };
        let how = stopped_ms.map_or("killed".to_owned(), |ms| format!("stopped within {ms} ms"));
        println!("    {node} {how}, with {} of {all} shards", shards.len());
        Ok(take_over::DepartedNode { node, shards, at_us, stopped_ms })
    }

    /// Of what was due in these seconds; the fewest starts of what was due in one of them.
    fn lateness(&self, window: &Range<i64>) -> Result<(Percentiles, u64), Box<dyn Error>> {
        let mut all = Histogram::<u64>::new_with_bounds(1, HIGHEST_US, 3)?;
        let mut by_second = vec![0; (window.end - window.start).max(0).unsigned_abs() as usize];
        for n in 1..=self.args.executors {
            let mut tail = Tail::open(&self.dir.join(format!("stats-{}.jsonl", name(n))))?;
            for line in tail.read()?.iter().filter(|line| line.group == jobs::GROUP) {
                count(line, window, &mut all, &mut by_second);
            }
        }
        Ok((percentiles(&all), by_second.into_iter().min().unwrap_or(0)))
    }

    fn end(self) -> std::io::Result<()> {
        let Self { mut cluster, executors, .. } = self;
        (0..cluster.len()).try_for_each(|n| cluster.kill(n))?;
        executors.into_iter().try_for_each(|executor| executor.stop(STOP))
    }
}

fn count(line: &StatsLine, window: &Range<i64>, all: &mut Histogram<u64>, by_second: &mut [u64]) {
    for (due_s, values) in line.start.range(window.clone()) {
        for (late_us, times) in values {
            all.saturating_record_n((*late_us).max(1), *times);
            by_second[(due_s - window.start).unsigned_abs() as usize] += times;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::stats::Values;
    use std::collections::BTreeMap;

    #[test]
    fn only_what_was_due_in_the_window_counts() {
        let start = BTreeMap::from([
            (9, Values::from([(5, 7)])),
            (10, Values::from([(1_000, 2), (9_000, 1)])),
            (11, Values::from([(2_000, 1)])),
            (12, Values::from([(5, 7)])),
        ]);
        let line = StatsLine { start, ..StatsLine::default() };
        let mut all = Histogram::<u64>::new_with_bounds(1, HIGHEST_US, 3).unwrap();
        let mut by_second = vec![0; 2];
        count(&line, &(10..12), &mut all, &mut by_second);
        assert_eq!((all.len(), by_second), (4, vec![3, 1]));
        assert!((percentiles(&all).max_ms - 9.0).abs() < 0.01);
    }
}
