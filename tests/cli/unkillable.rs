//! Bodies that nobody can kill: threads that block and look at nothing. Their runs are STOPPING, and nothing of theirs starts until a
//! person says that the body has ended, over HTTP, RPC or on the command line.

use crate::program::{Dev, eventually};
use campanile_client::{Client, Context, Executor, JobError};
use campanile_schema::{
    ids::RunId,
    record::RunState,
    view::{ConfirmBody, ConfirmDecision, RunView},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// The threads of the bodies, by the names of their jobs: how many have begun. All wait until it is open.
#[derive(Default)]
struct Stuck {
    begun: Mutex<(BTreeMap<String, u32>, bool)>,
    opened: Condvar,
}

impl Stuck {
    fn body(&self, job: &str) {
        let mut begun = self.begun.lock().unwrap();
        *begun.0.entry(job.to_owned()).or_default() += 1;
        drop(self.opened.wait_while(begun, |(_, open)| !*open).unwrap());
    }

    fn begun(&self, job: &str) -> u32 {
        self.begun.lock().unwrap().0.get(job).copied().unwrap_or(0)
    }

    fn open(&self) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.opened.notify_all();
    }
}

/// Lets the threads go when the test is over, however it ends: a runtime waits for them.
struct Opened(Arc<Stuck>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn job(dev: &Dev, name: &str, mut spec: Value) -> u64 {
    spec["name"] = name.into();
    spec["trigger"] = json!({"type": "MANUAL"});
    spec["action"] = json!({"kind": "HANDLER", "name": "stuck"});
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
    assert_eq!(status, 201, "{made}");
    made["jobId"].as_u64().unwrap()
}

fn trigger(dev: &Dev, job: u64) -> u64 {
    let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&json!({})));
    assert_eq!(status, 200, "{run}");
    run["runId"].as_u64().unwrap()
}

fn view(dev: &Dev, run: u64) -> RunView {
    serde_json::from_value(dev.http("GET", &format!("/api/v1/runs/{run}"), None).1).unwrap()
}

fn metric(dev: &Dev, name: &str) -> Option<f64> {
    dev.metrics().lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn no_second_body_starts_until_a_person_says_that_the_first_has_ended() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo", "--no-executor"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let stuck = Arc::new(Stuck::default());
    let (bodies, _opened) = (stuck.clone(), Opened(stuck.clone()));
    let executor = Executor::builder(&dev.rpc, &dev.token)
        .pool("default")
        .slots(8)
        .grace(Duration::from_millis(100))
        .blocking_handler("stuck", move |ctx: Context, _: Value| {
            bodies.body(ctx.job_name());
            Ok::<_, JobError>(())
        })
        .build()
        .unwrap()
        .start();

    // Each way in which a second body could come: a retry, the next of a queue, and one that replaces.
    let again = json!({"maxAttempts": 2, "backoff": "FIXED", "baseDelaySec": 0, "maxDelaySec": 0, "jitter": 0.0});
    let retried = trigger(&dev, job(&dev, "retried", json!({"timeoutSec": 1, "retryPolicy": again})));
    let queued = job(&dev, "queued", json!({"concurrencyPolicy": "QUEUE_ONE"}));
    let replaced = job(&dev, "replaced", json!({"concurrencyPolicy": "REPLACE"}));
    let (canceled, given_up) = (trigger(&dev, queued), trigger(&dev, replaced));
    for name in ["retried", "queued", "replaced"] {
        eventually(name, || (stuck.begun(name) == 1).then_some(()));
    }
    dev.run(&["run", "cancel", &canceled.to_string()]).ok();
    let next = [trigger(&dev, queued), trigger(&dev, replaced)];

    // Long after the grace: all three are overdue, and hold what waits for them.
    let begun = || ["retried", "queued", "replaced"].map(|name| stuck.begun(name));
    eventually("all are overdue", || {
        assert_eq!(begun(), [1, 1, 1], "no second body");
        (metric(&dev, "campanile_attempts_stop_overdue") == Some(3.0)).then_some(())
    });
    assert_eq!(metric(&dev, "campanile_attempts_stopping"), Some(3.0));
    for run in [retried, canceled, given_up] {
        let view = view(&dev, run);
        assert_eq!((view.label(), view.attempts.len()), ("STOPPING", 1), "{view:?}");
        assert!(view.wait_reason.as_deref().unwrap().contains("confirm the run as ENDED"), "{view:?}");
        dev.run(&["run", "confirm", &run.to_string(), "rerun"]).refused(5);
    }
    let running = || {
        let executors = dev.run(&["system", "executors", "-o", "json"]).json();
        executors["items"][0]["running"].as_u64()
    };
    assert_eq!(running(), Some(3), "they keep their slots");
    assert_eq!(begun(), [1, 1, 1], "no second body");

    // One over each interface; what starts is the next body of that job, beside the thread that is still there.
    let said = json!({"decision": "ENDED", "reason": "its host is off"});
    let (status, told) = dev.http("POST", &format!("/api/v1/runs/{retried}/confirm"), Some(&said));
    assert_eq!((status, told["attempts"][0]["state"].as_str()), (200, Some("TIMEOUT")), "{told}");
    let error = told["attempts"][0]["errorMessage"].as_str().unwrap();
    assert!(error.contains("an operator said that the body had ended: its host is off"), "{told}");
    eventually("the retry", || (stuck.begun("retried") == 2).then_some(()));
    assert_eq!(begun(), [2, 1, 1], "of that job alone");

    let client = runtime.block_on(Client::connect(&dev.rpc, &dev.token)).unwrap();
    let ended = ConfirmBody { decision: ConfirmDecision::Ended, reason: None };
    let told = runtime.block_on(client.run_confirm(RunId(canceled), ended)).unwrap();
    assert_eq!(told.state, RunState::Canceled, "{told:?}");
    eventually("the next of the queue", || (stuck.begun("queued") == 2).then_some(()));
    assert_eq!(begun(), [2, 2, 1]);

    let told = dev.run(&["run", "confirm", &given_up.to_string(), "ended", "-o", "json"]).json();
    assert_eq!(told["state"], "CANCELED", "{told}");
    eventually("the one that replaces", || (stuck.begun("replaced") == 2).then_some(()));
    assert_eq!(view(&dev, next[1]).state, RunState::Running);
    // There is nothing more to say of a run that has ended, or of a body that nobody told to stop.
    dev.run(&["run", "confirm", &given_up.to_string(), "ended"]).refused(5);
    let early = dev.run(&["run", "confirm", &next[0].to_string(), "ended"]).refused(5);
    assert!(early.contains("is not STOPPING"), "{early}");

    // The threads return at last: those of runs that were ended by hand change nothing.
    stuck.open();
    for run in next {
        eventually("it ends", || (view(&dev, run).state == RunState::Success).then_some(()));
    }
    for run in [canceled, given_up] {
        let view = view(&dev, run);
        assert_eq!((view.state, view.attempts.len()), (RunState::Canceled, 1), "{view:?}");
    }
    let view = eventually("the retry ends", || Some(view(&dev, retried)).filter(|view| view.state.is_final()));
    assert_eq!(view.attempts.len(), 2, "{view:?}");
    runtime.block_on(executor.drain(Duration::from_secs(2)));
}
