//! Story 11: all nodes are down when the daily report is due. With FIRE_ONCE_NOW it is made when they are back, once and for its own day.
//! A job that is of no use when it is late has SKIP, and the ledger says so.

use super::{Story, daily};
use crate::{program::eventually, support::now_ms};
use campanile_schema::time::Timestamp;
use serde_json::{Value, json};

/// From the jobs' creation to the instant, milliseconds: in this time all nodes are killed.
const AHEAD: i64 = 6_000;
/// The outage lasts so much longer than the instant, milliseconds: more than the misfire threshold.
const AFTER: i64 = 1_500;

/// What became of the one instant of a job.
fn outcome(story: &Story, job: u64) -> Value {
    let mut lines = eventually("an outcome", || Some(story.ledger(job)).filter(|lines| !lines.is_empty()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.pop().unwrap()
}

pub fn story_11_fire_once_now_after_an_outage_saves_the_daily_report(story: &Story) {
    let _executor = story.executor("one", 4);
    let at = (now_ms() + AHEAD) / 1_000 * 1_000;
    let job = |name: &str, policy: &str| {
        let trigger = daily(at, &json!({"misfirePolicy": policy, "misfireThresholdSec": 1}));
        story.job(name, &json!({"trigger": trigger, "action": story.body(name, "echo \"$CAMPANILE_LOGICAL_TIME\"")}))
    };
    let (report, reminder) = (job("report", "FIRE_ONCE_NOW"), job("reminder", "SKIP"));
    story.place.kill_all();
    assert!(now_ms() < at, "the machine is too slow for this story");
    eventually("the instant has passed", || (now_ms() > at + AFTER).then_some(()));
    story.place.start_all();

    let line = outcome(story, report);
    assert_eq!((&line["outcome"], &line["logicalTime"]), (&json!("FIRED_LATE"), &json!(Timestamp(at))), "{line}");
    let made = story.until(line["runId"].as_u64().unwrap(), "SUCCESS");
    assert_eq!((&made["source"], &made["logicalTime"]), (&json!("SCHEDULE"), &json!(Timestamp(at))), "{made}");
    assert!(made["createdAt"].as_str().unwrap().parse::<Timestamp>().unwrap().ms() > at + AFTER, "{made}");
    let log = story.place.run(&["run", "log", &made["runId"].to_string()]).ok();
    assert!(log.contains(&Timestamp(at).to_string()), "its day is the day that was missed: {log}");
    let line = outcome(story, reminder);
    assert_eq!((&line["outcome"], &line["reason"]), (&json!("SKIPPED"), &json!("MISFIRE")), "{line}");
    // Once, however the outage ended.
    assert_eq!((story.runs(report).len(), story.runs(reminder).len()), (1, 0));
    assert_eq!(story.lines("began"), ["report"]);
}
