//! Rows of the read model, as projections write them and archives carry them.

use crate::{event::LedgerEntry, ids::JobId, record::RunRecord, stored::audit::AuditRecord, text::Text};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A row of the read model. All are idempotent: writing one twice changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Row {
    /// Insert or replace a final run: its record, its place in the job's list, its key, the tenant's failed list and dead letters.
    Run(Arc<RunRecord>),
    /// The run is active again: it leaves the dead letters and the failed list (the owner answers for it).
    Reopened(Arc<RunRecord>),
    /// Put away by an operator.
    DeadLetterDiscarded(Arc<RunRecord>),
    /// A closed interval of a job's ledger, with its entries, or the run that it fired.
    Ledger(LedgerRow),
    /// A job is gone; its history stays until retention.
    JobDeleted(JobId),
    /// A record of the audit trail. Event format 2.
    Audited(Arc<AuditRecord>),
}

/// A closed interval `(from, to]` of a job's ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    #[serde(rename = "j")]
    pub job: JobId,
    #[serde(rename = "f")]
    pub from_ms: i64,
    #[serde(rename = "t")]
    pub to_ms: i64,
    #[serde(rename = "v")]
    pub version: u64,
    #[serde(rename = "z")]
    pub tzdb: Text,
    #[serde(rename = "e")]
    pub entries: Vec<LedgerEntry>,
}
