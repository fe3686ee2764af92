//! Callers' keys of triggers: the same key makes the same run for as long as the history keeps the run. A run keeps the
//! params that it was triggered with, even when it has ended: the same key with other params is another request and is
//! refused.
//!
//! A key is in memory while its run is open or not yet in the view; afterwards the view answers. There is no gap
//! between the two: memory forgets a key only in a message of its own, after the view has passed it, and look-ups
//! happen between messages.

use super::{Shard, append::not_found};
use crate::{call_error::CallError, messages::Envelope};
use campanile_core::job::{Command, Reply, same_request};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
};
use std::sync::Arc;

impl Shard {
    pub(super) async fn run_of_key(&mut self, job: JobId, key: &str) -> Result<Option<RunId>, ApiError> {
        if let Some(run) = self.keys.get(&(job, key.to_owned())) {
            return Ok(Some(*run));
        }
        self.deps
            .views
            .find_key(job, key)
            .await
            .map_err(|e| ApiError::new(ErrorCode::NotReady, e.to_string()).retry_after(1.0))
    }

    /// Answers with the run that a key made before, if it came with the same params then.
    pub(super) async fn answer_run(&mut self, run: RunId, Envelope { command, reply, .. }: Envelope) {
        let params = if let Command::Trigger { params, .. } = &command { params.as_ref() } else { None };
        if let Some(job) = self.open_runs.get(&run).copied()
            && let Some(job) = self.materialize(job)
            && let Some(open) = job.run(run)
        {
            let answer = same_request(&open.record, params);
            let answer = answer.map(|()| Reply::Run(Box::new(job.run_view(open)))).map_err(ApiError::from);
            return self.when_durable(move || reply.answer(answer.map_err(CallError::Refused)));
        }
        let record = match self.recent.get(&run).cloned() {
            Some((_, record)) => Ok(Some(Arc::unwrap_or_clone(record))),
            None => self.deps.views.run(run).await,
        };
        let answer = match record {
            Ok(Some(record)) => match same_request(&record, params) {
                Ok(()) => Ok(Reply::Final(Box::new(record))),
                Err(reused) => Err(reused.into()),
            },
            Ok(None) => Err(not_found("run")),
            Err(error) => Err(ApiError::new(ErrorCode::NotReady, error.to_string()).retry_after(1.0)),
        };
        self.when_durable(move || reply.answer(answer.map_err(CallError::Refused)));
    }
}
