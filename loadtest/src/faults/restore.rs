//! `restore`: the real node is backed up under load, goes on for a while, is killed for good, and its archive is restored in another
//! place; that node goes on with the same executors and callers. The checker judges the life of the restored node: what came
//! before the backup and what came after the restore. What the first node did in between is nobody's promise and is left out
//! ([`crate::run_dir::forget`]); but no body of a job that is not idempotent may run again because of it.

use crate::{
    checker::{LONG_ENOUGH_MS, Verdict, ViolationKind, check_dir},
    faults::kill9::LATEST_MS,
    load::{caller::Caller, dag_people, open_loop, people},
    process::{fleet::Fleet, node::Node},
    run_dir::{
        export::{Scope, drain, export},
        forget::{Between, forget},
        lines::{FaultEvent, FaultLine, now_us},
    },
    workload::{self, Plan, dags, worked},
};
use campanile_schema::{
    ids::JobId,
    job::{JobSpec, Trigger},
    view::TenantBody,
};
use clap::Args;
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::{
    task::{JoinSet, block_in_place},
    time::{Instant, sleep},
};

/// Before the first instant, milliseconds per 1,000 jobs, and at least.
const LEAD_MS: (i64, i64) = (300, 5_000);
/// Of load before the backup; after it, before the kill; after the restore; milliseconds.
const BEFORE_MS: i64 = 10_000;
const BETWEEN_MS: u64 = 4_000;
const AFTER_MS: i64 = 8_000;
/// What backup, restore and restart take in the plan, milliseconds.
const MOVE_MS: i64 = 10_000;
const DRAIN: Duration = Duration::from_secs(120);
/// DAGs of the load.
const DAGS: u64 = 12;
/// While a backup is written, no call may take longer: generous, for a busy machine.
const RESPONSIVE: Duration = Duration::from_secs(5);

/// What becomes of instants between backup and restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Since {
    /// Misfire policies decide.
    Backup,
    /// They are skipped.
    Now,
}

#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The node's program.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    #[arg(long, default_value_t = 5_000)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 500.0)]
    pub rate: f64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// As `campanile store restore --since`.
    #[arg(long, value_enum, default_value_t = Since::Backup)]
    pub since: Since,
    /// Put a defect into the backup (its cut lies too early) and expect a red verdict; the node must have the feature `faults`.
    #[arg(long)]
    pub early_cut: bool,
}

/// True: the verdict is the one that was expected.
pub async fn run(args: RestoreArgs) -> Result<bool, Box<dyn Error>> {
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let fault = args.early_cut.then(|| "mutation:backup_early_cut".to_owned());
    let node = fleet.start_node(fault)?;
    let caller = fleet.caller(&node).await?;
    for _ in 0..2 {
        fleet.start_executor(&node, "default", 256, 2, 1)?;
    }
    fleet.executors_ready(caller.client()).await?;
    let begin_ms = now_us() / 1000;
    let start_ms = begin_ms + LEAD_MS.1.max(args.jobs as i64 * LEAD_MS.0 / 1000);
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + BEFORE_MS + BETWEEN_MS as i64 + MOVE_MS + AFTER_MS,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "r".to_owned(),
        seed: args.seed,
    };
    let quota = TenantBody { max_concurrent_runs: workload::TIGHT.1, ..TenantBody::default() };
    caller.client().tenant_set(workload::TIGHT.0, quota).await?;
    let mut specs = workload::mixed(&plan);
    let worked = worked::worked(&plan);
    let first_worked = specs.len();
    specs.extend(worked.iter().map(|(_, spec)| spec.clone()));
    let first_backfilled = specs.len();
    specs.extend(worked::backfilled(&plan));
    let with_dags = dags::dags(&plan, DAGS);
    let first_part = specs.len();
    specs.extend(with_dags.parts);
    let ids = caller.create_many(&specs).await;
    let jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    if jobs.len() < specs.len() {
        return Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()).into());
    }
    let dag_ids = dag_people::create(&caller, &with_dags.dags).await?;
    let mut calls = start_calls(&args, &plan, &caller, &specs[..first_worked], &ids);
    people::start(&mut calls, &caller, worked::with_ids(worked, &jobs[first_worked..]), plan.end_ms, plan.seed);
    people::backfills(&mut calls, &caller, &jobs[first_backfilled..first_part], plan.end_ms, plan.seed);
    dag_people::start(&mut calls, &caller, &dag_ids.by_hand, plan.end_ms, plan.seed);
    sleep(Duration::from_millis((start_ms + BEFORE_MS - now_us() / 1000).max(0).unsigned_abs())).await;

    let archive = fleet.dir.join("archive");
    let backup_us = now_us();
    backup(&args.server_bin, &node, &archive, &caller).await?;
    println!("backup of {} bytes in {} ms", fs::metadata(&archive)?.len(), (now_us() - backup_us) / 1000);
    sleep(Duration::from_millis(BETWEEN_MS)).await;
    block_in_place(|| node.kill9("for good"))?;
    let data = fleet.dir.join("data/node");
    fs::rename(&data, fleet.dir.join("data-of-the-first"))?;
    let line = FaultLine::now(FaultEvent::NodeRestored, None);
    restore(&args, &archive, &data)?;
    fleet.faults.line(&line);
    let node = fleet.start_node(None)?;
    let ready_us = now_us();
    println!("restored and ready {} ms after the backup began", (ready_us - backup_us) / 1000);

    sleep(Duration::from_millis((plan.end_ms.max(ready_us / 1000 + AFTER_MS) - now_us() / 1000).max(0).unsigned_abs()))
        .await;
    while calls.join_next().await.is_some() {}
    let left = drain(caller.client(), DRAIN).await?;
    println!("drained; {left} runs are still open");
    let quotas = [(workload::TIGHT.0.to_owned(), workload::TIGHT.1)].into();
    let until_ms = plan.end_ms + 1_000;
    let scope = Scope {
        from_ms: begin_ms - 1_000,
        until_ms,
        drained: true,
        quotas,
        latest_ms: Some(LATEST_MS),
        dags: dag_ids.all.iter().copied().collect(),
        uses_all: !args.early_cut && plan.end_ms - plan.start_ms >= LONG_ENOUGH_MS,
        ..Scope::default()
    };
    let all: Vec<JobId> = jobs.into_iter().chain(dag_ids.all).collect();
    let complete = export(caller.client(), &all, scope, &fleet.dir).await?;
    println!("exported {} jobs, complete: {complete}", all.len());
    let dir = fleet.dir.clone();
    block_in_place(|| node.stop(Duration::from_secs(20)))?;
    fleet.finish(caller)?;
    let left_out = forget(&dir, Between { from_us: backup_us, to_us: ready_us })?;
    println!("{left_out}");
    let verdict = block_in_place(|| check_dir(&dir))?;
    println!("{verdict}");
    let again = left_out.again.len();
    let green = verdict.green && again == 0;
    Ok(if args.early_cut {
        let found = is_found(&verdict);
        let word = match (found, green) {
            (true, _) => "RED, found",
            (false, true) => "GREEN, not found",
            (false, false) => "RED for another reason, not found",
        };
        println!("mutation backup_early_cut {word}");
        found
    } else {
        green
    })
}

/// What a backup that ends too early must be found as: what was acknowledged or started before it is gone.
const OF_EARLY_CUT: [ViolationKind; 5] = [
    ViolationKind::OutcomeMissing,
    ViolationKind::RunMissing,
    ViolationKind::StartUnknown,
    ViolationKind::TriggerLost,
    ViolationKind::CreateLost,
];

fn is_found(verdict: &Verdict) -> bool {
    OF_EARLY_CUT.iter().any(|kind| verdict.has(*kind))
}

fn start_calls(
    args: &RestoreArgs,
    plan: &Plan,
    caller: &Caller,
    specs: &[JobSpec],
    ids: &[Option<JobId>],
) -> JoinSet<()> {
    let of = |wanted: fn(&JobSpec) -> bool| -> Vec<JobId> {
        specs.iter().zip(ids).filter(|(spec, _)| wanted(spec)).filter_map(|(_, id)| *id).collect()
    };
    let manual = of(|spec| matches!(spec.trigger, Trigger::Manual {}));
    let mut calls = JoinSet::new();
    let (hands, by_hand, end_ms, seed) = (caller.clone(), args.rate / 10.0, plan.end_ms, plan.seed);
    calls.spawn(async move {
        let counts = open_loop::triggers(hands, manual, by_hand, end_ms, seed).await;
        println!("triggers by hand: {}", serde_json::to_string(&*counts).unwrap_or_default());
    });
    calls
}

/// By the program, as an operator makes it; the node answers others meanwhile.
async fn backup(program: &Path, node: &Node, archive: &Path, caller: &Caller) -> Result<(), Box<dyn Error>> {
    let mut command = tokio::process::Command::new(program);
    command.args(["store", "backup", "--server", &node.http, "--token", &node.token]).arg(archive).kill_on_drop(true);
    let mut running = command.spawn()?;
    let mut slowest = Duration::ZERO;
    let status = loop {
        if let Some(status) = running.try_wait()? {
            break status;
        }
        let asked = Instant::now();
        caller.client().system_info().await?;
        slowest = slowest.max(asked.elapsed());
        sleep(Duration::from_millis(5)).await;
    };
    println!("slowest answer during the backup: {} ms", slowest.as_millis());
    if !status.success() {
        return Err(format!("the backup ended with {status}").into());
    }
    if slowest > RESPONSIVE {
        return Err(format!("a call took {slowest:?} during the backup").into());
    }
    Ok(())
}

fn restore(args: &RestoreArgs, archive: &Path, data: &Path) -> Result<(), Box<dyn Error>> {
    let since = match args.since {
        Since::Backup => "backup",
        Since::Now => "now",
    };
    let mut command = Command::new(&args.server_bin);
    command.args(["store", "restore", "--since", since]).arg(archive).arg("--data").arg(data);
    let status = block_in_place(|| command.status())?;
    if status.success() { Ok(()) } else { Err(format!("the restore ended with {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{Findings, History};

    #[test]
    fn a_backup_that_ends_too_early_is_found_by_what_is_gone_only() {
        for kind in ViolationKind::ALL {
            let history = History::default();
            let mut findings = Findings::new(&history);
            findings.of_all(*kind, "x");
            assert_eq!(is_found(&findings.into_verdict()), OF_EARLY_CUT.contains(kind), "{kind:?}");
        }
        assert!(!is_found(&Findings::new(&History::default()).into_verdict()));
    }
}
