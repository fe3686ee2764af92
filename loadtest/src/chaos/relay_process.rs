//! The relay to the store as a process: see `relay.rs`. It ends when its handle is dropped.

use crate::{limits::NODE_OUTPUT_LINES, process::children::OwnChild, test_cluster::host::Host};
use std::{
    io::{self, BufRead, BufReader, Write},
    process::{ChildStdin, Stdio},
    sync::mpsc,
    time::Duration,
};

/// The relay must answer an order within this time.
const ANSWER: Duration = Duration::from_secs(30);

/// See the module's text.
pub struct RelayProcess {
    _child: OwnChild,
    orders: ChildStdin,
    lines: mpsc::Receiver<String>,
    /// `host:port`, the contact point in place of the store's own.
    pub address: String,
}

impl RelayProcess {
    /// On the store's host, in front of its address. Relays of several servers have one port, as the servers do.
    pub fn start(host: &Host, store: &str, port: u16) -> io::Result<Self> {
        let mut command = host.command(&std::env::current_exe()?);
        command.args(["relay", "--store", store, "--port", &port.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = OwnChild::start(&mut command)?;
        let (stdin, stdout) = (child.child().stdin.take(), child.child().stdout.take());
        let (Some(orders), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
        let (send, lines) = mpsc::sync_channel(NODE_OUTPUT_LINES);
        std::thread::Builder::new().name("relay output".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        })?;
        let mut way = Self { _child: child, orders, lines, address: String::new() };
        way.address = way.line()?;
        Ok(way)
    }

    /// `slow MS` or `lose PERCENT`; LWTs that it has seen so far, and those whose answers it has lost.
    pub fn order(&mut self, order: &str) -> io::Result<(u64, u64)> {
        writeln!(self.orders, "{order}")?;
        self.orders.flush()?;
        let line = self.line()?;
        let numbers = line.split_once(' ').and_then(|(seen, lost)| Some((seen.parse().ok()?, lost.parse().ok()?)));
        numbers.ok_or_else(|| io::Error::other(format!("the relay answered '{line}'")))
    }

    fn line(&self) -> io::Result<String> {
        self.lines.recv_timeout(ANSWER).map_err(|_| io::Error::other("the relay before the store did not answer"))
    }
}
