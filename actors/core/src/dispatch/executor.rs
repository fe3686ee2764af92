//! An executor as matching sees it: what it can run, its credit, and what it holds.

use super::permit::SessionCredit;
use campanile_schema::{
    ids::{ExecutorSession, RunId, Token},
    rpc::executor::{Held, Register},
    text::Text,
};
use hashbrown::HashMap;

use crate::job::WaitingRun;

/// A running attempt and what it takes of its executor.
#[derive(Clone, Debug)]
pub struct Holding {
    pub held: Held,
    pub cpu: f64,
    pub memory_mb: u64,
    pub storage_mb: u64,
    /// When its body was told to stop, CLOCK_BOOTTIME ms.
    pub stopping_ms: Option<i64>,
    /// It was started before this pool had its shard: its executor has to announce it. One that this pool has started may be on its
    /// way, so an announcement without it says nothing.
    pub inherited: bool,
    /// Whose it is, and of which pool. Empty: not known.
    pub tenant: Text,
    pub pool: Text,
}

/// See the module's text. Whether it is connected, and heard of, the pool actor knows.
#[derive(Clone, Debug, Default)]
pub struct Executor {
    /// What it said that it can do. None after a restart of the node, until it registers again: it gets no runs before.
    pub register: Option<Register>,
    pub credit: SessionCredit,
    /// Number of its last match among all of the node: see [`super::score`].
    pub last_match: u64,
    /// Of a run that was matched and whose attempt is not durable yet, the token is 0.
    pub running: HashMap<RunId, Holding>,
}

impl Executor {
    pub fn slots(&self) -> u32 {
        self.register.as_ref().map_or(0, |register| register.slots)
    }

    /// Runs that it takes now, as far as its credit and its slots say.
    pub fn credit_left(&self, now_ms: i64) -> u32 {
        self.credit.left(self.slots(), self.running.len(), now_ms)
    }

    /// The run counts as its own from now on.
    pub fn hold(&mut self, held: Held, run: Option<&WaitingRun>) {
        let (cpu, memory_mb, storage_mb) = run.map_or((0.0, 0, 0), |w| (w.cpu, w.memory_mb, w.storage_mb));
        let (tenant, pool) = run.map_or_else(Default::default, |w| (w.tenant.clone(), w.pool.clone()));
        let holding = Holding { held, cpu, memory_mb, storage_mb, stopping_ms: None, inherited: false, tenant, pool };
        self.running.insert(held.run, holding);
    }

    /// A run that it holds already is this tenant's.
    pub fn belongs(&mut self, run: RunId, tenant: Text, pool: Text) {
        if let Some(holding) = self.running.get_mut(&run) {
            (holding.tenant, holding.pool) = (tenant, pool);
        }
    }

    /// The run does not count any more, unless it counts for another attempt than the one with this token.
    pub fn release(&mut self, run: RunId, token: Option<Token>) {
        if let Some(holding) = self.running.get(&run)
            && token.is_none_or(|t| t == holding.held.token || holding.held.token == Token(0))
        {
            self.running.remove(&run);
        }
    }
}

/// An executor in a round of matching.
#[derive(Debug)]
pub struct Seat<'a> {
    pub session: ExecutorSession,
    pub executor: &'a mut Executor,
    /// Runs that it may get in this round; 0 if it is not connected, drains, or was not heard of.
    pub left: u32,
}

impl Seat<'_> {
    /// Gives it a run; `number`: of the match among all of the node.
    pub(super) fn take(&mut self, run: &WaitingRun, number: u64) {
        self.left -= 1;
        self.executor.credit.spend();
        self.executor.last_match = number;
        self.executor.hold(Held { run: run.run, job: run.job, token: Token(0) }, Some(run));
    }
}
