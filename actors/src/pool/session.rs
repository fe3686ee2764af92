//! An executor session as the pool sees it: its identity, its connection, what matching knows of it, and when it was last
//! heard.

use crate::messages::ToExecutor;
use campanile_core::{
    dispatch::{Executor, Seat},
    job::Claimant,
};
use campanile_schema::{
    channel::CHANNEL_POOL,
    ids::{Epoch, ExecutorSession, RunId, ShardId, Token},
    limits,
    rpc::executor::Held,
    text::Text,
    time::Timestamp,
    view::{ExecutorState, ExecutorView},
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Beyond an executor's grace, for the kill and the word of it, ms.
const STOP_OVERDUE_MS: i64 = 2_000;

/// See the module's text.
pub struct ExecutorSessionState {
    pub executor: Executor,
    /// As people know it.
    pub name: String,
    /// Who registered it. None after a restart, until it registers again.
    pub by: Option<Arc<Claimant>>,
    /// Whose session it is, as stored attempts say; None: nobody has said so far.
    pub credential: Option<Text>,
    /// Pools of its attempts that name no credential, as an earlier release started them: who registers must serve them.
    pub unclaimed: Vec<Text>,
    pub outbox: Option<mpsc::Sender<ToExecutor>>,
    /// CLOCK_BOOTTIME, ms.
    pub heard_ms: i64,
    /// Wall clock, for people.
    pub heard_wall_ms: i64,
    pub suspected: bool,
    pub draining: bool,
    /// Attempts held when it registered (again); its announcement must name them.
    pub to_confirm: Vec<Held>,
    /// Shards that were taken over and of which it has not been told.
    pub untold: Vec<(ShardId, Epoch)>,
    /// Runs waited for its credit since the last tick.
    pub waited_for: bool,
    /// What it was told of that on its connection.
    pub hinted: Option<bool>,
}

impl ExecutorSessionState {
    pub fn new(name: String, now_ms: i64, wall_ms: i64) -> Self {
        Self {
            executor: Executor::default(),
            name,
            by: None,
            credential: None,
            unclaimed: Vec::new(),
            outbox: None,
            heard_ms: now_ms,
            heard_wall_ms: wall_ms,
            suspected: false,
            draining: false,
            to_confirm: Vec::new(),
            untold: Vec::new(),
            waited_for: false,
            hinted: None,
        }
    }

    /// The node's own, for channels.
    pub fn is_of_channels(&self) -> bool {
        let pools = self.executor.register.as_ref().map(|register| register.pools.as_slice());
        pools.is_some_and(|pools| !pools.is_empty() && pools.iter().all(|pool| pool == CHANNEL_POOL))
    }

    /// Runs that it may be sent now.
    pub fn credit_left(&self, now_ms: i64) -> u32 {
        if self.may_be_sent() { self.executor.credit_left(now_ms) } else { 0 }
    }

    fn may_be_sent(&self) -> bool {
        !self.draining && self.outbox.is_some() && !self.suspected
    }

    /// Its place in a round of matching.
    pub fn seat(&mut self, session: ExecutorSession, now_ms: i64) -> Seat<'_> {
        let left = self.credit_left(now_ms);
        Seat { session, executor: &mut self.executor, left }
    }

    /// Nothing goes to it any more over the connection that it had.
    pub fn hang_up(&mut self) {
        self.outbox = None;
        self.executor.credit.revoke();
    }

    /// Attempts that it holds; none of those that are only matched.
    pub fn attempts(&self) -> impl Iterator<Item = Held> {
        self.executor.running.values().map(|holding| holding.held).filter(|held| held.token != Token(0))
    }

    /// An attempt that was started before this pool had its shard.
    pub fn inherit(&mut self, held: Held) {
        self.executor.hold(held, None);
        if let Some(holding) = self.executor.running.get_mut(&held.run) {
            holding.inherited = true;
        }
    }

    /// Attempts of some runs that its announcement has to name.
    pub fn inherited(&self, of: impl Fn(RunId) -> bool) -> impl Iterator<Item = Held> {
        let known =
            self.executor.running.values().filter(|holding| holding.inherited && holding.held.token != Token(0));
        known.map(|holding| holding.held).filter(move |held| of(held.run))
    }

    /// Its body is told to stop; told again, it is not younger for that.
    pub fn stops(&mut self, held: Held, now_ms: i64) {
        if let Some(holding) = self.executor.running.get_mut(&held.run).filter(|holding| holding.held == held) {
            holding.stopping_ms.get_or_insert(now_ms);
        }
    }

    /// Attempts whose body was told to stop, and those of them that take longer than its grace allows, count.
    pub fn stopping(&self, now_ms: i64) -> (usize, usize) {
        let register = self.executor.register.as_ref();
        let grace_sec = register.and_then(|r| r.stop_grace_sec).unwrap_or(limits::STOP_GRACE_SEC as f64);
        let may_take_ms = (grace_sec * 1000.0) as i64 + STOP_OVERDUE_MS;
        let stopping = || self.executor.running.values().filter_map(|holding| holding.stopping_ms);
        (stopping().count(), stopping().filter(|since| now_ms - since > may_take_ms).count())
    }

    pub fn view(&self, session: u64, now_ms: i64) -> ExecutorView {
        let register = self.executor.register.as_ref();
        ExecutorView {
            executor_id: self.name.clone(),
            session,
            pools: register.map(|r| r.pools.clone()).unwrap_or_default(),
            slots: self.executor.slots(),
            running: self.executor.running.len() as u32,
            credit: self.credit_left(now_ms),
            state: self.state(),
            labels: register.map(|r| r.labels.clone()).unwrap_or_default(),
            last_heartbeat_at: Timestamp(self.heard_wall_ms),
            nodes: Vec::new(),
        }
    }

    pub fn state(&self) -> ExecutorState {
        if self.suspected {
            ExecutorState::SuspectedLost
        } else if self.draining {
            ExecutorState::Draining
        } else if self.outbox.is_none() {
            ExecutorState::Disconnected
        } else {
            ExecutorState::Ready
        }
    }
}
