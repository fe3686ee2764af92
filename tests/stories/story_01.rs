//! Story 1: at two in the night A -> B -> C begins, B fails for good, C does not start, and somebody is told. In the morning B is repaired
//! and retried, C follows, and A does not run again. The nodes are killed in turn meanwhile.

use super::{Story, daily};
use crate::{program::eventually, support::now_ms};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn nightly(at_ms: i64) -> Value {
    let node = |name: &str| json!({"id": name, "job": name});
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    json!({
        "trigger": daily(at_ms, &json!({})), "concurrencyPolicy": "FORBID", "hooks": {"onFailure": [{"job": "tell"}]},
        "action": {
            "kind": "DAG", "nodes": [node("a"), node("b"), node("c")], "edges": [edge("a", "b"), edge("b", "c")],
        },
    })
}

pub fn story_01_b_fails_at_night_and_in_the_morning_it_is_repaired_and_c_follows(story: &Story) {
    let place = &story.place;
    let (one, two) = (0, place.nodes() - 1);
    let began = |name: &str| eventually(&format!("a body of {name} runs"), || (story.began(name) > 0).then_some(()));
    let retry = json!({"maxAttempts": 2, "backoff": "FIXED", "baseDelaySec": 0.1, "jitter": 0});
    let job =
        |name: &str, shell: &str| story.job(name, &json!({"action": story.body(name, shell), "retryPolicy": retry}));
    let _executor = story.executor("worker", 4);
    job("a", &story.waits("a-may-end"));
    let b = job("b", &format!("test -e {}", story.path("repaired")));
    job("c", &story.waits("c-may-end"));
    let tell = job("tell", "true");
    let nightly = story.job("nightly", &nightly(now_ms() + 6_000));

    // At two. The nodes die, one after the other, while A runs and when B has failed.
    began("a");
    let run = eventually("the run", || story.runs(nightly).pop())["runId"].as_u64().unwrap();
    place.kill(one);
    story.happens("a-may-end");
    place.start(one);
    story.until(run, "FAILED");
    place.kill(two);
    place.start(two);
    let told = eventually("somebody is told", || story.runs(tell).pop().filter(|told| told["state"] == "SUCCESS"));
    assert_eq!(told["params"]["run"]["runId"], json!(run), "{told}");
    assert_eq!(story.began("c"), 0);

    // In the morning.
    story.happens("repaired");
    let of_b = eventually("the run of B", || story.runs(b).pop())["runId"].to_string();
    eventually("it is retried", || {
        // Asked again, it says that the node has not ended.
        place.run(&["run", "retry", &of_b, "--reason", "the disk has room again"]);
        Some(story.run(run)).filter(|view| view["generation"] == 2)
    });
    place.kill(one);
    place.start(one);
    began("c");
    place.kill(two);
    story.happens("c-may-end");
    place.start(two);
    story.until(run, "SUCCESS");
    let mut bodies = BTreeMap::<String, usize>::new();
    for name in story.lines("began") {
        *bodies.entry(name).or_default() += 1;
    }
    let expected = [("a", 1), ("b", 3), ("c", 1), ("tell", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(bodies, BTreeMap::from(expected));
}
