//! `executor-loss`: two scenarios, step by step. In the first, an executor is killed while its bodies run: the bodies
//! are suspected, taken back when the lease ends, and finished by another executor, but one that is not idempotent
//! waits for a person. In the second, the node is killed while bodies run: it adopts them and does not start them
//! again. The checker also judges both.

use crate::{
    checker::{History, check_dir},
    load::caller::{CallOutcome, Caller},
    process::{fleet::Fleet, node::Node},
    run_dir::{
        export::{Scope, drain, export},
        lines::{ExecutorEvent, ExecutorLine, now_us},
    },
};
use campanile_schema::{
    ids::{JobId, RunId},
    job::{JobSpec, Trigger},
    limits::{LEASE_MS, SUSPECT_MS},
    payload::Payload,
    record::{AttemptState, RunState},
    view::{ConfirmDecision, RunView},
};
use clap::Args;
use std::{
    collections::HashMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Runs of the first story that may be started again, and that may not.
const IDEMPOTENT: usize = 8;
const NOT_IDEMPOTENT: usize = 4;
/// Runs of the second.
const ADOPTED: usize = 20;
/// A body outlives the suspicion, but not the patience of the one who watches, milliseconds.
const BODY_MS: u64 = 8_000;
const ADOPTED_BODY_MS: u64 = 5_000;
/// A run that waits for a person must still do so after this time.
const STAYS: Duration = Duration::from_secs(3);
/// No step may take longer.
const STEP: Duration = Duration::from_secs(60);
/// The node looks at silence in steps, milliseconds.
const LATE_MS: i64 = 3_000;

#[derive(Args, Clone, Debug)]
pub struct LossArgs {
    /// The node's program.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
}

/// True: both stories went as promised, and the checker is green.
pub async fn run(args: LossArgs) -> Outcome<bool> {
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let node = fleet.start_node(None)?;
    let caller = fleet.caller(&node).await?;
    let begin_ms = now_us() / 1000;
    for _ in 0..2 {
        fleet.start_executor(&node, "default", 64, 0, 0)?;
    }
    fleet.executors_ready(caller.client()).await?;

    let mut jobs = executor_killed(&mut fleet, &node, &caller).await?;
    fleet.start_executor(&node, "default", 64, 0, 0)?;
    fleet.executors_ready(caller.client()).await?;
    let (node, more) = node_killed(&mut fleet, node, &caller).await?;
    jobs.extend(more);

    drain(caller.client(), STEP).await?;
    let scope = Scope { from_ms: begin_ms - 1_000, until_ms: now_us() / 1000, drained: true, ..Scope::default() };
    export(caller.client(), &jobs, scope, &fleet.dir).await?;
    let dir = fleet.dir.clone();
    tokio::task::block_in_place(|| node.stop(Duration::from_secs(20)))?;
    fleet.finish(caller)?;
    let verdict = check_dir(&dir)?;
    println!("{verdict}");
    let restarted = History::load(&dir)?.bodies.values().filter(|b| b.len() > 1).count();
    println!("runs started more than once: {restarted}");
    Ok(verdict.green)
}

fn job(name: &str, n: usize, body_ms: u64, idempotent: bool) -> JobSpec {
    let mut spec = JobSpec::new("default", &format!("{name}/{n:03}"), Trigger::Manual {});
    spec.params = Payload(format!("{{\"bodyMs\":{body_ms}}}"));
    spec.idempotent = idempotent;
    spec
}

/// Creates and triggers jobs; (job, run) of each.
async fn triggered(caller: &Caller, specs: &[JobSpec]) -> Outcome<Vec<(JobId, RunId)>> {
    let mut runs = Vec::new();
    for (n, id) in caller.create_many(specs).await.into_iter().enumerate() {
        let job = id.ok_or("a job was not created")?;
        match caller.trigger(job, format!("once-{n}")).await {
            CallOutcome::Done(run) => runs.push((job, run)),
            CallOutcome::Refused(code) => {
                return Err(format!("a trigger was refused: {}", code.as_str()).into());
            }
            CallOutcome::Open => return Err("a trigger has no answer".into()),
        }
    }
    Ok(runs)
}

/// Starts that executors wrote so far: run -> (executor's name, token), in the order of their files.
fn starts(dir: &Path) -> Outcome<HashMap<u64, Vec<(String, u64)>>> {
    let mut starts: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if !name.starts_with("executor-") {
            continue;
        }
        for line in fs::read_to_string(&path)?.lines() {
            let Ok(line) = serde_json::from_str::<ExecutorLine>(line) else {
                continue;
            };
            if line.event == ExecutorEvent::Start {
                starts.entry(line.run).or_default().push((name.clone(), line.token));
            }
        }
    }
    Ok(starts)
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let deadline = Instant::now() + STEP;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("not within {} s: {what}", STEP.as_secs()).into());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn views(caller: &Caller, runs: &[(JobId, RunId)]) -> Outcome<Vec<RunView>> {
    let mut views = Vec::new();
    for (_, run) in runs {
        views.push(caller.client().run_get(*run).await?);
    }
    Ok(views)
}

/// Waits until every run is in one of the states.
async fn all_in(caller: &Caller, runs: &[(JobId, RunId)], states: &[RunState]) -> Outcome<Vec<RunView>> {
    until(&format!("runs in {states:?}"), async || {
        let views = views(caller, runs).await?;
        Ok(views.iter().all(|v| states.contains(&v.state)).then_some(views))
    })
    .await
}

async fn all_started(dir: &Path, runs: &[(JobId, RunId)]) -> Outcome<HashMap<u64, Vec<(String, u64)>>> {
    until("all bodies started", async || {
        let starts = starts(dir)?;
        Ok(runs.iter().all(|(_, run)| starts.contains_key(&run.0)).then_some(starts))
    })
    .await
}

fn ensure(holds: bool, what: &str) -> Outcome<()> {
    if holds { Ok(()) } else { Err(what.to_owned().into()) }
}

/// The first story.
async fn executor_killed(fleet: &mut Fleet, node: &Node, caller: &Caller) -> Outcome<Vec<JobId>> {
    let specs: Vec<JobSpec> = (0..IDEMPOTENT)
        .map(|n| job("again", n, BODY_MS, true))
        .chain((0..NOT_IDEMPOTENT).map(|n| job("careful", n, BODY_MS, false)))
        .collect();
    let runs = triggered(caller, &specs).await?;
    let idempotent: HashMap<RunId, bool> =
        runs.iter().zip(&specs).map(|((_, run), spec)| (*run, spec.idempotent)).collect();
    let started = all_started(&fleet.dir, &runs).await?;
    let count = |name: &str| started.values().flatten().filter(|(n, _)| n == name).count();
    let victim = if count("executor-1") >= count("executor-2") { "executor-1" } else { "executor-2" };
    let lost: Vec<(JobId, RunId)> = runs
        .iter()
        .copied()
        .filter(|(_, run)| started.get(&run.0).is_some_and(|s| s.iter().any(|(name, _)| name == victim)))
        .collect();
    println!("{} bodies run on {victim}, {} on the other; kill -9 of {victim}", lost.len(), runs.len() - lost.len());
    fleet.kill_executor(victim)?;
    let killed = Instant::now();
    let ms = || killed.elapsed().as_millis() as i64;

    all_in(caller, &lost, &[RunState::SuspectedLost]).await?;
    println!("+{} ms: all of them are SUSPECTED_LOST (promised after {SUSPECT_MS})", ms());
    ensure(ms() <= SUSPECT_MS + LATE_MS, "they were suspected too late")?;
    let (again, careful): (Vec<_>, Vec<_>) =
        lost.iter().copied().partition(|(_, run)| idempotent.get(run) == Some(&true));
    let waiting = all_in(caller, &careful, &[RunState::NeedsConfirmation]).await?;
    println!("+{} ms: {} that are not idempotent wait for a person (lease {LEASE_MS})", ms(), waiting.len());
    ensure(ms() <= LEASE_MS + LATE_MS, "they were taken back too late")?;
    let done = all_in(caller, &again, &[RunState::Success]).await?;
    println!("+{} ms: {} were started again elsewhere and ended", ms(), done.len());
    let starts_now = starts(&fleet.dir)?;
    for view in &done {
        let lost = view.attempts.iter().any(|a| a.state == AttemptState::Lost);
        let elsewhere =
            starts_now.get(&view.run_id.0).is_some_and(|s| s.len() == 2 && s.iter().any(|(name, _)| name != victim));
        ensure(lost && elsewhere, &format!("run {} was not lost and finished by the other", view.run_id))?;
    }

    sleep(STAYS).await;
    let still = views(caller, &careful).await?;
    ensure(still.iter().all(|v| v.state == RunState::NeedsConfirmation), "one went on without a person's word")?;
    for (job, run) in &careful {
        ensure(
            starts(&fleet.dir)?.get(&run.0).is_some_and(|s| s.len() == 1),
            "one was started again without a person's word",
        )?;
        ensure(
            caller.confirm(*job, *run, ConfirmDecision::Rerun).await == CallOutcome::Done(()),
            "a confirmation was refused",
        )?;
    }
    all_in(caller, &careful, &[RunState::Success]).await?;
    println!("+{} ms: confirmed, started again and ended", ms());
    all_in(caller, &runs, &[RunState::Success]).await?;
    // Bodies that lived were never disturbed.
    let starts_now = starts(&fleet.dir)?;
    let undisturbed =
        runs.iter().filter(|r| !lost.contains(r)).all(|(_, run)| starts_now.get(&run.0).is_some_and(|s| s.len() == 1));
    ensure(undisturbed, "a body of the living executor was started twice")?;
    ensure(!lost.is_empty() && node.pid() > 0, "nothing ran on the executor that was killed")?;
    Ok(runs.into_iter().map(|(job, _)| job).collect())
}

/// The second story.
async fn node_killed(fleet: &mut Fleet, node: Node, caller: &Caller) -> Outcome<(Node, Vec<JobId>)> {
    let specs: Vec<JobSpec> = (0..ADOPTED).map(|n| job("adopted", n, ADOPTED_BODY_MS, n % 2 == 0)).collect();
    let runs = triggered(caller, &specs).await?;
    all_started(&fleet.dir, &runs).await?;
    tokio::task::block_in_place(|| node.kill9("bodies are running"))?;
    let node = fleet.start_node(None)?;
    println!("the node was killed and restarted while {} bodies ran", runs.len());
    let done = all_in(caller, &runs, &[RunState::Success]).await?;
    let starts = starts(&fleet.dir)?;
    for view in &done {
        let once = starts.get(&view.run_id.0).is_some_and(|s| s.len() == 1);
        let one_attempt = matches!(view.attempts.as_slice(), [a] if a.state == AttemptState::Success);
        ensure(once && one_attempt, &format!("run {} was not adopted: {:?}", view.run_id, view.attempts))?;
    }
    println!("all {} ended in the one attempt that they began with", done.len());
    Ok((node, runs.into_iter().map(|(job, _)| job).collect()))
}
