//! `backfill`: a live load whose lateness is measured for a while, and then beside backfills of very many instants. It reports how much later
//! live bodies begin because of them, and how fast the past is run.

use crate::{
    load::{
        caller::{CallOutcome, Caller},
        latency::{Lateness, Percentiles, lateness},
    },
    process::{
        fleet::Fleet,
        proc_stat::{Usage, machine_cpu_us},
    },
    run_dir::lines::{BackfillLine, now_us},
    workload::{self, Plan, rate_at},
};
use campanile_client::Client;
use campanile_schema::{
    ids::{BackfillId, JobId},
    job::{ConcurrencyPolicy, JobSpec, MisfirePolicy},
    limits::{BACKFILL_INSTANTS, BACKFILL_PARALLEL_MAX},
    stored::backfill::{BackfillMode, BackfillState},
    time::Timestamp,
    view::TenantBody,
};
use clap::Args;
use serde::Serialize;
use std::{error::Error, path::PathBuf, time::Duration};
use tokio::{task::block_in_place, time::sleep};

/// Distance of the instants that are run, seconds.
const EVERY_SEC: u64 = 1;
/// From the last instant that is run to the creation of its job, seconds.
const GAP_SEC: u64 = 3_600;
/// After the end of a window its last bodies have begun within this time.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Args, Clone, Debug)]
pub struct BackfillArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    /// Instants of the past that are run, of all backfills together.
    #[arg(long, default_value_t = 1_000_000)]
    pub instants: u64,
    /// Backfills, each of a job of its own.
    #[arg(long, default_value_t = 10)]
    pub backfills: u64,
    /// Runs of each backfill that are open at once.
    #[arg(long, default_value_t = 50)]
    pub parallelism: u32,
    /// Live jobs, and their due instants per second.
    #[arg(long, default_value_t = 50_000)]
    pub jobs: u64,
    #[arg(long, default_value_t = 10_000.0)]
    pub rate: f64,
    /// The live load alone, seconds.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// The live load beside backfills lasts so long at most, seconds; what is not run by then is told.
    #[arg(long, default_value_t = 300)]
    pub most_seconds: u64,
    #[arg(long, default_value_t = 2)]
    pub executors: u32,
    /// Bodies at once, per executor.
    #[arg(long, default_value_t = 4_096)]
    pub slots: u32,
    /// Between the first create and the first instant, milliseconds per 1,000 jobs, and at least five seconds.
    #[arg(long, default_value_t = 100)]
    pub lead_ms: u64,
    /// Report red when the live p99 beside backfills is more than this many times that without them.
    #[arg(long)]
    pub most_ratio: Option<f64>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub rate: f64,
    pub instants: u64,
    pub alone: LiveLoad,
    pub beside: LiveLoad,
    /// Live p99 lateness beside backfills to that without.
    pub p99_ratio: f64,
    /// Runs of backfills that have ended, and all instants that are decided.
    pub ran: u64,
    pub decided: u64,
    pub failed: u64,
    /// All backfills are done.
    pub done: bool,
    pub backfill_seconds: f64,
    pub backfilled_per_sec: f64,
    /// CPU of all others on the machine while it was measured, cores.
    pub others_cores: f64,
}

/// A window of the live load.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveLoad {
    pub seconds: f64,
    pub start: Percentiles,
    /// Of the instants that were due.
    pub all_started: bool,
    pub node_cores: f64,
}

/// True: every live instant has begun, and what was asked was reached.
pub async fn run(args: BackfillArgs) -> Result<bool, Box<dyn Error>> {
    let report = measure(&args).await?;
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(args.dir.join("report.json"), &text)?;
    println!("{text}\n\n{}", table(&report));
    Ok(is_green(&args, &report))
}

fn is_green(args: &BackfillArgs, report: &Report) -> bool {
    let near = args.most_ratio.is_none_or(|most| report.p99_ratio <= most);
    near && report.done && report.failed == 0 && report.alone.all_started && report.beside.all_started
}

/// How far all backfills have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    ended: u64,
    failed: u64,
    decided: u64,
    open: u64,
    finished: usize,
}

impl Progress {
    async fn of(client: &Client, backfills: &[BackfillId]) -> Result<Self, Box<dyn Error>> {
        let mut sum = Self::default();
        for id in backfills {
            let view = client.backfill_get(*id).await?;
            sum.finished += usize::from(view.state.is_some_and(BackfillState::is_final));
            let Some(progress) = view.progress else { continue };
            sum.ended += progress.succeeded + progress.failed + progress.canceled;
            sum.failed += progress.failed + progress.canceled;
            sum.open += progress.active;
            sum.decided += progress.started + progress.existing + progress.unknown + progress.differing + progress.gone;
        }
        Ok(sum)
    }
}

async fn measure(args: &BackfillArgs) -> Result<Report, Box<dyn Error>> {
    let each = sizes(args)?;
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let node = fleet.start_node(None)?;
    let caller = fleet.caller(&node).await?;
    for _ in 0..args.executors {
        fleet.start_executor(&node, "default", args.slots, 0, 5)?;
    }
    fleet.executors_ready(caller.client()).await?;
    caller.client().tenant_set("default", TenantBody::default()).await?;
    let plan = plan(args);
    let backfilled = create(args, &plan, &caller).await?;
    let cores = |since: Usage, seconds: f64| -> Result<f64, Box<dyn Error>> {
        Ok((Usage::of(node.pid())?.cpu_us - since.cpu_us) as f64 / 1e6 / seconds.max(1e-3))
    };
    let until = |ms: i64| sleep(Duration::from_millis((ms - now_us() / 1000).max(0).unsigned_abs()));

    until(plan.start_ms).await;
    let (machine, begin_us, before) = (machine_cpu_us()?, now_us(), Usage::of(node.pid())?);
    let of_ours = || {
        let pids = fleet.executor_pids().into_iter().chain([node.pid(), std::process::id()]);
        pids.filter_map(|pid| Usage::of(pid).ok()).map(|usage| usage.cpu_us).sum::<u64>()
    };
    let ours = of_ours();
    let alone = (plan.start_ms, plan.start_ms + args.seconds as i64 * 1_000);
    until(alone.1).await;
    let alone_cores = cores(before, args.seconds as f64)?;

    let before = Usage::of(node.pid())?;
    let began_ms = now_us() / 1000;
    let ids = start(args, &caller, &backfilled, each).await?;
    let progress = follow(args, caller.client(), &ids, began_ms).await?;
    let ended_ms = now_us() / 1000;
    let seconds = (ended_ms - began_ms) as f64 / 1e3;
    let beside_cores = cores(before, seconds)?;
    sleep(SETTLE).await;
    let took_s = (now_us() - begin_us) as f64 / 1e6;
    let used = of_ours().saturating_sub(ours);
    let others_cores = machine_cpu_us()?.saturating_sub(machine).saturating_sub(used) as f64 / 1e6 / took_s;

    let dir = fleet.dir.clone();
    block_in_place(|| node.stop(Duration::from_secs(30)))?;
    fleet.finish(caller)?;
    let of = |(from_ms, to_ms): (i64, i64)| block_in_place(|| lateness(&dir, from_ms, to_ms));
    let live = |seen: Lateness, seconds: f64, node_cores: f64| LiveLoad {
        seconds,
        // A second that is cut at an end of the window may lack a second's worth of instants.
        all_started: seen.start.count as f64 >= args.rate * (seconds - 1.0),
        start: seen.start,
        node_cores,
    };
    let alone = live(of(alone)?, args.seconds as f64, alone_cores);
    let beside = live(of((began_ms, ended_ms))?, seconds, beside_cores);
    Ok(Report {
        rate: args.rate,
        instants: args.instants,
        p99_ratio: beside.start.p99_ms / alone.start.p99_ms.max(1e-3),
        alone,
        beside,
        ran: progress.ended,
        decided: progress.decided,
        failed: progress.failed,
        done: progress.finished == ids.len() && progress.ended >= args.instants,
        backfill_seconds: seconds,
        backfilled_per_sec: progress.ended as f64 / seconds.max(1e-3),
        others_cores,
    })
}

/// Instants of each backfill.
fn sizes(args: &BackfillArgs) -> Result<Vec<u64>, String> {
    let (all, count) = (args.instants, args.backfills);
    if count == 0 || all < count || all.div_ceil(count) > BACKFILL_INSTANTS || args.parallelism > BACKFILL_PARALLEL_MAX
    {
        return Err(format!(
            "{all} instants in {count} backfills of {} runs at once: each has at least one, and at most {BACKFILL_INSTANTS}; \
             at most {BACKFILL_PARALLEL_MAX} run at once",
            args.parallelism
        ));
    }
    Ok((0..count).map(|n| all / count + u64::from(n < all % count)).collect())
}

fn plan(args: &BackfillArgs) -> Plan {
    let lead_ms = (args.jobs * args.lead_ms / 1_000).max(5_000);
    let start_ms = now_us() / 1000 + lead_ms as i64;
    Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + (args.seconds + args.most_seconds + SETTLE.as_secs()) as i64 * 1_000,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "live".to_owned(),
        seed: 1,
    }
}

/// The live jobs, and those whose past is run, whose ids these are.
async fn create(args: &BackfillArgs, plan: &Plan, caller: &Caller) -> Result<Vec<JobId>, String> {
    let begin_ms = now_us() / 1000;
    let specs: Vec<JobSpec> = (0..args.backfills)
        .map(|n| {
            // Live it is due until the measuring begins. An anchor in the future would be its first instant.
            let window = (None, Some(Timestamp(plan.start_ms)));
            let past_sec = args.instants * EVERY_SEC + args.seconds + 2 * GAP_SEC;
            let trigger = rate_at(window, EVERY_SEC, plan.start_ms - past_sec as i64 * 1_000, (MisfirePolicy::Skip, 1));
            let mut spec = JobSpec::new("default", &format!("past/{n:05}"), trigger);
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            spec
        })
        .collect();
    let ids: Vec<JobId> = caller.create_many(&specs).await.into_iter().flatten().collect();
    let live = workload::even(plan);
    let made = caller.create_many(&live).await.into_iter().flatten().count();
    if ids.len() < specs.len() || made < live.len() {
        return Err(format!(
            "only {made} of {} live jobs and {} of {} others were created",
            live.len(),
            ids.len(),
            specs.len()
        ));
    }
    println!("{} jobs created in {} ms", made + ids.len(), now_us() / 1000 - begin_ms);
    if now_us() / 1000 > plan.start_ms {
        return Err("the jobs took too long to create: name a higher --lead-ms".to_owned());
    }
    Ok(ids)
}

async fn start(
    args: &BackfillArgs,
    caller: &Caller,
    jobs: &[JobId],
    each: Vec<u64>,
) -> Result<Vec<BackfillId>, String> {
    let mut ids = Vec::new();
    // All before the jobs were there, so that every instant is missing.
    let to_ms = now_us() / 1000 - (args.seconds + GAP_SEC) as i64 * 1_000;
    for (job, instants) in jobs.iter().zip(each) {
        let from_ms = to_ms - (instants * EVERY_SEC * 1_000) as i64 + 1;
        let (mode, parallelism) = (BackfillMode::Missing, args.parallelism);
        let line = BackfillLine { id: None, mode, from_ms, to_ms, parallelism, unknown_run: false };
        match caller.backfill(*job, line).await {
            CallOutcome::Done(id) => ids.push(id),
            other => return Err(format!("a backfill of job {job} was not taken: {other:?}")),
        }
    }
    Ok(ids)
}

/// Tells each second how far they are, until they have ended or the time is over.
async fn follow(
    args: &BackfillArgs,
    client: &Client,
    ids: &[BackfillId],
    began_ms: i64,
) -> Result<Progress, Box<dyn Error>> {
    let mut before = Progress::default();
    loop {
        sleep(Duration::from_secs(1)).await;
        let now = Progress::of(client, ids).await?;
        let second = (now_us() / 1000 - began_ms) / 1000;
        println!(
            "    {second:>4} s: {} of {} instants run ({}/s), {} open, {} of {} backfills ended",
            now.ended,
            args.instants,
            now.ended - before.ended.min(now.ended),
            now.open,
            now.finished,
            ids.len()
        );
        if now.finished == ids.len() || second >= args.most_seconds as i64 {
            return Ok(now);
        }
        before = now;
    }
}

fn table(r: &Report) -> String {
    let row = |name: &str, live: &LiveLoad| {
        let p = &live.start;
        format!(
            "{name:<24} {:>9.2} {:>9.2} {:>9.2} {:>9.2}   ms over {} runs in {:.0} s; {:.2} cores of the node\n",
            p.p50_ms, p.p99_ms, p.p999_ms, p.max_ms, p.count, live.seconds, live.node_cores
        )
    };
    format!(
        "{:<24} {:>9} {:>9} {:>9} {:>9}\n{}{}live p99 beside backfills: {:.2} times that without ({:.0} live triggers/s)\n\
         backfills: {} of {} instants run in {:.0} s, {:.0}/s, {} not successful; {}; others used {:.2} cores",
        "live lateness",
        "p50",
        "p99",
        "p99.9",
        "max",
        row("alone", &r.alone),
        row("beside backfills", &r.beside),
        r.p99_ratio,
        r.rate,
        r.ran,
        r.instants,
        r.backfill_seconds,
        r.backfilled_per_sec,
        r.failed,
        if r.done { "done" } else { "not done" },
        r.others_cores
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BackfillArgs,
    }

    fn args(more: &[&str]) -> BackfillArgs {
        let line = ["backfill", "--server-bin", "x", "--dir", "y"].iter().chain(more);
        Line::try_parse_from(line).unwrap().args
    }

    fn report(p99_ratio: f64, done: bool, all_started: bool) -> Report {
        let live = LiveLoad { all_started, ..LiveLoad::default() };
        Report {
            rate: 1.0,
            instants: 1,
            alone: live.clone(),
            beside: live,
            p99_ratio,
            ran: 1,
            decided: 1,
            failed: 0,
            done,
            backfill_seconds: 1.0,
            backfilled_per_sec: 1.0,
            others_cores: 0.0,
        }
    }

    #[test]
    fn the_instants_are_divided_without_a_rest_within_the_limit_of_a_backfill() {
        assert_eq!(sizes(&args(&["--instants", "11", "--backfills", "3"])).unwrap(), [4, 4, 3]);
        assert_eq!(sizes(&args(&["--backfills", "1"])).unwrap(), [1_000_000]);
        for wrong in [["--instants", "1000001"], ["--instants", "0"], ["--parallelism", "201"]] {
            assert!(sizes(&args(&[&wrong[..], &["--backfills", "1"]].concat())).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn it_is_green_when_all_of_it_ran_and_the_live_load_was_in_time() {
        let (any, near) = (args(&[]), args(&["--most-ratio", "1.2"]));
        assert!(is_green(&any, &report(3.0, true, true)));
        assert!(!is_green(&any, &report(1.0, false, true)), "the backfills were not done");
        assert!(!is_green(&any, &report(1.0, true, false)), "live instants are missing");
        assert!(is_green(&near, &report(1.2, true, true)));
        assert!(!is_green(&near, &report(1.21, true, true)));
        assert!(!is_green(&any, &Report { failed: 1, ..report(1.0, true, true) }));
    }
}
