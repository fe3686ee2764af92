//! A node whose scheduler has no session: it is starting, or its store cannot be written.
use super::{
    raw,
    server::{OPERATOR, caller},
};
use campanile_actors::scheduler::Scheduler;
use campanile_security::{
    auth::{Authenticator, Role},
    secrets::KeyRing,
    sessions::BrowserSessions,
};
use campanile_serve::{
    api::{self, Api},
    ops::Operations,
};
use std::sync::Arc;

const APPLIED: &str = r#"{"files":[{"name":"a.yaml","text":"apiVersion: campanile/v1\nkind: Job\nmetadata: {name: a}\nspec: {schedule: 0 2 * * *}\n"}]}"#;

#[test]
fn every_operation_says_not_ready_and_when_to_come_back() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let api = Api {
        operations: Operations::new(Scheduler::new()),
        authenticator: Authenticator::single(OPERATOR, caller("ops", Role::Operator, None)),
        sessions: Arc::new(BrowserSessions::new(Arc::new(KeyRing::default())).unwrap()),
        open_to_loopback: None,
        metrics: None,
        open_metrics: true,
        origins: Default::default(),
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = runtime.spawn(api::serve(listener, None, api, async {
        let _ = stopped.await;
    }));
    let document = api::openapi_document();
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{jobId}", "1")
            .replace("{runId}", "1")
            .replace("{tenantId}", "none")
            .replace("{backfillId}", "1")
            .replace("{bulkId}", "1")
            .replace("{target}", "db")
            .replace("{calendar}", "days");
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let (query, body) = match id {
                "job.create" => ("", r#"{"name":"a","trigger":{"type":"MANUAL"}}"#),
                "job.replace" => ("", r#"{"version":1,"spec":{"name":"a","trigger":{"type":"MANUAL"}}}"#),
                "job.rollback" => ("", r#"{"to":1}"#),
                "bulk.create" => ("", r#"{"action":"PAUSE","all":true}"#),
                "run.priority" => ("", r#"{"priority":900}"#),
                "run.confirm" => ("", r#"{"decision":"FAILED"}"#),
                "dag.create" => ("", r#"{"dagId":"d","nodes":[1]}"#),
                "job.backfill" | "job.replay" => ("", r#"{"from":"2026-02-01T00:00:00Z","to":"2026-02-07T00:00:00Z"}"#),
                "dag.mark" => ("", r#"{"node":"A","state":"SUCCESS"}"#),
                "tenant.set" | "target.set" | "calendar.preview" => ("", "{}"),
                "calendar.set" => ("", r#"{"spec":{}}"#),
                "job.find" => ("?name=a", ""),
                "job.plan" | "job.apply" => ("", APPLIED),
                // It is alone, whether it is ready or not.
                id if id.starts_with("cluster.") => continue,
                // Need no node.
                "schedule.preview" | "session.open" | "session.get" | "session.close" => continue,
                id if id.starts_with("page.") && id != "page.readyz" => continue,
                _ => ("", ""),
            };
            let headers = [("authorization", "Bearer operator-token")];
            let answer =
                raw::call(&address, &method.to_uppercase(), &format!("{path}{query}"), &headers, body.as_bytes());
            assert_eq!(answer.header("retry-after"), Some("1"), "{id}: {}", answer.text());
            answer.problem("503_NOT_READY");
            asked += 1;
        }
    }
    assert!(asked > 25, "{asked}");
    stop.send(()).unwrap();
    runtime.block_on(served).unwrap().unwrap();
}
