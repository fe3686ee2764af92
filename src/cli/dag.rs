//! `campanile dag ...`: DAGs of jobs that exist, and the nodes of their runs.

use super::{
    change::{self, Change, DryRun},
    failure::Failure,
    job_ref::JobRef,
    output::{self, Column, Format},
    remote::Remote,
    repeat,
};
use campanile_schema::{
    error::ErrorCode,
    graph::state::NodeState,
    operations::{DagCreate, DagMark, DagNodes, DagPause, DagResume, DagRetry, Operation},
    record::RunState,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Make a DAG of jobs that exist: each is a node, and a node's id is its job's id
    Create {
        /// Name of the job that the DAG becomes
        name: String,
        /// A job, by id or name; once for each node
        #[arg(long = "job", value_name = "JOB", required = true)]
        jobs: Vec<String>,
        /// The first job ends before the second one starts: `load:report`
        #[arg(long = "edge", value_name = "FROM:TO")]
        edges: Vec<String>,
        #[arg(long)]
        tenant: Option<String>,
    },
    /// The nodes of a run of a DAG
    Nodes {
        run: u64,
        /// As a text instead of a table: mermaid or ascii
        #[arg(long, value_parser = ["mermaid", "ascii"])]
        draw: Option<String>,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Run nodes of a run again; what did not run because of them follows
    Retry {
        run: u64,
        /// Ids of nodes [default: all that failed or were canceled]
        nodes: Vec<String>,
        /// And all nodes that come after them, also those that succeeded
        #[arg(long, requires = "nodes")]
        and_after: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Set the state of a node without an open run; what waits for it goes on
    Mark {
        run: u64,
        /// Id of the node
        node: String,
        /// success or skipped
        #[arg(value_parser = ["success", "skipped"])]
        state: String,
        #[command(flatten)]
        change: Change,
    },
    /// Pause one run: no further node starts, and runs of nodes go on
    Pause {
        run: u64,
        #[command(flatten)]
        change: Change,
    },
    /// Resume a paused run: nodes start again
    Resume {
        run: u64,
        #[command(flatten)]
        change: Change,
    },
}

const NODES: &[Column] = &[
    Column::id("NODE", "id"),
    Column::state("STATE", "state"),
    Column::text("JOB", "job"),
    Column::id("RUN", "runId"),
    Column::text("FAILURE", "failure"),
    Column::number("GENERATION", "generation").minor(2),
    Column::text("RULE", "rule").minor(3),
    Column::number("LAYER", "layer").minor(1),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Create { name, jobs, edges, tenant } => create(remote, format, &name, &jobs, &edges, tenant),
        Command::Nodes { run, draw: None, watch } => {
            let read = || remote.get(&DagNodes::ROW.path_of(run), &[]);
            repeat::drawn(watch, format, read, |view| match format {
                Format::Table => output::list_text(format, &view["nodes"], NODES, None),
                Format::Json | Format::Yaml => output::list_text(format, view, NODES, None),
            })
        }
        Command::Nodes { run, draw: Some(draw), watch } => {
            let query = [("draw", Some(draw.to_ascii_uppercase()))];
            let read = || remote.get(&DagNodes::ROW.path_of(run), &query);
            repeat::drawn(watch, format, read, |view| match format {
                Format::Table => Ok((view["drawing"].as_str().unwrap_or_default().to_owned(), String::new())),
                Format::Json | Format::Yaml => output::list_text(format, view, NODES, None),
            })
        }
        Command::Retry { run, nodes, and_after, change } => {
            let body = json!({"nodes": nodes, "andAfter": and_after, "reason": change.reason});
            if change.dry.dry_run {
                return would_retry(remote, run, &nodes);
            }
            output::one(format, &remote.post(&DagRetry::ROW.path_of(run), &body)?)
        }
        Command::Pause { run, change } => set_paused(remote, format, run, &change, true),
        Command::Resume { run, change } => set_paused(remote, format, run, &change, false),
        Command::Mark { run, node, state, change } => {
            let state = state.to_ascii_uppercase();
            if change.dry.dry_run {
                let now = named(remote, run, std::slice::from_ref(&node))?.remove(0);
                return DryRun::told(&format!("mark node {node} of run {run} ({now}) {state}"));
            }
            let body = json!({"node": node, "state": state, "reason": change.reason});
            output::one(format, &remote.post(&DagMark::ROW.path_of(run), &body)?)
        }
    }
}

/// `wanted`: whether the run is to be paused.
fn set_paused(remote: &Remote, format: Format, run: u64, change: &Change, wanted: bool) -> Result<(), Failure> {
    let (row, verb) = if wanted { (DagPause::ROW, "pause") } else { (DagResume::ROW, "resume") };
    if !change.dry.dry_run {
        return output::one(format, &remote.post(&row.path_of(run), &change.body())?);
    }
    let view = remote.get(&DagNodes::ROW.path_of(run), &[])?;
    let state = view["state"].as_str().unwrap_or_default();
    if state.parse().is_ok_and(RunState::is_final) {
        let why = format!("the DAG run is {state}; only one that has not ended is {verb}d");
        return Err(change::refused(ErrorCode::IllegalState, why));
    }
    DryRun::told(&format!("{verb} run {run} of a DAG ({state})"))
}

fn create(
    remote: &Remote,
    format: Format,
    name: &str,
    jobs: &[String],
    edges: &[String],
    tenant: Option<String>,
) -> Result<(), Failure> {
    let mut ids: BTreeMap<&str, u64> = BTreeMap::new();
    for job in jobs {
        let id = JobRef::new(job.clone(), tenant.clone()).id(remote)?;
        let id = id.parse().map_err(|_| Failure::usage(format!("--job {job}: not the id of a job")))?;
        ids.insert(job, id);
    }
    let known = |edge: &str, job: &str| {
        let unknown = || Failure::usage(format!("--edge {edge}: '{job}' is not one of the jobs that --job names"));
        ids.get(job).copied().ok_or_else(unknown)
    };
    let edge = |edge: &String| -> Result<Value, Failure> {
        let (from, to) = edge
            .split_once(':')
            .ok_or_else(|| Failure::usage(format!("--edge {edge}: write FROM:TO, for example --edge load:report")))?;
        Ok(json!({"from": known(edge, from)?, "to": known(edge, to)?}))
    };
    let edges: Vec<Value> = edges.iter().map(edge).collect::<Result<_, Failure>>()?;
    let nodes: Vec<u64> = jobs.iter().filter_map(|job| ids.get(job.as_str()).copied()).collect();
    let mut body = json!({"dagId": name, "nodes": nodes, "edges": edges});
    if let Some(tenant) = tenant {
        body["tenantId"] = json!(tenant);
    }
    output::one(format, &remote.post(DagCreate::PATH, &body)?)
}

/// States of the nodes with these ids.
fn named(remote: &Remote, run: u64, ids: &[String]) -> Result<Vec<String>, Failure> {
    let view = remote.get(&DagNodes::ROW.path_of(run), &[])?;
    let nodes = view["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let state = |id: &String| {
        let node = nodes.iter().find(|node| node["id"] == id.as_str());
        let state = node.and_then(|node| node["state"].as_str()).map(str::to_owned);
        state.ok_or_else(|| change::refused(ErrorCode::NotFound, format_args!("the DAG has no node '{id}'")))
    };
    ids.iter().map(state).collect()
}

fn would_retry(remote: &Remote, run: u64, nodes: &[String]) -> Result<(), Failure> {
    for (id, state) in nodes.iter().zip(named(remote, run, nodes)?) {
        if !state.parse().is_ok_and(NodeState::is_final) {
            let why = format!("node '{id}' is {state}; only a node that has ended can be retried");
            return Err(change::refused(ErrorCode::IllegalState, why));
        }
    }
    let what = if nodes.is_empty() { "all nodes that failed or were canceled".to_owned() } else { nodes.join(", ") };
    DryRun::told(&format!("retry {what} of run {run}"))
}
