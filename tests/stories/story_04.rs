//! Story 4: during a peak somebody starts a backfill. Live runs do not wait for it: they start first, also those that came later, and the
//! backfill takes no more places than it may.

use super::Story;
use crate::program::eventually;
use campanile_schema::ids::JobId;
use serde_json::json;

/// Instants of the backfill, and how many of them may run at once.
const PAST: usize = 8;
const PARALLELISM: usize = 2;
/// Places of the executor. The peak has twice as many live runs.
const SLOTS: usize = 4;

/// A job with instants in the past and, until next year, none in the future. On a cluster the same node owns it that owns the job
/// `beside`, because the order of starts is an order of one node.
fn yearly(story: &Story, name: &str, shell: &str, beside: Option<u64>) -> u64 {
    let owner = |job: u64| {
        let shards = story.items("/api/v1/cluster/shards");
        let shard = JobId(job).shard(u16::try_from(shards.len()).unwrap());
        shards.iter().find(|view| view["shard"] == shard.0).unwrap()["node"].clone()
    };
    let trigger = json!({"type": "CRON", "expr": "0 0 1 1 *", "dialect": "UNIX"});
    let action = story.body(name, shell);
    let made = |n: u32| story.job(&format!("{name}-{n}"), &json!({"trigger": trigger, "action": action}));
    let beside_it = |job: &u64| !story.place.is_cluster() || beside.is_none_or(|beside| owner(*job) == owner(beside));
    (0..).map(made).find(beside_it).unwrap()
}

pub fn story_04_a_backfill_during_a_peak_does_not_slow_live_runs(story: &Story) {
    let open = story.path("open");
    let shell = format!("echo + >> {open}; sleep 0.1; echo - >> {open}");
    let past = yearly(story, "past", &shell, None);
    // Of the runs of the peak each waits for what its params name.
    let wave = |name: &str| format!("*{name}*) {} ;;", story.waits(name));
    let shell = format!("case $CAMPANILE_PARAMS in {} {} esac", wave("first"), wave("second"));
    let live = yearly(story, "live", &shell, Some(past));

    // The backfill is there first. All executors are away, so it waits longest.
    let years = json!({
        "from": "2019-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z", "parallelism": PARALLELISM, "reason": "new column",
    });
    let backfill = story.done("POST", &format!("/api/v1/jobs/{past}/backfill"), Some(&years));
    assert_eq!(backfill["toRun"], json!(PAST), "{backfill}");
    let backfill = format!("/api/v1/backfills/{}", backfill["backfillId"]);
    eventually("its first runs wait", || (story.get(&backfill)["progress"]["active"] == PARALLELISM).then_some(()));
    let waves = ["first", "second"];
    let peak: Vec<u64> = waves
        .iter()
        .flat_map(|wave| [wave; SLOTS])
        .map(|wave| story.trigger_with(live, &json!({"wave": wave})))
        .collect();

    // Each time that there is room, all of it is for live runs.
    let _executor = story.executor("one", u32::try_from(SLOTS).unwrap());
    for (waves_begun, wave) in (1..).zip(waves) {
        eventually("live runs take all places", || (story.began("live") >= waves_begun * SLOTS).then_some(()));
        assert_eq!((story.began("live"), story.began("past")), (waves_begun * SLOTS, 0));
        story.happens(wave);
    }
    for run in peak {
        story.until(run, "SUCCESS");
    }
    let done = eventually("the backfill is done", || Some(story.get(&backfill)).filter(|view| view["state"] == "DONE"));
    assert_eq!(done["progress"]["succeeded"], json!(PAST), "{done}");
    assert_eq!(story.began("past"), PAST);
    assert!(story.runs(past).iter().all(|run| run["source"] == "BACKFILL"));
    // Though all places were free in the end, it took no more of them than it may.
    let mut bodies = 0_usize;
    for line in story.lines("open") {
        bodies = if line == "+" { bodies + 1 } else { bodies - 1 };
        assert!(bodies <= PARALLELISM, "{:?}", story.lines("open"));
    }
}
