//! Calls over RPC: the same meaning as HTTP, in any order, by any role.

use crate::support as rpc_support;

use campanile_client::{Client, ClientError, ClientOptions, Context, Job, JobError, Once, Retry};
use campanile_schema::{
    apply::{ApplyBody, ManifestFile},
    error::ErrorCode,
    job::{JobSpec, Trigger},
    operations::SystemInfo,
    payload::Payload,
    record::RunState,
    rpc::{codec::from_map, hello::ConnectionRole, hello::Welcome, method},
    time::Timestamp,
    view::{JobFilter, LogBody, PageBody, PreviewBody, RunView, Spread, TenantBody, TriggerBody},
};
use rpc_support::{EXECUTOR, Node, OPERATOR, RawMessage, TENANT, within};
use serde_json::json;
use std::collections::BTreeMap;

fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> ErrorCode {
    answer.unwrap_err().api().unwrap().known()
}

async fn until_final(client: &campanile_client::Client, run: RunView) -> RunView {
    within(async {
        let mut run = run;
        while !run.state.is_final() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            run = client.run_get(run.run_id).await.unwrap();
        }
        run
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_from_its_creation_to_its_log() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let executor = node
        .executor()
        .slots(4)
        .handler("bill", |ctx: Context, params: BTreeMap<String, u64>| async move {
            ctx.log(format!("attempt {} of {}", ctx.attempt(), ctx.invocation_id()));
            Ok::<_, JobError>(params["customer"] * 2)
        })
        .build()
        .unwrap()
        .start();
    within(executor.ready()).await.unwrap();

    let mut spec = JobSpec::new("fin", "bill", Trigger::Manual {});
    spec.params = Payload(r#"{"customer":4}"#.to_owned());
    let created = client.job_create(spec.clone()).await.unwrap();
    let body = TriggerBody {
        manual_run_id: Some("m-1".to_owned()),
        params: Some(Payload(r#"{"customer":21}"#.to_owned())),
        reason: Some("test".to_owned()),
    };
    let run = client.job_trigger(created.job_id, body.clone()).await.unwrap();
    let run = until_final(&client, run).await;
    assert_eq!((run.state, run.result), (RunState::Success, Some(Payload("42".to_owned()))));
    assert_eq!(run.attempts.len(), 1);
    let again = client.job_trigger(created.job_id, body).await.unwrap();
    assert_eq!(again.run_id, run.run_id, "the same caller's key finds the same run");

    let log = client.run_log(run.run_id, LogBody::default()).await.unwrap();
    assert_eq!(log.text, format!("attempt 1 of {}/1\n", run.run_id));
    let runs = client.job_runs(created.job_id, PageBody::default()).await.unwrap();
    assert_eq!(runs.items.len(), 1);

    let view = client.job_get(created.job_id).await.unwrap();
    assert_eq!((view.spec.name.as_str(), &view.spec.params), ("bill", &spec.params));
    let mut changed = view.spec.clone();
    changed.trigger = Trigger::Once {
        at: Some(Timestamp(4_000_000_000_000).into()),
        delay_sec: None,
        delay_ms: None,
        timezone: None,
        misfire_policy: Default::default(),
        misfire_threshold_sec: 60,
    };
    let replaced = client.job_replace(created.job_id, view.version, changed.clone()).await.unwrap();
    assert_eq!(replaced.next_fire_at, Some(Timestamp(4_000_000_000_000)));
    assert_eq!(code(client.job_replace(created.job_id, view.version, changed).await), ErrorCode::StaleVersion);
    client.job_pause(created.job_id, Some("why")).await.unwrap();
    client.job_resume(created.job_id, None).await.unwrap();
    let listed =
        client.job_list(JobFilter { tenant_id: Some("fin".to_owned()), ..JobFilter::default() }).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    client.job_delete(created.job_id, None).await.unwrap();
    assert_eq!(code(client.job_get(created.job_id).await), ErrorCode::NotFound);
    assert_eq!(executor.drain(rpc_support::PATIENCE).await.unacknowledged, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_too_large_is_told_in_the_run_and_in_its_log() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let executor = node
        .executor()
        .handler("wordy", |_: Context, _: Payload| async move { Ok::<_, JobError>("x".repeat(20_000)) })
        .build()
        .unwrap()
        .start();
    within(executor.ready()).await.unwrap();
    let job = client.job_create(JobSpec::new("fin", "wordy", Trigger::Manual {})).await.unwrap().job_id;
    let body = TriggerBody { manual_run_id: None, params: None, reason: None };
    let run = client.job_trigger(job, body).await.unwrap();
    let run = until_final(&client, run).await;
    assert_eq!((run.state, run.result), (RunState::Success, None));
    assert_eq!(run.attempts[0].error_code.as_deref(), Some("RESULT_TOO_LARGE"));
    assert!(run.last_error.unwrap().contains("20002 bytes is not kept; at most 16384"));
    let log = client.run_log(run.run_id, LogBody::default()).await.unwrap();
    assert_eq!(log.text, "[the result of 20002 bytes is not kept; at most 16384 are]\n");
    executor.drain(rpc_support::PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_jobs_in_one_call_and_an_answer_for_each() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut specs: Vec<JobSpec> =
        (0..500).map(|n| JobSpec::new("fin", &format!("job-{n}"), Trigger::Manual {})).collect();
    specs[7].name = "no spaces allowed".to_owned();
    specs.push(JobSpec::new("fin", "job-0", Trigger::Manual {}));
    let created = client.job_create_many(specs).await.unwrap();
    assert_eq!(created.len(), 501);
    let refused: Vec<usize> = (0..501).filter(|n| created[*n].is_err()).collect();
    assert_eq!(refused, [7, 500]);
    assert_eq!(created[500].as_ref().unwrap_err().known(), ErrorCode::DuplicateName);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_all_and_tenants_their_own() {
    let node = Node::start().await;
    let (operator, tenant) = (node.client(OPERATOR).await, node.client(TENANT).await);
    let other = operator.job_create(JobSpec::new("ops", "a", Trigger::Manual {})).await.unwrap();
    tenant.job_create(JobSpec::new("fin", "a", Trigger::Manual {})).await.unwrap();
    assert_eq!(tenant.job_list(JobFilter::default()).await.unwrap().items.len(), 1);
    assert_eq!(code(tenant.job_get(other.job_id).await), ErrorCode::NotFound);
    assert_eq!(code(tenant.system_info().await), ErrorCode::Forbidden);
    assert_eq!(code(tenant.system_pause(None).await), ErrorCode::Forbidden);
    let info = operator.system_info().await.unwrap();
    assert_eq!((info.cluster_id, info.jobs), (77, 2));
    let quota = TenantBody { max_concurrent_runs: 3, ..TenantBody::default() };
    assert_eq!(operator.tenant_set("fin", quota.clone()).await.unwrap().quota, quota);
    assert_eq!(operator.tenant_get("fin").await.unwrap().quota.max_concurrent_runs, 3);
    assert!(operator.tenant_list().await.unwrap().iter().any(|t| t.tenant_id == "fin"));
    assert_eq!(operator.tenant_pause("fin", Some("maintenance")).await.unwrap(), Spread::default());
    assert!(operator.tenant_get("fin").await.unwrap().paused);
    operator.tenant_resume("fin", None).await.unwrap();
    assert_eq!(code(tenant.tenant_delete("fin", None).await), ErrorCode::Forbidden);
    assert_eq!(code(operator.tenant_delete("fin", None).await), ErrorCode::IllegalState);
    assert_eq!(code(operator.tenant_delete("nobody", None).await), ErrorCode::NotFound);
    assert!(operator.executor_list().await.unwrap().items.is_empty());
    operator.pool_list().await.unwrap();
    let executors_token = node.client(EXECUTOR).await;
    assert_eq!(code(executors_token.job_list(JobFilter::default()).await), ErrorCode::Forbidden);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instants_are_numbers_on_the_wire_also_inside_a_trigger() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let trigger = Trigger::Once {
        at: Some(Timestamp(4_000_000_000_123).into()),
        delay_sec: None,
        delay_ms: None,
        timezone: None,
        misfire_policy: Default::default(),
        misfire_threshold_sec: 60,
    };
    let preview = client
        .schedule_preview(PreviewBody {
            trigger,
            windows: Vec::new(),
            blackouts: Vec::new(),
            after: None,
            count: Some(3),
        })
        .await
        .unwrap();
    assert_eq!(preview.next, [Timestamp(4_000_000_000_123)]);
}

/// Nothing keeps the form in which it was written, so the job reads back the same on every node and after an edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_times_and_other_words_for_once_are_read_back_as_instants() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let local = Once::at_local("2099-01-15 10:00:00.000", "Asia/Shanghai").unwrap();
    let created = client.job_create(Job::new("local", local)).await.unwrap();
    let instant = Timestamp(4_072_125_600_000);
    assert_eq!(created.next_fire_at, Some(instant));
    let read = client.job_get(created.job_id).await.unwrap().spec.trigger;
    assert_eq!(read, Trigger::once_at(instant));

    for (word, due) in [
        (json!({"type": "DELAY", "delayMs": 1_250}), 1_250),
        (json!({"type": "DELAY", "delaySec": 90}), 90_000),
        (json!({"type": "IMMEDIATE"}), 0),
    ] {
        let trigger: Trigger = serde_json::from_value(word.clone()).unwrap();
        let (windows, blackouts) = (Vec::new(), Vec::new());
        let body = PreviewBody { trigger, windows, blackouts, after: Some(instant), count: None };
        let preview = client.schedule_preview(body).await.unwrap();
        assert_eq!(preview.next, [instant.plus_ms(due)], "{word}");
        assert_eq!(preview.trigger, Trigger::once_at(instant.plus_ms(due)), "{word}");
    }
    let nowhere = Once::at_local("2099-01-15 10:00:00", "Asia/Shangai").unwrap();
    let refused = client.job_create(Job::new("nowhere", nowhere)).await;
    assert_eq!(code(refused), ErrorCode::UnknownTimezone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_never_fires_has_its_own_code() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let trigger: Trigger = serde_json::from_str(r#"{"type":"CRON","expr":"0 0 30 2 *"}"#).unwrap();
    let refused = client.job_create(JobSpec::new("fin", "never", trigger.clone())).await.unwrap_err();
    let refused = refused.api().unwrap();
    assert_eq!(refused.known(), ErrorCode::ScheduleNeverFires);
    assert!(refused.message.contains("February has no 30th"), "{}", refused.message);
    let preview = PreviewBody { trigger, windows: Vec::new(), blackouts: Vec::new(), after: None, count: None };
    assert_eq!(code(client.schedule_preview(preview).await), ErrorCode::ScheduleNeverFires);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_the_field_and_what_was_meant() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    let welcome: Welcome = from_map(&raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap()).unwrap();
    assert_eq!((welcome.protocol, welcome.cluster_id), (1, 77));
    let mut refused = async |method: &str, params: serde_json::Value| {
        raw.request(5, method, &params).await;
        let (id, answer) = raw.answer().await;
        assert_eq!(id, 5);
        let error = answer.unwrap_err();
        (error.known(), error.message)
    };
    let cases = [
        (
            "job.create",
            serde_json::json!({"name":"a","trigger":{"type":"MANUAL"},"timeoutsec":5}),
            "did you mean `timeoutSec`",
        ),
        ("job.create", serde_json::json!({"name":"a","trigger":{"type":"MANUAL"},"timeoutSec":"x"}), "timeoutSec"),
        ("job.get", serde_json::json!({}), "jobId"),
        ("job.get", serde_json::json!({"jobId":1,"why":2}), "why"),
        ("job.trigger", serde_json::json!({"jobId":1,"reson":"x"}), "did you mean `reason`"),
        // The call's own field, which is none of its body's.
        ("job.get", serde_json::json!({"jobid":1}), "unknown field `jobid`, expected `jobId`; did you mean `jobId`?"),
        ("run.get", serde_json::json!({"run":1}), "did you mean `runId`?"),
        ("tenant.get", serde_json::json!({"tenant":"a"}), "did you mean `tenantId`?"),
        ("job.pause", serde_json::json!({"job_id":1}), "expected `jobId` or `reason`; did you mean `jobId`?"),
        ("run.log", serde_json::json!({"runid":1}), "did you mean `runId`?"),
        ("job.create", serde_json::json!({"name":"a","idempotencykey":"k"}), "did you mean `idempotencyKey`?"),
        // A value of another type: its whole path, and what to write.
        (
            "job.get",
            serde_json::json!({"jobId":"etl_long"}),
            "jobId: \"etl_long\" is text, and an id is a number: job.find",
        ),
        ("run.get", serde_json::json!({"runId":"last"}), "runId: \"last\" is text, and an id is a number: job.runs"),
        (
            "job.create",
            serde_json::json!({"name":"a","trigger":{"type":"FIXED_RATE","everySec":"10"}}),
            "trigger.everySec: write the number 10 without quotes",
        ),
        // In a value, the names are the value's.
        (
            "job.create",
            serde_json::json!({"name":"a","trigger":{"type":"MANUAL"},"retryPolicy":{"idempotencyKey":1}}),
            "unknown field `idempotencyKey`, expected one of `maxAttempts`",
        ),
    ];
    for (method, params, text) in cases {
        let (code, message) = refused(method, params).await;
        assert_eq!(code, ErrorCode::InvalidArgument, "{method}: {message}");
        assert!(message.contains(text), "{method}: {message}");
    }
    let (code, message) = refused("job.creat", serde_json::json!({})).await;
    assert_eq!(code, ErrorCode::UnknownMethod);
    assert!(message.contains("did you mean job.create?"), "{message}");
    let (code, _) = refused(method::EXECUTOR_REGISTER, serde_json::json!({})).await;
    assert_eq!(code, ErrorCode::Forbidden, "this connection is a caller's");
    let (code, _) = refused(method::HELLO, serde_json::json!({})).await;
    assert_eq!(code, ErrorCode::IllegalState);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_node_answers_what_is_under_way_and_says_so() {
    let mut node = Node::start().await;
    let mut raw = node.raw().await;
    raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
    for id in 1..=50 {
        raw.request(id, SystemInfo::NAME, &serde_json::json!({})).await;
    }
    // Answers to some at least: then the others were read too, or never will be.
    assert!(raw.answer().await.1.is_ok());
    node.stop().await;
    let mut answers = 1;
    let error = loop {
        match raw.hear().await {
            RawMessage::Answer(_, answer) => {
                assert!(answer.is_ok());
                answers += 1;
            }
            RawMessage::Notification(_, params) => {
                break from_map::<campanile_schema::error::ApiError>(&params).unwrap();
            }
            RawMessage::Closed => panic!("closed without a word after {answers} answers"),
        }
    };
    assert_eq!(error.known(), ErrorCode::NotReady);
    assert!(tokio::net::TcpStream::connect(node.address).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_calls_too_often_is_told_when_to_come_back() {
    let node = Node::limited(5).await;
    // It would wait and ask again.
    let options = ClientOptions::new(vec![node.address.to_string()], OPERATOR).retry(Retry::NEVER);
    let client = Client::connect_with(options).await.unwrap();
    let mut refused = Vec::new();
    for _ in 0..40 {
        refused.extend(client.pool_list().await.err());
    }
    let error = refused.first().expect("40 calls at once, of 5 a second").api().unwrap();
    assert_eq!(error.known(), ErrorCode::RateLimited);
    assert!(error.retry_after_sec.is_some_and(|seconds| seconds > 0.0 && seconds <= 0.2), "{error:?}");
    let other = node.client(TENANT).await.job_list(JobFilter::default()).await;
    assert!(other.is_ok(), "each credential has its own: {other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_are_planned_and_applied() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let text =
        "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: a, namespace: fin}\nspec: {every: 1h, params: {n: 1}}\n";
    let body = |text: &str| ApplyBody {
        files: vec![ManifestFile { name: "a.yaml".to_owned(), text: text.to_owned() }],
        ..ApplyBody::default()
    };
    let plan = client.job_plan(body(text)).await.unwrap();
    assert_eq!((plan.create, plan.items[0].name.as_str()), (1, "a"));
    let done = client.job_apply(ApplyBody { plan_id: Some(plan.plan_id), ..body(text) }).await.unwrap();
    assert_eq!((done.created, done.failed), (1, 0));
    let plan = client.job_plan(body(&text.replace("n: 1", "n: 2"))).await.unwrap();
    let change = &plan.items[0].changes[0];
    assert_eq!((plan.change, change.field.as_str()), (1, "spec.params.n"));
    assert_eq!(change.after, Some(Payload("2".to_owned())));
    assert_eq!(code(client.job_plan(body("kind: Jub\n")).await), ErrorCode::InvalidArgument);
}
