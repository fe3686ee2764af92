//! An executor session as the pool sees it: what the executor can run, its credit, the attempts that it holds, and when
//! it was last heard.

use super::class::Kind;
use crate::messages::ToExecutor;
use campanile_core::job::{Claimant, Need, Waiting};
use campanile_schema::{
    ids::{Epoch, RunId, ShardId, Token},
    limits,
    rpc::executor::{Credit, Held, Register},
    text::Text,
    time::Timestamp,
    view::ExecutorView,
};
use hashbrown::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A running attempt and what it takes.
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
}

/// Beyond an executor's grace, for the kill and the word of it, ms.
const STOP_OVERDUE_MS: i64 = 2_000;

/// See the module's text.
pub struct Session {
    /// None after a restart, until it registers again.
    pub register: Option<Register>,
    /// Who registered it. None after a restart, until it registers again.
    pub by: Option<Arc<Claimant>>,
    /// Whose session it is, as stored attempts say; None: nobody has said so far.
    pub credential: Option<Text>,
    /// Pools of its attempts that name no credential, as an earlier release started them: who registers must serve them.
    pub unclaimed: Vec<Text>,
    pub executor: String,
    pub outbox: Option<mpsc::Sender<ToExecutor>>,
    pub credit: Credit,
    /// Bound since the credit was given.
    pub used: u32,
    pub credit_at_ms: i64,
    /// Number of its last bind among all of the pool actor: of equally loaded ones the one that waits longest is next.
    pub last_bind: u64,
    pub running: HashMap<RunId, Holding>,
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

impl Session {
    pub fn new(executor: String, now_ms: i64, wall_ms: i64) -> Self {
        Self {
            register: None,
            by: None,
            credential: None,
            unclaimed: Vec::new(),
            executor,
            outbox: None,
            credit: Credit::default(),
            used: 0,
            credit_at_ms: 0,
            last_bind: 0,
            running: HashMap::new(),
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

    /// Credit that is left and not stale. The executor checks its own stamp; this only avoids sending in vain.
    pub fn credit_left(&self, now_ms: i64) -> u32 {
        if self.draining || self.outbox.is_none() || self.suspected || now_ms - self.credit_at_ms > limits::CREDIT_MS {
            return 0;
        }
        // What was sent after the executor counted its free slots is not in its credit yet; it is in `running`.
        let slots = self.register.as_ref().map_or(0, |r| r.slots);
        let free = slots.saturating_sub(self.running.len() as u32);
        self.credit.slots.saturating_sub(self.used).min(free)
    }

    /// It has what runs of this kind need, at least for some of them.
    pub fn takes(&self, kind: Kind) -> bool {
        self.register.as_ref().is_some_and(|r| match kind {
            Kind::Handlers => r.any_handler || !r.handlers.is_empty(),
            Kind::Commands => r.commands,
            Kind::Http => r.http,
        })
    }

    pub fn is_in(&self, pool: &str) -> bool {
        self.register.as_ref().is_some_and(|r| r.pools.iter().any(|p| p == pool))
    }

    /// Filter that holds for as long as it is registered: kind and handler, and whether it could ever be large enough.
    pub fn can_run(&self, run: &Waiting) -> bool {
        let Some(register) = &self.register else { return false };
        let kind = match &run.need {
            Need::Command => register.commands,
            Need::Http => register.http,
            Need::Handler(name) => register.any_handler || register.handlers.iter().any(|h| h == name),
        };
        let large = |limit: f64, wanted: f64| limit <= 0.0 || wanted <= limit + 1e-9;
        kind && large(register.cpu, run.cpu)
            && large(register.memory_mb as f64, run.memory_mb as f64)
            && large(register.storage_mb as f64, run.storage_mb as f64)
    }

    /// Filter that holds for the moment: resources left.
    pub fn has_room(&self, run: &Waiting) -> bool {
        let Some(register) = &self.register else { return false };
        let over = |limit: f64, used: f64, wanted: f64| limit > 0.0 && used + wanted > limit + 1e-9;
        let sum = |f: fn(&Holding) -> f64| self.running.values().map(f).sum::<f64>();
        // Sums only where a limit was named: most executors name none.
        let full = register.cpu > 0.0 && over(register.cpu, sum(|h| h.cpu), run.cpu)
            || register.memory_mb > 0
                && over(register.memory_mb as f64, sum(|h| h.memory_mb as f64), run.memory_mb as f64)
            || register.storage_mb > 0
                && over(register.storage_mb as f64, sum(|h| h.storage_mb as f64), run.storage_mb as f64);
        !full
    }

    /// Score: less loaded is better.
    pub fn load(&self) -> f64 {
        let slots = self.register.as_ref().map_or(1, |r| r.slots.max(1));
        self.running.len() as f64 / f64::from(slots) + f64::from(self.credit.load)
    }

    /// Which of two gets the next run: the less loaded; of equals they take turns, or one of them would never get any while
    /// there is little to do.
    pub fn before(&self, other: &Self) -> std::cmp::Ordering {
        self.load().total_cmp(&other.load()).then(self.last_bind.cmp(&other.last_bind))
    }

    pub fn hold(&mut self, held: Held, run: Option<&Waiting>) {
        let (cpu, memory_mb, storage_mb) = run.map_or((0.0, 0, 0), |w| (w.cpu, w.memory_mb, w.storage_mb));
        let holding = Holding { held, cpu, memory_mb, storage_mb, stopping_ms: None, inherited: false };
        self.running.insert(held.run, holding);
    }

    /// An attempt that was started before this pool had its shard.
    pub fn inherit(&mut self, held: Held) {
        self.hold(held, None);
        if let Some(holding) = self.running.get_mut(&held.run) {
            holding.inherited = true;
        }
    }

    /// Attempts of some runs that its announcement has to name.
    pub fn inherited(&self, of: impl Fn(RunId) -> bool) -> impl Iterator<Item = Held> {
        let known = self.running.values().filter(|holding| holding.inherited && holding.held.token != Token(0));
        known.map(|holding| holding.held).filter(move |held| of(held.run))
    }

    /// Its body is told to stop; told again, it is not younger for that.
    pub fn stops(&mut self, held: Held, now_ms: i64) {
        if let Some(holding) = self.running.get_mut(&held.run).filter(|holding| holding.held == held) {
            holding.stopping_ms.get_or_insert(now_ms);
        }
    }

    /// Attempts whose body was told to stop, and those of them that take longer than its grace allows, count.
    pub fn stopping(&self, now_ms: i64) -> (usize, usize) {
        let grace_sec = self.register.as_ref().and_then(|r| r.stop_grace_sec).unwrap_or(limits::STOP_GRACE_SEC as f64);
        let may_take_ms = (grace_sec * 1000.0) as i64 + STOP_OVERDUE_MS;
        let stopping = || self.running.values().filter_map(|holding| holding.stopping_ms);
        (stopping().count(), stopping().filter(|since| now_ms - since > may_take_ms).count())
    }

    pub fn release(&mut self, run: RunId, token: Option<Token>) {
        if let Some(holding) = self.running.get(&run)
            && token.is_none_or(|t| t == holding.held.token || holding.held.token == Token(0))
        {
            self.running.remove(&run);
        }
    }

    pub fn view(&self, session: u64, now_ms: i64) -> ExecutorView {
        let register = self.register.as_ref();
        let state = if self.suspected {
            "SUSPECTED_LOST"
        } else if self.draining {
            "DRAINING"
        } else if self.outbox.is_none() {
            "DISCONNECTED"
        } else {
            "READY"
        };
        ExecutorView {
            executor_id: self.executor.clone(),
            session,
            pools: register.map(|r| r.pools.clone()).unwrap_or_default(),
            slots: register.map_or(0, |r| r.slots),
            running: self.running.len() as u32,
            credit: self.credit_left(now_ms),
            state: state.to_owned(),
            labels: register.map(|r| r.labels.clone()).unwrap_or_default(),
            last_heartbeat_at: Timestamp(self.heard_wall_ms),
            nodes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equally_loaded_executors_take_turns_and_a_loaded_one_waits() {
        let mut sessions = [Session::new("a".to_owned(), 0, 0), Session::new("b".to_owned(), 0, 0)];
        let mut given = [0; 2];
        for bind in 1..=10 {
            // Each run ends before the next one comes.
            let next = usize::from(sessions[1].before(&sessions[0]).is_lt());
            sessions[next].last_bind = bind;
            given[next] += 1;
        }
        assert_eq!(given, [5, 5]);
        sessions[0].hold(Held { run: RunId(1), job: campanile_schema::ids::JobId(1), token: Token(1) }, None);
        sessions[1].last_bind = 11;
        assert!(sessions[1].before(&sessions[0]).is_lt(), "load comes first");
    }
}
