//! Windows and blackouts on a real node: what they remove makes no run, the ledger says so, explanations, previews and forecasts know it, and
//! a restart in between changes nothing.

use crate::support::{
    self, TestNode, eventually,
    ledger::{ledger, runs},
    now_ms, wait_until,
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    error::ErrorCode,
    event::SkipReason,
    ids::JobId,
    job::{Blackout, ConcurrencyPolicy, JobSpec, Trigger, Window},
    payload::Payload,
    reason::ReasonCode,
    time::Timestamp,
    view::PreviewBody,
};
use serde_json::json;
use std::time::Duration;

const EVERY_MS: i64 = 1_000;

/// Due each second, and not in the blackout.
fn spec(name: &str, anchor_ms: i64, from_ms: i64, to_ms: i64) -> JobSpec {
    let trigger = json!({"type": "FIXED_RATE", "everySec": 1, "anchorAt": Timestamp(anchor_ms).to_string()});
    let mut spec = JobSpec::new("default", name, serde_json::from_value(trigger).unwrap());
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec.blackouts =
        vec![Blackout { from: Timestamp(from_ms), to: Timestamp(to_ms), reason: Some("freeze".to_owned()) }];
    spec
}

async fn codes(client: &campanile_client::Client, job: JobId, at_ms: i64) -> Vec<String> {
    let view = client.job_explain(job, Some(Timestamp(at_ms))).await.unwrap();
    view.reasons.into_iter().map(|reason| format!("{}: {}", reason.code, reason.sentence)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blackout_removes_instants_and_a_restart_in_it_changes_nothing() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .any_handler(|_: Context, _: Payload| async { Ok::<_, JobError>(None) })
        .build()
        .unwrap()
        .start();
    let anchor = now_ms() + 1_000;
    // Between instants, so that both of its ends are clear.
    let (from, to) = (anchor + 1_500, anchor + 6_500);
    let job = client.job_create(spec("tick", anchor, from, to)).await.unwrap().job_id;

    let removed = anchor + 3_000;
    let told = codes(&client, job, removed).await;
    assert!(told[0].starts_with(ReasonCode::InstantRemoved.as_str()), "{told:?}");
    assert!(told[0].contains("it lies in a blackout of the job"), "{told:?}");
    wait_until(from + 500).await;
    let node = node.restart().await;
    let client = node.client().await;

    let lines = eventually("a run after the blackout", || async {
        let lines = ledger(&client, job, Some(EVERY_MS)).await;
        lines.iter().any(|line| line.fired() && line.at_ms > to).then_some(lines)
    })
    .await;
    for line in &lines {
        let closed = from <= line.at_ms && line.at_ms < to;
        assert_eq!(line.skipped(SkipReason::Blackout), closed, "{line:?} of {lines:?}");
        assert_eq!(line.fired(), !closed, "{line:?} of {lines:?}");
    }
    assert_eq!(lines.iter().filter(|line| line.skipped(SkipReason::Blackout)).count(), 5);
    let mut logical = runs(&client, job).await.into_iter().filter_map(|run| run.logical_time);
    assert!(logical.all(|at| at.ms() < from || at.ms() >= to));
    let told = codes(&client, job, removed).await;
    assert!(told[0].starts_with(ReasonCode::InstantSkipped.as_str()), "{told:?}");
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn previews_and_refusals_know_windows() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let trigger: Trigger =
        serde_json::from_value(json!({"type": "CRON", "expr": "0 * * * *", "timezone": "Europe/Berlin"})).unwrap();
    let window: Window = serde_json::from_value(json!({"days": ["MON"], "from": "09:00", "to": "11:00"})).unwrap();
    let body = PreviewBody {
        trigger: trigger.clone(),
        windows: vec![window.clone()],
        blackouts: Vec::new(),
        // A Saturday.
        after: Some("2026-02-07T00:00:00Z".parse().unwrap()),
        count: Some(3),
    };
    let preview = client.schedule_preview(body).await.unwrap();
    let next: Vec<String> = preview.next.iter().map(ToString::to_string).collect();
    assert_eq!(next, ["2026-02-09T08:00:00.000Z", "2026-02-09T09:00:00.000Z", "2026-02-16T08:00:00.000Z"]);
    let removed: Vec<_> = preview.removed.iter().map(|entry| (entry.count, entry.reason)).collect();
    assert_eq!(removed, [(55, Some(SkipReason::Window)), (7 * 24 - 2, Some(SkipReason::Window))]);

    let mut spec = JobSpec::new("default", "report", trigger);
    spec.windows = vec![window.clone()];
    let made = client.job_create(spec.clone()).await.unwrap().job_id;
    let read = client.job_get(made).await.unwrap();
    let filled = Window { timezone: Some("Europe/Berlin".to_owned()), ..window };
    assert_eq!(read.spec.windows, [filled]);
    let next = read.next_fire_at.unwrap();
    // A Monday at nine or ten in Berlin, which is seven, eight or nine in UTC.
    assert!((7..=9).contains(&(next.ms() / 3_600_000 % 24)), "{next}");
    assert_eq!((next.ms() / 86_400_000 + 3) % 7, 0, "{next}");

    spec.name = "never".to_owned();
    spec.windows.push(serde_json::from_value(json!({"effect": "DENY", "days": ["MON"]})).unwrap());
    let refused = client.job_create(spec).await.unwrap_err();
    assert_eq!(refused.api().unwrap().known(), ErrorCode::ScheduleNeverFires, "{refused}");
    node.stop().await;
}
