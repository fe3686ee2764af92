//! Makes the rows of the read model from the events of a frame. Pure, so that a live node, a restore and a backup make
//! the same rows.

use crate::{LedgerRow, Row};
use campanile_schema::{
    event::{Event, LedgerEntry, Outcome},
    frame::Frame,
};

/// Rows of one frame, with their hybrid times.
pub fn add_rows(frame: &Frame, rows: &mut Vec<(u64, Row)>) {
    for (index, event) in frame.events.iter().enumerate() {
        if let Some(row) = row_of(event) {
            rows.push((frame.hlc + index as u64, row));
        }
    }
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
        | Event::RunConfirmed { .. } => None,
    }
}
