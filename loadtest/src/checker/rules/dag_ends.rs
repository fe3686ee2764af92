//! A run of a DAG ends as its nodes say: SUCCESS unless a failure was left unhandled, CANCELED where somebody canceled it. What the API
//! shows of its nodes is what became of their runs.

use crate::checker::{
    Findings, History, ViolationKind,
    dag::{Class, Dag, Says, Standing, is_final},
};
use campanile_schema::{
    graph::state::{NodeRule, NodeState},
    record::RunState,
};

pub fn check(history: &History, found: &mut Findings<'_>) {
    let forgotten = history.outages.iter().any(|outage| outage.restored);
    for run in history.runs.values().filter(|run| is_final(run.state)) {
        if let Some(Ok(dag)) = Dag::of(history, run) {
            let all = dag.at(i64::MAX);
            state(&dag, &all, forgotten, found);
            shown(history, &dag, &all, found);
        }
    }
}

/// What the run may have ended as.
fn allowed(dag: &Dag<'_>, all: &[Standing], forgotten: bool) -> Vec<RunState> {
    let own = by_nodes(dag, all);
    let asked: Vec<_> = dag.job.canceled.iter().filter(|asked| asked.run == dag.run.run_id).collect();
    let heard = asked.iter().any(|asked| asked.ack_us.is_some()) && dag.reopens() == 0 && !forgotten;
    match (asked.is_empty(), heard) {
        (true, _) => own,
        (false, true) => vec![RunState::Canceled],
        (false, false) => [own, vec![RunState::Canceled]].concat(),
    }
}

fn by_nodes(dag: &Dag<'_>, all: &[Standing]) -> Vec<RunState> {
    let failed: Vec<usize> = (0..all.len()).filter(|place| all.get(*place).is_some_and(is_failed)).collect();
    let both = vec![RunState::Success, RunState::Failed];
    if failed.is_empty() {
        return vec![RunState::Success];
    }
    if dag.graph.fail_fast && dag.reopens() == 0 {
        // The stop keeps every node from handling the first failure.
        return vec![RunState::Failed];
    }
    let handled: Vec<Handled> = failed.iter().map(|place| handled(dag, all, *place)).collect();
    if handled.contains(&Handled::No) {
        vec![RunState::Failed]
    } else if handled.contains(&Handled::Unclear) || dag.reopens() > 0 {
        both
    } else {
        vec![RunState::Success]
    }
}

fn is_failed(standing: &Standing) -> bool {
    standing.class == Class::Failed
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handled {
    Yes,
    No,
    /// A node behind it ran because of this failure or of another one.
    Unclear,
}

/// A failure is handled by a node behind it that ran because of it and succeeded.
fn handled(dag: &Dag<'_>, all: &[Standing], place: usize) -> Handled {
    let mut best = Handled::No;
    for (child, parents) in dag.parents.iter().enumerate() {
        let succeeded = all.get(child).is_some_and(|of| of.class == Class::Ok);
        if !succeeded || parents.iter().all(|parent| parent.place != place) {
            continue;
        }
        let failures = parents.iter().filter(|parent| all.get(parent.place).is_some_and(is_failed)).count();
        match dag.graph.nodes.get(child).map(|node| node.rule) {
            // It has waited for all of them.
            Some(NodeRule::AllDone) => return Handled::Yes,
            Some(NodeRule::AnyFailed) if failures == 1 => return Handled::Yes,
            Some(NodeRule::AnyFailed) => best = Handled::Unclear,
            Some(NodeRule::AllSuccess | NodeRule::AnySuccess | NodeRule::NoneFailed) | None => {}
        }
    }
    best
}

fn state(dag: &Dag<'_>, all: &[Standing], forgotten: bool, found: &mut Findings<'_>) {
    let run = dag.run;
    // A run that was canceled before it began has no nodes; `causes` asks who canceled it.
    if run.state == RunState::Canceled && dag.is_canceled() {
        return;
    }
    let allowed = allowed(dag, all, forgotten);
    if !allowed.contains(&run.state) && dag.graph.timeout_sec.is_none() && dag.job.deleted.is_none() {
        let stood: Vec<String> =
            all.iter().enumerate().map(|(place, of)| format!("'{}' {:?}", dag.name(place), of.class)).collect();
        let text = format!(
            "DAG run {} of job {} ended {}; by its nodes it is one of {allowed:?}: {}",
            run.run_id,
            dag.job.id,
            run.state,
            stood.join(", ")
        );
        found.of_run(ViolationKind::DagStateWrong, dag.job.id, run.run_id, run.ended_at.map(|at| at.0), text);
    }
}

/// Nodes as the API shows them, where no stop and no person has changed what their rules say.
fn shown(history: &History, dag: &Dag<'_>, all: &[Standing], found: &mut Findings<'_>) {
    if dag.reopens() > 0 || dag.is_stopped() {
        return;
    }
    let run = dag.run;
    let mut wrong = |what: String| {
        let text = format!("DAG run {} of job {}: {what}", run.run_id, dag.job.id);
        found.of_run(ViolationKind::DagStateWrong, dag.job.id, run.run_id, run.ended_at.map(|at| at.0), text);
    };
    let Some(view) = history.dags.get(&run.run_id) else { return wrong("its nodes are not shown".to_owned()) };
    for (place, standing) in all.iter().enumerate() {
        let node = dag.graph.nodes.get(place).and_then(|node| view.nodes.iter().find(|shown| shown.id == node.id));
        let own = dag.node_run(place);
        let of_run = own.map(|run| run.run_id);
        let wanted = match (standing.class, own, dag.says(place, all)) {
            (Class::Ok, ..) => NodeState::Success,
            (Class::Failed, Some(own), _) if own.state == RunState::Canceled => NodeState::Canceled,
            (Class::Failed, Some(_), _) => NodeState::Failed,
            (Class::Failed | Class::Skipped, _, Says::UpstreamFailed) => NodeState::UpstreamFailed,
            (Class::Failed | Class::Skipped, ..) => NodeState::Skipped,
            // What is left behind is told elsewhere.
            (Class::Open, ..) => continue,
        };
        let is = node.map(|node| (node.state, node.run_id.map(|run| run.0)));
        if is != Some((wanted, of_run)) {
            wrong(format!("node '{}' is shown as {is:?}, and is {wanted} with run {of_run:?}", dag.name(place)));
        }
    }
}
