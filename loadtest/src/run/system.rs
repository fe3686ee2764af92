//! The system under load: a node that the harness starts, or one that runs already, and executor processes of the harness.

use super::RunArgs;
use crate::{
    process::{
        node::{ExecutorProcess, ExecutorSetup, Node, NodeSetup, free_port},
        proc_stat::Usage,
    },
    run_dir::{
        lines::{FaultEvent, FaultLine, now_us},
        record::Record,
    },
    scenario::Restart,
};
use campanile_client::{Client, ClientError, ClientOptions, Retry};
use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::{block_in_place, spawn_blocking},
    time::{Instant, sleep},
};

/// Deadline of one try of a call.
const CALL: Duration = Duration::from_secs(10);
/// Executors must be registered within this time of their start.
const REGISTERED: Duration = Duration::from_secs(30);
/// A node that is asked to stop gets this long.
const STOP: Duration = Duration::from_secs(20);
/// One with very many jobs, in the middle of a run.
const STOP_WITH_JOBS: Duration = Duration::from_secs(60);

/// Where the node is.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub rpc: String,
    /// With its scheme, without a slash at the end.
    pub http: Option<String>,
    pub token: String,
    pub executor_token: String,
}

impl Address {
    /// Of a node of the harness.
    fn of(node: &Node) -> Self {
        let (http, token) = (Some(format!("http://{}", node.http)), node.token.clone());
        Self { rpc: node.rpc.clone(), http, executor_token: token.clone(), token }
    }
}

/// A process that did not end well.
pub(super) struct FailedProcess {
    pub what: String,
    /// By its own word, and not because it took too long: an executor's counts are not whole then.
    pub failed: bool,
}

/// See the module's text. Dropping it kills all processes that it started.
pub(super) struct System {
    pub dir: PathBuf,
    pub address: Address,
    node: Option<Node>,
    /// How the harness starts its node.
    setup: Option<NodeSetup>,
    /// What processes of the node used that are gone.
    pub gone: Usage,
    /// Process of the node, where it is on this machine.
    pub server_pid: Option<u32>,
    faults: Arc<Record>,
    executors: Vec<ExecutorProcess>,
    /// Executors started so far: no two share a name, and so a file.
    started: usize,
    slots: u32,
    log: bool,
}

fn file_name(n: usize) -> String {
    format!("executor-{n}")
}

impl System {
    /// Starts the node, or only notes where it is. `log`: executors write down each body, for the checker.
    pub fn start(args: &RunArgs, dir: &Path, slots: u32, log: bool) -> Result<Self, String> {
        let faults =
            Record::open(&dir.join("faults.jsonl"), Duration::ZERO).map_err(|e| format!("{}: {e}", dir.display()))?;
        let faults = Arc::new(faults);
        let (node, setup, address, server_pid) = match &args.rpc {
            Some(rpc) => {
                let token = args.token.clone().unwrap_or_default();
                let http = args.http.as_ref().map(|http| {
                    let http = http.trim_end_matches('/');
                    if http.contains("://") { http.to_owned() } else { format!("http://{http}") }
                });
                let executor_token = args.executor_token.clone().unwrap_or_else(|| token.clone());
                (None, None, Address { rpc: rpc.clone(), http, token, executor_token }, args.server_pid)
            }
            None => {
                let binary = args.server()?;
                let rpc_port = free_port().map_err(|error| format!("no free port: {error}"))?;
                let setup = NodeSetup { binary, dir: dir.to_owned(), rpc_port, fault: None, key_file: None };
                let node = block_in_place(|| Node::start(&setup, &faults)).map_err(|error| error.to_string())?;
                let (address, pid) = (Address::of(&node), node.pid());
                (Some(node), Some(setup), address, Some(pid))
            }
        };
        let dir = dir.to_owned();
        let (gone, executors) = (Usage::default(), Vec::new());
        Ok(Self { dir, address, node, setup, gone, server_pid, faults, executors, started: 0, slots, log })
    }

    /// Started by the harness.
    pub fn is_own(&self) -> bool {
        self.setup.is_some()
    }

    /// Ends the node and starts it again on its directory. Microseconds since 1970 UTC of the new process's start.
    pub async fn restart(&mut self, how: Restart) -> Result<i64, String> {
        let (Some(node), Some(setup)) = (self.node.take(), self.setup.clone()) else {
            return Err(
                "the workload restarts the node, and only one of the harness can be: leave --rpc out".to_owned()
            );
        };
        if let Some(used) = self.server_pid.take().and_then(|pid| Usage::of(pid).ok()) {
            self.gone.cpu_us += used.cpu_us;
            self.gone.write_bytes += used.write_bytes;
        }
        let faults = Arc::clone(&self.faults);
        let again = spawn_blocking(move || {
            match how {
                Restart::Kill => node.kill9("restart")?,
                Restart::Term => {
                    // For the checker an outage like any other, from before it begins.
                    let (event, detail) = (FaultEvent::NodeKilled, Some("asked to stop".to_owned()));
                    faults.line(&FaultLine::now(event, detail));
                    let status = node.stop(STOP_WITH_JOBS)?;
                    if !status.success() {
                        return Err(std::io::Error::other(format!("asked to stop it ended with {status}")));
                    }
                }
            }
            let begin_us = now_us();
            Node::start(&setup, &faults).map(|node| (node, begin_us))
        });
        let again = again.await.map_err(|error| error.to_string())?;
        let (node, begin_us) = again.map_err(|error| format!("the node does not come back: {error}"))?;
        (self.address, self.server_pid) = (Address::of(&node), Some(node.pid()));
        self.node = Some(node);
        Ok(begin_us)
    }

    pub async fn connect(&self) -> Result<Client, String> {
        let address = &self.address;
        let options =
            ClientOptions::new(vec![address.rpc.clone()], address.token.clone()).timeout(CALL).retry(Retry::LOST);
        Client::connect_with(options).await.map_err(|error| match error {
            ClientError::Io { reason, .. } => format!(
                "no node answers at {} ({reason}): is it running, and is this its RPC address ([rpc] listen, not HTTP)? \
                 Without --rpc the harness starts a node of its own.",
                address.rpc
            ),
            ClientError::Api(api) => format!(
                "the node at {} refuses the token ({}): --token takes one of role OPERATOR; `campanile token new` makes one.",
                address.rpc, api.message
            ),
            ClientError::Timeout { .. } | ClientError::Protocol(_) => {
                format!("{} does not speak Campanile's RPC ({error}): is it the HTTP address?", address.rpc)
            }
        })
    }

    /// So many executors, by starting or stopping some; waits until the node knows them.
    pub async fn scale(&mut self, client: &Client, count: u32) -> Result<(), String> {
        while self.executors.len() > count as usize {
            if let Some(last) = self.executors.pop() {
                block_in_place(|| last.stop(STOP)).map_err(|error| format!("an executor does not stop: {error}"))?;
            }
        }
        while self.executors.len() < count as usize {
            self.start_executor().map_err(|error| format!("an executor cannot be started: {error}"))?;
        }
        let deadline = Instant::now() + REGISTERED;
        loop {
            let known = client.executor_list().await.map_err(|error| error.to_string())?.items;
            // Others may come and go.
            if self.executors.iter().all(|own| known.iter().any(|known| known.executor_id == own.name)) {
                return Ok(());
            }
            if let Some(ended) = self.dead_executors().first() {
                return Err(format!(
                    "an executor ended at its start ({ended}); see {}",
                    self.dir.join("executors.log").display()
                ));
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "the node does not know the executors after {} s: does --executor-token have the role EXECUTOR? See {}",
                    REGISTERED.as_secs(),
                    self.dir.join("executors.log").display()
                ));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn start_executor(&mut self) -> std::io::Result<()> {
        let setup = ExecutorSetup {
            rpc: self.address.rpc.clone(),
            token: self.address.executor_token.clone(),
            pool: "default".to_owned(),
            slots: self.slots,
            fail_percent: 0,
            flush_ms: 5,
            dir: self.dir.clone(),
            log: self.log,
            stats: true,
            ends: None,
        };
        self.started += 1;
        let name = file_name(self.started);
        self.executors.push(ExecutorProcess::start(&setup, &name, &self.dir.join("executors.log"), &self.faults)?);
        Ok(())
    }

    /// kill -9 of the first executors; their names.
    pub fn kill(&mut self, count: u32) -> Vec<String> {
        let count = self.executors.len().min(count as usize);
        let victims: Vec<ExecutorProcess> = self.executors.drain(..count).collect();
        let names = victims.iter().map(|victim| victim.name.clone()).collect();
        for victim in victims {
            // One that is gone already is what was asked for.
            let _ = block_in_place(|| victim.kill9());
        }
        names
    }

    /// Executors that ended by themselves since the last call.
    pub fn dead_executors(&mut self) -> Vec<String> {
        let mut dead = Vec::new();
        self.executors.retain_mut(|executor| match executor.ended() {
            Some(status) => {
                dead.push(format!("{} ({status})", executor.name));
                false
            }
            None => true,
        });
        dead
    }

    /// How the node ended, when it did so by itself.
    pub fn node_ended(&mut self) -> Option<ExitStatus> {
        self.node.as_mut().and_then(Node::ended)
    }

    pub fn executor_pids(&self) -> Vec<u32> {
        self.executors.iter().map(ExecutorProcess::pid).collect()
    }

    /// Files with the counts of each second, of all executors so far.
    pub fn stats_files(&self) -> Vec<PathBuf> {
        (1..=self.started).map(|n| self.dir.join(format!("stats-{}.jsonl", file_name(n)))).collect()
    }

    /// Directory of the node's files, when it is ours.
    pub fn data(&self) -> Option<PathBuf> {
        self.setup.is_some().then(|| self.dir.join("data"))
    }

    /// Stops what it started, the node first, so that it does not see its executors leave. Tells of those that did not end well.
    pub fn stop(mut self) -> Vec<FailedProcess> {
        let mut told = Vec::new();
        let mut tell = |name: &str, status: std::io::Result<ExitStatus>, log: &str| match status {
            Ok(status) if status.success() => {}
            Ok(status) => told.push(FailedProcess {
                what: format!("{name} ended with {status} when it was stopped; see {log}"),
                failed: status.code().is_some(),
            }),
            Err(error) => {
                told.push(FailedProcess { what: format!("{name} could not be stopped: {error}"), failed: false })
            }
        };
        block_in_place(|| {
            if let Some(node) = self.node.take() {
                // Killed when it takes too long; the run is over either way.
                tell("the node", node.stop(STOP), "node.log");
            }
            for executor in self.executors.drain(..) {
                let name = executor.name.clone();
                tell(&name, executor.end(STOP), "executors.log");
            }
        });
        told
    }
}
