//! The real node as a process: started on a directory, killed, and started again on the same one.

use crate::{
    limits::NODE_OUTPUT_LINES,
    process::children::OwnChild,
    random::mix,
    run_dir::{
        lines::{FaultEvent, FaultLine, now_us},
        record::Record,
    },
};
use rustix::process::Signal;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    net::TcpListener,
    ops::Range,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

/// A node must say where it listens within this time of its start.
const READY: Duration = Duration::from_secs(60);

/// A node whose output has ended is gone within this time.
const ENDED: Duration = Duration::from_secs(5);

/// How to start a node.
#[derive(Clone, Debug)]
pub struct NodeSetup {
    pub binary: PathBuf,
    /// Run directory: the node's data is in `data`, its output in `node.log`.
    pub dir: PathBuf,
    /// Fixed over restarts, so that executors find it again.
    pub rpc_port: u16,
    /// Value of `CAMPANILE_FAULT`; needs a node built with the feature `faults`.
    pub fault: Option<String>,
    /// Keys that seal secret params, for [`Node::start_server`]; `campanile dev` makes its own.
    pub key_file: Option<PathBuf>,
}

/// A node that said where it listens.
pub struct Node {
    child: OwnChild,
    pub rpc: String,
    pub http: String,
    pub token: String,
    faults: Arc<Record>,
}

/// Ports that the system gives to nobody by itself: of the others, one may be an outgoing connection's when somebody wants to listen there.
const PORTS: Range<u64> = 10_000..30_000;

/// A port of the loopback that is free now. Never the same one twice in this process, until all were given.
pub fn free_port() -> io::Result<u16> {
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(mix(now_us().unsigned_abs() ^ u64::from(std::process::id()))));
    let count = PORTS.end - PORTS.start;
    for _ in 0..count {
        let port = (PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % count) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no port is free"))
}

/// A node that was started.
pub enum Started {
    /// It says where it listens.
    Ready(Node),
    /// It ended itself before, at a fail point that it was given.
    AtPoint(ExitStatus),
}

impl Started {
    fn ready(self) -> io::Result<Node> {
        match self {
            Self::Ready(node) => Ok(node),
            Self::AtPoint(status) => Err(io::Error::other(format!("the node ended at its fail point: {status}"))),
        }
    }
}

impl Node {
    /// `campanile dev`, whose token it tells.
    pub fn start(setup: &NodeSetup, faults: &Arc<Record>) -> io::Result<Self> {
        Self::begin(setup, faults)?.ready()
    }

    /// `campanile server` with a token file, in which `token` is an operator's.
    pub fn start_server(setup: &NodeSetup, tokens: &Path, token: &str, faults: &Arc<Record>) -> io::Result<Self> {
        Self::begin_by(server(setup, tokens), Some(token.to_owned()), setup, faults)?.ready()
    }

    /// A start of `campanile server` that must be refused, in words that hold `why`; the line that says them.
    pub fn refused_server(setup: &NodeSetup, tokens: &Path, why: &str) -> io::Result<String> {
        let path = setup.dir.join("node.log");
        let before = fs::metadata(&path).map_or(0, |log| log.len());
        let log = OpenOptions::new().create(true).append(true).open(&path)?;
        let mut command = server(setup, tokens);
        with_addresses(&mut command, setup).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = OwnChild::start(&mut command)?;
        if child.wait(READY)?.is_none_or(|status| status.success()) {
            return Err(io::Error::other(format!("{} was not refused its start", setup.binary.display())));
        }
        let log = fs::read(&path)?;
        let told = log.get(usize::try_from(before).unwrap_or(0)..).unwrap_or_default();
        let told = String::from_utf8_lossy(told).into_owned();
        let line = told.lines().find(|line| line.contains(why));
        line.map(str::to_owned).ok_or_else(|| {
            io::Error::other(format!("{} was refused its start without '{why}': {told}", setup.binary.display()))
        })
    }

    /// Starts a node that may come to its fail point before it listens.
    pub fn begin(setup: &NodeSetup, faults: &Arc<Record>) -> io::Result<Started> {
        let mut command = Command::new(&setup.binary);
        command.args(["dev", "--no-demo"]);
        Self::begin_by(command, None, setup, faults)
    }

    /// `token` is None where the node tells it.
    fn begin_by(
        mut command: Command,
        mut token: Option<String>,
        setup: &NodeSetup,
        faults: &Arc<Record>,
    ) -> io::Result<Started> {
        let log = OpenOptions::new().create(true).append(true).open(setup.dir.join("node.log"))?;
        with_addresses(&mut command, setup).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
        if let Some(fault) = &setup.fault {
            command.env("CAMPANILE_FAULT", fault);
        }
        faults.line(&FaultLine::now(FaultEvent::NodeStarted, setup.fault.clone()));
        let mut child = OwnChild::start(&mut command)?;
        let stdout = child.child().stdout.take().ok_or_else(|| io::Error::other("no output of the node"))?;
        let lines = follow(stdout, log)?;
        let (mut rpc, mut http) = (None, None);
        let deadline = Instant::now() + READY;
        while rpc.is_none() || http.is_none() || token.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                let ended = child.wait(ENDED)?;
                if let Some(status) =
                    ended.filter(|_| setup.fault.as_ref().is_some_and(|fault| fault.contains("point:")))
                    && status.signal() == Some(Signal::ABORT.as_raw())
                {
                    faults.line(&FaultLine::now(FaultEvent::NodeKilled, Some(format!("ended by itself: {status}"))));
                    return Ok(Started::AtPoint(status));
                }
                let how = ended.map_or("it still runs".to_owned(), |status| status.to_string());
                return Err(io::Error::other(format!(
                    "the node did not say http=, rpc= and token=; {how}; see {}",
                    setup.dir.join("node.log").display()
                )));
            };
            match line.split_once('=') {
                Some(("rpc", value)) => rpc = Some(value.to_owned()),
                Some(("http", value)) => http = Some(value.to_owned()),
                Some(("token", value)) => token = Some(value.to_owned()),
                Some(_) | None => {}
            }
        }
        faults.line(&FaultLine::now(FaultEvent::NodeReady, None));
        let (Some(rpc), Some(http), Some(token)) = (rpc, http, token) else {
            return Err(io::Error::other("the node named no address"));
        };
        Ok(Started::Ready(Self { child, rpc, http, token, faults: Arc::clone(faults) }))
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// kill -9.
    pub fn kill9(mut self, why: &str) -> io::Result<()> {
        // Noted before, so that an outage is never told too short.
        self.faults.line(&FaultLine::now(FaultEvent::NodeKilled, Some(why.to_owned())));
        self.child.kill().map(drop)
    }

    /// Waits for it to end by itself, at a fail point. None: it did not, and is still there.
    pub fn wait_for_abort(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let status = self.child.wait(patience)?;
        if let Some(status) = &status {
            self.faults.line(&FaultLine::now(FaultEvent::NodeKilled, Some(format!("ended by itself: {status}"))));
        }
        Ok(status)
    }

    /// Makes it stand still, or go on.
    pub fn freeze(&self, still: bool) -> io::Result<()> {
        self.child.freeze(still)
    }

    /// Still running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.wait(Duration::ZERO), Ok(None))
    }

    /// How it ended, when it did so by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.wait(Duration::ZERO).ok().flatten()
    }

    /// Asks it to stop, as an operator would.
    pub fn stop(mut self, patience: Duration) -> io::Result<ExitStatus> {
        self.child.end(patience)
    }
}

/// `campanile server` with its files of credentials.
fn server(setup: &NodeSetup, tokens: &Path) -> Command {
    let mut command = Command::new(&setup.binary);
    command.arg("server").arg("--token-file").arg(tokens);
    if let Some(keys) = &setup.key_file {
        command.arg("--key-file").arg(keys);
    }
    command
}

/// Where it keeps its data and listens, and that it ends with this process.
fn with_addresses<'a>(command: &'a mut Command, setup: &NodeSetup) -> &'a mut Command {
    command
        .arg("--data")
        .arg(setup.dir.join("data"))
        .args(["--http", "127.0.0.1:0", "--rpc"])
        .arg(format!("127.0.0.1:{}", setup.rpc_port))
        .arg("--with-parent")
        .arg(std::process::id().to_string())
}

/// Copies the node's output to its log and hands out the first lines. It reads to the end, so that the node never blocks.
fn follow(stdout: impl io::Read + Send + 'static, mut log: File) -> io::Result<mpsc::Receiver<String>> {
    let (send, lines) = mpsc::sync_channel(NODE_OUTPUT_LINES);
    std::thread::Builder::new().name("node output".into()).spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { return };
            // A full disk of the log must not stop the node.
            let _ = writeln!(log, "{line}");
            // Full or nobody listens: only the first lines matter.
            let _ = send.try_send(line);
        }
    })?;
    Ok(lines)
}

/// An executor process: this program in its `executor` mode.
pub struct ExecutorProcess {
    child: OwnChild,
    /// Name of its file without `.jsonl`.
    pub name: String,
    faults: Arc<Record>,
}

/// Before or after what the body is for; either way nobody has been told of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum When {
    BeforeEffect,
    AfterEffect,
}

/// How to start an executor.
#[derive(Clone, Debug)]
pub struct ExecutorSetup {
    pub rpc: String,
    pub token: String,
    pub pool: String,
    pub slots: u32,
    pub fail_percent: u32,
    /// Milliseconds that lines are gathered; 0 = each at once.
    pub flush_ms: u64,
    /// Where its files go.
    pub dir: PathBuf,
    /// It writes down each body, for the checker.
    pub log: bool,
    /// It writes down the counts of each second.
    pub stats: bool,
    /// It ends itself in its body of this number.
    pub ends: Option<(When, u32)>,
}

impl ExecutorProcess {
    pub fn start(setup: &ExecutorSetup, name: &str, log: &Path, faults: &Arc<Record>) -> io::Result<Self> {
        Self::start_by(Command::new(std::env::current_exe()?), setup, name, log, faults)
    }

    /// By a command that runs this program, elsewhere.
    pub fn start_by(
        mut command: Command,
        setup: &ExecutorSetup,
        name: &str,
        log: &Path,
        faults: &Arc<Record>,
    ) -> io::Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        command
            .args(["executor", "--rpc", &setup.rpc, "--token", &setup.token, "--pool", &setup.pool, "--id", name])
            .args(["--slots", &setup.slots.to_string(), "--fail-percent", &setup.fail_percent.to_string()])
            .args(["--flush-ms", &setup.flush_ms.to_string(), "--with-parent"]);
        if setup.log {
            command.arg("--log").arg(setup.dir.join(format!("{name}.jsonl")));
        }
        if setup.stats {
            command.arg("--stats").arg(setup.dir.join(format!("stats-{name}.jsonl")));
        }
        if let Some((when, body)) = setup.ends {
            let flag = match when {
                When::BeforeEffect => "--ends-before-effect",
                When::AfterEffect => "--ends-after-effect",
            };
            command.args([flag, &body.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = OwnChild::start(&mut command)?;
        let line = FaultLine { executor: Some(name.to_owned()), ..FaultLine::now(FaultEvent::ExecutorStarted, None) };
        faults.line(&line);
        Ok(Self { child, name: name.to_owned(), faults: Arc::clone(faults) })
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// How it ended, when it did so by itself; that is written down as its death.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait(Duration::ZERO).ok().flatten()?;
        let detail = Some(format!("ended by itself: {status}"));
        let line =
            FaultLine { executor: Some(self.name.clone()), ..FaultLine::now(FaultEvent::ExecutorKilled, detail) };
        self.faults.line(&line);
        Some(status)
    }

    /// kill -9. Its bodies end with it.
    pub fn kill9(mut self) -> io::Result<()> {
        self.child.kill()?;
        // Noted after, so that no line it wrote is later than its death.
        let line = FaultLine { executor: Some(self.name.clone()), ..FaultLine::now(FaultEvent::ExecutorKilled, None) };
        self.faults.line(&line);
        Ok(())
    }

    /// Makes it stand still with its bodies, or go on.
    pub fn freeze(&self, still: bool) -> io::Result<()> {
        let event = if still { FaultEvent::ExecutorFrozen } else { FaultEvent::ExecutorThawed };
        self.child.freeze(still)?;
        self.faults.line(&FaultLine { executor: Some(self.name.clone()), ..FaultLine::now(event, None) });
        Ok(())
    }

    /// Asks it to stop.
    pub fn stop(self, patience: Duration) -> io::Result<()> {
        self.end(patience).map(drop)
    }

    /// The same; how it ended. One that could not write its files fails.
    pub fn end(mut self, patience: Duration) -> io::Result<ExitStatus> {
        self.child.end(patience)
    }
}
