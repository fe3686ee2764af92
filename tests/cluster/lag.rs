//! A read model that cannot be written for a while: nothing is lost and nothing is skipped, it is late.

use crate::{
    is_ready, spread,
    support::{eventually, now_ms, wait_until},
    test_cluster::TestCluster,
};
use campanile_schema::{
    error::ErrorCode,
    event::Outcome,
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    limits::PROJECTOR_QUEUE_EVENTS,
    view::TriggerBody,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn due_instants_wait_for_the_read_model_and_callers_are_told_to_come_back() {
    let mut cluster = TestCluster::new();
    cluster.start(1).await;
    spread(&cluster, 1).await;
    is_ready(&cluster, 1).await;
    let scheduler = cluster.scheduler(1).clone();
    let create = async |name: &str, trigger: &str| {
        let mut spec = JobSpec::new("default", name, serde_json::from_str::<Trigger>(trigger).unwrap());
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        let create = || async { scheduler.create_job(spec.clone(), Some(name.to_owned())).await.ok() };
        eventually("it is created", create).await.job_id
    };
    let timed = create("timed", r#"{"type":"FIXED_RATE","everySec":1}"#).await;
    let by_hand = create("by-hand", r#"{"type":"MANUAL"}"#).await;
    let ledger = async |from_ms: i64| scheduler.ledger(timed, from_ms, i64::MAX / 2, 1_000).await.unwrap().items;
    eventually("a fire", || async { (!ledger(0).await.is_empty()).then_some(()) }).await;

    cluster.cut_views(true);
    scheduler.projector_full_above(0).unwrap();
    let refused =
        eventually("a refusal", || async { scheduler.trigger(by_hand, TriggerBody::default()).await.err() }).await;
    assert_eq!(refused.known(), ErrorCode::Overloaded, "{refused}");
    assert!(refused.retry_after_sec.is_some());
    let from_ms = now_ms();
    wait_until(from_ms + 4_000).await;
    let until_ms = now_ms();
    let waiting = scheduler.job(timed).await.unwrap();
    assert!(waiting.next_fire_at.unwrap().ms() < until_ms - 2_000, "its instants wait: {waiting:?}");
    cluster.cut_views(false);
    scheduler.projector_full_above(PROJECTOR_QUEUE_EVENTS as i64).unwrap();

    let items = eventually("fires afterwards", || async {
        let items = ledger(0).await;
        (items.last()?.logical_time.ms() > until_ms).then_some(items)
    })
    .await;
    for pair in items.windows(2) {
        assert_eq!(pair[1].logical_time.ms() - pair[0].logical_time.ms(), 1_000, "an instant is missing: {pair:?}");
    }
    assert!(items.iter().all(|item| matches!(item.outcome, Outcome::Fired | Outcome::FiredLate)), "{items:?}");
    let within = items.iter().filter(|item| (from_ms..until_ms - 1_500).contains(&item.logical_time.ms()));
    assert!(within.clone().count() >= 2, "{items:?}");
    assert!(within.into_iter().all(|item| item.outcome == Outcome::FiredLate), "{items:?}");
    eventually("a run by hand", || async { scheduler.trigger(by_hand, TriggerBody::default()).await.ok() }).await;
    cluster.stop(1).await;
}
