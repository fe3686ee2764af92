//! One scenario: a new cluster on the store, load, the fault, a quiet time, and the checker's verdict.

use super::{
    ChaosArgs,
    act::{Act, At},
    disturb::Disturbances,
    fault_driver::FaultDriver,
    load_shape::{self, Limits},
    net::Net,
    probe::{self, Availability},
    relay_process::RelayProcess,
    scenario::{LoadShape, Scenario},
};
use crate::{
    checker::{Verdict, check_dir},
    load::{caller::Caller, dag_people, open_loop, people},
    process::node::free_port,
    run_dir::{
        export::{Scope, drain_all, export},
        lines::now_us,
        record::Record,
    },
    test_cluster::{Founding, TestCluster, host::Host, ready, store::Store},
    workload::{
        self, Plan,
        dags::{self, DagJobs},
        worked,
    },
};
use campanile_client::Client;
use campanile_schema::{
    ids::JobId,
    job::{JobSpec, Trigger},
};
use parking_lot::Mutex;
use std::{error::Error, fs, path::Path, sync::Arc, time::Duration};
use tokio::{
    task::{JoinSet, block_in_place},
    time::{Instant, sleep},
};

/// Deadline of one try of a call.
const CALL: Duration = Duration::from_secs(15);
const DRAIN: Duration = Duration::from_secs(120);
/// DAGs of the load.
const DAGS: u64 = 6;
/// Before the first instant, and after the last act, milliseconds.
const LEAD_MS: i64 = 4_000;
const TAIL_MS: i64 = 3_000;
/// Rest after the last act, milliseconds. On a quiet machine everything must be served again within it.
const SETTLE_MS: u64 = 8_000;
/// Load before the first act, milliseconds.
const QUIET_MS: u64 = 3_000;
/// Creating a job takes so long at most in the plan, milliseconds; of a herd's the whole.
const CREATE_MS: u64 = 1;
const HERD_CREATES_PER_SEC: u64 = 1_500;
/// Take-over is looked for among instants that were due so long after the first act, milliseconds.
const TAKE_OVER_MS: i64 = 8_000;
/// After all runs have ended every shard must be where it should be, and stay there, within this time.
const SETTLED: Duration = Duration::from_secs(20);
/// What a node says when it has lost its session, and when it has given a shard away.
const SESSION_LEFT: &str = "session left";
const HANDED_OVER: &str = "shard handed over";

/// Where a scenario runs, and what all of them share.
pub struct Env<'a> {
    pub args: &'a ChaosArgs,
    pub net: Option<&'a Net>,
    pub dir: &'a Path,
    pub keyspace: &'a str,
}

/// What a scenario showed.
pub struct ScenarioResult {
    pub verdict: Verdict,
    /// Milliseconds from each instant that was due in the time after the first act to the beginning of its body, sorted.
    pub lateness_ms: Vec<i64>,
    /// The longest of these times of all that was due from the first act until everything had settled.
    pub latest_ms: i64,
    pub availability: Availability,
    pub open: u64,
    /// Sessions that nodes gave up.
    pub sessions_lost: usize,
    /// Shards that nodes gave away, since the start.
    pub hand_overs: usize,
    /// Shards still move, or are where they should not be.
    pub restless: bool,
    /// Calls that each node answered.
    pub calls_answered: Vec<u64>,
    /// From the first instant to the last one, milliseconds.
    pub load_ms: i64,
}

pub async fn run(env: &Env<'_>, scenario: &Scenario, store: &mut Store) -> Result<ScenarioResult, Box<dyn Error>> {
    let Env { args, dir, .. } = *env;
    fs::create_dir_all(dir)?;
    let faults = Arc::new(Record::open(&dir.join("faults.jsonl"), Duration::ZERO)?);
    let calls = Arc::new(Record::open(&dir.join("caller-1.jsonl"), Duration::from_millis(5))?);
    let mut driver = set(env, scenario, store, &faults).await?;
    for n in 0..scenario.nodes {
        block_in_place(|| driver.cluster.start(n, ""))?;
    }
    block_in_place(|| driver.start_executors(args))?;
    let nodes = driver.cluster.connect_each(CALL).await?;
    ready(&nodes, args.executors()).await?;

    let caller = driver.cluster.caller(CALL, Arc::clone(&calls), args.seed).await?;
    let begin_ms = now_us() / 1000;
    let herd_ms =
        if scenario.load_shape == Some(LoadShape::Herd) { args.herd * 1_000 / HERD_CREATES_PER_SEC } else { 0 };
    let start_ms = begin_ms + LEAD_MS + (args.jobs * CREATE_MS + herd_ms) as i64;
    let acts_ms = start_ms + QUIET_MS as i64;
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: acts_ms + (scenario.lasts_ms() + SETTLE_MS) as i64 + TAIL_MS,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "c".to_owned(),
        seed: args.seed,
    };
    let patience_sec = args.patience_sec();
    let mut specs = specs(&plan, patience_sec);
    let worked = worked::worked(&plan);
    let first_worked = specs.len();
    specs.extend(worked.iter().map(|(_, spec)| spec.clone()));
    let first_backfilled = specs.len();
    // An earlier release knows neither backfills nor DAGs.
    let (backfilled, with_dags) = if scenario.needs_earlier() {
        (Vec::new(), DagJobs::default())
    } else {
        (worked::backfilled(&plan), dags::dags(&plan, DAGS))
    };
    specs.extend(patiently(backfilled, patience_sec));
    let first_part = specs.len();
    specs.extend(with_dags.parts);
    let ids = caller.create_many(&specs).await;
    let mut jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    if jobs.len() < specs.len() {
        return Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()).into());
    }
    let dag_ids = dag_people::create(&caller, &patiently(with_dags.dags, patience_sec)).await?;
    let extra = Arc::new(Mutex::new(Vec::new()));
    let mut load = start_calls(args, &plan, patience_sec, &caller, &specs[..first_worked], &ids, &extra);
    let start_people = if scenario.needs_earlier() { people::persons } else { people::start };
    start_people(&mut load, &caller, worked::with_ids(worked, &jobs[first_worked..]), plan.end_ms, plan.seed);
    people::backfills(&mut load, &caller, &jobs[first_backfilled..first_part], plan.end_ms, plan.seed);
    dag_people::start(&mut load, &caller, &dag_ids.by_hand, plan.end_ms, plan.seed);
    jobs.extend(&dag_ids.all);
    if let Some(load_shape) = scenario.load_shape {
        let gathered = load_shape::gather(load_shape, args, &plan, acts_ms, &caller).await?;
        jobs.extend(gathered.jobs());
        gathered.start(&mut load, &caller, &extra);
    }
    let probing = probe::start(nodes.clone());
    sleep(Duration::from_millis((acts_ms - now_us() / 1000).max(0).unsigned_abs())).await;
    let acted_ms = now_us() / 1000;
    for act in scenario.acts {
        println!("    {:>6} ms: {act:?}", now_us() / 1000 - acted_ms);
        driver.carry_out(*act, store).await?;
    }
    sleep(Duration::from_millis(SETTLE_MS)).await;
    let settled_ms = now_us() / 1000;
    sleep(Duration::from_millis((plan.end_ms + 1_000 - now_us() / 1000).max(0).unsigned_abs())).await;
    while load.join_next().await.is_some() {}
    let (availability, owners) = probing.end().await;
    driver.disturbances.write(&owners, &faults);
    fs::write(dir.join("availability.txt"), availability.by_second())?;

    let nodes = driver.cluster.connect_each(CALL).await?;
    let open = drain_all(&nodes, DRAIN).await?;
    let restless = !settle(&nodes).await;
    jobs.extend(extra.lock().iter());
    let Limits { quotas, rates } = load_shape::limits(scenario.load_shape);
    let scope = Scope {
        from_ms: begin_ms - 1_000,
        until_ms: plan.end_ms + 1_000,
        drained: true,
        latest_ms: Some(scenario.latest.on(args.quiet_machine)),
        shards: Some(args.shards),
        quotas,
        rates,
        dags: dag_ids.all.into_iter().collect(),
        ..Scope::default()
    };
    export(caller.client(), &jobs, scope, dir).await?;
    let sessions_lost = driver.cluster.told(SESSION_LEFT)?;
    let hand_overs = driver.cluster.told(HANDED_OVER)?;
    let calls_answered = answered(&caller, scenario.nodes)?;
    block_in_place(|| driver.end())?;
    drop(caller);
    if let Some(calls) = Arc::into_inner(calls) {
        calls.close()?;
    }
    let verdict = block_in_place(|| check_dir(dir))?;
    fs::write(dir.join("verdict.json"), serde_json::to_vec_pretty(&verdict)?)?;
    let lateness_ms = probe::lateness(dir, acted_ms, acted_ms + TAKE_OVER_MS)?;
    let latest_ms = probe::lateness(dir, acted_ms, settled_ms)?.last().copied().unwrap_or(0);
    Ok(ScenarioResult {
        verdict,
        lateness_ms,
        latest_ms,
        availability,
        open,
        sessions_lost,
        hand_overs,
        restless,
        calls_answered,
        load_ms: plan.end_ms - plan.start_ms,
    })
}

/// Everything but the processes of the cluster.
async fn set<'a>(
    env: &Env<'a>,
    scenario: &Scenario,
    store: &Store,
    faults: &Arc<Record>,
) -> Result<FaultDriver<'a>, Box<dyn Error>> {
    let Env { args, net, dir, keyspace } = *env;
    let with = |wanted: fn(&Act) -> Option<usize>| -> Vec<usize> {
        let mut nodes: Vec<usize> = scenario.acts.iter().filter_map(wanted).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let started = |act: &Act| match act {
        Act::Start(n) => Some(*n),
        Act::StartBoth(_, n) => Some(*n),
        _ => None,
    };
    let count = with(started).last().map_or(0, |last| last + 1).max(scenario.nodes);
    let host = |n: usize| match net {
        Some(net) => net.host(At::Node(u8::try_from(n).unwrap_or(u8::MAX))),
        None => Host::loopback(),
    };
    let mut contact_points = store.contact_points.clone();
    let mut ways = Vec::new();
    if scenario.has(|act| matches!(act, Act::Slow(_) | Act::LoseLwts(_))) {
        let port = free_port()?;
        for (server, address) in (1..).zip(&store.contact_points) {
            let host = net.map_or_else(Host::loopback, |net| net.host(At::Store(server)));
            ways.push(block_in_place(|| RelayProcess::start(&host, address, port))?);
        }
        contact_points = ways.iter().map(|way| way.address.clone()).collect();
    }
    let founding = Founding {
        binary: &args.server_bin,
        earlier: args.old_bin.as_deref().filter(|_| scenario.needs_earlier()),
        dir,
        hosts: (0..count).map(host).collect(),
        shards: args.shards,
        contact_points: &contact_points,
        keyspace,
        replication: scenario.stores,
        fault: if args.broken { scenario.defect } else { "" },
        clocks: with(|act| if let Act::Clock(n, _) = act { Some(*n) } else { None }),
        disks: with(|act| if let Act::FillDisk(n) = act { Some(*n) } else { None }),
        settings: Vec::new(),
    };
    let cluster = block_in_place(|| TestCluster::new(founding, Arc::clone(faults)))?;
    let recovers_ms = scenario.recovers.on(args.quiet_machine);
    let disturbances = Disturbances::new(scenario.nodes, scenario.stores, recovers_ms);
    Ok(FaultDriver::new(cluster, net, ways, disturbances, dir, faults))
}

/// Limits of tenants are a scenario of their own (`load_shape.rs`). A shard that changes hands is nobody's for a moment, on a
/// busy machine for some seconds: jobs wait longer than any start may be late, so that only what an act explains is missed.
fn specs(plan: &Plan, patience_sec: u32) -> Vec<JobSpec> {
    let mut specs = workload::mixed(plan);
    specs.extend(workload::watched(plan).into_iter().filter(|spec| spec.tenant_id != workload::TIGHT.0));
    patiently(specs, patience_sec)
}

fn patiently(mut specs: Vec<JobSpec>, patience_sec: u32) -> Vec<JobSpec> {
    specs.iter_mut().for_each(|spec| workload::patient(spec, patience_sec));
    specs
}

/// Calls that each node answered; callers that leave out one that was there from the beginning show nothing of it.
fn answered(caller: &Caller, nodes: usize) -> Result<Vec<u64>, String> {
    let answered = caller.answered();
    match answered.iter().take(nodes).position(|calls| *calls == 0) {
        Some(n) => Err(format!("no call went through {}: {answered:?}", TestCluster::name(n))),
        None => Ok(answered),
    }
}

/// Whether every node says that all shards are where they should be.
async fn settle(nodes: &[Client]) -> bool {
    let deadline = Instant::now() + SETTLED;
    for node in nodes {
        while !node.cluster_plan().await.is_ok_and(|plan| plan.balanced) {
            if Instant::now() > deadline {
                return false;
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
    true
}

fn start_calls(
    args: &ChaosArgs,
    plan: &Plan,
    patience_sec: u32,
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
        let _ = open_loop::triggers(hands, manual, by_hand, end_ms, seed).await;
    });
    calls.spawn(open_loop::pauses(caller.clone(), paused, plan.end_ms, plan.seed));
    let more = Plan { prefix: "extra".to_owned(), ..plan.clone() };
    calls.spawn(open_loop::creates(caller.clone(), more, 2.0, Arc::clone(extra), move |spec| {
        workload::patient(spec, patience_sec)
    }));
    calls
}
