//! Story 8: somebody writes a cron that fires every second instead of every day, for jobs that take long. The quota of the tenant contains
//! it: so many bodies run and no more, so many runs wait and no more, the rest is refused by name. Other tenants go on, and when the
//! schedule is corrected, it is over.

use super::{Story, every_second};
use crate::{program::eventually, support::now_ms};
use serde_json::{Value, json};

/// The tenant's quota.
const AT_ONCE: usize = 2;
const WAITING: u64 = 4;
/// Runs of the other tenant.
const OTHERS: usize = 6;

pub fn story_08_a_wrong_cron_is_contained_by_the_quota_and_other_tenants_go_on(story: &Story) {
    let (at_once, waiting) = (AT_ONCE.to_string(), WAITING.to_string());
    let limits: [&str; 7] =
        ["tenant", "set", &story.name, "--max-concurrent-runs", &at_once, "--max-queued-runs", &waiting];
    story.place.run(&limits).ok();
    let other = format!("{}-other", story.name);
    let quick = story.job_of(&other, "quick", &json!({"action": story.body("quick", "true")}));
    let by_hand = story.job("by-hand", &json!({"action": story.body("by-hand", "true")}));
    let wrong = json!({"trigger": every_second(), "action": story.body("wrong", &story.waits("may-end"))});
    let jobs = ["wrong-1", "wrong-2", "wrong-3"].map(|name| story.job(name, &wrong));
    let _executor = story.executor("one", 6);

    // It is contained: bodies, waiting runs, and a reason for each.
    let is = |line: &Value| line["outcome"] == "SKIPPED" && line["reason"] == "QUEUE_FULL";
    eventually("instants are skipped", || jobs.iter().all(|job| story.ledger(*job).iter().any(is)).then_some(()));
    eventually("its bodies run", || (story.began("wrong") >= AT_ONCE).then_some(()));
    let tenant = story.get(&format!("/api/v1/tenants/{}", story.name));
    assert_eq!(tenant["running"], json!(AT_ONCE), "{tenant}");
    let waits = jobs.iter().flat_map(|job| story.runs(*job)).find(|run| run["state"] == "QUEUED").unwrap();
    let waits = story.run(waits["runId"].as_u64().unwrap());
    assert!(waits["waitReason"].as_str().unwrap().starts_with("TENANT_CONCURRENCY"), "{waits}");
    eventually("a trigger by hand is refused", || {
        let (status, refused) = story.place.http("POST", &format!("/api/v1/jobs/{by_hand}/trigger"), Some(&json!({})));
        (status == 429 && refused["code"] == "429_TENANT_QUOTA_EXCEEDED").then_some(())
    });

    // Another tenant of the same pool goes on.
    for _ in 0..OTHERS {
        let run = story.trigger(quick);
        story.until(run, "SUCCESS");
    }
    assert_eq!(story.began("wrong"), AT_ONCE);
    assert_eq!(story.began("quick"), OTHERS);

    // Corrected, and over.
    let tomorrow = super::daily(now_ms() - 3_600_000, &json!({}));
    for job in jobs {
        let path = format!("/api/v1/jobs/{job}");
        let mut spec = story.get(&path);
        spec["trigger"] = tomorrow.clone();
        story.done("PUT", &path, Some(&spec));
    }
    story.happens("may-end");
    eventually("nothing is open", || {
        let tenant = story.get(&format!("/api/v1/tenants/{}", story.name));
        (tenant["running"] == 0 && tenant["waiting"] == 0).then_some(())
    });
    let run = story.trigger(by_hand);
    story.until(run, "SUCCESS");
}
