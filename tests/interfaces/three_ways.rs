//! One meaning over HTTP, RPC and the command line, where a call depends on what another one answered.

use crate::program::{Dev, campanile, eventually};
use campanile_client::{Client, ClientError};
use campanile_schema::{job::JobView, view::RunView};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};
use tokio::runtime::Runtime;

struct Node {
    dev: Dev,
    runtime: Runtime,
    client: Client,
    _dir: tempfile::TempDir,
}

impl Node {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(Client::connect(dev.rpc.clone(), dev.token.clone())).unwrap();
        Self { dev, runtime, client, _dir: dir }
    }

    fn job(&self, spec: &Value) -> u64 {
        self.http("POST", "/api/v1/jobs", spec).unwrap()["jobId"].as_u64().unwrap()
    }

    fn view(&self, job: u64) -> Value {
        self.dev.http("GET", &format!("/api/v1/jobs/{job}"), None).1
    }

    fn run(&self, run: &Value) -> Value {
        self.dev.http("GET", &format!("/api/v1/runs/{run}?waitSec=30"), None).1
    }

    /// The answer, or code and message of the refusal.
    fn http(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let (status, answer) = self.dev.http(method, path, Some(body));
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        if status < 300 { Ok(answer) } else { Err(format!("{}: {}", text("code"), text("detail"))) }
    }

    fn rpc(&self, method: &'static str, params: &Value) -> Result<Value, String> {
        match method {
            "job.get" | "job.replace" => self.typed::<JobView>(method, params),
            _ => self.typed::<RunView>(method, params),
        }
    }

    fn typed<T: DeserializeOwned + Serialize>(&self, method: &'static str, params: &Value) -> Result<Value, String> {
        match self.runtime.block_on(self.client.call::<_, T>(method, params)) {
            Ok(answer) => Ok(serde_json::to_value(answer).unwrap()),
            Err(ClientError::Api(error)) => Err(format!("{}: {}", error.code, error.message)),
            Err(error) => panic!("{method}: {error}"),
        }
    }

    /// With JSON out.
    fn cli(&self, args: &[&str], input: &str) -> Result<Value, String> {
        let mut command: Command = campanile();
        command.env("CAMPANILE_SERVER", &self.dev.server).args(args).args(["-o", "json"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let done = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(serde_json::from_slice(&done.stdout).unwrap_or_default()) } else { Err(told) }
    }
}

fn with(mut value: Value, name: &str, field: Value) -> Value {
    value[name] = field;
    value
}

const KEEPER: &str = "[ \"$CAMPANILE_SECRET_password\" = hush-hush ]";

fn keeper() -> Value {
    json!({
        "name": "keeper", "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1},
        "secretParams": {"password": "hush-hush"},
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", KEEPER]},
    })
}

#[test]
fn a_job_that_was_read_can_be_sent_back_with_its_secrets_kept() {
    let node = Node::start();
    let job = node.job(&keeper());
    let path = format!("/api/v1/jobs/{job}");
    let version = |answer: Result<Value, String>| answer.unwrap()["version"].as_u64().unwrap();

    let read = node.view(job);
    assert_eq!(read["secretParams"], json!({"password": "***"}));
    assert_eq!(version(node.http("PUT", &path, &with(read, "timeoutSec", json!(61)))), 2);
    let read = node.view(job);
    assert_eq!(version(node.http("PUT", &path, &json!({"version": 2, "spec": read}))), 3);

    let read = node.rpc("job.get", &json!({"jobId": job})).unwrap();
    assert_eq!(version(node.rpc("job.replace", &with(read, "timeoutSec", json!(62)))), 4);
    let read = node.rpc("job.get", &json!({"jobId": job})).unwrap();
    assert_eq!(version(node.rpc("job.replace", &json!({"jobId": job, "version": 4, "spec": read}))), 5);

    let read = node.cli(&["job", "get", "keeper"], "").unwrap().to_string();
    node.cli(&["job", "replace", "keeper", "--dry-run", "--file", "-"], &read).unwrap();
    assert_eq!(version(node.cli(&["job", "replace", "keeper", "--file", "-"], &read)), 6);
    let yaml = node.dev.run(&["job", "get", "keeper", "-o", "yaml"]).ok();
    assert_eq!(version(node.cli(&["job", "replace", "keeper", "--file", "-"], &yaml)), 7);

    let view = node.view(job);
    assert_eq!((&view["timeoutSec"], &view["secretParams"]), (&json!(62), &json!({"password": "***"})));
    let run = node.http("POST", &format!("{path}/trigger"), &json!({})).unwrap();
    assert_eq!(node.run(&run["runId"])["state"], "SUCCESS", "the command got the secret that was stored");
}

#[test]
fn a_definition_of_another_job_or_version_does_not_replace_one() {
    let node = Node::start();
    let job = node.job(&json!({"name": "a", "trigger": {"type": "MANUAL"}}));
    let path = format!("/api/v1/jobs/{job}");
    let first = node.view(job);
    node.http("PUT", &path, &first).unwrap();
    let now = node.view(job);
    // Changed since it was read: also when the body says that it knows the present version.
    let nested = |spec: &Value| json!({"version": 2, "spec": spec});
    let cases = [
        ("spec.version", "409_STALE_VERSION", first.clone()),
        ("spec.jobId", "400_INVALID_ARGUMENT", with(now.clone(), "jobId", json!(4096))),
        ("spec.createdAt", "400_INVALID_ARGUMENT", with(now.clone(), "createdAt", json!("2026-01-01T00:00:00.000Z"))),
        ("spec.tiemoutSec", "400_INVALID_ARGUMENT", with(now.clone(), "tiemoutSec", json!(1))),
        ("spec.version", "400_INVALID_ARGUMENT", with(now.clone(), "version", json!("x"))),
        ("spec.trigger", "400_INVALID_ARGUMENT", with(now.clone(), "trigger", json!(["MANUAL"]))),
    ];
    for (field, code, spec) in cases {
        let named = |told: &str| told.contains(code) && told.contains(field.rsplit('.').next().unwrap());
        let by_http = node.http("PUT", &path, &nested(&spec)).unwrap_err();
        assert!(named(&by_http), "{field}: {by_http}");
        let by_rpc = node.rpc("job.replace", &with(nested(&spec), "jobId", json!(job))).unwrap_err();
        assert!(named(&by_rpc), "{field}: {by_rpc}");
        let by_cli =
            node.cli(&["job", "replace", "a", "--version", "2", "--file", "-"], &spec.to_string()).unwrap_err();
        assert!(named(&by_cli), "{field}: {by_cli}");
        let flat = node.http("PUT", &path, &spec).unwrap_err();
        assert!(named(&flat), "{field}: {flat}");
    }
    // The file says at which version it was read.
    let told = node.cli(&["job", "replace", "a", "--file", "-"], &first.to_string()).unwrap_err();
    assert!(told.contains("409_STALE_VERSION"), "{told}");
    let told = node.cli(&["job", "replace", "a", "--dry-run", "--file", "-"], &first.to_string()).unwrap_err();
    assert!(told.contains("409_STALE_VERSION"), "{told}");
    let meant = node.http("PUT", &path, &nested(&with(now.clone(), "tiemoutSec", json!(1)))).unwrap_err();
    assert!(meant.contains("timeoutSec"), "{meant}");
    // What changes by itself is not compared.
    let mut moved = now;
    for (name, value) in [("runCount", json!(99)), ("status", json!("PAUSED")), ("lastRunState", json!("FAILED"))] {
        moved[name] = value;
    }
    let replaced = node.http("PUT", &path, &moved).unwrap();
    assert_eq!(
        (&replaced["runCount"], &replaced["status"], &replaced["version"]),
        (&json!(0), &json!("ENABLED"), &json!(3))
    );
}

#[test]
fn a_run_shows_the_params_that_its_body_got() {
    let node = Node::start();
    let spec = with(with(keeper(), "params", json!({"a": 1, "deep": {"x": 1, "y": 2}})), "name", json!("merged"));
    let job = node.job(&spec);
    let trigger = format!("/api/v1/jobs/{job}/trigger");
    let over = json!({"deep": {"x": 7}, "b": 2});
    let run = node.http("POST", &trigger, &json!({"params": over})).unwrap()["runId"].clone();
    let effective = json!({"a": 1, "deep": {"x": 7}, "b": 2});
    let view = node.run(&run);
    assert_eq!(
        (&view["state"], &view["params"], &view["effectiveParams"]),
        (&json!("SUCCESS"), &over, &effective),
        "{view}"
    );
    assert_eq!(view["secretParams"], json!({"password": "***"}));
    assert!(!view.to_string().contains("hush-hush"));
    let by_cli = node.cli(&["run", "get", &run.to_string()], "").unwrap();
    assert_eq!((&by_cli["effectiveParams"], &by_cli["secretParams"]), (&effective, &view["secretParams"]));
    let by_rpc = node.rpc("run.get", &json!({"runId": run})).unwrap();
    assert_eq!((&by_rpc["effectiveParams"], &by_rpc["secretParams"]), (&effective, &view["secretParams"]));
    // Changed since: nobody knows them any more, and none is shown that was not used.
    let changed = with(node.view(job), "params", json!({"a": 2}));
    node.http("PUT", &format!("/api/v1/jobs/{job}"), &changed).unwrap();
    let view = node.run(&run);
    assert_eq!((&view["params"], &view["effectiveParams"], &view["secretParams"]), (&over, &Value::Null, &Value::Null));
    // Before the first attempt: by the definition of now.
    let spec = json!({"name": "waits", "trigger": {"type": "MANUAL"}, "params": {"a": 1}, "executorSelector": "none"});
    let waits = node.job(&spec);
    let run = node.http("POST", &format!("/api/v1/jobs/{waits}/trigger"), &json!({"params": {"b": 2}})).unwrap();
    let path = format!("/api/v1/runs/{}", run["runId"]);
    let shown = || node.dev.http("GET", &path, None).1["effectiveParams"].clone();
    assert_eq!(shown(), json!({"a": 1, "b": 2}));
    let changed = with(node.view(waits), "params", json!({"a": 3}));
    node.http("PUT", &format!("/api/v1/jobs/{waits}"), &changed).unwrap();
    eventually("the change is read", || (shown() == json!({"a": 3, "b": 2})).then_some(()));
}

#[test]
fn params_of_a_trigger_are_an_object() {
    let node = Node::start();
    for params in [json!({"a": 1}), json!({})] {
        let name = format!("job-{}", params.as_object().unwrap().len());
        let job = node.job(&json!({"name": name, "trigger": {"type": "MANUAL"}, "params": params}));
        for wrong in [json!([1]), json!("a"), json!(7)] {
            let body = json!({"params": wrong});
            let by_http = node.http("POST", &format!("/api/v1/jobs/{job}/trigger"), &body).unwrap_err();
            let by_rpc = node.rpc("job.trigger", &with(body, "jobId", json!(job))).unwrap_err();
            let args = ["job", "trigger", &job.to_string(), "--params", &wrong.to_string()];
            let by_cli = node.cli(&args, "").unwrap_err();
            for told in [by_http, by_rpc, by_cli] {
                assert!(told.contains("400_INVALID_ARGUMENT: params: an object is wanted"), "{wrong}: {told}");
            }
        }
    }
    let lists = node.job(&json!({"name": "lists", "trigger": {"type": "MANUAL"}, "params": [1]}));
    node.http("POST", &format!("/api/v1/jobs/{lists}/trigger"), &json!({"params": [2]})).unwrap();
}

#[test]
fn a_used_key_with_other_params_is_refused() {
    let node = Node::start();
    let spec = json!({"name": "keyed", "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW"});
    let job = node.job(&spec);
    let by_rpc = |params: Value| {
        let made = node.rpc("job.trigger", &json!({"jobId": job, "manualRunId": "t1", "params": params}));
        made.map(|run| run["runId"].clone())
    };
    let by_cli = |params: &str| {
        let made = node.cli(&["job", "trigger", "keyed", "--id", "t1", "--params", params], "");
        made.map(|run| run["runId"].clone())
    };
    let run = by_rpc(json!({"n": 1, "m": 2})).unwrap();
    assert!(run.is_u64(), "{run}");
    // The same params, in any order and through any interface, are the same request; also when the run has ended.
    for _ in 0..2 {
        assert_eq!((by_rpc(json!({"m": 2, "n": 1})), by_cli("{\"n\":1,\"m\":2}")), (Ok(run.clone()), Ok(run.clone())));
        for told in [by_rpc(json!({"n": 2})), by_rpc(json!({})), by_cli("{\"n\":2}"), by_cli("{}")] {
            let told = told.unwrap_err();
            assert!(told.contains("409_IDEMPOTENCY_KEY_REUSED"), "{told}");
            assert!(told.contains(&format!("run {run}")), "{told}");
        }
        let cancel = node.http("POST", &format!("/api/v1/runs/{run}/cancel"), &json!({}));
        assert!(cancel.is_ok() || cancel.unwrap_err().contains("409_ILLEGAL_STATE"));
    }
    let runs = node.dev.http("GET", &format!("/api/v1/jobs/{job}/runs"), None).1;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
}
