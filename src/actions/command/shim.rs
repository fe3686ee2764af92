//! The shim: parent of one command, in a process of its own.
//!
//! Three threads, one decision place: `reap` waits for children, `watch_executor` for the closing of the pipe,
//! `watch_signals` for SIGTERM and the like; all report to the loop in [`supervise`], which alone acts.
//!
//! It never outlives its tree on purpose and never writes to the command's output. Once it has begun to end the tree every step has
//! a deadline but the last: processes that hang in the kernel under SIGKILL are told of ([`Report::Stuck`]) and waited for, since the
//! command has not ended while they live.

use super::{
    confine, inherited, program, tree,
    usage::{self, Peak},
    wire::{self, Fault, Order, Report, StartFault},
};
use campanile_schema::limits::{
    COMMAND_KILL_EVERY_MS, COMMAND_KILL_MS, COMMAND_LINGER_MS, COMMAND_ORDER_BYTES, COMMAND_STUCK_EVERY_MS,
};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::{
    io::{BufRead, BufReader, Read, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

/// Threads of the shim do little.
const STACK_BYTES: usize = 256 << 10;

/// The whole life of a shim. `main` calls this before anything else when the first argument is `__shim`.
pub fn shim_main() -> ExitCode {
    match live() {
        Ok(last) => {
            // An executor that is gone hears nothing, which is all right.
            let _ = report(&last);
            ExitCode::SUCCESS
        }
        Err(fault) => {
            let _ = report(&Report::Failed { fault: fault.fault, message: fault.message });
            ExitCode::FAILURE
        }
    }
}

fn live() -> Result<Report, Fault> {
    inherited::close_files();
    // Away from the executor's terminal: its Ctrl-C is the executor's to handle. EPERM: already leads a session.
    let _ = rustix::process::setsid();
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))
        .map_err(|e| Fault::new(StartFault::ShimFailed, format!("cannot adopt orphans: {e}")))?;
    let (tell, events) = mpsc::channel();
    let signalled = tell.clone();
    let (installed, ready) = mpsc::sync_channel(1);
    // Before the start: a SIGTERM in between would end the shim alone.
    thread(move || watch_signals(&signalled, &installed))?;
    // An error: there are no handlers to be had; the rest works without.
    let _ = ready.recv();
    let mut executor = BufReader::new(std::io::stdin());
    let order = read_order(&mut executor)?;
    let closing = tell.clone();
    thread(move || watch_executor(executor, &closing))?;
    // All threads exist before the command does: afterwards nothing may fail and leave it alone.
    let (go, begun) = mpsc::channel();
    thread(move || {
        if begun.recv().is_ok() {
            reap(&tell);
        }
    })?;
    let peak = Peak::default();
    let (look, living) = mpsc::channel();
    let looking = peak.clone();
    thread(move || {
        if let Ok(command) = living.recv() {
            looking.watch(own, command);
        }
    })?;
    let input = feed(order.stdin.clone())?;
    let launcher_kb = usage::launcher_kb(is_confined(&order));
    let mut child = start(&order)?;
    let main = Pid::from_child(&child);
    // None of the receivers can be gone: their threads wait for just this.
    let _ = look.send(main);
    let _ = go.send(());
    if let (Some(input), Some(pipe)) = (input, child.stdin.take()) {
        let _ = input.send(pipe);
    }
    let grace = Duration::from_millis(order.grace_ms);
    let ended = supervise(own, main, grace, &events);
    let Supervised { outcome, stopped, left_behind, unkillable } = ended;
    Ok(Report::Ended {
        code: outcome.and_then(WaitStatus::exit_status),
        signal: outcome.and_then(WaitStatus::terminating_signal),
        stopped,
        usage: peak.usage(launcher_kb),
        left_behind,
        unkillable,
    })
}

/// One line on the executor's pipe.
fn report(report: &Report) -> std::io::Result<()> {
    std::io::stderr().write_all(&wire::line(report))
}

fn thread(body: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
    started.map(drop).map_err(|e| Fault::new(StartFault::ShimFailed, format!("no thread: {e}")))
}

fn read_order(executor: &mut impl BufRead) -> Result<Order, Fault> {
    let mut line = Vec::new();
    let read = executor.take(COMMAND_ORDER_BYTES as u64 + 1).read_until(b'\n', &mut line);
    if read.is_err() || line.last() != Some(&b'\n') {
        return Err(Fault::new(StartFault::StoppedBefore, "the executor's pipe closed before the start"));
    }
    serde_json::from_slice(&line)
        .map_err(|e| Fault::new(StartFault::ShimFailed, format!("the executor's order cannot be read: {e}")))
}

fn start(order: &Order) -> Result<Child, Fault> {
    let Some(word) = order.command.first() else {
        return Err(Fault::new(StartFault::Empty, "the command is empty: give at least the program"));
    };
    let cwd = program::directory(order.cwd.as_deref(), order.env.get("HOME").map(String::as_str))?;
    let path = order.env.get("PATH").map_or("", String::as_str);
    let file = program::find(word, path, &cwd)?;
    let out = || {
        let copy = std::io::stdout().as_fd().try_clone_to_owned();
        copy.map(Stdio::from).map_err(|e| Fault::new(StartFault::StartFailed, format!("no output pipe: {e}")))
    };
    let confined = is_confined(order);
    let mut command = if confined {
        confine::command(&order.limits, order.nice, word, &file).map_err(|e| Fault::new(StartFault::StartFailed, e))?
    } else {
        Command::new(&file)
    };
    if !confined {
        command.arg0(word);
    }
    command
        .args(&order.command[1..])
        .env_clear()
        .envs(&order.env)
        .env("PWD", &cwd)
        .current_dir(&cwd)
        .stdin(if order.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        // One pipe for both, so that the order in which they were written stays.
        .stdout(out()?)
        // One that is confined tells there what keeps it from becoming the command, and then takes the output for it.
        .stderr(if confined { Stdio::inherit() } else { out()? })
        .process_group(0)
        // Its own group: nothing changes, but the child is forked for it and not lent the shim's memory (see `usage`).
        .gid(rustix::process::getegid().as_raw());
    if report(&Report::Starting).is_err() {
        return Err(Fault::new(StartFault::StoppedBefore, "the executor is gone before the start"));
    }
    command.spawn().map_err(|e| program::refusal(&e, word, &file))
}

fn is_confined(order: &Order) -> bool {
    !order.limits.is_none() || order.nice > 0
}

/// Writes the standard input from a thread of its own: a command that never reads it must not stop the shim. The pipe
/// is handed over once it exists.
fn feed(text: Option<String>) -> Result<Option<Sender<ChildStdin>>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let (hand_over, pipe) = mpsc::channel::<ChildStdin>();
    thread(move || {
        if let Ok(mut pipe) = pipe.recv() {
            // A command that ends or closes its input early is within its rights.
            let _ = pipe.write_all(text.as_bytes());
        }
    })?;
    Ok(Some(hand_over))
}

enum Event {
    /// A child (the command or an adopted orphan) ended.
    Ended(Pid, WaitStatus),
    /// Nothing is left below the shim.
    AllGone,
    /// The executor asks, or is gone; or somebody signalled the shim.
    Stop,
}

fn reap(tell: &Sender<Event>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                if tell.send(Event::Ended(pid, status)).is_err() {
                    return;
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // ECHILD: orphans become ours before their parent can be reaped, so none can come later.
            Err(_) => {
                let _ = tell.send(Event::AllGone);
                return;
            }
        }
    }
}

fn watch_executor(mut executor: impl Read, tell: &Sender<Event>) {
    let mut byte = [0u8; 1];
    loop {
        match executor.read(&mut byte) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            // End of file, an error, or a byte that no version of the executor sends: all mean stop.
            Ok(_) | Err(_) => {
                let _ = tell.send(Event::Stop);
                return;
            }
        }
    }
}

/// SIGTERM, SIGINT, SIGQUIT and SIGHUP to the shim stop the command instead of orphaning it.
fn watch_signals(tell: &Sender<Event>, installed: &mpsc::SyncSender<()>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
        return;
    };
    runtime.block_on(async {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
        let [Ok(mut term), Ok(mut int), Ok(mut hup), Ok(mut quit)] = kinds.map(signal) else {
            return;
        };
        // Held to the end of the shim, and never read: that there is a handler is all that they are for.
        let _reset: Vec<_> = inherited::to_reset().into_iter().map(signal).collect();
        let _ = installed.send(());
        loop {
            tokio::select! { _ = term.recv() => {}, _ = int.recv() => {}, _ = hup.recv() => {}, _ = quit.recv() => {} }
            if tell.send(Event::Stop).is_err() {
                return;
            }
        }
    });
}

/// How far the end has come.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    /// The command ended, others of its tree run on: they may end by themselves.
    Lingering,
    /// All have SIGTERM.
    Terminating,
    /// All have SIGKILL, again and again for those born meanwhile.
    Killing,
    /// Some do not end by it.
    Stuck,
}

/// How the command and its tree ended.
struct Supervised {
    outcome: Option<WaitStatus>,
    stopped: bool,
    left_behind: u32,
    unkillable: u32,
}

fn supervise(own: Pid, main: Pid, grace: Duration, events: &mpsc::Receiver<Event>) -> Supervised {
    let mut phase = Phase::Running;
    let mut deadline: Option<Instant> = None;
    let mut next_kill: Option<Instant> = None;
    let mut outcome: Option<WaitStatus> = None;
    let (mut stopped, mut left_behind, mut unkillable) = (false, 0u32, 0u32);
    loop {
        let wake = match (deadline, next_kill) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let event = match wake {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        let now = Instant::now();
        let group = outcome.is_none().then_some(main);
        match event {
            Ok(Event::Ended(pid, status)) if pid == main => {
                outcome = Some(status);
                if phase == Phase::Running {
                    phase = Phase::Lingering;
                    deadline = Some(now + Duration::from_millis(COMMAND_LINGER_MS));
                }
            }
            Ok(Event::Ended(..)) => {}
            Ok(Event::AllGone) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(Event::Stop) => {
                if phase == Phase::Running || phase == Phase::Lingering {
                    stopped = outcome.is_none();
                    terminate(own, group);
                    phase = Phase::Terminating;
                    deadline = Some(now + grace);
                }
            }
            Err(RecvTimeoutError::Timeout) => match phase {
                Phase::Running => {}
                Phase::Lingering => {
                    left_behind = u32::try_from(tree::below(own).len()).unwrap_or(u32::MAX);
                    terminate(own, group);
                    phase = Phase::Terminating;
                    deadline = Some(now + grace);
                }
                Phase::Terminating => {
                    tree::signal(own, group, Signal::KILL);
                    phase = Phase::Killing;
                    deadline = Some(now + Duration::from_millis(COMMAND_KILL_MS));
                    next_kill = Some(now + Duration::from_millis(COMMAND_KILL_EVERY_MS));
                }
                Phase::Killing => {
                    tree::signal(own, group, Signal::KILL);
                    next_kill = Some(now + Duration::from_millis(COMMAND_KILL_EVERY_MS));
                    if deadline.is_some_and(|at| now >= at) {
                        unkillable = u32::try_from(tree::below(own).len()).unwrap_or(u32::MAX);
                        // An executor that is gone hears nothing.
                        let _ = report(&Report::Stuck { unkillable });
                        phase = Phase::Stuck;
                        deadline = None;
                    }
                }
                Phase::Stuck => {
                    tree::signal(own, group, Signal::KILL);
                    next_kill = Some(now + Duration::from_millis(COMMAND_STUCK_EVERY_MS));
                }
            },
        }
    }
    Supervised { outcome, stopped, left_behind, unkillable }
}

/// SIGTERM, and SIGCONT so that stopped processes hear it.
fn terminate(own: Pid, group: Option<Pid>) {
    tree::signal(own, group, Signal::TERM);
    tree::signal(own, group, Signal::CONT);
}
