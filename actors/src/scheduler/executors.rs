//! Calls of executors: registration, credit, heartbeats, announcements, results and logs. The RPC server has the
//! connection; here it is only a channel with a limited length.

use super::Scheduler;
use crate::{
    ask::{ShardClient, ask},
    call_error::CallError,
    calls::ShardCall,
    chunks::chunks,
    messages::{AttemptResult, FinishBatch, PoolMsg, ToExecutor},
};
use campanile_core::job::Claimant;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{ExecutorSession, RunId, ShardId, Token},
    limits,
    rpc::executor::{Announced, Credit, Ended, Finish, FinishOutcome, Finished, Held, LogChunk, Register, Registered},
};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Results for a shard of another node. Those that it does not take are sent again.
async fn finish_elsewhere(client: Arc<ShardClient>, shard: ShardId, by: Arc<Claimant>, results: Vec<AttemptResult>) {
    let (ended, places): (Vec<Ended>, Vec<_>) =
        results.into_iter().map(|AttemptResult { ended, batch, index, .. }| (ended, (batch, index))).unzip();
    let mut places = places.into_iter();
    for chunk in chunks(ended) {
        let of_chunk = places.by_ref().take(chunk.len()).collect::<Vec<_>>();
        let call = ShardCall::FinishBy { by: by.clone(), items: chunk.clone() };
        let outcomes: Vec<FinishOutcome> = match ask(&client, shard, call).await {
            // While a cluster is on two releases: the owner decides by the fencing token alone, as it always did.
            Err(CallError::UnknownCall) => ask(&client, shard, ShardCall::Finish(chunk)).await.unwrap_or_default(),
            outcomes => outcomes.unwrap_or_default(),
        };
        for (n, (batch, index)) in of_chunk.into_iter().enumerate() {
            batch.set(index, outcomes.get(n).copied().unwrap_or(FinishOutcome::Again));
        }
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidArgument, message)
}

impl Scheduler {
    /// A connection of an executor (again). The sender is bounded (`limits::RPC_OUTBOX_FRAMES`); what does not fit is not
    /// sent, and its attempts end as NOT_STARTED. Registering a session that is known moves it to this connection, unless it is
    /// another credential's: then 403_FORBIDDEN, and the session is as it was.
    pub async fn executor_register(
        &self,
        register: Register,
        by: Arc<Claimant>,
        outbox: mpsc::Sender<ToExecutor>,
    ) -> Answer<Registered> {
        let handles = self.handles()?;
        if !handles.shards.may_act() {
            let error = "this node has no lease at the moment; register with another one, and here again later";
            return Err(ApiError::new(ErrorCode::NotReady, error).retry_after(1.0));
        }
        if register.executor_id.is_empty() || register.executor_id.len() > limits::NAME_CHARS {
            return Err(invalid(format!("executorId takes 1 to {} bytes", limits::NAME_CHARS)));
        }
        if register.slots > limits::EXECUTOR_SLOTS_MAX {
            return Err(invalid(format!("slots must be 0 to {}", limits::EXECUTOR_SLOTS_MAX)));
        }
        for pool in &register.pools {
            campanile_core::spec::check_tenant("pools", pool)?;
        }
        let (done, registered) = oneshot::channel();
        handles.pool.send(PoolMsg::Register(Box::new(register), by, outbox, done));
        handles.health.ended.or_answer(registered).await.ok_or(CallError::Unanswered)??;
        Ok(Registered { cluster_id: handles.identity.cluster_id.0, epochs: handles.shards.epochs() })
    }

    pub fn executor_credit(&self, session: ExecutorSession, credit: Credit) {
        self.tell_pool(PoolMsg::Credit(session, credit));
    }
    pub fn executor_heartbeat(&self, session: ExecutorSession) {
        self.tell_pool(PoolMsg::Heartbeat(session));
    }
    pub fn executor_drain(&self, session: ExecutorSession) {
        self.tell_pool(PoolMsg::Drain(session));
    }
    /// The connection is gone; the session lives on until its lease ends.
    pub fn executor_disconnected(&self, session: ExecutorSession) {
        self.tell_pool(PoolMsg::Disconnected(session));
    }
    fn tell_pool(&self, message: PoolMsg) {
        // Without a session nobody listens; the executor registers again when there is one.
        if let Ok(handles) = self.handles() {
            handles.pool.send(message);
        }
    }

    /// The complete list of what the session holds; it is told what it must stop.
    pub async fn executor_announce(&self, session: ExecutorSession, held: Vec<Held>) -> Answer<Announced> {
        let handles = self.handles()?;
        // What it ended before it does not hold any more.
        handles.waiting_results.tell();
        let (port, answer) = oneshot::channel();
        handles.pool.send(PoolMsg::Announce(session, held, port));
        let stop = handles.health.ended.or_answer(answer).await.ok_or(CallError::Unanswered)?;
        Ok(Announced { stop })
    }

    /// Resolves when every outcome is durable or refused. What `by` does not hold is stale, as is what nobody knows.
    pub async fn executor_finish(&self, by: &Arc<Claimant>, finish: Finish) -> Answer<Finished> {
        if finish.items.len() > limits::EXECUTOR_BATCH {
            return Err(invalid(format!("at most {} finishes in one message", limits::EXECUTOR_BATCH)));
        }
        let count = finish.items.len();
        let Some(handles) = self.handles().ok().filter(|handles| handles.shards.may_act()) else {
            return Ok(Finished { outcomes: vec![FinishOutcome::Again; count] });
        };
        if let Some(credit) = finish.credit {
            handles.pool.send(PoolMsg::Credit(by.session, credit));
        }
        if count == 0 {
            return Ok(Finished { outcomes: Vec::new() });
        }
        let (done, outcomes) = oneshot::channel();
        let batch = FinishBatch::new(count, done);
        let mut elsewhere: HashMap<ShardId, Vec<AttemptResult>> = HashMap::new();
        let mut here = Vec::with_capacity(count);
        for (index, ended) in finish.items.into_iter().enumerate() {
            let shard = ended.run.shard(handles.identity.shards);
            let result = AttemptResult { ended, by: Some(by.clone()), batch: batch.clone(), index };
            if !handles.shards.is_alone() && !handles.shards.serves(shard) {
                elsewhere.entry(shard).or_default().push(result);
            } else {
                here.push((shard, result));
            }
        }
        drop(batch);
        for (shard, results) in elsewhere {
            tokio::spawn(finish_elsewhere(handles.client.clone(), shard, by.clone(), results));
        }
        handles.waiting_results.add(here);
        let outcomes = handles.health.ended.or_answer(outcomes).await;
        let outcomes = outcomes.unwrap_or_else(|| vec![FinishOutcome::Again; count]);
        Ok(Finished { outcomes })
    }

    /// Whether an executor holds exactly this attempt, as the owner of its shard knows.
    pub async fn executor_holds(&self, by: &Arc<Claimant>, run: RunId, token: Token, attempt: u32) -> Answer<bool> {
        let handles = self.handles()?;
        let call = ShardCall::Holds { by: by.clone(), run, token, attempt };
        match ask(&handles.client, run.shard(handles.identity.shards), call).await {
            // The owner is of a release that lets everybody log.
            Err(CallError::UnknownCall) => Ok(true),
            held => Ok(held?),
        }
    }

    /// Logs are kept apart from the journal; losing the newest in a crash loses no promise. Whose attempt it is, the caller has
    /// asked ([`Self::executor_holds`]).
    pub async fn executor_log(&self, chunk: LogChunk) -> Answer<()> {
        if chunk.data.len() > limits::LOG_CHUNK_BYTES {
            return Err(invalid(format!("a log chunk takes at most {} bytes", limits::LOG_CHUNK_BYTES)));
        }
        let handles = self.handles()?;
        handles.views.append_log(chunk.run, chunk.attempt, chunk.data).await.map_err(|e| super::unavailable(&e))
    }
}
