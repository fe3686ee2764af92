//! `endurance`: a node as it is shipped under mixed jobs for an hour or longer. Meanwhile it stands still, is killed, has a full disk, gets other
//! tokens and loses executors. At the end the history checker judges what everybody wrote, and the node's memory must not have grown.
//!
//! The load, its callers and its judge are those of `kill9`.

mod memory;
mod plan;
mod report;
mod site;
pub(crate) mod tokens;

use crate::{
    checker::check_dir,
    faults::kill9::LATEST_MS,
    load::{caller::Caller, open_loop},
    process::{fleet::Fleet, proc_stat::dir_bytes},
    report::machine::Machine,
    run_dir::{
        export::{Scope, drain, export},
        lines::now_us,
    },
    workload::{self, Plan},
};
use campanile_schema::{
    ids::JobId,
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    view::TenantBody,
};
use clap::Args;
use memory::{MOST_MIB_PER_MIN, Memory};
use parking_lot::Mutex;
use plan::{Act, FROZEN_S, schedule, warm_s};
use report::{PerformedAct, Report};
use site::{EXECUTORS, Site};
use std::{
    error::Error,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::{JoinSet, block_in_place},
    time::sleep,
};

/// Before the first instant: jobs are created and executors connect, milliseconds per 1,000 jobs, and at least.
const LEAD_MS: (i64, i64) = (300, 5_000);
const DRAIN: Duration = Duration::from_secs(180);
/// Triggers by hand, of 100 instants.
const BY_HAND_PERCENT: f64 = 5.0;
/// Jobs that are paused, resumed and deleted, of 100 that repeat; in how many loops at once.
const PAUSED_PERCENT: usize = 10;
const PAUSING_AT_ONCE: usize = 2;
/// New jobs a second: few, since each takes memory for good.
const CREATED_PER_S: f64 = 1.0;
/// What the files of a run take at most for each trigger, bytes: those of executors, of the node, and the export.
const BYTES_PER_TRIGGER: f64 = 2_500.0;

#[derive(Args, Clone, Debug)]
pub struct EnduranceArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    /// Length of the load, seconds. Memory is judged in a run of half an hour or more.
    #[arg(long, default_value_t = 3_600)]
    pub seconds: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 2_000.0)]
    pub rate: f64,
    #[arg(long, default_value_t = 20_000)]
    pub jobs: u64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// True: nothing is broken.
pub async fn run(args: EnduranceArgs) -> Result<bool, Box<dyn Error>> {
    let fleet = Fleet::new(&args.dir, &args.server_bin)?;
    has_room(&fleet.dir, &args)?;
    let memory = Memory::default();
    let site = Site::start(fleet, memory.clone()).await?;
    let sampling = memory.sample();
    let caller = site.fleet.caller(&site.node).await?;
    site.executors_are_known(caller.client()).await?;

    let begin_ms = now_us() / 1000;
    let start_ms = begin_ms + LEAD_MS.1.max(args.jobs as i64 * LEAD_MS.0 / 1000);
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + args.seconds as i64 * 1000,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "e".to_owned(),
        seed: args.seed,
    };
    let quota = TenantBody { max_concurrent_runs: workload::TIGHT.1, ..TenantBody::default() };
    caller.client().tenant_set(workload::TIGHT.0, quota).await?;
    let mut specs = workload::mixed(&plan);
    specs.extend(workload::watched(&plan));
    let ids = caller.create_many(&specs).await;
    let mut jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    if jobs.len() < specs.len() {
        return Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()).into());
    }
    println!("{} jobs; load from {} ms from now, for {} s", jobs.len(), start_ms - now_us() / 1000, args.seconds);
    let extra = Arc::new(Mutex::new(Vec::new()));
    let mut calls = start_calls(&plan, &caller, &specs, &ids, &extra);
    wait_until(start_ms).await;
    let (site, acts) = carry_out(site, &caller, start_ms, args.seconds).await?;
    wait_until(plan.end_ms + 1_000).await;
    while calls.join_next().await.is_some() {}
    sampling.abort();

    let left = drain(caller.client(), DRAIN).await?;
    println!("drained; {left} runs are still open");
    jobs.extend(extra.lock().iter());
    let scope = Scope {
        from_ms: begin_ms - 1_000,
        until_ms: plan.end_ms + 1_000,
        drained: true,
        quotas: [(workload::TIGHT.0.to_owned(), workload::TIGHT.1)].into(),
        latest_ms: Some(LATEST_MS),
        ..Scope::default()
    };
    let complete = export(caller.client(), &jobs, scope, &site.fleet.dir).await?;
    println!("exported {} jobs, complete: {complete}", jobs.len());
    let (data, machine) = (site.data(), Machine::here(caller.client().welcome().node));
    let fleet = block_in_place(|| site.stop())?;
    let (dir, binary) = (fleet.dir.clone(), fleet.setup.binary.clone());
    fleet.finish(caller)?;
    let verdict = block_in_place(|| check_dir(&dir))?;
    std::fs::write(dir.join("verdict.json"), serde_json::to_vec_pretty(&verdict)?)?;
    let mut report = Report {
        machine,
        seconds: args.seconds,
        rate: args.rate,
        jobs: args.jobs,
        executors: EXECUTORS,
        warm_up_s: warm_s(args.seconds),
        most_mib_per_min: MOST_MIB_PER_MIN,
        acts,
        memory: memory.report(args.seconds),
        stored_bytes: dir_bytes(&data),
        store_is_whole: block_in_place(|| is_whole(&binary, &data))?,
        verdict,
        broken: Vec::new(),
    };
    report.judge();
    report.write(&dir)?;
    println!("{}", report.text());
    Ok(report.is_green())
}

/// An hour at the usual rate takes as much as some disks have.
fn has_room(dir: &Path, args: &EnduranceArgs) -> Result<(), String> {
    let Ok(disk) = rustix::fs::statvfs(dir) else { return Ok(()) };
    let (free, needed) = (disk.f_bavail * disk.f_frsize, args.rate * args.seconds as f64 * BYTES_PER_TRIGGER);
    if free as f64 >= needed {
        return Ok(());
    }
    let (free, needed) = (free >> 20, needed as u64 >> 20);
    Err(format!(
        "the disk of {} has {free} MiB free, and {needed} are needed: name a directory on another disk with --dir",
        dir.display()
    ))
}

fn is_whole(binary: &Path, data: &Path) -> std::io::Result<bool> {
    let checked = Command::new(binary).args(["store", "check"]).arg(data).output()?;
    Ok(checked.status.success())
}

async fn wait_until(ms: i64) {
    sleep(Duration::from_millis((ms - now_us() / 1000).max(0).unsigned_abs())).await;
}

/// Does what the plan says. What went wrong is noted, and the run goes on.
async fn carry_out(
    mut site: Site,
    caller: &Caller,
    start_ms: i64,
    seconds: u64,
) -> Result<(Site, Vec<PerformedAct>), Box<dyn Error>> {
    let client = caller.client();
    let mut acts = Vec::new();
    for (at_s, act) in schedule(seconds) {
        wait_until(start_ms + at_s as i64 * 1000).await;
        let told = match act {
            Act::KillExecutor => site.kill_executor(client).await,
            Act::FreezeNode => site.freeze_node(client, FROZEN_S).await,
            Act::FillDisk => site.fill_disk(client).await,
            Act::RotateTokens => site.rotate_tokens(client).await,
            Act::KillNode => {
                // Without a node there is nothing to go on with.
                let (again, told) = site.kill_node(client).await?;
                site = again;
                Ok(told)
            }
        };
        let (held, told) = told.map_or_else(|error| (false, error.to_string()), |told| (true, told));
        println!("    {at_s:>6} s: {}: {told}", act.words());
        acts.push(PerformedAct { at_s, what: act.words().to_owned(), told, held });
        if !site.node.is_alive() {
            return Err(format!("the node ended by itself after this: {}; see node.log", act.words()).into());
        }
    }
    Ok((site, acts))
}

fn start_calls(
    plan: &Plan,
    caller: &Caller,
    specs: &[JobSpec],
    ids: &[Option<JobId>],
    extra: &Arc<Mutex<Vec<JobId>>>,
) -> JoinSet<()> {
    let of = |wanted: fn(&JobSpec) -> bool| -> Vec<JobId> {
        specs.iter().zip(ids).filter(|(spec, _)| wanted(spec)).filter_map(|(_, id)| *id).collect()
    };
    let manual = of(|spec| matches!(spec.trigger, Trigger::Manual {}));
    let mut paused = of(|spec| {
        matches!(spec.trigger, Trigger::FixedRate { .. }) && spec.concurrency_policy != ConcurrencyPolicy::Replace
    });
    paused.truncate(paused.len() * PAUSED_PERCENT / 100);
    let mut calls = JoinSet::new();
    let (by_hand, end_ms, seed) = (plan.rate * BY_HAND_PERCENT / 100.0, plan.end_ms, plan.seed);
    let hands = caller.clone();
    calls.spawn(async move {
        let counts = open_loop::triggers(hands, manual, by_hand, end_ms, seed).await;
        println!("triggers by hand: {}", serde_json::to_string(&*counts).unwrap_or_default());
    });
    for (n, share) in (0..).zip(paused.chunks(paused.len().div_ceil(PAUSING_AT_ONCE).max(1))) {
        calls.spawn(open_loop::pauses(caller.clone(), share.to_vec(), end_ms, seed + n));
    }
    let more = Plan { prefix: "extra".to_owned(), ..plan.clone() };
    calls.spawn(open_loop::creates(caller.clone(), more, CREATED_PER_S, Arc::clone(extra), |_| ()));
    calls
}
