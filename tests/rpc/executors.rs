//! The SDK against the real server and actors: credit is honoured, results survive broken connections, sessions move.

use crate::support as rpc_support;

use campanile_client::{Client, Context, JobError};
use campanile_schema::{
    error::ErrorCode,
    ids::{ClusterId, JobId, Token},
    job::{JobSpec, Trigger},
    limits::{ERROR_CODE_BYTES, EXECUTOR_FOREIGN_CLAIMS},
    payload::Payload,
    record::{AttemptState, RunState},
    rpc::{
        codec::from_map,
        executor::{
            Announce, Announced, Assign, Assignment, Credit, Ended, Finish, FinishOutcome, Finished, Heartbeat, Held,
            Hint, LogChunk, Registered,
        },
        hello::ConnectionRole,
        method,
    },
    view::{ExecutorState, RunView, TriggerBody},
};
use campanile_store::memory::MemoryStore;
use rpc_support::{Ahead, EXECUTOR, FOREIGN, Node, OPERATOR, ROTATED, Raw, RawMessage, register, within};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

async fn job(client: &Client, name: &str, change: impl FnOnce(&mut JobSpec)) -> JobId {
    let mut spec = JobSpec::new("fin", name, Trigger::Manual {});
    spec.concurrency_policy = campanile_schema::job::ConcurrencyPolicy::Allow;
    change(&mut spec);
    client.job_create(spec).await.unwrap().job_id
}

async fn trigger(client: &Client, job: JobId) -> RunView {
    client.job_trigger(job, TriggerBody::default()).await.unwrap()
}

async fn until(client: &Client, run: &RunView, wanted: impl Fn(&RunView) -> bool) -> RunView {
    within(async {
        loop {
            let run = client.run_get(run.run_id).await.unwrap();
            if wanted(&run) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Counts bodies that run at once.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}
impl Gauge {
    fn enter(&self) {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }
    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_through_few_slots_and_none_is_sent_in_vain() {
    const RUNS: usize = 3_000;
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let gauge = Arc::new(Gauge::default());
    let seen = gauge.clone();
    let executor = node
        .executor()
        .slots(16)
        .handler("many", move |_: Context, _: serde_json::Value| {
            let gauge = seen.clone();
            async move {
                gauge.enter();
                tokio::task::yield_now().await;
                gauge.leave();
                Ok::<_, JobError>(())
            }
        })
        .build()
        .unwrap()
        .start();
    // Several jobs, since one job's open runs are bounded.
    let mut jobs = Vec::new();
    for n in 0..10 {
        jobs.push(
            job(&client, &format!("many-{n}"), |spec| {
                spec.action = Some(campanile_schema::job::Action::Handler { name: "many".to_owned() });
            })
            .await,
        );
    }
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..RUNS {
        let (client, job) = (client.clone(), jobs[n % jobs.len()]);
        calls.spawn(async move { trigger(&client, job).await });
    }
    let runs: Vec<RunView> = within(calls.join_all()).await;
    let mut refused = 0;
    for run in &runs {
        let run = until(&client, run, |run| run.state.is_final()).await;
        assert_eq!(run.state, RunState::Success);
        refused += run.attempts.iter().filter(|a| a.state == AttemptState::NotStarted).count();
    }
    assert!(gauge.most.load(Ordering::SeqCst) <= 16);
    // Exact credit would be none; see `Credit::received`.
    assert!(refused <= RUNS / 100, "{refused} assignments were sent in vain");
    let status = executor.drain(rpc_support::PATIENCE).await;
    assert_eq!((status.unacknowledged, status.running), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permanent_failure_has_no_retry_and_its_code_is_kept_up_to_its_limit() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let code = "C".repeat(ERROR_CODE_BYTES);
    let said = format!("{code}and more");
    let executor = node
        .executor()
        .handler("hopeless", move |_: Context, _: serde_json::Value| {
            let error = JobError::permanent(said.clone(), "there is no such customer");
            async move { Err::<(), _>(error) }
        })
        .build()
        .unwrap()
        .start();
    let job = job(&client, "hopeless", |spec| spec.retry_policy.max_attempts = 5).await;
    let run = trigger(&client, job).await;
    let run = until(&client, &run, |run| run.state.is_final()).await;
    assert_eq!((run.state, run.attempt_count, run.dead_letter), (RunState::Failed, 1, true));
    assert!(run.attempts[0].permanent);
    assert_eq!(run.attempts[0].error_code.as_deref(), Some(code.as_str()));
    executor.drain(rpc_support::PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_panics_and_timeouts_say_what_happened() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let executor = node
        .executor()
        .slots(8)
        .grace(Duration::from_millis(100))
        .handler("fails", |_: Context, _: serde_json::Value| async {
            Err::<(), _>(JobError::new("DISK_FULL", "no space left"))
        })
        .handler("panics", |_: Context, n: u32| async move {
            assert!(n > 100, "n was {n}");
            Ok(())
        })
        .handler("hangs", |_: Context, _: serde_json::Value| async {
            std::future::pending::<()>().await;
            Ok(())
        })
        .handler("stops", |ctx: Context, _: serde_json::Value| async move {
            ctx.canceled().await;
            Ok("was told to stop")
        })
        .build()
        .unwrap()
        .start();
    let mut ends = Vec::new();
    // Only the body that hangs has little time: printing the backtrace of a panic takes seconds on a busy machine.
    for (name, timeout_sec) in [("fails", 60), ("panics", 60), ("hangs", 1)] {
        let once = |spec: &mut JobSpec| {
            spec.retry_policy.max_attempts = 1;
            spec.timeout_sec = timeout_sec;
            spec.params = Payload("7".to_owned());
        };
        let id = job(&client, name, once).await;
        let run = trigger(&client, id).await;
        let run = until(&client, &run, |run| run.state.is_final()).await;
        let last = run.attempts.last().unwrap();
        ends.push((run.state, last.error_code.clone().unwrap(), last.error_message.clone().unwrap()));
    }
    assert_eq!(ends[0], (RunState::Failed, "DISK_FULL".to_owned(), "no space left".to_owned()));
    assert_eq!((ends[1].0, ends[1].1.as_str()), (RunState::Failed, "HANDLER_PANIC"));
    assert!(ends[1].2.contains("n was 7"), "{}", ends[1].2);
    assert_eq!((ends[2].0, ends[2].1.as_str()), (RunState::Timeout, "TIMEOUT"));

    let id = job(&client, "stops", |_| {}).await;
    let run = trigger(&client, id).await;
    until(&client, &run, |run| run.state == RunState::Running).await;
    client.run_cancel(run.run_id, Some("enough")).await.unwrap();
    let run = until(&client, &run, |run| run.state.is_final()).await;
    assert_eq!(run.state, RunState::Canceled);
    within(executor.wait_until(|status| status.running == 0)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_lets_bodies_finish_and_takes_no_more() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let executor = node
        .executor()
        .slots(4)
        .handler("slow", move |_: Context, _: serde_json::Value| {
            let gate = open.clone();
            async move {
                gate.acquire().await?.forget();
                Ok::<_, JobError>(())
            }
        })
        .build()
        .unwrap()
        .start();
    let id = job(&client, "slow", |_| {}).await;
    let first = trigger(&client, id).await;
    // Of the executor, not of the node: what is on its way when the drain begins is handed back.
    within(executor.wait_until(|status| status.running == 1)).await.unwrap();
    let drain = tokio::spawn(executor.drain(rpc_support::PATIENCE));
    within(async {
        while client.executor_list().await.unwrap().items.iter().any(|e| e.state == ExecutorState::Ready) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let second = trigger(&client, id).await;
    gate.add_permits(1);
    until(&client, &first, |run| run.state == RunState::Success).await;
    let status = within(drain).await.unwrap();
    assert_eq!((status.running, status.unacknowledged), (0, 0));
    assert_eq!(client.run_get(second.run_id).await.unwrap().state, RunState::Queued);
}

async fn registered(raw: &mut Raw, id: u32, session: u64) {
    raw.request(id, method::EXECUTOR_REGISTER, &register(session, &["default"])).await;
    let (answered, answer) = raw.answer().await;
    assert_eq!(answered, id);
    assert_eq!(from_map::<Registered>(&answer.unwrap()).unwrap().epochs.len(), 16);
    raw.request(id + 1, method::EXECUTOR_ANNOUNCE, &Announce { held: Vec::new(), more: false }).await;
    assert!(raw.answer().await.1.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_serves_its_own_pools_only() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    raw.request(1, method::EXECUTOR_HEARTBEAT, &Heartbeat { running: 0 }).await;
    assert_eq!(raw.answer().await.1.unwrap_err().known(), ErrorCode::IllegalState, "register comes first");
    raw.request(2, method::EXECUTOR_REGISTER, &register(1, &["blue", "red"])).await;
    let error = raw.answer().await.1.unwrap_err();
    assert_eq!(error.known(), ErrorCode::Forbidden);
    assert!(error.message.contains("'red'"), "{}", error.message);
    registered(&mut raw, 3, 1).await;
    let mut tenant = node.raw().await;
    let refused = tenant.hello(rpc_support::TENANT, ConnectionRole::Executor).await;
    assert_eq!(refused.unwrap_err().known(), ErrorCode::Forbidden);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_moves_to_its_newest_connection() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut old = node.raw().await;
    old.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    registered(&mut old, 1, 9).await;
    let mut new = node.raw().await;
    new.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    registered(&mut new, 1, 9).await;
    assert_eq!(old.farewell().await.known(), ErrorCode::NotReady);
    // The end of the old connection did not end the session.
    let executors = client.executor_list().await.unwrap().items;
    assert_eq!(executors.iter().map(|e| e.state).collect::<Vec<_>>(), [ExecutorState::Ready]);
    let id = job(&client, "any", |_| {}).await;
    trigger(&client, id).await;
    new.notify(method::EXECUTOR_CREDIT, &Credit { stamp_ms: 1, slots: 1, ..Credit::default() }).await;
    loop {
        match new.hear().await {
            RawMessage::Notification(name, _) if name == method::HINT => {}
            RawMessage::Notification(name, _) => break assert_eq!(name, method::ASSIGN),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_is_told_when_runs_wait_for_its_credit_and_when_none_does_any_more() {
    async fn hint(raw: &mut Raw) -> bool {
        loop {
            match raw.hear().await {
                RawMessage::Notification(name, params) if name == method::HINT => {
                    return from_map::<Hint>(&params).unwrap().waiting;
                }
                RawMessage::Notification(name, _) if name == method::ASSIGN => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut raw = node.raw().await;
    raw.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    raw.request(1, method::EXECUTOR_REGISTER, &register(9, &["default"])).await;
    assert!(matches!(raw.hear().await, RawMessage::Answer(1, Ok(_))), "first of all");
    assert!(!hint(&mut raw).await, "nothing waits");
    let mut other = node.raw().await;
    other.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    other.request(1, method::EXECUTOR_REGISTER, &register(10, &["blue"])).await;
    assert!(matches!(other.hear().await, RawMessage::Answer(1, Ok(_))));
    assert!(!hint(&mut other).await);

    let id = job(&client, "any", |_| {}).await;
    for _ in 0..3 {
        trigger(&client, id).await;
    }
    assert!(hint(&mut raw).await);
    let credit = |slots| Credit { stamp_ms: 1, slots, ..Credit::default() };
    raw.notify(method::EXECUTOR_CREDIT, &credit(2)).await;
    // One still waits: nothing is told, whatever ticks pass, until there is credit for it too.
    let more = within(async {
        loop {
            let pools = client.pool_list().await.unwrap().items;
            if pools.iter().any(|pool| pool.name == "default" && pool.waiting == 1 && pool.running == 2) {
                return credit(1);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    raw.notify(method::EXECUTOR_CREDIT, &more.await).await;
    assert!(!hint(&mut raw).await);

    // Of another pool: it has heard nothing of all that.
    other.request(2, method::EXECUTOR_HEARTBEAT, &Heartbeat { running: 0 }).await;
    assert!(matches!(other.hear().await, RawMessage::Answer(2, Ok(_))));
    let blue = job(&client, "blue", |spec| spec.executor_selector = "blue".into()).await;
    trigger(&client, blue).await;
    assert!(hint(&mut other).await);
    other.notify(method::EXECUTOR_CREDIT, &credit(4)).await;
    assert!(!hint(&mut other).await);
}

/// An executor that has said hello and registered.
pub(crate) async fn executor(node: &Node, token: &str, session: u64) -> Raw {
    let mut raw = node.raw().await;
    raw.hello(token, ConnectionRole::Executor).await.unwrap();
    registered(&mut raw, 1, session).await;
    raw
}

fn success(of: &Assignment, token: Token) -> Ended {
    Ended {
        run: of.run,
        job: of.job,
        token,
        state: AttemptState::Success,
        error_code: None,
        error_message: None,
        result: Some(Payload("\"forged\"".to_owned())),
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    }
}

async fn finish(raw: &mut Raw, id: u32, items: Vec<Ended>) -> Vec<FinishOutcome> {
    raw.request(id, method::EXECUTOR_FINISH, &Finish { items, credit: None }).await;
    let answer = raw.answer().await.1.unwrap();
    from_map::<Finished>(&answer).unwrap().outcomes
}

/// One run under way on `raw`.
pub async fn assigned(client: &Client, raw: &mut Raw) -> Assignment {
    let id = job(client, "held", |_| {}).await;
    trigger(client, id).await;
    raw.notify(method::EXECUTOR_CREDIT, &Credit { stamp_ms: 1, slots: 1, ..Credit::default() }).await;
    loop {
        match raw.hear().await {
            RawMessage::Notification(name, _) if name == method::HINT => {}
            RawMessage::Notification(name, params) if name == method::ASSIGN => {
                return from_map::<Assign>(&params).unwrap().items.remove(0);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_executor_says_of_another_credentials_attempt_has_no_effect() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut own = executor(&node, EXECUTOR, 1).await;
    let a = assigned(&client, &mut own).await;
    let held = Held { run: a.run, job: a.job, token: a.token };
    let chunk = |data: &str| LogChunk { run: a.run, token: a.token, attempt: 1, data: data.as_bytes().to_vec() };

    let mut foreign = executor(&node, FOREIGN, 2).await;
    foreign.request(10, method::EXECUTOR_LOG, &chunk("forged\n")).await;
    assert_eq!(foreign.answer().await.1.unwrap_err().known(), ErrorCode::IllegalState);
    assert_eq!(finish(&mut foreign, 11, vec![success(&a, a.token)]).await, [FinishOutcome::Stale]);
    foreign.request(12, method::EXECUTOR_ANNOUNCE, &Announce { held: vec![held], more: false }).await;
    assert_eq!(from_map::<Announced>(&foreign.answer().await.1.unwrap()).unwrap().stop, [held]);
    // Under the other one's session number: refused, and the session stays where it is.
    foreign.request(13, method::EXECUTOR_REGISTER, &register(1, &["default"])).await;
    assert_eq!(foreign.answer().await.1.unwrap_err().known(), ErrorCode::Forbidden);

    own.request(20, method::EXECUTOR_LOG, &chunk("own\n")).await;
    own.answer().await.1.unwrap();
    // Another token of the same name is the same credential.
    let mut rotated = executor(&node, ROTATED, 1).await;
    assert_eq!(own.farewell().await.known(), ErrorCode::NotReady, "its session is on another connection now");
    assert_eq!(finish(&mut rotated, 21, vec![success(&a, a.token)]).await, [FinishOutcome::Durable]);
    let run = client.run_get(a.run).await.unwrap();
    assert_eq!((run.state, run.attempts.len()), (RunState::Success, 1));
    let log = client.run_log(a.run, Default::default()).await.unwrap();
    assert_eq!(log.text, "own\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_guesses_fences_is_closed_and_one_that_repeats_itself_is_not() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut own = executor(&node, EXECUTOR, 1).await;
    let a = assigned(&client, &mut own).await;
    let mut foreign = executor(&node, FOREIGN, 2).await;
    // Twice its four slots are free.
    let allowed = EXECUTOR_FOREIGN_CLAIMS as u64 + 8;
    let guesses = |range: std::ops::Range<u64>| range.map(|n| success(&a, Token(n))).collect::<Vec<_>>();
    for id in 10..13 {
        let outcomes = finish(&mut foreign, id, guesses(0..allowed)).await;
        assert!(outcomes.iter().all(|outcome| *outcome == FinishOutcome::Stale), "{outcomes:?}");
    }
    foreign.request(14, method::EXECUTOR_FINISH, &Finish { items: guesses(allowed..allowed + 1), credit: None }).await;
    assert_eq!(foreign.farewell().await.known(), ErrorCode::Forbidden);
    assert_eq!(client.run_get(a.run).await.unwrap().state, RunState::Running);
    assert_eq!(finish(&mut own, 20, vec![success(&a, a.token)]).await, [FinishOutcome::Durable]);
}

/// A paused machine, a laptop that slept, a process that was stopped: the node's own silence is not its executors'.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stood_still_does_not_take_living_executors_for_lost() {
    let clock = Arc::new(Ahead::default());
    let node = Node::on(MemoryStore::open(16, ClusterId(77)), clock.clone(), 0).await;
    let client = node.client(OPERATOR).await;
    let gate = Arc::new(Semaphore::new(0));
    let through = gate.clone();
    let executor = node.executor().pool("default").slots(1).any_handler(move |_: Context, _: Payload| {
        let gate = through.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<_, JobError>(None)
        }
    });
    let executor = executor.build().unwrap().start();
    let job = job(&client, "long", |_| {}).await;
    let run = trigger(&client, job).await;
    until(&client, &run, |run| run.state == RunState::Running).await;
    for _ in 0..5 {
        // More than a lease, at once.
        clock.0.fetch_add(30_000_000, Ordering::Relaxed);
        let since_ms = node.scheduler.now_ms().unwrap();
        within(async {
            loop {
                let executors = node.scheduler.executors().await.unwrap();
                if executors.iter().any(|executor| executor.last_heartbeat_at.ms() >= since_ms) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let seen = client.run_get(run.run_id).await.unwrap();
        assert_eq!((seen.state, seen.attempts.len()), (RunState::Running, 1), "{seen:?}");
    }
    gate.add_permits(2);
    let ended = until(&client, &run, |run| run.state.is_final()).await;
    assert_eq!((ended.state, ended.attempts.len()), (RunState::Success, 1), "{ended:?}");
    executor.drain(Duration::from_secs(2)).await;
}
