//! The handle by which HTTP, RPC, the command line (in process) and tests call the actors. Every answer waits for the
//! durable state that it depends on. Cheap to clone.
//!
//! It finds the owner of the shard, refuses calls early when queues are full, and combines the answers of several
//! shards.

mod audit;
mod backfills;
mod bulk_ask;
mod bulk_drive;
mod bulk_items;
mod bulk_shown;
mod bulk_walk;
mod bulks;
mod calendars;
mod causes;
mod changed;
mod cluster_queries;
mod dags;
mod executors;
mod explain;
mod fingerprint;
mod jobs;
mod lists;
mod load;
mod log_part;
mod nodes;
mod outbox;
mod queries;
mod run_list;
mod runs;
mod statistics;
mod targets;
mod tenants;
mod versions;

pub use crate::pool::session_taken;
pub use log_part::LogPart;
pub use queries::{DeadLetterFilter, RunQuery};
pub use tenants::Rows;

use crate::{
    ask::ask_here,
    call_error::CallError,
    calls::{ShardAnswer, ShardCall},
    changes::{Copied, LogPlace, mirror},
    handles::SessionHandles,
    shard_map::ShardPlace,
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{SessionId, ShardId},
    stored::audit::AuditRecord,
};
use parking_lot::RwLock;
use std::sync::Arc;

/// See the module's text.
#[derive(Clone)]
pub struct Scheduler {
    inner: Arc<Inner>,
    /// The call that it works for, as its changes are to tell it.
    record: Option<Arc<AuditRecord>>,
}

struct Inner {
    handles: RwLock<Result<Arc<SessionHandles>, String>>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler {
    /// Not ready until a session is set.
    pub fn new() -> Self {
        let inner = Arc::new(Inner { handles: RwLock::new(Err("the node is starting".to_owned())) });
        Self { inner, record: None }
    }

    /// Of a session, for its own tasks.
    pub(crate) fn of(handles: Arc<SessionHandles>) -> Self {
        Self { inner: Arc::new(Inner { handles: RwLock::new(Ok(handles)) }), record: None }
    }

    /// The session that answers from now on, or why there is none.
    pub fn set_session(&self, session: Result<Arc<SessionHandles>, String>) {
        *self.inner.handles.write() = session;
    }

    /// Why the node is not ready; empty = ready.
    pub fn not_ready_reasons(&self) -> Vec<String> {
        match &*self.inner.handles.read() {
            Err(reason) => vec![reason.clone()],
            Ok(handles) => {
                let mut reasons = Vec::new();
                reasons.extend(handles.identity.time.halted());
                if handles.client.journal.has_failed() {
                    reasons.push("the journal cannot be written; the node reopens its store".to_owned());
                }
                if !handles.shards.may_act() {
                    reasons.push(
                        "the cluster's store does not answer: without a lease the node decides nothing".to_owned(),
                    );
                }
                reasons.extend(handles.health.settling.reason(|shard| handles.shards.serves(shard)));
                if let Some(why) = handles.health.refused() {
                    reasons.push(format!("the cluster does not take this node: {why}"));
                }
                if handles.health.is_leaving() {
                    reasons.push("the node gives its shards to others before it stops".to_owned());
                }
                if handles.health.is_draining() {
                    reasons.push("the node is stopping".to_owned());
                }
                reasons
            }
        }
    }

    /// What the node's disk will not do for, by name; it works all the same.
    pub fn disk_short(&self) -> Vec<&'static str> {
        let handles = self.inner.handles.read();
        handles.as_ref().map(|it| it.health.disk().iter().map(|why| why.as_str()).collect()).unwrap_or_default()
    }

    pub(crate) fn handles(&self) -> Answer<Arc<SessionHandles>> {
        match &*self.inner.handles.read() {
            Ok(handles) => Ok(handles.clone()),
            Err(reason) => Err(ApiError::new(ErrorCode::NotReady, reason.clone()).retry_after(1.0)),
        }
    }

    /// What another node asks of a shard that it takes for ours. If it is not, nothing is done: the asker looks again.
    pub async fn answer_peer(&self, shard: ShardId, call: ShardCall) -> Result<ShardAnswer, CallError> {
        let Ok(handles) = self.handles() else { return Err(CallError::NotServed) };
        match handles.shards.place(shard) {
            ShardPlace::Here => ask_here(&handles.client, shard, call).await,
            ShardPlace::Elsewhere { .. } | ShardPlace::TakenOver | ShardPlace::Nowhere => Err(CallError::NotServed),
        }
    }

    /// What became durable here, for another node where somebody watches.
    pub fn changes_for_peer(&self, since: Option<LogPlace>) -> Answer<Copied> {
        let handles = self.handles()?;
        Ok(mirror::since(&handles.changes, &handles.identity.time, since))
    }

    /// Another node has released a shard to this session.
    pub fn released_to(&self, session: SessionId, shard: ShardId) {
        if let Ok(handles) = self.handles()
            && let Some(membership) = handles.shards.membership().filter(|_| handles.identity.session == session)
        {
            membership.owner.peer_released(shard);
        }
    }

    /// The node's time, ms: the wall clock while it is believed.
    pub fn now_ms(&self) -> Answer<i64> {
        Ok(self.handles()?.identity.time.now_ms())
    }

    /// The read model counts as too far behind from so many events on: for proofs that cannot wait until so many are made.
    #[cfg(feature = "faults")]
    pub fn projector_full_above(&self, events: i64) -> Answer<()> {
        self.handles()?.client.projector.full_above(events);
        Ok(())
    }

    /// The node stays at a level of degradation: for proofs that cannot make a backlog.
    #[cfg(feature = "faults")]
    pub fn degrade(&self, level: Option<campanile_schema::view::DegradationLevel>) -> Answer<()> {
        self.handles()?.client.projector.degradation.force(level);
        Ok(())
    }

    /// The operator says that the clock is right.
    pub fn accept_clock(&self) -> Answer<()> {
        self.handles()?.identity.time.accept();
        Ok(())
    }
}

pub(crate) fn unavailable(error: &campanile_ports::StoreError) -> ApiError {
    ApiError::new(ErrorCode::NotReady, error.to_string()).retry_after(1.0)
}

pub(crate) fn no_such(what: &str, id: impl std::fmt::Display) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("no {what} {id}"))
}
