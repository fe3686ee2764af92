#![allow(clippy::unwrap_used)]
use super::*;
use crate::{
    job::JobSpec,
    rpc::calls::JobCall,
    view::{ReasonBody, TriggerBody},
};
use serde_json::json;

fn told<T: JsonSchema + 'static>(value: &Value) -> Vec<String> {
    misfits::<T>(value, 100).iter().map(ToString::to_string).collect()
}

#[test]
fn misfits_are_told_with_their_whole_path_and_what_to_write() {
    for (value, expected) in [
        (
            json!(["posjob", "default", {"type": "MANUAL"}]),
            "this is a list, and an object is wanted: write {\"name\": value}",
        ),
        (json!({"trigger": ["MANUAL"]}), "trigger: this is a list, and an object is wanted: write {\"name\": value}"),
        (json!({"retryPolicy": [3]}), "retryPolicy: this is a list, and an object is wanted: write {\"name\": value}"),
        (
            json!({"action": {"kind": "COMMAND", "command": ["x"], "limits": [1]}}),
            "action.limits: this is a list, and an object is wanted: write {\"name\": value}",
        ),
        (
            json!({"trigger": {"type": "FIXED_RATE", "everySec": "10"}}),
            "trigger.everySec: write the number 10 without quotes",
        ),
        (json!({"timeoutSec": "soon"}), "timeoutSec: \"soon\" is text, and a number is wanted"),
        (json!({"idempotent": "true"}), "idempotent: write true without quotes"),
        (json!({"name": 7}), "name: this is a number, and text is wanted: write it in quotes"),
        (json!({"labels": {"a": true}}), "labels.a: this is true or false, and text is wanted: write it in quotes"),
        (
            json!({"secretParams": {"k": 123_456}}),
            "secretParams.k: this is a number, and text is wanted: write it in quotes",
        ),
        (
            json!({"secretParams": {"k": ["hunter2"]}}),
            "secretParams.k: this is a list, and text is wanted: write it in quotes",
        ),
        (
            json!({"action": {"command": "sleep 5"}}),
            "action.command: \"sleep 5\" is text, and a list is wanted: write [value, ...]",
        ),
        (
            json!({"action": {"command": ["a", 5]}}),
            "action.command[1]: this is a number, and text is wanted: write it in quotes",
        ),
    ] {
        assert_eq!(told::<JobSpec>(&value), [expected], "{value}");
    }
    assert_eq!(
        told::<JobCall<ReasonBody>>(&json!({"jobId": "etl_long", "reason": "x"})),
        [
            "jobId: \"etl_long\" is text, and an id is a number: job.find gives the id of a name (GET /api/v1/jobs/by-name?name=NAME)"
        ]
    );
    assert_eq!(told::<TriggerBody>(&json!({"params": [1, "a", {"b": [null]}]})), Vec::<String>::new());
    // Params are anybody's; an instant may be a number, as in RPC.
    let whole = json!({
        "name": "a", "trigger": {"type": "ONCE", "at": 5}, "params": [1], "labels": {}, "timeoutSec": null,
        "action": {"kind": "HTTP", "url": "x", "body": [1], "expectStatus": [200, 299]},
    });
    assert_eq!(told::<JobSpec>(&whole), Vec::<String>::new());
}

#[test]
fn a_name_stands_once() {
    let read = |text: &str| {
        let mut json = serde_json::Deserializer::from_str(text);
        first_misfit::<JobSpec, _>(&mut json).0.map(|misfit| misfit.to_string())
    };
    let twice = |path: &str| Some(format!("{path}: stands here twice: write it once"));
    assert_eq!(read(r#"{"params": {"a": 1, "b": {"c": 1, "c": 2}}}"#), twice("params.b.c"));
    assert_eq!(read(r#"{"labels": {"a": "1", "\u0061": "2"}}"#), twice("labels.a"));
    assert_eq!(read(r#"{"params": {"a": {"x": 1}, "b": {"x": 1}}}"#), None);
}

#[test]
fn long_words_are_cut() {
    let long = "x".repeat(1 << 20);
    let told = told::<JobSpec>(&json!({"timeoutSec": long, "labels": {long.clone(): 1}}));
    assert!(told.iter().all(|told| told.len() < 300), "{:?}", told.iter().map(String::len).collect::<Vec<_>>());
    assert_eq!(told.len(), 2);
}

#[test]
fn messagepack_is_read_too() {
    let bytes = rmp_serde::to_vec_named(&json!({"jobId": 1, "params": {"a": [1]}, "reason": 5})).unwrap();
    let mut from = rmp_serde::Deserializer::from_read_ref(&bytes);
    let (misfit, _) = first_misfit::<JobCall<TriggerBody>, _>(&mut from);
    assert_eq!(misfit.unwrap().to_string(), "reason: this is a number, and text is wanted: write it in quotes");
}
