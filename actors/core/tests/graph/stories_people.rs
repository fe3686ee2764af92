//! What people do to runs of DAGs: cancel, retry, retry from a node, mark; and messages that come late or twice.

use crate::graph::support::{Story, rule, spec, when};
use campanile_core::graph::step::{EndState, GraphCommand, GraphEffect, NodeEnd};
use campanile_schema::{
    error::ErrorCode,
    graph::{
        change::{GraphChange, GraphPause},
        state::{NodeFailure, NodeRule, NodeState},
    },
    ids::RunId,
    record::RunState,
};

fn mark(story: &mut Story, id: &str, state: NodeState) -> Result<(), ErrorCode> {
    let node = story.place(id);
    let by = Some("ada".into());
    let command = GraphCommand::Mark { node, state, by, reason: Some("known".to_owned()) };
    story.run.step(&command).map(drop).map_err(|refused| refused.code)
}

#[test]
fn a_canceled_run_ends_when_its_last_child_has() {
    let (mut story, _) = Story::new(&spec("A>C B>C"));
    story.ok("A");
    let canceled = story.run.step(&GraphCommand::Cancel).unwrap();
    assert_eq!(story.cancels(&canceled), "B/1");
    assert_eq!(story.states(), "A SUCCESS, C CANCELED, B STARTING");
    assert_eq!(story.run.step(&GraphCommand::Cancel).unwrap().changes, [], "once is enough");
    story.end_as("B", EndState::Success, None);
    assert_eq!(story.run.state(), RunState::Canceled);
    assert_eq!(story.run.step(&GraphCommand::Cancel).unwrap_err().code, ErrorCode::IllegalState);
}

#[test]
fn a_run_that_takes_too_long_is_timeout_and_a_cancel_beats_it() {
    for (then_cancel, state) in [(false, RunState::Timeout), (true, RunState::Canceled)] {
        let (mut story, _) = Story::new(&spec("A>B"));
        let stopped = story.run.step(&GraphCommand::Timeout).unwrap();
        assert_eq!(story.cancels(&stopped), "A/1");
        if then_cancel {
            assert_eq!(story.run.step(&GraphCommand::Cancel).unwrap().effects, []);
        }
        story.failed("A");
        assert_eq!(story.run.state(), state);
    }
}

#[test]
fn a_retry_leaves_alone_what_ran() {
    let mut dag = spec("A>B>C B>H");
    rule(&mut dag, "H", NodeRule::AnyFailed);
    let (mut story, _) = Story::new(&dag);
    story.ok("A");
    story.failed("B");
    story.ok("H");
    assert_eq!(story.states(), "A SUCCESS, B FAILED, C UPSTREAM_FAILED, H SUCCESS");
    let after = story.retry("B", false);
    assert_eq!(story.starts(&after), "B/2");
    assert_eq!(story.states(), "A SUCCESS, B STARTING, C WAITING, H SUCCESS");
    story.ok("B");
    story.ok("C");
    assert_eq!(story.run.state(), RunState::Success);
}

#[test]
fn a_retry_from_a_node_takes_all_that_comes_after_it() {
    let (mut story, _) = Story::new(&spec("A>B>C X>C"));
    for id in ["A", "X", "B", "C"] {
        story.ok(id);
    }
    assert_eq!(story.run.state(), RunState::Success);
    let after = story.retry("B", true);
    assert_eq!(story.starts(&after), "B/2");
    assert_eq!(story.states(), "A SUCCESS, B STARTING, C WAITING, X SUCCESS");
    let after = story.ok("B");
    assert_eq!(story.starts(&after), "C/2");
}

#[test]
fn a_month_later_a_retry_goes_on_as_on_the_same_day() {
    let (mut story, _) = Story::new(&spec("A>B>C"));
    story.ok("A");
    for generation in 1..=40 {
        assert_eq!(story.run.generation(), generation);
        story.failed("B");
        story.retry("B", false);
    }
    let after = story.ok("B");
    assert_eq!(story.starts(&after), "C/1");
    assert_eq!(story.run.node(story.place("B")).generation(), 41);
}

#[test]
fn what_cannot_be_retried_or_marked_is_refused() {
    let (mut story, _) = Story::new(&spec("A>B>C X"));
    story.failed("A");
    let retry = |story: &mut Story, id: &str, and_after| {
        let nodes = vec![story.place(id)];
        let command = GraphCommand::Retry { nodes, and_after, by: None, reason: None };
        story.run.step(&command).unwrap_err()
    };
    assert!(retry(&mut story, "X", false).message.contains("node 'X' is STARTING"));
    assert!(retry(&mut story, "B", false).message.contains("node 'B' is UPSTREAM_FAILED: it did not run"));
    let none = GraphCommand::Retry { nodes: Vec::new(), and_after: false, by: None, reason: None };
    assert_eq!(story.run.step(&none).unwrap_err().code, ErrorCode::InvalidArgument);
    let nobody = GraphCommand::Retry { nodes: vec![9], and_after: false, by: None, reason: None };
    assert_eq!(story.run.step(&nobody).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(mark(&mut story, "X", NodeState::Success), Err(ErrorCode::IllegalState));
    assert_eq!(mark(&mut story, "A", NodeState::Failed), Err(ErrorCode::InvalidArgument));
    story.run.step(&GraphCommand::Cancel).unwrap();
    assert!(retry(&mut story, "A", false).message.contains("is being stopped"));
    assert_eq!(mark(&mut story, "A", NodeState::Success), Err(ErrorCode::IllegalState));
}

#[test]
fn a_mark_lets_the_run_go_on() {
    let mut dag = spec("A>B>C");
    when(&mut dag, "A", "B", "parent.result.rows > 0");
    let (mut story, _) = Story::new(&dag);
    story.failed("A");
    assert_eq!(story.run.state(), RunState::Failed);
    mark(&mut story, "A", NodeState::Success).unwrap();
    assert_eq!(story.states(), "A SUCCESS, B STARTING, C WAITING", "the condition is taken for true");
    assert!(story.run.node(story.place("A")).is_marked());
    assert_eq!(story.run.generation(), 2);
    story.ok("B");
    mark(&mut story, "C", NodeState::Skipped).unwrap_err();
    story.failed("C");
    mark(&mut story, "C", NodeState::Skipped).unwrap();
    assert_eq!((story.run.state(), story.run.generation()), (RunState::Success, 3));
}

#[test]
fn a_waiting_node_can_be_marked() {
    let (mut story, _) = Story::new(&spec("A>B>C"));
    mark(&mut story, "B", NodeState::Skipped).unwrap();
    assert_eq!(story.states(), "A STARTING, B SKIPPED, C SKIPPED");
    mark(&mut story, "B", NodeState::Success).unwrap();
    assert_eq!(story.states(), "A STARTING, B SUCCESS, C STARTING");
}

#[test]
fn late_and_doubled_ends_change_nothing() {
    let (mut story, _) = Story::new(&spec("A>B"));
    let end =
        |generation, state| GraphCommand::End(NodeEnd { node: 0, generation, run: RunId(7), state, result: None });
    story.run.step(&end(1, EndState::Failed)).unwrap();
    story.retry("A", false);
    let stale = story.run.step(&end(1, EndState::Failed)).unwrap();
    assert_eq!(stale.changes, []);
    assert_eq!(stale.effects, [GraphEffect::Start { node: 0, generation: 2 }], "it is asked for again");
    let taken = GraphCommand::Taken { node: 0, generation: 2, run: RunId(7) };
    story.run.step(&taken).unwrap();
    assert_eq!(story.run.step(&taken).unwrap().changes, []);
    let stale = story.run.step(&end(1, EndState::Success)).unwrap();
    assert_eq!((stale.changes, stale.effects), (Vec::<GraphChange>::new(), Vec::new()), "the run is there");
    story.run.step(&end(2, EndState::Success)).unwrap();
    for state in [EndState::Success, EndState::Failed] {
        assert_eq!(story.run.step(&end(2, state)).unwrap().changes, []);
    }
    assert_eq!(story.states(), "A SUCCESS, B STARTING");
}

#[test]
fn a_node_whose_job_refuses_or_is_out_of_reach_fails() {
    for why in [NodeFailure::Refused, NodeFailure::Undelivered] {
        let (mut story, _) = Story::new(&spec("A>B"));
        let stale = GraphCommand::Lost { node: 0, generation: 0, why };
        assert_eq!(story.run.step(&stale).unwrap().changes, []);
        story.run.step(&GraphCommand::Lost { node: 0, generation: 1, why }).unwrap();
        assert_eq!(story.states(), "A FAILED, B UPSTREAM_FAILED");
    }
}

fn pause(story: &mut Story) -> Result<Vec<GraphChange>, ErrorCode> {
    let pause = GraphPause { at_ms: 5, by: Some("ada".into()), reason: Some("the disk is full".to_owned()) };
    story.run.step(&GraphCommand::Pause(pause)).map(|decision| decision.changes).map_err(|refused| refused.code)
}

#[test]
fn a_paused_run_starts_no_node_until_it_is_resumed() {
    let (mut story, _) = Story::new(&spec("A>B X>Y"));
    assert_eq!(pause(&mut story).unwrap().len(), 1);
    assert_eq!(pause(&mut story).unwrap(), [], "once is enough");
    let after = story.ok("A");
    assert_eq!((story.starts(&after).as_str(), story.run.wants_wake()), ("", false));
    assert_eq!(story.states(), "A SUCCESS, B WAITING, X STARTING, Y WAITING", "what runs goes on");
    story.ok("X");
    assert_eq!((story.run.running(), story.run.state()), (0, RunState::Running), "it waits for a person");
    assert_eq!(story.run.paused().unwrap().by.as_deref(), Some("ada"));
    let resume = GraphCommand::Resume { by: None, reason: None };
    let after = story.run.step(&resume).unwrap();
    assert_eq!(story.starts(&after), "B/1 Y/1");
    assert_eq!(story.run.step(&resume).unwrap().changes, []);
    story.ok("B");
    story.ok("Y");
    assert_eq!(story.run.state(), RunState::Success);
    assert_eq!(pause(&mut story), Err(ErrorCode::IllegalState));
    assert_eq!(story.run.step(&resume).unwrap_err().code, ErrorCode::IllegalState);
}

#[test]
fn a_paused_run_can_be_canceled_and_fails_fast() {
    let (mut story, _) = Story::new(&spec("A>B"));
    pause(&mut story).unwrap();
    story.ok("A");
    story.run.step(&GraphCommand::Cancel).unwrap();
    assert_eq!((story.states().as_str(), story.run.state()), ("A SUCCESS, B CANCELED", RunState::Canceled));
    assert_eq!(story.run.paused(), None, "what has ended is not paused");
    let mut dag = spec("A>B X>Y");
    dag.fail_fast = true;
    let (mut story, _) = Story::new(&dag);
    pause(&mut story).unwrap();
    story.failed("A");
    assert_eq!(story.states(), "A FAILED, B UPSTREAM_FAILED, X STARTING, Y CANCELED");
    assert_eq!(pause(&mut story), Err(ErrorCode::IllegalState), "it is being stopped");
}

#[test]
fn numbers_that_no_node_has_change_nothing() {
    let (mut story, _) = Story::new(&spec("A"));
    let before = story.run.clone();
    let run = RunId(1);
    for command in [
        GraphCommand::Taken { node: 5, generation: 1, run },
        GraphCommand::Lost { node: 5, generation: 1, why: NodeFailure::Refused },
        GraphCommand::End(NodeEnd { node: 5, generation: 1, run, state: EndState::Success, result: None }),
        GraphCommand::End(NodeEnd { node: 0, generation: 70_000, run, state: EndState::Success, result: None }),
    ] {
        assert_eq!(story.run.step(&command).unwrap().changes, [], "{command:?}");
    }
    for change in [
        GraphChange::Started { nodes: vec![5] },
        GraphChange::Taken { node: 5, run, generation: 1 },
        GraphChange::Marked { node: 5, state: NodeState::Success, by: None, reason: None },
        GraphChange::Reset { generation: 1, nodes: vec![5], by: None, reason: None },
    ] {
        story.run.apply(&change);
    }
    assert!(story.run == before);
}
