//! Runs of DAGs, told step by step.

use crate::graph::support::{Story, params, rule, spec, when};
use campanile_core::graph::step::{EndState, GraphCommand};
use campanile_schema::{
    graph::change::GraphChange,
    graph::state::{NodeFailure, NodeRule, NodeState},
    limits,
    payload::Payload,
    record::RunState,
};

fn failure_of(changes: &[GraphChange]) -> Vec<NodeFailure> {
    changes
        .iter()
        .filter_map(|change| match change {
            GraphChange::Ended { failure, .. } => *failure,
            GraphChange::Started { .. }
            | GraphChange::Taken { .. }
            | GraphChange::Passed { .. }
            | GraphChange::Stopped { .. }
            | GraphChange::Reset { .. }
            | GraphChange::Marked { .. }
            | GraphChange::Paused { .. }
            | GraphChange::Resumed { .. }
            | GraphChange::Finished { .. } => None,
        })
        .collect()
}

#[test]
fn c_does_not_start_when_b_fails_and_goes_on_when_b_is_retried() {
    let (mut story, begun) = Story::new(&spec("A>B>C"));
    assert_eq!(story.starts(&begun), "A/1");
    let after = story.ok("A");
    assert_eq!(story.starts(&after), "B/1");
    let after = story.failed("B");
    assert_eq!(story.starts(&after), "");
    assert_eq!(story.states(), "A SUCCESS, B FAILED, C UPSTREAM_FAILED");
    assert_eq!((story.run.state(), story.run.generation()), (RunState::Failed, 1));
    let after = story.retry("B", false);
    assert_eq!(story.starts(&after), "B/2");
    assert_eq!((story.run.state(), story.run.generation()), (RunState::Running, 2));
    let after = story.ok("B");
    assert_eq!(story.starts(&after), "C/1");
    story.ok("C");
    assert_eq!(story.run.state(), RunState::Success);
}

#[test]
fn a_failure_stops_only_what_depends_on_it() {
    let (mut story, _) = Story::new(&spec("A>B>C X>Y"));
    story.failed("A");
    assert_eq!(story.states(), "A FAILED, B UPSTREAM_FAILED, C UPSTREAM_FAILED, X STARTING, Y WAITING");
    story.ok("X");
    story.ok("Y");
    assert_eq!((story.state("Y"), story.run.state()), (NodeState::Success, RunState::Failed));
}

#[test]
fn fail_fast_stops_everything() {
    let mut dag = spec("A>B X>Y");
    dag.fail_fast = true;
    let (mut story, _) = Story::new(&dag);
    let after = story.failed("A");
    assert_eq!(story.cancels(&after), "X/1");
    assert_eq!(story.states(), "A FAILED, B UPSTREAM_FAILED, X STARTING, Y CANCELED");
    assert_eq!(story.run.state(), RunState::Running, "X has not ended");
    story.end_as("X", EndState::Canceled, None);
    assert_eq!(story.run.state(), RunState::Failed);
    // It goes on: Y waits again, and X is retried by its name only.
    let after = story.retry("A", false);
    assert_eq!(story.starts(&after), "A/2");
    assert_eq!(story.states(), "A STARTING, B WAITING, X CANCELED, Y UPSTREAM_FAILED");
}

#[test]
fn any_rules_fire_while_others_run_and_a_handler_makes_the_run_good() {
    let mut dag = spec("A>H B>H A>S B>S");
    rule(&mut dag, "H", NodeRule::AnyFailed);
    rule(&mut dag, "S", NodeRule::AnySuccess);
    let (mut story, _) = Story::new(&dag);
    let after = story.failed("A");
    assert_eq!(story.starts(&after), "H/1", "B still runs");
    let after = story.ok("B");
    assert_eq!(story.starts(&after), "S/1");
    story.ok("H");
    story.ok("S");
    assert_eq!(story.run.state(), RunState::Success);
}

#[test]
fn a_failure_after_its_handler_had_started_is_not_handled() {
    let mut dag = spec("A>H B>H");
    rule(&mut dag, "H", NodeRule::AnyFailed);
    let (mut story, _) = Story::new(&dag);
    story.failed("A");
    story.failed("B");
    story.ok("H");
    assert_eq!(story.run.state(), RunState::Failed, "H ran because of A, and nobody looked at B's failure");
}

#[test]
fn conditions_choose_between_branches() {
    let mut dag = spec("A>B>D A>C>D");
    when(&mut dag, "A", "B", "parent.result.rows > 0");
    when(&mut dag, "A", "C", "parent.result.rows == 0");
    rule(&mut dag, "D", NodeRule::NoneFailed);
    let (mut story, _) = Story::new(&dag);
    let after = story.end_as("A", EndState::Success, Some(r#"{"rows":3,"unread":"x"}"#));
    assert_eq!(story.starts(&after), "B/1");
    assert_eq!(story.state("C"), NodeState::Skipped);
    assert_eq!(story.run.result(story.place("A")), Some(&Payload(r#"{"rows":3}"#.to_owned())));
    let after = story.ok("B");
    assert_eq!(story.starts(&after), "D/1");
}

#[test]
fn a_condition_that_cannot_be_evaluated_is_a_failure() {
    let mut dag = spec("A>B");
    when(&mut dag, "A", "B", "parent.result.rows > 0");
    for result in [None, Some(r#"{"rows":"many"}"#), Some(r#"{"other":1}"#), Some("[]")] {
        let (mut story, _) = Story::new(&dag);
        story.end_as("A", EndState::Success, result);
        assert_eq!(story.states(), "A SUCCESS, B UPSTREAM_FAILED", "{result:?}");
        assert_eq!(story.run.state(), RunState::Failed);
    }
    when(&mut dag, "A", "B", "has(parent.result.rows) && parent.result.rows > 0");
    let (mut story, _) = Story::new(&dag);
    story.end_as("A", EndState::Success, Some("{}"));
    assert_eq!(story.states(), "A SUCCESS, B SKIPPED");
    assert_eq!(story.run.state(), RunState::Success);
}

#[test]
fn results_and_the_logical_time_become_params() {
    let mut dag = spec("A>B>C");
    params(&mut dag, "C", r#"{"n":"{{nodes.A.result.rows}}","at":"{{run.logicalTime}}","own":1}"#);
    let (mut story, _) = Story::new(&dag);
    story.end_as("A", EndState::Success, Some(r#"{"rows":3}"#));
    story.ok("B");
    let body = story.run.start_body(story.place("C"), &Payload(r#"{"day":"x","own":0}"#.to_owned())).unwrap();
    let wanted = serde_json::json!({"n":3,"at":"2026-06-21T00:00:00.000Z","own":1,"day":"x"});
    assert_eq!(body.params.to_value(), wanted);
    assert_eq!((body.job.as_str(), body.generation, body.logical_ms), ("jobs/C", 1, Some(1_782_000_000_000)));
    let read = story.run.start_body(story.place("A"), &Payload::default()).unwrap();
    assert_eq!(read.fields, ["rows"]);
}

#[test]
fn a_template_without_its_value_fails_the_node_unless_the_other_did_not_succeed() {
    let mut dag = spec("A>B>C");
    params(&mut dag, "B", r#"{"n":"{{nodes.A.result.rows}}"}"#);
    let (mut story, _) = Story::new(&dag);
    let after = story.end_as("A", EndState::Success, Some(r#"{"row":3}"#));
    assert_eq!(story.starts(&after), "");
    assert_eq!(failure_of(&after.changes), [NodeFailure::ResultMissing]);
    assert_eq!(story.states(), "A SUCCESS, B FAILED, C UPSTREAM_FAILED");
    rule(&mut dag, "B", NodeRule::AllDone);
    let (mut story, _) = Story::new(&dag);
    let after = story.failed("A");
    assert_eq!(story.starts(&after), "B/1");
    let body = story.run.start_body(story.place("B"), &Payload::default()).unwrap();
    assert_eq!(body.params.0, r#"{"n":null}"#);
}

/// A result of so many bytes in the field that is read.
fn sized(bytes: usize) -> String {
    format!(r#"{{"rows":"{}"}}"#, "x".repeat(bytes - r#"{"rows":""}"#.len()))
}

/// Whether a node with a result of so many bytes succeeds.
fn one_result(bytes: usize) -> NodeState {
    let mut dag = spec("A>B");
    params(&mut dag, "B", r#"{"n":"{{nodes.A.result.rows}}"}"#);
    let (mut story, _) = Story::new(&dag);
    story.end_as("A", EndState::Success, Some(&sized(bytes)));
    story.state("A")
}

/// Ends of as many nodes with the largest results as fit, and of one more.
fn many_results() -> (Vec<NodeState>, NodeState) {
    let fit = limits::GRAPH_RESULT_BYTES / limits::NODE_RESULT_BYTES;
    let names: Vec<String> = (0..=fit).map(|n| format!("n{n}")).collect();
    let edges: Vec<String> = names.iter().map(|name| format!("{name}>last")).collect();
    let mut dag = spec(&edges.join(" "));
    dag.max_parallel = 1_000;
    let fields: Vec<String> =
        names.iter().map(|name| format!(r#""{name}":"{{{{nodes.{name}.result.rows}}}}""#)).collect();
    params(&mut dag, "last", &format!("{{{}}}", fields.join(",")));
    let (mut story, begun) = Story::new(&dag);
    if begun.wake {
        story.run.step(&GraphCommand::Wake).unwrap();
    }
    for name in &names {
        story.end_as(name, EndState::Success, Some(&sized(limits::NODE_RESULT_BYTES)));
    }
    let mut states: Vec<NodeState> = names.iter().map(|name| story.state(name)).collect();
    let last = states.pop().unwrap();
    (states, last)
}

#[test]
fn results_are_bounded() {
    assert_eq!(one_result(limits::NODE_RESULT_BYTES), NodeState::Success);
    assert_eq!(one_result(limits::NODE_RESULT_BYTES + 1), NodeState::Failed);
    let (fit, over) = many_results();
    assert!(fit.iter().all(|state| *state == NodeState::Success));
    assert_eq!(over, NodeState::Failed);
    // What is not read is not counted.
    let (mut story, _) = Story::new(&spec("A>B"));
    story.end_as("A", EndState::Success, Some(&sized(10_000)));
    assert_eq!(story.state("A"), NodeState::Success);
}

#[cfg(feature = "faults")]
#[test]
fn results_without_bounds_are_found_out() {
    use campanile_core::graph::clauses::{Clause, break_rule};
    break_rule(Some(Clause::NodeResultLimit));
    let one = one_result(limits::NODE_RESULT_BYTES + 1);
    break_rule(Some(Clause::RunResultLimit));
    let (_, many) = many_results();
    break_rule(None);
    assert_eq!((one, many), (NodeState::Success, NodeState::Success), "broken on purpose, and no test saw it");
}

#[test]
fn starts_are_bounded_and_the_rest_follows() {
    let names: Vec<String> = (0..150).map(|n| format!("n{n}")).collect();
    let mut dag = spec(&names.join(" "));
    dag.max_parallel = 100;
    let (mut story, begun) = Story::new(&dag);
    assert_eq!((begun.effects.len(), begun.wake), (64, true));
    let more = story.run.step(&GraphCommand::Wake).unwrap();
    assert_eq!((more.effects.len(), more.wake), (36, false));
    let after = story.ok("n0");
    assert_eq!(story.starts(&after), "n100/1");
}
