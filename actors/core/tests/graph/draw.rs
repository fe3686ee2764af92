//! Pictures of DAGs: places of nodes, Mermaid, ASCII.

use crate::graph::support::{Story, compiled, rule, spec, when};
use campanile_core::graph::layout::{LAYER_POINTS, NodePosition, ROW_POINTS};
use campanile_schema::graph::state::NodeRule;
use std::collections::BTreeSet;

#[test]
fn every_edge_leads_to_the_right_and_no_two_nodes_share_a_place() {
    for edges in ["A", "A>B>C", "A>B>D A>C>D A>D", "A>B C>D E", "A>F B>E C>D A>D B>F C>E"] {
        let graph = compiled(&spec(edges));
        let layout = graph.layout();
        for edge in &graph.edges {
            let [from, to] = [edge.from, edge.to].map(|node| layout.places[node as usize]);
            assert!(from.layer < to.layer, "{edges}");
        }
        let places: BTreeSet<(u32, u32)> = layout.places.iter().map(|place| (place.x, place.y)).collect();
        assert_eq!(places.len(), graph.nodes.len(), "{edges}");
        for NodePosition { x, y, .. } in &layout.places {
            assert!(*x < layout.width, "{edges}");
            assert!(*y < layout.height, "{edges}");
        }
    }
}

#[test]
fn layers_are_centred_and_ordered_without_needless_crossings() {
    let graph = compiled(&spec("A>B>D A>C>D"));
    let layout = graph.layout();
    let place = |id: &str| layout.places[graph.find(id).unwrap() as usize];
    let half = (LAYER_POINTS / 2, ROW_POINTS / 2);
    assert_eq!(place("A"), NodePosition { layer: 0, row: 0, x: half.0, y: ROW_POINTS });
    assert_eq!(place("C"), NodePosition { layer: 1, row: 1, x: LAYER_POINTS + half.0, y: ROW_POINTS + half.1 });
    assert_eq!((layout.width, layout.height), (3 * LAYER_POINTS, 2 * ROW_POINTS));
    // Three lines that cross as they are written, and need not.
    let graph = compiled(&spec("A B C X Y Z A>Z B>Y C>X"));
    let layout = graph.layout();
    let row = |id: &str| layout.places[graph.find(id).unwrap() as usize].row;
    assert_eq!(["A", "B", "C"].map(row), ["Z", "Y", "X"].map(row));
}

fn picture() -> campanile_schema::graph::GraphSpec {
    let mut dag = spec("load>check>report check>alarm");
    when(&mut dag, "check", "report", "parent.result.rows > 0 && parent.result.s == \"a|b\"");
    rule(&mut dag, "alarm", NodeRule::AnyFailed);
    dag
}

#[test]
fn mermaid_has_states_and_escapes_what_callers_wrote() {
    let (mut story, _) = Story::new(&picture());
    story.ok("load");
    story.failed("check");
    let text = story.run.graph().mermaid(Some(&story.run));
    let wanted = "flowchart LR
  n0[\"load<br/>SUCCESS\"]
  n1[\"check<br/>FAILED\"]
  n2[\"report<br/>UPSTREAM_FAILED\"]
  n3[\"alarm<br/>STARTING\"]
  n0 --> n1
  n1 -->|\"parent.result.rows #62; 0 #38;#38; parent.result....\"| n2
  n1 --> n3
  classDef STARTING fill:#dbeafe
  class n3 STARTING
  classDef SUCCESS fill:#86efac
  class n0 SUCCESS
  classDef FAILED fill:#fca5a5
  class n1 FAILED
  classDef UPSTREAM_FAILED fill:#fdba74
  class n2 UPSTREAM_FAILED
";
    assert_eq!(text, wanted);
    assert!(!story.run.graph().mermaid(None).contains("classDef"));
}

#[test]
fn ascii_lists_layers_and_what_each_node_waits_for() {
    let (mut story, _) = Story::new(&picture());
    story.ok("load");
    story.failed("check");
    let text = story.run.graph().ascii(Some(&story.run));
    let wanted = "layer 0
  [load]    SUCCESS
layer 1
  [check]   FAILED           <- load
layer 2
  [report]  UPSTREAM_FAILED  <- check (when parent.result.rows > 0 && parent.result....)
  [alarm]   STARTING         <- ANY_FAILED of check
";
    assert_eq!(text, wanted);
    let mut dag = picture();
    when(&mut dag, "check", "report", "parent.result.s == 'ä\u{1b}'");
    let text = compiled(&dag).ascii(None);
    assert!(text.is_ascii(), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}
