//! The store of a run: Apache Cassandra on loopback, or on the hosts of a network of our own, started by the script
//! that also starts it for demonstrations. It ends when its handle is dropped.

use super::host::{NAMESPACE, PREFIX};
use crate::process::children::OwnChild;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{ChildStdin, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

/// A server that is fetched, started and joined must answer within this time.
const READY: Duration = Duration::from_secs(600);
/// An order to the script, a start of a killed node among them.
const ANSWER: Duration = Duration::from_secs(180);
/// Of each of several servers on one machine.
const HEAP_OF_THREE: &str = "320m";

/// See the module's text.
pub struct Store {
    /// Its end is the servers' end.
    _child: OwnChild,
    orders: ChildStdin,
    lines: mpsc::Receiver<String>,
    /// `host:port` of each node.
    pub contact_points: Vec<String>,
    /// Processes of the nodes, as they were started first.
    pub pids: Vec<u32>,
}

impl Store {
    pub fn start(script: &Path, dir: &Path, nodes: u16, on_net: bool, heap: Option<&str>) -> io::Result<Self> {
        let log = File::create(dir.join("store.log"))?;
        let mut command = Command::new(script);
        command.arg("run").arg(dir.join("store")).arg(nodes.to_string());
        if on_net {
            command.env("ADDRESSES", PREFIX).env("NAMESPACES", NAMESPACE);
        }
        if let Some(heap) = heap.or((nodes > 1).then_some(HEAP_OF_THREE)) {
            command.env("HEAP", heap);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // Its servers are in its group.
        let mut child = OwnChild::start(&mut command)?;
        let (stdin, stdout) = (child.child().stdin.take(), child.child().stdout.take());
        let (Some(orders), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
        let (send, lines) = mpsc::channel();
        std::thread::Builder::new().name("store output".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        })?;
        let mut store = Self { _child: child, orders, lines, contact_points: Vec::new(), pids: Vec::new() };
        loop {
            let line = store.line(READY)?;
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["ready"] => return Ok(store),
                ["node", _, address, pid] => {
                    store.contact_points.push((*address).to_owned());
                    store.pids.extend(pid.parse::<u32>());
                }
                _ => {}
            }
        }
    }

    /// `kill 1`, `start 1`, `pause 1`, `resume 1`: done when it returns.
    pub fn order(&mut self, order: &str) -> io::Result<()> {
        writeln!(self.orders, "{order}")?;
        self.orders.flush()?;
        loop {
            // A start says the new process first.
            let line = self.line(ANSWER)?;
            if !line.starts_with("node ") {
                return Ok(());
            }
        }
    }

    /// Servers that stand still go on.
    pub fn wake(&mut self) -> io::Result<()> {
        (1..=self.contact_points.len()).try_for_each(|n| self.order(&format!("resume {n}")))
    }

    fn line(&self, patience: Duration) -> io::Result<String> {
        self.lines
            .recv_timeout(patience)
            .map_err(|_| io::Error::other("the store's script did not answer; see store.log and store/*/log"))
    }
}
