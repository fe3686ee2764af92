//! A bulk operation as callers see it.

use campanile_schema::{
    job::JobStatus,
    record::{RunState, Source},
    stored::bulk::{BulkCounts, StoredBulk, StoredBulkFilter},
    text::Text,
    time::Timestamp,
    view::bulk::{BulkFailureView, BulkFilter, BulkView},
};

pub(super) fn view(bulk: &StoredBulk) -> BulkView {
    let BulkCounts { done, unchanged, failed, compensated, failures } = &bulk.counts;
    let seen = done + unchanged + failed + compensated;
    // Jobs that were made or changed since it was counted are found or not.
    let matched = bulk.matched.max(seen);
    let left = if bulk.state.is_final() { 0 } else { matched - seen };
    BulkView {
        bulk_id: Some(bulk.id),
        action: bulk.action,
        tenant_id: bulk.tenant.as_ref().map(Text::to_string),
        filter: filter(&bulk.filter),
        state: Some(bulk.state),
        matched,
        matched_more: bulk.matched_more,
        done: *done,
        unchanged: *unchanged,
        failed: *failed,
        compensated: *compensated,
        left: (!bulk.matched_more || bulk.state.is_final()).then_some(left),
        failures: failures
            .iter()
            .map(|failure| BulkFailureView {
                id: failure.id,
                code: failure.code.to_string(),
                message: failure.message.to_string(),
            })
            .collect(),
        first: Vec::new(),
        delete_at: bulk.delete_at_ms.map(Timestamp),
        grace_sec: bulk.grace_ms.map(|ms| ms.unsigned_abs() / 1000),
        undo_of: bulk.undo_of,
        undone_by: bulk.undone_by,
        reason: bulk.reason.as_ref().map(Text::to_string),
        requested_by: bulk.by.who.as_ref().map(Text::to_string),
        state_reason: bulk.state_reason.as_ref().map(Text::to_string),
        created_at: Some(Timestamp(bulk.created_ms)),
        ended_at: bulk.ended_ms.map(Timestamp),
    }
}

fn filter(stored: &StoredBulkFilter) -> BulkFilter {
    let states = stored.states.iter().filter_map(|code| RunState::from_code(*code)).map(RunState::as_str);
    let states: Vec<&str> = states.collect();
    BulkFilter {
        status: stored.status.and_then(JobStatus::from_code),
        labels: stored.labels.clone(),
        text: stored.text.clone(),
        state: (!states.is_empty()).then(|| states.join(",")),
        job_id: stored.job,
        source: stored.source.and_then(Source::from_code),
        from: stored.from_ms.map(Timestamp),
        to: stored.to_ms.map(Timestamp),
        cause: stored.cause.clone(),
    }
}
