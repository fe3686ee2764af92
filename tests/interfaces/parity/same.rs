//! The same calls through each interface of one node, and their answers as JSON, side by side.

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

/// How an operation is called in each interface.
struct Call {
    name: &'static str,
    http: (&'static str, String, Value),
    rpc: Value,
    cli: Option<Vec<String>>,
}

fn call(name: &'static str, method: &'static str, path: &str, body: Value, rpc: Value, cli: &[&str]) -> Call {
    let cli = (!cli.is_empty()).then(|| cli.iter().map(|word| (*word).to_owned()).collect());
    Call { name, http: (method, path.to_owned(), body), rpc, cli }
}

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
            let is_left_out = |name: &str, value: &Value| lists.contains(&name) && *value == json!([]);
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

fn reads((good, _, run, failed): (u64, u64, u64, u64)) -> Vec<Call> {
    let preview =
        json!({"trigger": {"type": "CRON", "expr": "0 2 * * *"}, "after": "2026-02-24T08:00:00Z", "count": 2});
    let [job, at] = [format!("/api/v1/jobs/{good}"), format!("/api/v1/runs/{run}")];
    let [id, of] = [good.to_string(), run.to_string()];
    let (from, to) = ("2026-02-24T08:00:00Z", "2026-02-25T08:00:00Z");
    let get = |name, path: &str, rpc, cli: &[&str]| call(name, "GET", path, Value::Null, rpc, cli);
    vec![
        get("job.get", &job, json!({"jobId": good}), &["job", "get", &id]),
        get("job.get", "/api/v1/jobs/4096", json!({"jobId": 4096}), &["job", "get", "4096"]),
        get("job.find", "/api/v1/jobs/by-name?name=good", json!({"name": "good"}), &["job", "get", "good"]),
        get("job.list", "/api/v1/jobs?text=o", json!({"text": "o"}), &["job", "list", "--text", "o"]),
        get("job.list", "/api/v1/jobs?labels=%3Dx", json!({"labels": "=x"}), &["job", "list", "--labels", "=x"]),
        get("job.runs", &format!("{job}/runs"), json!({"jobId": good}), &["job", "runs", &id]),
        get(
            "job.ledger",
            &format!("{job}/ledger?from={from}&to={to}"),
            json!({"jobId": good, "from": from, "to": to}),
            &["job", "ledger", &id, "--from", from, "--to", to],
        ),
        get("run.get", &at, json!({"runId": run}), &["run", "get", &of]),
        // Refused: there is none. `tests/node/backfill` has one in each interface.
        get("job.backfillGet", &format!("{job}/backfill"), json!({"jobId": good}), &["backfill", "of", &id]),
        get("backfill.get", "/api/v1/backfills/4096", json!({"backfillId": 4096}), &["backfill", "get", "4096"]),
        // There is none, so one is refused. `tests/node/bulk` has one in each interface.
        get("bulk.list", "/api/v1/bulk", json!({}), &["bulk", "list"]),
        get("bulk.get", "/api/v1/bulk/24576", json!({"bulkId": 24576}), &["bulk", "get", "24576"]),
        // Refused: it is not a run of a DAG. `tests/node/dag.rs` has one in each interface.
        get("dag.nodes", &format!("{at}/nodes"), json!({"runId": run}), &["dag", "nodes", &of]),
        get("run.log", &format!("{at}/log"), json!({"runId": run}), &["run", "log", &of]),
        get(
            "run.log",
            &format!("{at}/log?contains=DONE&tail=1"),
            json!({"runId": run, "contains": "DONE", "tail": 1}),
            &["run", "log", &of, "--grep", "DONE", "--tail", "1"],
        ),
        get("run.failed", "/api/v1/runs?state=FAILED,TIMEOUT", json!({}), &["run", "failed"]),
        get("run.list", "/api/v1/runs", json!({}), &["run", "list"]),
        get(
            "run.list",
            &format!("/api/v1/runs?jobId={good}&source=MANUAL&pageSize=1"),
            json!({"jobId": good, "source": "MANUAL", "pageSize": 1}),
            &["run", "list", "--job", &id, "--source", "manual", "--page-size", "1"],
        ),
        get("run.list", "/api/v1/runs?state=DONE", json!({"state": "DONE"}), &["run", "list", "--state", "DONE"]),
        get("run.explain", &format!("{at}/explain"), json!({"runId": run}), &["run", "explain", &of]),
        get("job.explain", &format!("{job}/explain"), json!({"jobId": good}), &["job", "explain", &id]),
        get(
            "job.explain",
            &format!("{job}/explain?at={from}"),
            json!({"jobId": good, "at": from}),
            &["job", "explain", &id, "--at", from],
        ),
        // Refused: the answer to a good one tells when it was asked. `tests/node/lists.rs` has one.
        get(
            "job.statistics",
            &format!("{job}/statistics?window=1w"),
            json!({"jobId": good, "window": "1w"}),
            &["job", "statistics", &id, "--window", "1w"],
        ),
        get("job.versions", &format!("{job}/versions"), json!({"jobId": good}), &["job", "versions", &id]),
        get("dlq.list", "/api/v1/dead-letters", json!({}), &["dlq", "list"]),
        get(
            "dlq.list",
            &format!("/api/v1/dead-letters?jobId={good}"),
            json!({"jobId": good}),
            &["dlq", "list", "--job", &id],
        ),
        get("dlq.causes", "/api/v1/dead-letters/causes", json!({}), &["dlq", "causes"]),
        // Refused: the answer to a good one tells when it was asked. `tests/node/lists.rs` has one.
        get(
            "schedule.load",
            "/api/v1/schedules/load?minutes=0",
            json!({"minutes": 0}),
            &["job", "load", "--minutes", "0"],
        ),
        get("outbox.list", "/api/v1/outbox", json!({}), &["outbox", "list"]),
        get(
            "audit.list",
            "/api/v1/audit?operation=job.create&pageSize=1",
            json!({"operation": "job.create", "pageSize": 1}),
            &["audit", "list", "--operation", "job.create", "--page-size", "1"],
        ),
        get("audit.list", "/api/v1/audit?pageSize=0", json!({"pageSize": 0}), &["audit", "list", "--page-size", "0"]),
        call("schedule.preview", "POST", "/api/v1/schedules/preview", preview.clone(), preview, &[]),
        get("tenant.get", "/api/v1/tenants/default", json!({"tenantId": "default"}), &["tenant", "get", "default"]),
        get("tenant.list", "/api/v1/tenants", json!({}), &["tenant", "list"]),
        get("system.info", "/api/v1/cluster/node", json!({}), &["system", "info"]),
        get("executor.list", "/api/v1/executors", json!({}), &["system", "executors"]),
        get("pool.list", "/api/v1/pools", json!({}), &["system", "pools"]),
        get(
            "run.get",
            &format!("/api/v1/runs/{failed}"),
            json!({"runId": failed}),
            &["run", "get", &failed.to_string()],
        ),
    ]
}

/// Changes that end where they began, or that are refused: each interface may do them after the other.
fn changes((good, _, run, _): (u64, u64, u64, u64)) -> Vec<Call> {
    let post = |name, path: &str, rpc, cli: &[&str]| call(name, "POST", path, json!({}), rpc, cli);
    let [job, at] = [format!("/api/v1/jobs/{good}"), format!("/api/v1/runs/{run}")];
    let [id, of] = [good.to_string(), run.to_string()];
    let key = json!({"manualRunId": "once"});
    let (job_rpc, run_rpc) = (json!({"jobId": good}), json!({"runId": run}));
    let quota = json!({"maxConcurrentRuns": 7, "maxTriggersPerSec": 0.0, "maxJobs": 0, "maxQueuedRuns": 0});
    let mut of_tenant = quota.clone();
    of_tenant["tenantId"] = json!("other");
    let tenant = json!({"tenantId": "other"});
    let settings = json!({
        "maxConcurrentRuns": 0, "maxRunsPerSec": 5.0, "retryPercent": 10, "failurePercent": 50, "minAttempts": 10, "openSec": 10,
    });
    let target = json!({"tenantId": "other", "target": "db"});
    let mut of_target = settings.clone();
    of_target["tenantId"] = json!("other");
    of_target["target"] = json!("db");
    let taken = json!({"name": "good", "trigger": {"type": "MANUAL"}});
    let dag = json!({"dagId": "good", "nodes": [good]});
    // The job has no instants, and there is no backfill 4096.
    let (from, to) = ("2026-02-24T08:00:00Z", "2026-02-25T08:00:00Z");
    let (stretch, of_job) = (json!({"from": from, "to": to}), json!({"jobId": good, "from": from, "to": to}));
    let backfill = |verb: &'static str| ["backfill", verb, id.as_str(), "--from", from, "--to", to];
    let (gone, gone_rpc) = ("/api/v1/backfills/4096", json!({"backfillId": 4096}));
    vec![
        call(
            "job.trigger",
            "POST",
            &format!("{job}/trigger"),
            key,
            json!({"jobId": good, "manualRunId": "once"}),
            &["job", "trigger", &id, "--id", "once", "--wait"],
        ),
        post("job.pause", &format!("{job}/pause"), job_rpc.clone(), &["job", "pause", &id]),
        post("job.trigger", &format!("{job}/trigger"), job_rpc.clone(), &["job", "trigger", &id]),
        post("job.resume", &format!("{job}/resume"), job_rpc, &["job", "resume", &id]),
        // Refused: it has that version.
        call(
            "job.rollback",
            "POST",
            &format!("{job}/rollback"),
            json!({"to": 1}),
            json!({"jobId": good, "to": 1}),
            &["job", "rollback", &id, "--to", "1"],
        ),
        call(
            "job.create",
            "POST",
            "/api/v1/jobs",
            taken.clone(),
            taken,
            &["job", "create", "--name", "good", "--manual"],
        ),
        post("run.cancel", &format!("{at}/cancel"), run_rpc.clone(), &["run", "cancel", &of]),
        call(
            "run.confirm",
            "POST",
            &format!("{at}/confirm"),
            json!({"decision": "RERUN"}),
            json!({"runId": run, "decision": "RERUN"}),
            &["run", "confirm", &of, "rerun"],
        ),
        call(
            "bulk.create",
            "POST",
            "/api/v1/bulk",
            json!({"action": "PAUSE", "filter": {"text": "no such job"}, "dryRun": true}),
            json!({"action": "PAUSE", "filter": {"text": "no such job"}, "dryRun": true}),
            &["bulk", "pause", "--text", "no such job", "--dry-run"],
        ),
        // Refused: a filter without a field would mean everything.
        call(
            "bulk.create",
            "POST",
            "/api/v1/bulk",
            json!({"action": "PAUSE"}),
            json!({"action": "PAUSE"}),
            &["bulk", "pause"],
        ),
        post("bulk.abort", "/api/v1/bulk/24576/abort", json!({"bulkId": 24576}), &["bulk", "abort", "24576"]),
        post("bulk.undo", "/api/v1/bulk/24576/undo", json!({"bulkId": 24576}), &["bulk", "undo", "24576"]),
        call("job.backfill", "POST", &format!("{job}/backfill"), stretch.clone(), of_job.clone(), &backfill("create")),
        call("job.replay", "POST", &format!("{job}/replay"), stretch, of_job, &backfill("replay")),
        post("backfill.pause", &format!("{gone}/pause"), gone_rpc.clone(), &["backfill", "pause", "4096"]),
        post("backfill.resume", &format!("{gone}/resume"), gone_rpc.clone(), &["backfill", "resume", "4096"]),
        call("backfill.cancel", "DELETE", gone, Value::Null, gone_rpc, &["backfill", "cancel", "4096"]),
        post("dag.retry", &format!("{at}/nodes/retry"), run_rpc.clone(), &["dag", "retry", &of]),
        call(
            "dag.mark",
            "POST",
            &format!("{at}/nodes/mark"),
            json!({"node": "A", "state": "SUCCESS"}),
            json!({"runId": run, "node": "A", "state": "SUCCESS"}),
            &["dag", "mark", &of, "A", "success"],
        ),
        post("dag.pause", &format!("{at}/nodes/pause"), run_rpc.clone(), &["dag", "pause", &of]),
        post("dag.resume", &format!("{at}/nodes/resume"), run_rpc.clone(), &["dag", "resume", &of]),
        call(
            "run.priority",
            "POST",
            &format!("{at}/priority"),
            json!({"priority": 900}),
            json!({"runId": run, "priority": 900}),
            &["run", "priority", &of, "900"],
        ),
        // Its name is taken.
        call("dag.create", "POST", "/api/v1/jobs/dag", dag.clone(), dag, &["dag", "create", "good", "--job", &id]),
        post("dlq.redrive", &format!("/api/v1/dead-letters/{run}/redrive"), run_rpc.clone(), &["dlq", "redrive", &of]),
        post("dlq.discard", &format!("/api/v1/dead-letters/{run}/discard"), run_rpc.clone(), &["dlq", "discard", &of]),
        post("outbox.resend", &format!("/api/v1/outbox/{run}/resend"), run_rpc.clone(), &["outbox", "resend", &of]),
        post("outbox.discard", &format!("/api/v1/outbox/{run}/discard"), run_rpc, &["outbox", "discard", &of]),
        post("run.retry", "/api/v1/runs/4096/retry", json!({"runId": 4096}), &["run", "retry", "4096"]),
        call(
            "job.delete",
            "DELETE",
            "/api/v1/jobs/4096",
            Value::Null,
            json!({"jobId": 4096}),
            &["job", "delete", "4096"],
        ),
        call(
            "tenant.set",
            "PUT",
            "/api/v1/tenants/other",
            quota,
            of_tenant,
            &["tenant", "set", "other", "--max-concurrent-runs", "7"],
        ),
        call(
            "target.set",
            "PUT",
            "/api/v1/tenants/other/targets/db",
            settings,
            of_target,
            &["target", "set", "other", "db", "--max-runs-per-sec", "5"],
        ),
        call(
            "target.get",
            "GET",
            "/api/v1/tenants/other/targets/db",
            Value::Null,
            target,
            &["target", "get", "other", "db"],
        ),
        call(
            "target.list",
            "GET",
            "/api/v1/tenants/other/targets",
            Value::Null,
            tenant.clone(),
            &["target", "list", "other"],
        ),
        call(
            "target.delete",
            "DELETE",
            "/api/v1/tenants/other/targets/nobody",
            Value::Null,
            json!({"tenantId": "other", "target": "nobody"}),
            &["target", "delete", "other", "nobody"],
        ),
        post("tenant.pause", "/api/v1/tenants/other/pause", tenant.clone(), &["tenant", "pause", "other"]),
        post("tenant.resume", "/api/v1/tenants/other/resume", tenant, &["tenant", "resume", "other"]),
        // One that is not there, and one that has jobs.
        call(
            "tenant.delete",
            "DELETE",
            "/api/v1/tenants/nobody",
            Value::Null,
            json!({"tenantId": "nobody"}),
            &["tenant", "delete", "nobody"],
        ),
        call(
            "tenant.delete",
            "DELETE",
            "/api/v1/tenants/default",
            Value::Null,
            json!({"tenantId": "default"}),
            &["tenant", "delete", "default"],
        ),
        post("system.pause", "/api/v1/system/pause", json!({}), &["system", "pause"]),
        post("system.resume", "/api/v1/system/resume", json!({}), &["system", "resume"]),
        post("clock.accept", "/api/v1/cluster/clock/accept", json!({}), &["system", "accept-clock"]),
        // Refused by a node that is alone.
        post(
            "cluster.cordon",
            "/api/v1/cluster/members/n1/cordon",
            json!({"node": "n1"}),
            &["cluster", "cordon", "n1"],
        ),
    ]
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
