//! What DAGs cost by themselves, one thread, nothing stored or sent: `cargo run --release -p campanile-core --example bench_graph`.
//!
//! Per line the best of five rounds. Targets: the largest DAG compiles in well below a second; the end of a node costs as much as it has
//! children.
#![allow(clippy::unwrap_used)]

use campanile_core::graph::{
    compile::{Graph, prepare},
    run::GraphRun,
    step::{EndState, GraphCommand, GraphEffect, NodeEnd},
};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec},
    ids::RunId,
    limits,
    payload::Payload,
};
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

const ROUNDS: u32 = 5;

fn best(mut call: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| call()).min().unwrap()
}

fn timed<T>(call: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(call());
    start.elapsed()
}

fn line(what: &str, time: Duration) {
    println!("{what:<66} {:>12.3} us", time.as_nanos() as f64 / 1_000.0);
}

/// 1,000 nodes, and 10,000 edges, nearly all of them from one of the 10 nodes before.
fn largest() -> GraphSpec {
    let id = |node: usize| format!("node-{node}");
    let nodes = (0..limits::GRAPH_NODES).map(|node| NodeSpec::new(&id(node), &format!("finance/{node}"))).collect();
    let near = (0..limits::GRAPH_NODES).flat_map(|to| (to.saturating_sub(10)..to).map(move |from| (from, to)));
    let pairs = near.chain((11..limits::GRAPH_NODES).map(|to| (to - 11, to)));
    let edges = pairs.take(limits::GRAPH_EDGES).map(|(from, to)| EdgeSpec::new(&id(from), &id(to))).collect();
    GraphSpec::new(nodes, edges)
}

/// The same with as many different conditions as may be, and a template in every node.
fn dearest() -> GraphSpec {
    let mut spec = largest();
    for (at, edge) in spec.edges.iter_mut().enumerate() {
        edge.when = Some(format!("parent.result.rows > {}", at % limits::GRAPH_CONDITIONS));
    }
    for at in 1..spec.nodes.len() {
        spec.nodes[at].params = Payload(format!(r#"{{"n":"{{{{nodes.node-{}.result.rows}}}}"}}"#, at - 1));
    }
    spec.max_parallel = limits::GRAPH_PARALLEL_MAX;
    spec
}

/// One node before all others, or before a part of them.
fn star(children: usize) -> Arc<Graph> {
    let mut nodes = vec![NodeSpec::new("first", "job"), NodeSpec::new("gate", "job")];
    let mut edges = Vec::new();
    for child in 0..limits::GRAPH_NODES - 2 {
        let id = format!("n{child}");
        nodes.push(NodeSpec::new(&id, "job"));
        edges.push(EdgeSpec::new("gate", &id));
        if child < children {
            edges.push(EdgeSpec::new("first", &id));
        }
    }
    Arc::new(prepare(&GraphSpec::new(nodes, edges)).unwrap().1)
}

fn end(node: u32, generation: u32, result: Option<&str>) -> GraphCommand {
    let result = result.map(|json| Payload(json.to_owned()));
    GraphCommand::End(NodeEnd { node, generation, run: RunId(1), state: EndState::Success, result })
}

/// A whole run: every node starts, is taken and ends.
fn whole(graph: &Arc<Graph>, result: Option<&str>) -> u32 {
    let mut run = GraphRun::new(Arc::clone(graph), Some(0));
    let mut open: Vec<u32> = Vec::new();
    let mut decision = run.step(&GraphCommand::Wake).unwrap();
    let mut ends = 0;
    loop {
        for effect in &decision.effects {
            if let GraphEffect::Start { node, .. } = *effect {
                open.push(node);
            }
        }
        if decision.wake {
            decision = run.step(&GraphCommand::Wake).unwrap();
            continue;
        }
        let Some(node) = open.pop() else { break };
        let _ = run.step(&GraphCommand::Taken { node, generation: 1, run: RunId(1) }).unwrap();
        decision = run.step(&end(node, 1, result)).unwrap();
        ends += 1;
    }
    assert!(run.state().is_final());
    ends
}

fn main() {
    let (plain, dear) = (largest(), dearest());
    line("compile 1,000 nodes, 10,000 edges", best(|| timed(|| prepare(&plain).unwrap())));
    line("... with 1,000 conditions and 999 templates", best(|| timed(|| prepare(&dear).unwrap())));
    let stored = prepare(&dear).unwrap().0;
    println!("its stored form takes {} KiB", stored.encoded_bytes() / 1_024);
    let graph = Arc::new(Graph::compile(&stored).unwrap());
    line("layout of it", best(|| timed(|| graph.layout())));
    line("its Mermaid", best(|| timed(|| graph.mermaid(None))));
    for children in [1, 10, 100, 900] {
        let graph = star(children);
        let time = best(|| {
            let mut run = GraphRun::new(Arc::clone(&graph), Some(0));
            let _ = run.step(&GraphCommand::Wake).unwrap();
            let command = end(0, 1, None);
            timed(|| run.step(&command).unwrap())
        });
        line(&format!("the end of a node with {children} children of 1,000 nodes"), time);
    }
    let plain = Arc::new(prepare(&plain).unwrap().1);
    let mut ends = 0;
    let time = best(|| timed(|| ends = whole(&plain, None)));
    line("a node of the first: start, taken, end, with its part of the rest", time / ends);
    let time = best(|| timed(|| ends = whole(&graph, Some(r#"{"rows":5000}"#))));
    line("a node of the second, with 10 conditions to evaluate", time / ends);
}
