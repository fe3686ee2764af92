//! Processes that this program starts: each in a process group of its own, all of them killed when their handle is dropped, on an
//! error, a panic or Ctrl-C. Nothing else is ever killed.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Groups that are alive, for the end of the program.
static ALIVE: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A process with its group.
pub struct OwnChild {
    child: Child,
    group: Pid,
}

impl OwnChild {
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.process_group(0).spawn()?;
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            let _ = child.kill();
            return Err(io::Error::other("the process has no id"));
        };
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).push(group);
        Ok(Self { child, group })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// kill -9 of the whole group, and waits until the process is gone.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
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

    /// Asks it to end, and kills it when it takes too long.
    pub fn end(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        let _ = kill_process_group(self.group, Signal::TERM);
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
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).retain(|group| *group != self.group);
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        if ALIVE.lock().unwrap_or_else(PoisonError::into_inner).contains(&self.group) {
            let _ = self.kill();
        }
    }
}

/// Before the program ends in a way that runs no destructors.
pub fn kill_all() {
    for group in ALIVE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = kill_process_group(group, Signal::KILL);
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
        assert!(!ALIVE.lock().unwrap().contains(&pid));
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
