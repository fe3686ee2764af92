//! One node of a DAG run in 16 bytes: a shard may hold two million of them.

use super::rules::Counts;
use campanile_schema::{graph::state::NodeState, ids::RunId, stored::graph::StoredNodeRun};

/// A person set the state.
const MARKED: u8 = 1;
/// CANCELED by a stop of the whole run before it started.
const HELD: u8 = 2;

/// Bits of each of the three counters: a node has at most 999 parents.
const BITS: u32 = 10;
const MASK: u32 = (1 << BITS) - 1;

/// State of a node. The fields are packed; use the methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its newest run; 0 = none is known.
    run: u64,
    /// Parents that are ok, failed, skipped, in [`BITS`] bits each.
    counts: u32,
    /// Of its newest start; 0 = it was never started.
    generation: u16,
    state: NodeState,
    flags: u8,
}

const _: () = assert!(size_of::<Node>() == 16);

/// How a parent that has ended counts for a node behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentOutcome {
    Ok,
    Failed,
    Skipped,
}

impl ParentOutcome {
    fn one(self) -> u32 {
        match self {
            Self::Ok => 1,
            Self::Failed => 1 << BITS,
            Self::Skipped => 1 << (2 * BITS),
        }
    }
}

impl Node {
    pub(super) fn new() -> Self {
        Self { run: 0, counts: 0, generation: 0, state: NodeState::Waiting, flags: 0 }
    }

    pub fn state(&self) -> NodeState {
        self.state
    }
    /// Of its newest start; 0 = it was never started.
    pub fn generation(&self) -> u32 {
        u32::from(self.generation)
    }
    /// Its newest run, once its job has said which one that is.
    pub fn run(&self) -> Option<RunId> {
        (self.run != 0).then_some(RunId(self.run))
    }
    /// A person set the state.
    pub fn is_marked(&self) -> bool {
        self.flags & MARKED != 0
    }
    /// A stop of the whole run kept it from starting.
    pub fn is_held(&self) -> bool {
        self.flags & HELD != 0
    }
    /// Neither a person nor a run of its own gave it its state: its parents did, or a stop of the whole run.
    pub fn is_derived(&self) -> bool {
        let derived = match self.state {
            NodeState::Skipped | NodeState::UpstreamFailed => true,
            NodeState::Canceled => self.is_held(),
            NodeState::Waiting | NodeState::Starting | NodeState::Active | NodeState::Success | NodeState::Failed => {
                false
            }
        };
        derived && !self.is_marked()
    }
    /// Its parents, of which there are so many.
    pub fn counts(&self, parents: u32) -> Counts {
        let of = |place: u32| self.counts >> (place * BITS) & MASK;
        let (ok, failed, skipped) = (of(0), of(1), of(2));
        Counts { ok, failed, skipped, open: parents.saturating_sub(ok + failed + skipped) }
    }

    pub(super) fn set_state(&mut self, state: NodeState) {
        (self.state, self.flags) = (state, 0);
    }
    /// As it was stored. Its parents are counted by whoever restores all of them.
    pub(super) fn restore(&mut self, stored: &StoredNodeRun) {
        self.set_state(stored.state);
        self.run = stored.run.map_or(0, |run| run.0);
        self.set_generation(stored.generation);
        if stored.marked {
            self.set_marked();
        }
        if stored.held {
            self.set_held();
        }
    }
    pub(super) fn set_marked(&mut self) {
        self.flags |= MARKED;
    }
    pub(super) fn set_held(&mut self) {
        self.flags |= HELD;
    }
    pub(super) fn set_run(&mut self, run: RunId) {
        self.run = run.0;
    }
    /// Generations beyond what fits are refused before they come here.
    pub(super) fn set_generation(&mut self, generation: u32) {
        self.generation = u16::try_from(generation).unwrap_or(u16::MAX);
    }
    pub(super) fn count(&mut self, part: ParentOutcome) {
        self.counts = self.counts.wrapping_add(part.one());
    }
    pub(super) fn uncount(&mut self, part: ParentOutcome) {
        self.counts = self.counts.wrapping_sub(part.one());
    }
}

/// Highest generation of a node, count.
pub const GENERATIONS: u32 = u16::MAX as u32;
