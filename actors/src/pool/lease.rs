//! Sessions and leases of executors: registration, silence, loss, and what an executor announces after a restart of the
//! node.

use super::{PoolDeps, PoolState, session::ExecutorSessionState};
use crate::messages::{PoolMsg, ShardMsg, ToExecutor};
use campanile_core::job::Claimant;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{ExecutorSession, ShardId},
    limits,
    rpc::executor::{Held, Register},
    text::Text,
};
use hashbrown::{HashMap, HashSet};
use ractor::ActorRef;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// From the claim of the shards to the first moment in which an announcement without an attempt may replace it, ms: by then
/// every credit of the owner before is void.
pub(super) const OLD_CREDIT_VOID_MS: i64 = limits::CREDIT_MS * 11 / 10;

fn by_shard(held: impl IntoIterator<Item = Held>, shards: u16) -> HashMap<ShardId, Vec<Held>> {
    let mut groups: HashMap<ShardId, Vec<Held>> = HashMap::new();
    for held in held {
        groups.entry(held.run.shard(shards)).or_default().push(held);
    }
    groups
}

/// One answer for every session of another credential, alive or not.
pub fn session_taken() -> ApiError {
    let message =
        "session: this number belongs to another credential; take a random one for each start of the executor";
    ApiError::new(ErrorCode::Forbidden, message)
}

impl PoolState {
    pub(super) fn register(
        &mut self,
        deps: &PoolDeps,
        register: Register,
        by: Arc<Claimant>,
        outbox: mpsc::Sender<ToExecutor>,
    ) -> Answer<()> {
        let (now, wall) = (deps.time.boot_ms(), deps.time.now_ms());
        let id = register.session;
        let known = self.sessions.get(&id).and_then(|session| session.credential.as_ref());
        let unclaimed = self.sessions.get(&id).map(|session| session.unclaimed.as_slice()).unwrap_or_default();
        if known.is_some_and(|known| *known != by.credential)
            || known.is_none() && !unclaimed.iter().all(|pool| by.serves(pool))
        {
            return Err(session_taken());
        }
        tracing::info!(executor = ?register.executor_id, session = id.0, slots = register.slots, "executor registered");
        let session = self
            .sessions
            .entry(id)
            .or_insert_with(|| ExecutorSessionState::new(register.executor_id.clone(), now, wall));
        session.credential = Some(by.credential.clone());
        session.unclaimed = Vec::new();
        session.by = Some(by);
        session.outbox = Some(outbox);
        session.hinted = None;
        session.executor.credit.revoke();
        session.draining = false;
        session.to_confirm = session.attempts().collect();
        session.executor.register = Some(register);
        self.heard(deps, id);
        self.dispatch.retry_misfits();
        Ok(())
    }

    /// A sign of life.
    pub(super) fn heard(&mut self, deps: &PoolDeps, id: ExecutorSession) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.heard_ms = deps.time.boot_ms();
        session.heard_wall_ms = deps.time.now_ms();
        if std::mem::take(&mut session.suspected)
            && let Some(by) = session.by.clone()
        {
            for (shard, held) in by_shard(session.attempts(), deps.identity.shards) {
                deps.shards.send(shard, ShardMsg::ExecutorHolds(held, by.clone(), None));
            }
        }
    }

    pub(super) fn disconnected(&mut self, id: ExecutorSession) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.hang_up();
            if session.executor.running.is_empty() {
                self.sessions.remove(&id);
            }
        }
    }

    /// An attempt that ran before the restart: its lease starts anew now. `credential`: the attempt's, or its pool if it has none.
    pub(super) fn watch(
        &mut self,
        deps: &PoolDeps,
        id: ExecutorSession,
        credential: Result<Text, Text>,
        held: Held,
        name: String,
    ) {
        let known = self.sessions.get(&id).and_then(|session| session.credential.as_ref());
        if credential.as_ref().is_ok_and(|own| known.is_some_and(|known| known != own)) {
            tracing::warn!(session = id.0, "a session number is another credential's, as a stored attempt says: ended");
            self.lose(deps, id);
        }
        let (now, wall) = (deps.time.boot_ms(), deps.time.now_ms());
        let session = self.sessions.entry(id).or_insert_with(|| ExecutorSessionState::new(name, now, wall));
        match credential {
            Ok(credential) => session.credential = Some(credential),
            Err(pool) if session.credential.is_none() && !session.unclaimed.contains(&pool) => {
                session.unclaimed.push(pool);
            }
            Err(_) => {}
        }
        session.inherit(held);
    }

    /// The session is over: what it held is lost.
    fn lose(&mut self, deps: &PoolDeps, id: ExecutorSession) {
        let Some(session) = self.sessions.remove(&id) else { return };
        for (shard, held) in by_shard(session.attempts(), deps.identity.shards) {
            deps.shards.send(shard, ShardMsg::Lost(held));
        }
    }

    /// The executor's complete list against what the shards believe: what it holds is adopted, what it lacks is lost (when
    /// every old credit is void), what it should not hold it must stop. Nothing is held for it on its word alone: attempts that are
    /// its own are in `running` already, or the job says so when it lets this session have them.
    pub(super) fn announce(
        &mut self,
        deps: &PoolDeps,
        myself: &ActorRef<PoolMsg>,
        id: ExecutorSession,
        held: Vec<Held>,
        port: oneshot::Sender<Vec<Held>>,
    ) {
        self.heard(deps, id);
        let known = self.sessions.get_mut(&id).and_then(|session| Some((session.by.clone()?, session)));
        let Some((by, session)) = known else {
            let _ = port.send(Vec::new());
            return;
        };
        let listed: HashSet<_> = held.iter().map(|h| (h.run, h.token)).collect();
        let lacking: Vec<Held> = std::mem::take(&mut session.to_confirm)
            .into_iter()
            .filter(|h| !listed.contains(&(h.run, h.token)))
            .collect();
        let at = deps.time.boot_ms().max(self.started_ms + OLD_CREDIT_VOID_MS);
        self.lacking.extend(lacking.into_iter().map(|h| (at, h)));
        let groups = by_shard(held, deps.identity.shards);
        let (shards, myself) = (deps.shards.clone(), myself.clone());
        tokio::spawn(async move {
            let mut stop = Vec::new();
            for (shard, held) in groups {
                let (sender, receiver) = oneshot::channel();
                shards.send(shard, ShardMsg::ExecutorHolds(held, by.clone(), Some(sender)));
                stop.extend(receiver.await.unwrap_or_default());
            }
            // The end of what is not its own any more is nobody's news: the places are given back now.
            // The pool ends only with its session.
            let _ = myself.cast(PoolMsg::NotHeld(id, stop.clone()));
            let _ = port.send(stop);
        });
    }

    pub(super) fn check_leases(&mut self, deps: &PoolDeps) {
        let now = deps.time.boot_ms();
        let mut gone = Vec::new();
        for (id, session) in &mut self.sessions {
            let silent = now - session.heard_ms;
            if silent > limits::LEASE_MS {
                tracing::warn!(executor = ?session.name, session = id.0, "executor lost: its lease ended");
                metrics::counter!("executor_heartbeat_lost").increment(1);
                gone.push(*id);
            } else if silent > limits::SUSPECT_MS && !session.suspected {
                session.suspected = true;
                for (shard, held) in by_shard(session.attempts(), deps.identity.shards) {
                    deps.shards.send(shard, ShardMsg::Suspect(held));
                }
            }
        }
        for id in gone {
            self.lose(deps, id);
        }
        let (due, later) = std::mem::take(&mut self.lacking).into_iter().partition(|(at, _)| *at <= now);
        self.lacking = later;
        let due: Vec<(i64, Held)> = due;
        for (shard, held) in by_shard(due.into_iter().map(|(_, h)| h), deps.identity.shards) {
            deps.shards.send(shard, ShardMsg::Lost(held));
        }
    }
}
