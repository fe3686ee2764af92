//! Runs of a DAG: they begin, go on with what becomes of their nodes, and end. A run of a DAG goes from PENDING to RUNNING without an
//! executor, and what it decides leaves as messages to the jobs of its nodes.

use super::{
    super::{dag::taken_up, effect::Reply, graphs::OpenGraph},
    Draft, deadline, finish,
    trigger::{has_room, may_start},
};
use crate::{
    graph::{
        run::GraphRun,
        step::{GraphCommand, GraphDecision},
    },
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    graph::{
        change::GraphPause,
        state::{NodeState, StopCause},
    },
    ids::{BackfillId, RunId},
    peer::shard::GraphAction,
    record::{RunRecord, RunState},
    shape::shortened,
};
use std::sync::Arc;

/// Begins a run. While the shard has no room for its nodes it stays PENDING.
pub(super) fn begin(draft: &mut Draft<'_>, run: RunId) {
    let Some(open) = draft.job.run(run).filter(|open| !open.graph) else { return };
    let logical_ms = open.record.logical_ms;
    let graph = match draft.job.compiled_graph() {
        Ok(graph) => graph,
        Err(why) => return cannot_begin(draft, run, &why),
    };
    // Neither the event that begins it nor the next try need compile it again.
    draft.job.compiled = Some((draft.job.hot.version, graph.clone()));
    if graph.nodes.len() > draft.ctx.node_room {
        return;
    }
    let mut state = GraphRun::new(graph, logical_ms);
    match state.step(&GraphCommand::Wake) {
        Ok(decision) => {
            go_on(draft, run, decision, &state);
            deadline::at_start(draft, run);
        }
        Err(why) => cannot_begin(draft, run, &why),
    }
}

/// A release that does not understand the graph, though an earlier one did.
fn cannot_begin(draft: &mut Draft<'_>, run: RunId, why: &Rejection) {
    let Some(open) = draft.job.run(run) else { return };
    let mut record = RunRecord::clone(&open.record);
    record.reason = Some(format!("the DAG cannot run: {}", why.message));
    finish::close(draft, record, RunState::Failed, false);
}

/// Time has passed: more nodes may start, or the time of a run is over.
pub(super) fn wake(draft: &mut Draft<'_>) {
    let now_ms = draft.ctx.now_ms;
    let step_of = |open: &OpenGraph| {
        let stopped = open.run.is_stopped_by(StopCause::Timeout);
        if open.deadline_ms().is_some_and(|at| at <= now_ms) && !stopped {
            Some(GraphCommand::Timeout)
        } else {
            open.run.wants_wake().then_some(GraphCommand::Wake)
        }
    };
    let steps: Vec<(RunId, GraphCommand)> =
        draft.job.graphs.iter().filter_map(|(run, open)| Some((*run, step_of(open)?))).collect();
    for (run, command) in steps {
        // Neither is ever refused.
        let _ = step(draft, run, &command);
    }
    if draft.job.awaits_room() {
        finish::release_held(draft);
    }
}

/// Ends a run as a cancel does.
pub(super) fn stop(draft: &mut Draft<'_>, run: RunId) {
    // A run that is open takes it.
    let _ = step(draft, run, &GraphCommand::Cancel);
}

/// What became of a node, or what time or a person asks of an open run.
pub(super) fn step(draft: &mut Draft<'_>, run: RunId, command: &GraphCommand) -> Result<Reply, Rejection> {
    // A message about a run that has ended is late.
    let Some(open) = draft.job.graphs.get(&run) else { return Ok(Reply::Unchanged) };
    let mut state = GraphRun::clone(&open.run);
    let decision = state.step(command)?;
    go_on(draft, run, decision, &state);
    Ok(Reply::Done)
}

/// Retries, marks and pauses of a person. A run that has ended goes on with the graph that it had; it stays in its lane, and no backfill counts it.
pub(super) fn change(
    draft: &mut Draft<'_>,
    run: RunId,
    record: Option<&RunRecord>,
    action: &GraphAction,
) -> Result<Reply, Rejection> {
    match record.filter(|record| record.backfill.is_some()) {
        Some(record) => {
            let record = RunRecord { backfill: Some(BackfillId(0)), ..record.clone() };
            change_counted(draft, run, Some(&record), action)
        }
        None => change_counted(draft, run, record, action),
    }
}

/// The same for the backfill that the record names.
pub(super) fn change_counted(
    draft: &mut Draft<'_>,
    run: RunId,
    record: Option<&RunRecord>,
    action: &GraphAction,
) -> Result<Reply, Rejection> {
    if let Some(open) = draft.job.graphs.get(&run) {
        let command = command_of(&open.run, action, draft.ctx.now_ms)?;
        step(draft, run, &command)?;
        return Ok(draft.ended(run).map_or_else(|| draft.run_reply(run), |record| Reply::Final(Box::new(record))));
    }
    let ended = record.and_then(|record| Some((record, record.graph.as_deref()?)));
    let Some((record, ended)) = ended.filter(|_| draft.job.run(run).is_none()) else {
        let why = match draft.job.run(run) {
            Some(open) if draft.job.is_dag() => format!("the run is {}: none of its nodes has started", open.state()),
            Some(_) | None => "the run is not a run of a DAG, or it was canceled before it began".to_owned(),
        };
        return Err(Rejection::new(ErrorCode::IllegalState, why));
    };
    if matches!(action, GraphAction::Pause { .. } | GraphAction::Resume { .. }) {
        let why = format!("the DAG run is {}; only one that has not ended is paused or resumed", record.state);
        return Err(Rejection::new(ErrorCode::IllegalState, why));
    }
    may_start(draft)?;
    has_room(draft)?;
    if draft.job.holds_newcomer(record.is_back()) {
        let why = format!(
            "concurrencyPolicy {} and another run of the DAG is active; wait for it or cancel it",
            draft.job.def.concurrency
        );
        return Err(Rejection::new(ErrorCode::RunActive, why));
    }
    let open = taken_up(&draft.job, ended, draft.ctx.now_ms)?;
    let mut state = GraphRun::clone(&open.run);
    let decision = state.step(&command_of(&open.run, action, draft.ctx.now_ms)?)?;
    if decision.changes.is_empty() {
        return Ok(Reply::Final(Box::new(record.clone())));
    }
    let mut again = record.clone();
    again.generation = state.generation();
    again.state = RunState::Pending;
    again.ended_ms = None;
    let (job, at_ms) = (draft.job.id, draft.ctx.now_ms);
    draft.emit(Event::RunReopened { job, record: Arc::new(again), at_ms });
    go_on(draft, run, decision, &state);
    Ok(draft.ended(run).map_or_else(|| draft.run_reply(run), |record| Reply::Final(Box::new(record))))
}

fn command_of(run: &GraphRun, action: &GraphAction, now_ms: i64) -> Result<GraphCommand, Rejection> {
    let place = |id: &String| {
        let unknown = || {
            let id = shortened(id);
            Rejection::new(ErrorCode::NotFound, format!("the DAG has no node '{id}'"))
        };
        run.graph().find(id).ok_or_else(unknown)
    };
    let retry = |nodes, and_after, by: &_, reason: &Option<String>| {
        let (by, reason) = (Clone::clone(by), reason.clone());
        GraphCommand::Retry { nodes, and_after, by, reason }
    };
    Ok(match action {
        GraphAction::Retry { nodes, and_after, by, reason } => {
            retry(nodes.iter().map(place).collect::<Result<_, _>>()?, *and_after, by, reason)
        }
        GraphAction::RetryPlace { place, by, reason } => retry(vec![*place], false, by, reason),
        GraphAction::RetryFailed { by, reason } => {
            let again = |state| matches!(state, NodeState::Failed | NodeState::Canceled);
            let nodes = (0..).zip(run.nodes()).filter(|(_, node)| again(node.state()) && !node.is_held());
            let nodes: Vec<u32> = nodes.map(|(place, _)| place).collect();
            if nodes.is_empty() {
                let why = "no node of the run failed or was canceled; name the nodes to retry";
                return Err(Rejection::new(ErrorCode::IllegalState, why));
            }
            retry(nodes, false, by, reason)
        }
        GraphAction::Mark { node, state, by, reason } => {
            let (by, reason) = (by.clone(), reason.clone());
            GraphCommand::Mark { node: place(node)?, state: *state, by, reason }
        }
        GraphAction::Pause { by, reason } => {
            GraphCommand::Pause(GraphPause { at_ms: now_ms, by: by.clone(), reason: reason.clone() })
        }
        GraphAction::Resume { by, reason } => GraphCommand::Resume { by: by.clone(), reason: reason.clone() },
    })
}

/// Keeps what was decided, sends what follows, and ends the run when all of its nodes have. `state`: the run after it.
fn go_on(draft: &mut Draft<'_>, run: RunId, decision: GraphDecision, state: &GraphRun) {
    let GraphDecision { changes, effects, wake: _ } = decision;
    if !changes.is_empty() {
        let (job, at_ms, generation) = (draft.job.id, draft.ctx.now_ms, state.generation());
        draft.emit(Event::GraphChanged { job, run, generation, changes, at_ms });
        debug_assert!(draft.job.graphs.get(&run).is_some_and(|open| *open.run == *state), "replay differs");
    }
    if let (Some(open), Some(graph)) = (draft.job.run(run), draft.job.graphs.get(&run)) {
        draft.sends.extend(effects.into_iter().map(|effect| graph.message(&open.record, effect)));
    }
    let Some(ended) = state.finished() else { return };
    let (Some(open), Some(graph)) = (draft.job.run(run), draft.job.graphs.get(&run)) else { return };
    let mut record = RunRecord::clone(&open.record);
    record.graph = Some(Arc::new(graph.record(false)));
    finish::close(draft, record, ended, false);
}
