//! Levels of degradation on a real node: what each does without, that it is shown, and that schedules fire at all of them.

use crate::support::{self, TestNode, eventually};
use campanile_client::{Client, Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    event::Outcome,
    ids::{JobId, RunId},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    time::Timestamp,
    view::{DegradationLevel, LedgerBody, TriggerBody, backfill::BackfillBody},
    wait::WaitCode,
};
use std::time::Duration;

fn executor(node: &TestNode) -> ExecutorHandle {
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(4)
        .any_handler(|_: Context, _: Payload| async { Ok::<_, JobError>(None) })
        .build()
        .unwrap()
        .start()
}

async fn created(client: &Client, name: &str, priority: u16, trigger: Trigger) -> JobId {
    let spec =
        JobSpec { concurrency_policy: ConcurrencyPolicy::Allow, priority, ..JobSpec::new("default", name, trigger) };
    client.job_create(spec).await.unwrap().job_id
}

async fn at(node: &TestNode, client: &Client, level: DegradationLevel) {
    node.scheduler().degrade(Some(level)).unwrap();
    eventually(level.as_str(), || async { (client.system_info().await.unwrap().degradation == level).then_some(()) })
        .await;
}

async fn waits(client: &Client, run: RunId, what: &str) {
    eventually(what, || async {
        let view = client.run_explain(run).await.unwrap();
        let reason = view.reasons.into_iter().find(|reason| reason.code == WaitCode::NodeDegraded.as_str())?;
        assert!(reason.freed_by.is_some(), "{reason:?}");
        Some(())
    })
    .await;
}

async fn ended(client: &Client, run: RunId) {
    eventually("it has run", || async {
        (client.run_get(run).await.unwrap().state == RunState::Success).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_level_does_without_what_its_name_says_and_no_instant_is_skipped() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = executor(&node);
    let timed = created(&client, "timed", 100, Trigger::fixed_rate(1)).await;
    let low = created(&client, "low", 99, Trigger::Manual {}).await;
    let usual = created(&client, "usual", 100, Trigger::Manual {}).await;
    let by_hand = async |job: JobId| client.job_trigger(job, TriggerBody::default()).await;

    at(&node, &client, DegradationLevel::LowPriorityWaits).await;
    let held = by_hand(low).await.unwrap().run_id;
    ended(&client, by_hand(usual).await.unwrap().run_id).await;
    waits(&client, held, "a low priority waits for the node").await;
    at(&node, &client, DegradationLevel::BackfillsStop).await;
    ended(&client, held).await;

    // The past before the job existed counts as missing.
    let past = created(&client, "past", 100, Trigger::cron("*/5 * * * *")).await;
    let now = client.system_info().await.unwrap().now.ms();
    let body =
        BackfillBody { from: Timestamp(now - 3_600_000), to: Timestamp(now - 1_800_000), ..BackfillBody::default() };
    let backfill = client.job_backfill(past, body).await.unwrap().backfill_id.unwrap();
    let run = eventually("a run of the backfill", || async {
        let runs = client.job_runs(past, Default::default()).await.unwrap().items;
        runs.into_iter().find(|run| run.backfill_id == Some(backfill)).map(|run| run.run_id)
    })
    .await;
    waits(&client, run, "a backfill waits for the node").await;
    at(&node, &client, DegradationLevel::Normal).await;
    ended(&client, run).await;

    at(&node, &client, DegradationLevel::TriggersRefused).await;
    let refused = by_hand(usual).await.unwrap_err();
    assert_eq!(refused.api().map(|error| error.known()), Some(ErrorCode::Overloaded));
    let since = client.system_info().await.unwrap().now;
    let entries = eventually("schedules fire all the same", || async {
        let body = LedgerBody { from: Some(since), ..LedgerBody::default() };
        let entries = client.job_ledger(timed, body).await.unwrap().items;
        (entries.len() >= 2).then_some(entries)
    })
    .await;
    assert!(entries.iter().all(|entry| matches!(entry.outcome, Outcome::Fired | Outcome::FiredLate)), "{entries:?}");
    node.scheduler().degrade(None).unwrap();
    eventually("the backlog is small", || async {
        (client.system_info().await.unwrap().degradation == DegradationLevel::Normal).then_some(())
    })
    .await;
    ended(&client, by_hand(usual).await.unwrap().run_id).await;
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}
