//! A body gets the job's params with the caller's laid over them, and the job's secrets; the history shows the result and the error
//! that it handed in.

use super::facts::us;
use crate::checker::{Body, Findings, History, Job, Run, ViolationKind, dag::Dag};
use campanile_schema::{
    graph::state::NodeRule,
    payload::Payload,
    record::{AttemptState, RunState, Source},
};
use serde_json::{Map, Value};

pub fn check(history: &History, found: &mut Findings<'_>) {
    for body in history.bodies.values().flatten() {
        if let (Some(run), Some(job)) = (history.runs.get(&body.run), history.jobs.get(&body.job)) {
            given(history, job, run, body, found);
            handed_in(run, body, found);
        }
    }
}

/// Nothing, an empty text and an empty object are one.
fn value(payload: Option<&Payload>) -> Value {
    payload.filter(|p| !p.is_empty()).map_or_else(|| Value::Object(Map::new()), Payload::to_value)
}

/// Key by key where both are objects; otherwise the caller's own.
fn laid_over(base: Value, over: Option<&Payload>) -> Value {
    match (base, over.filter(|p| !p.is_empty()).map(Payload::to_value)) {
        (base, None) => base,
        (Value::Object(mut base), Some(Value::Object(over))) => {
            base.extend(over);
            Value::Object(base)
        }
        (_, Some(over)) => over,
    }
}

/// What callers laid over the params of a run's job. Some call with the run's key made it: the first that was heard.
fn by_caller(job: &Job, run: &Run) -> Vec<Option<Payload>> {
    let by_hand = run.source == Source::Manual;
    let of_key = job.triggers.iter().filter(|t| by_hand && Some(t.key.as_str()) == run.key.as_deref());
    let over: Vec<Option<Payload>> = of_key.map(|t| t.params.clone()).collect();
    if over.is_empty() { vec![None] } else { over }
}

/// What the DAG lays over the params of a node's job: its own, its caller's over them, and those of the node. None: nothing is known of the DAG.
fn by_dag(history: &History, run: &Run, body: &Body) -> Option<Vec<Option<Payload>>> {
    let dag = Dag::of(history, history.runs.get(&run.dag_run_id?)?)?.ok()?;
    let node = dag.graph.nodes.get(run.dag_node? as usize)?;
    let mut params = value(Some(&node.params));
    let names = params.as_object_mut()?;
    // What such a node reads may end after it was started and before its body began.
    let early = matches!(node.rule, NodeRule::AnySuccess | NodeRule::AnyFailed);
    if early && !names.is_empty() {
        return None;
    }
    for filled in names.values_mut() {
        let parent = filled.as_str().and_then(|text| text.strip_prefix("{{nodes.")?.strip_suffix(".result.rows}}"));
        if let Some(parent) = parent {
            let place = dag.graph.nodes.iter().position(|node| node.id == parent);
            let rows = place.and_then(|place| dag.at(body.start_us).get(place)?.rows);
            *filled = rows.map_or(Value::Null, Value::from);
        }
    }
    let over = by_caller(dag.job, dag.run).into_iter().map(|over| {
        let of_dag = laid_over(value(Some(&dag.job.spec.params)), over.as_ref());
        Some(Payload::from_value(&laid_over(of_dag, Some(&Payload::from_value(&params)))))
    });
    Some(over.collect())
}

fn given(history: &History, job: &Job, run: &Run, body: &Body, found: &mut Findings<'_>) {
    let over = if run.source == Source::Dag {
        let Some(over) = by_dag(history, run, body) else { return };
        over
    } else {
        by_caller(job, run)
    };
    let mut got = value(body.params.as_ref());
    if let (Source::Event | Source::Compensation, Value::Object(got)) = (run.source, &mut got) {
        // What a hook tells of the run that failed.
        got.remove("run");
    }
    let mut specs = job.in_force(us(run.created_at.0), body.start_us).peekable();
    if specs.peek().is_none() {
        return;
    }
    let fits = specs.any(|spec| {
        let secrets = spec.secret_params == body.secrets;
        secrets && over.iter().any(|over| laid_over(value(Some(&spec.params)), over.as_ref()) == got)
    });
    if !fits {
        let text = format!(
            "the body of run {} (token {}) got {got} and {} secrets; neither its job nor its caller gave it that",
            body.run,
            body.token,
            body.secrets.len()
        );
        found.of_run(ViolationKind::ParamsWrong, body.job, body.run, body.logical, text);
    }
}

fn handed_in(run: &Run, body: &Body, found: &mut Findings<'_>) {
    let Some(attempt) = run.attempt_of(body.token) else { return };
    let last = run.attempts.last().is_some_and(|last| last.token == body.token);
    let changed = |what: String, found: &mut Findings<'_>| {
        let text = format!("attempt {} of run {}: {what}", attempt.attempt, run.run_id);
        found.of_run(ViolationKind::PayloadChanged, body.job, body.run, body.logical, text);
    };
    match (attempt.state, body.end) {
        (AttemptState::Success, Some((_, AttemptState::Success))) if last && run.state == RunState::Success => {
            let (said, shown) =
                (body.result.as_ref().map(Payload::to_value), run.result.as_ref().map(Payload::to_value));
            if said != shown {
                changed(format!("its body handed in {said:?}, the history shows {shown:?}"), found);
            }
        }
        (AttemptState::Failed, Some((_, AttemptState::Failed))) => {
            if body.error.is_some() && attempt.error_code != body.error {
                changed(
                    format!("its body failed with {:?}, the history shows {:?}", body.error, attempt.error_code),
                    found,
                );
            }
        }
        (_, _) => {}
    }
}
