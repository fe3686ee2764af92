//! `run` against real processes: what a user does wrong, and what goes wrong in the middle. Each ends with a clear message and the
//! right exit code, keeps the report of what was seen, and leaves no process behind.
#![allow(clippy::unwrap_used)]

use campanile_client::{
    Client,
    schema::view::{JobFilter, TenantBody},
};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::{Instant, sleep},
};

/// Nothing here takes longer, even beside builds.
const PATIENCE: Duration = Duration::from_secs(90);
/// Processes whose parent was killed are gone within this time.
const LEFT_ALONE: Duration = Duration::from_secs(90);
/// Longer than any test needs: these runs are ended by the test.
const ENDLESS: &str = "seconds = 600";

/// The node's program, which `make test` builds before it tests.
fn server() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_campanile-loadtest"));
    let server = own.parent().unwrap().join("campanile");
    assert!(server.is_file(), "{} is not there: cargo build --bin campanile", server.display());
    server
}

/// A directory with a workload of one small load.
fn workload(rest: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "name = \"small\"\nabout = \"A test.\"\nsettle_s = 0\n{rest}\n[[load]]\nname = \"a\"\nkind = \"rate\"\nrate = 50\n[expect]\nruns_left = 0\n"
    );
    fs::write(dir.path().join("w.toml"), text).unwrap();
    dir
}

fn run(dir: &TempDir, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_campanile-loadtest"));
    command.arg("run").arg(dir.path().join("w.toml")).arg("--dir").arg(dir.path().join("runs")).args(more);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Exit code and all that it printed.
async fn ended(mut command: Command) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends by itself").unwrap();
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).join("\n");
    (output.status.code(), told)
}

/// A run with a node of its own. A test that fails asks it to end, so that it takes its processes along.
struct Running(Option<Child>);

impl Running {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.0.as_ref()?.id()? as i32)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

fn start(mut command: Command) -> Running {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(false);
    Running(Some(command.spawn().unwrap()))
}

async fn own_node(dir: &TempDir) -> Running {
    let mut command = run(dir, &["--server-bin"]);
    command.arg(server());
    start(command)
}

/// A node that somebody else started.
struct Foreign {
    child: Child,
    _dir: TempDir,
    http: String,
    rpc: String,
    token: String,
}

impl Foreign {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut node = Command::new(server());
        node.args(["dev", "--no-demo", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data"]).arg(dir.path());
        let mut child = node.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut value = async |name: &str| {
            let line = lines.next_line().await.unwrap().unwrap();
            line.strip_prefix(name).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (http, rpc, token) = (value("http=").await, value("rpc=").await, value("token=").await);
        Self { child, _dir: dir, http, rpc, token }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().unwrap() as i32).unwrap(), signal).unwrap();
    }

    async fn client(&self) -> Client {
        Client::connect(self.rpc.clone(), self.token.clone()).await.unwrap()
    }

    fn measured(&self, dir: &TempDir) -> Command {
        run(dir, &["--rpc", &self.rpc, "--token", &self.token])
    }
}

/// Processes whose command line has the text.
fn processes(text: &str) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
    };
    all.filter(has).filter_map(Pid::from_raw).collect()
}

/// Waits until executors have told of bodies: the run is in its middle.
async fn in_the_middle(dir: &TempDir) {
    let file = dir.path().join("runs/small/stats-executor-1.jsonl");
    let begin = Instant::now();
    while fs::metadata(&file).map_or(0, |meta| meta.len()) == 0 {
        assert!(begin.elapsed() < PATIENCE, "no executor tells of bodies");
        sleep(Duration::from_millis(20)).await;
    }
}

fn kill_first_executor(dir: &TempDir) {
    let dir = dir.path().canonicalize().unwrap();
    let victims = processes(&format!("{}/runs/small/stats-executor-1.jsonl", dir.display()));
    kill_process(victims[0], Signal::KILL).unwrap();
}

/// Exit code, report, and what was printed of a run that was started before.
async fn outcome(mut running: Running, dir: &TempDir) -> (Option<i32>, Value, String) {
    let pid = running.pid().unwrap();
    let ends = running.0.take().unwrap().wait_with_output();
    let Ok(output) = tokio::time::timeout(PATIENCE, ends).await else {
        let _ = kill_process(pid, Signal::TERM);
        panic!("it does not end");
    };
    let output = output.unwrap();
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).join("\n");
    let run = dir.path().join("runs/small");
    assert!(fs::read_to_string(run.join("report.html")).unwrap().ends_with("</html>\n"));
    let report = serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap();
    nothing_is_left(dir.path());
    (output.status.code(), report, told)
}

fn nothing_is_left(dir: &Path) {
    let left = processes(dir.to_str().unwrap());
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[tokio::test]
async fn a_slip_is_told_with_its_place_before_anything_starts() {
    let dir = workload("seconds = 2\nsetle_s = 1");
    let (code, told) = ended(run(&dir, &[])).await;
    let message = format!("{}:5:1: unknown field `setle_s`", dir.path().join("w.toml").display());
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains(&message), "{told}");
    assert!(told.contains("did you mean `settle_s`?"), "{told}");
    assert!(!dir.path().join("runs").exists());
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_to_do() {
    let dir = workload("seconds = 2");
    let mut unknown = Command::new(env!("CARGO_BIN_EXE_campanile-loadtest"));
    unknown.args(["run", "stedy"]);
    let (code, told) = ended(unknown).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("there is no such file; did you mean steady?"), "{told}");

    let (code, told) = ended(run(&dir, &["--rpc", "127.0.0.1:1", "--token", "t"])).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("no node answers at 127.0.0.1:1"), "{told}");
    assert!(told.contains("is it running"), "{told}");

    let (code, told) = ended(run(&dir, &[])).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("it holds an earlier run"), "{told}");
    nothing_is_left(dir.path());
}

#[tokio::test]
async fn a_disk_without_room_is_told_before_anything_starts() {
    let dir = workload("seconds = 2");
    let (code, told) = ended(run(&dir, &["--least-free-mib", "999999999999"])).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("MiB free"), "{told}");
    assert!(told.contains("name a directory on another disk"), "{told}");
}

#[tokio::test]
async fn ctrl_c_keeps_the_report_and_leaves_nothing() {
    let dir = workload(ENDLESS);
    let child = own_node(&dir).await;
    let pid = child.pid().unwrap();
    in_the_middle(&dir).await;
    assert!(processes(dir.path().to_str().unwrap()).len() >= 4, "harness, node, two executors");
    kill_process(pid, Signal::INT).unwrap();
    let (code, report, told) = outcome(child, &dir).await;
    assert_eq!(code, Some(130), "{told}");
    assert_eq!(report["stopped"], "somebody stopped it", "{told}");
    assert!(report["all"]["start"]["count"].as_u64().unwrap() > 0, "{told}");
}

/// Nobody is left to stop the node and the executors: they end by themselves.
#[tokio::test]
async fn a_killed_harness_leaves_nothing() {
    let dir = workload(ENDLESS);
    let mut child = own_node(&dir).await;
    in_the_middle(&dir).await;
    kill_process(child.pid().unwrap(), Signal::KILL).unwrap();
    child.0.take().unwrap().wait().await.unwrap();
    let begin = Instant::now();
    while !processes(dir.path().to_str().unwrap()).is_empty() && begin.elapsed() < LEFT_ALONE {
        sleep(Duration::from_millis(50)).await;
    }
    let left = processes(dir.path().to_str().unwrap());
    for pid in &left {
        let _ = kill_process(*pid, Signal::KILL);
    }
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[tokio::test]
async fn a_dead_executor_is_reported_and_the_run_goes_on() {
    let dir = workload("seconds = 8\ndrain_s = 30");
    let child = own_node(&dir).await;
    in_the_middle(&dir).await;
    kill_first_executor(&dir);
    let (code, report, told) = outcome(child, &dir).await;
    assert!(report["stopped"].is_null(), "{told}");
    assert_eq!(code, Some(0), "{told}");
    assert!(report["happened"][0]["what"].as_str().unwrap().contains("executor-1"), "{told}");
}

#[tokio::test]
async fn a_dead_executor_ends_the_run_where_the_workload_says_so() {
    let dir = workload(&format!("{ENDLESS}\n[executors]\non_death = \"stop\""));
    let child = own_node(&dir).await;
    in_the_middle(&dir).await;
    kill_first_executor(&dir);
    let (code, report, told) = outcome(child, &dir).await;
    let why = report["stopped"].as_str().unwrap();
    assert_eq!(code, Some(1), "{told}");
    assert!(why.contains("executor-1"), "{told}");
    assert!(why.contains("on_death"), "{told}");
}

#[tokio::test]
async fn a_dead_node_ends_the_run() {
    let dir = workload(ENDLESS);
    let child = own_node(&dir).await;
    in_the_middle(&dir).await;
    let node = processes(&format!("--data {}", dir.path().canonicalize().unwrap().display()));
    kill_process(node[0], Signal::KILL).unwrap();
    let (code, report, told) = outcome(child, &dir).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(report["stopped"].as_str().unwrap().contains("the node ended by itself"), "{told}");
}

#[tokio::test]
async fn a_node_that_runs_already_is_measured_and_left_as_it_was() {
    let dir = workload("seconds = 2");
    let node = Foreign::start().await;
    let mut command = node.measured(&dir);
    command.args(["--http", &node.http]);
    let (code, told) = ended(command).await;
    assert_eq!(code, Some(0), "{told}");
    let report: Value = serde_json::from_slice(&fs::read(dir.path().join("runs/small/report.json")).unwrap()).unwrap();
    assert_eq!((&report["all"]["due"], &report["all"]["start"]["count"]), (&100.into(), &100.into()), "{told}");
    assert!(report["seconds"][1]["openRuns"].is_number(), "{told}");
    assert_eq!(report["all"]["durable"]["count"], 100, "{told}");
    assert_eq!(node.client().await.job_list(JobFilter::default()).await.unwrap().items, []);
}

/// Nobody tells of the end of a process that others started; what it does not answer does.
#[tokio::test]
async fn a_foreign_node_that_dies_ends_the_run_and_what_it_keeps_is_told() {
    let dir = workload(ENDLESS);
    let node = Foreign::start().await;
    let running = start(node.measured(&dir));
    in_the_middle(&dir).await;
    node.signal(Signal::KILL);
    let (code, report, told) = outcome(running, &dir).await;
    let why = report["stopped"].as_str().unwrap();
    assert_eq!(code, Some(1), "{told}");
    assert!(why.contains(&node.rpc), "{told}");
    assert!(why.contains("did not answer"), "{told}");
    assert!(report["all"]["start"]["count"].as_u64().unwrap() > 0, "{told}");
    assert!(told.contains("left behind on the node: at least 50 of 50 jobs"), "{told}");
}

#[tokio::test]
async fn ctrl_c_ends_cleaning_and_the_report_is_there_before() {
    let dir = workload(ENDLESS);
    let node = Foreign::start().await;
    let running = start(node.measured(&dir));
    in_the_middle(&dir).await;
    // It stands still, so that nothing can be deleted.
    node.signal(Signal::STOP);
    let report = dir.path().join("runs/small/report.html");
    let begin = Instant::now();
    while !report.exists() {
        assert!(begin.elapsed() < PATIENCE, "no report");
        sleep(Duration::from_millis(20)).await;
    }
    kill_process(running.pid().unwrap(), Signal::INT).unwrap();
    let (code, _, told) = outcome(running, &dir).await;
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("left behind on the node: at least 50 of 50"), "{told}");
    assert!(told.contains("somebody stopped it"), "{told}");
}

/// Many jobs that are never due, of a tenant with limits.
const MANY: &str = "seconds = 5\n[[tenant]]\nname = \"lent\"\nmax_concurrent_runs = 7\n[[tenant]]\nname = \"kept\"\nmax_concurrent_runs = 7\n\
    [[load]]\nname = \"idle\"\nkind = \"idle\"\njobs = 100000\ntenant = \"lent\"";

#[tokio::test]
async fn ctrl_c_before_the_first_instant_leaves_a_foreign_node_as_it_was() {
    let dir = workload(MANY);
    let node = Foreign::start().await;
    let client = node.client().await;
    let kept = TenantBody { max_concurrent_runs: 3, ..TenantBody::default() };
    client.tenant_set("kept", kept.clone()).await.unwrap();
    let mut running = start(node.measured(&dir));
    let begin = Instant::now();
    while client.job_list(JobFilter::default()).await.unwrap().items.is_empty() {
        assert!(begin.elapsed() < PATIENCE, "no job is created");
        sleep(Duration::from_millis(5)).await;
    }
    kill_process(running.pid().unwrap(), Signal::INT).unwrap();
    let output = tokio::time::timeout(PATIENCE, running.0.take().unwrap().wait_with_output()).await.unwrap().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("stopped before the first instant"), "{told}");
    assert_eq!(client.job_list(JobFilter::default()).await.unwrap().items, [], "{told}");
    assert!(client.tenant_get("lent").await.is_err(), "{told}");
    assert_eq!(client.tenant_get("kept").await.unwrap().quota, kept, "{told}");
}

#[tokio::test]
async fn jobs_that_are_refused_in_the_middle_leave_a_foreign_node_as_it_was() {
    let dir = workload("seconds = 5\n[[load]]\nname = \"idle\"\nkind = \"idle\"\njobs = 2000\ntenant = \"full\"");
    let node = Foreign::start().await;
    let client = node.client().await;
    client.tenant_set("full", TenantBody { max_jobs: 1_200, ..TenantBody::default() }).await.unwrap();
    let (code, told) = ended(node.measured(&dir)).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("the node does not create the job"), "{told}");
    assert_eq!(client.job_list(JobFilter::default()).await.unwrap().items, [], "{told}");
}

#[tokio::test]
async fn jobs_are_created_through_http_at_an_address_that_is_looked_at_before() {
    let dir = workload("seconds = 2\ncreate = \"http\"");
    let node = Foreign::start().await;
    for (http, code, sought) in [
        (None, 2, "give the node's HTTP address with --http"),
        (Some(&node.rpc), 2, "is --http the node's HTTP address?"),
        (Some(&node.http), 0, "GREEN small"),
    ] {
        let mut command = node.measured(&dir);
        command.args(http.iter().flat_map(|http| ["--http", http.as_str()]));
        let (got, told) = ended(command).await;
        assert_eq!(got, Some(code), "{http:?}: {told}");
        assert!(told.contains(sought), "{http:?}: {told}");
        assert_eq!(node.client().await.system_info().await.unwrap().jobs, 0, "{told}");
        let _ = fs::remove_dir_all(dir.path().join("runs"));
    }
    let page = format!("http://{}/metrics", node.http.trim_start_matches("http://"));
    let asked = ureq::get(page).header("Authorization", format!("Bearer {}", node.token));
    let metrics = asked.call().unwrap().body_mut().read_to_string().unwrap();
    let creates = metrics.lines().filter(|line| line.contains("operation=\"job.createLines\""));
    assert!(creates.count() > 0, "{metrics}");
}

/// A full disk under the harness's own files, which is a limit of file sizes here.
#[tokio::test]
async fn on_a_full_disk_the_verdict_is_printed_and_executors_that_could_not_write_are_named() {
    let dir = workload("seconds = 8\ndrain_s = 30");
    let mut running = own_node(&dir).await;
    in_the_middle(&dir).await;
    let mut full = processes(&format!("{}/runs/small/stats-executor-", dir.path().canonicalize().unwrap().display()));
    assert_eq!(full.len(), 2);
    full.extend(running.pid());
    for pid in full {
        prlimit(Some(pid), Resource::Fsize, Rlimit { current: Some(1), maximum: Some(1) }).unwrap();
    }
    let output = tokio::time::timeout(PATIENCE, running.0.take().unwrap().wait_with_output()).await.unwrap().unwrap();
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).join("\n");
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("the report cannot be written"), "{told}");
    assert!(told.contains("400 due, "), "{told}");
    assert!(told.contains("RED small: "), "{told}");
    assert!(told.contains("executor-2 ended with exit status: 2 when it was stopped"), "{told}");
    nothing_is_left(dir.path());
}

#[tokio::test]
async fn targets_are_told_with_medians_and_fatal_only_when_asked() {
    let dir = workload("seconds = 2\n[target]\np99_ms = 0.001\nmax_ms = 600000");
    let mut command = run(&dir, &["--repeat", "2", "--server-bin"]);
    command.arg(server());
    let (code, told) = ended(command).await;
    assert_eq!(code, Some(0), "{told}");
    let summary = fs::read_to_string(dir.path().join("runs/summary.md")).unwrap();
    assert!(told.contains(&summary), "{told}");
    assert!(summary.contains("2 of 2 runs green"), "{summary}");
    assert!(summary.contains("at most 0.00 | **missed** by "), "{summary}");
    assert!(summary.contains("| at most 600000 | held |"), "{summary}");
    assert!(summary.contains("| small | lag_p99_ms | "), "{summary}");
    for n in ["1", "2"] {
        let page = fs::read_to_string(dir.path().join("runs/small").join(n).join("report.html")).unwrap();
        assert!(page.contains("missed by"), "{page}");
        assert!(page.contains("history lag p99, ms"), "{page}");
    }
    let strict = workload("seconds = 2\n[target]\np99_ms = 0.001");
    let mut command = run(&strict, &["--strict", "--server-bin"]);
    command.arg(server());
    let (code, told) = ended(command).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("target missed: p99_ms"), "{told}");
    nothing_is_left(strict.path());
}

#[tokio::test]
async fn a_restarted_node_is_timed_until_the_first_trigger() {
    let phases = "[[phase]]\nname = \"p\"\nseconds = 2\n[[phase]]\nname = \"stopped\"\nseconds = 6\nrestart = \"term\"\n\
        [[phase]]\nname = \"killed\"\nseconds = 6\nrestart = \"kill\"";
    let dir = workload(phases);
    let node = Foreign::start().await;
    let (code, told) = ended(node.measured(&dir)).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("leave --rpc out"), "{told}");
    fs::remove_dir_all(dir.path().join("runs")).unwrap();
    let (code, report, told) = outcome(own_node(&dir).await, &dir).await;
    assert_eq!(code, Some(0), "{told}");
    let restarts = report["totals"]["restarts"].as_array().unwrap();
    assert_eq!(restarts.iter().map(|r| r["phase"].as_str().unwrap()).collect::<Vec<_>>(), ["stopped", "killed"]);
    for restarted in restarts {
        let (seconds, rss) = (restarted["firstTriggerS"].as_f64().unwrap(), restarted["rssMb"].as_f64().unwrap());
        assert!((0.01..60.0).contains(&seconds), "{restarted}");
        assert!(rss > 1.0, "{restarted}");
    }
    let second = report["happened"][0]["second"].as_i64().unwrap();
    assert_eq!((second, report["all"]["due"].as_u64()), (2, Some(700)), "{told}");
}
