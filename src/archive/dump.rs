//! An archive as lines of JSON: definitions, tenants, open and ended runs, ledgers. For people and other programs; nothing reads it back.

use super::image::{Image, Sink};
use campanile_ports::{DefinitionRow, Row, StoreError};
use campanile_schema::{
    audit::AuditView,
    ids::RunId,
    job::JobStatus,
    stored::target_of,
    time::Timestamp,
    view::{LedgerEntryView, RunView, targets::TargetBody},
};
use campanile_store::archive::reader::ArchiveReader;
use serde_json::{Value, json};
use std::io::{Read, Write};

/// Writes a line for each thing. Rows come before the jobs, as the archive has them; secrets are masked, logs left out.
pub fn lines<R: Read>(reader: ArchiveReader<R>, out: &mut dyn Write) -> Result<(), StoreError> {
    let head = reader.head();
    let first = json!({
        "kind": "archive", "clusterId": head.store.cluster_id, "shards": head.store.shards, "cutAt": Timestamp(head.at_ms),
        "release": head.release,
    });
    let mut lines = Lines { out };
    lines.line(&first)?;
    let image = Image::read(reader, &mut lines)?;
    for shard in &image.shards {
        for tenant in shard.state().tenants.values() {
            if let Some((of, target)) = target_of(&tenant.tenant) {
                let settings = TargetBody::of(tenant);
                lines.line(&json!({"kind": "target", "tenantId": of, "target": target, "settings": settings}))?;
                continue;
            }
            lines.line(&json!({"kind": "tenant", "tenantId": tenant.tenant, "limits": {
                "maxConcurrentRuns": tenant.max_concurrent_runs, "maxTriggersPerSec": tenant.max_triggers_per_sec,
                "maxJobs": tenant.max_jobs, "maxQueuedRuns": tenant.max_queued_runs,
            }}))?;
        }
        for job in shard.jobs() {
            let job = job?;
            if job.hot.status != JobStatus::Deleted {
                lines.thing("job", &job.view())?;
            }
            for run in &job.hot.runs {
                lines.thing("run", &job.run_view(run))?;
            }
        }
    }
    lines.line(&json!({"kind": "end", "rows": image.totals.rows, "bytes": image.bytes}))
}

/// A version of a definition, and who made it.
fn definition(row: &DefinitionRow) -> Value {
    let origin = row.by.as_ref();
    json!({
        "kind": "definition", "jobId": row.job, "version": row.version, "at": Timestamp(row.at_ms),
        "who": origin.and_then(|by| by.who.as_deref()), "address": origin.and_then(|by| by.address.as_deref()),
        "operation": row.operation.as_deref(), "reason": row.reason.as_deref(), "spec": row.spec.to_spec(),
    })
}

struct Lines<'a> {
    out: &'a mut dyn Write,
}

impl Lines<'_> {
    fn line(&mut self, value: &Value) -> Result<(), StoreError> {
        writeln!(self.out, "{value}").map_err(|e| StoreError::WriteFailed(format!("the dump cannot be written: {e}")))
    }

    /// What callers see of it, and its kind.
    fn thing(&mut self, kind: &str, view: &impl serde::Serialize) -> Result<(), StoreError> {
        let mut value = serde_json::to_value(view).map_err(|e| StoreError::Corrupt(e.to_string()))?;
        value["kind"] = json!(kind);
        self.line(&value)
    }
}

impl Sink for Lines<'_> {
    fn rows(&mut self, rows: Vec<(u64, Row)>) -> Result<(), StoreError> {
        for (_, row) in rows {
            match row {
                Row::Run(record) | Row::DeadLetterDiscarded(record) => self.thing("run", &RunView::from(&*record))?,
                // Its owner answers for it: it comes with its job.
                Row::Reopened(_) | Row::JobDeleted(_) => {}
                Row::Audited(record) => self.thing("audit", &AuditView::from(&*record))?,
                Row::Defined(row) => self.line(&definition(&row))?,
                Row::Ledger(row) => {
                    for entry in &row.entries {
                        let mut value = serde_json::to_value(LedgerEntryView::from(entry))
                            .map_err(|e| StoreError::Corrupt(e.to_string()))?;
                        value["kind"] = json!("ledger");
                        value["jobId"] = json!(row.job);
                        self.line(&value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn log(&mut self, _: RunId, _: u32, _: Vec<u8>) -> Result<(), StoreError> {
        Ok(())
    }
}
