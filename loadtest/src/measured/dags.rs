//! `dags`: very many runs of DAGs at once on one node, with a kill -9 in the middle. It measures how many nodes a second run and what each
//! costs; afterwards the history is judged: order kept, nothing doubled, nothing left behind.

use super::bodies::{Growing, Span, span};
use crate::{
    checker::{Verdict, check_dir},
    cluster::metrics::Counters,
    limits::CALLS_IN_FLIGHT,
    load::caller::{CallOutcome, Caller},
    process::{fleet::Fleet, node::Node, proc_stat::Usage},
    run_dir::{
        export::{Scope, drain, export},
        lines::now_us,
    },
};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec},
    ids::JobId,
    job::{Action, ConcurrencyPolicy, JobSpec, Trigger},
    limits::NODE_RUNS_PER_JOB,
    payload::Payload,
    view::TenantBody,
};
use clap::Args;
use serde::Serialize;
use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::Semaphore,
    task::{JoinSet, block_in_place},
    time::{Instant, sleep},
};

/// Nodes of a DAG that stand beside each other; each waits for all of those before it.
const LAYER: u64 = 3;
/// How far the runs have come is looked at so often.
const LOOK: Duration = Duration::from_millis(50);
const JOURNAL: &str = "campanile_journal_bytes_total";

#[derive(Args, Clone, Debug)]
pub struct DagsArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// New or empty; the run's files stay there.
    #[arg(long)]
    pub dir: PathBuf,
    /// Runs of DAGs at once.
    #[arg(long, default_value_t = 10_000)]
    pub runs: u64,
    /// Nodes of each.
    #[arg(long, default_value_t = 10)]
    pub nodes: u64,
    /// DAGs whose runs these are; each has jobs of its own for its nodes, of which few may have very many open runs.
    #[arg(long, default_value_t = 100)]
    pub jobs: u64,
    /// kill -9 of the node when half of the nodes' bodies have ended, and a restart.
    #[arg(long)]
    pub kill: bool,
    #[arg(long, default_value_t = 2)]
    pub executors: u32,
    /// Bodies at once, per executor.
    #[arg(long, default_value_t = 4_096)]
    pub slots: u32,
    /// How long a body takes, milliseconds.
    #[arg(long, default_value_t = 0)]
    pub body_ms: u64,
    /// Do not export and judge the history afterwards.
    #[arg(long)]
    pub no_check: bool,
    /// Report red when fewer nodes a second have run.
    #[arg(long)]
    pub least: Option<f64>,
    /// All runs must have ended within this time, seconds.
    #[arg(long, default_value_t = 600)]
    pub patience_sec: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub runs: u64,
    pub nodes: u64,
    /// Bodies that have ended; of a run that was started again more than one.
    pub bodies: u64,
    pub triggers_per_sec: f64,
    /// From the first body to the last one.
    pub seconds: f64,
    pub nodes_per_sec: f64,
    /// From the kill until the node answered again, milliseconds.
    pub outage_ms: Option<i64>,
    /// Without that time.
    pub nodes_per_sec_while_up: f64,
    pub runs_left: u64,
    /// Of the node, over both of its lives.
    pub cpu_us_per_node: f64,
    pub journal_bytes_per_node: f64,
    pub written_bytes_per_node: f64,
    pub executors_cpu_us_per_node: f64,
    pub peak_rss_mb: u64,
    pub verdict: Option<String>,
}

/// True: all nodes have run, in their order, and once.
pub async fn run(args: DagsArgs) -> Result<bool, Box<dyn Error>> {
    let (report, verdict) = measure(&args).await?;
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(args.dir.join("report.json"), &text)?;
    if let Some(verdict) = &verdict {
        println!("{verdict}");
    }
    println!("{text}\n\n{}", table(&report));
    Ok(is_green(&args, &report))
}

fn is_green(args: &DagsArgs, report: &Report) -> bool {
    let fast = args.least.is_none_or(|least| report.nodes_per_sec >= least);
    let whole = report.bodies >= args.runs * args.nodes && report.runs_left == 0;
    fast && whole && report.verdict.as_deref() != Some("red")
}

/// What the node used so far, over its lives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Used {
    cpu_us: u64,
    written: u64,
    journal: f64,
    peak_rss_kb: u64,
}

impl Used {
    fn of(node: &Node) -> Result<Self, Box<dyn Error>> {
        let usage = Usage::of(node.pid())?;
        let journal = block_in_place(|| Counters::read(&format!("http://{}", node.http), &node.token))?.sum(JOURNAL);
        Ok(Self { cpu_us: usage.cpu_us, written: usage.write_bytes, journal, peak_rss_kb: usage.peak_rss_kb })
    }

    /// With what another life used; `since`: what it had used when the measuring began.
    fn and(self, life: Self, since: Self) -> Self {
        Self {
            cpu_us: self.cpu_us + life.cpu_us.saturating_sub(since.cpu_us),
            written: self.written + life.written.saturating_sub(since.written),
            journal: self.journal + life.journal - since.journal,
            peak_rss_kb: self.peak_rss_kb.max(life.peak_rss_kb),
        }
    }
}

async fn measure(args: &DagsArgs) -> Result<(Report, Option<Verdict>), Box<dyn Error>> {
    if args.jobs == 0 || args.runs.div_ceil(args.jobs.max(1)) > NODE_RUNS_PER_JOB as u64 {
        return Err(format!(
            "{} runs of {} DAGs: a job may have {NODE_RUNS_PER_JOB} open runs of nodes; name more --jobs",
            args.runs, args.jobs
        )
        .into());
    }
    let mut fleet = Fleet::new(&args.dir, &args.server_bin)?;
    let mut node = fleet.start_node(None)?;
    let caller = fleet.caller(&node).await?;
    for _ in 0..args.executors {
        fleet.start_executor(&node, "default", args.slots, 0, 5)?;
    }
    fleet.executors_ready(caller.client()).await?;
    // No quota of the tenant shall be what is measured.
    caller.client().tenant_set("default", TenantBody::default()).await?;
    let begin_ms = now_us() / 1000;
    let (parts, dags) = create(args, &caller).await?;
    println!(
        "{} DAGs and {} jobs of their nodes created in {} ms",
        dags.len(),
        parts.len(),
        now_us() / 1000 - begin_ms
    );

    let executors = fleet.executor_pids();
    let executors_cpu =
        || executors.iter().filter_map(|pid| Usage::of(*pid).ok()).map(|usage| usage.cpu_us).sum::<u64>();
    let (executors_before, before) = (executors_cpu(), Used::of(&node)?);
    let (begin, mut used) = (Instant::now(), (Used::default(), before));
    let mut triggers = trigger_all(args, &caller, &dags);
    let mut outage_ms = None;
    if args.kill {
        let half = args.runs * args.nodes / 2;
        wait_for(half, args, &fleet).await?;
        used = (used.0.and(Used::of(&node)?, used.1), Used::default());
        let killed_ms = now_us() / 1000;
        block_in_place(|| node.kill9("in the middle"))?;
        node = fleet.start_node(None)?;
        outage_ms = Some(now_us() / 1000 - killed_ms);
        println!("killed when half of the nodes had run, ready {} ms later", outage_ms.unwrap_or(0));
    }
    let mut triggered = 0;
    while let Some(done) = triggers.join_next().await {
        triggered += u64::from(done.unwrap_or(false));
    }
    let triggers_per_sec = triggered as f64 / begin.elapsed().as_secs_f64();
    if triggered < args.runs {
        return Err(format!("only {triggered} of {} triggers were acknowledged", args.runs).into());
    }
    let left = drain(caller.client(), Duration::from_secs(args.patience_sec)).await?;
    let used = used.0.and(Used::of(&node)?, used.1);
    let executors_used = executors_cpu().saturating_sub(executors_before);

    let dir = fleet.dir.clone();
    if !args.no_check {
        let until_ms = now_us() / 1000 + 1_000;
        let of_dags = dags.iter().copied().collect();
        let scope = Scope { from_ms: begin_ms - 1_000, until_ms, drained: true, dags: of_dags, ..Scope::default() };
        let all: Vec<JobId> = parts.into_iter().chain(dags).collect();
        export(caller.client(), &all, scope, &dir).await?;
    }
    block_in_place(|| node.stop(Duration::from_secs(30)))?;
    fleet.finish(caller)?;
    let verdict = if args.no_check { None } else { Some(block_in_place(|| check_dir(&dir))?) };
    let Span { first_start_us, last_end_us, ended } = block_in_place(|| span(&dir))?;
    let all = args.runs * args.nodes;
    let per_node = |amount: f64| amount / all.max(1) as f64;
    let seconds = (last_end_us - first_start_us).max(1) as f64 / 1e6;
    let up = (seconds - outage_ms.unwrap_or(0) as f64 / 1e3).max(1e-3);
    let report = Report {
        runs: args.runs,
        nodes: all,
        bodies: ended,
        triggers_per_sec,
        seconds,
        nodes_per_sec: all as f64 / seconds,
        outage_ms,
        nodes_per_sec_while_up: all as f64 / up,
        runs_left: left,
        cpu_us_per_node: per_node(used.cpu_us as f64),
        journal_bytes_per_node: per_node(used.journal),
        written_bytes_per_node: per_node(used.written as f64),
        executors_cpu_us_per_node: per_node(executors_used as f64),
        peak_rss_mb: used.peak_rss_kb / 1024,
        verdict: verdict.as_ref().map(|verdict| if verdict.green { "green" } else { "red" }.to_owned()),
    };
    Ok((report, verdict))
}

/// The jobs of the nodes, and then the DAGs that name them.
async fn create(args: &DagsArgs, caller: &Caller) -> Result<(Vec<JobId>, Vec<JobId>), String> {
    let by_hand = |name: String| {
        let mut spec = JobSpec::new("default", &name, Trigger::Manual {});
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        spec
    };
    let name = |dag: u64, place: u64| format!("node/{dag:05}-{place:03}");
    let mut parts = Vec::new();
    for dag in 0..args.jobs {
        parts.extend((0..args.nodes).map(|place| {
            let mut spec = by_hand(name(dag, place));
            if args.body_ms > 0 {
                spec.params = Payload(format!("{{\"bodyMs\":{}}}", args.body_ms));
            }
            spec
        }));
    }
    let dags: Vec<JobSpec> = (0..args.jobs)
        .map(|dag| {
            let mut spec = by_hand(format!("dag/{dag:05}"));
            spec.action = Some(Action::Dag(layers(args.nodes, |place| name(dag, place))));
            spec
        })
        .collect();
    let parts = created(caller, &parts).await?;
    Ok((parts, created(caller, &dags).await?))
}

async fn created(caller: &Caller, specs: &[JobSpec]) -> Result<Vec<JobId>, String> {
    let jobs: Vec<JobId> = caller.create_many(specs).await.into_iter().flatten().collect();
    if jobs.len() == specs.len() {
        Ok(jobs)
    } else {
        Err(format!("only {} of {} jobs were created", jobs.len(), specs.len()))
    }
}

/// One node, and then layers of [`LAYER`], each node of which waits for all of the layer before it.
fn layers(nodes: u64, job: impl Fn(u64) -> String) -> GraphSpec {
    let id = |place: u64| format!("n{place}");
    let layer = |place: u64| place.div_ceil(LAYER);
    let all = (0..nodes).map(|place| NodeSpec::new(&id(place), &job(place)));
    let edges = (1..nodes).flat_map(|to| {
        let before = (0..to).filter(move |from| layer(*from) + 1 == layer(to));
        before.map(move |from| EdgeSpec::new(&id(from), &id(to)))
    });
    GraphSpec::new(all.collect(), edges.collect())
}

/// All triggers, as many at once as a caller may have under way.
fn trigger_all(args: &DagsArgs, caller: &Caller, dags: &[JobId]) -> JoinSet<bool> {
    let in_flight = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let mut triggers = JoinSet::new();
    for (n, job) in (0..args.runs).zip(dags.iter().copied().cycle()) {
        let (caller, in_flight) = (caller.clone(), Arc::clone(&in_flight));
        triggers.spawn(async move {
            let Ok(_permit) = in_flight.acquire_owned().await else { return false };
            matches!(caller.trigger(job, format!("d-{n}")).await, CallOutcome::Done(_))
        });
    }
    triggers
}

/// Until so many bodies have ended.
async fn wait_for(bodies: u64, args: &DagsArgs, fleet: &Fleet) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + Duration::from_secs(args.patience_sec);
    let mut growing = Growing::default();
    while growing.ended(&fleet.dir)? < bodies {
        if Instant::now() > deadline {
            return Err(format!("{bodies} bodies have not ended within {} s", args.patience_sec).into());
        }
        sleep(LOOK).await;
    }
    Ok(())
}

fn table(report: &Report) -> String {
    let outage = report.outage_ms.map_or("without a kill".to_owned(), |ms| {
        format!("kill -9 in the middle, ready after {ms} ms: {:.0} nodes/s while up", report.nodes_per_sec_while_up)
    });
    format!(
        "{} runs of DAGs, {} nodes in {:.1} s: {:.0} nodes/s; {outage}\n\
         a node: {:.1} us CPU, {:.0} journal bytes, {:.0} bytes written; executors {:.1} us CPU; triggers {:.0}/s; peak RSS {} MB\n\
         verdict: {}; runs left {}",
        report.runs,
        report.nodes,
        report.seconds,
        report.nodes_per_sec,
        report.cpu_us_per_node,
        report.journal_bytes_per_node,
        report.written_bytes_per_node,
        report.executors_cpu_us_per_node,
        report.triggers_per_sec,
        report.peak_rss_mb,
        report.verdict.as_deref().unwrap_or("not judged"),
        report.runs_left
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
        args: DagsArgs,
    }

    fn args(more: &[&str]) -> DagsArgs {
        let line = ["dags", "--server-bin", "x", "--dir", "y", "--runs", "5"].iter().chain(more);
        Line::try_parse_from(line).unwrap().args
    }

    fn report(bodies: u64, nodes_per_sec: f64, verdict: Option<&str>) -> Report {
        Report {
            runs: 5,
            nodes: 50,
            bodies,
            triggers_per_sec: 1.0,
            seconds: 1.0,
            nodes_per_sec,
            outage_ms: None,
            nodes_per_sec_while_up: nodes_per_sec,
            runs_left: 0,
            cpu_us_per_node: 1.0,
            journal_bytes_per_node: 1.0,
            written_bytes_per_node: 1.0,
            executors_cpu_us_per_node: 1.0,
            peak_rss_mb: 1,
            verdict: verdict.map(str::to_owned),
        }
    }

    #[test]
    fn ten_nodes_are_four_layers_and_each_waits_for_the_one_before() {
        let graph = layers(10, |place| format!("job-{place}"));
        let parents =
            |id: &str| graph.edges.iter().filter(|edge| edge.to == id).map(|edge| edge.from.as_str()).collect();
        let of: [Vec<&str>; 4] = ["n0", "n2", "n4", "n9"].map(parents);
        assert_eq!(of, [vec![], vec!["n0"], vec!["n1", "n2", "n3"], vec!["n4", "n5", "n6"]]);
        assert_eq!((graph.nodes.len(), graph.edges.len()), (10, 21));
    }

    #[test]
    fn it_is_green_when_all_nodes_have_run_in_order_and_fast_enough() {
        let (args, fast) = (args(&[]), args(&["--least", "5000"]));
        assert!(is_green(&args, &report(50, 1.0, Some("green"))));
        assert!(!is_green(&args, &report(49, 1.0, Some("green"))), "a node is missing");
        assert!(!is_green(&args, &report(50, 1.0, Some("red"))));
        assert!(is_green(&args, &report(51, 1.0, None)));
        assert!(!is_green(&fast, &report(50, 4_999.0, Some("green"))));
        assert!(is_green(&fast, &report(50, 5_000.0, Some("green"))));
    }

    #[test]
    fn two_lives_of_a_node_count_as_one() {
        let used = |n: u64| Used { cpu_us: n, written: n, journal: n as f64, peak_rss_kb: n };
        assert_eq!(
            Used::default().and(used(30), used(10)).and(used(5), Used::default()),
            Used { peak_rss_kb: 30, ..used(25) }
        );
    }
}
