//! What a shard is in the model: values that were written, runs that are open, and, in shard 0, the quota's loans.

use campanile_core::ownership::loans::Loans;
use campanile_schema::{
    ids::{Epoch, SessionId, ShardId},
    loan::{Level, LoanEvent},
};
use std::collections::BTreeSet;

/// The shard whose log holds the quota.
pub const QUOTA: ShardId = ShardId(0);
/// Permits of the only tenant.
pub const LIMIT: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Value(u64),
    Started(u64),
    Ended(u64),
    Loan(LoanEvent),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub seq: u64,
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug)]
pub struct State {
    pub values: BTreeSet<u64>,
    pub open: BTreeSet<u64>,
    pub loans: Loans,
}

impl State {
    pub fn new() -> Self {
        Self { values: BTreeSet::new(), open: BTreeSet::new(), loans: Loans::new(LIMIT) }
    }

    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Value(value) => {
                self.values.insert(value);
            }
            Change::Started(run) => {
                self.open.insert(run);
            }
            Change::Ended(run) => {
                self.open.remove(&run);
            }
            Change::Loan(event) => self.loans.apply(event),
        }
    }
}

/// A shard in a node's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    pub state: State,
    /// Of the newest frame, acknowledged or not.
    pub seq: u64,
    /// Of the newest frame that was acknowledged here.
    pub acknowledged: u64,
    pub serving: bool,
    /// To be stopped as soon as its permits are settled.
    pub stopping: bool,
    /// Answers of the quota that wait until a frame is acknowledged.
    pub replies: Vec<(u64, SessionId, Level)>,
}

impl Memory {
    pub fn new(state: State, seq: u64) -> Self {
        Self { state, seq, acknowledged: seq, serving: false, stopping: false, replies: Vec::new() }
    }
}
