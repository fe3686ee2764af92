//! A job whose actor panics whenever its time has come.
use super::support::{
    self, TestNode, eventually,
    ledger::{Line, fired, ledger},
    now_ms,
};
use campanile_client::{Client, Context, Executor, JobError};
use campanile_schema::{
    error::ErrorCode,
    event::SkipReason,
    ids::{shard_of_slot, slot_of},
    job::{ConcurrencyPolicy, JobSpec, JobStatus, JobView},
    payload::Payload,
    record::RunState,
    view::TriggerBody,
};

const LABEL: &str = "campanile.fault";
/// As in the node's options.
const SHARDS: u16 = 16;

fn every_second(name: &str) -> JobSpec {
    JobSpec::new("default", name, serde_json::from_str(r#"{"type":"FIXED_RATE","everySec":1}"#).unwrap())
}

async fn put_aside(client: &Client, job: campanile_schema::ids::JobId) -> JobView {
    eventually("the quarantine", || async {
        let view = client.job_get(job).await.unwrap();
        view.quarantine_reason.is_some().then_some(view)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poisoned_job_is_put_aside_and_its_neighbours_go_on() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(4)
        .any_handler(|_: Context, _: Payload| async { Ok::<_, JobError>(None) })
        .build()
        .unwrap()
        .start();
    let shard = |name: &str| shard_of_slot(slot_of("default", name), SHARDS);
    let name = (0..).map(|n| format!("neighbour-{n}")).find(|name| shard(name) == shard("poisoned")).unwrap();
    let neighbour = client.job_create(every_second(&name)).await.unwrap().job_id;
    let mut poisoned = every_second("poisoned");
    poisoned.labels.insert(LABEL.to_owned(), "panic".to_owned());
    let poisoned = client.job_create(poisoned).await.unwrap().job_id;

    let view = put_aside(&client, poisoned).await;
    let reason = view.quarantine_reason.unwrap();
    assert!(reason.contains("3 times in a row"), "{reason}");
    assert!(reason.contains("poisoned job"), "{reason}");
    assert_eq!((view.status, view.next_fire_at, view.run_count), (JobStatus::Enabled, None, 0));
    let refused = client.job_trigger(poisoned, TriggerBody::default()).await.unwrap_err();
    assert_eq!(refused.api().unwrap().known(), ErrorCode::JobPaused);
    assert!(refused.to_string().contains(&reason), "{refused}");
    assert!(refused.to_string().contains("resume"), "{refused}");
    let aside_ms = now_ms();
    eventually("the neighbour runs on", || async {
        let runs = support::ledger::runs(&client, neighbour).await;
        let later = |run: &&campanile_schema::view::RunView| run.logical_time.unwrap().ms() > aside_ms;
        (runs.iter().filter(later).filter(|run| run.state == RunState::Success).count() >= 2).then_some(())
    })
    .await;

    // It is a fact about the job: a restart keeps it, resuming alone ends it only until the next panic.
    let node = node.restart().await;
    assert_eq!(client.job_get(poisoned).await.unwrap().quarantine_reason.as_ref(), Some(&reason));
    // The next instant may come between the change and the answer, which is read after it.
    let resumed = eventually("an answer from before the next panic", || async {
        let view = client.job_resume(poisoned, None).await.unwrap();
        view.quarantine_reason.is_none().then_some(view)
    })
    .await;
    assert!(resumed.next_fire_at.is_some());
    put_aside(&client, poisoned).await;

    // Repaired and resumed it fires; what it missed is in the ledger by name.
    let view = client.job_get(poisoned).await.unwrap();
    let mut spec = view.spec;
    spec.labels.clear();
    // A run that takes longer than a second on a busy machine is no reason to skip an instant here.
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    let view = client.job_replace(poisoned, view.version, spec).await.unwrap();
    assert!(view.quarantine_reason.is_some(), "an edit alone does not end it");
    assert_eq!(client.job_resume(poisoned, None).await.unwrap().quarantine_reason, None);
    let lines = eventually("its first fires", || async {
        let lines = ledger(&client, poisoned, Some(1_000)).await;
        (fired(&lines).len() >= 2).then_some(lines)
    })
    .await;
    let first = lines.iter().position(Line::fired).unwrap();
    assert!(first >= 2, "{lines:?}");
    assert!(lines[..first].iter().all(|line| line.skipped(SkipReason::Quarantined)), "{lines:?}");
    assert!(lines[first..].iter().all(Line::fired), "{lines:?}");
    // Restarts and panics beside it took nothing from the neighbour.
    assert!(!ledger(&client, neighbour, Some(1_000)).await.is_empty());
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}
