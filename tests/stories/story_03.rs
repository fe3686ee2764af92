//! Story 3: at night a job fails three times and becomes a dead letter. In the morning somebody repairs what was broken and redrives it.

use super::{Story, daily, three_attempts};
use crate::{program::eventually, support::now_ms};
use serde_json::{Value, json};

pub fn story_03_three_failures_a_dead_letter_repaired_in_the_morning_and_redriven(story: &Story) {
    let shell = format!("echo \"no such host: db-7\" >&2; test -e {}", story.path("repaired"));
    let spec = json!({
        "trigger": daily(now_ms() + 4_000, &json!({})), "retryPolicy": three_attempts(),
        "action": story.body("settlement", &shell),
    });
    let job = story.job("settlement", &spec);
    let _executor = story.executor("one", 2);

    // At night.
    let run = eventually("it fires", || story.runs(job).pop())["runId"].as_u64().unwrap();
    let failed = story.until(run, "FAILED");
    let states = |run: &Value| -> Vec<String> {
        run["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|attempt| attempt["state"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(states(&failed), ["FAILED"; 3], "{failed}");
    assert_eq!((&failed["source"], &failed["deadLetter"]), (&json!("SCHEDULE"), &json!(true)));
    assert_eq!(failed["attempts"][2]["errorCode"], "EXIT_CODE", "{failed}");
    let dead = || story.place.run(&["dlq", "list", "--tenant", &story.name, "-o", "json"]).json()["items"].clone();
    let letters = eventually("a dead letter", || Some(dead()).filter(|items| items[0].is_object()));
    assert_eq!((&letters[0]["runId"], letters.as_array().unwrap().len()), (&json!(run), 1), "{letters}");
    // What the person in the morning reads.
    let run_id = run.to_string();
    let log = story.place.run(&["run", "log", &run_id]).ok();
    assert!(log.contains("no such host: db-7"), "{log}");

    // In the morning.
    story.happens("repaired");
    story.place.run(&["dlq", "redrive", &run_id, "--reason", "db-7 is back"]).ok();
    let done = story.until(run, "SUCCESS");
    assert_eq!(states(&done), ["FAILED", "FAILED", "FAILED", "SUCCESS"], "{done}");
    assert_eq!((&done["generation"], &done["logicalTime"]), (&json!(2), &failed["logicalTime"]));
    assert_eq!(done["deadLetter"], false);
    eventually("no dead letter is left", || (dead() == json!([])).then_some(()));
    assert_eq!((story.began("settlement"), story.runs(job).len()), (4, 1));
    let record = eventually("the record", || story.audit("dlq.redrive").pop());
    assert_eq!((&record["who"], &record["reason"]), (&json!("olga"), &json!("db-7 is back")), "{record}");
    assert_eq!(record["outcome"], "DONE");
}
