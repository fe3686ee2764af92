//! Samples of DAGs and of what happens to their runs.

use campanile_schema::{
    graph::{
        StoredEdge, StoredGraph, StoredNode,
        change::{EdgeJudged, GraphChange, NodePassed},
        state::{EdgeFact, NodeFailure, NodeRule, NodeState, StopCause},
    },
    ids::RunId,
    payload::Payload,
    record::RunState,
};

pub fn graphs() -> Vec<(&'static str, StoredGraph)> {
    let plain = |id: &str, job: &str| StoredNode {
        id: id.into(),
        job: job.into(),
        params: Payload::default(),
        rule: NodeRule::default(),
        timeout_sec: None,
    };
    let edge = |from, to| StoredEdge { from, to, when: None };
    let mut last = plain("C", "finance/report");
    last.rule = NodeRule::AnyFailed;
    last.params = Payload(r#"{"rows":"{{nodes.A.result.rows}}"}"#.to_owned());
    last.timeout_sec = Some(600);
    let nodes = vec![plain("A", "finance/load"), plain("B", "finance/summary"), last];
    let taken = StoredEdge { when: Some("parent.result.rows > 0".into()), ..edge(1, 2) };
    let alone = StoredGraph { nodes: vec![plain("1", "one")], edges: Vec::new(), fail_fast: false, max_parallel: 50 };
    let full = StoredGraph { nodes, edges: vec![edge(0, 1), taken], fail_fast: true, max_parallel: 8 };
    vec![("one node", alone), ("every field", full)]
}

/// Every change, optional fields set and left out.
pub fn changes() -> Vec<GraphChange> {
    let (node, run, generation) = (1, RunId(11_944), 2);
    let (by, reason) = (Some("ada".into()), Some("re-run after fix".to_owned()));
    let ended = |state, failure| GraphChange::Ended {
        node,
        generation,
        state,
        failure,
        run: None,
        result: None,
        edges: Vec::new(),
    };
    vec![
        GraphChange::Started { nodes: vec![0, 300] },
        GraphChange::Taken { node, run, generation },
        ended(NodeState::Failed, Some(NodeFailure::ResultMissing)),
        GraphChange::Ended {
            node,
            generation,
            state: NodeState::Success,
            failure: None,
            run: Some(run),
            result: Some(Payload(r#"{"rows":0}"#.to_owned())),
            edges: vec![
                EdgeJudged { edge: 1, fact: EdgeFact::NotTaken },
                EdgeJudged { edge: 700, fact: EdgeFact::Broken },
            ],
        },
        GraphChange::Passed {
            nodes: vec![
                NodePassed { node: 2, state: NodeState::Skipped },
                NodePassed { node: 3, state: NodeState::UpstreamFailed },
            ],
        },
        GraphChange::Stopped { cause: StopCause::FailFast },
        GraphChange::Reset { generation, nodes: vec![1, 2], by: None, reason: None },
        GraphChange::Reset { generation, nodes: Vec::new(), by: by.clone(), reason: reason.clone() },
        GraphChange::Marked { node, state: NodeState::Skipped, by: None, reason: None },
        GraphChange::Marked { node, state: NodeState::Success, by, reason },
        GraphChange::Finished { state: RunState::Canceled },
    ]
}

/// The name of a change's variant; the match stops the compiler when one is added.
pub fn change_name(change: &GraphChange) -> &'static str {
    match change {
        GraphChange::Started { .. } => "Started",
        GraphChange::Taken { .. } => "Taken",
        GraphChange::Ended { .. } => "Ended",
        GraphChange::Passed { .. } => "Passed",
        GraphChange::Stopped { .. } => "Stopped",
        GraphChange::Reset { .. } => "Reset",
        GraphChange::Marked { .. } => "Marked",
        GraphChange::Finished { .. } => "Finished",
    }
}
