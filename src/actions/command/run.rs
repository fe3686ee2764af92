//! The executor's side of one command: starts the shim, passes output on, asks it to stop, hears how it ended.
//!
//! Everything is awaited in one future. Dropping it closes the shim's pipe, and the shim ends the tree by itself.

use super::{
    SHIM_ARGUMENT, environment,
    output::Output,
    program,
    spec::{AttemptEnv, CommandEnd, CommandReport, CommandSpec},
    tree,
    wire::{self, Order, Report, StartFault},
};
use campanile_ports::private;
use campanile_schema::limits::{
    COMMAND_KILL_MS, COMMAND_LINGER_MS, COMMAND_ORDER_BYTES, COMMAND_REPORT_BYTES, COMMAND_STUCK_EVERY_MS,
    ERROR_MESSAGE_BYTES, STOP_GRACE_SEC,
};
use std::{
    ffi::OsString,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, Command},
    sync::{mpsc, oneshot, watch},
    time::{sleep, timeout},
};

/// Beyond the shim's own deadlines, for its start and its report.
const MARGIN: Duration = Duration::from_millis(3_000);

/// Which program is started as shim, and how patient it is.
#[derive(Clone, Debug)]
pub struct Shim {
    pub program: OsString,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Shim {
    /// This process's own binary, even when its file was replaced by a newer version meanwhile; the environment's
    /// `CAMPANILE_SHIM` names another program (embedders whose `main` does not call [`super::shim_main`]).
    pub fn of_this_binary() -> Self {
        let named = std::env::var_os("CAMPANILE_SHIM").filter(|p| !p.is_empty());
        Self::at(named.unwrap_or_else(program::own))
    }
    pub fn at(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), grace: Duration::from_secs(STOP_GRACE_SEC) }
    }
}

/// Runs one command to its end. Output goes to `log` in chunks of at most `LOG_CHUNK_BYTES`, masked and capped; a
/// receiver that is gone or does not take it in time loses it, the command goes on. `stop` turning true ends the
/// command; a dropped sender does not.
pub async fn run(
    spec: CommandSpec,
    env: AttemptEnv,
    stop: watch::Receiver<bool>,
    log: mpsc::Sender<Vec<u8>>,
) -> CommandReport {
    run_with(&Shim::of_this_binary(), spec, env, stop, log).await
}

/// As [`run`], with a shim of the caller's choice.
pub async fn run_with(
    shim: &Shim,
    spec: CommandSpec,
    attempt: AttemptEnv,
    stop: watch::Receiver<bool>,
    log: mpsc::Sender<Vec<u8>>,
) -> CommandReport {
    let fault = |fault: StartFault, message: String| CommandReport::failed_to_start(fault.code(), message);
    if *stop.borrow() {
        return ended(CommandEnd::Stopped);
    }
    let mark = mark();
    let env = match environment::of_attempt(&spec, &attempt, &mark) {
        Ok(env) => env,
        Err(refused) => return fault(refused.fault, refused.message),
    };
    let mut out = Output::new(&spec, &attempt, log);
    let grace_ms = u64::try_from(shim.grace.as_millis()).unwrap_or(u64::MAX);
    let order = wire::line(&Order {
        command: spec.command,
        env,
        cwd: spec.cwd,
        stdin: spec.stdin,
        grace_ms,
        limits: spec.limits,
        nice: spec.nice,
    });
    if order.len() > COMMAND_ORDER_BYTES {
        let size =
            format!("command, environment and stdin take {} bytes, {COMMAND_ORDER_BYTES} are allowed", order.len());
        return fault(StartFault::TooLarge, size);
    }
    let mut child = match start(shim) {
        Ok(child) => child,
        Err(e) => {
            return fault(StartFault::ShimFailed, format!("cannot start the shim {}: {e}", shim.program.display()));
        }
    };
    let (Some(control), Some(output), Some(reports)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return fault(StartFault::ShimFailed, "the shim has no pipes".to_owned());
    };
    let (tell_ended, ended_rx) = oneshot::channel();
    let watching = async {
        let heard = watch_shim(&mut child, control, reports, order, stop, shim.grace, mark).await;
        // The receiver lives as long as this future.
        let _ = tell_ended.send(());
        heard
    };
    let (heard, ()) = tokio::join!(watching, out.pump(output, ended_rx));
    out.finish(heard.remark()).await;
    heard.into_report(out.last_output())
}

/// Unique on the machine, unlike a token: executors of other clusters may run here too.
fn mark() -> String {
    // Without random numbers the time of the start still differs from executor to executor.
    let random = getrandom::u64().unwrap_or_else(|_| {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    });
    format!("{}-{random:016x}", std::process::id())
}

fn start(shim: &Shim) -> std::io::Result<Child> {
    Command::new(&shim.program)
        .arg0("campanile")
        .arg(SHIM_ARGUMENT)
        .args(private::inherited())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(false)
        .spawn()
}

fn ended(end: CommandEnd) -> CommandReport {
    CommandReport { end, cpu_ms: 0, max_rss_kb: None, last_output: String::new(), left_behind: 0 }
}

/// What the executor knows of a shim at its end.
struct ShimOutcome {
    /// A stop was asked for.
    asked: bool,
    /// The shim was about to start the command: it may have run.
    starting: bool,
    last: Option<Report>,
    /// What the shim said that is no report: a panic.
    diagnostic: String,
    /// Processes killed because the shim was lost, count.
    swept: usize,
}

/// Writes the order, then holds the pipe until a stop is asked for, then waits for the end within a deadline.
async fn watch_shim(
    child: &mut Child,
    mut control: ChildStdin,
    reports: ChildStderr,
    order: Vec<u8>,
    mut stop: watch::Receiver<bool>,
    grace: Duration,
    mark: String,
) -> ShimOutcome {
    let mut heard = ShimOutcome { asked: false, starting: false, last: None, diagnostic: String::new(), swept: 0 };
    // Known before anything can go wrong with the child's handle.
    let shim_pid = child.id().and_then(|id| i32::try_from(id).ok());
    let stopped = {
        let holding = async {
            let writing = async {
                // A shim that died early says so, or is missed, on the other pipe.
                let _ = control.write_all(&order).await;
                std::future::pending::<()>().await;
            };
            tokio::select! { () = writing => {}, () = asked(&mut stop) => {} }
        };
        // Some of its processes hang in the kernel: the shim tries on until they are gone, and the attempt ends then.
        let stuck = AtomicBool::new(false);
        let reading = read_reports(reports, &mut heard, &stuck);
        tokio::pin!(reading);
        let stopped = tokio::select! { () = &mut reading => false, () = holding => true };
        if stopped {
            drop(control);
            let patience = grace + Duration::from_millis(COMMAND_LINGER_MS + COMMAND_KILL_MS) + MARGIN;
            // Late without a word: the shim hangs; it is killed below.
            while timeout(patience, &mut reading).await.is_err() && stuck.load(Ordering::Relaxed) {}
        }
        stopped
    };
    heard.asked = stopped;
    let in_time = timeout(MARGIN, child.wait()).await.is_ok();
    if heard.last.is_none() || !in_time {
        let _ = child.start_kill();
        let _ = timeout(MARGIN, child.wait()).await;
        if let Some(pid) = shim_pid {
            let swept = mark.clone();
            heard.swept = tokio::task::spawn_blocking(move || tree::sweep(pid, &swept)).await.unwrap_or(0);
            gone(mark).await;
        }
    }
    heard
}

/// Returns when no process carries the mark any more: the command has not ended before.
async fn gone(mark: String) {
    loop {
        let mark = mark.clone();
        let left = tokio::task::spawn_blocking(move || tree::carriers(&mark)).await.unwrap_or(0);
        if left == 0 {
            return;
        }
        tracing::warn!(left, "processes of a command do not end even by SIGKILL; its attempt goes on until they do");
        sleep(Duration::from_millis(COMMAND_STUCK_EVERY_MS)).await;
    }
}

async fn asked(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // The sender is gone without having asked.
        std::future::pending::<()>().await;
    }
}

async fn read_reports(reports: ChildStderr, heard: &mut ShimOutcome, stuck: &AtomicBool) {
    let mut lines = BufReader::new(reports.take(COMMAND_REPORT_BYTES as u64));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await.is_ok_and(|n| n > 0) {
        match serde_json::from_slice(&line) {
            Ok(Report::Starting) => heard.starting = true,
            Ok(Report::Stuck { unkillable }) => {
                tracing::warn!(
                    unkillable,
                    "processes of a command do not end even by SIGKILL; its attempt goes on until they do"
                );
                stuck.store(true, Ordering::Relaxed);
            }
            // It was to become the command, and could not: that it ended then says no more.
            Ok(Report::Ended { .. }) if matches!(heard.last, Some(Report::Failed { .. })) => {}
            Ok(last @ (Report::Failed { .. } | Report::Ended { .. })) => heard.last = Some(last),
            Err(_) if heard.diagnostic.len() < ERROR_MESSAGE_BYTES => {
                heard.diagnostic.push_str(&String::from_utf8_lossy(&line));
            }
            Err(_) => {}
        }
        line.clear();
    }
}

impl ShimOutcome {
    /// A line for the run's log about what its output does not show.
    fn remark(&self) -> Option<String> {
        match &self.last {
            Some(Report::Ended { unkillable: n @ 1.., .. }) => {
                Some(format!("{n} processes of the command did not end by SIGKILL at once: they hung in the kernel"))
            }
            Some(Report::Ended { left_behind: n @ 1.., .. }) => {
                Some(format!("{n} processes that the command left behind were ended with it"))
            }
            Some(_) => None,
            None => Some(format!("the command's shim was lost; {} of its processes were killed", self.swept)),
        }
    }

    fn into_report(self, last_output: String) -> CommandReport {
        let blank = CommandReport { last_output, ..ended(CommandEnd::Stopped) };
        match self.last {
            Some(Report::Ended { code, signal, stopped, usage, left_behind, unkillable: _ }) => {
                let end = match (code, signal) {
                    _ if stopped && self.asked => CommandEnd::Stopped,
                    (Some(code), _) => CommandEnd::Exited { code },
                    // Neither: the shim could not wait for it.
                    (None, signal) => CommandEnd::Signaled { signal: signal.unwrap_or(9) },
                };
                CommandReport { end, cpu_ms: usage.cpu_ms, max_rss_kb: usage.max_rss_kb, left_behind, ..blank }
            }
            Some(Report::Failed { fault: StartFault::StoppedBefore, .. }) if self.asked => blank,
            Some(Report::Failed { fault, message }) => {
                CommandReport { end: CommandEnd::FailedToStart { code: fault.code(), message }, ..blank }
            }
            Some(Report::Starting | Report::Stuck { .. }) | None if self.asked => blank,
            // The body may have run in part: this is an end by a signal, not a failed start.
            Some(Report::Starting | Report::Stuck { .. }) | None if self.starting => {
                CommandReport { end: CommandEnd::Signaled { signal: 9 }, ..blank }
            }
            Some(Report::Starting | Report::Stuck { .. }) | None => {
                let code = StartFault::ShimFailed.code();
                let message = format!("the shim ended without a report. {}", self.diagnostic.trim());
                CommandReport { end: CommandEnd::FailedToStart { code, message: message.trim().to_owned() }, ..blank }
            }
        }
    }
}
