//! The stories that must work as they are told: what users do with the program, and what becomes of it. Each is written once, and runs
//! on one node and on a cluster of two nodes on Apache Cassandra ([`place`]), with real processes. On the cluster they are ignored by
//! default and run by `make test-cql`.
//!
//! `tests/node/dag/story_01.rs` tells story 1 once more and looks at the nodes of the DAG at each turn.

mod place;
mod story_01;
mod story_02;
mod story_03;
mod story_04;
mod story_05;
mod story_06;
mod story_07;
mod story_08;
mod story_09;
mod story_11;
mod story_12;

use crate::program::eventually;
use place::{Place, Turn, Worker};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// A test of each story: its number, what it says, and whether it needs the shared cluster for itself.
macro_rules! stories {
    ($($number:literal $module:ident::$name:ident $turn:ident,)+) => {
        mod on_one_node {
            $(
                #[test]
                fn $name() {
                    super::$module::$name(&super::Story::on_one_node($number));
                }
            )+
        }

        /// `make test-cql` finds them by the end of this name.
        mod on_a_cluster_cql {
            $(
                #[test]
                #[ignore = "needs a CQL server: make test-cql"]
                fn $name() {
                    super::$module::$name(&super::Story::on_the_cluster($number, super::Turn::$turn()));
                }
            )+
        }
    };
}

stories! {
    1 story_01::story_01_b_fails_at_night_and_in_the_morning_it_is_repaired_and_c_follows alone,
    2 story_02::story_02_the_same_trigger_request_twice_makes_one_run shared,
    3 story_03::story_03_three_failures_a_dead_letter_repaired_in_the_morning_and_redriven shared,
    4 story_04::story_04_a_backfill_during_a_peak_does_not_slow_live_runs shared,
    5 story_05::story_05_a_tenant_is_paused_and_resumed shared,
    6 story_06::story_06_executors_die_and_their_runs_move_and_a_late_result_is_refused shared,
    7 story_07::story_07_a_slow_database_is_not_flattened_by_retries shared,
    8 story_08::story_08_a_wrong_cron_is_contained_by_the_quota_and_other_tenants_go_on shared,
    9 story_09::story_09_a_cyclic_dag_is_refused_by_name_and_nothing_was_changed shared,
    11 story_11::story_11_fire_once_now_after_an_outage_saves_the_daily_report alone,
    12 story_12::story_12_a_secret_param_is_masked_everywhere shared,
}

/// Tenant and pool of a story.
fn name_of(number: u32) -> String {
    format!("story-{number:02}")
}

/// One story: its place, and what its bodies leave.
struct Story {
    place: Arc<Place>,
    /// Tenant and pool.
    name: String,
    dir: tempfile::TempDir,
    triggers: AtomicU32,
    _turn: Turn,
}

impl Story {
    fn on_one_node(number: u32) -> Self {
        Self::at(Arc::new(Place::one_node()), number, Turn::Own)
    }

    fn on_the_cluster(number: u32, turn: Turn) -> Self {
        Self::at(Place::shared_cluster(), number, turn)
    }

    fn at(place: Arc<Place>, number: u32, turn: Turn) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { place, name: name_of(number), dir, triggers: AtomicU32::default(), _turn: turn }
    }

    /// A call that is carried out; its answer.
    fn done(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.place.http(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    fn get(&self, path: &str) -> Value {
        self.done("GET", path, None)
    }

    fn items(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().unwrap().clone()
    }

    /// A job of the story's tenant and pool, with these fields; its id. It is MANUAL and ALLOW unless they say otherwise.
    fn job(&self, name: &str, fields: &Value) -> u64 {
        self.job_of(&self.name, name, fields)
    }

    fn job_of(&self, tenant: &str, name: &str, fields: &Value) -> u64 {
        let mut spec = json!({
            "name": name, "tenantId": tenant, "executorSelector": self.name, "trigger": {"type": "MANUAL"},
            "concurrencyPolicy": "ALLOW",
        });
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        self.done("POST", "/api/v1/jobs", Some(&spec))["jobId"].as_u64().unwrap()
    }

    /// An action that writes the job's name down before all else.
    fn body(&self, name: &str, shell: &str) -> Value {
        let shell = format!("echo {name} >> {}; {shell}", self.path("began"));
        json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", shell]})
    }

    fn path(&self, what: &str) -> String {
        self.dir.path().join(what).display().to_string()
    }

    /// Shell: waits until it happens.
    fn waits(&self, what: &str) -> String {
        format!("until [ -e {} ]; do sleep 0.05; done", self.path(what))
    }

    fn happens(&self, what: &str) {
        fs::write(self.path(what), "").unwrap();
    }

    /// What bodies wrote, line by line.
    fn lines(&self, file: &str) -> Vec<String> {
        fs::read_to_string(self.path(file)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// How many bodies of a job began.
    fn began(&self, name: &str) -> usize {
        self.lines("began").iter().filter(|line| *line == name).count()
    }

    fn executor(&self, id: &str, slots: u32) -> Worker {
        self.place.executor(&self.name, &self.executor_id(id), slots)
    }

    fn executor_id(&self, id: &str) -> String {
        format!("{}-{id}", self.name)
    }

    /// Its new run.
    fn trigger(&self, job: u64) -> u64 {
        self.trigger_with(job, &json!({}))
    }

    fn trigger_with(&self, job: u64, params: &Value) -> u64 {
        let key = format!("trigger-{}", self.triggers.fetch_add(1, Ordering::Relaxed));
        let body = json!({"manualRunId": key, "params": params});
        self.done("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&body))["runId"].as_u64().unwrap()
    }

    fn run(&self, run: u64) -> Value {
        self.get(&format!("/api/v1/runs/{run}"))
    }

    /// Newest first.
    fn runs(&self, job: u64) -> Vec<Value> {
        self.items(&format!("/api/v1/jobs/{job}/runs?pageSize=1000"))
    }

    fn until(&self, run: u64, state: &str) -> Value {
        eventually(&format!("run {run} is {state}"), || Some(self.run(run)).filter(|view| view["state"] == state))
    }

    /// What became of the instants of a job.
    fn ledger(&self, job: u64) -> Vec<Value> {
        let all = "from=1970-01-01T00:00:00Z&to=2200-01-01T00:00:00Z&pageSize=1000";
        self.items(&format!("/api/v1/jobs/{job}/ledger?{all}"))
    }

    /// Operations of the audit trail that are about the tenant, with their reasons and outcomes.
    fn audit(&self, operation: &str) -> Vec<Value> {
        self.items(&format!("/api/v1/audit?tenantId={}&operation={operation}", self.name))
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}bodies: {:?}", self.place.logs(), self.lines("began"));
        }
    }
}

/// A trigger that is due once a day, the next time at this second (milliseconds since 1970).
fn daily(at_ms: i64, more: &Value) -> Value {
    let second = at_ms / 1_000 % 86_400;
    let expr = format!("{} {} {} * * *", second % 60, second / 60 % 60, second / 3_600);
    let mut trigger = json!({"type": "CRON", "expr": expr, "dialect": "UNIX", "timezone": "UTC"});
    for (field, value) in more.as_object().unwrap() {
        trigger[field] = value.clone();
    }
    trigger
}

/// A trigger that is due every second.
fn every_second() -> Value {
    json!({"type": "CRON", "expr": "* * * * * *", "dialect": "UNIX", "timezone": "UTC"})
}

/// Attempts as policies that fail three times soon.
fn three_attempts() -> Value {
    json!({"maxAttempts": 3, "backoff": "FIXED", "baseDelaySec": 0.2, "jitter": 0})
}
