//! Bad requests: each has a code, and a sentence that says what to do.

use super::*;
use campanile_schema::error::ApiError;

async fn refused(node: &TestNode, job: JobId, body: BackfillBody) -> ApiError {
    node.scheduler().backfill(job, body).await.unwrap_err()
}

fn stretch(from: i64, to: i64) -> BackfillBody {
    BackfillBody { from: Timestamp(from), to: Timestamp(to), ..BackfillBody::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_backfilled_is_refused_with_what_to_do() {
    let node = TestNode::start().await;
    let job = daily(&node, ConcurrencyPolicy::Forbid).await;
    let scheduler = node.scheduler();
    let now = now_ms();
    let year = 365 * DAY;
    let cases = [
        (stretch(now, now - DAY), ErrorCode::InvalidArgument, "write the earlier instant as 'from'"),
        (stretch(now + DAY, now + 2 * DAY), ErrorCode::InvalidArgument, "in the future"),
        (stretch(-1_000_000 * year, now), ErrorCode::InvalidArgument, "1970-01-01T00:00:00Z or later"),
        (stretch(i64::MIN, i64::MAX), ErrorCode::InvalidArgument, "1970"),
        (BackfillBody { parallelism: Some(0), ..days(3) }, ErrorCode::InvalidArgument, "give 1 to 200"),
        (BackfillBody { parallelism: Some(u32::MAX), ..days(3) }, ErrorCode::InvalidArgument, "give 1 to 200"),
        (BackfillBody { mode: Some(BackfillMode::Replay), ..days(3) }, ErrorCode::InvalidArgument, "job.replay"),
    ];
    for (body, code, says) in cases {
        let error = refused(&node, job, body).await;
        assert_eq!(error.known(), code, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let secondly = spec("secondly", json!({"type": "CRON", "expr": "* * * * * *"}), ConcurrencyPolicy::Allow);
    let secondly = scheduler.create_job(secondly, None).await.unwrap().job_id;
    let error = refused(&node, secondly, stretch(0, now)).await;
    assert_eq!(error.known(), ErrorCode::TooManyInstants, "{error}");
    let named: Timestamp = error.message.rsplit(' ').next().unwrap().parse().unwrap();
    let largest = BackfillBody { dry_run: true, ..stretch(0, named.ms()) };
    assert_eq!(scheduler.backfill(secondly, largest).await.unwrap().instants, 1_000_000);
    let manual = spec("manual", json!({"type": "MANUAL"}), ConcurrencyPolicy::Allow);
    let manual = scheduler.create_job(manual, None).await.unwrap().job_id;
    let error = refused(&node, manual, days(3)).await;
    assert_eq!((error.known(), error.message.contains("trigger it by hand")), (ErrorCode::NoInstants, true), "{error}");
    // More of the future than of the past: what is not decided is left to the schedule.
    let cut =
        scheduler.backfill(job, BackfillBody { dry_run: true, ..stretch(now - 2 * DAY, now + year) }).await.unwrap();
    assert!(cut.to.ms() <= now_ms() && cut.instants == 2, "{cut:?}");
    scheduler.pause_job(job, None).await.unwrap();
    assert_eq!(refused(&node, job, days(3)).await.known(), ErrorCode::JobPaused);
    let gone = scheduler.backfill_of_job(manual).await.unwrap_err();
    assert_eq!(gone.known(), ErrorCode::NotFound, "{gone}");
    assert_eq!(scheduler.backfill_by_id(BackfillId(4_096)).await.unwrap_err().known(), ErrorCode::NotFound);
    assert_eq!(refused(&node, JobId(4_096), days(3)).await.known(), ErrorCode::NotFound);
    node.stop().await;
}
