//! A run directory with the processes that write into it: one node, its executors, and a caller in this process.

use crate::{
    load::caller::Caller,
    process::node::{ExecutorProcess, ExecutorSetup, Node, NodeSetup, Started, free_port},
    run_dir::{
        lines::{FaultEvent, FaultLine, now_us},
        record::Record,
    },
};
use campanile_client::{Client, ClientError, ClientOptions, Retry};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Deadline of one try of a call.
const CALL: Duration = Duration::from_secs(10);
/// Executors must be registered within this time of their start.
const REGISTERED: Duration = Duration::from_secs(30);

/// See the module's text. Dropping it kills the executors.
pub struct Fleet {
    pub dir: PathBuf,
    pub faults: Arc<Record>,
    pub setup: NodeSetup,
    calls: Arc<Record>,
    executors: Vec<ExecutorProcess>,
    /// Executors started so far: no two share a name, and so a file.
    started: usize,
}

impl Fleet {
    /// `dir` must not hold an earlier run: two histories in one directory prove nothing.
    pub fn new(dir: &Path, binary: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        if fs::read_dir(dir)?.next().is_some() {
            return Err(io::Error::other(format!("{} is not empty; name a new directory or empty it", dir.display())));
        }
        let dir = dir.canonicalize()?;
        let (binary, rpc_port) = (binary.canonicalize()?, free_port()?);
        let setup = NodeSetup { binary, dir: dir.clone(), rpc_port, fault: None, key_file: None };
        Ok(Self {
            faults: Arc::new(Record::open(&dir.join("faults.jsonl"), Duration::ZERO)?),
            calls: Arc::new(Record::open(&dir.join("caller-1.jsonl"), Duration::from_millis(5))?),
            dir,
            setup,
            executors: Vec::new(),
            started: 0,
        })
    }

    pub fn start_node(&mut self, fault: Option<String>) -> io::Result<Node> {
        self.setup.fault = fault;
        tokio::task::block_in_place(|| Node::start(&self.setup, &self.faults))
    }

    /// The same with a fail point to which it may come before it listens.
    pub fn begin_node(&mut self, fault: Option<String>) -> io::Result<Started> {
        self.setup.fault = fault;
        tokio::task::block_in_place(|| Node::begin(&self.setup, &self.faults))
    }

    /// A node as an operator starts it; `token` is one of an operator in the token file.
    pub fn start_server(&self, tokens: &Path, token: &str) -> io::Result<Node> {
        tokio::task::block_in_place(|| Node::start_server(&self.setup, tokens, token, &self.faults))
    }

    /// Something that was done to the node since `t_us`: what was due meanwhile may be late or missed, and nothing else is excused.
    pub fn disturbed_since(&self, t_us: i64, why: &str) {
        let line = FaultLine::now(FaultEvent::Disturbed, Some(why.to_owned()));
        self.faults.line(&FaultLine { t_us, until_us: Some(now_us()), ..line });
    }

    /// A caller of the node, which follows it over restarts.
    pub async fn caller(&self, node: &Node) -> Result<Caller, ClientError> {
        let options = ClientOptions::new(vec![node.rpc.clone()], node.token.clone()).timeout(CALL).retry(Retry::LOST);
        Ok(Caller::new(Client::connect_with(options).await?, Arc::clone(&self.calls)))
    }

    /// Starts one more executor; its name tells its file.
    pub fn start_executor(
        &mut self,
        node: &Node,
        pool: &str,
        slots: u32,
        fail_percent: u32,
        flush_ms: u64,
    ) -> io::Result<()> {
        let setup = ExecutorSetup {
            rpc: node.rpc.clone(),
            token: node.token.clone(),
            pool: pool.to_owned(),
            slots,
            fail_percent,
            flush_ms,
            dir: self.dir.clone(),
            log: true,
            stats: false,
            ends: None,
        };
        self.started += 1;
        let name = format!("executor-{}", self.started);
        let log = self.dir.join("executors.log");
        self.executors.push(ExecutorProcess::start(&setup, &name, &log, &self.faults)?);
        Ok(())
    }

    /// Waits until the node knows all executors.
    pub async fn executors_ready(&self, client: &Client) -> Result<(), String> {
        let deadline = Instant::now() + REGISTERED;
        loop {
            let known = client.executor_list().await.map(|list| list.items.len());
            match known {
                Ok(count) if count >= self.executors.len() => return Ok(()),
                Ok(_) | Err(_) if Instant::now() < deadline => sleep(Duration::from_millis(50)).await,
                Ok(count) => {
                    return Err(format!("{count} of {} executors are registered", self.executors.len()));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    pub fn executor_pids(&self) -> Vec<u32> {
        self.executors.iter().map(ExecutorProcess::pid).collect()
    }

    /// kill -9 of the executor with this name.
    pub fn kill_executor(&mut self, name: &str) -> io::Result<()> {
        match self.executors.iter().position(|e| e.name == name) {
            Some(at) => self.executors.remove(at).kill9(),
            None => Err(io::Error::other(format!("no executor '{name}' is running"))),
        }
    }

    /// Makes the oldest executor stand still, or go on; its name.
    pub fn freeze_executor(&self, still: bool) -> io::Result<String> {
        let executor = self.executors.first().ok_or_else(|| io::Error::other("no executor is running"))?;
        executor.freeze(still).map(|()| executor.name.clone())
    }

    /// Stops executors and closes the caller's file, so that the directory can be checked.
    pub fn finish(self, caller: Caller) -> io::Result<()> {
        tokio::task::block_in_place(|| self.executors.into_iter().try_for_each(|e| e.stop(Duration::from_secs(10))))?;
        drop(caller);
        // Calls that are still open elsewhere keep the file; what is known is written within its flush time.
        if let Some(calls) = Arc::into_inner(self.calls) {
            calls.close()?;
        }
        Ok(())
    }
}

/// When the program is told to end, so are all processes that it started.
pub fn end_children_on_signals() {
    tokio::spawn(async {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = term.recv() => {}
            }
            crate::process::children::kill_all();
            std::process::exit(130);
        }
    });
}
