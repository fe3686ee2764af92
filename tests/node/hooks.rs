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
use std::collections::BTreeSet;

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
    let hook = hook.map(|job| Hook { job: job.to_owned(), params });
    spec.hooks = Hooks { on_failure: hook.into_iter().collect() };
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
    let failed = scheduler.trigger(work, TriggerBody::default()).await.unwrap();
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

#[test]
fn a_node_that_is_killed_again_and_again_starts_each_hook_once() {
    const ROUNDS: usize = 4;
    const RUNS: usize = 25;
    let data = tempfile::tempdir().unwrap();
    let command = |name: &str, program: &str, hooks: Value| {
        json!({"name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}, "concurrencyPolicy": "ALLOW",
               "action": {"kind": "COMMAND", "command": [program]}, "hooks": hooks})
    };
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let make = |spec: &Value| {
        let (status, made) = dev.http("POST", "/api/v1/jobs", Some(spec));
        assert_eq!(status, 201, "{made}");
        made["jobId"].as_u64().unwrap()
    };
    let refund = make(&command("refund", "/bin/true", json!({})));
    let work = make(&command("work", "/bin/false", json!({"onFailure": [{"job": "refund"}]})));
    let mut dev = Some(dev);
    for round in 0..ROUNDS {
        let now = dev.take().unwrap();
        for n in 0..RUNS {
            let body = json!({"manualRunId": format!("{round}-{n}")});
            let (status, answer) = now.http("POST", &format!("/api/v1/jobs/{work}/trigger"), Some(&body));
            assert!(status < 300, "{answer}");
        }
        // In the middle of their ends and hooks.
        now.kill();
        dev = Some(Dev::start(data.path(), &["--no-demo"]));
    }
    let dev = dev.unwrap();
    let all = |job: u64| {
        let (status, page) = dev.http("GET", &format!("/api/v1/jobs/{job}/runs?pageSize=1000"), None);
        assert_eq!(status, 200, "{page}");
        page["items"].as_array().unwrap().clone()
    };
    let ended = |runs: &[Value], state: &str| runs.iter().all(|run| run["state"] == state);
    let failed = program::eventually("all have failed", || {
        Some(all(work)).filter(|runs| runs.len() == ROUNDS * RUNS && ended(runs, "FAILED"))
    });
    let wanted: BTreeSet<String> =
        failed.iter().map(|run| format!("onFailure of run {}, generation 1", run["runId"])).collect();
    let hooks = program::eventually("each has its hook", || {
        Some(all(refund)).filter(|runs| runs.len() >= ROUNDS * RUNS && ended(runs, "SUCCESS"))
    });
    let reasons: BTreeSet<String> = hooks.iter().map(|run| run["reason"].as_str().unwrap().to_owned()).collect();
    assert_eq!(hooks.len(), ROUNDS * RUNS, "none twice");
    assert_eq!(reasons, wanted);
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
    refused(json!({"onFailure": [{"job": "a"}, {"job": "b"}]}), "at most 1 job");
    refused(json!({"onFailure": [{"job": "a", "params": [1]}]}), "hooks.onFailure.params");
    refused(json!({"onFailure": [{"job": "no name"}]}), "hooks.onFailure.job");
    refused(json!({"onSuccess": []}), "onSuccess");
    let job = dev.job("plain", json!({"type": "MANUAL"}));
    let body = json!({"manualRunId": "\u{1}h4097/1/0"});
    let (status, answer) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&body));
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("U+0001"), "{answer}");
    assert_eq!(dev.stop(), 0);
}
