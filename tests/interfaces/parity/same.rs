//! The same calls through each interface of one node, and their answers as JSON, side by side.

use super::calls::{Call, changes, reads};
use crate::program;

use campanile_client::{Client, ClientError};
use campanile_schema::{
    audit::AuditView,
    error::ApiError,
    job::JobView,
    rpc::calls::{Listed, NoBody},
    view::{
        Created, DeadLetterView, ExecutorView, Gathered, LedgerView, LogView, NodeView, Page, PoolView, Preview,
        RunView, TenantView,
        backfill::BackfillView,
        bulk::BulkView,
        dag::{DagCreated, DagRunView},
        explain::ExplainView,
        outbox::OutboxMessageView,
        runs::{CausesView, LoadView, StatisticsView},
        targets::TargetView,
        versions::VersionView,
    },
};
use program::{Dev, eventually};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// An answer, or the code of a refusal.
type Answered = Result<Value, String>;
/// What of an answer is compared.
type Compared = fn(Answered) -> Answered;

/// Fields that differ from call to call whoever asks.
const VOLATILE: [&str; 5] = ["now", "lastHeartbeatAt", "credit", "updatedAt", "nextFireAt"];

/// Without nulls, empty things and volatile fields: interfaces may leave out what is not there.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            // Lists that only a cluster has.
            let lists = ["nodes", "missing", "failedHooks", "heldBy"];
            // As it is nearly always: only Python shows it then.
            let is_usual = |name: &str, value: &Value| name == "degradation" && *value == json!("NORMAL");
            let is_left_out =
                |name: &str, value: &Value| (lists.contains(&name) && *value == json!([])) || is_usual(name, value);
            let kept = fields
                .into_iter()
                .filter(|(name, value)| !VOLATILE.contains(&name.as_str()) && !is_left_out(name, value));
            let kept = kept.map(|(name, value)| (name, normal(value)));
            Value::Object(
                kept.filter(|(_, value)| !value.is_null() && *value != json!({}) && *value != json!(false)).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        other => other,
    }
}

async fn typed<T: DeserializeOwned + Serialize>(client: &Client, method: &'static str, params: &Value) -> Answered {
    match client.call::<_, T>(method, params).await {
        Ok(answer) => Ok(serde_json::to_value(answer).unwrap()),
        Err(ClientError::Api(ApiError { code, .. })) => Err(code),
        Err(error) => panic!("{method}: {error}"),
    }
}

async fn over_rpc(client: &Client, call: &Call) -> Answered {
    let (name, params) = (call.name, &call.rpc);
    match name {
        "job.create" => typed::<Created>(client, name, params).await,
        "job.get" | "job.find" | "job.replace" | "job.pause" | "job.resume" | "job.rollback" => {
            typed::<JobView>(client, name, params).await
        }
        "job.list" => typed::<Page<JobView>>(client, name, params).await,
        "job.runs" | "run.failed" | "run.list" => typed::<Page<RunView>>(client, name, params).await,
        "job.explain" | "run.explain" => typed::<ExplainView>(client, name, params).await,
        "job.statistics" => typed::<StatisticsView>(client, name, params).await,
        "job.versions" => typed::<Page<VersionView>>(client, name, params).await,
        "job.ledger" => typed::<LedgerView>(client, name, params).await,
        "job.backfill" | "job.replay" | "job.backfillGet" | "backfill.get" | "backfill.pause" | "backfill.resume"
        | "backfill.cancel" => typed::<BackfillView>(client, name, params).await,
        "bulk.list" => typed::<Page<BulkView>>(client, name, params).await,
        "bulk.create" | "bulk.get" | "bulk.abort" | "bulk.undo" => typed::<BulkView>(client, name, params).await,
        "dag.create" => typed::<DagCreated>(client, name, params).await,
        "dag.nodes" => typed::<DagRunView>(client, name, params).await,
        "job.trigger" | "run.get" | "run.cancel" | "run.retry" | "run.confirm" | "dlq.redrive" | "dag.retry"
        | "dag.mark" | "dag.pause" | "dag.resume" | "run.priority" => typed::<RunView>(client, name, params).await,
        "run.log" => typed::<LogView>(client, name, params).await,
        "dlq.list" => typed::<Page<DeadLetterView>>(client, name, params).await,
        "dlq.causes" => typed::<CausesView>(client, name, params).await,
        "schedule.load" => typed::<LoadView>(client, name, params).await,
        "outbox.list" => typed::<Page<OutboxMessageView>>(client, name, params).await,
        "schedule.preview" => typed::<Preview>(client, name, params).await,
        "tenant.get" | "tenant.set" => typed::<TenantView>(client, name, params).await,
        "audit.list" => typed::<Page<AuditView>>(client, name, params).await,
        "tenant.list" => typed::<Listed<TenantView>>(client, name, params).await,
        "target.get" | "target.set" => typed::<TargetView>(client, name, params).await,
        "target.list" => typed::<Listed<TargetView>>(client, name, params).await,
        "system.info" => typed::<NodeView>(client, name, params).await,
        "executor.list" => typed::<Gathered<ExecutorView>>(client, name, params).await,
        "pool.list" => typed::<Gathered<PoolView>>(client, name, params).await,
        _ => typed::<NoBody>(client, name, params).await,
    }
}

fn over_http(dev: &Dev, call: &Call) -> Answered {
    let (method, path, body) = &call.http;
    let (status, answer) = dev.http(method, path, (!body.is_null()).then_some(body));
    if (200..300).contains(&status) { Ok(answer) } else { Err(answer["code"].as_str().unwrap().to_owned()) }
}

fn over_cli(dev: &Dev, words: &[String]) -> Answered {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["-o", "json"]);
    let done = dev.run(&words);
    if done.code == 0 {
        return Ok(serde_json::from_str(&done.out).unwrap_or(Value::Null));
    }
    // What it is about may stand before the code.
    let is_code = |part: &&str| part.starts_with(|first: char| first.is_ascii_digit()) && part.contains('_');
    let code = done.err.split(": ").find(is_code);
    Err(code.unwrap_or_else(|| panic!("{words:?}: {}", done.err)).to_owned())
}

/// A Python with what the client needs, made once under the build directory.
fn python() -> PathBuf {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parity-python");
    let python = venv.join("bin/python");
    let run = |command: &mut Command| command.stderr(Stdio::inherit()).status().is_ok_and(|status| status.success());
    if !run(Command::new(&python).args(["-c", "import msgpack"]).stderr(Stdio::null())) {
        assert!(run(Command::new("python3").args(["-m", "venv"]).arg(&venv)));
        assert!(run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "msgpack"])));
    }
    python
}

fn over_python(python: &Path, dev: &Dev, call: &Call) -> Answered {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python)
        .env("PYTHONPATH", root.join("client/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(root.join("tests/interfaces/parity/call.py"))
        .args([&dev.rpc, &dev.token, call.name, &call.rpc.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", call.name);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    match said.get("code") {
        Some(code) => Err(code.as_str().unwrap().to_owned()),
        None => Ok(said["ok"].clone()),
    }
}

/// A node with a job that ran well and one whose run is a dead letter.
fn prepared(dev: &Dev) -> (u64, u64, u64, u64) {
    let make = |name: &str, shell: &str| {
        let args = ["job", "create", "--name", name, "--manual", "--sh", shell, "--max-attempts", "1", "-o", "json"];
        dev.run(&args).json()["jobId"].as_u64().unwrap()
    };
    let run = |job: u64| {
        let made = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&json!({}))).1;
        let run = made["runId"].as_u64().unwrap();
        let ended = dev.http("GET", &format!("/api/v1/runs/{run}?waitSec=30"), None).1;
        assert!(ended["endedAt"].is_string(), "{ended}");
        run
    };
    let (good, bad) = (make("good", "echo done"), make("bad", "exit 3"));
    (good, bad, run(good), run(bad))
}

/// What a change answers may rise with each, and a run's state goes on by itself; that it is done, and of which kind the answer is, may
/// not differ.
fn coarse(answer: Answered) -> Answered {
    answer.map(|value| {
        let fields = ["status", "runId", "quota", "paused"];
        json!(fields.iter().filter_map(|name| value.get(name).map(|value| (*name, value))).collect::<Vec<_>>())
    })
}

fn all_interfaces(python: Option<&Path>) {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(Client::connect(dev.rpc.clone(), dev.token.clone())).unwrap();
    let things = prepared(&dev);
    // The views show what has ended.
    let settled = || {
        let list = reads(things).into_iter().find(|call| call.name == "run.failed").unwrap();
        let failed = over_http(&dev, &list).unwrap();
        (failed["items"].as_array().map(Vec::len) == Some(1)).then_some(())
    };
    eventually("the failed run is listed", settled);
    let steps: [(Vec<Call>, Compared); 2] = [(reads(things), |answer| answer.map(normal)), (changes(things), coarse)];
    for (calls, shown) in steps {
        for call in calls {
            let http = shown(over_http(&dev, &call));
            let rpc = shown(runtime.block_on(over_rpc(&client, &call)));
            assert_eq!(rpc, http, "{}: RPC and HTTP", call.name);
            if let Some(words) = &call.cli {
                assert_eq!(shown(over_cli(&dev, words)), http, "{}: the command line and HTTP", call.name);
            }
            if let Some(python) = python {
                assert_eq!(shown(over_python(python, &dev, &call)), http, "{}: Python and HTTP", call.name);
            }
        }
    }
}

#[test]
fn http_rpc_and_the_command_line_give_the_same() {
    all_interfaces(None);
}

#[test]
#[ignore = "installs msgpack from the package index"]
fn python_gives_the_same_too() {
    all_interfaces(Some(&python()));
}
