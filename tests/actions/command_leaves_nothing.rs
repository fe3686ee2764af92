//! Whatever happens, no process of a command outlives its attempt: stop, deaf children, sessions of their own, the
//! executor's and the shim's sudden death.

use crate::command_support;

use campanile_actions::command::{AttemptEnv, CommandEnd, CommandReport, CommandSpec, Shim, run_with};
use command_support::{PATIENCE, alive, attempt, shell, shim, until};
use std::{
    process::{Command, Stdio},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

/// A tree of every awkward kind: deaf to SIGTERM, double forked into another session, stopped.
const AWKWARD: &str = "trap '' TERM
    (setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & )
    sh -c 'kill -STOP $$' &
    echo ready
    while :; do sleep 1; done";

struct Running {
    token: u64,
    stop: watch::Sender<bool>,
    ended: tokio::task::JoinHandle<CommandReport>,
    chunks: mpsc::Receiver<Vec<u8>>,
}

async fn started(shim: Shim, spec: CommandSpec) -> Running {
    let (stop, stopped) = watch::channel(false);
    let (log, mut chunks) = mpsc::channel(64);
    let attempt = attempt();
    let token = attempt.token;
    let ended = tokio::spawn(async move { run_with(&shim, spec, attempt, stopped, log).await });
    assert_eq!(chunks.recv().await.unwrap(), b"ready\n");
    Running { token, stop, ended, chunks }
}

#[tokio::test]
async fn a_stop_ends_a_willing_command_by_sigterm() {
    // With a grace that outlasts the test, only SIGTERM can have ended it.
    let shim = Shim { grace: 2 * PATIENCE, ..shim() };
    let running = started(shim, shell("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done")).await;
    running.stop.send(true).unwrap();
    let report = timeout(PATIENCE, running.ended).await.expect("SIGTERM ends it").unwrap();
    assert_eq!(report.end, CommandEnd::Stopped);
    assert!(report.last_output.ends_with("bye\n"), "{report:?}");
    assert_eq!(alive(running.token), Vec::<i32>::new());
}

#[tokio::test]
async fn a_stop_kills_what_does_not_hear_it() {
    let shim = Shim { grace: Duration::from_millis(300), ..shim() };
    let running = started(shim, shell(AWKWARD)).await;
    until("the whole tree runs", || alive(running.token).len() >= 4).await;
    running.stop.send(true).unwrap();
    let report = running.ended.await.unwrap();
    assert_eq!(report.end, CommandEnd::Stopped);
    assert_eq!(alive(running.token), Vec::<i32>::new());
}

#[tokio::test]
async fn a_stop_before_the_start_starts_nothing() {
    let (_stop, stopped) = watch::channel(true);
    let (log, mut chunks) = mpsc::channel(1);
    let report = run_with(&shim(), shell("echo ran"), attempt(), stopped, log).await;
    assert_eq!(report.end, CommandEnd::Stopped);
    assert_eq!(chunks.recv().await, None);
}

#[tokio::test]
async fn a_log_that_nobody_reads_does_not_hold_the_stop() {
    let shim = Shim { grace: Duration::from_millis(300), ..shim() };
    let (stop, stopped) = watch::channel(false);
    let (log, chunks) = mpsc::channel(1);
    let attempt = attempt();
    let token = attempt.token;
    let spec = shell("yes");
    let ended = tokio::spawn(async move { run_with(&shim, spec, attempt, stopped, log).await });
    until("it runs", || !alive(token).is_empty()).await;
    stop.send(true).unwrap();
    until("its processes are gone", || alive(token).is_empty()).await;
    assert_eq!(ended.await.unwrap().end, CommandEnd::Stopped);
    drop(chunks);
}

#[tokio::test]
async fn dropping_the_future_ends_the_tree() {
    let shim = Shim { grace: Duration::from_millis(300), ..shim() };
    let running = started(shim, shell(AWKWARD)).await;
    until("the whole tree runs", || alive(running.token).len() >= 4).await;
    running.ended.abort();
    until("the tree is gone", || alive(running.token).is_empty()).await;
}

#[tokio::test]
async fn when_the_shim_is_killed_the_executor_sweeps_the_tree() {
    let mut running = started(shim(), shell(AWKWARD)).await;
    until("the whole tree runs", || alive(running.token).len() >= 4).await;
    let command = alive(running.token).into_iter().min().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{command}/status")).unwrap();
    let parent = status.lines().find_map(|l| l.strip_prefix("PPid:")).unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-9", &parent]).status().unwrap().success());
    let report = running.ended.await.unwrap();
    assert_eq!(report.end, CommandEnd::Signaled { signal: 9 });
    until("the tree is gone", || alive(running.token).is_empty()).await;
    let mut log = Vec::new();
    while let Some(chunk) = running.chunks.recv().await {
        log.extend(chunk);
    }
    assert!(String::from_utf8_lossy(&log).contains("shim was lost"));
}

#[tokio::test]
async fn sigterm_to_the_shim_ends_the_tree_and_is_reported_as_a_signal() {
    let running = started(shim(), shell("echo ready; exec sleep 1000")).await;
    let command = alive(running.token)[0];
    let status = std::fs::read_to_string(format!("/proc/{command}/status")).unwrap();
    let parent = status.lines().find_map(|l| l.strip_prefix("PPid:")).unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &parent]).status().unwrap().success());
    assert_eq!(running.ended.await.unwrap().end, CommandEnd::Signaled { signal: 15 });
    assert_eq!(alive(running.token), Vec::<i32>::new());
}

/// Not a test of its own: the executor process that the next test kills.
#[tokio::test]
#[ignore = "the body of a process that another test starts and kills"]
async fn executor_to_be_killed() {
    let token = std::env::var("TEST_TOKEN").unwrap().parse().unwrap();
    let (_stop, stopped) = watch::channel(false);
    let (log, mut chunks) = mpsc::channel(64);
    let shim = Shim { grace: Duration::from_millis(300), ..shim() };
    let attempt = AttemptEnv { token, ..attempt() };
    tokio::join!(run_with(&shim, shell(AWKWARD), attempt, stopped, log), async {
        while chunks.recv().await.is_some() {}
    });
}

#[tokio::test]
async fn an_executor_killed_by_kill_9_leaves_nothing() {
    let token = attempt().token;
    let mut executor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "command_leaves_nothing::executor_to_be_killed", "--ignored"])
        .env("TEST_TOKEN", token.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the whole tree runs", || alive(token).len() >= 4).await;
    executor.kill().unwrap();
    executor.wait().unwrap();
    until("the tree is gone", || alive(token).is_empty()).await;
}
