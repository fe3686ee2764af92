//! `kill9`: the real node under load, killed again and again, and the checker's verdict over what everybody wrote.

use crate::{
    checker::{LONG_ENOUGH_MS, Verdict, check_dir},
    faults::{
        kills::{self, Round},
        mutation::Mutation,
    },
    load::{caller::Caller, dag_people, open_loop, people},
    process::fleet::Fleet,
    run_dir::{
        export::{Scope, drain, export},
        lines::now_us,
    },
    workload::{self, Plan, dags, worked},
};
use campanile_schema::{
    ids::JobId,
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    view::TenantBody,
};
use clap::Args;
use parking_lot::Mutex;
use std::{collections::BTreeMap, error::Error, path::PathBuf, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::sleep};

/// Before the first instant: jobs are created and executors connect, milliseconds per 1,000 jobs, and at least.
const LEAD_MS: (i64, i64) = (300, 5_000);
/// After the last kill, milliseconds.
const TAIL_MS: i64 = 5_000;
/// A body begins at most so long after its instant, or after what held it back, milliseconds: a debug build on a machine that does
/// other things too. What a run promises is no measurement; `bench` measures.
pub(crate) const LATEST_MS: i64 = 5_000;
const DRAIN: Duration = Duration::from_secs(180);
const DRAIN_BROKEN: Duration = Duration::from_secs(20);
/// Load that is paused, resumed and deleted, jobs; in how many loops at once.
const PAUSED: usize = 2_000;
const PAUSING_AT_ONCE: usize = 10;

#[derive(Args, Clone, Debug)]
pub struct Kill9Args {
    /// The node's program.
    #[arg(long)]
    pub server_bin: PathBuf,
    #[arg(long, default_value_t = 20)]
    pub kills: u32,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    #[arg(long, default_value_t = 20_000)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 2_000.0)]
    pub rate: f64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[arg(long, default_value_t = 2)]
    pub executors: u32,
    /// Bodies at once, per executor.
    #[arg(long, default_value_t = 512)]
    pub slots: u32,
    /// Attempts that fail, of 100.
    #[arg(long, default_value_t = 2)]
    pub fail_percent: u32,
    /// Every third time the node stays down for up to this, milliseconds, so that instants are missed.
    #[arg(long, default_value_t = 4_000)]
    pub down_ms: u64,
    /// kill -9 of an executor so many times, evenly between the kills of the node; a new one is started.
    #[arg(long, default_value_t = 2)]
    pub executor_kills: u32,
    /// Let the node kill itself at fail points too; it must be built with the feature `faults`.
    #[arg(long)]
    pub fail_points: bool,
    /// After the kills an executor stands still for longer than its lease so many times, and then hands in its results.
    #[arg(long, default_value_t = 0)]
    pub freezes: u32,
    /// DAGs, each of 3 to 10 nodes, with jobs of their own.
    #[arg(long, default_value_t = 12)]
    pub dags: u64,
    /// Put this defect into the node and expect a red verdict; the node must be built with the feature `faults`.
    #[arg(long)]
    pub mutation: Option<Mutation>,
}

/// True: the verdict is the one that was expected.
pub async fn run(args: Kill9Args) -> Result<bool, Box<dyn Error>> {
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let mutation = args.mutation.map(Mutation::fault);
    let node = fleet.start_node(mutation.clone())?;
    let caller = fleet.caller(&node).await?;
    let fail_percent = args.fail_percent.max(args.mutation.map_or(0, Mutation::fail_percent));
    for _ in 0..args.executors {
        fleet.start_executor(&node, "default", args.slots, fail_percent, 1)?;
    }
    fleet.executors_ready(caller.client()).await?;

    let mut schedule = kills::schedule(args.kills, args.fail_points, args.down_ms, args.seed);
    if args.mutation == Some(Mutation::AckBeforeSync) {
        schedule = kills::before_append(schedule, args.seed);
    }
    let freezes = args.freezes.max(args.mutation.map_or(0, Mutation::freezes));
    let frozen_ms = i64::from(freezes) * kills::FROZEN_MS as i64;
    let start_ms = now_us() / 1000 + LEAD_MS.1.max(args.jobs as i64 * LEAD_MS.0 / 1000);
    let plan = Plan {
        jobs: args.jobs,
        rate: args.rate,
        start_ms,
        end_ms: start_ms + schedule.iter().map(|k| k.expected_ms() as i64).sum::<i64>() + frozen_ms + TAIL_MS,
        pool: "default".to_owned(),
        tenant: "default".to_owned(),
        prefix: "k".to_owned(),
        seed: args.seed,
    };
    let begin_ms = now_us() / 1000;
    let quota = TenantBody { max_concurrent_runs: workload::TIGHT.1, ..TenantBody::default() };
    caller.client().tenant_set(workload::TIGHT.0, quota).await?;
    let mut specs = workload::mixed(&plan);
    specs.extend(workload::watched(&plan));
    // Jobs that want twice their tenant's rate leave a backlog as long as the run, so they are there only where it is not kept.
    let mut rates = BTreeMap::new();
    if args.mutation == Some(Mutation::ForgetRate) {
        let (metered, rate) = workload::METERED;
        caller.client().tenant_set(metered, TenantBody { max_triggers_per_sec: rate, ..TenantBody::default() }).await?;
        specs.extend(workload::limited(&plan).into_iter().filter(|spec| spec.tenant_id == metered));
        rates.insert(metered.to_owned(), rate);
    }
    let mut worked = worked::worked(&plan);
    let hooked = worked::hooked(&plan, &mut worked);
    let first_worked = specs.len();
    specs.extend(worked.iter().map(|(_, spec)| spec.clone()));
    specs.push(hooked);
    let first_backfilled = specs.len();
    specs.extend(worked::backfilled(&plan));
    let (together, failing) = worked::bulked(&plan);
    let first_together = specs.len();
    specs.extend(together);
    let first_failing = specs.len();
    specs.extend(failing.iter().cloned());
    let with_dags = dags::dags(&plan, args.dags);
    let first_part = specs.len();
    specs.extend(with_dags.parts);
    let ids = caller.create_many(&specs).await;
    let jobs: Vec<JobId> = ids.iter().copied().flatten().collect();
    if jobs.len() < specs.len() {
        return Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()).into());
    }
    // Their nodes' jobs must be there before them.
    let dag_ids = dag_people::create(&caller, &with_dags.dags).await?;
    let created_ms = now_us() / 1000 - begin_ms;
    println!("{} jobs created in {created_ms} ms; load from {} ms from now", jobs.len(), start_ms - now_us() / 1000);

    let extra = Arc::new(Mutex::new(Vec::new()));
    let mut calls = start_calls(&args, &plan, &caller, &specs[..first_worked], &ids, &extra);
    people::start(&mut calls, &caller, worked::with_ids(worked, &jobs[first_worked..]), plan.end_ms, plan.seed);
    people::backfills(&mut calls, &caller, &jobs[first_backfilled..first_together], plan.end_ms, plan.seed);
    let together = &jobs[first_together..first_failing];
    let failing = jobs[first_failing..first_part].iter().copied().zip(failing).collect();
    people::bulks(&mut calls, &caller, together, failing, plan.end_ms, plan.seed);
    dag_people::start(&mut calls, &caller, &dag_ids.by_hand, plan.end_ms, plan.seed);
    sleep(Duration::from_millis((start_ms - now_us() / 1000).max(0).unsigned_abs())).await;
    let round =
        Round { mutation: mutation.as_deref(), executor_kills: args.executor_kills, slots: args.slots, fail_percent };
    let (node, points) = kills::carry_out(&schedule, &round, &mut fleet, node).await?;
    println!("{points}");
    for _ in 0..freezes {
        kills::freeze_executor(&fleet).await?;
    }
    sleep(Duration::from_millis((plan.end_ms + 1_000 - now_us() / 1000).max(0).unsigned_abs())).await;
    while calls.join_next().await.is_some() {}

    // A node with a defect may never come to rest, which is red too.
    let patience = if args.mutation.is_some() { DRAIN_BROKEN } else { DRAIN };
    let left = drain(caller.client(), patience).await?;
    println!("drained; {left} runs are still open");
    let mut all = jobs;
    all.extend(extra.lock().iter());
    all.extend(&dag_ids.all);
    let quotas = [(workload::TIGHT.0.to_owned(), workload::TIGHT.1)].into();
    let scope = Scope {
        from_ms: begin_ms - 1_000,
        until_ms: plan.end_ms + 1_000,
        drained: true,
        quotas,
        rates,
        latest_ms: Some(LATEST_MS),
        // With a defect it need not come so far.
        uses_all: args.mutation.is_none() && plan.end_ms - plan.start_ms >= LONG_ENOUGH_MS,
        dags: dag_ids.all.into_iter().collect(),
        ..Scope::default()
    };
    let complete = export(caller.client(), &all, scope, &fleet.dir).await?;
    println!("exported {} jobs, complete: {complete}", all.len());
    let dir = fleet.dir.clone();
    tokio::task::block_in_place(|| node.stop(Duration::from_secs(20)))?;
    fleet.finish(caller)?;
    let verdict = tokio::task::block_in_place(|| check_dir(&dir))?;
    std::fs::write(dir.join("verdict.json"), serde_json::to_vec_pretty(&verdict)?)?;
    println!("{verdict}");
    Ok(judge(&args, &verdict, &points.never_reached()))
}

fn judge(args: &Kill9Args, verdict: &Verdict, never_reached: &[&str]) -> bool {
    let enough = verdict.counts.node_kills >= u64::from(args.kills);
    match (args.mutation, verdict.green) {
        (None, green) => {
            if !enough {
                println!("only {} kills of {}: the proof is not complete", verdict.counts.node_kills, args.kills);
            }
            for point in never_reached {
                println!("RED: no node came to the fail point {point}: nothing is shown of a death there");
            }
            green && enough && never_reached.is_empty()
        }
        (Some(mutation), _) => {
            let (found, line) = mutation.judge(verdict);
            println!("{line}");
            found
        }
    }
}

fn start_calls(
    args: &Kill9Args,
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
    paused.truncate(PAUSED.min(paused.len() / 5));
    let mut calls = JoinSet::new();
    let (by_hand, end_ms, seed) = (args.rate / 20.0, plan.end_ms, plan.seed);
    let hands = caller.clone();
    calls.spawn(async move {
        let counts = open_loop::triggers(hands, manual, by_hand, end_ms, seed).await;
        println!("triggers by hand: {}", serde_json::to_string(&*counts).unwrap_or_default());
    });
    for (n, share) in paused.chunks(paused.len().div_ceil(PAUSING_AT_ONCE).max(1)).enumerate() {
        calls.spawn(open_loop::pauses(caller.clone(), share.to_vec(), plan.end_ms, plan.seed + n as u64));
    }
    let more = Plan { prefix: "extra".to_owned(), ..plan.clone() };
    calls.spawn(open_loop::creates(caller.clone(), more, 20.0, Arc::clone(extra), |_| ()));
    calls
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::checker::{Findings, History, ViolationKind};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Kill9Args,
    }

    fn args(more: &[&str]) -> Kill9Args {
        let line = ["kill9", "--server-bin", "x", "--dir", "y", "--kills", "2"].iter().chain(more);
        Line::try_parse_from(line).unwrap().args
    }

    fn verdict(found: &[ViolationKind], node_kills: u64) -> Verdict {
        let history = History::default();
        let mut findings = Findings::new(&history);
        found.iter().for_each(|kind| findings.of_all(*kind, "x"));
        let mut verdict = findings.into_verdict();
        verdict.counts.node_kills = node_kills;
        verdict
    }

    #[test]
    fn a_run_is_green_only_with_all_its_kills_at_all_its_fail_points() {
        let args = args(&[]);
        assert!(judge(&args, &verdict(&[], 2), &[]));
        assert!(!judge(&args, &verdict(&[], 1), &[]), "a kill is missing");
        assert!(!judge(&args, &verdict(&[], 2), &["snapshot"]), "no node came to a fail point");
        assert!(!judge(&args, &verdict(&[ViolationKind::NeverUsed], 2), &[]));
    }

    #[test]
    fn a_defect_must_be_found_for_its_own_reason() {
        let args = args(&["--mutation", "lost_ack"]);
        assert!(judge(&args, &verdict(&[ViolationKind::TriggerLost], 2), &[]));
        assert!(!judge(&args, &verdict(&[ViolationKind::OutcomeMissing], 2), &[]));
        assert!(!judge(&args, &verdict(&[], 2), &[]));
    }
}
