//! Story 7: a database does not answer any more, and bookings that call it try again, with very many attempts each. They name it as their
//! target, so it gets few of these calls: retries wait until first attempts have paid for them, and while all calls fail it is asked by one
//! call at a time whether it answers. When it does, all bookings are made. Other jobs notice nothing.

use super::Story;
use crate::program::eventually;
use serde_json::{Value, json};

const TARGET: &str = "ledger-db";
/// Calls that the database takes at once.
const AT_ONCE: usize = 2;
/// The first bookings, retries that are free, and those that become free one by one, each minute, while the story is told.
const EARLY: usize = 3;
const FREE_RETRIES: usize = 10;
const FREE_LATER: usize = 2;
/// Bookings of a peak. Their first attempts pay for all retries of the story.
const PEAK: usize = 16;
/// Calls by which the database is asked whether it answers.
const PROBES: usize = 2;

/// A call that gives up when there was no answer for a while.
fn body(story: &Story) -> Value {
    let (calls, answers, booked) = (story.path("calls"), story.path("answers"), story.path("booked"));
    let gives_up = format!("echo - >> {calls}; echo \"no answer\" >&2; exit 1");
    let shell = format!(
        "echo + >> {calls}; n=0; until [ -e {answers} ]; do n=$((n + 1)); [ $n -le 6 ] || {{ {gives_up}; }}; sleep 0.05; done; \
         echo - >> {calls}; echo booked >> {booked}"
    );
    story.body("book", &shell)
}

/// For each call, in their order, how many others were under way when it began.
fn beside(story: &Story) -> Vec<usize> {
    let (mut under_way, mut beside) = (0_usize, Vec::new());
    for line in story.lines("calls") {
        if line == "+" {
            beside.push(under_way);
            under_way += 1;
        } else {
            under_way -= 1;
        }
    }
    beside
}

/// All of them wait because of the budget of retries, of which the node says this.
fn wait_for_budget(story: &Story, runs: &[u64], says: &str) {
    eventually(&format!("all retries wait: {says}"), || {
        let waits = |run: &u64| {
            let view = story.run(*run);
            let why = view["waitReason"].as_str().unwrap_or_default();
            why.starts_with("TARGET_RETRY_BUDGET") && why.contains(says)
        };
        runs.iter().all(waits).then_some(())
    });
}

/// What the explanation of a run says about the open breaker.
fn breaker_is_named(story: &Story, run: u64) -> Option<()> {
    let explained = story.get(&format!("/api/v1/runs/{run}/explain"));
    let mut reasons = explained["reasons"].as_array().unwrap().iter();
    let reason = reasons.find(|reason| reason["code"] == "TARGET_BREAKER_OPEN")?;
    assert!(reason["sentence"].as_str().unwrap().contains(TARGET), "{explained}");
    assert_eq!(reason["heldBy"][0]["name"], TARGET, "{explained}");
    Some(())
}

pub fn story_07_a_slow_database_is_not_flattened_by_retries(story: &Story) {
    let target = format!("/api/v1/tenants/{}/targets/{TARGET}", story.name);
    let settings = json!({"maxConcurrentRuns": AT_ONCE, "retryPercent": 0, "failurePercent": 0});
    story.done("PUT", &target, Some(&settings));
    let retry = json!({"maxAttempts": 100, "backoff": "FIXED", "baseDelaySec": 0.1, "jitter": 0});
    let book = story.job("book", &json!({"target": TARGET, "retryPolicy": retry, "action": body(story)}));
    let other = story.job("other", &json!({"action": story.body("other", "true")}));
    let others_go_on = || {
        let run = story.trigger(other);
        story.until(run, "SUCCESS");
    };
    let _executor = story.executor("one", 4);

    // No answer. Three bookings with a hundred attempts each could be three hundred calls.
    let mut bookings: Vec<u64> = (0..EARLY).map(|_| story.trigger(book)).collect();
    let few = EARLY + FREE_RETRIES;
    eventually("the free retries are used", || (story.began("book") >= few).then_some(()));
    wait_for_budget(story, &bookings, "at most 0 %");
    let calls = story.began("book");
    assert!(calls <= few + FREE_LATER, "{calls} calls");
    // Retries that wait hold up nothing else, not even a new booking.
    others_go_on();
    let new = story.trigger(book);
    eventually("its first attempt begins", || (story.run(new)["attemptCount"] != 0).then_some(()));
    bookings.push(new);
    wait_for_budget(story, &bookings, "at most 0 %");

    // A peak is coming. The database shall be left alone until it answers, and then all shall be done.
    let left_alone = ["--failure-percent", "50", "--min-attempts", "1", "--open-sec", "2", "--retry-percent", "100"];
    let set = ["target", "set", story.name.as_str(), TARGET];
    story.place.run(&[&set[..], &left_alone[..]].concat()).ok();
    wait_for_budget(story, &bookings, "at most 100 %");
    let before = beside(story).len();
    bookings.extend((0..PEAK).map(|_| story.trigger(book)));
    let last = bookings[EARLY + PEAK];
    eventually("the breaker is open", || (story.get(&target)["breaker"] == "OPEN").then_some(()));
    eventually("the last booking waits for it", || breaker_is_named(story, last));
    others_go_on();
    // The calls that were under way when the first of them failed, and then the probes.
    let until_probes = before + AT_ONCE;
    eventually("it is asked whether it answers", || (beside(story).len() >= until_probes + PROBES).then_some(()));
    let without_answer = beside(story).len();
    assert_eq!(story.lines("booked").len(), 0);

    // It answers.
    story.happens("answers");
    for booking in &bookings {
        story.until(*booking, "SUCCESS");
    }
    assert_eq!(story.lines("booked").len(), bookings.len());
    eventually("the breaker lets calls through", || (story.get(&target)["breaker"] != "OPEN").then_some(()));
    let calls = beside(story);
    assert!(calls.iter().all(|others| *others < AT_ONCE), "more at once than it takes: {calls:?}");
    let probes = &calls[until_probes..without_answer];
    assert!(probes.iter().all(|others| *others == 0), "it was asked by several calls at once: {probes:?} of {calls:?}");
}
