//! Why is it not running? Each reason to wait is reached on a real node, its explanation says who holds the run and what frees it; then the
//! fact is taken away, and the reason goes.

use crate::support::{self, TestNode, eventually, now_ms, wait_until};
use campanile_client::{Client, Context, Executor, ExecutorBuilder, ExecutorHandle, JobError};
use campanile_schema::{
    ids::{JobId, RunId},
    job::{Action, ConcurrencyPolicy, JobSpec, Trigger},
    limits::STOP_GRACE_MAX_SEC,
    payload::Payload,
    reason::ReasonCode,
    record::RunState,
    time::Timestamp,
    view::{
        ConfirmBody, ConfirmDecision, LedgerBody, RunView, TenantBody, TriggerBody,
        explain::{ExplainView, HolderKind, ReasonTopic, ReasonView},
    },
    wait::WaitCode,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;

fn builder(node: &TestNode, id: &str) -> ExecutorBuilder {
    builder_of(node, id, "default")
}

fn builder_of(node: &TestNode, id: &str, pool: &str) -> ExecutorBuilder {
    Executor::builder(node.rpc(), support::TOKEN).id(id).pool(pool)
}

fn gated(node: &TestNode, slots: u32) -> (ExecutorHandle, Arc<Semaphore>) {
    gated_by(builder(node, "gated"), slots)
}

/// An executor whose bodies end when there is a permit for each. They do not heed that they are told to stop.
fn gated_by(builder: ExecutorBuilder, slots: u32) -> (ExecutorHandle, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let waits = gate.clone();
    let executor = builder
        .slots(slots)
        .grace(Duration::from_secs(STOP_GRACE_MAX_SEC))
        .any_handler(move |_: Context, _: Payload| {
            let gate = waits.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, JobError>(None)
            }
        })
        .build()
        .unwrap()
        .start();
    (executor, gate)
}

fn manual(name: &str) -> JobSpec {
    JobSpec { concurrency_policy: ConcurrencyPolicy::Allow, ..JobSpec::new("default", name, Trigger::Manual {}) }
}

async fn created(client: &Client, spec: JobSpec) -> JobId {
    client.job_create(spec).await.unwrap().job_id
}

async fn triggered(client: &Client, job: JobId) -> RunId {
    client.job_trigger(job, TriggerBody::default()).await.unwrap().run_id
}

fn of_topic(view: &ExplainView, topic: ReasonTopic) -> Vec<&str> {
    view.reasons.iter().filter(|reason| reason.topic == topic).map(|reason| reason.code.as_str()).collect()
}

/// The reason to wait, once the run has it.
async fn waits(client: &Client, run: RunId, code: WaitCode) -> ReasonView {
    eventually(code.as_str(), || async {
        let view = client.run_explain(run).await.unwrap();
        let reason = view.reasons.into_iter().find(|reason| reason.code == code.as_str())?;
        assert_eq!(reason.topic, ReasonTopic::Wait);
        assert!(!reason.sentence.is_empty());
        assert!(reason.freed_by.is_some(), "{reason:?}");
        Some(reason)
    })
    .await
}

/// The fact was taken away: the reason is not told any more.
async fn is_free_of(client: &Client, run: RunId, code: WaitCode) -> ExplainView {
    eventually(&format!("no {}", code.as_str()), || async {
        let view = client.run_explain(run).await.unwrap();
        (!of_topic(&view, ReasonTopic::Wait).contains(&code.as_str())).then_some(view)
    })
    .await
}

async fn in_state(client: &Client, run: RunId, state: RunState) -> RunView {
    eventually(state.as_str(), || async {
        let view = client.run_get(run).await.unwrap();
        (view.state == state).then_some(view)
    })
    .await
}

fn holder_ids(reason: &ReasonView) -> Vec<&str> {
    reason.held_by.iter().filter_map(|holder| holder.id.as_deref()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_are_explained_with_who_paused_and_why() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let job = created(&client, manual("report")).await;
    let run = triggered(&client, job).await;
    let reason = waits(&client, run, WaitCode::NoExecutor).await;
    assert_eq!((reason.held_by[0].kind, reason.held_by[0].name.as_deref()), (HolderKind::Pool, Some("default")));

    client.job_pause(job, Some("too loud")).await.unwrap();
    let reason = waits(&client, run, WaitCode::JobPaused).await;
    let by = &reason.held_by[0];
    assert_eq!(
        (by.kind, by.name.as_deref(), by.reason.as_deref()),
        (HolderKind::Caller, Some("test"), Some("too loud"))
    );
    assert!(by.since.is_some());
    assert_eq!(reason.freed_by.as_deref(), Some("campanile job resume report"));
    client.job_resume(job, None).await.unwrap();
    is_free_of(&client, run, WaitCode::JobPaused).await;

    client.tenant_pause("default", Some("month end")).await.unwrap();
    let reason = waits(&client, run, WaitCode::TenantPaused).await;
    assert!(reason.sentence.contains("the tenant 'default'"), "{}", reason.sentence);
    assert_eq!(reason.held_by[0].reason.as_deref(), Some("month end"));
    client.tenant_resume("default", None).await.unwrap();
    is_free_of(&client, run, WaitCode::TenantPaused).await;

    client.system_pause(Some("for operators only")).await.unwrap();
    let reason = waits(&client, run, WaitCode::TenantPaused).await;
    assert!(reason.sentence.contains("the whole system"), "{}", reason.sentence);
    assert!(reason.held_by.is_empty(), "it is about no tenant: {reason:?}");
    client.system_resume(None).await.unwrap();
    let free = is_free_of(&client, run, WaitCode::TenantPaused).await;
    assert_eq!(of_topic(&free, ReasonTopic::Origin), ["TRIGGERED"]);
    assert_eq!(free.reasons[0].held_by[0].name.as_deref(), Some("test"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executors_that_are_missing_unfit_or_busy_are_told_apart() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let job = created(&client, manual("report")).await;
    let first = triggered(&client, job).await;
    waits(&client, first, WaitCode::NoExecutor).await;

    let other = builder(&node, "other")
        .handler("other", |_: Context, (): ()| async { Ok::<_, JobError>(()) })
        .build()
        .unwrap()
        .start();
    let reason = waits(&client, first, WaitCode::NoFit).await;
    assert!(reason.freed_by.unwrap().contains("has the handler 'report'"));

    let (executor, gate) = gated(&node, 1);
    in_state(&client, first, RunState::Running).await;
    is_free_of(&client, first, WaitCode::NoFit).await;
    // A run of another pool has none of its slots.
    let (elsewhere, other_gate) = gated_by(builder_of(&node, "elsewhere", "gpu"), 1);
    let gpu = JobSpec { executor_selector: "gpu".to_owned(), ..manual("render") };
    let third = triggered(&client, created(&client, gpu).await).await;
    in_state(&client, third, RunState::Running).await;
    let second = triggered(&client, job).await;
    let reason = waits(&client, second, WaitCode::NoCredit).await;
    assert_eq!(holder_ids(&reason), [first.to_string()]);
    assert_eq!(reason.held_by[0].state.as_deref(), Some("RUNNING"));

    other_gate.add_permits(1);
    gate.add_permits(2);
    in_state(&client, second, RunState::Success).await;
    let ended = is_free_of(&client, second, WaitCode::NoCredit).await;
    assert_eq!(of_topic(&ended, ReasonTopic::End), ["ENDED"]);
    for executor in [executor, other, elsewhere] {
        executor.drain(Duration::from_secs(5)).await;
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_the_tenant_are_explained_with_the_runs_that_use_them() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let quota = |concurrent, rate| TenantBody {
        max_concurrent_runs: concurrent,
        max_triggers_per_sec: rate,
        ..TenantBody::default()
    };
    client.tenant_set("default", quota(1, 0.0)).await.unwrap();
    let (executor, gate) = gated(&node, 8);
    let job = created(&client, manual("report")).await;
    let first = triggered(&client, job).await;
    in_state(&client, first, RunState::Running).await;
    let second = triggered(&client, job).await;
    let reason = waits(&client, second, WaitCode::TenantConcurrency).await;
    assert_eq!(holder_ids(&reason), [first.to_string()]);
    client.tenant_set("default", quota(2, 0.0)).await.unwrap();
    in_state(&client, second, RunState::Running).await;
    is_free_of(&client, second, WaitCode::TenantConcurrency).await;

    // One start in a thousand seconds: after the burst the next one waits.
    client.tenant_set("default", quota(0, 0.001)).await.unwrap();
    let waiting = eventually("one over the rate", || async {
        let run = triggered(&client, job).await;
        let view = client.run_explain(run).await.unwrap();
        of_topic(&view, ReasonTopic::Wait).contains(&"TENANT_RATE").then_some(run)
    })
    .await;
    let reason = waits(&client, waiting, WaitCode::TenantRate).await;
    assert_eq!((reason.held_by[0].kind, reason.held_by[0].name.as_deref()), (HolderKind::Tenant, Some("default")));
    client.tenant_set("default", quota(0, 0.0)).await.unwrap();
    is_free_of(&client, waiting, WaitCode::TenantRate).await;
    gate.add_permits(1_000);
    in_state(&client, waiting, RunState::Success).await;
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_the_policy_holds_names_the_run_before_it() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let (executor, gate) = gated(&node, 8);
    let queue = JobSpec { concurrency_policy: ConcurrencyPolicy::QueueOne, ..manual("queue") };
    let job = created(&client, queue).await;
    let first = triggered(&client, job).await;
    in_state(&client, first, RunState::Running).await;
    let second = triggered(&client, job).await;
    let reason = waits(&client, second, WaitCode::HeldByConcurrencyPolicy).await;
    assert_eq!(holder_ids(&reason), [first.to_string()]);
    let now = client.job_explain(job, None).await.unwrap();
    let codes = of_topic(&now, ReasonTopic::Wait);
    assert_eq!(codes, ["HELD_BY_CONCURRENCY_POLICY"], "of the oldest run that waits: {now:?}");
    gate.add_permits(1);
    in_state(&client, second, RunState::Running).await;
    is_free_of(&client, second, WaitCode::HeldByConcurrencyPolicy).await;

    // Told to stop, and it does not end.
    client.run_cancel(second, None).await.unwrap();
    let reason = waits(&client, second, WaitCode::Stopping).await;
    assert_eq!((reason.held_by[0].kind, reason.held_by[0].name.as_deref()), (HolderKind::Executor, Some("gated")));
    client.run_confirm(second, ConfirmBody { decision: ConfirmDecision::Ended, reason: None }).await.unwrap();
    is_free_of(&client, second, WaitCode::Stopping).await;
    gate.add_permits(9);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_explained_by_the_error_before_it() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = builder(&node, "failing")
        .any_handler(|_: Context, _: Payload| async { Err::<Option<Payload>, _>(JobError::message("no space left")) })
        .build()
        .unwrap()
        .start();
    let mut spec = manual("report");
    spec.retry_policy.base_delay_sec = 3_000.0;
    let run = triggered(&client, created(&client, spec).await).await;
    let reason = waits(&client, run, WaitCode::WaitingForRetry).await;
    assert!(reason.sentence.starts_with("attempt 1 of 3 failed (no space left)"), "{}", reason.sentence);
    client.run_cancel(run, Some("not needed")).await.unwrap();
    let ended = is_free_of(&client, run, WaitCode::WaitingForRetry).await;
    assert_eq!((ended.run_state, of_topic(&ended, ReasonTopic::End)), (Some(RunState::Canceled), vec!["ENDED"]));
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

/// The executor is on a runtime of its own, so that it can be gone without a word.
#[test]
fn a_silent_executor_and_what_a_person_must_decide_are_explained() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let node = runtime.block_on(TestNode::start());
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let building = builder(&node, "doomed").any_handler(|_: Context, _: Payload| async {
        std::future::pending::<()>().await;
        Ok::<_, JobError>(None)
    });
    let executor = doomed.block_on(async { building.build().unwrap().start() });
    runtime.block_on(async {
        let client = node.client().await;
        let job = created(&client, JobSpec { idempotent: false, ..manual("careful") }).await;
        let run = triggered(&client, job).await;
        in_state(&client, run, RunState::Running).await;
        doomed.shutdown_background();
        let reason = waits(&client, run, WaitCode::SuspectedLost).await;
        assert_eq!(reason.held_by[0].name.as_deref(), Some("doomed"));
        // Its lease ends: the fact that it may come back is gone, and a person is asked.
        let reason = waits(&client, run, WaitCode::NeedsConfirmation).await;
        assert!(reason.freed_by.unwrap().contains(&format!("campanile run confirm {run}")));
        is_free_of(&client, run, WaitCode::SuspectedLost).await;
        client.run_confirm(run, ConfirmBody { decision: ConfirmDecision::Failed, reason: None }).await.unwrap();
        is_free_of(&client, run, WaitCode::NeedsConfirmation).await;
        node.stop().await;
    });
    drop(executor);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_in_quarantine_says_so_and_its_runs_too() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let mut spec = JobSpec {
        concurrency_policy: ConcurrencyPolicy::Allow,
        ..JobSpec::new("default", "poisoned", Trigger::fixed_rate(1))
    };
    let job = created(&client, spec.clone()).await;
    let run = triggered(&client, job).await;
    spec.labels.insert("campanile.fault".to_owned(), "panic".to_owned());
    let version = client.job_get(job).await.unwrap().version;
    client.job_replace(job, version, spec.clone()).await.unwrap();
    let reason = waits(&client, run, WaitCode::JobQuarantined).await;
    assert!(reason.freed_by.unwrap().starts_with("campanile job resume poisoned"));
    let view = client.job_explain(job, None).await.unwrap();
    assert!(of_topic(&view, ReasonTopic::Schedule).contains(&"JOB_QUARANTINED"), "{view:?}");

    spec.labels.clear();
    let version = client.job_get(job).await.unwrap().version;
    client.job_replace(job, version, spec).await.unwrap();
    client.job_resume(job, None).await.unwrap();
    is_free_of(&client, run, WaitCode::JobQuarantined).await;
    let view = client.job_explain(job, None).await.unwrap();
    assert!(!of_topic(&view, ReasonTopic::Schedule).contains(&"JOB_QUARANTINED"), "{view:?}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_dag_names_the_nodes_that_it_waits_for() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let (executor, gate) = gated(&node, 8);
    for name in ["load", "report"] {
        created(&client, manual(name)).await;
    }
    let graph = serde_json::json!({
        "nodes": [{"id": "A", "job": "load"}, {"id": "B", "job": "report"}], "edges": [{"from": "A", "to": "B"}],
    });
    let action = Some(Action::Dag(serde_json::from_value(graph).unwrap()));
    let run = triggered(&client, created(&client, JobSpec { action, ..manual("dag") }).await).await;
    let open = ReasonCode::DagNodesOpen.as_str();
    let reason = eventually("the first node runs", || async {
        let view = client.run_explain(run).await.unwrap();
        let reason = view.reasons.into_iter().find(|reason| reason.code == open)?;
        reason.held_by.iter().any(|holder| holder.state.as_deref() == Some("ACTIVE")).then_some(reason)
    })
    .await;
    assert_eq!(reason.sentence, "2 of its 2 nodes have not ended");
    assert_eq!(reason.held_by[0].name.as_deref(), Some("A"));
    let child = RunId(holder_ids(&reason)[0].parse().unwrap());
    let of_child = client.run_explain(child).await.unwrap();
    assert_eq!(of_topic(&of_child, ReasonTopic::Origin), ["DAG_NODE"]);
    assert_eq!(holder_ids(&of_child.reasons[0]), [run.to_string()]);
    gate.add_permits(2);
    in_state(&client, run, RunState::Success).await;
    let ended = client.run_explain(run).await.unwrap();
    assert_eq!(of_topic(&ended, ReasonTopic::Wait), [""; 0]);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_says_when_it_fires_and_what_keeps_it_from_firing() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let (executor, gate) = gated(&node, 8);
    let codes = async |job: JobId| {
        let view = client.job_explain(job, None).await.unwrap();
        of_topic(&view, ReasonTopic::Schedule).into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(codes(created(&client, manual("manual")).await).await, ["NO_SCHEDULE"]);
    let yearly = created(&client, JobSpec::new("default", "yearly", Trigger::cron("0 0 1 1 *"))).await;
    assert_eq!(codes(yearly).await, ["NEXT_FIRE"]);
    client.job_pause(yearly, None).await.unwrap();
    assert_eq!(codes(yearly).await, ["JOB_PAUSED"]);
    client.job_resume(yearly, None).await.unwrap();
    let run = triggered(&client, yearly).await;
    in_state(&client, run, RunState::Running).await;
    assert_eq!(codes(yearly).await, ["NEXT_FIRE", "RUN_OPEN"], "FORBID skips what comes meanwhile");

    let once = Trigger::once_after_ms(1000);
    let once = created(&client, JobSpec::new("default", "once", once)).await;
    eventually("it has fired", || async { (codes(once).await == ["NO_MORE_INSTANTS"]).then_some(()) }).await;
    let delayed = created(&client, JobSpec::new("default", "delayed", Trigger::fixed_delay(1))).await;
    eventually("its run is open", || async { (codes(delayed).await == ["AFTER_OPEN_RUN"]).then_some(()) }).await;
    client.job_delete(delayed, None).await.unwrap();
    gate.add_permits(100);
    in_state(&client, run, RunState::Success).await;
    assert_eq!(codes(yearly).await, ["NEXT_FIRE"]);
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instant_is_explained_by_what_the_ledger_has() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let spec = JobSpec {
        concurrency_policy: ConcurrencyPolicy::Allow,
        ..JobSpec::new("default", "often", Trigger::fixed_rate(1))
    };
    let before = Timestamp(now_ms() - 86_400_000);
    let job = created(&client, spec).await;
    let entry = async |what: &str, wanted: &str| {
        eventually(what, || async {
            let ledger = client.job_ledger(job, LedgerBody::default()).await.unwrap();
            ledger.items.into_iter().find(|entry| entry.outcome.as_str() == wanted)
        })
        .await
    };
    let at = async |at: Timestamp| client.job_explain(job, Some(at)).await.unwrap().reasons.remove(0);
    let fired = entry("one fired", "FIRED").await;
    let reason = at(fired.logical_time).await;
    assert_eq!((reason.topic, reason.code.as_str()), (ReasonTopic::Instant, "INSTANT_FIRED"));
    assert_eq!(holder_ids(&reason), [fired.run_id.unwrap().to_string()]);
    assert_eq!(at(fired.logical_time.plus_ms(-1)).await.code, "NOT_AN_INSTANT");
    assert_eq!(at(before).await.code, "BEFORE_THE_JOB");
    assert_eq!(at(fired.logical_time.plus_ms(3_600_000)).await.code, "INSTANT_TO_COME");

    client.job_pause(job, None).await.unwrap();
    let newest = client.job_ledger(job, LedgerBody::default()).await.unwrap().items.pop().unwrap();
    wait_until(newest.logical_time.plus_ms(1_001).ms()).await;
    client.job_resume(job, None).await.unwrap();
    let skipped = entry("one skipped", "SKIPPED").await;
    let reason = at(skipped.logical_time).await;
    assert_eq!(reason.code, "INSTANT_SKIPPED");
    assert!(reason.sentence.ends_with("the job was paused"), "{}", reason.sentence);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_run_says_what_made_it_late() {
    let node = TestNode::start().await;
    let spec = JobSpec {
        concurrency_policy: ConcurrencyPolicy::Allow,
        ..JobSpec::new("default", "often", Trigger::fixed_rate(1))
    };
    let job = node.scheduler().create_job(spec, None).await.unwrap().job_id;
    let (node, away) = node.away(Duration::from_secs(3)).await;
    let client = node.client().await;
    let late = eventually("a late run", || async {
        let runs = client.job_runs(job, Default::default()).await.unwrap().items;
        let is_late = |run: &&RunView| {
            run.logical_time.is_some_and(|due| away.contains(&due.ms()) && run.created_at.ms() - due.ms() > 1_000)
        };
        runs.iter().find(is_late).map(|run| run.run_id)
    })
    .await;
    let view = client.run_explain(late).await.unwrap();
    assert_eq!(
        (of_topic(&view, ReasonTopic::Origin), of_topic(&view, ReasonTopic::Late)),
        (vec!["SCHEDULE_DUE"], vec!["DECIDED_LATE"])
    );
    let next = eventually("one in time", || async {
        let runs = client.job_runs(job, Default::default()).await.unwrap().items;
        let in_time = |run: &&RunView| {
            run.created_at.ms() - run.logical_time.unwrap().ms() < 1_000 && run.created_at.ms() > away.end
        };
        runs.iter().find(in_time).map(|run| run.run_id)
    })
    .await;
    let view = client.run_explain(next).await.unwrap();
    assert_eq!(of_topic(&view, ReasonTopic::Late), [""; 0]);
    client.job_delete(job, Some("done")).await.unwrap();
    assert!(client.run_explain(next).await.unwrap().job_name.is_none(), "its job is gone");
    node.stop().await;
}
