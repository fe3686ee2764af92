//! A pseudo-terminal with the program on it: what people see.
#![allow(dead_code)]

use crate::program::{Dev, interruptible};
use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::File,
    io::Read,
    process::{Child, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

/// How long something may take to be shown: generous, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that thinks a person looks at it.
pub struct Terminal {
    child: Child,
    pieces: Receiver<Vec<u8>>,
    /// All that was shown so far, with what draws it.
    pub shown: String,
    /// Keeps the terminal's size.
    _master: File,
}

impl Terminal {
    pub fn start(dev: &Dev, columns: u16, args: &[&str]) -> Self {
        Self::start_with(dev, columns, args, &[])
    }

    pub fn start_with(dev: &Dev, columns: u16, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || -> Stdio {
            File::from(rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()).into()
        };
        let child = interruptible()
            .env("CAMPANILE_SERVER", &dev.server)
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .args(args)
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .unwrap();
        let master = File::from(master);
        let mut reader = master.try_clone().unwrap();
        let (send, pieces) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Linux says EIO when the last one has closed it.
            while let Ok(got @ 1..) = reader.read(&mut buffer) {
                if send.send(buffer[..got].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, pieces, shown: String::new(), _master: master }
    }

    /// Until this was shown since the last call.
    pub fn until(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut fresh = String::new();
        while !fresh.contains(wanted) {
            let piece = self.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let piece = piece.unwrap_or_else(|why| panic!("{wanted:?} is not shown ({why}): {}{fresh}", self.shown));
            fresh.push_str(&String::from_utf8_lossy(&piece));
        }
        self.shown.push_str(&fresh);
        fresh
    }

    /// As by Ctrl-C.
    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// To its end: how it ended, and all that was shown.
    pub fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.shown.push_str(&String::from_utf8_lossy(&piece)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {}", self.shown),
            }
        }
        (self.child.wait().unwrap(), std::mem::take(&mut self.shown))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
