//! One node in this process on a directory of its own, a real executor over loopback: the whole way of a trigger, and that
//! a restart loses nothing.

use crate::support;

use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    error::ErrorCode,
    ids::slot_of,
    job::{JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    view::{JobFilter, TriggerBody},
};
use std::{collections::BTreeSet, time::Duration};
use support::{TestNode, eventually};

fn every_second() -> Trigger {
    serde_json::from_str(r#"{"type":"CRON","expr":"* * * * * *","dialect":"UNIX"}"#).unwrap()
}

fn executor(node: &TestNode) -> campanile_client::ExecutorHandle {
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(4)
        .any_handler(|ctx: Context, _: campanile_schema::payload::Payload| async move {
            ctx.log("hello from the body");
            Ok::<_, JobError>(None)
        })
        .build()
        .unwrap()
        .start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cron_job_fires_runs_and_is_in_the_history_and_the_ledger() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let executor = executor(&node);
    let job = scheduler.create_job(JobSpec::new("default", "tick", every_second()), None).await.unwrap();
    let runs = eventually("three successful runs", || async {
        let page = scheduler.job_runs(job.job_id, None, 100).await.unwrap();
        let done = page.items.iter().filter(|r| r.state == RunState::Success).count();
        (done >= 3).then_some(page.items)
    })
    .await;
    let run = runs.iter().find(|r| r.state == RunState::Success).unwrap();
    assert_eq!(run.attempts.len(), 1);
    assert_eq!(run.logical_time.unwrap().0 % 1000, 0);
    let log = eventually("the log", || async {
        let log = scheduler.run_log(run.run_id, None, 0, usize::MAX).await.unwrap();
        (!log.bytes.is_empty()).then(|| String::from_utf8(log.bytes).unwrap())
    })
    .await;
    assert!(log.contains("hello from the body"), "{log:?}");
    let ledger = scheduler.ledger(job.job_id, 0, i64::MAX / 2, 1000).await.unwrap();
    assert!(ledger.items.len() >= 3, "{ledger:?}");
    for pair in ledger.items.windows(2) {
        assert_eq!(pair[1].logical_time.0 - pair[0].logical_time.0, 1000, "an instant is missing: {pair:?}");
    }
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_jobs_runs_and_keys() {
    let node = TestNode::start().await;
    let running = executor(&node);
    let job = node.scheduler().create_job(JobSpec::new("default", "by-hand", Trigger::Manual {}), None).await.unwrap();
    let body = TriggerBody { manual_run_id: Some("k1".into()), params: None, reason: None, callback: None };
    let run = node.scheduler().trigger(job.job_id, body.clone()).await.unwrap();
    let again = node.scheduler().trigger(job.job_id, body.clone()).await.unwrap();
    assert_eq!(run.run_id, again.run_id);
    let ended = node.scheduler().wait_run(run.run_id, 10_000).await.unwrap();
    assert_eq!(ended.state, RunState::Success);
    let keyed = |params: &str| TriggerBody {
        manual_run_id: Some("k2".to_owned()),
        params: Some(Payload(params.to_owned())),
        reason: None,
        callback: None,
    };
    let with_params = node.scheduler().trigger(job.job_id, keyed(r#"{"n":1,"of":"a"}"#)).await.unwrap();
    let rewritten = keyed(r#"{ "of": "a", "n": 1 }"#);
    node.scheduler().wait_run(with_params.run_id, 10_000).await.unwrap();
    // Lies in the past when it is asked again: what was made in time stays made.
    let now = jiff::Timestamp::now().as_millisecond();
    let at = serde_json::json!({"type": "ONCE", "at": now, "misfireThresholdSec": 1});
    let due = JobSpec::new("default", "once", serde_json::from_value(at).unwrap());
    let made = node.scheduler().create_job(due.clone(), Some("c1".to_owned())).await.unwrap();
    eventually("the past", || async { (jiff::Timestamp::now().as_millisecond() > now + 1_100).then_some(()) }).await;
    running.drain(Duration::from_secs(2)).await;
    for _ in 0..3 {
        let node = node.restart().await;
        let scheduler = node.scheduler();
        assert_eq!(scheduler.job(job.job_id).await.unwrap().spec.name, "by-hand");
        assert_eq!(scheduler.trigger(job.job_id, body.clone()).await.unwrap().run_id, run.run_id);
        for (params, ended) in [(r#"{"n":1}"#, &run), (r#"{"n":2}"#, &with_params)] {
            let other = TriggerBody {
                params: Some(Payload(params.to_owned())),
                manual_run_id: ended.key.clone(),
                ..body.clone()
            };
            let reused = scheduler.trigger(job.job_id, other).await.unwrap_err();
            assert_eq!(reused.known(), ErrorCode::IdempotencyKeyReused, "{params}");
            assert!(reused.message.contains(&ended.run_id.to_string()), "{reused}");
        }
        let again = scheduler.trigger(job.job_id, rewritten.clone()).await.unwrap();
        assert_eq!(again.run_id, with_params.run_id, "the same params in another order, with other blanks");
        assert_eq!(scheduler.run(run.run_id).await.unwrap().state, RunState::Success);
        let kept = scheduler.create_job(due.clone(), Some("c1".to_owned())).await.unwrap();
        assert_eq!(kept.job_id, made.job_id, "the same key with the same spec finds what it made");
        let other = JobSpec { priority: 7, ..due.clone() };
        let other = scheduler.create_job(other, Some("c1".to_owned())).await.unwrap_err();
        assert_eq!(other.known(), ErrorCode::IdempotencyKeyReused);
        let twin = scheduler.create_job(JobSpec::new("default", "by-hand", Trigger::Manual {}), None).await;
        assert_eq!(twin.unwrap_err().known(), ErrorCode::DuplicateName);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_whole_and_in_order_however_jobs_are_spread_over_shards() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    // Nearly all in one shard, which must be asked again and again for a page.
    let crowded = |name: &String| slot_of("default", name).is_multiple_of(16);
    let names = (0..).map(|n| format!("job-{n}"));
    let names: Vec<String> = names.clone().filter(crowded).take(60).chain(names.take(20)).collect();
    let mut made = Vec::new();
    for name in names.iter().collect::<BTreeSet<_>>() {
        let job = scheduler.create_job(JobSpec::new("default", name, Trigger::Manual {}), None).await.unwrap();
        made.push(job.job_id);
    }
    made.sort_unstable();
    for (size, skipped) in [(7, 0), (50, 0), (1_000, 0), (9, 2)] {
        let mut seen = Vec::new();
        let mut filter =
            JobFilter { page_size: Some(size), page: (skipped > 0).then_some(skipped + 1), ..JobFilter::default() };
        loop {
            let page = scheduler.jobs(filter.clone()).await.unwrap();
            seen.extend(page.items.iter().map(|job| job.job_id));
            filter = JobFilter { page: None, page_token: page.next_page_token, ..filter };
            if filter.page_token.is_none() {
                break;
            }
        }
        assert_eq!(seen, made[size * skipped..], "pages of {size}, {skipped} skipped");
    }
    node.stop().await;
}
