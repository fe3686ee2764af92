//! Where a story happens: one node on a directory of its own, or a cluster of two nodes that share Apache Cassandra. Nodes and executors
//! are processes of the real program, and calls are made as a user makes them.
//!
//! All stories of a test program share the cluster, each with tenants and a pool of its own. A story that kills nodes has the cluster to
//! itself. `CAMPANILE_FAULT` of the tests is passed on to the nodes, so that a story can be seen to fail.

use crate::{
    migrate_cql::{Process, cassandra, member, ok},
    program::{self, Done, eventually},
};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::{TcpListener, UdpSocket},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, LazyLock},
    time::Duration,
};

/// Tells a story of the cluster whether it shares the nodes.
static TURN: RwLock<()> = RwLock::new(());

/// The cluster of all stories. It is never dropped: the servers end with this process, and Cassandra with the other end of its stdin.
static CLUSTER: LazyLock<Arc<Place>> = LazyLock::new(|| Arc::new(Place::cluster()));

/// What holds the shared cluster while a story runs.
pub enum Turn {
    /// A place of the story's own.
    Own,
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
    },
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
    },
}

impl Turn {
    pub fn shared() -> Self {
        Self::Shared { _guard: TURN.read() }
    }

    pub fn alone() -> Self {
        Self::Alone { _guard: TURN.write() }
    }
}

/// A node, at the same ports whenever it runs.
struct Node {
    name: String,
    http: String,
    rpc: String,
    gossip: String,
    gateway: String,
    process: Mutex<Option<Process>>,
}

fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Node {
    fn new(name: &str) -> Self {
        let gossip = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        Self { name: name.to_owned(), http: free(), rpc: free(), gossip, gateway: free(), process: Mutex::default() }
    }

    /// Status and body; nothing when it does not answer.
    fn http(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(20)))
            .build()
            .into();
        let url = format!("http://{}{path}", self.http);
        let bearer = format!("Bearer {token}");
        let mut answer = match (method, body) {
            ("GET", _) => agent.get(&url).header("Authorization", bearer).call(),
            ("PUT", Some(body)) => agent.put(&url).header("Authorization", bearer).send_json(body),
            (_, Some(body)) => {
                // A create that is repeated, because its answer did not come, creates once.
                let key = body["name"].as_str().map(str::to_owned);
                let post = agent.post(&url).header("Authorization", bearer);
                match key {
                    Some(key) => post.header("Idempotency-Key", key).send_json(body),
                    None => post.send_json(body),
                }
            }
            (_, None) => agent.post(&url).header("Authorization", bearer).send_empty(),
        }
        .ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_json().unwrap_or(Value::Null)))
    }
}

/// See the module's text.
pub struct Place {
    home: PathBuf,
    nodes: Vec<Node>,
    /// Contact point of the store; none: each node has its own directory.
    store: Option<String>,
    operator: String,
    executor: String,
    /// Removed with the place.
    _dir: Option<tempfile::TempDir>,
    _server: Option<Process>,
}

impl Place {
    pub fn one_node() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::made(dir.path().to_owned(), &["n1"], None, Some(dir), None)
    }

    fn cluster() -> Self {
        // The script of Cassandra removes it in the end.
        let home = tempfile::tempdir().unwrap().keep();
        let (server, store) = cassandra(&home);
        ok(program::campanile().args(["cluster", "new-keys", "--name", "moved"]).arg(home.join("keys")));
        ok(member(&home, &store).args(["schema", "apply"]));
        Self::made(home, &["n1", "n2"], Some(store), None, Some(server))
    }

    /// The cluster that all stories share.
    pub fn shared_cluster() -> Arc<Self> {
        CLUSTER.clone()
    }

    fn made(
        home: PathBuf,
        names: &[&str],
        store: Option<String>,
        dir: Option<tempfile::TempDir>,
        server: Option<Process>,
    ) -> Self {
        let pools = (1..=12).map(super::name_of).collect::<Vec<_>>().join(",");
        let operator = new_token(&home, &["--name", "olga", "--role", "operator"]);
        let executor = new_token(&home, &["--name", "boxes", "--role", "executor", "--pools", &pools]);
        let key = ok(program::campanile().args(["secrets", "new-key"]));
        let mut keys = File::options().create_new(true).write(true).mode(0o600).open(home.join("secret.keys")).unwrap();
        keys.write_all(key.as_bytes()).unwrap();
        let nodes = names.iter().map(|name| Node::new(name)).collect();
        let place = Self { home, nodes, store, operator, executor, _dir: dir, _server: server };
        place.start_all();
        place
    }

    pub fn is_cluster(&self) -> bool {
        self.store.is_some()
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Where everything lies that the nodes write: their directories or the files of Cassandra, and their logs.
    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn start_all(&self) {
        for n in 0..self.nodes.len() {
            self.start(n);
        }
        eventually("every node is ready", || {
            let ready = |node: &Node| {
                node.http(&self.operator, "GET", "/readyz", None).is_some_and(|(status, _)| status == 200)
            };
            self.nodes.iter().all(ready).then_some(())
        });
    }

    pub fn kill_all(&self) {
        for n in 0..self.nodes.len() {
            self.kill(n);
        }
    }

    pub fn start(&self, n: usize) {
        let node = &self.nodes[n];
        let mut command = match &self.store {
            Some(store) => member(&self.home, store),
            None => program::campanile(),
        };
        let log = File::options().create(true).append(true).open(self.home.join(&node.name).with_extension("log"));
        command
            .args(["server", "--http", &node.http, "--rpc", &node.rpc, "--data"])
            .arg(self.home.join(&node.name))
            .arg("--token-file")
            .arg(self.home.join("tokens"))
            .arg("--key-file")
            .arg(self.home.join("secret.keys"))
            .args(["--with-parent", &std::process::id().to_string()])
            .env("CAMPANILE_NODE__NAME", &node.name)
            .env("CAMPANILE_NODE__SHARDS", "8")
            .env("CAMPANILE_FAULT", std::env::var("CAMPANILE_FAULT").unwrap_or_default())
            .stdout(Stdio::piped())
            .stderr(log.unwrap());
        if self.store.is_some() {
            let seeds: Vec<&str> = self.nodes.iter().map(|node| node.gossip.as_str()).collect();
            command
                .env("CAMPANILE_CLUSTER__SEEDS", seeds.join(","))
                .env("CAMPANILE_CLUSTER__GOSSIP_LISTEN", &node.gossip)
                .env("CAMPANILE_CLUSTER__GATEWAY_LISTEN", &node.gateway)
                // Longer than it is by default, for a busy machine; short enough for a story in which nodes die.
                .env("CAMPANILE_CLUSTER__LEASE_MS", "6000")
                .env("CAMPANILE_CQL__REQUEST_TIMEOUT_MS", "2500");
        }
        let mut process = Process(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http="), "{} did not start: {line}\n{}", node.name, self.logs());
        *node.process.lock() = Some(process);
    }

    /// As by `kill -9`.
    pub fn kill(&self, n: usize) {
        *self.nodes[n].process.lock() = None;
    }

    /// One call over HTTP: status and body. It goes to whichever node serves it, as behind a load balancer, and again while none does.
    pub fn http(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        eventually(&format!("an answer to {method} {path}"), || {
            let answer = |node: &Node| node.http(&self.operator, method, path, body);
            self.nodes.iter().filter_map(answer).find(|(status, _)| *status != 503)
        })
    }

    /// One call over HTTP to one node only.
    pub fn http_at(&self, n: usize, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        self.nodes[n].http(&self.operator, method, path, body)
    }

    /// A command of a person, at whichever node serves it.
    pub fn run(&self, args: &[&str]) -> Done {
        /// Not reachable, or not ready.
        const AWAY: i32 = 7;
        eventually(&format!("an answer to campanile {args:?}"), || {
            let answer = |node: &Node| {
                let mut command = program::campanile();
                command.args(args).env("CAMPANILE_SERVER", format!("http://{}", node.http));
                Done::new(&command.env("CAMPANILE_API_TOKEN", &self.operator).output().unwrap())
            };
            self.nodes.iter().map(answer).find(|done| done.code != AWAY)
        })
    }

    /// An executor of its own process, for one pool.
    pub fn executor(&self, pool: &str, id: &str, slots: u32) -> Worker {
        let rpc: Vec<&str> = self.nodes.iter().map(|node| node.rpc.as_str()).collect();
        let log = File::options().create(true).append(true).open(self.home.join(id).with_extension("log"));
        let child = program::campanile()
            .args(["executor", "--rpc", &rpc.join(","), "--token", &self.executor, "--pool", pool, "--id", id])
            .args(["--slots", &slots.to_string()])
            .stdout(Stdio::piped())
            .stderr(log.unwrap())
            .spawn();
        let mut process = Process(child.unwrap());
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{line}\n{}", self.logs());
        Worker(process)
    }

    /// The last lines of all logs.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(&self.home).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "log") {
                let log = fs::read_to_string(entry.path()).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(30)..].join("\n");
                text.push_str(&format!("--- {}\n{last}\n", entry.path().display()));
            }
        }
        text
    }
}

fn new_token(home: &Path, of: &[&str]) -> String {
    let mut command = program::campanile();
    command.args(["token", "new"]).args(of).arg("--append").arg(home.join("tokens"));
    ok(&mut command).lines().next().unwrap().to_owned()
}

/// An executor; killed with the story.
pub struct Worker(Process);

impl Worker {
    fn signal(&self, signal: &str) {
        let pid = self.0.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// As by `kill -9`.
    pub fn kill(self) {
        drop(self);
    }

    /// Its process stands still, and its bodies go on.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }
}
