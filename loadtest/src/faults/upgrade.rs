//! `upgrade`: the program of an earlier release and the present one serve one data directory in turn, under load. Each
//! program ends once by kill -9, so that the other one reads its journal, and once in order, so that the other one reads
//! its snapshots. The checker judges the whole as the life of one node.
//!
//! When the present program has raised the format of the directory, the earlier one must refuse to start and must leave
//! the directory as it is. `process/directory_format.rs` computes which of the two is expected.

use crate::{
    checker::{Verdict, check_dir},
    endurance::tokens::Tokens,
    faults::{
        kill9::LATEST_MS,
        turns::{self, LEG_MS, LEGS, Turn, Turns, with_bodies},
    },
    load::{caller::Caller, open_loop, people},
    process::fleet::Fleet,
    run_dir::{
        export::{Scope, drain, export},
        lines::now_us,
    },
    test_cluster::Program,
    workload::{self, Plan, worked},
};
use campanile_schema::{
    ids::JobId,
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    view::TenantBody,
};
use clap::Args;
use std::{
    error::Error,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::{
    task::{JoinSet, block_in_place},
    time::sleep,
};

/// Before the first instant: jobs are created and executors connect, milliseconds.
const LEAD_MS: i64 = 6_000;
/// What a change of programs takes in the plan, milliseconds.
const CHANGE_MS: i64 = 4_000;
const DRAIN: Duration = Duration::from_secs(120);
const EXECUTORS: u32 = 2;
/// Bodies at once of each executor, and attempts that fail, of 100.
const SLOTS: u32 = 256;
const FAIL_PERCENT: u32 = 2;

#[derive(Args, Clone, Debug)]
pub struct UpgradeArgs {
    /// The node's program.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// The program of an earlier release.
    #[arg(long)]
    pub old_bin: PathBuf,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    #[arg(long, default_value_t = 1_000)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 100.0)]
    pub rate: f64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// True: the verdict is green, and both programs did what the formats say.
pub async fn run(args: UpgradeArgs) -> Result<bool, Box<dyn Error>> {
    let mut fleet = Fleet::new(&args.dir, &args.old_bin)?;
    let keys = fleet.dir.join("secrets.keys");
    write_key(&args.old_bin, &keys)?;
    fleet.setup.key_file = Some(keys);
    let tokens = Tokens::new(&args.old_bin, fleet.dir.join("tokens"));
    let token = tokens.add("upgrade", &["operator"])?;
    let node = fleet.start_server(tokens.file(), &token)?;
    let caller = fleet.caller(&node).await?;
    for _ in 0..EXECUTORS {
        fleet.start_executor(&node, "default", SLOTS, FAIL_PERCENT, 1)?;
    }
    fleet.executors_ready(caller.client()).await?;
    let Load { plan, begin_ms, jobs, mut calls } = start_load(&args, &caller).await?;

    let mut turns = Turns::new(&args, fleet, tokens, token)?;
    let node = turns.all(node).await?;
    sleep(Duration::from_millis((plan.end_ms + 1_000 - now_us() / 1000).max(0).unsigned_abs())).await;
    while calls.join_next().await.is_some() {}
    let left = drain(caller.client(), DRAIN).await?;
    println!("drained; {left} runs are still open");
    let scope = Scope {
        from_ms: begin_ms - 1_000,
        until_ms: plan.end_ms + 1_000,
        drained: true,
        quotas: [(workload::TIGHT.0.to_owned(), workload::TIGHT.1)].into(),
        latest_ms: Some(LATEST_MS),
        ..Scope::default()
    };
    let Turns { fleet, done, .. } = turns;
    let complete = export(caller.client(), &jobs, scope, &fleet.dir).await?;
    println!("exported {} jobs, complete: {complete}", jobs.len());
    turns::stop(node)?;
    let (dir, data) = (fleet.dir.clone(), turns::data(&fleet));
    fleet.finish(caller)?;
    let verdict = block_in_place(|| check_dir(&dir))?;
    fs::write(dir.join("verdict.json"), serde_json::to_vec_pretty(&verdict)?)?;
    println!("{verdict}");
    let checked = said(&args.server_bin, &["store", "check", &data.to_string_lossy()]);
    if let Err(error) = &checked {
        println!("RED: {error}");
    }
    let green = judge(&verdict, &with_bodies(&dir, done)?);
    Ok(green && checked.is_ok())
}

/// What runs while programs take their turns.
struct Load {
    plan: Plan,
    begin_ms: i64,
    jobs: Vec<JobId>,
    calls: JoinSet<()>,
}

/// Creates the jobs and starts the calls; it returns when the first instant is due.
async fn start_load(args: &UpgradeArgs, caller: &Caller) -> Result<Load, Box<dyn Error>> {
    let begin_ms = now_us() / 1000;
    let start_ms = begin_ms + LEAD_MS;
    let changes = LEGS.len() as i64;
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + (changes + 1) * LEG_MS as i64 + changes * CHANGE_MS,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "u".to_owned(),
        seed: args.seed,
    };
    let quota = TenantBody { max_concurrent_runs: workload::TIGHT.1, ..TenantBody::default() };
    caller.client().tenant_set(workload::TIGHT.0, quota).await?;
    let mut specs = workload::mixed(&plan);
    specs.extend(workload::watched(&plan));
    let worked = worked::worked(&plan);
    let first_worked = specs.len();
    specs.extend(worked.iter().map(|(_, spec)| spec.clone()));
    let ids = caller.create_many(&specs).await;
    let jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    if jobs.len() < specs.len() {
        return Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()).into());
    }
    let mut calls = start_calls(args, &plan, caller, &specs[..first_worked], &ids);
    people::persons(&mut calls, caller, worked::with_ids(worked, &jobs[first_worked..]), plan.end_ms, plan.seed);
    sleep(Duration::from_millis((start_ms - now_us() / 1000).max(0).unsigned_abs())).await;
    Ok(Load { plan, begin_ms, jobs, calls })
}

/// Runs a program to its end; what it wrote.
fn said(binary: &Path, args: &[&str]) -> io::Result<String> {
    let output = Command::new(binary).args(args).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{} {} failed: {}", binary.display(), args.join(" "), told.trim())))
}

/// The key that seals secret params, for its owner only.
fn write_key(binary: &Path, path: &Path) -> io::Result<()> {
    let key = said(binary, &["secrets", "new-key"])?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(key.as_bytes())
}

/// A program that ran no body shows nothing of the directory.
fn judge(verdict: &Verdict, turns: &[Turn]) -> bool {
    let mut green = verdict.green;
    for turn in turns {
        println!("turn: {turn}");
        if turn.served.as_ref().is_some_and(|served| served.bodies == 0) {
            println!("RED: {:?} ran no body in its turn: nothing is shown of it", turn.program);
            green = false;
        }
    }
    let of = |program: Program| turns.iter().any(|turn| turn.program == program && turn.served.is_some());
    if !of(Program::Earlier) || !of(Program::Present) {
        println!("RED: only one of the two programs had a turn");
        green = false;
    }
    let refused = turns.iter().filter(|turn| turn.served.is_none()).count();
    let word = if green { "GREEN" } else { "RED" };
    println!(
        "{word} upgrade: {} turns of two programs on one directory, {refused} of them refused in words",
        turns.len()
    );
    green
}

fn start_calls(
    args: &UpgradeArgs,
    plan: &Plan,
    caller: &Caller,
    specs: &[JobSpec],
    ids: &[Option<JobId>],
) -> JoinSet<()> {
    let of = |wanted: fn(&JobSpec) -> bool| -> Vec<JobId> {
        specs.iter().zip(ids).filter(|(spec, _)| wanted(spec)).filter_map(|(_, id)| *id).collect()
    };
    let manual = of(|spec| matches!(spec.trigger, Trigger::Manual {}));
    let mut paused = of(|spec| {
        matches!(spec.trigger, Trigger::FixedRate { .. }) && spec.concurrency_policy != ConcurrencyPolicy::Replace
    });
    paused.truncate(paused.len() / 20);
    let (by_hand, end_ms, seed) = (args.rate / 10.0, plan.end_ms, plan.seed);
    let hands = caller.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move {
        let _ = open_loop::triggers(hands, manual, by_hand, end_ms, seed).await;
    });
    calls.spawn(open_loop::pauses(caller.clone(), paused, end_ms, seed));
    calls
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{
        checker::{Findings, History, ViolationKind},
        faults::turns::Served,
    };

    fn verdict(found: &[ViolationKind]) -> Verdict {
        let history = History::default();
        let mut findings = Findings::new(&history);
        found.iter().for_each(|kind| findings.of_all(*kind, "x"));
        findings.into_verdict()
    }

    fn turn(program: Program, bodies: Option<usize>) -> Turn {
        Turn { program, served: bodies.map(|bodies| Served { bodies, ..Served::default() }) }
    }

    #[test]
    fn it_is_green_only_when_both_programs_ran_bodies_and_nothing_was_lost() {
        let whole = [(Program::Earlier, Some(3)), (Program::Present, Some(4)), (Program::Earlier, None)]
            .map(|(program, bodies)| turn(program, bodies));
        assert!(judge(&verdict(&[]), &whole));
        assert!(!judge(&verdict(&[ViolationKind::TriggerLost]), &whole));
        assert!(!judge(&verdict(&[]), &whole[..1]), "the present program had no turn");
        assert!(!judge(&verdict(&[]), &whole[1..]), "the earlier program only was refused");
        let idle = [turn(Program::Earlier, Some(3)), turn(Program::Present, Some(0))];
        assert!(!judge(&verdict(&[]), &idle), "a turn without a body shows nothing");
    }
}
