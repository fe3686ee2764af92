//! Rows of the read model, as projections write them and archives carry them.

use crate::{
    event::LedgerEntry,
    ids::JobId,
    record::RunRecord,
    stored::{
        Sealed, StoredJob,
        audit::{AuditRecord, CallOrigin},
    },
    text::Text,
};
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
    /// A version of a definition. The history of a job has the newest [`DEFINITIONS_KEPT`](crate::limits::DEFINITIONS_KEPT), and goes with
    /// the job.
    Defined(Arc<DefinitionRow>),
}

/// A version of the definition of a job, and who made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefinitionRow {
    #[serde(rename = "j")]
    pub job: JobId,
    #[serde(rename = "v")]
    pub version: u64,
    #[serde(rename = "a")]
    pub at_ms: i64,
    /// Of secret params it has the names only: see [`DefinitionRow::without_secrets`].
    #[serde(rename = "d")]
    pub spec: Arc<StoredJob>,
    /// None: it is not known.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CallOrigin>,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Text>,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

impl DefinitionRow {
    /// A definition as history keeps it: a value that was replaced because it became known must not stay anywhere.
    pub fn without_secrets(spec: &Arc<StoredJob>) -> Arc<StoredJob> {
        match &spec.secrets {
            None => spec.clone(),
            Some(sealed) => {
                Arc::new(StoredJob { secrets: Some(Sealed::keep(sealed.names.clone())), ..StoredJob::clone(spec) })
            }
        }
    }
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
