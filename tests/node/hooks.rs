//! A job that fails for good starts the job of its hook: once, with what happened, whatever dies in between.

use crate::{
    program::{self, Dev},
    support::{self, TestNode, eventually},
};
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    ids::JobId,
    job::{Hook, Hooks, JobSpec, Trigger},
    payload::Payload,
    record::{RunState, Source},
    view::{RunView, TriggerBody},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path};

/// Bodies of "work" fail, all others succeed.
fn executor(node: &TestNode) -> ExecutorHandle {
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(|context: Context, _: Payload| async move {
            if context.job_name().starts_with("work") { Err(JobError::message("no luck")) } else { Ok(None) }
        })
        .build()
        .unwrap()
        .start()
}

fn spec(name: &str, hook: Option<&str>) -> JobSpec {
    let mut spec = JobSpec::new("default", name, Trigger::Manual {});
    spec.retry_policy.max_attempts = 1;
    let params = Payload("{\"amount\":12}".to_owned());
    let hook = hook.map(|job| Hook { params, ..Hook::new(job) });
    spec.hooks = Hooks { on_failure: hook.into_iter().collect(), ..Hooks::default() };
    spec
}

async fn runs(node: &TestNode, job: JobId) -> Vec<RunView> {
    node.scheduler().job_runs(job, None, 1000).await.unwrap().items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_fails_for_good_starts_its_hook_in_each_generation() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let executor = executor(&node);
    let refund = scheduler.create_job(spec("refund", None), None).await.unwrap().job_id;
    let work = scheduler.create_job(spec("work", Some("refund")), None).await.unwrap().job_id;
    assert_eq!(scheduler.job(work).await.unwrap().spec.hooks, spec("work", Some("refund")).hooks, "as it was given");
    let order = Some(Payload(r#"{"order":7}"#.to_owned()));
    let failed = scheduler.trigger(work, TriggerBody { params: order, ..TriggerBody::default() }).await.unwrap();
    let node = &node;
    let ended = |count: usize| async move {
        let runs = runs(node, refund).await;
        (runs.len() == count && runs.iter().all(|run| run.state == RunState::Success)).then_some(runs)
    };
    let hooks = eventually("the hook has run", || ended(1)).await;
    assert_eq!((hooks[0].source, hooks[0].key.as_deref()), (Source::Event, None));
    assert_eq!(hooks[0].reason.as_deref(), Some(&*format!("onFailure of run {}, generation 1", failed.run_id)));
    let params = hooks[0].params.clone().unwrap().to_value();
    assert_eq!((&params["amount"], &params["run"]["runId"]), (&json!(12), &json!(failed.run_id)));
    assert_eq!((&params["run"]["state"], &params["run"]["errorMessage"]), (&json!("FAILED"), &json!("no luck")));
    assert_eq!(params["run"]["params"], json!({"order": 7}));
    // It fails once more: another hook, of its own generation.
    scheduler.retry_run(failed.run_id, false, None).await.unwrap();
    let hooks = eventually("the second failure has its hook", || ended(2)).await;
    let reasons: BTreeSet<_> = hooks.iter().map(|run| run.reason.clone().unwrap()).collect();
    assert!(reasons.contains(&format!("onFailure of run {}, generation 2", failed.run_id)), "{reasons:?}");
    executor.drain(std::time::Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_run_of_a_hook_waits_while_its_job_is_paused() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let executor = executor(&node);
    let refund = scheduler.create_job(spec("refund", None), None).await.unwrap().job_id;
    let work = scheduler.create_job(spec("work", Some("refund")), None).await.unwrap().job_id;
    scheduler.pause_job(refund, None).await.unwrap();
    scheduler.trigger(work, TriggerBody::default()).await.unwrap();
    let waiting = eventually("the hook's run is there", || async { runs(&node, refund).await.pop() }).await;
    assert_eq!(waiting.state, RunState::Queued);
    assert!(waiting.wait_reason.unwrap().starts_with("JOB_PAUSED"));
    scheduler.resume_job(refund, None).await.unwrap();
    eventually("it has run", || async { runs(&node, refund).await.pop().filter(|run| run.state == RunState::Success) })
        .await;
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}

/// A job of one attempt that runs this program. `hooks` as in a definition.
pub fn command(name: &str, program: &[&str], hooks: Value) -> Value {
    json!({"name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}, "concurrencyPolicy": "ALLOW",
           "action": {"kind": "COMMAND", "command": program}, "hooks": hooks})
}

fn on_failure(job: &str) -> Value {
    json!({"onFailure": [{"job": job}]})
}

pub fn made(dev: &Dev, spec: &Value) -> u64 {
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(spec));
    assert_eq!(status, 201, "{made}");
    made["jobId"].as_u64().unwrap()
}

/// The run that a trigger with this key makes, or has made.
pub fn triggered(dev: &Dev, job: u64, key: &str) -> u64 {
    let body = json!({"manualRunId": key});
    let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&body));
    assert!(status < 300, "{run}");
    run["runId"].as_u64().unwrap()
}

pub fn all_runs(dev: &Dev, job: u64) -> Vec<Value> {
    let (status, page) = dev.http("GET", &format!("/api/v1/jobs/{job}/runs?pageSize=1000"), None);
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().clone()
}

pub fn outbox(dev: &Dev) -> Vec<Value> {
    let (status, page) = dev.http("GET", "/api/v1/outbox", None);
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().clone()
}

/// The only message that is left when all others are settled, which takes a second; it is refused.
fn refused_message(dev: &Dev) -> Value {
    program::eventually("one message is left, and it is refused", || {
        let mut items = outbox(dev);
        (items.len() == 1 && items[0]["state"] == "REFUSED").then(|| items.remove(0))
    })
}

/// The only run of the job, once it is there.
fn only_run(dev: &Dev, job: u64) -> Value {
    let mut runs = program::eventually("the hook is started", || Some(all_runs(dev, job)).filter(|r| !r.is_empty()));
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// Each of these runs has failed, and has started its hook once.
fn all_have_their_hook(dev: &Dev, work: u64, refund: u64, count: usize) {
    let ended = |runs: &[Value], state: &str| runs.iter().all(|run| run["state"] == state);
    let failed = program::eventually("all have failed", || {
        Some(all_runs(dev, work)).filter(|runs| runs.len() == count && ended(runs, "FAILED"))
    });
    let wanted: BTreeSet<String> =
        failed.iter().map(|run| format!("onFailure of run {}, generation 1", run["runId"])).collect();
    let hooks = program::eventually("each has its hook", || {
        Some(all_runs(dev, refund)).filter(|runs| runs.len() >= count && ended(runs, "SUCCESS"))
    });
    let reasons: BTreeSet<String> = hooks.iter().map(|run| run["reason"].as_str().unwrap().to_owned()).collect();
    assert_eq!(hooks.len(), count, "none twice");
    assert_eq!(reasons, wanted);
}

#[test]
fn a_node_that_is_killed_again_and_again_starts_each_hook_once() {
    const ROUNDS: usize = 4;
    const RUNS: usize = 25;
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let refund = made(&dev, &command("refund", &["/bin/true"], json!({})));
    let work = made(&dev, &command("work", &["/bin/false"], on_failure("refund")));
    let mut dev = Some(dev);
    for round in 0..ROUNDS {
        let now = dev.take().unwrap();
        for n in 0..RUNS {
            triggered(&now, work, &format!("{round}-{n}"));
        }
        // In the middle of their ends and hooks.
        now.kill();
        dev = Some(Dev::start(data.path(), &["--no-demo"]));
    }
    let dev = dev.unwrap();
    all_have_their_hook(&dev, work, refund, ROUNDS * RUNS);
    program::eventually("nothing is owed any more", || outbox(&dev).is_empty().then_some(()));
    assert_eq!(dev.stop(), 0);
}

/// The node ends itself when a message is about to leave, when its receiver is about to answer, and when that is about to be recorded.
#[test]
fn a_node_that_dies_at_each_step_of_a_message_starts_each_hook_once() {
    const STEPS: [&str; 3] = ["outbox_send", "outbox_answer", "outbox_settle"];
    const RUNS: usize = 4;
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let refund = made(&dev, &command("refund", &["/bin/true"], json!({})));
    let work = made(&dev, &command("work", &["/bin/false"], on_failure("refund")));
    assert_eq!(dev.stop(), 0);
    for (round, step) in (0..).zip(STEPS) {
        let fault = format!("point:{step}=kill:1");
        let dying = Dev::start_with(data.path(), &["--no-demo"], &[("CAMPANILE_FAULT", &fault)]);
        for n in 0..RUNS {
            let body = json!({"manualRunId": format!("{round}-{n}")});
            // It may be dead by now.
            let _ = dying.try_http("POST", &format!("/api/v1/jobs/{work}/trigger"), Some(&body));
        }
        program::eventually(&format!("the node has died at {step}"), || {
            dying.try_http("GET", "/healthz", None).is_none().then_some(())
        });
        dying.kill();
        let dev = Dev::start(data.path(), &["--no-demo"]);
        for n in 0..RUNS {
            triggered(&dev, work, &format!("{round}-{n}"));
        }
        all_have_their_hook(&dev, work, refund, (round + 1) * RUNS);
        // Or the next node would send the messages again at its start, and die before it says where it listens.
        program::eventually("all messages are settled", || outbox(&dev).is_empty().then_some(()));
        assert_eq!(dev.stop(), 0);
    }
}

#[test]
fn a_hook_that_is_refused_is_shown_until_a_person_puts_it_away() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let gone = made(&dev, &command("gone", &["/bin/true"], json!({})));
    let work = made(&dev, &command("work", &["/bin/false"], on_failure("gone")));
    assert_eq!(dev.http("DELETE", &format!("/api/v1/jobs/{gone}"), None).0, 204);
    let run = triggered(&dev, work, "once");
    let refused = refused_message(&dev);
    assert_eq!((&refused["runId"], &refused["jobId"]), (&json!(run), &json!(work)), "{refused}");
    assert_eq!((&refused["targetJob"], &refused["reason"]), (&json!("gone"), &json!("JOB_DELETED")), "{refused}");
    assert_eq!((&refused["kind"], &refused["mayHaveRun"]), (&json!("HOOK"), &json!(false)), "{refused}");
    let (status, answer) = dev.http("POST", &format!("/api/v1/outbox/{run}/resend"), None);
    assert_eq!((status, &answer["code"]), (409, &json!("409_ILLEGAL_STATE")), "{answer}");
    // It is a record of the store, and the record of the run tells it.
    assert_eq!(dev.stop(), 0);
    let dev = Dev::start(data.path(), &["--no-demo"]);
    assert_eq!(outbox(&dev).len(), 1);
    let told = |dev: &Dev| dev.http("GET", &format!("/api/v1/runs/{run}"), None).1["failedHooks"].clone();
    let failed = told(&dev);
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{failed}");
    let refusal = |generation: u32| json!([generation, "gone", "REFUSED", "JOB_DELETED"]);
    let words = |failed: &Value| json!([failed["generation"], failed["targetJob"], failed["state"], failed["reason"]]);
    assert_eq!((words(&failed[0]), &failed[0]["hook"]), (refusal(1), &json!("onFailure")));
    let explained = dev.http("GET", &format!("/api/v1/runs/{run}/explain"), None).1;
    assert!(explained.to_string().contains("HOOK_REFUSED"), "{explained}");
    let shown = dev.run(&["run", "get", &run.to_string()]).ok();
    assert!(shown.contains("failedHooks.1.reason") && shown.contains("JOB_DELETED"), "{shown}");
    assert_eq!(dev.http("POST", &format!("/api/v1/outbox/{run}/discard"), None).0, 204);
    assert_eq!(outbox(&dev), [json!(null); 0]);
    let trail = dev.http("GET", "/api/v1/audit?operation=outbox.discard&outcome=DONE", None).1;
    let record = &trail["items"][0];
    assert_eq!((&record["runId"], &record["jobId"]), (&json!(run), &json!(work)), "{trail}");
    assert_eq!((&record["tenantId"], &trail["items"][1]), (&json!("default"), &json!(null)), "{trail}");
    assert_eq!(dev.http("POST", &format!("/api/v1/outbox/{run}/discard"), None).0, 409, "there is none");
    // The run keeps it, and gets another one when it fails again.
    assert_eq!(told(&dev), failed);
    assert_eq!(dev.http("POST", &format!("/api/v1/runs/{run}/retry"), None).0, 200);
    let both = program::eventually("the second refusal is told", || {
        Some(told(&dev)).filter(|told| told.as_array().is_some_and(|told| told.len() == 2))
    });
    assert_eq!((words(&both[0]), words(&both[1])), (refusal(1), refusal(2)));
    let (_, failed) = dev.http("GET", "/api/v1/dead-letters", None);
    assert_eq!(failed["items"].as_array().map(Vec::len), Some(1), "once in the lists: {failed}");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn jobs_that_are_hooks_of_each_other_end_after_eight_messages() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let ping = made(&dev, &command("ping", &["/bin/false"], on_failure("pong")));
    let pong = made(&dev, &command("pong", &["/bin/false"], on_failure("ping")));
    triggered(&dev, ping, "first");
    let refused = refused_message(&dev);
    assert_eq!(refused["reason"], "DEPTH", "{refused}");
    assert_eq!((all_runs(&dev, ping).len(), all_runs(&dev, pong).len()), (5, 4));
    assert_eq!(dev.stop(), 0);
}

/// A node with a hook that its receiver puts off, because as many runs of the tenant wait as may. Gives work and the hook's job.
fn with_a_hook_that_waits(dev: &Dev, data: &Path) -> (u64, u64) {
    let flag = data.join("go-on");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done; exit 1", flag.display());
    let mut refund = command("refund", &["/bin/true"], json!({}));
    // Nobody serves its pool.
    (refund["executorSelector"], refund["idempotent"]) = (json!("nobody"), json!(false));
    let refund = made(dev, &refund);
    let work = made(dev, &command("work", &["/bin/sh", "-c", &wait], on_failure("refund")));
    let run = triggered(dev, work, "once");
    program::eventually("the body runs", || {
        let (_, run) = dev.http("GET", &format!("/api/v1/runs/{run}"), None);
        (run["state"] == "RUNNING").then_some(())
    });
    let mut filler = command("filler", &["/bin/true"], json!({}));
    filler["executorSelector"] = json!("nobody");
    let filler = made(dev, &filler);
    let limits = json!({"maxQueuedRuns": 1});
    assert_eq!(dev.http("PUT", "/api/v1/tenants/default", Some(&limits)).0, 200);
    triggered(dev, filler, "only");
    std::fs::write(&flag, "").unwrap();
    program::eventually("the hook is put off", || {
        let waits = |item: &Value| item["state"] == "WAITING" && item["runId"] == run;
        outbox(dev).iter().any(waits).then_some(())
    });
    (work, refund)
}

#[test]
fn a_message_that_a_backup_holds_asks_a_person_after_the_restore() {
    let old = tempfile::tempdir().unwrap();
    let dev = Dev::start(old.path(), &["--no-demo"]);
    let (work, refund) = with_a_hook_that_waits(&dev, old.path());
    let archive = old.path().join("first.archive");
    let archive = archive.to_str().unwrap();
    dev.run(&["store", "backup", archive]).ok();
    // The node goes on after its backup, and the hook with it.
    let freed = |dev: &Dev| assert_eq!(dev.http("PUT", "/api/v1/tenants/default", Some(&json!({}))).0, 200);
    freed(&dev);
    let here = only_run(&dev, refund);
    assert_eq!(here["state"], "QUEUED", "{here}");
    assert_eq!(dev.stop(), 0);

    let new = tempfile::tempdir().unwrap();
    let node = new.path().join("node");
    program::run(&["store", "restore", archive, "--since", "now", "--data", node.to_str().unwrap()]).ok();
    let dev = Dev::start(new.path(), &["--no-demo"]);
    assert_eq!(all_runs(&dev, work)[0]["state"], "FAILED");
    // It waits until the node has counted the tenant's runs, or is taken before.
    for owed in outbox(&dev) {
        assert_eq!((&owed["state"], &owed["mayHaveRun"]), (&json!("WAITING"), &json!(true)), "{owed}");
    }
    freed(&dev);
    let again = only_run(&dev, refund);
    assert_eq!(again["state"], "NEEDS_CONFIRMATION", "it may have run where the backup was made: {again}");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_hook_is_checked_when_its_job_is_made_and_an_own_key_cannot_look_like_one() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo", "--no-executor"]);
    let refused = |hooks: Value, part: &str| {
        let spec = json!({"name": "work", "trigger": {"type": "MANUAL"}, "hooks": hooks});
        let (status, answer) = dev.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!(status, 400, "{answer}");
        assert!(answer.to_string().contains(part), "{part}: {answer}");
    };
    refused(json!({"onFailure": [{"job": "work"}]}), "its own hook");
    let five: Vec<Value> = (0..5).map(|n| json!({"job": format!("a{n}")})).collect();
    refused(json!({"onTimeout": five}), "hooks.onTimeout: at most 4 jobs");
    refused(json!({"onSuccess": [{"job": "a", "compensation": true}]}), "hooks.onSuccess.compensation");
    refused(json!({"onFailure": [{"job": "a", "params": [1]}]}), "hooks.onFailure.params");
    refused(json!({"onFailure": [{"job": "no name"}]}), "hooks.onFailure.job");
    refused(json!({"onFailed": []}), "onFailed");
    let silent = json!({"name": "work", "trigger": {"type": "MANUAL"}, "deadLetter": false, "hooks": {"onDeadLetter": [{"job": "a"}]}});
    let (status, answer) = dev.http("POST", "/api/v1/jobs", Some(&silent));
    assert_eq!((status, &answer["code"]), (400, &json!("400_INVALID_ARGUMENT")), "{answer}");
    assert!(answer.to_string().contains("use hooks.onFailure"), "{answer}");
    let job = dev.job("plain", json!({"type": "MANUAL"}));
    let body = json!({"manualRunId": "\u{1}h4097/1/0"});
    let (status, answer) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&body));
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("U+0001"), "{answer}");
    assert_eq!(dev.stop(), 0);
}
