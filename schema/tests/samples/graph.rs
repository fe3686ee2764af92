//! Samples of DAGs and of what happens to their runs.

use super::{AT, JOB, RUN, Sample, sample};
use campanile_schema::{
    event::Event,
    graph::{
        StoredEdge, StoredGraph, StoredNode,
        change::{EdgeJudged, GraphChange, GraphPause, NodePassed},
        state::{EdgeFact, NodeFailure, NodeRule, NodeState, StopCause},
    },
    ids::RunId,
    payload::Payload,
    peer::outbox::{EndBody, NodeBody},
    record::{RunRecord, RunState, Source},
    stored::{
        StoredAction, StoredJob,
        graph::{GraphItem, GraphRecord, StoredFailure, StoredGraphRun, StoredMark, StoredNodeRun},
    },
};
use std::sync::Arc;

pub fn graphs() -> Vec<(&'static str, StoredGraph)> {
    let plain = |id: &str, job: &str| StoredNode {
        id: id.into(),
        job: job.into(),
        params: Payload::default(),
        rule: NodeRule::default(),
        timeout_sec: None,
        deadline: None,
    };
    let edge = |from, to| StoredEdge { from, to, when: None };
    let mut last = plain("C", "finance/report");
    last.rule = NodeRule::AnyFailed;
    last.params = Payload(r#"{"rows":"{{nodes.A.result.rows}}"}"#.to_owned());
    last.timeout_sec = Some(600);
    let nodes = vec![plain("A", "finance/load"), plain("B", "finance/summary"), last];
    let taken = StoredEdge { when: Some("parent.result.rows > 0".into()), ..edge(1, 2) };
    let alone = StoredGraph {
        nodes: vec![plain("1", "one")],
        edges: Vec::new(),
        fail_fast: false,
        max_parallel: 50,
        timeout_sec: None,
    };
    let full =
        StoredGraph { nodes, edges: vec![edge(0, 1), taken], fail_fast: true, max_parallel: 8, timeout_sec: None };
    let limited = StoredGraph { timeout_sec: Some(7_200), ..alone.clone() };
    vec![("one node", alone), ("every field", full), ("with a timeout", limited)]
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
        GraphChange::Paused { pause: pause() },
        GraphChange::Paused { pause: GraphPause { at_ms: AT, by: None, reason: None } },
        GraphChange::Resumed { by: Some("ada".into()), reason: Some("the disk has room".to_owned()) },
        GraphChange::Resumed { by: None, reason: None },
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
        GraphChange::Paused { .. } => "Paused",
        GraphChange::Resumed { .. } => "Resumed",
        GraphChange::Finished { .. } => "Finished",
    }
}

/// A run of a DAG as it goes on.
pub fn event() -> Event {
    let changes = vec![GraphChange::Started { nodes: vec![0] }];
    Event::GraphChanged { job: JOB, run: RUN, generation: 1, changes, at_ms: AT }
}

fn pause() -> GraphPause {
    GraphPause { at_ms: AT, by: Some("ada".into()), reason: Some("the disk is full".to_owned()) }
}

fn waiting() -> StoredNodeRun {
    StoredNodeRun { state: NodeState::Waiting, generation: 0, run: None, marked: false, held: false }
}

fn states() -> Vec<(&'static str, StoredGraphRun)> {
    let began = StoredGraphRun {
        nodes: vec![waiting(), waiting()],
        generation: 1,
        stops: 0,
        finished: None,
        logical_ms: None,
        marks: Vec::new(),
        results: Vec::new(),
        failures: Vec::new(),
        paused: None,
    };
    let node = |state| StoredNodeRun { state, generation: 2, run: Some(RUN), ..waiting() };
    let ended = StoredGraphRun {
        nodes: vec![
            node(NodeState::Success),
            StoredNodeRun { marked: true, ..node(NodeState::Skipped) },
            StoredNodeRun { state: NodeState::Canceled, held: true, ..waiting() },
        ],
        generation: 2,
        stops: 4,
        finished: Some(RunState::Failed),
        logical_ms: Some(AT),
        marks: vec![StoredMark { edge: 0, fact: Some(EdgeFact::NotTaken) }, StoredMark { edge: 300, fact: None }],
        results: vec![(0, Payload(r#"{"rows":0}"#.to_owned()))],
        failures: Vec::new(),
        paused: None,
    };
    let why = NodeFailure::ResultTooLarge;
    let refused = StoredGraphRun {
        nodes: vec![node(NodeState::Failed)],
        failures: vec![StoredFailure { node: 0, why }],
        ..began.clone()
    };
    let paused = StoredGraphRun { paused: Some(pause()), ..began.clone() };
    vec![("began", began), ("every field", ended), ("with a failure", refused), ("paused", paused)]
}

fn record(graph: Option<StoredGraph>) -> GraphRecord {
    let (_, state) = states().remove(1);
    GraphRecord { version: 3, print: 0x1234_5678_9abc_def0, graph: graph.map(Arc::new), state }
}

/// A DAG as a job.
fn job() -> StoredJob {
    let mut job = super::typical();
    job.action = Some(StoredAction::Dag(Arc::new(graphs().remove(0).1)));
    job
}

/// What is stored of the runs of DAGs, and what travels between them and the jobs of their nodes.
pub fn stored() -> Vec<Sample> {
    let (_, began) = states().remove(0);
    let items = [
        ("a definition", GraphItem::Definition { job: JOB, version: 3, definition: Arc::new(job()) }),
        ("a run", GraphItem::Run { job: JOB, run: RUN, version: 3, began_ms: AT, state: began }),
    ];
    let (_, graph) = graphs().remove(0);
    let of_dag = RunRecord { graph: Some(Arc::new(record(Some(graph)))), ..super::runs()[0].1.clone() };
    let of_node =
        RunRecord { source: Source::Dag, dag: Some((RUN.0, 1)), timeout_sec: Some(600), ..super::runs()[0].1.clone() };
    let made = Event::RunCreated {
        job: JOB,
        run: RUN,
        source: Source::Dag,
        logical_ms: Some(AT),
        key: Some("\u{1}n11944/1".to_owned()),
        params: None,
        reason: None,
        by: None,
        held: true,
        at_ms: AT,
        interval: None,
        late: false,
        dag: Some((11_944, 1)),
        depth: 1,
        marked: false,
        timeout_sec: Some(600),
        backfill: None,
        budget: None,
        sealed: None,
    };
    let params = Payload("{\"a\":1}".to_owned());
    let (timeout_sec, logical_ms) = (Some(600), Some(AT));
    let node = NodeBody {
        dag: RUN,
        node: 1,
        generation: 2,
        params,
        timeout_sec,
        logical_ms,
        trace: None,
        back: false,
        budget: None,
        deadline: None,
        scheduled: false,
    };
    let traced = NodeBody { trace: Some(super::audit::trace()), ..node.clone() };
    let cancel = NodeBody { node: 0, params: Payload::default(), timeout_sec: None, logical_ms: None, ..node.clone() };
    let result = Some(Payload("{\"rows\":3}".to_owned()));
    let end = EndBody { dag: RUN, node: 1, run: RunId(16_040), generation: 2, state: RunState::Success, result };
    let failed = EndBody { node: 0, state: RunState::Failed, result: None, ..end.clone() };
    let mut samples = vec![
        sample("event", "GraphChanged", &event()),
        sample("event", "RunCreated, by a DAG", &made),
        sample("job", "a DAG", &job()),
        sample("run", "of a DAG", &of_dag),
        sample("run", "of a node", &of_node),
        sample("graph record", "without its graph", &record(None)),
        sample("node body", "every field", &node),
        sample("node body", "short", &cancel),
        sample("node body", "in a trace", &traced),
        sample("node body", "of a DAG run of a hook", &NodeBody { budget: Some(3), ..node.clone() }),
        sample("end body", "every field", &end),
        sample("end body", "short", &failed),
    ];
    samples.extend(states().iter().map(|(name, state)| sample("graph run", name, state)));
    samples.extend(items.iter().map(|(name, item)| sample("graph item", name, item)));
    samples
}

/// The run of a node whose DAG run is of a backfill.
pub fn node_body_of_backfill() -> NodeBody {
    let params = Payload::default();
    NodeBody {
        dag: RUN,
        node: 1,
        generation: 1,
        params,
        timeout_sec: None,
        logical_ms: Some(AT),
        trace: None,
        back: true,
        budget: None,
        deadline: None,
        scheduled: false,
    }
}
