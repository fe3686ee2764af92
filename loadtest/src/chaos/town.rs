//! The nodes of a cluster as processes on loopback, with what they share: keys, certificates, a token, the schema.

use crate::{
    children::OwnChild,
    lines::{FaultEvent, FaultLine, now_us},
    node::free_port,
    record::Record,
};
use std::{
    fs::OpenOptions,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

/// A node must say where it listens within this time of its start.
const READY: Duration = Duration::from_secs(90);
/// A node that stops gives its shards away first.
const STOPPED: Duration = Duration::from_secs(60);
const CLUSTER: &str = "chaos";

/// See the module's text.
pub struct Town {
    binary: PathBuf,
    dir: PathBuf,
    shards: u16,
    contact_points: String,
    keyspace: String,
    pub token: String,
    nodes: Vec<Place>,
    faults: Arc<Record>,
}

/// A node's addresses, and its process while it has one.
struct Place {
    rpc: u16,
    http: u16,
    gossip: u16,
    gateway: u16,
    child: Option<OwnChild>,
}

impl Town {
    /// Makes the keys and the schema; no node is started.
    pub fn new(
        binary: &Path,
        dir: &Path,
        nodes: usize,
        shards: u16,
        contact_points: &[String],
        keyspace: &str,
        faults: Arc<Record>,
    ) -> io::Result<Self> {
        let place = || -> io::Result<Place> {
            Ok(Place {
                rpc: free_port()?,
                http: free_port()?,
                gossip: free_port()?,
                gateway: free_port()?,
                child: None,
            })
        };
        let mut town = Self {
            binary: binary.to_owned(),
            dir: dir.to_owned(),
            shards,
            contact_points: contact_points.join(","),
            keyspace: keyspace.to_owned(),
            token: String::new(),
            nodes: (0..nodes).map(|_| place()).collect::<io::Result<_>>()?,
            faults,
        };
        let keys = dir.join("keys");
        town.run(&["cluster", "new-keys", "--name", CLUSTER], Some(&keys))?;
        let made = town
            .run(&["token", "new", "--name", "chaos", "--role", "operator", "--append"], Some(&dir.join("tokens")))?;
        town.token = made.lines().next().unwrap_or_default().trim().to_owned();
        town.run(&["schema", "apply"], None)?;
        Ok(town)
    }

    /// Runs the program with the first node's configuration; gives what it wrote.
    fn run(&self, args: &[&str], path: Option<&Path>) -> io::Result<String> {
        let mut command = self.command(0);
        command.args(args);
        if let Some(path) = path {
            command.arg(path);
        }
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("campanile {} failed: {told}", args.join(" "))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, n: usize) -> Command {
        let (place, keys) = (&self.nodes[n], self.dir.join("keys"));
        let seeds: Vec<String> = self.nodes.iter().map(|place| format!("127.0.0.1:{}", place.gossip)).collect();
        let address = |port: u16| format!("127.0.0.1:{port}");
        let mut command = Command::new(&self.binary);
        let mut set = |name: &str, value: &str| {
            command.env(format!("CAMPANILE_{name}"), value);
        };
        set("NODE__NAME", &format!("n{}", n + 1));
        set("NODE__DATA_DIR", &self.dir.join(format!("node-{}", n + 1)).to_string_lossy());
        set("NODE__SHARDS", &self.shards.to_string());
        set("HTTP__LISTEN", &address(place.http));
        set("RPC__LISTEN", &address(place.rpc));
        set("AUTH__TOKEN_FILE", &self.dir.join("tokens").to_string_lossy());
        set("CLUSTER__NAME", CLUSTER);
        set("CLUSTER__SEEDS", &seeds.join(","));
        set("CLUSTER__GOSSIP_LISTEN", &address(place.gossip));
        set("CLUSTER__GATEWAY_LISTEN", &address(place.gateway));
        set("CLUSTER__KEY_FILE", &keys.join("gossip.keys").to_string_lossy());
        set("CLUSTER__TLS_CERT_FILE", &keys.join("node.pem").to_string_lossy());
        set("CLUSTER__TLS_KEY_FILE", &keys.join("node-key.pem").to_string_lossy());
        set("CLUSTER__TLS_CA_FILE", &keys.join("ca.pem").to_string_lossy());
        set("CQL__CONTACT_POINTS", &self.contact_points);
        set("CQL__DATA_CENTER", "datacenter1");
        set("CQL__KEYSPACE", &self.keyspace);
        set("CQL__REPLICATION", "1");
        command
    }

    /// Addresses of all nodes' RPC, with commas between.
    pub fn rpc(&self) -> String {
        let all: Vec<String> = self.nodes.iter().map(|place| format!("127.0.0.1:{}", place.rpc)).collect();
        all.join(",")
    }

    pub fn rpc_of(&self, n: usize) -> String {
        format!("127.0.0.1:{}", self.nodes[n].rpc)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_up(&self, n: usize) -> bool {
        self.nodes[n].child.is_some()
    }

    /// For the stories of what went wrong. When instants may be missed by policy is not a single node's question: see `one.rs`.
    fn note(&self, detail: String) {
        let event = FaultEvent::NodeStarted;
        self.faults.line(&FaultLine { event, t_us: now_us(), executor: None, detail: Some(detail) });
    }

    /// Starts a node and waits until it says where it listens.
    pub fn start(&mut self, n: usize) -> io::Result<()> {
        let name = format!("n{}", n + 1);
        let log = OpenOptions::new().create(true).append(true).open(self.dir.join(format!("{name}.log")))?;
        let mut command = self.command(n);
        command.args(["server", "--with-parent", &std::process::id().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = OwnChild::start(&mut command)?;
        let stdout = child.child().stdout.take().ok_or_else(|| io::Error::other("no output of the node"))?;
        let (send, lines) = mpsc::channel();
        std::thread::Builder::new().name("node output".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        })?;
        loop {
            let line = lines
                .recv_timeout(READY)
                .map_err(|_| io::Error::other(format!("{name} did not say where it listens; see {name}.log")))?;
            if line.starts_with("rpc=") {
                break;
            }
        }
        self.note(format!("{name} started"));
        self.nodes[n].child = Some(child);
        Ok(())
    }

    /// kill -9.
    pub fn kill(&mut self, n: usize) -> io::Result<()> {
        self.note(format!("n{} killed", n + 1));
        match self.nodes[n].child.take() {
            Some(mut child) => child.kill().map(drop),
            None => Ok(()),
        }
    }

    /// Makes it stand still, or go on.
    pub fn freeze(&self, n: usize, still: bool) -> io::Result<()> {
        self.note(format!("n{} {}", n + 1, if still { "frozen" } else { "thawed" }));
        self.nodes[n].child.as_ref().map_or(Ok(()), |child| child.freeze(still))
    }

    /// As an operator stops it.
    pub fn stop(&mut self, n: usize) -> io::Result<()> {
        self.note(format!("n{} stopped", n + 1));
        match self.nodes[n].child.take() {
            Some(mut child) => child.end(STOPPED).map(drop),
            None => Ok(()),
        }
    }
}
