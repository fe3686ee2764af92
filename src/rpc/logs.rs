//! Log chunks of one executor's connection, stored one after the other, beside the reader: a slow log store must not hold up
//! heartbeats and results.

use super::reply::Reply;
use campanile_actors::scheduler::Scheduler;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::ExecutorSession,
    limits::{EXECUTOR_LOG_WAIT_MS, EXECUTOR_LOGS_WAITING},
    rpc::{calls::NoBody, executor::LogChunk},
};
use std::time::Duration;
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

impl LogLane {
    pub(super) fn new(scheduler: Scheduler, session: ExecutorSession) -> Self {
        let (chunks, mut waiting) = mpsc::channel::<(LogChunk, Option<Reply>)>(EXECUTOR_LOGS_WAITING);
        let (count, stored) = watch::channel(0u64);
        tokio::spawn(async move {
            while let Some((chunk, reply)) = waiting.recv().await {
                let outcome = scheduler.executor_log(session, chunk).await;
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
