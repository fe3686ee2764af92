//! Measures one rate of a rival: a new database, its program, the window, and what all processes used in it.

use super::{
    ladder::LadderKind,
    lines::{PeerLine, parse},
    postgres::Cluster,
    step::{Cpu, Probe, Step},
};
use crate::{limits::NODE_OUTPUT_LINES, process::children::OwnChild, run_dir::lines::now_us};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    time::{Duration, Instant},
};

/// Load of the same kind before the window, seconds: caches, connections and compiled code are warm then. Not counted.
pub const WARM_SECONDS: u64 = 3;
/// For the program to start, and for the database to settle after the insertion, milliseconds.
const START_MS: u64 = 5_000;
/// Between the settled database and the first job of the warm-up, milliseconds at least.
const SPARE_MS: i64 = 300;
/// A program must say the next thing within this time after it is due.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries until the jobs are stored before the first is due, count; each takes twice the time.
const TRIES: u32 = 3;

/// A rival: what to start, and what it can do.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Its directories are called so, in `loadtest/peers` and in what was built.
    pub name: &'static str,
    pub title: &'static str,
    pub kinds: &'static [LadderKind],
    /// Jobs that it stores per second, a low guess: chooses when the window begins.
    inserts_per_sec: u64,
    /// Program and first arguments; `{}` is the directory of what was built.
    command: &'static [&'static str],
}

pub const RIVALS: [Rival; 5] = [
    Rival {
        name: "graphile-worker",
        title: "graphile-worker",
        kinds: &[LadderKind::Once],
        inserts_per_sec: 30_000,
        command: &["node", "{}/main.mjs"],
    },
    Rival {
        name: "river",
        title: "River",
        kinds: &[LadderKind::Once, LadderKind::Recurring],
        inserts_per_sec: 25_000,
        command: &["{}/river-peer"],
    },
    Rival {
        name: "db-scheduler",
        title: "db-scheduler",
        kinds: &[LadderKind::Once, LadderKind::Recurring, LadderKind::Cron],
        inserts_per_sec: 15_000,
        command: &["java", "-Xms1g", "-Xmx2g", "-cp", "{}/target/classes:{}/target/lib/*", "peer.Main"],
    },
    Rival {
        name: "quartz",
        title: "Quartz",
        kinds: &[LadderKind::Once, LadderKind::Recurring, LadderKind::Cron],
        inserts_per_sec: 500,
        command: &["java", "-Xms1g", "-Xmx2g", "-cp", "{}/target/classes:{}/target/lib/*", "peer.Main"],
    },
    Rival {
        name: "temporal",
        title: "Temporal",
        kinds: &[LadderKind::Recurring],
        // Most of the time goes into the start of its services.
        inserts_per_sec: 1,
        command: &["{}/temporal-peer"],
    },
];

/// What one rung needs.
pub struct Rung<'a> {
    pub rival: &'a Rival,
    pub kind: LadderKind,
    pub rate: u64,
    pub seconds: u64,
    pub built: &'a Path,
    pub cluster: &'a Cluster,
    pub log: PathBuf,
}

/// A rung as it was measured, with what the program says of itself.
pub struct Measured {
    pub step: Step,
    pub version: String,
    pub settings: String,
}

impl Rung<'_> {
    /// Blocks until the window is over and the program has ended.
    pub fn measure(&self) -> io::Result<Measured> {
        let jobs = match self.kind {
            LadderKind::Once => self.rate * (self.seconds + WARM_SECONDS),
            LadderKind::Recurring | LadderKind::Cron => self.rate,
        };
        let mut lead_ms = START_MS + jobs * 1_000 / self.rival.inserts_per_sec;
        for _ in 0..TRIES {
            let database = "peer";
            self.cluster.sql("postgres", &format!("create database {database}"))?;
            let measured = self.attempt(database, lead_ms);
            // Also after an error: the next rung begins with an empty one.
            self.cluster.sql("postgres", &format!("drop database {database} with (force)"))?;
            if let Some(measured) = measured? {
                return Ok(measured);
            }
            lead_ms *= 2;
        }
        Err(io::Error::other("it takes too long to store the jobs"))
    }

    /// None: the jobs were stored too late.
    fn attempt(&self, database: &str, lead_ms: u64) -> io::Result<Option<Measured>> {
        let warm_from_ms = now_us() / 1000 + lead_ms.cast_signed();
        let from_ms = warm_from_ms + (WARM_SECONDS * 1000).cast_signed();
        let mut program = Program::start(&self.command(database, from_ms), &self.log)?;
        let (mut version, mut settings) = (String::new(), String::new());
        let deadline = Instant::now() + Duration::from_millis(lead_ms) + PATIENCE;
        let stored = loop {
            match program.line(deadline)? {
                PeerLine::System { version: v, settings: s } => (version, settings) = (v, s),
                PeerLine::Inserted { jobs, .. } => break jobs,
                other => return Err(unexpected(&other)),
            }
        };
        // As an autovacuum would have done by itself some time later; and no checkpoint of the insertion within the window. A table
        // that is still empty would only be planned for as such.
        if stored > 0 {
            self.cluster.sql(database, "vacuum analyze")?;
        }
        self.cluster.sql(database, "checkpoint")?;
        if now_us() / 1000 + SPARE_MS > warm_from_ms {
            return Ok(None);
        }
        let wait_ms = u64::try_from(from_ms - now_us() / 1000).unwrap_or(0);
        std::thread::sleep(Duration::from_millis(wait_ms));
        let trees = [("database", self.cluster.pid()), ("program", program.child.pid())];
        let before = Probe::take(&trees)?;
        let deadline = Instant::now() + Duration::from_secs(self.seconds) + PATIENCE;
        let ran = match program.line(deadline)? {
            PeerLine::Done { ran } => ran,
            other => return Err(unexpected(&other)),
        };
        let cpu = Cpu::between(&before, &Probe::take(&trees)?);
        program.go_on()?;
        let mut late_us = Vec::new();
        loop {
            match program.line(Instant::now() + PATIENCE)? {
                PeerLine::Late { us } => late_us.extend(us),
                PeerLine::End {} => break,
                other => return Err(unexpected(&other)),
            }
        }
        program.child.wait(Duration::from_secs(5))?;
        let step = Step::of(self.rate, self.rate * self.seconds, ran, &late_us, cpu)?;
        Ok(Some(Measured { step, version, settings }))
    }

    fn command(&self, database: &str, from_ms: i64) -> Vec<String> {
        let built = self.built.join(self.rival.name);
        let mut words: Vec<String> =
            self.rival.command.iter().map(|word| word.replace("{}", &built.to_string_lossy())).collect();
        words.extend([self.cluster.url(database), self.kind.word().to_owned()]);
        words.extend([self.rate, self.seconds].map(|n| n.to_string()));
        words.extend([from_ms.to_string(), WARM_SECONDS.to_string()]);
        words
    }
}

fn unexpected(line: &PeerLine) -> io::Error {
    let shown: String = format!("{line:?}").chars().take(100).collect();
    io::Error::other(format!("the program said this out of its turn: {shown}"))
}

/// A rival's program. It ends when its input does, so also when this process is killed.
struct Program {
    child: OwnChild,
    lines: Receiver<Result<PeerLine, String>>,
    log: PathBuf,
}

impl Program {
    fn start(words: &[String], log: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file.try_clone()?);
        let mut child = OwnChild::start(&mut command)?;
        let out = child.child().stdout.take().ok_or_else(|| io::Error::other("no output of the program"))?;
        Ok(Self { child, lines: follow(out, file)?, log: log.to_owned() })
    }

    fn line(&mut self, deadline: Instant) -> io::Result<PeerLine> {
        let see = self.log.display();
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => line.map_err(io::Error::other),
            Err(RecvTimeoutError::Timeout) => {
                Err(io::Error::other(format!("the program says nothing more; see {see}")))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.child.wait(Duration::from_secs(1))?.map_or(String::new(), |status| status.to_string());
                Err(io::Error::other(format!("the program ended, {how}; see {see}")))
            }
        }
    }

    fn go_on(&mut self) -> io::Result<()> {
        self.child.child().stdin.as_mut().ok_or_else(|| io::Error::other("no input of the program"))?.write_all(b"\n")
    }
}

/// Hands out the lines that are meant for us; the others go to the log.
fn follow(out: ChildStdout, mut log: File) -> io::Result<Receiver<Result<PeerLine, String>>> {
    let (send, lines) = sync_channel(NODE_OUTPUT_LINES);
    std::thread::Builder::new().name("rival output".into()).spawn(move || {
        for line in BufReader::with_capacity(1 << 20, out).lines().map_while(Result::ok) {
            let Some(told) = parse(&line) else {
                // A full disk of the log must not stop the rival.
                let _ = writeln!(log, "{line}");
                continue;
            };
            // Nobody listens any more: the rung is over.
            if send.send(told).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}
