//! What executors say. The connection is the RPC server's; here it is only a bounded outbox.

use super::{Scheduler, ToExecutor};
use crate::{
    calls::{ShardCall, ask, gone},
    directory::Directory,
    messages::{Answer, End, FinishBatch, PoolMsg},
    parts::parts,
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{ExecutorSession, ShardId},
    limits,
    rpc::executor::{
        Announce, Announced, Credit, Ended, Finish, FinishOutcome, Finished, LogChunk, Register, Registered,
    },
};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Results for a shard of another node. Those that it does not take are sent again.
async fn finish_elsewhere(directory: Arc<Directory>, shard: ShardId, ends: Vec<End>) {
    let (ended, places): (Vec<Ended>, Vec<_>) =
        ends.into_iter().map(|End { ended, batch, index }| (ended, (batch, index))).unzip();
    let mut places = places.into_iter();
    for part in parts(ended) {
        let of_part = places.by_ref().take(part.len()).collect::<Vec<_>>();
        let outcomes: Vec<FinishOutcome> = ask(&directory, shard, ShardCall::Finish(part)).await.unwrap_or_default();
        for (n, (batch, index)) in of_part.into_iter().enumerate() {
            batch.set(index, outcomes.get(n).copied().unwrap_or(FinishOutcome::Again));
        }
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidArgument, message)
}

impl Scheduler {
    /// A connection of an executor (again). The sender is bounded (`limits::RPC_OUTBOX_FRAMES`); what does not fit is not
    /// sent, and its attempts end as NOT_STARTED. Registering a session that is known moves it to this connection.
    pub async fn executor_register(&self, register: Register, outbox: mpsc::Sender<ToExecutor>) -> Answer<Registered> {
        let directory = self.directory()?;
        if !directory.may_act() {
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
        directory.to_pool(PoolMsg::Register(Box::new(register), outbox, done));
        directory.ended.or_answer(registered).await.ok_or_else(gone)?;
        Ok(Registered { cluster_id: directory.cluster_id.0, epochs: directory.epochs() })
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
        if let Ok(directory) = self.directory() {
            directory.to_pool(message);
        }
    }

    pub async fn executor_announce(&self, session: ExecutorSession, announce: Announce) -> Answer<Announced> {
        let directory = self.directory()?;
        let held = {
            let mut parts = self.inner.announcing.lock();
            let held = parts.entry(session).or_default();
            if held.len() + announce.held.len() > limits::EXECUTOR_SLOTS_MAX as usize * 2 {
                parts.remove(&session);
                return Err(invalid("an executor cannot hold that many attempts".to_owned()));
            }
            held.extend(announce.held);
            if announce.more {
                return Ok(Announced::default());
            }
            parts.remove(&session).unwrap_or_default()
        };
        // What it ended before it does not hold any more.
        directory.tell_ends();
        let (port, answer) = oneshot::channel();
        directory.to_pool(PoolMsg::Announce(session, held, port));
        let stop = directory.ended.or_answer(answer).await.ok_or_else(gone)?;
        Ok(Announced { stop })
    }

    /// Resolves when every outcome is durable or refused.
    pub async fn executor_finish(&self, session: ExecutorSession, finish: Finish) -> Answer<Finished> {
        if finish.items.len() > limits::EXECUTOR_BATCH {
            return Err(invalid(format!("at most {} finishes in one message", limits::EXECUTOR_BATCH)));
        }
        let count = finish.items.len();
        let Some(directory) = self.directory().ok().filter(|directory| directory.may_act()) else {
            return Ok(Finished { outcomes: vec![FinishOutcome::Again; count] });
        };
        if let Some(credit) = finish.credit {
            directory.to_pool(PoolMsg::Credit(session, credit));
        }
        if count == 0 {
            return Ok(Finished { outcomes: Vec::new() });
        }
        let (done, outcomes) = oneshot::channel();
        let batch = FinishBatch::new(count, done);
        let mut elsewhere: HashMap<ShardId, Vec<End>> = HashMap::new();
        let mut here = Vec::with_capacity(count);
        for (index, ended) in finish.items.into_iter().enumerate() {
            let shard = ended.run.shard(directory.shards);
            let end = End { ended, batch: batch.clone(), index };
            if directory.membership.is_some() && !directory.serves(shard) {
                elsewhere.entry(shard).or_default().push(end);
            } else {
                here.push((shard, end));
            }
        }
        drop(batch);
        for (shard, ends) in elsewhere {
            tokio::spawn(finish_elsewhere(directory.clone(), shard, ends));
        }
        directory.end(here);
        let outcomes = directory.ended.or_answer(outcomes).await;
        let outcomes = outcomes.unwrap_or_else(|| vec![FinishOutcome::Again; count]);
        Ok(Finished { outcomes })
    }

    /// Logs are kept apart from the journal; losing the newest in a crash loses no promise.
    pub async fn executor_log(&self, _session: ExecutorSession, chunk: LogChunk) -> Answer<()> {
        if chunk.data.len() > limits::LOG_CHUNK_BYTES {
            return Err(invalid(format!("a log chunk takes at most {} bytes", limits::LOG_CHUNK_BYTES)));
        }
        let directory = self.directory()?;
        directory.views.append_log(chunk.run, chunk.attempt, chunk.data).await.map_err(|e| super::unavailable(&e))
    }
}
