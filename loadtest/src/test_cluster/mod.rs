//! The nodes of a cluster as processes, with what they share: keys, certificates, a token, the schema; and their store.

mod clients;
mod hardship;
pub mod host;
mod release;
pub mod store;

pub use clients::ready;
pub use release::Program;

use crate::{
    limits::NODE_OUTPUT_LINES,
    load::targets::NodeStarts,
    process::{children::OwnChild, node::free_port},
    run_dir::{
        lines::{FaultEvent, FaultLine},
        record::Record,
    },
};
use host::Host;
use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

/// A node must say where it listens within this time of its start.
const READY: Duration = Duration::from_secs(90);
/// A node that stops gives its shards away first.
const STOPPED: Duration = Duration::from_secs(60);
const CLUSTER: &str = "chaos";

/// What a cluster is founded with.
pub struct Founding<'a> {
    pub binary: &'a Path,
    /// The program of an earlier release: it founds the cluster, and all nodes begin with it.
    pub earlier: Option<&'a Path>,
    pub dir: &'a Path,
    /// One for each node that will ever be.
    pub hosts: Vec<Host>,
    pub shards: u16,
    pub contact_points: &'a [String],
    pub keyspace: &'a str,
    pub replication: u16,
    /// `CAMPANILE_FAULT` of every node.
    pub fault: &'a str,
    /// Nodes whose wall clock is set from here. Each reading of it reads a file, so only where it is needed.
    pub clocks: Vec<usize>,
    /// Nodes with a small disk of their own.
    pub disks: Vec<usize>,
    /// More settings of every node: `SECTION__KEY`, value.
    pub settings: Vec<(String, String)>,
}

/// See the module's text.
pub struct TestCluster {
    binary: PathBuf,
    earlier: Option<PathBuf>,
    dir: PathBuf,
    shards: u16,
    contact_points: String,
    keyspace: String,
    replication: u16,
    fault: String,
    clocks: Vec<usize>,
    disks: Vec<usize>,
    settings: Vec<(String, String)>,
    pub token: String,
    /// For callers.
    node_starts: NodeStarts,
    nodes: Vec<ClusterNode>,
    faults: Arc<Record>,
}

/// A node's addresses, and its process while it has one.
struct ClusterNode {
    host: Host,
    rpc: u16,
    http: u16,
    gossip: u16,
    gateway: u16,
    /// What it is started with.
    program: Program,
    /// Formats that its release knows beyond this one's: see `release.rs`.
    later: u32,
    child: Option<OwnChild>,
    /// Its output.
    lines: Option<mpsc::Receiver<String>>,
}

impl ClusterNode {
    fn at(&self, port: u16) -> String {
        format!("{}:{port}", self.host.address)
    }
}

impl TestCluster {
    /// Makes the keys and the schema; no node is started.
    pub fn new(founding: Founding<'_>, faults: Arc<Record>) -> io::Result<Self> {
        let program = if founding.earlier.is_some() { Program::Earlier } else { Program::Present };
        let place = |host| -> io::Result<ClusterNode> {
            let (rpc, http, gossip, gateway) = (free_port()?, free_port()?, free_port()?, free_port()?);
            Ok(ClusterNode { host, rpc, http, gossip, gateway, program, later: 0, child: None, lines: None })
        };
        let dir = founding.dir;
        let mut cluster = Self {
            binary: founding.binary.to_owned(),
            earlier: founding.earlier.map(Path::to_owned),
            dir: dir.to_owned(),
            shards: founding.shards,
            contact_points: founding.contact_points.join(","),
            keyspace: founding.keyspace.to_owned(),
            replication: founding.replication,
            fault: founding.fault.to_owned(),
            clocks: founding.clocks,
            disks: founding.disks,
            settings: founding.settings,
            token: String::new(),
            node_starts: NodeStarts::of(founding.hosts.len()),
            nodes: founding.hosts.into_iter().map(place).collect::<io::Result<_>>()?,
            faults,
        };
        for n in cluster.clocks.clone() {
            cluster.set_clock(n, 0)?;
        }
        cluster.mount_disks()?;
        let keys = dir.join("keys");
        cluster.run(program, &["cluster", "new-keys", "--name", CLUSTER], Some(&keys))?;
        let key = cluster.run(program, &["secrets", "new-key"], None)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(cluster.secrets())?
            .write_all(key.as_bytes())?;
        let new_token = ["token", "new", "--name", "chaos", "--role", "operator", "--append"];
        let made = cluster.run(program, &new_token, Some(&dir.join("tokens")))?;
        cluster.token = made.lines().next().unwrap_or_default().trim().to_owned();
        cluster.apply_schema(program)?;
        Ok(cluster)
    }

    /// A busy store may not answer in time; then nobody knows, and it is asked again.
    pub fn apply_schema(&self, program: Program) -> io::Result<()> {
        let deadline = Instant::now() + READY;
        loop {
            match self.run(program, &["schema", "apply"], None) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_secs(1)),
            }
        }
    }

    /// Runs a program with the first node's configuration; gives what it wrote.
    fn run(&self, program: Program, args: &[&str], path: Option<&Path>) -> io::Result<String> {
        let mut command = self.command(0, program)?;
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

    pub fn name(n: usize) -> String {
        format!("n{}", n + 1)
    }

    fn data(&self, n: usize) -> PathBuf {
        self.dir.join(format!("node-{}", n + 1))
    }

    fn log(&self, n: usize) -> PathBuf {
        self.dir.join(format!("{}.log", Self::name(n)))
    }

    /// Keys that seal the secrets of jobs.
    fn secrets(&self) -> PathBuf {
        self.dir.join("keys/secrets.keys")
    }

    fn clock(&self, n: usize) -> PathBuf {
        self.dir.join(format!("clock-{}", n + 1))
    }

    /// A command of a program with the node's configuration, all of it in the environment. Settings that the earlier release does not
    /// know would end it at its start: there are none so far.
    fn command(&self, n: usize, program: Program) -> io::Result<Command> {
        let (place, keys) = (&self.nodes[n], self.dir.join("keys"));
        let seeds: Vec<String> = self.nodes.iter().map(|place| place.at(place.gossip)).collect();
        let mut command = place.host.command(self.binary_of(program)?);
        let mut set = |name: &str, value: &str| {
            command.env(format!("CAMPANILE_{name}"), value);
        };
        set("NODE__NAME", &Self::name(n));
        set("NODE__DATA_DIR", &self.data(n).to_string_lossy());
        set("NODE__SHARDS", &self.shards.to_string());
        set("HTTP__LISTEN", &place.at(place.http));
        set("RPC__LISTEN", &place.at(place.rpc));
        set("AUTH__TOKEN_FILE", &self.dir.join("tokens").to_string_lossy());
        set("CLUSTER__NAME", CLUSTER);
        set("CLUSTER__SEEDS", &seeds.join(","));
        set("CLUSTER__GOSSIP_LISTEN", &place.at(place.gossip));
        set("CLUSTER__GATEWAY_LISTEN", &place.at(place.gateway));
        set("CLUSTER__KEY_FILE", &keys.join("gossip.keys").to_string_lossy());
        set("CLUSTER__TLS_CERT_FILE", &keys.join("node.pem").to_string_lossy());
        set("CLUSTER__TLS_KEY_FILE", &keys.join("node-key.pem").to_string_lossy());
        set("CLUSTER__TLS_CA_FILE", &keys.join("ca.pem").to_string_lossy());
        if self.secrets().exists() {
            set("SECRETS__KEY_FILE", &self.secrets().to_string_lossy());
        }
        set("CQL__CONTACT_POINTS", &self.contact_points);
        set("CQL__DATA_CENTER", "datacenter1");
        set("CQL__KEYSPACE", &self.keyspace);
        set("CQL__REPLICATION", &self.replication.to_string());
        self.settings.iter().for_each(|(name, value)| set(name, value));
        if self.clocks.contains(&n) {
            set("CLOCK_OFFSET_MS", &self.clock(n).to_string_lossy());
        }
        Ok(command)
    }

    /// Addresses of all nodes' RPC, with commas between.
    pub fn rpc(&self) -> String {
        let all: Vec<String> = (0..self.len()).map(|n| self.rpc_of(n)).collect();
        all.join(",")
    }

    pub fn rpc_of(&self, n: usize) -> String {
        self.nodes[n].at(self.nodes[n].rpc)
    }

    /// Base of its HTTP addresses.
    pub fn http_of(&self, n: usize) -> String {
        format!("http://{}", self.nodes[n].at(self.nodes[n].http))
    }

    /// Its process, while it has one.
    pub fn pid(&self, n: usize) -> Option<u32> {
        self.nodes[n].child.as_ref().map(OwnChild::pid)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_up(&self, n: usize) -> bool {
        self.nodes[n].child.is_some()
    }

    /// For the stories of what went wrong. When instants may be missed by policy is not a single node's question: see `chaos/run_scenario.rs`.
    fn note(&self, detail: String) {
        self.faults.line(&FaultLine::now(FaultEvent::NodeStarted, Some(detail)));
    }

    /// Starts a node, with a fault of its own, and waits until it says where it listens.
    pub fn start(&mut self, n: usize, fault: &str) -> io::Result<()> {
        self.launch(n, fault)?;
        self.listens(n)
    }

    /// Starts a node.
    pub fn launch(&mut self, n: usize, fault: &str) -> io::Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.log(n))?;
        let mut command = self.command(n, self.nodes[n].program)?;
        let faults: Vec<&str> = [self.fault.as_str(), fault].into_iter().filter(|fault| !fault.is_empty()).collect();
        if !faults.is_empty() {
            command.env("CAMPANILE_FAULT", faults.join(";"));
        }
        command.args(["server", "--with-parent", &std::process::id().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        if self.nodes[n].later > 0 {
            command.env("CAMPANILE_FORMATS", self.nodes[n].later.to_string());
        }
        let mut child = OwnChild::start(&mut command)?;
        let stdout = child.child().stdout.take().ok_or_else(|| io::Error::other("no output of the node"))?;
        let (send, lines) = mpsc::sync_channel(NODE_OUTPUT_LINES);
        std::thread::Builder::new().name("node output".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Full or nobody listens: only the first lines matter.
                let _ = send.try_send(line);
            }
        })?;
        let with = if self.earlier.is_some() { format!(" as {:?}", self.nodes[n].program) } else { String::new() };
        self.note(format!("{} started{with}", Self::name(n)));
        self.nodes[n].child = Some(child);
        self.nodes[n].lines = Some(lines);
        Ok(())
    }

    /// Waits until a node that was launched says where it listens.
    pub fn listens(&mut self, n: usize) -> io::Result<()> {
        let deadline = Instant::now() + READY;
        let silent = || io::Error::other(format!("{0} did not say where it listens; see {0}.log", Self::name(n)));
        let lines = self.nodes[n].lines.as_ref().ok_or_else(silent)?;
        loop {
            let line = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).map_err(|_| silent())?;
            if line.starts_with("rpc=") {
                self.node_starts.begin(n);
                return Ok(());
            }
        }
    }

    /// kill -9.
    pub fn kill(&mut self, n: usize) -> io::Result<()> {
        self.note(format!("{} killed", Self::name(n)));
        self.node_starts.end(n);
        match self.nodes[n].child.take() {
            Some(mut child) => child.kill().map(drop),
            None => Ok(()),
        }
    }

    /// Makes it stand still, or go on.
    pub fn freeze(&self, n: usize, still: bool) -> io::Result<()> {
        self.note(format!("{} {}", Self::name(n), if still { "frozen" } else { "thawed" }));
        self.nodes[n].child.as_ref().map_or(Ok(()), |child| child.freeze(still))
    }

    /// As an operator stops them, all at once.
    pub fn stop(&mut self, which: &[usize]) -> io::Result<()> {
        let mut leaving = Vec::new();
        for n in which {
            self.note(format!("{} stopped", Self::name(*n)));
            if let Some(child) = self.nodes[*n].child.take() {
                child.ask()?;
                leaving.push(child);
            }
        }
        // Asked once: a second time means that it is to end at once.
        let ended = leaving.iter_mut().try_for_each(|child| match child.wait(STOPPED)? {
            Some(_) => Ok(()),
            None => child.kill().map(drop),
        });
        // Until then callers go through them.
        which.iter().for_each(|n| self.node_starts.end(*n));
        ended
    }

    /// Waits until a node has ended itself.
    pub fn ends(&mut self, n: usize, patience: Duration) -> io::Result<()> {
        let alive = || io::Error::other(format!("{} did not come to its fail point", Self::name(n)));
        let status = self.ended(n, patience)?.ok_or_else(alive)?;
        self.node_starts.end(n);
        self.note(format!("{} ended itself: {status}", Self::name(n)));
        Ok(())
    }

    /// How often a line of the nodes' logs holds this.
    pub fn told(&self, what: &str) -> io::Result<usize> {
        let mut count = 0;
        for n in (0..self.len()).filter(|n| self.log(*n).exists()) {
            let log = fs::read(self.log(n))?;
            count += String::from_utf8_lossy(&log).lines().filter(|line| line.contains(what)).count();
        }
        Ok(count)
    }

    /// How a node ended that was launched, when it did so in time.
    fn ended(&mut self, n: usize, patience: Duration) -> io::Result<Option<ExitStatus>> {
        self.nodes[n].child.take().map_or(Ok(None), |mut child| child.wait(patience))
    }
}
