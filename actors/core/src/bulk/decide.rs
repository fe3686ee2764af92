//! What a call changes of the records of bulk operations.

use super::{
    Bulks,
    rules::{Rule, kept},
};
use crate::{outbox::keys::RESERVED, reject::Rejection};
use campanile_schema::{
    error::ErrorCode,
    ids::BulkId,
    limits::{BULK_KEPT, BULK_OPEN_OF_SHARD, BULK_OPEN_OF_TENANT},
    peer::bulk::{BulkLook, BulkWork},
    stored::{
        audit::CallOrigin,
        bulk::{BulkAction, BulkChange, BulkCounts, BulkPage, BulkPlace, BulkState, StoredBulk, StoredBulkFilter},
    },
    text::Text,
};

fn known(bulks: &Bulks, id: BulkId) -> Result<&StoredBulk, Rejection> {
    bulks.get(&id).ok_or_else(|| Rejection::new(ErrorCode::NotFound, format!("no bulk operation {id}")))
}

fn illegal(message: impl Into<String>) -> Rejection {
    Rejection::new(ErrorCode::IllegalState, message)
}

/// An operation begins.
///
/// # Errors
/// There are too many open ones.
pub fn create(bulks: &Bulks, mut bulk: StoredBulk, id: BulkId, at_ms: i64) -> Result<Vec<BulkChange>, Rejection> {
    let open = || bulks.values().filter(|known| !known.state.is_final());
    let of_tenant = open().filter(|known| known.tenant == bulk.tenant).count();
    let full = of_tenant >= BULK_OPEN_OF_TENANT || open().count() >= BULK_OPEN_OF_SHARD;
    if full && kept(Rule::OpenIsBounded) {
        let why = format!(
            "{of_tenant} bulk operations of the tenant have not ended; {BULK_OPEN_OF_TENANT} may be open at a time: wait for one or abort it"
        );
        return Err(Rejection::new(ErrorCode::TenantQuota, why));
    }
    bulk.id = id;
    bulk.created_ms = at_ms;
    let mut changes = forget(bulks);
    changes.push(BulkChange::Created { bulk: Box::new(bulk) });
    Ok(changes)
}

/// The oldest ended operations, as many as make room for one more.
pub fn forget(bulks: &Bulks) -> Vec<BulkChange> {
    let mut ended: Vec<(i64, BulkId)> = bulks
        .values()
        .filter(|bulk| bulk.state.is_final())
        .map(|bulk| (bulk.ended_ms.unwrap_or(bulk.created_ms), bulk.id))
        .collect();
    if ended.len() < BULK_KEPT || !kept(Rule::EndedIsBounded) {
        return Vec::new();
    }
    ended.sort_unstable();
    let spare = ended.len() + 1 - BULK_KEPT;
    ended.into_iter().take(spare).map(|(_, id)| BulkChange::Forgotten { id }).collect()
}

/// A page is to be done. None: it is not the next one, so whoever asks reads the record again.
pub fn begin(bulks: &Bulks, id: BulkId, pages: u64, page: BulkPage) -> Result<Option<BulkChange>, Rejection> {
    let bulk = known(bulks, id)?;
    let running = bulk.state == BulkState::Running
        || (!kept(Rule::AbortStops) && matches!(bulk.state, BulkState::Aborting | BulkState::Aborted))
        || (!kept(Rule::EndIsFinal) && bulk.state == BulkState::Done)
        || (!kept(Rule::GraceHolds) && bulk.state == BulkState::Waiting);
    let follows = bulk.pages == pages || !kept(Rule::PageFollows);
    let free = bulk.page.is_none() || !kept(Rule::OnePage);
    Ok((running && follows && free).then_some(BulkChange::Begun { id, page }))
}

/// The page was done.
pub fn report(
    bulks: &Bulks,
    id: BulkId,
    pages: u64,
    counts: BulkCounts,
    at_ms: i64,
) -> Result<Option<BulkChange>, Rejection> {
    let bulk = known(bulks, id)?;
    let open = bulk.page.is_some() && (bulk.pages == pages || !kept(Rule::ReportOnce));
    Ok(open.then_some(BulkChange::Done { id, counts, at_ms }))
}

/// No further page begins.
///
/// # Errors
/// It has ended.
pub fn abort(bulks: &Bulks, id: BulkId, reason: Option<Text>, at_ms: i64) -> Result<Option<BulkChange>, Rejection> {
    let bulk = known(bulks, id)?;
    match bulk.state {
        BulkState::Running | BulkState::Waiting => Ok(Some(BulkChange::Aborted { id, reason, at_ms })),
        BulkState::Aborting => Ok(None),
        BulkState::Aborted | BulkState::Done if !kept(Rule::EndIsFinal) => {
            Ok(Some(BulkChange::Aborted { id, reason, at_ms }))
        }
        BulkState::Aborted | BulkState::Done => {
            Err(illegal(format!("the bulk operation is {}: there is nothing to abort", bulk.state)))
        }
    }
}

/// The deletion begins, if the grace is over.
pub fn proceed(bulks: &Bulks, id: BulkId, at_ms: i64) -> Result<Option<BulkChange>, Rejection> {
    let bulk = known(bulks, id)?;
    let over = bulk.delete_at_ms.is_some_and(|delete_at_ms| delete_at_ms <= at_ms) || !kept(Rule::GraceHolds);
    Ok((bulk.state == BulkState::Waiting && over).then_some(BulkChange::Deleting { id }))
}

/// Makes the operation that takes another one back.
///
/// # Errors
/// It has begun to do what cannot be taken back, goes on, or was taken back before.
pub fn undo(
    bulks: &Bulks,
    id: BulkId,
    new: BulkId,
    by: CallOrigin,
    reason: Option<Text>,
    at_ms: i64,
) -> Result<Vec<BulkChange>, Rejection> {
    let bulk = known(bulks, id)?;
    let action = bulk.action.undone_by().filter(|_| bulk.action != BulkAction::Delete || bulk.grace_ms.is_some());
    let Some(action) = action else {
        return Err(illegal(format!(
            "a bulk {} cannot be undone; only PAUSE, RESUME and a DELETE in its grace",
            bulk.action
        )));
    };
    if bulk.deleting {
        return Err(illegal("the grace is over and the deletion has begun: what is deleted cannot be brought back"));
    }
    if let Some(undone) = bulk.undone_by.filter(|_| kept(Rule::UndoOnce)) {
        return Err(illegal(format!("the bulk operation was undone before, by {undone}")));
    }
    if matches!(bulk.state, BulkState::Running | BulkState::Aborting) {
        return Err(illegal("the bulk operation goes on: abort it first, and undo it when it is ABORTED"));
    }
    let undo = StoredBulk {
        action,
        tenant: bulk.tenant.clone(),
        filter: StoredBulkFilter::default(),
        by,
        reason,
        matched: bulk.counts.done,
        undo_of: Some(id),
        ..StoredBulk::default()
    };
    let mut after = bulks.clone();
    let undone = BulkChange::Undone { id, by: new, at_ms };
    super::apply(&mut after, &undone);
    let mut changes = vec![undone];
    changes.extend(create(&after, undo, new, at_ms)?);
    Ok(changes)
}

/// The store was restored from a backup: what the operation did since then is gone, and some of its runs have run.
pub fn restored(bulks: &Bulks, at_ms: i64) -> Vec<BulkChange> {
    if !kept(Rule::RestoreAborts) {
        return Vec::new();
    }
    let reason = Some(Text::new_static("the store was restored from a backup"));
    let aborted = |bulk: &StoredBulk| {
        // Nobody knows what of the page was done.
        let open = bulk.page.is_some();
        let aborted = BulkChange::Aborted { id: bulk.id, reason: reason.clone(), at_ms };
        let closed = BulkChange::Done { id: bulk.id, counts: BulkCounts::default(), at_ms };
        std::iter::once(aborted).chain(open.then_some(closed))
    };
    bulks.values().filter(|bulk| !bulk.state.is_final()).flat_map(aborted).collect()
}

/// The store is moved: places in its lists mean nothing in another one.
pub fn moved(bulks: &mut Bulks) {
    for bulk in bulks.values_mut() {
        match bulk.state {
            BulkState::Running => begin_anew(bulk),
            // It begins no page, or the first one of its deletion.
            BulkState::Aborting | BulkState::Waiting | BulkState::Aborted | BulkState::Done => {}
        }
    }
}

fn begin_anew(bulk: &mut StoredBulk) {
    bulk.place = None;
    bulk.anew = true;
    match action_now(bulk) {
        // All their items are found again, those of the open page too, and count again.
        BulkAction::Pause | BulkAction::Resume | BulkAction::Trigger if kept(Rule::MovedCountOnce) => {
            bulk.page = None;
            bulk.counts = BulkCounts::default();
        }
        // What was done is not found again, so it stays counted, and the open page is done first.
        BulkAction::Pause
        | BulkAction::Resume
        | BulkAction::Trigger
        | BulkAction::Delete
        | BulkAction::Cancel
        | BulkAction::Retry
        | BulkAction::Redrive => {
            if let Some(page) = &mut bulk.page {
                page.next = Some(BulkPlace::Shard { shard: 0, after: 0, created_ms: None });
            }
        }
    }
}

/// What it does with its items now: a delete with a grace pauses them first.
fn action_now(bulk: &StoredBulk) -> BulkAction {
    if bulk.grace_ms.is_some() && !bulk.deleting { BulkAction::Pause } else { bulk.action }
}

/// Which jobs of a shard are its next items.
pub fn look(bulk: &StoredBulk, after: u64, limit: usize) -> BulkLook {
    let held = bulk.deleting.then_some(bulk.id);
    BulkLook {
        tenant: bulk.tenant.clone(),
        // The jobs that it has paused may have been changed since, and have another status.
        filter: if held.is_some() && kept(Rule::HeldAreDeleted) {
            StoredBulkFilter::default()
        } else {
            bulk.filter.clone()
        },
        marked: bulk.undo_of.or(held),
        own: (bulk.anew && kept(Rule::OwnAreFound)).then_some(bulk.id),
        created_ms: bulk.created_ms,
        after,
        limit,
    }
}

/// What is to be done with items of the page that is open.
pub fn work(bulk: &StoredBulk, again: bool) -> BulkWork {
    let graced = bulk.grace_ms.is_some();
    BulkWork {
        bulk: bulk.id,
        action: action_now(bulk),
        graced,
        undo_of: bulk.undo_of,
        again: again || bulk.anew,
        items: bulk.page.as_ref().map(|page| page.items.clone()).unwrap_or_default(),
        by: bulk.by.clone(),
        reason: bulk.reason.clone(),
    }
}

/// The key of the runs that an operation makes, one of each job.
pub fn key(id: BulkId) -> Option<String> {
    kept(Rule::TriggerHasKey).then(|| format!("{RESERVED}k{id}"))
}
