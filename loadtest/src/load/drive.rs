//! `drive`: load for a node that runs already: jobs, manual triggers, and a report. Executors are started separately,
//! with their files in the same directory.

use crate::{
    load::{
        caller::Caller,
        latency::{Lateness, lateness},
        open_loop,
    },
    process::proc_stat::Usage,
    run_dir::{
        export::{Scope, drain, export},
        lines::now_us,
        record::Record,
    },
    workload::{self, Plan},
};
use campanile_client::{Client, ClientOptions, Retry};
use campanile_schema::{ids::JobId, job::Trigger};
use clap::Args;
use serde::Serialize;
use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::sleep;

/// What kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// All kinds of triggers under all policies.
    Mixed,
    /// FIXED_RATE only, spread evenly.
    Even,
}

#[derive(Args, Clone, Debug)]
pub struct DriveArgs {
    /// Address of the node's RPC, host:port.
    #[arg(long)]
    pub rpc: String,
    #[arg(long)]
    pub token: String,
    #[arg(long, default_value_t = 10_000)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 1_000.0)]
    pub rate: f64,
    /// Triggers by hand per second, on the MANUAL jobs of the mixed workload.
    #[arg(long, default_value_t = 0.0)]
    pub manual_rate: f64,
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    #[arg(long, value_enum, default_value_t = Workload::Mixed)]
    pub workload: Workload,
    #[arg(long, default_value = "default")]
    pub pool: String,
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// Begins the names of the jobs.
    #[arg(long, default_value = "drive")]
    pub prefix: String,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory with the executors' files; the caller's file, the export and the report go there.
    #[arg(long)]
    pub dir: PathBuf,
    /// Between now and the first instant, milliseconds.
    #[arg(long, default_value_t = 10_000)]
    pub lead_ms: i64,
    /// Process whose CPU time and memory are reported.
    #[arg(long)]
    pub server_pid: Option<u32>,
    /// Write the ledger and the runs too, for `check`.
    #[arg(long)]
    pub export: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    jobs: usize,
    create_ms: i64,
    jobs_created_per_sec: f64,
    /// The last create came after the first instant, so early instants could not fire.
    created_too_late: bool,
    triggers_by_hand: serde_json::Value,
    lateness: Lateness,
    drain_ms: i64,
    runs_left: u64,
    server_cpu_us: Option<u64>,
    server_cpu_us_per_start: Option<f64>,
    server: Option<Usage>,
}

pub async fn run(args: DriveArgs) -> Result<bool, Box<dyn Error>> {
    let options = ClientOptions::new(vec![args.rpc.clone()], args.token.clone())
        .timeout(Duration::from_secs(10))
        .retry(Retry::LOST);
    let client = Client::connect_with(options).await?;
    std::fs::create_dir_all(&args.dir)?;
    let calls = args.dir.join(format!("caller-{}-{}.jsonl", args.prefix, std::process::id()));
    let caller = Caller::new(client, Arc::new(Record::open(&calls, Duration::from_millis(5))?));
    let begin_ms = now_us() / 1000;
    let start_ms = begin_ms + args.lead_ms;
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + args.seconds as i64 * 1000,
        pool: args.pool.clone(),
        tenant: args.tenant.clone(),
        prefix: format!("{}-{begin_ms}", args.prefix),
        seed: args.seed,
    };
    let specs = match args.workload {
        Workload::Mixed => workload::mixed(&plan),
        Workload::Even => workload::even(&plan),
    };
    let ids = caller.create_many(&specs).await;
    let jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    let created_ms = now_us() / 1000;
    let usage = || args.server_pid.map(Usage::of).transpose();
    sleep(Duration::from_millis((start_ms - created_ms).max(0).unsigned_abs())).await;
    let before = usage()?;
    let manual: Vec<JobId> = specs
        .iter()
        .zip(&ids)
        .filter(|(spec, _)| matches!(spec.trigger, Trigger::Manual {}))
        .filter_map(|(_, id)| *id)
        .collect();
    let by_hand = tokio::spawn(open_loop::triggers(
        caller.clone(),
        manual,
        args.manual_rate,
        plan.end_ms,
        begin_ms.unsigned_abs(),
    ));
    sleep(Duration::from_millis((plan.end_ms + 100 - now_us() / 1000).max(0).unsigned_abs())).await;
    let counts = by_hand.await?;
    let left = drain(caller.client(), Duration::from_secs(120)).await?;
    let drain_ms = now_us() / 1000 - plan.end_ms;
    let after = usage()?;
    if args.export {
        let scope =
            Scope { from_ms: begin_ms - 1_000, until_ms: plan.end_ms + 1_000, drained: true, ..Scope::default() };
        export(caller.client(), &jobs, scope, &args.dir).await?;
    }
    let seen = lateness(&args.dir, plan.start_ms, plan.end_ms + 1)?;
    let cpu_us = before.zip(after).map(|(b, a)| a.cpu_us - b.cpu_us);
    let report = Report {
        jobs: jobs.len(),
        create_ms: created_ms - begin_ms,
        jobs_created_per_sec: jobs.len() as f64 * 1000.0 / (created_ms - begin_ms).max(1) as f64,
        created_too_late: created_ms > start_ms,
        triggers_by_hand: serde_json::to_value(&*counts)?,
        drain_ms,
        runs_left: left,
        server_cpu_us: cpu_us,
        server_cpu_us_per_start: cpu_us.map(|cpu| cpu as f64 / seen.starts.max(1) as f64),
        server: after,
        lateness: seen,
    };
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(jobs.len() == specs.len() && left == 0)
}
