//! Nodes of two releases. A later one, which knows formats that this one does not: `actors/ports/release.rs` lets a node say so. And an
//! earlier one, by its own program.

use super::TestCluster;
use crate::{
    process::{
        directory_format::{DirectoryFormat, WayBack, way_back},
        node::{Node, NodeSetup, free_port},
    },
    run_dir::record::Record,
};
use campanile_schema::format::Formats;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// Formats that all nodes know are written within this time, and a look at the row between.
const RAISED: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);
/// Formats that are not to be raised are still the same after this time: a raise takes about ten seconds.
const NOT_RAISED: Duration = Duration::from_secs(15);
/// A node that went back carries the load for so long before it goes forward again.
const BACK: Duration = Duration::from_secs(3);

/// What nodes are started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The program that is tested.
    Present,
    /// That of an earlier release (`--old-bin`).
    Earlier,
}

impl TestCluster {
    /// From its next start on a node is a release that knows so many formats more.
    pub fn set_release(&mut self, n: usize, later: u32) {
        self.nodes[n].later = later;
    }

    /// From its next start on a node runs this program.
    pub fn set_program(&mut self, n: usize, program: Program) {
        self.nodes[n].program = program;
    }

    pub(super) fn binary_of(&self, program: Program) -> io::Result<&Path> {
        let binary = match program {
            Program::Present => Some(&self.binary),
            Program::Earlier => self.earlier.as_ref(),
        };
        let missing = || io::Error::other("there is no program of an earlier release");
        binary.map(PathBuf::as_path).ok_or_else(missing)
    }

    /// What is written may be read by a program. It asks the store's format row, as a node does before it starts.
    pub fn is_readable(&self, program: Program) -> io::Result<()> {
        self.run(program, &["schema", "check"], None).map(drop)
    }

    /// Waits until a program is refused for what the row says, in words that hold `why`.
    pub fn gets_unreadable(&self, program: Program, why: &str) -> io::Result<()> {
        let deadline = Instant::now() + RAISED;
        let name = format!("{program:?}");
        let mut told = "all of it is read".to_owned();
        while Instant::now() < deadline {
            match self.is_readable(program) {
                Err(error) if error.to_string().contains(why) => return Ok(()),
                Err(error) => told = error.to_string(),
                Ok(()) => {}
            }
            std::thread::sleep(LOOK);
        }
        Err(io::Error::other(format!("{name} is not refused with '{why}': {told}")))
    }

    /// Tries the way back when all nodes run the present program. If the present program has newer formats, it waits
    /// until they are written; then the earlier program must be refused with the sentence that names both, in `schema
    /// check` and as node `n`. Otherwise node `n` goes back to the earlier program and forward again. What the two
    /// programs know is read from a new directory of each.
    pub fn back_or_refused(&mut self, n: usize) -> io::Result<()> {
        let (earlier, present) = (self.formats_of(Program::Earlier)?, self.formats_of(Program::Present)?);
        let way = way_back(earlier, present.newest(earlier));
        println!("    {earlier:?} before, {present:?} now: {way:?}");
        match &way {
            WayBack::Open => {
                std::thread::sleep(NOT_RAISED);
                self.is_readable(Program::Earlier)?;
            }
            WayBack::Refused(words) => self.gets_unreadable(Program::Earlier, words)?,
        }
        self.stop(&[n])?;
        self.set_program(n, Program::Earlier);
        match &way {
            WayBack::Open => {
                self.start(n, "")?;
                std::thread::sleep(BACK);
                self.stop(&[n])?;
            }
            WayBack::Refused(words) => self.refused(n, words)?,
        }
        self.set_program(n, Program::Present);
        self.start(n, "")
    }

    /// The formats that a program knows: those of a directory that it has just made.
    fn formats_of(&self, program: Program) -> io::Result<Formats> {
        let dir = self.dir.join(format!("formats-of-{program:?}").to_lowercase());
        fs::create_dir_all(&dir)?;
        let binary = self.binary_of(program)?.to_owned();
        let setup = NodeSetup { binary, dir: dir.clone(), rpc_port: free_port()?, fault: None, key_file: None };
        let faults = Arc::new(Record::open(&dir.join("faults.jsonl"), Duration::ZERO)?);
        Node::start(&setup, &faults)?.kill9("its directory is made")?;
        DirectoryFormat::read(&dir.join("data/node")).map(|format| format.formats)
    }
}
