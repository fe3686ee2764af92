//! What the pool does when shards come to a node of a cluster or leave it, and while the node has no lease and may
//! decide nothing.

use super::{PoolDeps, PoolState, session::ExecutorSessionState};
use crate::messages::ToExecutor;
use campanile_schema::{
    ids::{Epoch, RunId, ShardId},
    limits,
    rpc::executor::Registered,
};
use std::sync::atomic::Ordering;

impl PoolState {
    /// The node has no lease: executors are to work for others.
    pub(super) fn hang_up(&mut self) {
        self.sessions.values_mut().for_each(ExecutorSessionState::hang_up);
    }

    /// Four times a second: executors' leases, and what executors are to be told.
    pub(super) fn look_after(&mut self, deps: &PoolDeps) {
        let now = deps.time.boot_ms();
        self.note_absence(now);
        if deps.shards.may_act() {
            self.check_leases(deps);
            self.tell_epochs(deps);
            self.end_hints();
        } else {
            // Nobody could be heard: what executors had left of their leases begins anew when the node has its own again.
            self.begin_leases(now);
        }
    }

    fn note_absence(&mut self, now_ms: i64) {
        let away_ms = now_ms - std::mem::replace(&mut self.looked_ms, now_ms);
        if away_ms > limits::NODE_AWAY_MS {
            // The node itself stood still: nobody's silence meanwhile says anything about them.
            tracing::warn!(away_ms, "the node stood still; the leases of its executors begin anew");
            metrics::counter!("campanile_node_away_total").increment(1);
            self.begin_leases(now_ms);
        }
    }

    fn begin_leases(&mut self, now_ms: i64) {
        self.sessions.values_mut().for_each(|session| session.heard_ms = now_ms);
    }

    /// Every credit of the owner before is void: from now on an announcement without an attempt of the shard says that it is not held.
    fn tell_epochs(&mut self, deps: &PoolDeps) {
        let now = deps.time.boot_ms();
        let (due, later) = std::mem::take(&mut self.taken_over).into_iter().partition(|(at, ..)| *at <= now);
        self.taken_over = later;
        let due: Vec<(i64, ShardId, Epoch)> = due;
        for session in self.sessions.values_mut() {
            session.untold.extend(due.iter().map(|(_, shard, epoch)| (*shard, *epoch)));
            let of = |run: RunId| due.iter().any(|(_, shard, _)| run.shard(deps.identity.shards) == *shard);
            let held: Vec<_> = session.inherited(of).collect();
            session.to_confirm.extend(held);
            if session.untold.is_empty() {
                continue;
            }
            let taken = Registered { cluster_id: deps.identity.cluster_id.0, epochs: session.untold.clone() };
            // With a full outbox, later; without one it registers anew, and hears it then.
            let told = session.outbox.as_ref().is_none_or(|outbox| outbox.try_send(ToExecutor::Epochs(taken)).is_ok());
            if told {
                session.untold.clear();
            }
        }
    }

    /// Whether an executor registered before it was known that it may hold attempts of the shard: its announcement was not compared with them.
    pub(super) fn registered_before(&self, shard: ShardId, shards: u16) -> bool {
        let mut registered = self.sessions.values().filter(|session| session.executor.register.is_some());
        registered.any(|session| session.executor.running.keys().any(|run| run.shard(shards) == shard))
    }

    /// Another node has the shard, and its runs with it.
    pub(super) fn shard_gone(&mut self, deps: &PoolDeps, shard: ShardId) {
        let stays = |run: RunId| run.shard(deps.identity.shards) != shard;
        self.quotas.shard_gone(shard);
        self.dispatch.retain(stays, |tenant| {
            deps.tenants.gauge(tenant).waiting.fetch_sub(1, Ordering::Relaxed);
        });
        for assignments in self.outgoing.values_mut() {
            assignments.retain(|assignment| stays(assignment.run));
        }
        self.lacking.retain(|(_, held)| stays(held.run));
        self.taken_over.retain(|(_, of, _)| *of != shard);
        for session in self.sessions.values_mut() {
            session.executor.running.retain(|run, _| stays(*run));
            session.to_confirm.retain(|held| stays(held.run));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Quotas;
    use campanile_schema::{
        ids::{ExecutorSession, JobId, Token},
        rpc::executor::Held,
    };
    use std::sync::Arc;

    fn pool_of(session: ExecutorSessionState) -> PoolState {
        let mut pool = PoolState::new(0, Quotas::new(Arc::default(), None));
        pool.sessions.insert(ExecutorSession(1), session);
        pool
    }

    #[test]
    fn only_attempts_of_the_owner_before_are_to_be_announced() {
        let mut session = ExecutorSessionState::new("two".to_owned(), 0, 0);
        let held = |run: u64| Held { run: RunId(run), job: JobId(run), token: Token(run) };
        session.inherit(held(1));
        session.inherit(held(2));
        // On its way to the executor, whose announcement may have left before.
        session.executor.hold(held(3), None);
        let asked: Vec<_> = session.inherited(|run| run != RunId(2)).collect();
        assert_eq!(asked, [held(1)], "3 was started here, 2 is of another shard");
        // Started again by this pool: no longer the attempt of before.
        session.executor.hold(Held { token: Token(4), ..held(1) }, None);
        assert_eq!(session.inherited(|_| true).collect::<Vec<_>>(), [held(2)]);
    }

    #[test]
    fn leases_begin_anew_when_the_node_itself_stood_still_and_only_then() {
        let mut pool = pool_of(ExecutorSessionState::new("silent".to_owned(), 0, 0));
        let mut heard = |now_ms: i64| {
            pool.note_absence(now_ms);
            pool.sessions[&ExecutorSession(1)].heard_ms
        };
        let looks = (0..=limits::LEASE_MS).step_by(limits::NODE_AWAY_MS as usize);
        assert!(looks.into_iter().all(|now_ms| heard(now_ms) == 0), "the node was there: its silence counts");
        let back_ms = 2 * limits::LEASE_MS + limits::NODE_AWAY_MS + 1;
        assert_eq!(heard(back_ms), back_ms);
        assert_eq!(heard(back_ms + limits::NODE_AWAY_MS), back_ms, "once");
    }
}
