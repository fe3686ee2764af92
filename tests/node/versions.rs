//! The history of definitions: who changed what and when, what differs, and the way back.

use crate::{
    program::{Dev, eventually, run},
    support::TestNode,
};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    error::ErrorCode,
    ids::JobId,
    job::{JobSpec, Trigger},
    limits::DEFINITIONS_KEPT,
    view::versions::{RollbackBody, VersionView, VersionsBody},
};
use serde_json::{Value, json};
use std::path::Path;

fn spec(expr: &str) -> JobSpec {
    JobSpec::new("default", "report", Trigger::cron(expr))
}

async fn versions(client: &Client, job: JobId) -> Vec<VersionView> {
    client.job_versions(job, VersionsBody::default()).await.unwrap().items
}

fn back_to(to: u64) -> RollbackBody {
    RollbackBody { to, version: None, reason: Some("it was better".to_owned()) }
}

fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> ErrorCode {
    answer.unwrap_err().api().unwrap().known()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_tells_who_changed_what_and_a_rollback_makes_a_new_one() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let job = client.job_create(spec("0 2 * * *")).await.unwrap().job_id;
    let mut second = spec("0 3 * * *");
    second.labels.insert("team".to_owned(), "pay".to_owned());
    client.job_replace(job, 1, second).await.unwrap();
    // A pause is no edit.
    client.job_pause(job, None).await.unwrap();
    client.job_resume(job, None).await.unwrap();

    let all = versions(&client, job).await;
    assert_eq!(all.iter().map(|version| version.version).collect::<Vec<_>>(), [2, 1]);
    let changed: Vec<&str> = all[0].changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!((changed, all[0].compared_with), (vec!["labels.team", "trigger.expr"], Some(1)));
    let expr = &all[0].changes[1];
    let text = |value: &Option<campanile_schema::payload::Payload>| value.as_ref().unwrap().0.clone();
    assert_eq!((text(&expr.before), text(&expr.after)), (r#""0 2 * * *""#.to_owned(), r#""0 3 * * *""#.to_owned()));
    for (version, operation) in all.iter().zip(["job.replace", "job.create"]) {
        assert_eq!((version.who.as_deref(), version.operation.as_deref()), (Some("test"), Some(operation)));
        assert!(version.address.is_some());
    }
    assert_eq!((all[1].changes.len(), all[1].compared_with), (0, None), "the first one");

    let back = client.job_rollback(job, back_to(1)).await.unwrap();
    assert_eq!((back.version, &back.spec), (3, &all[1].spec));
    let all = versions(&client, job).await;
    assert_eq!(all[0].operation.as_deref(), Some("job.rollback"));
    assert_eq!(all[0].reason.as_deref(), Some("it was better"));
    let against = VersionsBody { against: Some(1), page_size: Some(1), ..VersionsBody::default() };
    let page = client.job_versions(job, against).await.unwrap();
    assert_eq!(
        (page.items[0].changes.len(), page.next_page_token.as_deref()),
        (0, Some("3")),
        "it is as version 1 was"
    );

    assert_eq!(code(client.job_rollback(job, back_to(3)).await), ErrorCode::IllegalState);
    assert_eq!(code(client.job_rollback(job, back_to(9)).await), ErrorCode::NotFound);
    let stale = RollbackBody { version: Some(2), ..back_to(2) };
    assert_eq!(code(client.job_rollback(job, stale).await), ErrorCode::StaleVersion);

    // History is of the read model: a restart keeps it, and a deletion takes it away.
    let node = node.restart().await;
    let client = node.client().await;
    assert_eq!(versions(&client, job).await.len(), 3);
    client.job_delete(job, None).await.unwrap();
    assert_eq!(code(client.job_versions(job, VersionsBody::default()).await), ErrorCode::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_versions_are_kept_and_paged() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let job = client.job_create(spec("0 2 * * *")).await.unwrap().job_id;
    for version in 1..DEFINITIONS_KEPT + 2 {
        let mut spec = spec("0 2 * * *");
        spec.priority = (version % 1_000) as u16;
        client.job_replace(job, version, spec).await.unwrap();
    }
    let newest = DEFINITIONS_KEPT + 2;
    let (mut seen, mut page_token) = (Vec::new(), None);
    loop {
        let body = VersionsBody { page_token, page_size: Some(30), ..VersionsBody::default() };
        let page = client.job_versions(job, body).await.unwrap();
        assert!(page.items.iter().all(|version| version.version == 3 || version.changes.len() == 1));
        seen.extend(page.items.iter().map(|version| version.version));
        page_token = page.next_page_token;
        if page_token.is_none() {
            break;
        }
    }
    assert_eq!(seen, (3..=newest).rev().collect::<Vec<_>>());
    assert_eq!(code(client.job_rollback(job, back_to(2)).await), ErrorCode::NotFound);
    node.stop().await;
}

/// Fields of the definition that each version changed, by the command line.
fn told(dev: &Dev) -> Vec<Value> {
    let page = dev.run(&["job", "versions", "report", "-o", "json"]).json();
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| json!([item["version"], item["who"], item["changes"]]))
        .collect()
}

#[test]
fn a_backup_has_the_history_of_definitions_and_a_dump_shows_it() {
    let temp = tempfile::tempdir().unwrap();
    let dev = Dev::start(&temp.path().join("one"), &["--no-demo"]);
    let spec = |priority: u16| json!({"name": "report", "trigger": {"type": "MANUAL"}, "priority": priority});
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec(1)));
    assert_eq!(status, 201, "{made}");
    let path = format!("/api/v1/jobs/{}", made["jobId"]);
    assert_eq!(dev.http("PUT", &path, Some(&json!({"version": 1, "spec": spec(2)}))).0, 200);
    let before = told(&dev);
    assert_eq!(
        dev.run(&["job", "versions", "report", "--all", "-o", "json"]).json()["items"].as_array().unwrap().len(),
        2
    );
    assert_eq!((before.len(), &before[0][2][0]["field"]), (2, &json!("priority")));
    let archive = temp.path().join("archive");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    assert_eq!(dev.run(&["store", "backup", &text(&archive)]).code, 0);
    drop(dev);
    let dump = run(&["store", "dump", &text(&archive)]);
    let is_version = |line: &&str| line.contains(r#""kind":"definition""#);
    assert_eq!(dump.out.lines().filter(is_version).count(), 2, "{}", dump.out);
    let place = temp.path().join("two/node");
    let restored = run(&["store", "restore", &text(&archive), "--data", &text(&place)]);
    assert_eq!(restored.code, 0, "{}", restored.err);
    let dev = Dev::start(&temp.path().join("two"), &["--no-demo"]);
    let after = eventually("the job is there", || Some(told(&dev)).filter(|told| !told.is_empty()));
    assert_eq!(after, before);
}
