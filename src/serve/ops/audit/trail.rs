//! Records that no frame of a change carries, on their way to the home shards of their tenants.
//!
//! Refusals and the ends of long work wait for each other for a second, or until a batch is full. A change that a caller waits for is written
//! at once, and its answer waits for that, up to a limit: its shard may be on its way to another node. What cannot be written is kept, up to
//! a limit, and tried again.

use super::refusals::Refusals;
use campanile_actors::{record_id::new_record_id, scheduler::Scheduler};
use campanile_ports::{Clock, clock::SystemClock, log_once::LogOnce};
use campanile_schema::{
    limits::{AUDIT_BATCH, AUDIT_CHANGE_MS, AUDIT_GATHER_MS, AUDIT_WAITING},
    stored::audit::AuditRecord,
};
use parking_lot::Mutex;
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// See the module's text. Cheap to clone.
#[derive(Clone, Default)]
pub struct AuditTrail {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<WaitingRecords>,
    /// A batch is full.
    full: Notify,
}

#[derive(Default)]
struct WaitingRecords {
    refusals: Refusals,
    others: Vec<AuditRecord>,
}

impl AuditTrail {
    /// Counters exist from the start.
    pub fn at_zero() {
        metrics::counter!("campanile_audit_refusals_total").increment(0);
        metrics::counter!("campanile_audit_lost_total").increment(0);
    }

    /// Counts a refusal; a record of it follows.
    pub(in crate::ops) fn refused(&self, scheduler: &Scheduler, record: AuditRecord) {
        metrics::counter!("campanile_audit_refusals_total").increment(1);
        let record = stamped(scheduler, record);
        if self.shared.waiting.lock().refusals.count(record, Instant::now(), AUDIT_BATCH) {
            self.shared.full.notify_one();
        }
    }

    /// Keeps a record for the next batch.
    pub(in crate::ops) fn later(&self, scheduler: &Scheduler, record: AuditRecord) {
        let record = stamped(scheduler, record);
        self.shared.waiting.lock().keep(vec![record]);
    }

    /// Writes the record of a change that has been made. It is durable when this returns, unless its shard cannot be written for a while.
    pub(in crate::ops) async fn change(&self, scheduler: &Scheduler, record: AuditRecord) {
        let record = stamped(scheduler, record);
        let patience = Duration::from_millis(AUDIT_CHANGE_MS);
        let kept = tokio::time::timeout(patience, scheduler.keep_audit(vec![record.clone()])).await;
        let left = kept.unwrap_or_else(|_| vec![record]);
        if !left.is_empty() {
            tracing::warn!(
                operation = %left[0].operation,
                "a change was made and answered, and its record of the audit trail could not be written yet; it is tried again"
            );
            self.shared.waiting.lock().keep(left);
        }
    }

    /// Writes what waits, batch after batch, until `stop` is done; then what is left, once.
    pub async fn run(self, scheduler: Scheduler, stop: impl Future<Output = ()>) {
        let log = LogOnce::new("records of the audit trail cannot be written; it is tried again");
        let mut stop = std::pin::pin!(stop);
        loop {
            let gathered = tokio::time::sleep(Duration::from_millis(AUDIT_GATHER_MS));
            let stopping = tokio::select! {
                () = gathered => false,
                () = self.shared.full.notified() => false,
                () = &mut stop => true,
            };
            let left = self.write(&scheduler, stopping).await;
            if left.is_empty() {
                log.recovered();
            } else {
                log.failed(&format_args!("{} records wait", left.len()));
            }
            if stopping {
                lost(left.len());
                return;
            }
            self.shared.waiting.lock().keep(left);
        }
    }

    /// What could not be written.
    async fn write(&self, scheduler: &Scheduler, all: bool) -> Vec<AuditRecord> {
        let records = {
            let mut waiting = self.shared.waiting.lock();
            let mut records = std::mem::take(&mut waiting.others);
            records.extend(waiting.refusals.take(Instant::now(), all));
            records
        };
        let mut left = Vec::new();
        for batch in records.chunks(AUDIT_BATCH) {
            if left.is_empty() {
                left = scheduler.keep_audit(batch.to_vec()).await;
            } else {
                // The shards of others are most likely not there either.
                left.extend_from_slice(batch);
            }
        }
        left
    }
}

impl WaitingRecords {
    fn keep(&mut self, records: Vec<AuditRecord>) {
        self.others.extend(records);
        let too_many = self.others.len().saturating_sub(AUDIT_WAITING);
        if too_many > 0 {
            // The newest tell what goes on now; of those before there are many already.
            self.others.drain(..too_many);
            lost(too_many);
        }
    }
}

fn lost(records: usize) {
    metrics::counter!("campanile_audit_lost_total").increment(records as u64);
}

/// With its id and its time: the node's, or before it has one the clock's.
fn stamped(scheduler: &Scheduler, record: AuditRecord) -> AuditRecord {
    let at_ms = scheduler.now_ms().unwrap_or_else(|_| SystemClock.wall_us() / 1_000);
    AuditRecord { id: new_record_id(), at_ms, ..record }
}
