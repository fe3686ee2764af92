//! How each code is provoked, by every way that can have it. A new code stops the compiler here.

use super::node::{Cli, Http, Node, OPERATOR, Rpc, TENANT};
use crate::program::eventually;
use campanile_schema::{
    error::ErrorCode,
    limits::{HTTP_BODY_BYTES, OPEN_RUNS_PER_JOB, RPC_FRAME_BYTES},
};
use serde_json::{Value, json};

/// Calls that must be refused, each alone.
#[derive(Default)]
pub struct Calls {
    pub http: Option<Http>,
    pub rpc: Option<Rpc>,
    pub cli: Option<Cli>,
}

impl Calls {
    fn new(http: Http, rpc: Rpc, cli: Cli) -> Option<Self> {
        Some(Self { http: Some(http), rpc: Some(rpc), cli: Some(cli) })
    }
    fn by_http(http: Http) -> Option<Self> {
        Some(Self { http: Some(http), ..Self::default() })
    }
}

fn http(method: &'static str, path: impl Into<String>, body: &Value) -> Http {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into() };
    Http { token: OPERATOR, method, path: path.into(), headers: &[], body }
}

fn rpc(method: &'static str, params: &Value) -> Rpc {
    Rpc::Call { token: OPERATOR, method, params: params.clone() }
}

/// Words between spaces; `FILE` is a file with this text.
fn cli(args: &str, file: impl Into<Vec<u8>>) -> Cli {
    Cli { token: OPERATOR, args: args.split(' ').map(str::to_owned).collect(), file: file.into() }
}

/// A job that cannot be created.
fn bad_job(spec: &Value) -> Option<Calls> {
    let refused =
        (http("POST", "/api/v1/jobs", spec), rpc("job.create", spec), cli("job create FILE", spec.to_string()));
    Calls::new(refused.0, refused.1, refused.2)
}

fn bad_schedule(trigger: Value) -> Option<Calls> {
    bad_job(&json!({"name": "x", "trigger": trigger}))
}

fn manual(name: &str) -> Value {
    json!({"name": name, "trigger": {"type": "MANUAL"}})
}

fn make(node: &Node, spec: &Value) -> u64 {
    node.done("POST", "/api/v1/jobs", spec)["jobId"].as_u64().unwrap()
}

fn post(node: &Node, path: &str) -> Value {
    node.done("POST", path, &json!({}))
}

/// The run of a node, which has ended, of a DAG that was deleted then.
fn of_a_deleted_dag(node: &Node) -> u64 {
    let job = make(node, &manual("of-a-dag"));
    let dag = node.done("POST", "/api/v1/jobs/dag", &json!({"dagId": "deleted-dag", "nodes": [job]}));
    let dag = dag["jobId"].as_u64().unwrap();
    let of_dag = post(node, &format!("/api/v1/jobs/{dag}/trigger"))["runId"].as_u64().unwrap();
    let got = |path: String| serde_json::from_str::<Value>(&node.page(&path)).unwrap();
    let run =
        eventually("the node has a run", || got(format!("/api/v1/jobs/{job}/runs"))["items"][0]["runId"].as_u64());
    post(node, &format!("/api/v1/runs/{run}/cancel"));
    eventually("the run of the DAG has ended", || {
        (got(format!("/api/v1/runs/{of_dag}"))["state"] == "FAILED").then_some(())
    });
    node.accepted(&http("DELETE", format!("/api/v1/jobs/{dag}"), &Value::Null));
    run
}

/// A run of a DAG that has failed and whose compensation was started.
fn compensated(node: &Node) -> u64 {
    make(node, &manual("undo"));
    let job = make(node, &manual("to-undo"));
    let mut spec = manual("undone-dag");
    spec["action"] = json!({"kind": "DAG", "nodes": [{"id": "A", "job": "to-undo"}]});
    spec["hooks"] = json!({"onFailure": [{"job": "undo", "compensation": true}]});
    let dag = make(node, &spec);
    let of_dag = post(node, &format!("/api/v1/jobs/{dag}/trigger"))["runId"].as_u64().unwrap();
    let got = |path: String| serde_json::from_str::<Value>(&node.page(&path)).unwrap();
    let run =
        eventually("the node has a run", || got(format!("/api/v1/jobs/{job}/runs"))["items"][0]["runId"].as_u64());
    post(node, &format!("/api/v1/runs/{run}/cancel"));
    eventually("the run of the DAG has ended", || {
        (got(format!("/api/v1/runs/{of_dag}"))["state"] == "FAILED").then_some(())
    });
    of_dag
}

/// A job that cannot be triggered now.
fn no_trigger(job: u64) -> Option<Calls> {
    Calls::new(
        http("POST", format!("/api/v1/jobs/{job}/trigger"), &json!({})),
        rpc("job.trigger", &json!({"jobId": job})),
        cli(&format!("job trigger {job}"), ""),
    )
}

const FROM: &str = "2026-02-01T00:00:00Z";

/// A job that cannot be backfilled now.
fn no_backfill(job: u64, to: &str) -> Option<Calls> {
    Calls::new(
        http("POST", format!("/api/v1/jobs/{job}/backfill"), &json!({"from": FROM, "to": to})),
        rpc("job.backfill", &json!({"jobId": job, "from": FROM, "to": to})),
        cli(&format!("backfill create {job} --from {FROM} --to {to}"), ""),
    )
}

/// None: not in a test of seconds, for the reason beside it.
pub fn calls(code: ErrorCode, node: &Node) -> Option<Calls> {
    match code {
        ErrorCode::InvalidArgument => bad_job(&json!({"nmae": "a"})),
        ErrorCode::MalformedBody => {
            let broken = Http { body: b"{\"name\":".to_vec(), ..http("POST", "/api/v1/jobs", &Value::Null) };
            Some(Calls { http: Some(broken), rpc: Some(Rpc::Bytes(b"GET / HTTP/1.1".to_vec())), cli: None })
        }
        ErrorCode::InvalidSchedule => bad_schedule(json!({"type": "CRON", "expr": "61 * * * *"})),
        ErrorCode::ScheduleNeverFires => bad_schedule(json!({"type": "CRON", "expr": "0 0 30 2 *"})),
        ErrorCode::UnknownTimezone => {
            bad_schedule(json!({"type": "CRON", "expr": "0 0 * * *", "timezone": "Europe/Berln"}))
        }
        ErrorCode::NoSecretKey => {
            let mut spec = manual("secret");
            spec["secretParams"] = json!({"k": "v"});
            bad_job(&spec)
        }
        ErrorCode::Unauthenticated => Calls::new(
            Http { token: "wrong", ..http("GET", "/api/v1/jobs", &Value::Null) },
            Rpc::Call { token: "wrong", method: "job.list", params: json!({}) },
            Cli { token: "wrong", ..cli("job list", "") },
        ),
        ErrorCode::Forbidden => Calls::new(
            Http { token: TENANT, ..http("POST", "/api/v1/system/pause", &json!({})) },
            Rpc::Call { token: TENANT, method: "system.pause", params: json!({}) },
            Cli { token: TENANT, ..cli("system pause", "") },
        ),
        ErrorCode::NotFound => Calls::new(
            http("GET", "/api/v1/jobs/4096", &Value::Null),
            rpc("job.get", &json!({"jobId": 4096})),
            cli("job get 4096", ""),
        ),
        ErrorCode::UnknownMethod => {
            let (http, rpc) = (http("GET", "/api/v1/job", &Value::Null), rpc("job.gte", &json!({})));
            Some(Calls { http: Some(http), rpc: Some(rpc), cli: None })
        }
        ErrorCode::MethodNotAllowed => Calls::by_http(http("DELETE", "/api/v1/jobs", &Value::Null)),
        ErrorCode::DuplicateName => {
            make(node, &manual("twin"));
            bad_job(&manual("twin"))
        }
        ErrorCode::IdempotencyKeyReused => {
            let first =
                Http { headers: &[("idempotency-key", "k1")], ..http("POST", "/api/v1/jobs", &manual("keyed")) };
            node.accepted(&first);
            let mut other = manual("keyed-other");
            let second = Http { body: other.to_string().into(), ..first };
            let by_cli = cli("job create FILE --idempotency-key k1", other.to_string());
            other["idempotencyKey"] = json!("k1");
            Calls::new(second, rpc("job.create", &other), by_cli)
        }
        ErrorCode::StaleVersion => {
            let job = make(node, &manual("versioned"));
            let mut body = json!({"version": 99, "spec": manual("versioned")});
            let by_http = http("PUT", format!("/api/v1/jobs/{job}"), &body);
            let by_cli = cli(&format!("job replace {job} --file FILE --version 99"), manual("versioned").to_string());
            body["jobId"] = json!(job);
            Calls::new(by_http, rpc("job.replace", &body), by_cli)
        }
        ErrorCode::IllegalState => {
            let job = make(node, &manual("waiting"));
            let run = post(node, &format!("/api/v1/jobs/{job}/trigger"))["runId"].as_u64().unwrap();
            Calls::new(
                http("POST", format!("/api/v1/runs/{run}/retry"), &json!({})),
                rpc("run.retry", &json!({"runId": run})),
                cli(&format!("run retry {run}"), ""),
            )
        }
        ErrorCode::RunActive => {
            let job = make(node, &manual("forbidding"));
            post(node, &format!("/api/v1/jobs/{job}/trigger"));
            no_trigger(job)
        }
        // An executor hears it as the outcome `s` of its result, never as an error.
        ErrorCode::StaleToken => None,
        ErrorCode::NoInstants => no_backfill(make(node, &manual("no-instants")), "2026-02-07T00:00:00Z"),
        ErrorCode::BackfillActive => {
            let mut spec = manual("with-a-past");
            spec["trigger"] = json!({"type": "CRON", "expr": "0 2 * * *"});
            let job = make(node, &spec);
            let body = json!({"from": FROM, "to": "2026-02-07T00:00:00Z"});
            // Nobody takes its runs.
            node.done("POST", &format!("/api/v1/jobs/{job}/backfill"), &body);
            no_backfill(job, "2026-02-07T00:00:00Z")
        }
        ErrorCode::Compensated => {
            let run = compensated(node);
            Calls::new(
                http("POST", format!("/api/v1/runs/{run}/retry"), &json!({})),
                rpc("run.retry", &json!({"runId": run})),
                cli(&format!("run retry {run}"), ""),
            )
        }
        ErrorCode::TooManyInstants => {
            let mut spec = manual("each-second");
            spec["trigger"] = json!({"type": "CRON", "expr": "* * * * * *"});
            no_backfill(make(node, &spec), "2026-06-01T00:00:00Z")
        }
        ErrorCode::DagCycle => {
            let job = make(node, &manual("in-a-circle"));
            let circle = json!({"dagId": "circle", "nodes": [job], "edges": [{"from": job, "to": job}]});
            Calls::new(
                http("POST", "/api/v1/jobs/dag", &circle),
                rpc("dag.create", &circle),
                cli(&format!("dag create circle --job {job} --edge {job}:{job}"), ""),
            )
        }
        ErrorCode::HistoryGone => {
            let run = of_a_deleted_dag(node);
            Calls::new(
                http("POST", format!("/api/v1/runs/{run}/retry"), &json!({})),
                rpc("run.retry", &json!({"runId": run})),
                cli(&format!("run retry {run}"), ""),
            )
        }
        ErrorCode::BodyTooLarge => {
            let large = Http { body: vec![b' '; HTTP_BODY_BYTES + 1], ..http("POST", "/api/v1/jobs", &Value::Null) };
            let mut frame = vec![0x94, 0x00, 0x01, 0xa1, b'x', 0x91, 0xc6];
            frame.extend_from_slice(&(RPC_FRAME_BYTES as u32).to_be_bytes());
            frame.resize(RPC_FRAME_BYTES + 64, 0);
            let spec = format!("{{\"name\": \"{}\"}}", "x".repeat(HTTP_BODY_BYTES));
            Calls::new(large, Rpc::Bytes(frame), cli("job create FILE", spec))
        }
        ErrorCode::UnsupportedMediaType => {
            let form = &[("content-type", "application/x-www-form-urlencoded")];
            Calls::by_http(Http { headers: form, ..http("POST", "/api/v1/jobs", &manual("form")) })
        }
        ErrorCode::JobPaused => {
            let job = make(node, &manual("paused"));
            post(node, &format!("/api/v1/jobs/{job}/pause"));
            no_trigger(job)
        }
        ErrorCode::TenantQuota => {
            node.done("PUT", "/api/v1/tenants/small", &json!({"maxJobs": 1}));
            let of_tenant = |name: &str| {
                let mut spec = manual(name);
                spec["tenantId"] = json!("small");
                spec
            };
            make(node, &of_tenant("first"));
            bad_job(&of_tenant("second"))
        }
        ErrorCode::JobQueueFull => {
            let mut spec = manual("crowded");
            spec["concurrencyPolicy"] = json!("ALLOW");
            let job = make(node, &spec);
            node.many("job.trigger", &json!({"jobId": job}), OPEN_RUNS_PER_JOB);
            no_trigger(job)
        }
        // It takes a node with another setting; `tests/interfaces/http_api` and `tests/rpc_calls` have one.
        ErrorCode::RateLimited => None,
        // It takes a bug.
        ErrorCode::Internal => None,
        // It takes more load than a test should make.
        ErrorCode::Overloaded => None,
        // Answered by a node that has no session; `tests/node/trouble` has such nodes.
        ErrorCode::NotReady => None,
        // It takes a cluster of two releases; `tests/cluster/releases.rs` has one.
        ErrorCode::UpgradeUnderWay => None,
        // It takes a disk that hangs.
        ErrorCode::Timeout => None,
    }
}
