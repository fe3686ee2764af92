//! What becomes of runs when executors or the node go away: nothing is lost, and nothing is started twice without a reason.

use crate::support;

use campanile_actors::scheduler::DeadLetterFilter;
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    ids::RunId,
    job::{JobSpec, Trigger},
    payload::Payload,
    record::{AttemptState, RunState},
    view::{ConfirmDecision, ExecutorState, RunView, TriggerBody},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use support::{TestNode, eventually};
use tokio::runtime::Runtime;

/// An executor whose bodies run until `release` is set; counts starts. On a runtime of its own, so that it can be killed.
struct Doomed {
    runtime: Option<Runtime>,
    _executor: ExecutorHandle,
}

fn builder(node: &TestNode, id: &str) -> campanile_client::ExecutorBuilder {
    Executor::builder(node.rpc(), support::TOKEN).id(id).pool("default").slots(8)
}

impl Doomed {
    fn start(node: &TestNode, starts: Arc<AtomicU32>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let building = builder(node, "doomed").any_handler(move |_: Context, _: Payload| {
            starts.fetch_add(1, Ordering::SeqCst);
            async {
                std::future::pending::<()>().await;
                Ok::<_, JobError>(None)
            }
        });
        let executor = runtime.block_on(async { building.build().unwrap().start() });
        Self { runtime: Some(runtime), _executor: executor }
    }

    /// As by `kill -9`: no drain, no word.
    fn kill(mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

fn quick(node: &TestNode, id: &str) -> ExecutorHandle {
    builder(node, id).any_handler(|_: Context, _: Payload| async { Ok::<_, JobError>(None) }).build().unwrap().start()
}

async fn triggered(node: &TestNode, spec: JobSpec) -> RunId {
    let job = node.scheduler().create_job(spec, None).await.unwrap();
    node.scheduler().trigger(job.job_id, TriggerBody::default()).await.unwrap().run_id
}

async fn in_state(node: &TestNode, run: RunId, state: RunState) -> RunView {
    eventually(state.as_str(), || async {
        let view = node.scheduler().run(run).await.unwrap();
        (view.state == state).then_some(view)
    })
    .await
}

fn manual(name: &str) -> JobSpec {
    JobSpec::new("default", name, Trigger::Manual {})
}

#[test]
fn a_killed_executor_is_suspected_then_its_runs_are_taken_back() {
    let runtime = Runtime::new().unwrap();
    let node = runtime.block_on(TestNode::start());
    let starts = Arc::new(AtomicU32::new(0));
    let doomed = Doomed::start(&node, starts.clone());
    runtime.block_on(async {
        let run = triggered(&node, manual("moves")).await;
        let mut careful = manual("careful");
        careful.idempotent = false;
        let asks = triggered(&node, careful).await;
        in_state(&node, run, RunState::Running).await;
        in_state(&node, asks, RunState::Running).await;
        eventually("both bodies", || async { (starts.load(Ordering::SeqCst) == 2).then_some(()) }).await;
        doomed.kill();
        in_state(&node, run, RunState::SuspectedLost).await;
        let other = quick(&node, "other");
        let ended = in_state(&node, run, RunState::Success).await;
        assert_eq!(ended.attempts.len(), 2, "{ended:?}");
        assert_eq!(ended.attempts[0].state, AttemptState::Lost);
        assert_eq!(ended.attempts[0].executor_id, "doomed");
        assert_eq!(ended.attempts[1].executor_id, "other");
        assert!(ended.attempts[1].token > ended.attempts[0].token);

        // Not idempotent: a person decides, and nobody starts it before.
        let waiting = in_state(&node, asks, RunState::NeedsConfirmation).await;
        assert_eq!(waiting.attempts.len(), 1);
        assert!(waiting.wait_reason.unwrap().starts_with("NEEDS_CONFIRMATION"));
        node.scheduler().confirm_run(asks, ConfirmDecision::Rerun, None).await.unwrap();
        let ended = in_state(&node, asks, RunState::Success).await;
        assert_eq!(ended.attempts.len(), 2);
        other.drain(Duration::from_secs(2)).await;
        node.stop().await;
    });
}

#[test]
fn a_node_that_restarts_adopts_running_bodies() {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let node = TestNode::start().await;
        let starts = Arc::new(AtomicU32::new(0));
        let gate = Arc::new(tokio::sync::Notify::new());
        let (counted, waits) = (starts.clone(), gate.clone());
        let executor = builder(&node, "steady")
            .any_handler(move |_: Context, _: Payload| {
                counted.fetch_add(1, Ordering::SeqCst);
                let gate = waits.clone();
                async move {
                    gate.notified().await;
                    Ok::<_, JobError>(None)
                }
            })
            .build()
            .unwrap()
            .start();
        let run = triggered(&node, manual("long")).await;
        eventually("the body", || async { (starts.load(Ordering::SeqCst) == 1).then_some(()) }).await;
        let node = node.restart().await;
        eventually("the executor", || async {
            let executors = node.scheduler().executors().await.unwrap();
            executors.iter().any(|e| e.state == ExecutorState::Ready && e.running == 1).then_some(())
        })
        .await;
        assert_eq!(node.scheduler().run(run).await.unwrap().state, RunState::Running);
        gate.notify_waiters();
        let ended = in_state(&node, run, RunState::Success).await;
        assert_eq!(ended.attempts.len(), 1, "the body was adopted: {ended:?}");
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        executor.drain(Duration::from_secs(2)).await;
        node.stop().await;
    });
}

#[test]
fn retries_dead_letters_and_redrive_count_on() {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let node = TestNode::start().await;
        let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let still = broken.clone();
        let executor = builder(&node, "flaky")
            .any_handler(move |_: Context, _: Payload| {
                let fails = still.load(Ordering::SeqCst);
                async move { if fails { Err(JobError::new("DOWN", "target is down")) } else { Ok(None) } }
            })
            .build()
            .unwrap()
            .start();
        let mut spec = manual("flaky");
        spec.retry_policy.base_delay_sec = 0.01;
        let run = triggered(&node, spec).await;
        let dead = in_state(&node, run, RunState::Failed).await;
        assert_eq!((dead.attempts.len(), dead.generation, dead.dead_letter), (3, 1, true));
        assert_eq!(dead.last_error.as_deref(), Some("target is down"));
        let listed = eventually("the dead letter", || async {
            let page = node.scheduler().dead_letters("default", &DeadLetterFilter::all(), None, 10).await.unwrap();
            page.items.into_iter().next()
        })
        .await;
        assert_eq!((listed.run_id, listed.job_name.as_deref()), (run, Some("flaky")));
        broken.store(false, Ordering::SeqCst);
        node.scheduler().retry_run(run, true, Some("target repaired".into())).await.unwrap();
        let ended = in_state(&node, run, RunState::Success).await;
        assert_eq!((ended.attempts.len(), ended.generation, ended.dead_letter), (4, 2, false));
        assert_eq!(ended.attempts.iter().map(|a| a.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let error = node.scheduler().retry_run(run, true, None).await.unwrap_err();
        assert_eq!(error.code, "409_ILLEGAL_STATE");
        eventually("an empty list", || async {
            let page = node.scheduler().dead_letters("default", &DeadLetterFilter::all(), None, 10).await.unwrap();
            page.items.is_empty().then_some(())
        })
        .await;
        executor.drain(Duration::from_secs(2)).await;
        node.stop().await;
    });
}

#[test]
fn cancel_timeout_and_panic_end_attempts() {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let node = TestNode::start().await;
        let executor = builder(&node, "mixed")
            .handler("sleeps", |ctx: Context, _: Payload| async move {
                ctx.canceled().await;
                Err::<(), _>(JobError::new("STOPPED", "was told to stop"))
            })
            .handler("panics", |_: Context, _: Payload| async move {
                assert!(std::hint::black_box(false), "broken handler");
                Ok::<_, JobError>(())
            })
            .build()
            .unwrap()
            .start();
        let run = triggered(&node, manual("sleeps")).await;
        in_state(&node, run, RunState::Running).await;
        node.scheduler().cancel_run(run, None).await.unwrap();
        in_state(&node, run, RunState::Canceled).await;

        let mut short = manual("short");
        short.action = Some(campanile_schema::job::Action::Handler { name: "sleeps".into() });
        short.timeout_sec = 1;
        short.retry_policy.max_attempts = 1;
        let run = triggered(&node, short).await;
        let ended = in_state(&node, run, RunState::Timeout).await;
        assert_eq!(ended.attempts[0].state, AttemptState::Timeout);

        let mut panics = manual("panics");
        panics.retry_policy.max_attempts = 1;
        let run = triggered(&node, panics).await;
        let ended = in_state(&node, run, RunState::Failed).await;
        assert_eq!(ended.attempts[0].error_code.as_deref(), Some("HANDLER_PANIC"));

        // Nobody has this handler: it waits and says why; canceled, it is gone.
        let run = triggered(&node, manual("nobody-has-this")).await;
        let why = eventually("the reason", || async {
            let view = node.scheduler().run(run).await.unwrap();
            view.wait_reason.filter(|w| w.starts_with("NO_FIT"))
        })
        .await;
        assert!(why.contains("has the handler"), "{why}");
        assert_eq!(node.scheduler().cancel_run(run, None).await.unwrap().state, RunState::Canceled);
        executor.drain(Duration::from_secs(2)).await;
        node.stop().await;
    });
}
