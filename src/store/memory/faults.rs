//! What goes wrong, and when: a script of faults, one per call.

use std::collections::BTreeMap;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Append,
    ReadAfter,
    Trim,
    WritePart,
    Publish,
    Load,
    ReadPart,
    Apply,
    Flush,
    /// `applied` and every read of the views.
    Read,
    Retain,
    AppendLog,
}

/// What a call meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `Unavailable`; nothing changed.
    Unavailable,
    /// `Unknown`; nothing changed.
    NotApplied,
    /// `Unknown`; it happened.
    AppliedUnknown,
    /// `WriteFailed`; an append's session is over.
    WriteFailed,
    /// Reads only: the answer is an old one (the manifest before, the views of the last flush). Other calls are not affected.
    Stale,
}

/// Faults to come, by kind of call.
#[derive(Debug)]
pub struct Script<K = Op, F = Fault> {
    calls: BTreeMap<K, u64>,
    faults: BTreeMap<(K, u64), F>,
}

impl<K, F> Default for Script<K, F> {
    fn default() -> Self {
        Self { calls: BTreeMap::new(), faults: BTreeMap::new() }
    }
}

impl<K: Copy + Ord, F> Script<K, F> {
    /// The `nth` call of `op` from now meets `fault`.
    pub fn add(&mut self, op: K, nth: u64, fault: F) {
        let at = self.calls(op) + nth;
        self.faults.insert((op, at), fault);
    }

    pub fn calls(&self, op: K) -> u64 {
        self.calls.get(&op).copied().unwrap_or(0)
    }

    /// Counts a call and gives its fault.
    pub fn next(&mut self, op: K) -> Option<F> {
        let calls = self.calls.entry(op).or_default();
        let fault = self.faults.remove(&(op, *calls));
        *calls += 1;
        fault
    }
}
