//! Makes the rows of the read model from the events of a frame. Pure, so that a live node, a restore and a backup make
//! the same rows.

use crate::{DefinitionRow, LedgerRow, Row};
use campanile_schema::{
    event::{Event, LedgerEntry, Outcome},
    frame::Frame,
    ids::JobId,
    stored::audit::AuditRecord,
};
use std::sync::Arc;

/// The version of a definition when its job is created.
const FIRST_VERSION: u64 = 1;

/// Rows of one frame, with their hybrid times.
pub fn add_rows(frame: &Frame, rows: &mut Vec<(u64, Row)>) {
    for (index, event) in frame.events.iter().enumerate() {
        if let Some(row) = definition_of(event, &frame.events[index + 1..]).or_else(|| row_of(event)) {
            rows.push((frame.hlc + index as u64, row));
        }
    }
}

/// A version of a definition. Who made it stands behind it in its frame.
fn definition_of(event: &Event, behind: &[Event]) -> Option<Row> {
    let (job, version, at_ms, spec) = if let Event::JobCreated { job, spec, at_ms } = event {
        (*job, FIRST_VERSION, *at_ms, spec)
    } else if let Event::JobReplaced { job, spec, version, at_ms } = event {
        (*job, *version, *at_ms, spec)
    } else {
        return None;
    };
    let record = record_of(job, behind);
    Some(Row::Defined(Arc::new(DefinitionRow {
        job,
        version,
        at_ms,
        spec: DefinitionRow::without_secrets(spec),
        by: record.map(|record| record.origin.clone()),
        operation: record.map(|record| record.operation.clone()),
        reason: record.and_then(|record| record.reason.clone()),
    })))
}

/// The record of a change of a job's definition: the next one about the job, unless another change of its definition comes first.
fn record_of(job: JobId, behind: &[Event]) -> Option<&AuditRecord> {
    for event in behind {
        if let Event::Audited { record } = event
            && record.job == Some(job)
        {
            return Some(record);
        }
        if let Event::JobReplaced { job: changed, .. } = event
            && *changed == job
        {
            return None;
        }
    }
    None
}

fn row_of(event: &Event) -> Option<Row> {
    match event {
        Event::CursorMoved { job, interval, entries } => Some(Row::Ledger(LedgerRow {
            job: *job,
            from_ms: interval.from_ms,
            to_ms: interval.to_ms,
            version: interval.version,
            tzdb: interval.tzdb.clone(),
            entries: entries.clone(),
        })),
        Event::RunCreated { job, run, interval: Some(interval), late, .. } => Some(Row::Ledger(LedgerRow {
            job: *job,
            from_ms: interval.from_ms,
            to_ms: interval.to_ms,
            version: interval.version,
            tzdb: interval.tzdb.clone(),
            entries: vec![LedgerEntry {
                first_ms: interval.to_ms,
                last_ms: interval.to_ms,
                count: 1,
                outcome: if *late { Outcome::FiredLate } else { Outcome::Fired },
                reason: None,
                run: Some(*run),
            }],
        })),
        Event::RunEnded { record, .. } | Event::HookFailed { record: Some(record), .. } => {
            Some(Row::Run(record.clone()))
        }
        Event::RunReopened { record, .. } => Some(Row::Reopened(record.clone())),
        Event::DeadLetterDiscarded { record, .. } => Some(Row::DeadLetterDiscarded(record.clone())),
        Event::JobDeleted { job, .. } => Some(Row::JobDeleted(*job)),
        Event::Audited { record } => Some(Row::Audited(record.clone())),
        Event::RunCreated { interval: None, .. }
        | Event::TenantSet { .. }
        | Event::TenantDeleted { .. }
        | Event::Lent { .. }
        | Event::PauseSet { .. }
        | Event::CreateKept { .. }
        | Event::Outbox { .. }
        | Event::HookFailed { record: None, .. }
        | Event::GraphChanged { .. }
        | Event::BackfillChanged { .. }
        | Event::BulkChanged { .. }
        | Event::CalendarSet { .. }
        | Event::JobCreated { .. }
        | Event::JobReplaced { .. }
        | Event::JobPaused { .. }
        | Event::JobResumed { .. }
        | Event::JobQuarantined { .. }
        | Event::RunReleased { .. }
        | Event::RetryDue { .. }
        | Event::AttemptStarted { .. }
        | Event::AttemptSuspected { .. }
        | Event::AttemptHeard { .. }
        | Event::AttemptStopping { .. }
        | Event::AttemptEnded { .. }
        | Event::RunConfirmed { .. }
        | Event::RunPrioritized { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{
        format::FIRST_FORMAT,
        ids::{Epoch, ShardId},
        job::{JobSpec, Trigger},
        stored::{Sealed, StoredJob, StoredTrigger, audit::CallOrigin},
    };

    fn definition() -> Arc<StoredJob> {
        let sealed = Sealed {
            names: vec!["password".to_owned()],
            key_id: "k1".to_owned(),
            nonce: vec![1; 24],
            ciphertext: vec![2; 40],
        };
        let spec = JobSpec::new("finance", "close", Trigger::Manual {});
        Arc::new(StoredJob::from_spec(&spec, StoredTrigger::Manual {}, Some(sealed)))
    }

    fn record(job: u64, who: &str, operation: &'static str) -> Event {
        let record = AuditRecord {
            job: Some(JobId(job)),
            origin: CallOrigin { who: Some(who.into()), ..CallOrigin::default() },
            operation: operation.into(),
            reason: Some("because".into()),
            ..AuditRecord::default()
        };
        Event::Audited { record: Arc::new(record) }
    }

    fn defined(events: Vec<Event>) -> Vec<DefinitionRow> {
        let frame = Frame { shard: ShardId(0), epoch: Epoch(1), seq: 1, hlc: 100, events, format: FIRST_FORMAT };
        let mut rows = Vec::new();
        add_rows(&frame, &mut rows);
        let definition = |(_, row)| match row {
            Row::Defined(row) => Some(Arc::unwrap_or_clone(row)),
            Row::Run(_)
            | Row::Reopened(_)
            | Row::DeadLetterDiscarded(_)
            | Row::Ledger(_)
            | Row::JobDeleted(_)
            | Row::Audited(_) => None,
        };
        rows.into_iter().filter_map(definition).collect()
    }

    #[test]
    fn a_version_is_of_the_caller_whose_record_stands_behind_it() {
        let created = |job| Event::JobCreated { job: JobId(job), spec: definition(), at_ms: 5 };
        let replaced = |job, version| Event::JobReplaced { job: JobId(job), spec: definition(), version, at_ms: 6 };
        let rows = defined(vec![
            created(1),
            created(2),
            record(2, "otto", "job.createMany"),
            record(1, "olga", "job.create"),
            // By a node of an earlier release, and then by somebody.
            replaced(1, 2),
            replaced(1, 3),
            record(1, "ada", "job.replace"),
        ]);
        let told: Vec<(u64, u64, Option<String>)> = rows
            .iter()
            .map(|row| (row.job.0, row.version, row.by.as_ref().and_then(|by| Some(by.who.as_ref()?.to_string()))))
            .collect();
        let who = |who: &str| Some(who.to_owned());
        assert_eq!(told, [(1, 1, who("olga")), (2, 1, who("otto")), (1, 2, None), (1, 3, who("ada"))]);
        assert_eq!((rows[3].operation.as_deref(), rows[3].reason.as_deref()), (Some("job.replace"), Some("because")));
    }

    #[test]
    fn history_has_the_names_of_secrets_and_not_their_values() {
        let row = defined(vec![Event::JobCreated { job: JobId(1), spec: definition(), at_ms: 5 }]).remove(0);
        let sealed = row.spec.secrets.as_ref().unwrap();
        assert_eq!((sealed.names.as_slice(), sealed.is_keep()), (&["password".to_owned()][..], true));
        assert!(sealed.ciphertext.is_empty() && sealed.nonce.is_empty());
    }
}
