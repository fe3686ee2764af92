//! The processes of a run: a node as it is shipped (`campanile server` with a token file), its executors, and what is done to them.

use super::{memory::Memory, plan::FULL_S, tokens::Tokens};
use crate::{
    process::{
        fleet::Fleet,
        node::{ExecutorProcess, ExecutorSetup, Node},
    },
    run_dir::lines::now_us,
};
use campanile_client::Client;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::{error::Error, io, path::PathBuf, time::Duration};
use tokio::{
    task::block_in_place,
    time::{Instant, sleep},
};

/// Executors at all times, but for moments in which one takes another's place.
pub const EXECUTORS: usize = 4;
/// Bodies at once in each.
const SLOTS: u32 = 512;
/// Attempts that fail, of 100.
const FAIL_PERCENT: u32 = 2;
/// Lines of bodies are gathered so long, milliseconds.
const FLUSH_MS: u64 = 5;
const POOL: &str = "default";
/// Bytes of a file that the node may write while its disk is "full".
const FULL_BYTES: u64 = 48 << 10;
/// No step may take longer; it only ends a run in which something hangs.
const STEP: Duration = Duration::from_secs(60);
/// An executor that is asked to end lets its bodies end.
const ORDERLY: Duration = Duration::from_secs(20);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// See the module's text.
pub struct Site {
    pub fleet: Fleet,
    pub node: Node,
    tokens: Tokens,
    operator: String,
    /// The executors' credential: how many there were, and its token.
    changes: u32,
    token: String,
    executors: Vec<ExecutorProcess>,
    /// Executors started so far.
    started: usize,
    memory: Memory,
}

impl Site {
    pub async fn start(fleet: Fleet, memory: Memory) -> Outcome<Self> {
        let tokens = Tokens::new(&fleet.setup.binary, fleet.dir.join("tokens"));
        let operator = tokens.add("harness", &["operator"])?;
        let token = tokens.add(&credential(1), &["executor", "--pools", POOL])?;
        let node = fleet.start_server(tokens.file(), &operator)?;
        memory.begins(node.pid());
        let mut site =
            Self { fleet, node, tokens, operator, changes: 1, token, executors: Vec::new(), started: 0, memory };
        for _ in 0..EXECUTORS {
            site.start_executor()?;
        }
        Ok(site)
    }

    fn start_executor(&mut self) -> io::Result<()> {
        let setup = ExecutorSetup {
            rpc: self.node.rpc.clone(),
            token: self.token.clone(),
            pool: POOL.to_owned(),
            slots: SLOTS,
            fail_percent: FAIL_PERCENT,
            flush_ms: FLUSH_MS,
            dir: self.fleet.dir.clone(),
            log: true,
            stats: false,
            ends: None,
        };
        self.started += 1;
        let name = format!("executor-{}", self.started);
        let log = self.fleet.dir.join("executors.log");
        self.executors.push(ExecutorProcess::start(&setup, &name, &log, &self.fleet.faults)?);
        Ok(())
    }

    /// Until the node names exactly the executors that run.
    pub async fn executors_are_known(&self, client: &Client) -> Outcome<()> {
        let mut wanted: Vec<&str> = self.executors.iter().map(|executor| executor.name.as_str()).collect();
        wanted.sort_unstable();
        until("the node knows exactly the executors that run", async || {
            let Ok(list) = client.executor_list().await else { return false };
            let mut known: Vec<&str> = list.items.iter().map(|executor| executor.executor_id.as_str()).collect();
            known.sort_unstable();
            known == wanted
        })
        .await
    }

    /// kill -9 of the oldest; another one takes its place.
    pub async fn kill_executor(&mut self, client: &Client) -> Outcome<String> {
        let killed = self.executors.remove(0);
        let name = killed.name.clone();
        block_in_place(|| killed.kill9())?;
        self.start_executor()?;
        self.executors_are_known(client).await?;
        Ok(format!("{name}; {} took its place", self.executors.last().map_or("", |e| e.name.as_str())))
    }

    /// kill -9 of the node, and a start on the same directory.
    pub async fn kill_node(mut self, client: &Client) -> Outcome<(Self, String)> {
        let begin = Instant::now();
        block_in_place(|| self.node.kill9("endurance"))?;
        self.node = self.fleet.start_server(self.tokens.file(), &self.operator)?;
        self.memory.begins(self.node.pid());
        self.executors_are_known(client).await?;
        let told = format!("all executors were there again after {} ms", begin.elapsed().as_millis());
        Ok((self, told))
    }

    /// The node stands still for so long.
    pub async fn freeze_node(&self, client: &Client, seconds: u64) -> Outcome<String> {
        let since_us = now_us();
        self.node.freeze(true)?;
        sleep(Duration::from_secs(seconds)).await;
        self.node.freeze(false)?;
        let begin = Instant::now();
        self.executors_are_known(client).await?;
        self.is_ready().await?;
        self.fleet.disturbed_since(since_us, "the node stands still");
        Ok(format!("ready with all executors {} ms after it went on", begin.elapsed().as_millis()))
    }

    /// The node's disk is full for a while, to the node alone.
    pub async fn fill_disk(&self, client: &Client) -> Outcome<String> {
        let since_us = now_us();
        self.limit_files(Some(FULL_BYTES))?;
        let refused = until("the node says that its disk is full", async || !self.ready()).await;
        sleep(Duration::from_secs(FULL_S)).await;
        let still = self.ready();
        self.limit_files(None)?;
        refused?;
        if still {
            return Err("the node says that it is ready while its disk is full".into());
        }
        let begin = Instant::now();
        self.is_ready().await?;
        self.executors_are_known(client).await?;
        self.fleet.disturbed_since(since_us, "the node's disk is full");
        Ok(format!("not ready while it was full; ready with all executors {} ms after", begin.elapsed().as_millis()))
    }

    fn limit_files(&self, bytes: Option<u64>) -> Outcome<()> {
        let pid = i32::try_from(self.node.pid()).ok().and_then(Pid::from_raw);
        let old = prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None })?;
        // Only the soft limit is moved, so that it can be moved back.
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes.or(old.maximum), maximum: old.maximum })?;
        Ok(())
    }

    /// All executors but one change to a new token, as in a rolling restart; then the old token is taken away from the one that still has it.
    pub async fn rotate_tokens(&mut self, client: &Client) -> Outcome<String> {
        let old = credential(self.changes);
        self.changes += 1;
        self.token = self.tokens.add(&credential(self.changes), &["executor", "--pools", POOL])?;
        for _ in 1..EXECUTORS {
            self.start_executor()?;
            self.executors_are_known(client).await?;
            let before = self.executors.remove(0);
            block_in_place(|| before.stop(ORDERLY))?;
            self.executors_are_known(client).await?;
        }
        self.tokens.remove(&old)?;
        // Its connection is closed and it is refused from then on. What its bodies did is lost with it.
        let last = self.executors.remove(0);
        let begin = Instant::now();
        let gone = self.executors_are_known(client).await;
        let after = begin.elapsed().as_millis();
        block_in_place(|| last.kill9())?;
        self.start_executor()?;
        gone.map_err(|_| "an executor whose token was removed is still taken")?;
        self.executors_are_known(client).await?;
        Ok(format!("the executor with the removed token was let go after {after} ms"))
    }

    fn ready(&self) -> bool {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(STEP)).build().into();
        // 503 is an error here.
        block_in_place(|| agent.get(format!("http://{}/readyz", self.node.http)).call()).is_ok()
    }

    async fn is_ready(&self) -> Outcome<()> {
        until("the node is ready", async || self.ready()).await
    }

    /// The node's data directory.
    pub fn data(&self) -> PathBuf {
        self.fleet.dir.join("data")
    }

    /// Stops executors and the node, as an operator does. What is left: the fleet with the run's files.
    pub fn stop(self) -> io::Result<Fleet> {
        self.executors.into_iter().try_for_each(|executor| executor.stop(ORDERLY))?;
        let status = self.node.stop(ORDERLY)?;
        if !status.success() {
            return Err(io::Error::other(format!("the node did not stop in order: {status}")));
        }
        Ok(self.fleet)
    }
}

/// Names of the executors' credential, one after the other.
fn credential(number: u32) -> String {
    format!("executors-{number}")
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Outcome<()> {
    let deadline = Instant::now() + STEP;
    while !holds().await {
        if Instant::now() > deadline {
            return Err(format!("not within {} s: {what}", STEP.as_secs()).into());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
