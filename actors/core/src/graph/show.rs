//! A run of a DAG as callers see it.

use super::{compile::Graph, run::GraphRun};
use crate::reject::Rejection;
use campanile_schema::{
    graph::{StoredGraph, state::NodeFailure},
    limits::{GRAPH_RESULT_BYTES, NODE_RESULT_BYTES, PARAMS_BYTES},
    stored::graph::GraphRecord,
    time::Timestamp,
    view::{
        RunView,
        dag::{DagDrawing, DagEdgeView, DagNodeView, DagPauseView, DagRunView},
    },
};
use std::sync::Arc;

/// The nodes of a run. `graph` is that of the record, or the job's own where the record has left it out.
pub fn shown(
    run: &RunView,
    record: &GraphRecord,
    graph: &StoredGraph,
    draw: Option<DagDrawing>,
) -> Result<DagRunView, Rejection> {
    let graph = Arc::new(Graph::compile(graph)?);
    let state = GraphRun::from_stored(graph.clone(), &record.state);
    let layout = graph.layout();
    let node = |(at, (node, place)): (u32, (&super::compile::GraphNode, &super::layout::NodePosition))| DagNodeView {
        id: node.id.to_string(),
        job: node.job.to_string(),
        rule: node.rule,
        state: state.node(at).state(),
        marked: state.node(at).is_marked(),
        run_id: state.node(at).run(),
        generation: state.node(at).generation(),
        failure: state.failure(at),
        error: state.failure(at).map(sentence),
        layer: place.layer,
        row: place.row,
        x: place.x,
        y: place.y,
    };
    let id = |node: u32| graph.node(node).id.to_string();
    let edge = |(at, edge): (u32, &super::compile::GraphEdge)| DagEdgeView {
        from: id(edge.from),
        to: id(edge.to),
        when: edge.condition.as_ref().map(|condition| condition.text().to_owned()),
        outcome: state.fact(at),
    };
    Ok(DagRunView {
        run_id: run.run_id,
        job_id: run.job_id,
        tenant_id: run.tenant_id.clone(),
        state: run.state,
        generation: run.generation,
        version: record.version,
        nodes: (0..).zip(graph.nodes.iter().zip(&layout.places)).map(node).collect(),
        edges: (0..).zip(&graph.edges).map(edge).collect(),
        width: layout.width,
        height: layout.height,
        paused: record.state.paused.as_ref().map(|pause| DagPauseView {
            since: Timestamp(pause.at_ms),
            by: pause.by.as_ref().map(ToString::to_string),
            reason: pause.reason.clone(),
        }),
        drawing: draw.map(|draw| match draw {
            DagDrawing::Mermaid => graph.mermaid(Some(&state)),
            DagDrawing::Ascii => graph.ascii(Some(&state)),
        }),
    })
}

fn sentence(failure: NodeFailure) -> String {
    match failure {
        NodeFailure::Run => "its run failed".to_owned(),
        NodeFailure::Timeout => "its run reached its timeout".to_owned(),
        NodeFailure::ResultTooLarge => format!(
            "it succeeded, but the fields of its result that the DAG reads take more than {NODE_RESULT_BYTES} bytes, or those \
             of all nodes more than {GRAPH_RESULT_BYTES}; let it return less"
        ),
        NodeFailure::ResultMissing => {
            "its params read a field that the result of the node before it does not have; let that node return the field"
                .to_owned()
        }
        NodeFailure::ParamsTooLarge => {
            format!("its params take more than {PARAMS_BYTES} bytes once their templates are filled in; read less")
        }
        NodeFailure::Refused => {
            "its job refused the run for good: the job was deleted, or it has become a DAG; create it and retry the node"
                .to_owned()
        }
        NodeFailure::Undelivered => {
            "its job could not be reached for as long as a message is repeated; retry the node".to_owned()
        }
    }
}
