//! A node and its executor, each a process of its own, and jobs that send requests.

use super::program::{Dev, campanile, eventually};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

pub struct World {
    pub dev: Dev,
    executor: Option<Child>,
    pub dir: tempfile::TempDir,
}

impl World {
    /// With an executor of these flags.
    pub fn start(flags: &[&str]) -> Self {
        let mut world = Self::alone();
        world.executor = Some(world.executor(flags, &[]));
        world
    }

    pub fn alone() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dev = Dev::start(&dir.path().join("dev"), &["--no-demo", "--no-executor"]);
        Self { dev, executor: None, dir }
    }

    pub fn executor(&self, flags: &[&str], environment: &[(&str, &str)]) -> Child {
        campanile()
            .args(["executor", "--rpc", &self.dev.rpc, "--token", &self.dev.token, "--log", "warn"])
            .args(flags)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub fn with(mut self, executor: Child) -> Self {
        self.executor = Some(executor);
        self
    }

    /// As by `kill -9`.
    pub fn kill_executor(&mut self) {
        let mut executor = self.executor.take().unwrap();
        executor.kill().unwrap();
        executor.wait().unwrap();
    }

    /// A job of this action, started once; the run's id. `more` is laid over the spec.
    pub fn fire(&self, action: Value, more: Value) -> u64 {
        let mut spec = json!({
            "name": format!("job{}", unique()), "trigger": {"type": "MANUAL"}, "action": action,
            "retryPolicy": {"maxAttempts": 1, "baseDelaySec": 0},
        });
        spec["action"]["kind"] = json!("HTTP");
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let (status, made) = self.dev.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!(status, 201, "{made}");
        let path = format!("/api/v1/jobs/{}/trigger", made["jobId"]);
        let (status, run) = self.dev.http("POST", &path, Some(&json!({})));
        assert!((200..300).contains(&status), "{run}");
        run["runId"].as_u64().unwrap()
    }

    pub fn run(&self, id: u64) -> Value {
        self.dev.http("GET", &format!("/api/v1/runs/{id}"), None).1
    }

    pub fn in_state(&self, id: u64, state: &str) -> Value {
        eventually(&format!("run {id} is {state}"), || {
            let run = self.run(id);
            (run["state"] == state).then_some(run)
        })
    }

    /// The run when it is final.
    pub fn ended(&self, id: u64) -> Value {
        eventually(&format!("run {id} ends"), || {
            let run = self.run(id);
            (!run["endedAt"].is_null()).then_some(run)
        })
    }

    /// Fires once, and gives state, error code and error message of the only attempt.
    pub fn outcome(&self, action: Value) -> (String, String, String) {
        let run = self.ended(self.fire(action, json!({})));
        let attempt = &run["attempts"][0];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&run["state"]), text(&attempt["errorCode"]), text(&attempt["errorMessage"]))
    }

    pub fn log(&self, id: u64) -> String {
        self.dev.run(&["run", "log", &id.to_string()]).ok()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut executor) = self.executor.take() {
            let _ = executor.kill();
            let _ = executor.wait();
        }
    }
}

fn unique() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
