//! The turns of `upgrade`: which program serves the directory when, and how it ends.

use super::upgrade::UpgradeArgs;
use crate::{
    endurance::tokens::Tokens,
    process::{
        directory_format::{DirectoryFormat, WayBack},
        fleet::Fleet,
        node::Node,
    },
    run_dir::lines::{ExecutorEvent, ExecutorLine, FaultEvent, FaultLine, now_us},
    test_cluster::Program,
};
use std::{
    error::Error,
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{task::block_in_place, time::sleep};

/// Of load under each program, milliseconds.
pub(super) const LEG_MS: u64 = 7_000;
/// A node that is asked to stop has ended within this time.
const STOP: Duration = Duration::from_secs(30);

/// How a program's turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// kill -9: the next one reads the journal.
    Killed,
    /// As an operator stops it: the next one reads snapshots.
    Stopped,
}

/// A program's turn.
pub(super) type Leg = (Program, TurnEnd);

/// After the first one. The last one is stopped when all load has drained.
pub(super) const LEGS: [Leg; 5] = [
    (Program::Present, TurnEnd::Killed),
    (Program::Earlier, TurnEnd::Stopped),
    (Program::Present, TurnEnd::Stopped),
    (Program::Earlier, TurnEnd::Killed),
    (Program::Present, TurnEnd::Stopped),
];
const FIRST: Leg = (Program::Earlier, TurnEnd::Killed);

/// What became of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) program: Program,
    /// None: it was refused, as it had to be.
    pub(super) served: Option<Served>,
}

/// When a program had the directory, microseconds since 1970, and how many bodies began in that time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) from_us: i64,
    pub(super) to_us: i64,
    pub(super) bodies: usize,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.served {
            None => write!(f, "{:?} was refused", self.program),
            Some(served) => {
                write!(
                    f,
                    "{:?} had {} bodies in {} ms",
                    self.program,
                    served.bodies,
                    (served.to_us - served.from_us) / 1000
                )
            }
        }
    }
}

/// The turns so far.
pub(super) struct Turns<'a> {
    args: &'a UpgradeArgs,
    pub(super) fleet: Fleet,
    tokens: Tokens,
    token: String,
    /// What the earlier release knows.
    earlier: DirectoryFormat,
    pub(super) done: Vec<Turn>,
}

impl<'a> Turns<'a> {
    /// Of a fleet whose first node, of the earlier release, has made the directory.
    pub(super) fn new(args: &'a UpgradeArgs, fleet: Fleet, tokens: Tokens, token: String) -> io::Result<Self> {
        let earlier = DirectoryFormat::read(&data(&fleet))?;
        println!("the earlier release made a directory of {earlier:?}");
        Ok(Self { args, fleet, tokens, token, earlier, done: Vec::new() })
    }

    /// From the first program's turn, which is under way, to the last one's, which goes on; its node.
    pub(super) async fn all(&mut self, first: Node) -> Result<Node, Box<dyn Error>> {
        let (mut node, mut leg, mut from_us) = (first, FIRST, now_us());
        for next in LEGS {
            sleep(Duration::from_millis(LEG_MS)).await;
            self.end(node, leg.1)?;
            self.served(leg.0, from_us);
            let way = match next.0 {
                Program::Earlier => self.earlier.way_back(self.format()?),
                Program::Present => WayBack::Open,
            };
            let program = match way {
                WayBack::Open => next.0,
                WayBack::Refused(words) => {
                    self.refused(&words)?;
                    Program::Present
                }
            };
            node = self.start(program)?;
            (leg, from_us) = ((program, next.1), now_us());
        }
        sleep(Duration::from_millis(LEG_MS)).await;
        self.served(leg.0, from_us);
        Ok(node)
    }

    fn format(&self) -> io::Result<DirectoryFormat> {
        DirectoryFormat::read(&data(&self.fleet))
    }

    fn served(&mut self, program: Program, from_us: i64) {
        self.done.push(Turn { program, served: Some(Served { from_us, to_us: now_us(), bodies: 0 }) });
    }

    fn binary(&self, program: Program) -> &Path {
        match program {
            Program::Present => &self.args.server_bin,
            Program::Earlier => &self.args.old_bin,
        }
    }

    fn start(&mut self, program: Program) -> io::Result<Node> {
        self.fleet.setup.binary = self.binary(program).canonicalize()?;
        let node = self.fleet.start_server(self.tokens.file(), &self.token)?;
        println!("{program:?} has the directory, of {:?}", self.format()?);
        Ok(node)
    }

    fn end(&self, node: Node, end: TurnEnd) -> io::Result<()> {
        match end {
            TurnEnd::Killed => block_in_place(|| node.kill9("an upgrade")),
            TurnEnd::Stopped => {
                // For the checker an outage like any other, from before it begins.
                self.fleet.faults.line(&FaultLine::now(FaultEvent::NodeKilled, Some("asked to stop".to_owned())));
                stop(node)
            }
        }
    }

    /// The earlier program is refused its start, and the directory says the same as before.
    fn refused(&mut self, words: &str) -> io::Result<()> {
        let before = self.format()?;
        self.fleet.setup.binary = self.binary(Program::Earlier).canonicalize()?;
        let line = block_in_place(|| Node::refused_server(&self.fleet.setup, self.tokens.file(), words))?;
        println!("Earlier is refused: {line}");
        self.done.push(Turn { program: Program::Earlier, served: None });
        let after = self.format()?;
        if after == before {
            return Ok(());
        }
        Err(io::Error::other(format!("a refused start made {after:?} of {before:?}")))
    }
}

/// As an operator stops it.
pub(super) fn stop(node: Node) -> io::Result<()> {
    let status = block_in_place(|| node.stop(STOP))?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("asked to stop the node ended with {status}"))) }
}

/// Turns with the bodies that began in them.
pub(super) fn with_bodies(dir: &Path, mut turns: Vec<Turn>) -> io::Result<Vec<Turn>> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("executor-") || !name.ends_with(".jsonl") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<ExecutorLine>(line).ok());
        for line in lines.filter(|line| line.event == ExecutorEvent::Start) {
            let of = |served: &&mut Served| (served.from_us..served.to_us).contains(&line.t_us);
            if let Some(served) = turns.iter_mut().filter_map(|turn| turn.served.as_mut()).find(of) {
                served.bodies += 1;
            }
        }
    }
    Ok(turns)
}

pub(super) fn data(fleet: &Fleet) -> PathBuf {
    fleet.dir.join("data")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bodies_are_counted_in_the_turn_in_which_they_began() {
        let dir = tempfile::tempdir().unwrap();
        let line = |event: ExecutorEvent, t_us: i64| {
            serde_json::to_string(&ExecutorLine { event, t_us, ..ExecutorLine::up() }).unwrap() + "\n"
        };
        let starts: String = [5, 10, 19, 20, 31].map(|t_us| line(ExecutorEvent::Start, t_us)).concat();
        fs::write(dir.path().join("executor-1.jsonl"), starts + &line(ExecutorEvent::End, 15)).unwrap();
        let served = |from_us: i64, to_us: i64| Some(Served { from_us, to_us, bodies: 0 });
        let turns = vec![
            Turn { program: Program::Earlier, served: served(10, 20) },
            Turn { program: Program::Earlier, served: None },
            Turn { program: Program::Present, served: served(20, 30) },
        ];
        let bodies: Vec<Option<usize>> =
            with_bodies(dir.path(), turns).unwrap().into_iter().map(|turn| turn.served.map(|s| s.bodies)).collect();
        assert_eq!(bodies, [Some(2), None, Some(1)]);
    }

    #[test]
    fn each_program_reads_what_the_other_one_leaves_after_a_kill_and_after_a_stop() {
        let legs: Vec<Leg> = std::iter::once(FIRST).chain(LEGS).collect();
        for program in [Program::Earlier, Program::Present] {
            for end in [TurnEnd::Killed, TurnEnd::Stopped] {
                // The last turn hands nothing over.
                assert!(legs[..legs.len() - 1].contains(&(program, end)), "{program:?} {end:?}");
            }
        }
        assert!(legs.windows(2).all(|pair| pair[0].0 != pair[1].0));
    }
}
