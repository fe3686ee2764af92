//! One scenario: a new cluster on the store, load, what goes wrong, rest, and the checker's verdict.

use super::{
    ChaosArgs,
    probe::{self, Availability},
    scenario::{Act, Scenario},
    store::Store,
    town::Town,
};
use crate::{
    caller::Caller,
    checker::{Verdict, check_dir},
    export::{Scope, drain_all, export},
    lines::{FaultEvent, FaultLine, now_us},
    load,
    node::{ExecutorProcess, ExecutorSetup},
    record::Record,
    workload::{self, Plan},
};
use campanile_client::{Client, ClientOptions, Retry};
use campanile_schema::{
    ids::JobId,
    job::{JobSpec, Trigger},
};
use std::{
    error::Error,
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    task::{JoinSet, block_in_place},
    time::{Instant, sleep},
};

/// Deadline of one try of a call.
const CALL: Duration = Duration::from_secs(15);
const DRAIN: Duration = Duration::from_secs(120);
/// Until every node is ready and every executor known to it.
const READY: Duration = Duration::from_secs(60);
/// Before the first instant, and after the last act, milliseconds.
const LEAD_MS: i64 = 4_000;
const TAIL_MS: i64 = 3_000;
/// After the last act everything must be served again within this time, milliseconds.
const SETTLE_MS: u64 = 8_000;
/// Load before the first act, milliseconds.
const QUIET_MS: u64 = 3_000;
/// Take-over is looked for among instants that were due so long after the first act, milliseconds.
const TAKE_OVER_MS: i64 = 8_000;
pub const NODES: usize = 3;

/// What a scenario showed.
pub struct Shown {
    pub verdict: Verdict,
    /// Milliseconds from each instant that was due in the time after the first act to the beginning of its body, sorted.
    pub lateness_ms: Vec<i64>,
    pub availability: Availability,
    pub open: u64,
}

pub async fn run(
    args: &ChaosArgs,
    scenario: &Scenario,
    store: &mut Store,
    dir: &Path,
    keyspace: &str,
) -> Result<Shown, Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let faults = Arc::new(Record::open(&dir.join("faults.jsonl"), Duration::ZERO)?);
    let calls = Arc::new(Record::open(&dir.join("caller-1.jsonl"), Duration::from_millis(5))?);
    let mut town = block_in_place(|| {
        Town::new(&args.server_bin, dir, NODES, args.shards, &store.contact_points, keyspace, Arc::clone(&faults))
    })?;
    for n in 0..NODES {
        block_in_place(|| town.start(n))?;
    }
    let mut executors = Vec::new();
    for n in 1..=args.executors {
        executors.push(block_in_place(|| executor(&town, dir, n, &faults))?);
    }
    let nodes = connect_each(&town).await?;
    ready(&nodes, executors.len()).await?;

    let options = ClientOptions::new(town.rpc().split(',').map(str::to_owned).collect(), town.token.clone())
        .timeout(CALL)
        .retry(Retry::LOST);
    let caller = Caller::new(Client::connect_with(options).await?, Arc::clone(&calls));
    let begin_ms = now_us() / 1000;
    let start_ms = begin_ms + LEAD_MS + args.jobs as i64;
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + QUIET_MS as i64 + scenario.lasts_ms() + SETTLE_MS as i64 + TAIL_MS,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "c".to_owned(),
        seed: args.seed,
    };
    // Limits of tenants are each node's own so far: what needs them is not asked for.
    let mut specs = workload::mixed(&plan);
    specs.extend(workload::watched(&plan).into_iter().filter(|spec| spec.tenant_id != workload::TIGHT.0));
    // A shard that changes hands is nobody's for a moment, on a busy machine for more than a second: what is missed for that is a defect
    // only for jobs that wait longer.
    specs.iter_mut().for_each(workload::patient);
    let ids = caller.create_many(&specs).await;
    let mut jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    if jobs.len() < specs.len() {
        return Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()).into());
    }
    let extra = Arc::new(Mutex::new(Vec::new()));
    let mut load = start_calls(args, &plan, &caller, &specs, &ids, &extra);
    let probing = probe::start(nodes.clone());
    sleep(Duration::from_millis((start_ms - now_us() / 1000).max(0).unsigned_abs() + QUIET_MS)).await;
    let acted_ms = now_us() / 1000;
    // From here on a shard may be nobody's for a while, and what is due then is a matter of its job's misfire policy.
    trouble(&faults, FaultEvent::NodeKilled, "trouble begins");
    for act in scenario.acts {
        println!("    {:>6} ms: {act:?}", now_us() / 1000 - acted_ms);
        carry_out(*act, &mut town, store, &mut executors, args, dir, &faults).await?;
    }
    sleep(Duration::from_millis(SETTLE_MS)).await;
    trouble(&faults, FaultEvent::NodeReady, "trouble is over");
    sleep(Duration::from_millis((plan.end_ms + 1_000 - now_us() / 1000).max(0).unsigned_abs())).await;
    while load.join_next().await.is_some() {}
    let availability = probing.end().await;

    let nodes = connect_each(&town).await?;
    let open = drain_all(&nodes, DRAIN).await?;
    jobs.extend(extra.lock().unwrap_or_else(PoisonError::into_inner).iter());
    let scope = Scope { from_ms: begin_ms - 1_000, until_ms: plan.end_ms + 1_000, drained: true, quotas: [].into() };
    export(caller.client(), &jobs, scope, dir).await?;
    block_in_place(|| -> std::io::Result<()> {
        for n in 0..town.len() {
            town.kill(n)?;
        }
        executors.into_iter().try_for_each(|executor| executor.stop(Duration::from_secs(10)))
    })?;
    drop(caller);
    if let Some(calls) = Arc::into_inner(calls) {
        calls.close()?;
    }
    let verdict = block_in_place(|| check_dir(dir))?;
    fs::write(dir.join("verdict.json"), serde_json::to_vec_pretty(&verdict)?)?;
    let lateness_ms = probe::lateness(dir, acted_ms, acted_ms + TAKE_OVER_MS)?;
    Ok(Shown { verdict, lateness_ms, availability, open })
}

fn trouble(faults: &Record, event: FaultEvent, what: &str) {
    faults.line(&FaultLine { event, t_us: now_us(), executor: None, detail: Some(what.to_owned()) });
}

fn executor(town: &Town, dir: &Path, n: usize, faults: &Arc<Record>) -> std::io::Result<ExecutorProcess> {
    let setup = ExecutorSetup {
        rpc: town.rpc(),
        token: town.token.clone(),
        pool: "default".to_owned(),
        slots: 256,
        fail_percent: 2,
        flush_ms: 1,
        dir: dir.to_owned(),
        log: true,
        stats: false,
    };
    ExecutorProcess::start(&setup, &format!("executor-{n}"), &dir.join("executors.log"), faults)
}

/// A client of each node that is up.
async fn connect_each(town: &Town) -> Result<Vec<Client>, Box<dyn Error>> {
    let mut clients = Vec::new();
    for n in (0..town.len()).filter(|n| town.is_up(*n)) {
        let options = ClientOptions::new(vec![town.rpc_of(n)], town.token.clone()).timeout(CALL).retry(Retry::LOST);
        let deadline = Instant::now() + READY;
        loop {
            match Client::connect_with(options.clone()).await {
                Ok(client) => break clients.push(client),
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }
    Ok(clients)
}

async fn ready(nodes: &[Client], executors: usize) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + READY;
    for node in nodes {
        loop {
            let known = node.executor_list().await.map(|list| list.len());
            let ready = node.system_info().await.map(|info| info.ready);
            match (known, ready) {
                (Ok(known), Ok(true)) if known >= executors => break,
                (known, ready) if Instant::now() > deadline => {
                    return Err(format!("a node is not ready: executors {known:?}, ready {ready:?}").into());
                }
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }
    Ok(())
}

async fn carry_out(
    act: Act,
    town: &mut Town,
    store: &mut Store,
    executors: &mut Vec<ExecutorProcess>,
    args: &ChaosArgs,
    dir: &Path,
    faults: &Arc<Record>,
) -> Result<(), Box<dyn Error>> {
    if let Act::Wait(ms) = act {
        sleep(Duration::from_millis(ms)).await;
        return Ok(());
    }
    block_in_place(|| match act {
        Act::Kill(n) => town.kill(n),
        Act::Start(n) => town.start(n),
        Act::Stop(n) => town.stop(n),
        Act::Freeze(n) => town.freeze(n, true),
        Act::Thaw(n) => town.freeze(n, false),
        Act::Store(order) => store.order(order),
        Act::KillExecutor => {
            executors.remove(0).kill9()?;
            executors.push(executor(town, dir, args.executors + 1, faults)?);
            Ok(())
        }
        Act::Wait(_) => Ok(()),
    })?;
    Ok(())
}

fn start_calls(
    args: &ChaosArgs,
    plan: &Plan,
    caller: &Caller,
    specs: &[JobSpec],
    ids: &[Option<JobId>],
    extra: &Arc<Mutex<Vec<JobId>>>,
) -> JoinSet<()> {
    let is_manual = |spec: &JobSpec| matches!(spec.trigger, Trigger::Manual {});
    let manual: Vec<JobId> = specs.iter().zip(ids).filter(|(s, _)| is_manual(s)).filter_map(|(_, id)| *id).collect();
    let is_rate = |spec: &JobSpec| matches!(spec.trigger, Trigger::FixedRate { .. });
    let mut paused: Vec<JobId> = specs.iter().zip(ids).filter(|(s, _)| is_rate(s)).filter_map(|(_, id)| *id).collect();
    paused.truncate(paused.len() / 20);
    let mut calls = JoinSet::new();
    let (by_hand, end_ms, seed) = (args.rate / 10.0, plan.end_ms, plan.seed);
    let hands = caller.clone();
    calls.spawn(async move {
        let _ = load::triggers(hands, manual, by_hand, end_ms, seed).await;
    });
    calls.spawn(load::pauses(caller.clone(), paused, plan.end_ms, plan.seed));
    let more = Plan { prefix: "extra".to_owned(), ..plan.clone() };
    calls.spawn(load::creates(caller.clone(), more, 2.0, Arc::clone(extra)));
    calls
}
