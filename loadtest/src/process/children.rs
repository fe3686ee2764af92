//! Processes that this program starts: each in a process group of its own, all of them killed when their handle is dropped, on an
//! error, a panic or Ctrl-C. Nothing else is ever killed.
//!
//! A program whose children leave its group, as a database's do, is asked to end them itself before it is killed.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

/// A program that was asked to end with its children gets so long before it is killed.
const ASKED: Duration = Duration::from_secs(10);

/// A group, and the signal at which its first process ends all others, when kill -9 of the group would leave some.
#[derive(Clone, Copy)]
struct Alive {
    group: Pid,
    ask: Option<Signal>,
}

/// Groups that are alive, for the end of the program.
static ALIVE: Mutex<Vec<Alive>> = Mutex::new(Vec::new());

/// A process with its group.
pub struct OwnChild {
    child: Child,
    group: Pid,
    ask: Option<Signal>,
}

impl OwnChild {
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Self::start_and_ask(command, None)
    }

    /// One that ends its own children, which have groups of their own, at this signal.
    pub fn start_asked_by(command: &mut Command, signal: Signal) -> io::Result<Self> {
        Self::start_and_ask(command, Some(signal))
    }

    fn start_and_ask(command: &mut Command, ask: Option<Signal>) -> io::Result<Self> {
        let mut child = command.process_group(0).spawn()?;
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            let _ = child.kill();
            return Err(io::Error::other("the process has no id"));
        };
        ALIVE.lock().push(Alive { group, ask });
        Ok(Self { child, group, ask })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// kill -9 of the whole group, and waits until the process is gone.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        if let Some(signal) = self.ask {
            let _ = kill_process_group(self.group, signal);
            if let Some(status) = self.wait(ASKED)? {
                return Ok(status);
            }
        }
        // One that is gone already is what we want.
        let _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait()?;
        self.forget();
        Ok(status)
    }

    /// Makes the whole group stand still, or go on.
    pub fn freeze(&self, still: bool) -> io::Result<()> {
        let signal = if still { Signal::STOP } else { Signal::CONT };
        kill_process_group(self.group, signal).map_err(io::Error::from)
    }

    /// Asks it to end.
    pub fn ask(&self) -> io::Result<()> {
        kill_process_group(self.group, Signal::TERM).map_err(io::Error::from)
    }

    /// Asks it to end, and kills it when it takes too long.
    pub fn end(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        // One that is gone already is what we want.
        let _ = self.ask();
        match self.wait(patience)? {
            Some(status) => Ok(status),
            None => self.kill(),
        }
    }

    /// Its status, when it ends within `patience`.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                // Children that it left behind go too.
                let _ = kill_process_group(self.group, Signal::KILL);
                self.forget();
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn forget(&self) {
        ALIVE.lock().retain(|alive| alive.group != self.group);
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        if ALIVE.lock().iter().any(|alive| alive.group == self.group) {
            let _ = self.kill();
        }
    }
}

/// Before the program ends in a way that runs no destructors.
pub fn kill_all() {
    let alive: Vec<Alive> = ALIVE.lock().drain(..).collect();
    for one in &alive {
        let _ = kill_process_group(one.group, one.ask.unwrap_or(Signal::KILL));
    }
    let deadline = Instant::now() + ASKED;
    for one in alive.iter().filter(|one| one.ask.is_some()) {
        // An error means that somebody else waited for it: it is gone.
        while matches!(waitpid(Some(one.group), WaitOptions::NOHANG), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = kill_process_group(one.group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rustix::process::test_kill_process;

    #[test]
    fn a_dropped_child_is_dead_with_its_children() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & sleep 1000"]);
        let child = OwnChild::start(&mut command).unwrap();
        let pid = child.group;
        assert!(test_kill_process(pid).is_ok());
        drop(child);
        assert!(test_kill_process(pid).is_err());
        assert!(!ALIVE.lock().iter().any(|alive| alive.group == pid));
    }

    #[test]
    fn one_that_is_asked_may_end_its_children_first() {
        let dir = tempfile::tempdir().unwrap();
        let (ready, told) = (dir.path().join("ready"), dir.path().join("told"));
        // A shell cannot trap what was ignored when it started, as QUIT and INT are behind a script's `&`.
        let script = "trap 'echo asked > \"$1\"; exit 0' USR1; echo > \"$0\"; while :; do sleep 0.01; done";
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg(&ready).arg(&told);
        let mut child = OwnChild::start_asked_by(&mut command, Signal::USR1).unwrap();
        while !ready.exists() {
            assert_eq!(child.wait(Duration::ZERO).unwrap(), None, "it ended before it was ready");
        }
        drop(child);
        assert_eq!(std::fs::read_to_string(&told).unwrap(), "asked\n");
    }

    #[test]
    fn waiting_gives_the_status_or_gives_up() {
        let mut quick = OwnChild::start(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap();
        assert_eq!(quick.wait(Duration::from_secs(20)).unwrap().unwrap().code(), Some(3));
        let mut slow = OwnChild::start(Command::new("/bin/sh").args(["-c", "sleep 1000"])).unwrap();
        assert!(slow.wait(Duration::from_millis(10)).unwrap().is_none());
        assert!(!slow.kill().unwrap().success());
    }
}
