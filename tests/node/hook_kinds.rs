//! Hooks of every kind, compensations, and the budget of runs that follow from one end; with kills of the node in between.

use crate::{
    hooks::{all_runs, command, made, outbox, triggered},
    program::{self, Dev},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Reasons of all runs of a job.
fn reasons(dev: &Dev, job: u64) -> Vec<String> {
    let mut reasons: Vec<String> =
        all_runs(dev, job).iter().map(|run| run["reason"].as_str().unwrap().to_owned()).collect();
    reasons.sort();
    reasons
}

fn with_params(dev: &Dev, job: u64, key: &str, does: &str) {
    let body = json!({"manualRunId": key, "params": {"does": does}});
    let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&body));
    assert!(status < 300, "{run}");
}

const BODY: &str = "case $CAMPANILE_PARAMS in *win*) exit 0 ;; *hang*) sleep 600 ;; *) exit 1 ;; esac";

#[test]
fn each_end_starts_the_hooks_of_its_kinds_once_whatever_dies() {
    const ROUNDS: usize = 2;
    const UNHURT: [&str; 3] = ["win", "lose", "hang"];
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let told = ["failure", "also-failure", "success", "timeout", "dead"].map(|name| {
        let name = format!("tell-{name}");
        made(&dev, &command(&name, &["/bin/true"], json!({})))
    });
    let hooks = json!({
        "onFailure": [{"job": "tell-failure"}, {"job": "tell-also-failure", "params": {"to": "ops"}}],
        "onSuccess": [{"job": "tell-success"}], "onTimeout": [{"job": "tell-timeout"}],
        "onDeadLetter": [{"job": "tell-dead"}],
    });
    let mut work = command("work", &["/bin/sh", "-c", BODY], hooks.clone());
    work["timeoutSec"] = json!(3);
    let work = made(&dev, &work);
    assert_eq!(dev.http("GET", &format!("/api/v1/jobs/{work}"), None).1["hooks"], hooks, "as they were given");
    let mut dev = Some(dev);
    for round in 0..ROUNDS {
        let now = dev.take().unwrap();
        for does in ["win", "lose", "hang"] {
            for n in 0..2 {
                with_params(&now, work, &format!("{does}-{round}-{n}"), does);
            }
        }
        // In the middle of their ends and hooks.
        now.kill();
        dev = Some(Dev::start(data.path(), &["--no-demo"]));
    }
    let dev = dev.unwrap();
    // A body that a kill has hit may end otherwise than it was asked to: what counts is how its run has ended. These end as they are asked to.
    for does in UNHURT {
        with_params(&dev, work, &format!("{does}-unhurt"), does);
    }
    let ends = program::eventually("all have ended", || {
        let runs = all_runs(&dev, work);
        (runs.len() == ROUNDS * 6 + UNHURT.len() && runs.iter().all(|run| run["endedAt"].is_string())).then_some(runs)
    });
    let wanted = |field: &str, states: &[&str]| {
        let of = ends.iter().filter(|run| states.contains(&run["state"].as_str().unwrap()));
        let mut reasons: Vec<String> = of.map(|run| format!("{field} of run {}, generation 1", run["runId"])).collect();
        assert!(!reasons.is_empty(), "no run ends {states:?}");
        reasons.sort();
        reasons
    };
    let all = [
        wanted("onFailure", &["FAILED", "TIMEOUT"]),
        wanted("onFailure", &["FAILED", "TIMEOUT"]),
        wanted("onSuccess", &["SUCCESS"]),
        wanted("onTimeout", &["TIMEOUT"]),
        wanted("onDeadLetter", &["FAILED", "TIMEOUT"]),
    ];
    for (job, wanted) in told.into_iter().zip(all) {
        program::eventually("each end has its hook", || (reasons(&dev, job).len() >= wanted.len()).then_some(()));
        assert_eq!(reasons(&dev, job), wanted);
    }
    program::eventually("nothing is owed any more", || outbox(&dev).is_empty().then_some(()));
    let of_timeout = &all_runs(&dev, told[3])[0]["params"]["run"];
    assert_eq!((&of_timeout["hook"], &of_timeout["state"]), (&json!("onTimeout"), &json!("TIMEOUT")));
    assert_eq!(all_runs(&dev, told[1])[0]["params"]["to"], "ops");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_run_is_undone_once_and_goes_on_only_with_force() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let refund = made(&dev, &command("refund", &["/bin/true"], json!({})));
    let tell = made(&dev, &command("tell", &["/bin/true"], json!({})));
    let hooks = json!({"onFailure": [{"job": "refund", "compensation": true}, {"job": "tell"}]});
    let work = made(&dev, &command("work", &["/bin/false"], hooks));
    let run = triggered(&dev, work, "once");
    let undone = |dev: &Dev| {
        let runs = program::eventually("the run is undone", || Some(all_runs(dev, refund)).filter(|r| !r.is_empty()));
        assert_eq!((runs.len(), &runs[0]["source"]), (1, &json!("COMPENSATION")), "{runs:?}");
    };
    undone(&dev);
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let path = format!("/api/v1/runs/{run}");
    assert_eq!(dev.http("GET", &path, None).1["compensated"], true);
    for again in [format!("{path}/retry"), format!("/api/v1/dead-letters/{run}/redrive")] {
        let (status, answer) = dev.http("POST", &again, None);
        assert_eq!((status, &answer["code"]), (409, &json!("409_COMPENSATED")), "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains("--force"), "{answer}");
    }
    assert_eq!(dev.http("GET", &path, None).1["generation"], 1, "nothing has changed");
    dev.run(&["run", "retry", &run.to_string(), "--force"]).ok();
    program::eventually("it has failed again, and that is told", || {
        (all_runs(&dev, tell).len() == 2 && dev.http("GET", &path, None).1["state"] == "FAILED").then_some(())
    });
    program::eventually("nothing is owed any more", || outbox(&dev).is_empty().then_some(()));
    undone(&dev);
    assert_eq!(dev.stop(), 0);
}

#[test]
fn jobs_that_are_all_hooks_of_each_other_start_no_more_than_the_budget() {
    const BUDGET: usize = 64;
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let names = ["a", "b", "c", "d", "e"];
    let jobs = names.map(|name| {
        let others = names.iter().filter(|other| **other != name).map(|other| json!({"job": other}));
        let hooks = json!({"onFailure": others.collect::<Vec<_>>()});
        made(&dev, &command(name, &["/bin/false"], hooks))
    });
    let root = triggered(&dev, jobs[0], "root");
    program::eventually("hooks are started", || (all_runs(&dev, jobs[1]).len() > 1).then_some(()));
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let all = || jobs.iter().flat_map(|job| all_runs(&dev, *job)).collect::<Vec<Value>>();
    let runs = program::eventually("all have failed", || {
        let runs = all();
        let over = outbox(&dev).iter().all(|message| message["state"] == "DROPPED");
        (over && runs.len() > BUDGET && runs.iter().all(|run| run["state"] == "FAILED")).then_some(runs)
    });
    assert_eq!(runs.len(), 1 + BUDGET);
    assert!(runs.iter().all(|run| run["runId"] == root || run["source"] == "EVENT"));
    let dropped: Vec<&Value> = runs.iter().flat_map(|run| run["failedHooks"].as_array()).flatten().collect();
    let told: BTreeSet<(&str, &str)> =
        dropped.iter().map(|hook| (hook["state"].as_str().unwrap(), hook["reason"].as_str().unwrap())).collect();
    assert_eq!(told, BTreeSet::from([("DROPPED", "HOOK_BUDGET")]));
    let last = runs.iter().find(|run| run["failedHooks"].is_array()).unwrap();
    let explained = dev.http("GET", &format!("/api/v1/runs/{}/explain", last["runId"]), None).1;
    assert!(explained.to_string().contains("HOOK_DROPPED"), "{explained}");
    assert_eq!(dev.stop(), 0);
}
