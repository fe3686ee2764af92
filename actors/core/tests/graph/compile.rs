//! What compiles and what is refused, with which words.

use crate::graph::support::{compiled, params, rule, spec, when};
use campanile_core::graph::{
    compile::{Graph, prepare},
    condition::{Condition, Parent},
};
use campanile_schema::{
    error::ErrorCode,
    graph::{EdgeSpec, GraphSpec, NodeSpec, state::NodeRule},
    limits,
    payload::Payload,
};

fn refused(spec: &GraphSpec) -> (ErrorCode, String) {
    let refused = prepare(spec).unwrap_err();
    (refused.code, refused.message)
}

#[test]
fn a_cycle_is_refused_and_named() {
    for (edges, cycle) in [
        ("A>B>C>B", "B -> C -> B"),
        ("A>A", "A -> A"),
        ("A>B>A", "A -> B -> A"),
        ("X>Y A>B>C>D>B D>E", "B -> C -> D -> B"),
        ("C>D>C A>B>A", "C -> D -> C"),
        // What comes before a cycle and after it is not named.
        ("P>Q>R S>Q Q>T>U>Q U>V", "Q -> T -> U -> Q"),
    ] {
        let told = (ErrorCode::DagCycle, format!("the edges make a cycle: {cycle}"));
        assert_eq!(refused(&spec(edges)), told, "{edges}");
    }
}

#[test]
fn a_long_cycle_is_named_in_short() {
    let ids: Vec<String> = (0..1_000).map(|n| format!("n{n}")).collect();
    let (code, message) = refused(&spec(&format!("{}>n0", ids.join(">"))));
    assert_eq!(code, ErrorCode::DagCycle);
    assert!(message.starts_with("the edges make a cycle: n0 -> n1 -> "), "{message}");
    assert!(message.ends_with("n14 -> ... -> n999 -> n0 (1000 nodes)"), "{message}");
}

#[test]
fn every_node_is_behind_its_parents() {
    let graph = compiled(&spec("E>F A>B>E A>C>E D>C"));
    for edge in &graph.edges {
        assert!(graph.position(edge.from) < graph.position(edge.to));
    }
    assert_eq!(graph.order().len(), graph.nodes.len());
    let names = |links: &[campanile_core::graph::order::Link]| {
        links.iter().map(|link| graph.node(link.node).id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(graph.parents(graph.find("E").unwrap())), ["B", "C"]);
    assert_eq!(names(graph.children(graph.find("A").unwrap())), ["B", "C"]);
}

#[test]
fn what_is_wrong_with_nodes_and_edges_is_named() {
    let with = |change: fn(&mut GraphSpec)| {
        let mut dag = spec("A>B");
        change(&mut dag);
        refused(&dag)
    };
    let cases: Vec<((ErrorCode, String), &str)> = vec![
        (with(|dag| dag.nodes.clear()), "a DAG has 1 to 1000 nodes; this one has 0"),
        (with(|dag| dag.nodes[1].id = "A".to_owned()), "there is no node 'B'"),
        (with(|dag| dag.nodes.push(NodeSpec::new("A", "job"))), "nodes[2].id: 'A' is there twice"),
        (with(|dag| dag.nodes.push(NodeSpec::new("a b", "job"))), "nodes[2].id: 'a b' must be 1 to 64 letters"),
        (with(|dag| dag.nodes.push(NodeSpec::new("", "job"))), "nodes[2].id: '' must be"),
        (with(|dag| dag.nodes.push(NodeSpec::new(&"x".repeat(65), "job"))), "must be 1 to 64 letters"),
        (with(|dag| dag.nodes[0].job = "no spaces".to_owned()), "nodes[0].job: name 'no spaces' must be"),
        (with(|dag| dag.nodes[0].timeout_sec = Some(0)), "nodes[0].timeoutSec: it must be 1 to"),
        (with(|dag| dag.nodes[0].params = Payload("[1]".to_owned())), "nodes[0].params: write an object"),
        (with(|dag| dag.edges.push(EdgeSpec::new("A", "Z"))), "edges[1].to: there is no node 'Z'"),
        (with(|dag| dag.edges.push(EdgeSpec::new("A", "B"))), "edges[1]: the edge from 'A' to 'B' is there twice"),
        (with(|dag| dag.max_parallel = 0), "maxParallel must be 1 to 1000"),
        (with(|dag| dag.max_parallel = 1_001), "maxParallel must be 1 to 1000"),
        (with(|dag| rule(dag, "A", NodeRule::AnyFailed)), "nodes[0].rule: ANY_FAILED waits for a parent"),
        (with(|dag| when(dag, "A", "B", "1 +")), "edges[0].when: this is not a CEL expression"),
        (with(|dag| params(dag, "B", r#"{"n":"{{nodes.C.result.x}}"}"#)), "nodes[1].params: there is no node 'C'"),
        (with(|dag| params(dag, "A", r#"{"n":"{{nodes.B.result.x}}"}"#)), "no path of edges leads from 'B'"),
        (with(|dag| params(dag, "A", r#"{"n":"{{nodes.A.result.x}}"}"#)), "no path of edges leads from 'A'"),
        (with(|dag| params(dag, "A", r#"{"n":"{{run.now}}"}"#)), "nodes[0].params: '{{run.now}}' is not known"),
    ];
    for ((code, message), told) in cases {
        assert!(message.contains(told), "{message} lacks {told}");
        assert_eq!(code, ErrorCode::InvalidArgument, "{message}");
    }
}

#[test]
fn the_limits_are_where_they_are_said_to_be() {
    let names = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>().join(" ");
    assert!(prepare(&spec(&names(limits::GRAPH_NODES))).is_ok());
    assert!(refused(&spec(&names(limits::GRAPH_NODES + 1))).1.contains("this one has 1001"));
    let mut dag = spec(&names(200));
    for (from, to) in (0..200).flat_map(|from| (from + 1..200).map(move |to| (from, to))) {
        dag.edges.push(EdgeSpec::new(&format!("n{from}"), &format!("n{to}")));
    }
    dag.edges.truncate(limits::GRAPH_EDGES);
    assert!(prepare(&dag).is_ok());
    dag.edges.push(EdgeSpec::new("n198", "n199"));
    assert!(refused(&dag).1.contains("at most 10000 edges; this one has 10001"));
    let mut dag = spec("A>B");
    for node in 0..12 {
        let mut large = NodeSpec::new(&format!("n{node}"), "job");
        large.params = Payload(format!(r#"{{"x":"{}"}}"#, "x".repeat(limits::PARAMS_BYTES - 8)));
        dag.nodes.push(large);
    }
    let (code, message) = refused(&dag);
    assert_eq!(code, ErrorCode::BodyTooLarge, "{message}");
    dag.nodes.truncate(6);
    assert!(prepare(&dag).is_ok());
    dag.nodes[2].params = Payload(format!(r#"{{"x":"{}"}}"#, "x".repeat(limits::PARAMS_BYTES)));
    assert!(refused(&dag).1.contains("nodes[2].params: they take more than 65536 bytes"));
}

#[test]
fn one_text_of_a_condition_is_parsed_once_and_different_ones_are_bounded() {
    let names: Vec<String> = (0..limits::GRAPH_CONDITIONS + 2).map(|n| format!("n{n}")).collect();
    let mut dag = spec(&names[..limits::GRAPH_NODES].iter().map(|n| format!("{n} ")).collect::<String>());
    for from in 0..40 {
        for to in 40..80 {
            let mut edge = EdgeSpec::new(&names[from], &names[to]);
            edge.when = Some(format!("parent.result.rows > {}", (from * 40 + to) % limits::GRAPH_CONDITIONS));
            dag.edges.push(edge);
        }
    }
    let graph = compiled(&dag);
    let first = graph.edges[0].condition.as_ref().unwrap();
    let same =
        graph.edges.iter().filter_map(|edge| edge.condition.as_ref()).filter(|c| std::sync::Arc::ptr_eq(c, first));
    assert_eq!(same.count(), 2);
    dag.edges[0].when = Some("parent.result.rows > 5000".to_owned());
    dag.edges[1].when = Some("parent.result.rows > 5001".to_owned());
    assert!(refused(&dag).1.contains("at most 1000 different conditions"));
    dag.edges.truncate(160);
    for (at, edge) in dag.edges.iter_mut().enumerate() {
        edge.when = Some(format!("parent.result.rows > {} || '{}' == ''", at, "x".repeat(400)));
    }
    assert!(refused(&dag).1.contains("the different conditions of a DAG take at most 65536 bytes"));
}

#[test]
fn a_condition_reads_only_fields_that_it_names_and_never_loops() {
    for (text, fields) in [
        ("parent.result.rows > 0", "rows"),
        ("parent.result.a.b == 'x' && parent.result['c d'] < 2.5", "a.b c d"),
        ("parent.result.list[1] == 3 || size(parent.result.name) > 2", "list name"),
        ("has(parent.result.rows) ? parent.result.rows in [1, 2] : false", "rows rows"),
        ("!parent.result.name.startsWith('x')", "name"),
        ("true", ""),
    ] {
        let condition = Condition::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        let read: Vec<String> = condition.fields().iter().map(campanile_core::graph::fields::FieldPath::text).collect();
        assert_eq!(read.join(" "), fields, "{text}");
    }
    for (text, told) in [
        ("", "not a CEL expression"),
        ("parent.result.rows >", "not a CEL expression"),
        ("rows > 0", "'rows' is not known"),
        ("parent.state == 'x'", "'parent' has only 'result'"),
        ("parent == parent", "'parent' has only 'result'"),
        ("size(parent.result) > 0", "name a field of the result"),
        ("parent.result[parent.result.x] == 1", "name a field of the result"),
        ("parent.result.list.exists(x, x > 0)", "does not loop"),
        ("[1, 2].map(x, x * 2) == [2, 4]", "does not loop"),
        ("parent.result.name.matches('a*')", "'matches' cannot be used"),
        ("timestamp('2026-01-01T00:00:00Z') > timestamp(parent.result.at)", "'timestamp' cannot be used"),
        ("Point{x: 1}.x == 1", "makes no structures"),
    ] {
        let why = Condition::parse(text).unwrap_err();
        assert!(why.contains(told), "{text}: {why}");
    }
    let long = format!("'{}' == 'x'", "x".repeat(limits::CONDITION_BYTES));
    assert!(Condition::parse(&long).unwrap_err().contains("at most 512 bytes"));
}

#[test]
fn conditions_have_the_values_of_cel() {
    let result = serde_json::json!({"rows":3,"f":2.5,"s":"abc","l":[1,2],"o":{"k":null},"b":true,"big":u64::MAX});
    for (text, value) in [
        ("parent.result.rows > 0", Some(true)),
        ("parent.result.rows > 2.5", Some(true)),
        ("parent.result.rows == 3.0", Some(true)),
        ("parent.result.f < parent.result.rows", Some(true)),
        ("parent.result.big > 5", Some(true)),
        ("parent.result.s == 'abc' && parent.result.s.contains('b')", Some(true)),
        ("size(parent.result.l) == 2 && parent.result.l[1] == 2", Some(true)),
        ("2 in parent.result.l", Some(true)),
        ("parent.result.o.k == null", Some(true)),
        ("has(parent.result.nothing)", Some(false)),
        ("parent.result.b ? parent.result.rows < 0 : true", Some(false)),
        ("parent.result.nothing > 0", None),
        ("parent.result.nothing > 0 || parent.result.b", Some(true)),
        ("parent.result.rows", None),
        ("parent.result.rows + 'x' == 'y'", None),
        ("parent.result.rows / 0 == 1", None),
        ("parent.result.l[7] == 1", None),
    ] {
        let condition = Condition::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(condition.evaluate(&Parent::new(&result)).ok(), value, "{text}");
    }
}

/// Texts that make a recursive parser or evaluator go deep, on a stack that is far smaller than any thread's here.
#[test]
fn deep_conditions_are_refused_before_they_take_the_stack() {
    let most = limits::CONDITION_BYTES;
    let texts = [
        "(".repeat(most),
        "[".repeat(most),
        format!("{}1{}", "(".repeat(200), ")".repeat(200)),
        "{1:".repeat(most / 3),
        format!("{}true", "!".repeat(most - 4)),
        format!("{}1 == 1", "-".repeat(most - 6)),
        format!("{}1", "- ".repeat(200)),
        format!("{}true", "true?true:".repeat(50)),
        format!("1{}", "+1".repeat(most / 2 - 1)),
        format!("true{}", "&&true".repeat(84)),
        format!("parent.result{}", ".a".repeat(240)),
        format!("parent.result.a{}", "[0]".repeat(160)),
        "a.b(".repeat(most / 4),
        "`".repeat(most),
        "'".repeat(most),
        "\"\"\"".repeat(most / 3),
    ];
    let judged = std::thread::Builder::new().stack_size(512 << 10).spawn(move || {
        for text in texts {
            if let Ok(condition) = Condition::parse(&text) {
                let _ = condition.evaluate(&Parent::new(&serde_json::json!({"a":[]})));
            }
        }
    });
    judged.unwrap().join().unwrap();
}

#[test]
fn a_stored_graph_is_checked_as_a_new_one_is() {
    let (stored, _) = prepare(&spec("A>B>C")).unwrap();
    assert!(Graph::compile(&stored).is_ok());
    let mut damaged = stored.clone();
    damaged.edges[0].to = 7;
    assert!(Graph::compile(&damaged).unwrap_err().message.contains("no node with the number 7"));
    let mut circular = stored;
    (circular.edges[1].from, circular.edges[1].to) = (1, 0);
    assert_eq!(Graph::compile(&circular).unwrap_err().code, ErrorCode::DagCycle);
}
