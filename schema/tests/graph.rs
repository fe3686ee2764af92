//! A DAG as callers write it: defaults, unknown fields refused by name, the short form, and the stored form back to it.

use campanile_schema::{
    graph::{
        GraphSpec, ShortGraphSpec,
        state::{EdgeFact, NodeFailure, NodeRule, NodeState, StopCause},
    },
    ids::JobId,
};
use serde_json::{Value, json};

fn whole() -> Value {
    json!({"nodes":[{"id":"B","job":"finance/summary","params":{},"rule":"ALL_SUCCESS","timeoutSec":600}],
        "edges":[{"from":"A","to":"B","when":"parent.result.rows > 0"}],"failFast":false,"maxParallel":50})
}

#[test]
fn the_example_of_the_design_is_read_and_written_as_it_is() {
    let spec: GraphSpec = serde_json::from_value(whole()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), whole());
}

#[test]
fn what_is_left_out_has_its_default() {
    let short = json!({"nodes":[{"id":"A","job":"load"}]});
    let spec: GraphSpec = serde_json::from_value(short).unwrap();
    let written = json!({"nodes":[{"id":"A","job":"load","params":{},"rule":"ALL_SUCCESS"}],"edges":[],"failFast":false,"maxParallel":50});
    assert_eq!(serde_json::to_value(&spec).unwrap(), written);
}

#[test]
fn unknown_fields_are_refused_by_name() {
    for (pointer, field) in [("", "failfast"), ("/nodes/0", "jobId"), ("/edges/0", "condition")] {
        let mut spec = whole();
        spec.pointer_mut(pointer).unwrap()[field] = json!(1);
        let error = serde_json::from_value::<GraphSpec>(spec).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{pointer}: {error}");
    }
    let mut spec = whole();
    spec["nodes"][0]["rule"] = json!("ALL_FAILED");
    let error = serde_json::from_value::<GraphSpec>(spec).unwrap_err().to_string();
    assert!(error.contains("'ALL_FAILED' is not one of ALL_SUCCESS, ALL_DONE"), "{error}");
}

#[test]
fn the_short_form_names_jobs_by_their_ids() {
    let short: ShortGraphSpec = serde_json::from_value(
        json!({"dagId":"billing_dag_v1","nodes":[1,2,3],"edges":[{"from":1,"to":2},{"from":2,"to":3}]}),
    )
    .unwrap();
    let spec = short.to_spec(|job| Some(format!("job-{job}"))).unwrap();
    let written = serde_json::to_value(&spec).unwrap();
    assert_eq!(written["nodes"][1], json!({"id":"2","job":"job-2","params":{},"rule":"ALL_SUCCESS"}));
    assert_eq!(written["edges"], json!([{"from":"1","to":"2"},{"from":"2","to":"3"}]));
    assert_eq!(short.to_spec(|job| (job.0 != 2).then(String::new)), Err(JobId(2)));
}

#[test]
fn the_stored_form_gives_the_callers_form_back() {
    for (name, stored) in crate::golden_forms::samples::graph::graphs() {
        let spec = stored.to_spec();
        assert_eq!(spec.nodes.len(), stored.nodes.len(), "{name}");
        assert_eq!(spec.edges.len(), stored.edges.len(), "{name}");
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(serde_json::from_value::<GraphSpec>(written).unwrap(), spec, "{name}");
    }
    let mut damaged = crate::golden_forms::samples::graph::graphs()[1].1.clone();
    damaged.edges[0].to = 9;
    assert_eq!(damaged.to_spec().edges.len(), damaged.edges.len() - 1);
}

/// Stable numbers: what is on disk is these.
#[test]
fn codes_are_stable_and_their_own() {
    fn codes<T: Copy>(all: &[T], code: fn(T) -> u8, back: fn(u8) -> Option<T>) {
        let numbers: Vec<u8> = all.iter().map(|value| code(*value)).collect();
        assert_eq!(numbers, (0..all.len() as u8).collect::<Vec<_>>());
        assert!(numbers.iter().all(|n| back(*n).map(code) == Some(*n)));
        assert!(back(all.len() as u8).is_none());
    }
    codes(NodeRule::ALL, NodeRule::code, NodeRule::from_code);
    codes(NodeState::ALL, NodeState::code, NodeState::from_code);
    codes(NodeFailure::ALL, NodeFailure::code, NodeFailure::from_code);
    codes(StopCause::ALL, StopCause::code, StopCause::from_code);
    codes(EdgeFact::ALL, EdgeFact::code, EdgeFact::from_code);
    let lengths = [NodeRule::ALL.len(), NodeState::ALL.len(), NodeFailure::ALL.len(), StopCause::ALL.len()];
    assert_eq!(lengths, [5, 8, 7, 3]);
}
