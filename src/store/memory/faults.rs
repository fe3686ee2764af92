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

/// Faults to come.
#[derive(Debug, Default)]
pub struct Script {
    calls: BTreeMap<Op, u64>,
    faults: BTreeMap<(Op, u64), Fault>,
}

impl Script {
    /// The `nth` call of `op` from now meets `fault`.
    pub fn add(&mut self, op: Op, nth: u64, fault: Fault) {
        let at = self.calls.get(&op).copied().unwrap_or(0) + nth;
        self.faults.insert((op, at), fault);
    }

    /// Counts a call and gives its fault.
    pub fn next(&mut self, op: Op) -> Option<Fault> {
        let calls = self.calls.entry(op).or_default();
        let fault = self.faults.remove(&(op, *calls));
        *calls += 1;
        fault
    }
}
