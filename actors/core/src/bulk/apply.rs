//! How events change the records of bulk operations. Total: only `decide` checks whether a change is valid.

use super::{
    Bulks,
    rules::{Rule, kept},
};
use campanile_schema::{
    limits::BULK_FAILURES,
    stored::bulk::{BulkChange, BulkCounts, BulkState, StoredBulk},
};

/// Applies a change.
pub fn apply(bulks: &mut Bulks, change: &BulkChange) {
    match change {
        BulkChange::Created { bulk } => {
            bulks.insert(bulk.id, (**bulk).clone());
        }
        BulkChange::Begun { id, page } => {
            if let Some(bulk) = bulks.get_mut(id) {
                bulk.pages += 1;
                bulk.page = Some(page.clone());
            }
        }
        BulkChange::Done { id, counts, at_ms } => {
            if let Some(bulk) = bulks.get_mut(id) {
                done(bulk, counts, *at_ms);
            }
        }
        BulkChange::Aborted { id, reason, at_ms } => {
            if let Some(bulk) = bulks.get_mut(id) {
                bulk.state_reason.clone_from(reason);
                if bulk.page.is_some() && kept(Rule::AbortedAtTheEnd) {
                    bulk.state = BulkState::Aborting;
                } else {
                    end(bulk, BulkState::Aborted, *at_ms);
                }
            }
        }
        BulkChange::Deleting { id } => {
            if let Some(bulk) = bulks.get_mut(id) {
                bulk.state = BulkState::Running;
                bulk.deleting = true;
                bulk.place = None;
                bulk.counts = BulkCounts::default();
            }
        }
        BulkChange::Undone { id, by, at_ms } => {
            if let Some(bulk) = bulks.get_mut(id) {
                bulk.undone_by = Some(*by);
                if !bulk.state.is_final() && kept(Rule::UndoEndsGrace) {
                    end(bulk, BulkState::Aborted, *at_ms);
                }
            }
        }
        BulkChange::Forgotten { id } => {
            bulks.remove(id);
        }
    }
}

fn end(bulk: &mut StoredBulk, state: BulkState, at_ms: i64) {
    bulk.state = state;
    bulk.ended_ms = Some(at_ms);
    bulk.place = None;
}

fn done(bulk: &mut StoredBulk, counts: &BulkCounts, at_ms: i64) {
    let Some(page) = bulk.page.take() else { return };
    let BulkCounts { done, unchanged, failed, compensated, failures } = counts;
    bulk.counts.done += done;
    bulk.counts.unchanged += unchanged;
    bulk.counts.failed += failed;
    bulk.counts.compensated += compensated;
    let room = BULK_FAILURES.saturating_sub(bulk.counts.failures.len());
    let room = if kept(Rule::FailuresAreBounded) { room } else { usize::MAX };
    bulk.counts.failures.extend(failures.iter().take(room).cloned());
    let last = page.next.is_none();
    bulk.place = page.next;
    if bulk.state == BulkState::Aborting {
        return end(bulk, BulkState::Aborted, at_ms);
    }
    if last || !kept(Rule::DoneAtTheEnd) {
        match bulk.grace_ms {
            // All are paused: the grace begins.
            Some(grace_ms) if !bulk.deleting => {
                bulk.state = BulkState::Waiting;
                bulk.place = None;
                bulk.delete_at_ms = Some(at_ms.saturating_add(grace_ms));
            }
            Some(_) | None => end(bulk, BulkState::Done, at_ms),
        }
    }
}
