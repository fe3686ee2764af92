//! Story 2: a caller sends the same trigger request twice, because the answer did not come, and gets one run.

use super::Story;
use crate::program::eventually;
use serde_json::{Value, json};

/// As often as a request is sent at the same time.
const CALLERS: usize = 4;

fn request(date: &str) -> Value {
    json!({
        "manualRunId": "manual_20260224_001", "params": {"bizDate": date}, "reason": "re-run after fix",
    })
}

pub fn story_02_the_same_trigger_request_twice_makes_one_run(story: &Story) {
    let shell = format!("echo \"$CAMPANILE_PARAMS\" >> {}; {}", story.path("params"), story.waits("may-end"));
    let job = story.job("daily_billing", &json!({"action": story.body("daily_billing", &shell)}));
    let path = format!("/api/v1/jobs/{job}/trigger");
    let _executor = story.executor("one", 4);
    let run_of = |answer: &Value| answer["runId"].as_u64().unwrap();
    let body = request("2026-02-23");

    // Several times at once, at every node.
    let runs: Vec<u64> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|n| {
                let (path, body) = (&path, &body);
                scope.spawn(move || {
                    eventually("an answer", || {
                        let (status, answer) =
                            story.place.http_at(n % story.place.nodes(), "POST", path, Some(body))?;
                        (status == 200).then(|| answer["runId"].as_u64().unwrap())
                    })
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let run = runs[0];
    assert_eq!(runs, [run; CALLERS]);

    // While its body runs, over HTTP and as a command.
    eventually("its body runs", || (story.began("daily_billing") > 0).then_some(()));
    assert_eq!(run_of(&story.done("POST", &path, Some(&body))), run);
    let params = r#"{"bizDate": "2026-02-23"}"#;
    let job_id = job.to_string();
    let again = ["job", "trigger", &job_id, "--id", "manual_20260224_001", "--params", params, "-o", "json"];
    assert_eq!(run_of(&story.place.run(&again).json()), run);

    // When it has ended.
    story.happens("may-end");
    let ended = story.until(run, "SUCCESS");
    assert_eq!((&ended["key"], &ended["reason"]), (&json!("manual_20260224_001"), &json!("re-run after fix")));
    assert_eq!(run_of(&story.done("POST", &path, Some(&body))), run);

    // The same id with other params is not the same request.
    let (status, refused) = story.place.http("POST", &path, Some(&request("2026-02-24")));
    assert_eq!((status, &refused["code"]), (409, &json!("409_IDEMPOTENCY_KEY_REUSED")), "{refused}");
    assert!(refused["detail"].to_string().contains(&run.to_string()), "{refused}");

    let runs: Vec<u64> = story.runs(job).iter().map(run_of).collect();
    assert_eq!(runs, [run]);
    assert_eq!(story.lines("params"), [r#"{"bizDate":"2026-02-23"}"#]);
}
