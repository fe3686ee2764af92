//! The acts of scenarios: what can be done to the cluster. `fault_driver.rs` carries them out.

use crate::{process::node::When, test_cluster::Program};

/// A host of the network. Nodes and executors are counted from 0, nodes of the store from 1, as its script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Store(u8),
    Node(u8),
    Executor(u8),
}

/// Hosts of each kind, count.
const STORES: u8 = 3;
pub const NODES: u8 = 5;
const EXECUTORS: u8 = 4;

impl At {
    /// The last number of its address.
    pub fn number(self) -> u8 {
        match self {
            Self::Store(n) => n,
            Self::Node(n) => 11 + n,
            Self::Executor(n) => 31 + n,
        }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        let stores = (1..=STORES).map(Self::Store);
        stores.chain((0..NODES).map(Self::Node)).chain((0..EXECUTORS).map(Self::Executor))
    }
}

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// kill -9.
    Kill(usize),
    /// Start, and wait until it listens.
    Start(usize),
    /// Both at once.
    StartBoth(usize, usize),
    /// As an operator stops it; waits until it is gone.
    Stop(usize),
    StopBoth(usize, usize),
    /// SIGSTOP.
    Freeze(usize),
    /// SIGCONT.
    Thaw(usize),
    /// kill -9, then a start with a fail point: waits until the node has ended itself there, for the n-th time that it passed.
    DieAt(usize, &'static str, u32),
    /// Nothing, milliseconds.
    Wait(u64),
    /// To the store's script.
    Store(&'static str),
    /// The oldest one; another one takes its place.
    KillExecutor,
    FreezeExecutor,
    ThawExecutor,
    /// A further executor, that ends itself in its n-th body: waits until it has.
    ExecutorEnds(When, u32),
    Cut(At, At),
    /// From everybody but those named.
    CutOff(At, &'static [At]),
    /// From the first to the second.
    CutOneWay(At, At),
    /// All cuts and losses.
    Heal,
    /// So many frames of a hundred are lost.
    Lose(u32),
    /// Cut and whole in turn: how often, and how long each, milliseconds.
    Flap(At, At, u32, u64),
    /// The wall clock of a node is off by so much, milliseconds.
    Clock(usize, i64),
    /// Requests to the store and answers take so much longer together, milliseconds.
    Slow(u64),
    /// The answers of so many LWTs of a hundred never come.
    LoseLwts(u64),
    /// No byte is free on the node's disk.
    FillDisk(usize),
    FreeDisk(usize),
    /// A start that must be refused, in words that name this.
    Refused(usize, &'static str),
    /// From its next start on a node is a release that knows so many formats more than this one.
    Release(usize, u32),
    /// This release must read all that the cluster writes.
    Readable,
    /// It must be refused soon for the formats that the cluster writes, in words that name this; waits until it is.
    Unreadable(&'static str),
    /// From its next start on a node runs this program.
    Runs(usize, Program),
    /// The present program makes the tables that the earlier one lacks, as an operator does before the first node of it starts.
    ApplySchema,
    /// The earlier program must read all that the cluster writes.
    EarlierReads,
    /// All nodes run the present program: a node goes back to the earlier one and forward again, or, when newer formats are written by
    /// now, is refused the way back in words. See `TestCluster::back_or_refused`.
    BackOrRefused(usize),
}

impl Act {
    /// About how long it takes, milliseconds.
    pub fn lasts_ms(self) -> u64 {
        match self {
            Self::Wait(ms) => ms,
            Self::Start(_) | Self::Refused(..) => 2_500,
            Self::StartBoth(..) => 4_000,
            Self::Stop(_) => 8_000,
            Self::StopBoth(..) => 10_000,
            Self::DieAt(..) => 8_000,
            Self::ExecutorEnds(..) => 5_000,
            Self::Store(_) | Self::Readable | Self::EarlierReads => 1_000,
            Self::Unreadable(_) => 15_000,
            Self::ApplySchema => 3_000,
            Self::BackOrRefused(_) => 45_000,
            Self::Flap(_, _, times, ms) => u64::from(times) * 2 * ms,
            Self::Kill(_)
            | Self::Freeze(_)
            | Self::Thaw(_)
            | Self::KillExecutor
            | Self::FreezeExecutor
            | Self::ThawExecutor
            | Self::Cut(..)
            | Self::CutOff(..)
            | Self::CutOneWay(..)
            | Self::Heal
            | Self::Lose(_)
            | Self::Clock(..)
            | Self::Slow(_)
            | Self::LoseLwts(_)
            | Self::FillDisk(_)
            | Self::FreeDisk(_)
            | Self::Release(..)
            | Self::Runs(..) => 100,
        }
    }

    /// Attempts lose the executor that has them, so that some of their runs wait for a person.
    pub fn loses_executor(&self) -> bool {
        matches!(self, Self::KillExecutor | Self::FreezeExecutor | Self::ExecutorEnds(..))
    }

    /// It can only be done in namespaces.
    pub fn needs_world(self) -> bool {
        match self {
            Self::Cut(..)
            | Self::CutOff(..)
            | Self::CutOneWay(..)
            | Self::Heal
            | Self::Lose(_)
            | Self::Flap(..)
            | Self::FillDisk(_)
            | Self::FreeDisk(_) => true,
            Self::Kill(_)
            | Self::Start(_)
            | Self::StartBoth(..)
            | Self::Stop(_)
            | Self::StopBoth(..)
            | Self::Freeze(_)
            | Self::Thaw(_)
            | Self::DieAt(..)
            | Self::Wait(_)
            | Self::Store(_)
            | Self::KillExecutor
            | Self::FreezeExecutor
            | Self::ThawExecutor
            | Self::ExecutorEnds(..)
            | Self::Clock(..)
            | Self::Slow(_)
            | Self::LoseLwts(_)
            | Self::Refused(..)
            | Self::Release(..)
            | Self::Readable
            | Self::Unreadable(_)
            | Self::Runs(..)
            | Self::ApplySchema
            | Self::EarlierReads
            | Self::BackOrRefused(_) => false,
        }
    }
}
