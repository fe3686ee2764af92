//! Nodes of DAGs: none begins before those that it depends on have ended as its edges say, each has one run, and nothing is left behind.
//! All of it is computed from the graph that the caller wrote and from what executors wrote of the bodies.

use super::{facts::us, lateness::clock_in_doubt};
use crate::checker::{
    Body, Findings, History, Run, ViolationKind,
    dag::{Dag, Says, is_final},
};
use campanile_schema::record::{AttemptState, RunState, Source};
use std::collections::BTreeMap;

/// Clocks of the nodes of a cluster, which nobody has set wrong, are not further apart, milliseconds.
const CLOCKS_MS: i64 = 100;

pub fn check(history: &History, found: &mut Findings<'_>) {
    strangers(history, found);
    for run in history.runs.values() {
        match Dag::of(history, run) {
            None => {}
            Some(Err(why)) => found.of_run(ViolationKind::NotCheckable, run.job_id, run.run_id, None, why),
            Some(Ok(dag)) => {
                for place in 0..dag.graph.nodes.len() {
                    one_run(&dag, place, found);
                    for body in first_bodies(history, &dag, place) {
                        in_order(history, &dag, place, body, found);
                    }
                    left_behind(history, &dag, place, found);
                }
                never_ended(history, &dag, found);
            }
        }
    }
}

/// A node's run belongs to a run of a DAG whose node at that place has that job.
fn strangers(history: &History, found: &mut Findings<'_>) {
    for run in history.runs.values().filter(|run| run.source == Source::Dag) {
        let dag = run.dag_run_id.and_then(|dag| history.runs.get(&dag)).and_then(|dag| Dag::of(history, dag));
        let Some(Ok(dag)) = dag else {
            // A DAG that was deleted may not be shown, and one that was edited is told elsewhere.
            if dag.is_none() && !history.jobs.values().any(|job| job.deleted.is_some()) {
                let text =
                    format!("run {} is one of a node of DAG run {:?}, which is not there", run.run_id, run.dag_run_id);
                found.of_run(ViolationKind::DagNodeUndue, run.job_id, run.run_id, Some(run.created_at.0), text);
            }
            continue;
        };
        let node = run.dag_node.and_then(|place| dag.graph.nodes.get(place as usize));
        let job = history.jobs.get(&run.job_id).map(|job| job.spec.name.as_str());
        if node.map(|node| node.job.as_str()) != job {
            let text = format!(
                "run {} of job {job:?} is said to be of node {:?} of DAG run {}, which has another job",
                run.run_id, run.dag_node, dag.run.run_id
            );
            found.of_run(ViolationKind::DagNodeUndue, run.job_id, run.run_id, Some(run.created_at.0), text);
        }
    }
}

fn one_run(dag: &Dag<'_>, place: usize, found: &mut Findings<'_>) {
    if let [first, second, ..] = dag.runs_of(place).as_slice() {
        let text = format!(
            "node '{}' of DAG run {} has the runs {} and {}",
            dag.name(place),
            dag.run.run_id,
            first.run_id,
            second.run_id
        );
        found.of_run(ViolationKind::DagNodeDoubled, second.job_id, second.run_id, Some(second.created_at.0), text);
    }
}

/// The first body of each generation of a node.
fn first_bodies<'a>(history: &'a History, dag: &Dag<'a>, place: usize) -> Vec<&'a Body> {
    let mut first: BTreeMap<(u64, u32), &Body> = BTreeMap::new();
    for body in dag.runs_of(place).iter().filter_map(|run| history.bodies.get(&run.run_id)).flatten() {
        first.entry((body.run, body.generation)).or_insert(body);
    }
    first.into_values().collect()
}

fn in_order(history: &History, dag: &Dag<'_>, place: usize, body: &Body, found: &mut Findings<'_>) {
    let at = |t_us: i64| dag.says(place, &dag.at(t_us));
    let said = at(body.start_us);
    if said == Says::Run {
        return;
    }
    // A person may have let a parent run again when this node had been started, and its body had not begun.
    let made_us = history.runs.get(&body.run).map_or(0, |run| us(run.created_at.0) + 999);
    let overtaken = match (dag.reopens(), body.generation) {
        (0, _) => false,
        (_, 1) => at(made_us) == Says::Run,
        (calls, _) => calls > 1,
    };
    if overtaken {
        return;
    }
    let (kind, why) = match said {
        Says::Run | Says::Wait => (ViolationKind::DagOrderBroken, "some of those that it depends on had not ended"),
        Says::UpstreamFailed => (ViolationKind::DagNodeUndue, "a failure before it keeps it from running"),
        Says::Skip => (ViolationKind::DagNodeUndue, "its edges keep it from running"),
    };
    let stood: Vec<String> = (dag.parents.get(place).into_iter().flatten())
        .map(|parent| (parent.place, dag.at(body.start_us).get(parent.place).map(|of| of.class)))
        .map(|(parent, class)| format!("'{}' {class:?}", dag.name(parent)))
        .collect();
    let text = format!(
        "node '{}' of DAG run {} began in generation {} when {why}: {}",
        dag.name(place),
        dag.run.run_id,
        body.generation,
        stood.join(", ")
    );
    found.of_run(kind, body.job, body.run, Some(body.start_us / 1000), text);
}

/// What a DAG run that has ended owes its nodes: each that was to run has a run, and each run has ended before.
fn left_behind(history: &History, dag: &Dag<'_>, place: usize, found: &mut Findings<'_>) {
    let Some(ended_at) = dag.run.ended_at.filter(|_| is_final(dag.run.state)) else { return };
    let mut left = |run: &Run, what: String| {
        let text = format!("DAG run {} ended {} at {ended_at}, and {what}", dag.run.run_id, dag.run.state);
        found.of_run(ViolationKind::DagLeftBehind, run.job_id, run.run_id, Some(ended_at.0), text);
    };
    let Some(run) = dag.node_run(place) else {
        if dag.says(place, &dag.at(i64::MAX)) == Says::Run && !dag.is_stopped() {
            left(dag.run, format!("its node '{}', which was to run, has no run", dag.name(place)));
        }
        return;
    };
    if !is_final(run.state) {
        left(run, format!("run {} of its node '{}' is {}", run.run_id, dag.name(place), run.state));
    } else if run.ended_at.is_some_and(|at| at.0 > ended_at.0 + clocks_ms(history)) && !in_doubt(history, dag, run) {
        left(run, format!("run {} of its node '{}' ended after it", run.run_id, dag.name(place)));
    }
    let bodies = history.bodies.get(&run.run_id).into_iter().flatten();
    let ended_us = us(ended_at.0 + clocks_ms(history)) + 999;
    let late = bodies.filter(|body| counts(run, body)).find(|body| body.start_us > ended_us);
    if let Some(body) = late.filter(|_| !in_doubt(history, dag, run)) {
        left(run, format!("a body of its node '{}' began at {} us", dag.name(place), body.start_us));
    }
}

/// An assignment of an attempt that was given up may reach its executor much later.
fn counts(run: &Run, body: &Body) -> bool {
    run.attempt_of(body.token).is_none_or(|attempt| match attempt.state {
        AttemptState::Success | AttemptState::Failed | AttemptState::Running => true,
        AttemptState::Timeout | AttemptState::Canceled | AttemptState::Lost | AttemptState::NotStarted => false,
    })
}

/// How far the clocks of two nodes may be apart; a single node has one.
fn clocks_ms(history: &History) -> i64 {
    let is_cluster = history.meta.as_ref().is_some_and(|meta| meta.shards.is_some());
    if is_cluster { CLOCKS_MS } else { 0 }
}

/// Clocks of a cluster may differ on purpose.
fn in_doubt(history: &History, dag: &Dag<'_>, run: &Run) -> bool {
    let time = (us(run.created_at.0), us(dag.run.ended_at.map_or(i64::MAX / 2_000, |at| at.0)));
    clock_in_doubt(history, run.job_id, time) || clock_in_doubt(history, dag.job.id, time)
}

/// All of its nodes have ended, or never run, and it goes on.
fn never_ended(history: &History, dag: &Dag<'_>, found: &mut Findings<'_>) {
    let drained = history.meta.as_ref().is_some_and(|meta| meta.drained);
    if !drained || is_final(dag.run.state) || dag.run.state == RunState::Pending {
        return;
    }
    let open = (0..dag.graph.nodes.len()).filter_map(|place| dag.node_run(place)).any(|run| !is_final(run.state));
    if !open {
        let text = format!("DAG run {} is {}, and no run of its nodes is open", dag.run.run_id, dag.run.state);
        found.of_run(ViolationKind::DagLeftBehind, dag.job.id, dag.run.run_id, None, text);
    }
}
