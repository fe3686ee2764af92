//! Story 9: a DAG with a cycle is refused, the error names the cycle, and nothing was changed: neither by a new DAG nor by a change of one
//! that is in use.

use super::Story;
use crate::program::eventually;
use serde_json::{Value, json};

const CODE: &str = "409_DAG_CYCLE_DETECTED";

fn edges(pairs: &[(u64, u64)]) -> Value {
    pairs.iter().map(|(from, to)| json!({"from": from, "to": to})).collect()
}

pub fn story_09_a_cyclic_dag_is_refused_by_name_and_nothing_was_changed(story: &Story) {
    let [a, b, c] = ["load", "check", "send"].map(|name| story.job(name, &json!({"action": story.body(name, "true")})));
    let _executor = story.executor("one", 2);
    let dag = |id: &str, pairs: &[(u64, u64)]| json!({"dagId": id, "nodes": [a, b, c], "edges": edges(pairs), "tenantId": story.name});
    let jobs = || story.items(&format!("/api/v1/jobs?tenantId={}&pageSize=1000", story.name));
    let count = jobs().len();

    // A new one, over HTTP and as a command.
    let wrong = dag("billing_dag_v1", &[(a, b), (b, c), (c, b)]);
    let (status, refused) = story.place.http("POST", "/api/v1/jobs/dag", Some(&wrong));
    assert_eq!((status, &refused["code"]), (409, &json!(CODE)), "{refused}");
    let cycle = format!("{b} -> {c} -> {b}");
    assert!(refused["detail"].as_str().unwrap().contains(&cycle), "{refused}");
    let told = story.place.run(&[
        "dag",
        "create",
        "billing_dag_v1",
        "--tenant",
        &story.name,
        "--job",
        "load",
        "--job",
        "check",
        "--job",
        "send",
        "--edge",
        "load:check",
        "--edge",
        "check:send",
        "--edge",
        "send:check",
    ]);
    let told = told.refused(5);
    assert!(told.contains(&cycle), "{told}");
    assert_eq!(jobs().len(), count);

    // One that is in use stays as it is, and runs as before.
    let good = dag("billing_dag_v1", &[(a, b), (b, c)]);
    let good = story.done("POST", "/api/v1/jobs/dag", Some(&good))["jobId"].as_u64().unwrap();
    let path = format!("/api/v1/jobs/{good}");
    let before = story.get(&path);
    let mut changed = before.clone();
    changed["action"]["edges"].as_array_mut().unwrap().push(json!({"from": c.to_string(), "to": a.to_string()}));
    let (status, refused) = story.place.http("PUT", &path, Some(&changed));
    assert_eq!((status, &refused["code"]), (409, &json!(CODE)), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains(&format!("{a} -> {b} -> {c} -> {a}")), "{refused}");
    assert_eq!(story.get(&path), before);
    let run = story.trigger(good);
    story.until(run, "SUCCESS");
    assert_eq!(story.lines("began"), ["load", "check", "send"]);
    let refusals = format!("/api/v1/audit?outcome={CODE}");
    eventually("the refusals are recorded", || {
        let records = story.items(&refusals);
        let of =
            |operation: &str| records.iter().any(|record| record["operation"] == operation && record["who"] == "olga");
        (of("dag.create") && of("job.replace")).then_some(())
    });
}
