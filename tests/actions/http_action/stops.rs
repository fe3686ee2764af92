//! Requests that must not go on: times that are over, cancels, executors that die.
use super::{
    LOOPBACK,
    program::eventually,
    target::{Say, Target, ok},
    world::World,
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

#[test]
fn a_request_ends_with_its_time_and_with_a_cancel() {
    let target = Target::start(|_| Say::Nothing);
    let world = World::start(&LOOPBACK);
    let (state, code, why) = world.outcome(json!({"url": target.url("/"), "timeoutSec": 1}));
    assert_eq!(
        (state.as_str(), code.as_str(), why.as_str()),
        ("FAILED", "HTTP_TIMEOUT", "no whole answer within timeoutSec (1 s)")
    );
    eventually("the connection is closed", || (target.closed() == 1).then_some(()));
    // The attempt's own time.
    let id = world.fire(json!({"url": target.url("/")}), json!({"timeoutSec": 1}));
    let run = world.ended(id);
    assert_eq!((&run["state"], &run["attempts"][0]["errorCode"]), (&json!("TIMEOUT"), &json!("TIMEOUT")));
    eventually("the connection is closed", || (target.closed() == 2).then_some(()));
    let id = world.fire(json!({"url": target.url("/")}), json!({}));
    eventually("the request", || (target.heard().len() == 3).then_some(()));
    world.dev.run(&["run", "cancel", &id.to_string()]).ok();
    assert_eq!(world.ended(id)["state"], "CANCELED");
    eventually("the connection is closed", || (target.closed() == 3).then_some(()));
    assert!(world.log(id).contains("[campanile: the request was ended: Canceled]"), "{}", world.log(id));
}

#[test]
fn a_request_whose_executor_died_is_sent_again_only_when_that_is_harmless() {
    let answering = Arc::new(AtomicBool::new(false));
    let answers = answering.clone();
    let target = Target::start(move |_| if answers.load(Ordering::SeqCst) { ok("done") } else { Say::Nothing });
    let mut world = World::start(&LOOPBACK);
    let policy = json!({"maxAttempts": 3, "baseDelaySec": 0});
    let harmless = world.fire(json!({"url": target.url("/harmless")}), json!({"retryPolicy": policy}));
    let careful =
        world.fire(json!({"url": target.url("/careful")}), json!({"retryPolicy": policy, "idempotent": false}));
    eventually("both requests", || (target.heard().len() == 2).then_some(()));
    world.kill_executor();
    answering.store(true, Ordering::SeqCst);
    let executor = world.executor(&LOOPBACK, &[]);
    let world = world.with(executor);
    let run = world.in_state(harmless, "SUCCESS");
    let states: Vec<_> = run["attempts"].as_array().unwrap().iter().map(|a| a["state"].clone()).collect();
    assert_eq!(states, ["LOST", "SUCCESS"]);
    assert!(run["attempts"][1]["token"].as_u64() > run["attempts"][0]["token"].as_u64());
    world.in_state(careful, "NEEDS_CONFIRMATION");
    let keys: Vec<_> = target.heard().iter().map(|h| (h.path.clone(), h.headers["idempotency-key"].clone())).collect();
    assert_eq!(keys.iter().filter(|(path, _)| path == "/careful").count(), 1, "{keys:?}");
    assert_eq!(keys.iter().filter(|(_, key)| *key == format!("{harmless}/1")).count(), 2, "{keys:?}");
    world.dev.run(&["run", "confirm", &careful.to_string(), "rerun"]).ok();
    assert_eq!(world.in_state(careful, "SUCCESS")["attempts"].as_array().unwrap().len(), 2);
}
