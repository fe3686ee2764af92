//! `bench`: the whole path of a trigger, end to end and durable, with executors in other processes. The instants of the
//! jobs are spread evenly over every millisecond. It measures how late bodies start and end.

use crate::{
    checker::check_dir,
    load::{
        caller::Caller,
        latency::{Lateness, lateness},
    },
    process::{
        fleet::Fleet,
        proc_stat::{Usage, dir_bytes, machine_cpu_us},
    },
    run_dir::{
        export::{Scope, drain, export},
        lines::now_us,
    },
    workload::{self, Plan},
};
use campanile_schema::{ids::JobId, view::TenantBody};
use clap::Args;
use serde::Serialize;
use std::{
    error::Error,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::time::sleep;

#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    #[arg(long, default_value_t = 100_000)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 20_000.0)]
    pub rate: f64,
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    #[arg(long, default_value_t = 2)]
    pub executors: u32,
    /// Bodies at once, per executor.
    #[arg(long, default_value_t = 4_096)]
    pub slots: u32,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    /// Between the last create and the first instant, milliseconds.
    #[arg(long, default_value_t = 5_000)]
    pub lead_ms: i64,
    /// ONCE jobs, one for each instant, instead of FIXED_RATE jobs; `--jobs` is not used then.
    #[arg(long)]
    pub once: bool,
    /// First guess of what one create takes, microseconds: anchors are part of what is created, so the first instant is
    /// chosen before the creates begin.
    #[arg(long, default_value_t = 100)]
    pub create_us: u64,
    /// Export and check the history afterwards.
    #[arg(long)]
    pub check: bool,
    /// Report red when p99 lateness of starts is above this, milliseconds.
    #[arg(long)]
    pub p99_ms: Option<f64>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub jobs: u64,
    pub seconds: u64,
    pub rate_asked: f64,
    pub instants: u64,
    pub create_ms: i64,
    pub lateness: Lateness,
    pub all_started: bool,
    /// From the last instant until no run was open, milliseconds.
    pub drain_ms: i64,
    pub runs_left: u64,
    pub server_cpu_us_per_trigger: f64,
    pub server_cpu_cores: f64,
    pub server_rss_mb: u64,
    pub server_peak_rss_mb: u64,
    pub executors_cpu_us_per_trigger: f64,
    /// Of this process, which created the jobs before and waits meanwhile.
    pub harness_cpu_us_per_trigger: f64,
    /// CPU of all others on the machine meanwhile, cores; the kernel's own threads are among them.
    pub others_cores: f64,
    pub written_bytes_per_trigger: f64,
    pub disk_bytes_per_trigger: f64,
    pub disk_mb: u64,
    pub verdict: Option<String>,
}

/// True: what was asked was reached.
pub async fn run(args: BenchArgs) -> Result<bool, Box<dyn Error>> {
    let report = measure(&args).await?;
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(args.dir.join("report.json"), &text)?;
    println!("{text}\n\n{}", table(&report));
    let in_time = args.p99_ms.is_none_or(|limit| report.lateness.start.p99_ms <= limit);
    Ok(report.all_started && report.runs_left == 0 && in_time && report.verdict.as_deref() != Some("red"))
}

/// The run itself: starts a node and executors, and ends them.
pub async fn measure(args: &BenchArgs) -> Result<Report, Box<dyn Error>> {
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let node = fleet.start_node(None)?;
    let caller = fleet.caller(&node).await?;
    for _ in 0..args.executors {
        fleet.start_executor(&node, "default", args.slots, 0, 5)?;
    }
    fleet.executors_ready(caller.client()).await?;
    // No quota of the tenant shall be what is measured.
    caller.client().tenant_set("default", TenantBody::default()).await?;

    let begin_ms = now_us() / 1000;
    let (plan, jobs) = create(args, &caller).await?;
    let create_ms = now_us() / 1000 - begin_ms;
    println!("{} jobs created in {create_ms} ms", jobs.len());
    let until = |ms: i64| sleep(Duration::from_millis((ms - now_us() / 1000).max(0).unsigned_abs()));
    until(plan.start_ms).await;
    let executors: Vec<u32> = fleet.executor_pids();
    let executor_cpu = || executors.iter().filter_map(|pid| Usage::of(*pid).ok()).map(|u| u.cpu_us).sum::<u64>();
    let harness_cpu = || Usage::of(std::process::id()).map(|usage| usage.cpu_us);
    let (before, executors_before, disk_before) =
        (Usage::of(node.pid())?, executor_cpu(), dir_bytes(&fleet.dir.join("data")));
    let (harness_before, machine_before, begin) = (harness_cpu()?, machine_cpu_us()?, Instant::now());
    until(plan.end_ms + 1).await;
    let at_end = Usage::of(node.pid())?;
    let left = drain(caller.client(), Duration::from_secs(120)).await?;
    let drain_ms = now_us() / 1000 - plan.end_ms;
    let (after, executors_after, disk_after) =
        (Usage::of(node.pid())?, executor_cpu(), dir_bytes(&fleet.dir.join("data")));
    let harness_after = harness_cpu()?;
    let used = (after.cpu_us - before.cpu_us)
        + executors_after.saturating_sub(executors_before)
        + harness_after.saturating_sub(harness_before);
    let others = machine_cpu_us()?.saturating_sub(machine_before).saturating_sub(used);
    let others_cores = others as f64 / 1e6 / begin.elapsed().as_secs_f64();

    let dir = fleet.dir.clone();
    if args.check {
        let scope =
            Scope { from_ms: begin_ms - 1_000, until_ms: plan.end_ms + 1_000, drained: true, ..Scope::default() };
        export(caller.client(), &jobs, scope, &dir).await?;
    }
    tokio::task::block_in_place(|| node.stop(Duration::from_secs(20)))?;
    fleet.finish(caller)?;
    let seen = tokio::task::block_in_place(|| lateness(&dir, plan.start_ms, plan.end_ms + 1))?;
    let verdict = if args.check {
        let verdict = tokio::task::block_in_place(|| check_dir(&dir))?;
        println!("{verdict}");
        Some(if verdict.green { "green" } else { "red" }.to_owned())
    } else {
        None
    };
    let instants = (args.rate * args.seconds as f64) as u64;
    let per_trigger = |n: u64| n as f64 / seen.start.count.max(1) as f64;
    Ok(Report {
        jobs: plan.jobs,
        seconds: args.seconds,
        rate_asked: args.rate,
        instants,
        create_ms,
        all_started: seen.start.count >= instants,
        drain_ms,
        runs_left: left,
        server_cpu_us_per_trigger: per_trigger(after.cpu_us - before.cpu_us),
        server_cpu_cores: (at_end.cpu_us - before.cpu_us) as f64 / 1e6 / args.seconds.max(1) as f64,
        server_rss_mb: at_end.rss_kb / 1024,
        server_peak_rss_mb: after.peak_rss_kb / 1024,
        executors_cpu_us_per_trigger: per_trigger(executors_after.saturating_sub(executors_before)),
        harness_cpu_us_per_trigger: per_trigger(harness_after.saturating_sub(harness_before)),
        others_cores,
        written_bytes_per_trigger: per_trigger(after.write_bytes.saturating_sub(before.write_bytes)),
        disk_bytes_per_trigger: per_trigger(disk_after.saturating_sub(disk_before)),
        disk_mb: disk_after >> 20,
        verdict,
        lateness: seen,
    })
}

/// Creates the jobs in the first half of the time given; the first instant is some time after the last create.
async fn create(args: &BenchArgs, caller: &Caller) -> Result<(Plan, Vec<JobId>), Box<dyn Error>> {
    let asked = if args.once { (args.rate * args.seconds as f64) as u64 } else { args.jobs };
    let period_s = asked as f64 / args.rate;
    if !args.once && period_s > args.seconds as f64 {
        return Err(format!(
            "each of {asked} jobs is due every {period_s:.0} s at {}/s: run for as long (--seconds) or with fewer --jobs",
            args.rate
        )
        .into());
    }
    // Mended when it was too short.
    let mut guess_ms = args.lead_ms + (asked * args.create_us / 1000) as i64;
    for round in 0..3 {
        let start_ms = now_us() / 1000 + guess_ms;
        let plan = Plan {
            jobs: asked,
            rate: args.rate,
            start_ms,
            // Both ends belong to the window.
            end_ms: start_ms + args.seconds as i64 * 1000 - 1,
            pool: "default".to_owned(),
            tenant: "default".to_owned(),
            prefix: format!("b{round}"),
            seed: 1,
        };
        let specs = if args.once { workload::even_once(&plan) } else { workload::even(&plan) };
        let jobs: Vec<JobId> = caller.create_many(&specs).await.into_iter().flatten().collect();
        if jobs.len() as u64 != asked {
            return Err(format!("only {} of {asked} jobs were created", jobs.len()).into());
        }
        if now_us() / 1000 < start_ms - args.lead_ms / 2 {
            return Ok((plan, jobs));
        }
        for job in jobs {
            caller.delete(job).await;
        }
        guess_ms *= 3;
    }
    Err("the jobs take too long to create".into())
}

fn table(r: &Report) -> String {
    let row = |name: &str, p: &crate::load::latency::Percentiles| {
        format!(
            "{name:<24} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}   ms over {} runs\n",
            p.p50_ms, p.p90_ms, p.p99_ms, p.p999_ms, p.max_ms, p.count
        )
    };
    format!(
        "{:<24} {:>9} {:>9} {:>9} {:>9} {:>9}\n{}{}rate {:.0}/s (asked {:.0}/s, fewest in a second {}), {} jobs, {} s, drained {} ms after the last instant\n\
         server: {:.1} us CPU per trigger ({:.2} cores), RSS {} MB (peak {} MB); executors {:.1}, harness {:.1} us CPU per trigger\n\
         disk: {:.0} bytes written and {:.0} bytes kept per trigger, {} MB in all",
        "lateness",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        row("due -> body started", &r.lateness.start),
        row("due -> body ended", &r.lateness.end),
        r.lateness.starts_per_sec,
        r.rate_asked,
        r.lateness.slowest_sec,
        r.jobs,
        r.seconds,
        r.drain_ms,
        r.server_cpu_us_per_trigger,
        r.server_cpu_cores,
        r.server_rss_mb,
        r.server_peak_rss_mb,
        r.executors_cpu_us_per_trigger,
        r.harness_cpu_us_per_trigger,
        r.written_bytes_per_trigger,
        r.disk_bytes_per_trigger,
        r.disk_mb,
    )
}
