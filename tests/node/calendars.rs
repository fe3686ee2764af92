//! Calendars on a real node: a job that names one is due on its days only, also after a restart, and the ledger says why it was not.

use crate::support::{TestNode, ledger::ledger, now_ms, wait_until};
use campanile_client::ClientError;
use campanile_schema::{
    calendar::CalendarSpec,
    error::ErrorCode,
    event::SkipReason,
    ids::JobId,
    job::{CalendarRule, ConcurrencyPolicy, JobCalendar, JobSpec, Trigger},
    time::Timestamp,
    view::calendars::{CalendarBody, CalendarPreviewBody},
};

const EVERY_MS: i64 = 1_000;

fn spec(rule: CalendarRule) -> JobSpec {
    let mut spec = JobSpec::new("default", "tick", Trigger::fixed_rate(1));
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec.calendar = Some(JobCalendar { name: "days".to_owned(), rule, timezone: None });
    spec
}

/// One day, long ago, and one that is far ahead.
fn other_days() -> CalendarSpec {
    serde_json::from_str(
        r#"{"include": {"dates": ["2020-01-01", "2099-01-01"], "monthly": [{"month": 2, "day": 29}]}}"#,
    )
    .unwrap()
}

async fn codes(client: &campanile_client::Client, job: JobId, at_ms: i64) -> Vec<String> {
    let view = client.job_explain(job, Some(Timestamp(at_ms))).await.unwrap();
    view.reasons.into_iter().map(|reason| format!("{}: {}", reason.code, reason.sentence)).collect()
}

fn code<T>(answer: Result<T, ClientError>) -> ErrorCode {
    match answer {
        Err(ClientError::Api(error)) => error.known(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_due_on_days_of_its_calendar_only_and_a_restart_changes_nothing() {
    let node = TestNode::start().await;
    let client = node.client().await;
    assert_eq!(code(client.job_create(spec(CalendarRule::OnlyOn)).await), ErrorCode::InvalidArgument);

    let body = CalendarBody { spec: other_days(), ..CalendarBody::default() };
    let set = client.calendar_set("default", "days", body.clone()).await.unwrap();
    assert_eq!((set.version, set.outstanding.len()), (1, 0));
    let again = client.calendar_set("default", "days", CalendarBody { version: Some(7), ..body }).await;
    assert_eq!(code(again), ErrorCode::StaleVersion);

    let created = client.job_create(spec(CalendarRule::OnlyOn)).await.unwrap();
    let job = created.job_id;
    let leap_day = created.next_fire_at.unwrap();
    assert!(leap_day.to_string().contains("-02-29T00:00:00"), "{leap_day}");
    let read = client.job_get(job).await.unwrap();
    let Trigger::FixedRate { anchor_at: Some(anchor), .. } = read.spec.trigger else { panic!("{:?}", read.spec) };
    wait_until(anchor.ms() + 3_500).await;
    let node = node.restart().await;
    let client = node.client().await;
    assert_eq!(client.job_get(job).await.unwrap().next_fire_at, Some(leap_day));
    let told = codes(&client, job, anchor.ms() + 2 * EVERY_MS).await;
    assert!(told[0].contains("the job's calendar excludes its day"), "{told:?}");

    // Every other day counts, and the edit closes what came before.
    let mut edited = read.spec.clone();
    edited.calendar = spec(CalendarRule::NotOn).calendar;
    let replaced = client.job_replace(job, read.version, edited).await.unwrap();
    assert!(replaced.next_fire_at.unwrap().ms() < now_ms() + 5_000);
    let lines = ledger(&client, job, Some(EVERY_MS)).await;
    let removed = lines.iter().filter(|line| line.skipped(SkipReason::Calendar)).count();
    assert!(removed >= 2, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_says_which_jobs_change_and_a_deletion_waits_its_minute() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let body = CalendarBody { spec: other_days(), ..CalendarBody::default() };
    client.calendar_set("default", "days", body).await.unwrap();
    client.job_create(spec(CalendarRule::OnlyOn)).await.unwrap();
    let every_day = CalendarPreviewBody { spec: Some(CalendarSpec::default()), ..CalendarPreviewBody::default() };
    let preview = client.calendar_preview("default", "days", every_day).await.unwrap();
    assert_eq!((preview.days.len(), preview.jobs.len(), preview.truncated), (31, 1, false));
    assert!(preview.jobs[0].added.len() > 1, "{:?}", preview.jobs);

    client.calendar_delete("default", "days", Some("unused")).await.unwrap();
    let deleted = client.calendar_get("default", "days").await.unwrap();
    assert_eq!((deleted.version, deleted.spec), (2, None));
    assert!(deleted.effective_from.ms() > now_ms() + 30_000, "instants of the next minute may be decided already");
    assert!(client.calendar_list("default").await.unwrap().is_empty());
}
