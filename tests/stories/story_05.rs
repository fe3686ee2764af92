//! Story 5: a tenant is paused for a while, and resumed. What runs goes on to its end, nothing new starts, other tenants notice nothing,
//! and afterwards everything is as before.

use super::{Story, every_second};
use crate::program::eventually;
use campanile_schema::time::Timestamp;
use serde_json::{Value, json};

/// Instants that become due in the pause, at least.
const PASSED: usize = 2;

fn fires(story: &Story, job: u64) -> u64 {
    story.get(&format!("/api/v1/jobs/{job}"))["runCount"].as_u64().unwrap()
}

/// How many instants have this outcome.
fn instants(story: &Story, job: u64, outcome: (&str, Option<&str>)) -> usize {
    let has = |line: &&Value| line["outcome"] == outcome.0 && line["reason"].as_str() == outcome.1;
    story.ledger(job).iter().filter(has).map(|line| line["count"].as_u64().unwrap() as usize).sum()
}

/// Each second between the first and the last instant has one outcome.
fn is_whole(story: &Story, job: u64) {
    let ms = |line: &Value| line["logicalTime"].as_str().unwrap().parse::<Timestamp>().unwrap().ms();
    let lines = story.ledger(job);
    for pair in lines.windows(2) {
        let until = ms(&pair[0]) + 1_000 * pair[0]["count"].as_i64().unwrap();
        assert_eq!(ms(&pair[1]), until, "missing or twice: {pair:?}");
    }
}

pub fn story_05_a_tenant_is_paused_and_resumed(story: &Story) {
    let quick = |name: &str| json!({"trigger": every_second(), "action": story.body(name, "true")});
    let tick = story.job("tick", &quick("tick"));
    let neighbour = format!("{}-neighbour", story.name);
    let others = story.job_of(&neighbour, "others", &quick("others"));
    let long = story.job("long", &json!({"action": story.body("long", &story.waits("may-end"))}));
    let _executor = story.executor("one", 8);
    let open = story.trigger(long);
    eventually("its body runs", || (story.began("long") == 1).then_some(()));
    eventually("both fire", || (fires(story, tick) > 0 && fires(story, others) > 0).then_some(()));

    let reason = "month end";
    story.place.run(&["tenant", "pause", &story.name, "--reason", reason]).ok();
    let before = (fires(story, tick), fires(story, others));
    let skipped = ("SKIPPED", Some("TENANT_PAUSED"));
    eventually("instants are skipped", || (instants(story, tick, skipped) >= PASSED).then_some(()));
    // Asked for by hand, it is refused by name.
    let (status, refused) = story.place.http("POST", &format!("/api/v1/jobs/{long}/trigger"), Some(&json!({})));
    assert_eq!((status, &refused["code"]), (423, &json!("423_JOB_PAUSED")), "{refused}");
    let shown = story.place.run(&["tenant", "get", &story.name, "-o", "json"]).json();
    assert_eq!(shown["paused"], true, "{shown}");
    // What runs ends as if nothing were.
    story.happens("may-end");
    story.until(open, "SUCCESS");
    // Others go on.
    eventually("the neighbour fires", || (fires(story, others) >= before.1 + PASSED as u64).then_some(()));
    assert_eq!(instants(story, others, skipped), 0);
    assert_eq!(fires(story, tick), before.0, "it fired in the pause");

    story.place.run(&["tenant", "resume", &story.name, "--reason", "books are closed"]).ok();
    eventually("it fires again", || (fires(story, tick) > before.0).then_some(()));
    let again = story.trigger(long);
    story.until(again, "SUCCESS");
    assert_eq!(story.began("long"), 2);
    is_whole(story, tick);
    is_whole(story, others);
    for (operation, reason) in [("tenant.pause", reason), ("tenant.resume", "books are closed")] {
        let record = eventually("the record", || story.audit(operation).pop());
        assert_eq!((&record["who"], &record["reason"]), (&json!("olga"), &json!(reason)), "{record}");
    }
}
