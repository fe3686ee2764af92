//! Log chunks of one executor's connection, stored one after the other, beside the reader: a slow log store must not hold up
//! heartbeats and results.

use super::{claims::ForeignClaims, reply::Reply};
use campanile_actors::scheduler::Scheduler;
use campanile_core::job::Claimant;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{RunId, Token},
    limits::{EXECUTOR_LOG_GRANT_MS, EXECUTOR_LOG_GRANTS, EXECUTOR_LOG_WAIT_MS, EXECUTOR_LOGS_WAITING},
    rpc::{calls::NoBody, executor::LogChunk},
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// The way of a connection's log chunks to the scheduler.
pub(super) struct LogLane {
    chunks: mpsc::Sender<(LogChunk, Option<Reply>)>,
    /// Chunks handed in, and chunks stored or refused.
    queued: u64,
    stored: watch::Receiver<u64>,
}

/// A place in a connection's log: what was handed in before it.
pub(super) struct Mark {
    queued: u64,
    stored: watch::Receiver<u64>,
}

/// Which attempts the executor may write the logs of. The owner of the shard says so; it is not asked for each chunk.
struct Grants {
    scheduler: Scheduler,
    by: Arc<Claimant>,
    foreign: Arc<ForeignClaims>,
    known: HashMap<(RunId, Token, u32), Instant>,
}

impl Grants {
    async fn write(&mut self, chunk: LogChunk) -> Result<(), ApiError> {
        if !self.may_write(&chunk).await? {
            self.foreign.refused([(chunk.run, chunk.token)]).await;
            let message = "this executor does not hold the attempt, or it has ended: its log is not taken";
            return Err(ApiError::new(ErrorCode::IllegalState, message));
        }
        self.scheduler.executor_log(chunk).await
    }

    async fn may_write(&mut self, chunk: &LogChunk) -> Result<bool, ApiError> {
        let key = (chunk.run, chunk.token, chunk.attempt);
        let fresh = Duration::from_millis(EXECUTOR_LOG_GRANT_MS);
        let before = self.known.get(&key);
        if before.is_some_and(|at| at.elapsed() < fresh) {
            return Ok(true);
        }
        let wait = Duration::from_millis(EXECUTOR_LOG_WAIT_MS);
        let asked = self.scheduler.executor_holds(&self.by, chunk.run, chunk.token, chunk.attempt);
        match tokio::time::timeout(wait, asked).await {
            Ok(Ok(true)) => {
                if self.known.len() >= EXECUTOR_LOG_GRANTS {
                    self.known.retain(|_, at| at.elapsed() < fresh);
                }
                if self.known.len() >= EXECUTOR_LOG_GRANTS {
                    // All of them are asked for again, which costs a message each.
                    self.known.clear();
                }
                self.known.insert(key, Instant::now());
                Ok(true)
            }
            Ok(Ok(false)) => {
                self.known.remove(&key);
                Ok(false)
            }
            // Its shard is on the way to another node: what was right some seconds ago is believed meanwhile.
            Ok(Err(_)) | Err(_) if before.is_some() => Ok(true),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ApiError::new(ErrorCode::NotReady, "the run's owner does not answer").retry_after(1.0)),
        }
    }
}

impl LogLane {
    pub(super) fn new(scheduler: Scheduler, by: Arc<Claimant>, foreign: Arc<ForeignClaims>) -> Self {
        let (chunks, mut waiting) = mpsc::channel::<(LogChunk, Option<Reply>)>(EXECUTOR_LOGS_WAITING);
        let (count, stored) = watch::channel(0u64);
        tokio::spawn(async move {
            let mut grants = Grants { scheduler, by, foreign, known: HashMap::new() };
            while let Some((chunk, reply)) = waiting.recv().await {
                let outcome = grants.write(chunk).await;
                count.send_modify(|n| *n += 1);
                match reply {
                    Some(reply) => reply.send(&outcome.map(|()| NoBody {})).await,
                    None => {
                        if let Err(error) = outcome {
                            tracing::debug!(%error, "a log chunk was not stored");
                        }
                    }
                }
            }
        });
        Self { chunks, queued: 0, stored }
    }

    /// Hands in a chunk; when there is no room for a while, it is refused.
    pub(super) async fn write(&mut self, chunk: LogChunk, reply: Option<Reply>) {
        let wait = Duration::from_millis(EXECUTOR_LOG_WAIT_MS);
        match self.chunks.send_timeout((chunk, reply), wait).await {
            Ok(()) => self.queued += 1,
            Err(
                mpsc::error::SendTimeoutError::Timeout((chunk, reply))
                | mpsc::error::SendTimeoutError::Closed((chunk, reply)),
            ) => {
                metrics::counter!("campanile_log_bytes_refused_total").increment(chunk.data.len() as u64);
                if let Some(reply) = reply {
                    let error =
                        ApiError::new(ErrorCode::Overloaded, "the log store does not keep up; send it again later");
                    reply.send::<NoBody>(&Err(error.retry_after(1.0))).await;
                }
            }
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { queued: self.queued, stored: self.stored.clone() }
    }
}

impl Mark {
    /// Waits a moment until what was handed in before is stored: a log should be whole when its attempt has ended.
    pub(super) async fn reached(mut self) {
        let wait = Duration::from_millis(EXECUTOR_LOG_WAIT_MS);
        let _ = tokio::time::timeout(wait, self.stored.wait_for(|stored| *stored >= self.queued)).await;
    }
}
