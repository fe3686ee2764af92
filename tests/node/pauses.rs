//! A pause is judged by when an instant was due, on a whole node.

use crate::support::{TestNode, eventually, ledger::ledger, now_ms, wait_until};
use campanile_schema::{
    event::SkipReason,
    job::{ConcurrencyPolicy, JobSpec},
};
use serde_json::json;

const PERIOD_MS: i64 = 3_000;

/// The resume comes just behind an instant, and the jitter of nearly every job puts the decision behind the resume.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instant_in_a_pause_does_not_fire_because_its_jitter_ends_behind_it() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let anchor_ms = now_ms();
    let trigger = json!({"type": "FIXED_RATE", "everySec": PERIOD_MS / 1_000, "anchorAt": anchor_ms, "jitterSec": 2});
    let mut jobs = Vec::new();
    for n in 0..12 {
        let trigger = serde_json::from_value(trigger.clone()).unwrap();
        let mut spec = JobSpec::new("default", &format!("job-{n}"), trigger);
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        jobs.push(client.job_create(spec).await.unwrap().job_id);
    }
    client.tenant_pause("default", None).await.unwrap();
    let due_ms = anchor_ms + ((now_ms() - anchor_ms) / PERIOD_MS + 1) * PERIOD_MS;
    wait_until(due_ms + 10).await;
    client.tenant_resume("default", None).await.unwrap();
    for job in jobs {
        let lines = eventually("what was due is decided", || async {
            Some(ledger(&client, job, None).await).filter(|lines| lines.iter().any(|line| line.at_ms >= due_ms))
        })
        .await;
        let line = lines.iter().find(|line| line.at_ms == due_ms);
        assert!(line.is_some_and(|line| line.skipped(SkipReason::TenantPaused)), "{lines:?}");
    }
    node.stop().await;
}
