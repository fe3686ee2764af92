//! Carries on the bulk operations whose home shard this node serves.
//!
//! An operation has one page under way. The page is written down, its items are done, and what became of them is written down; then
//! comes the next one, not before [`BULK_PAGE_MS`] are over. While the read model is behind, a queue is full or a shard cannot be
//! reached, the operation waits, longer each time, and then does the items of the page that were not done.

use super::{
    Scheduler,
    bulk_ask::{ask_bulk, state},
    bulk_items::add_counts,
};
use crate::{bulk::OpenBulks, calls::ShardCall, handles::SessionHandles, shard_map::ShardPlace};
use campanile_schema::{
    error::{Answer, ErrorCode},
    ids::BulkId,
    limits::{BULK_BACK_OFF_MAX_MS, BULK_BACK_OFF_MS, BULK_DRIVEN, BULK_LAG_EVENTS, BULK_PAGE_MS},
    peer::bulk::{BulkCall, BulkWorked},
    stored::bulk::{BulkCounts, BulkItem, BulkPage, BulkState, StoredBulk},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// Between two looks at what is due.
const ROUND: Duration = Duration::from_millis(250);
/// Steps after which other operations have their turn.
const STEPS: usize = 64;
/// An operation that has to wait so long lets others have its place meanwhile.
const GIVES_WAY: Duration = Duration::from_secs(1);

/// How an operation goes on.
enum Onward {
    /// At once.
    Now,
    /// The page could not be done: later.
    BackOff,
    /// The grace lasts until then, ms.
    At(i64),
    /// It has ended.
    Never,
}

/// The page that is open, as far as this node has done it.
struct PageInHand {
    pages: u64,
    /// They are to be done. What was done is not done again while this session lives, because somebody may have changed it since.
    left: Vec<BulkItem>,
    counts: BulkCounts,
    /// Some may have been done before.
    again: bool,
}

impl PageInHand {
    fn new(bulk: &StoredBulk, again: bool) -> Self {
        let left = bulk.page.as_ref().map(|page| page.items.clone()).unwrap_or_default();
        Self { pages: bulk.pages, left, counts: BulkCounts::default(), again }
    }

    fn add(&mut self, worked: BulkWorked) {
        let BulkWorked { counts, left } = worked;
        add_counts(&mut self.counts, counts);
        self.left = left;
        self.again = true;
    }
}

impl Scheduler {
    /// Until the session is over.
    pub(crate) async fn drive_bulks(self, bulks: Arc<OpenBulks>) {
        let Ok(handles) = self.handles() else { return };
        let mut driven: JoinSet<()> = JoinSet::new();
        // Pages that wait for their turn, as far as they were done.
        let hands: Arc<Mutex<HashMap<BulkId, PageInHand>>> = Arc::default();
        loop {
            while driven.len() < BULK_DRIVEN
                && handles.shards.may_act()
                && let Some(taken) = bulks.take(Instant::now())
            {
                let (scheduler, bulks, handles) = (self.clone(), bulks.clone(), handles.clone());
                let hands = hands.clone();
                driven.spawn(async move {
                    let mut in_hand = hands.lock().remove(&taken.id);
                    let not_before = scheduler.carry_on(&handles, taken.id, &mut in_hand).await;
                    if let (Some(page), Some(_)) = (in_hand, not_before) {
                        hands.lock().insert(taken.id, page);
                    }
                    bulks.put_back(taken, not_before);
                });
            }
            tokio::select! {
                over = handles.client.ended.comes_within(ROUND) => if over { return },
                () = bulks.changed() => {}
                Some(_) = driven.join_next() => {}
            }
        }
    }

    /// Some steps of an operation. When it is to go on; None: it has ended, or this node does not serve it.
    async fn carry_on(
        &self,
        handles: &Arc<SessionHandles>,
        id: BulkId,
        in_hand: &mut Option<PageInHand>,
    ) -> Option<Instant> {
        let mut back_off = Duration::from_millis(BULK_BACK_OFF_MS);
        let later = || Some(Instant::now() + Duration::from_millis(BULK_BACK_OFF_MAX_MS));
        for _ in 0..STEPS {
            if handles.client.ended.is_over() || handles.health.is_draining() {
                return None;
            }
            // The lease may be over for a moment only. A shard that has left has taken its operations out of the list.
            if !matches!(handles.shards.place(id.shard(handles.identity.shards)), ShardPlace::Here) {
                return later();
            }
            let from = Instant::now();
            let onward = if is_behind(handles) { Ok(Onward::BackOff) } else { self.step(handles, id, in_hand).await };
            let waits = matches!(onward, Ok(Onward::BackOff) | Err(_));
            let wait = match onward {
                Ok(Onward::Now) => {
                    back_off = Duration::from_millis(BULK_BACK_OFF_MS);
                    // As long as it took, so that it has half of the time at most.
                    from.elapsed().max(Duration::from_millis(BULK_PAGE_MS).saturating_sub(from.elapsed()))
                }
                Ok(Onward::BackOff) => doubled(&mut back_off),
                Ok(Onward::At(at_ms)) => {
                    let left_ms = at_ms - handles.identity.time.now_ms();
                    return Some(Instant::now() + Duration::from_millis(left_ms.clamp(1, 60_000).unsigned_abs()));
                }
                Ok(Onward::Never) => return None,
                Err(error) => {
                    tracing::debug!(bulk = %id, %error, "a bulk operation does not go on for the moment");
                    doubled(&mut back_off)
                }
            };
            if waits && wait >= GIVES_WAY {
                return later();
            }
            if handles.client.ended.comes_within(wait).await {
                return None;
            }
        }
        Some(Instant::now())
    }

    /// One step.
    async fn step(
        &self,
        handles: &Arc<SessionHandles>,
        id: BulkId,
        in_hand: &mut Option<PageInHand>,
    ) -> Answer<Onward> {
        let mut bulk = match self.stored_bulk(id).await {
            // Its record was dropped to make room. Items that are not found are another matter.
            Err(error) if error.known() == ErrorCode::NotFound => return Ok(Onward::Never),
            answer => answer?,
        };
        match bulk.state {
            BulkState::Done | BulkState::Aborted => return Ok(Onward::Never),
            BulkState::Waiting => {
                let at_ms = bulk.delete_at_ms.unwrap_or_default();
                // What is deleted is gone: not by a clock that nobody trusts.
                if handles.identity.time.halted().is_some() {
                    return Ok(Onward::BackOff);
                }
                if handles.identity.time.now_ms() < at_ms {
                    return Ok(Onward::At(at_ms));
                }
                change(handles, BulkCall::Proceed { id }, id).await?;
                return Ok(Onward::Now);
            }
            BulkState::Running | BulkState::Aborting => {}
        }
        if bulk.page.is_none() {
            let page = self.next_page_or_anew(handles, &bulk).await?;
            let begin = BulkCall::Begin { id, pages: bulk.pages, page };
            let pages = bulk.pages;
            bulk = change(handles, begin, id).await?;
            if bulk.page.is_none() {
                return Ok(Onward::Now);
            }
            // Otherwise another node may have begun it.
            *in_hand = (bulk.pages == pages + 1).then(|| PageInHand::new(&bulk, false));
        }
        #[cfg(feature = "faults")]
        campanile_ports::faults::point("bulk_page_begun");
        let known = in_hand.take().filter(|page| page.pages == bulk.pages);
        let mut page = known.unwrap_or_else(|| PageInHand::new(&bulk, true));
        let worked = match self.do_page(handles, &bulk, page.left.clone(), page.again).await {
            Ok(worked) => worked,
            Err(error) => {
                page.again = true;
                *in_hand = Some(page);
                return Err(error);
            }
        };
        page.add(worked);
        #[cfg(feature = "faults")]
        campanile_ports::faults::point("bulk_page_done");
        // An operation that was aborted waits for nobody's queue.
        if !page.left.is_empty() && bulk.state != BulkState::Aborting {
            *in_hand = Some(page);
            return Ok(Onward::BackOff);
        }
        let report = BulkCall::Report { id, pages: bulk.pages, counts: page.counts.clone() };
        // Without an answer it is reported again, and not done again.
        *in_hand = Some(page);
        let bulk = change(handles, report, id).await?;
        *in_hand = None;
        if bulk.state.is_final() {
            tracing::info!(bulk = %id, action = %bulk.action, state = %bulk.state, done = bulk.counts.done, failed = bulk.counts.failed,
                "a bulk operation has ended");
        }
        Ok(Onward::Now)
    }

    /// A place in a list that is not one any more is the beginning.
    async fn next_page_or_anew(&self, handles: &Arc<SessionHandles>, bulk: &StoredBulk) -> Answer<BulkPage> {
        match self.next_page(handles, bulk).await {
            Err(error) if error.known() == ErrorCode::InvalidArgument && bulk.place.is_some() => {
                self.next_page(handles, &StoredBulk { place: None, ..bulk.clone() }).await
            }
            answer => answer,
        }
    }
}

async fn change(handles: &SessionHandles, call: BulkCall, id: BulkId) -> Answer<StoredBulk> {
    let shard = id.shard(handles.identity.shards);
    state(ask_bulk(handles, shard, ShardCall::Bulk(Box::new(call))).await?)
}

/// Live work goes first.
fn is_behind(handles: &SessionHandles) -> bool {
    handles.client.projector.lag_events() > BULK_LAG_EVENTS || handles.client.journal.is_full()
}

fn doubled(back_off: &mut Duration) -> Duration {
    let wait = *back_off;
    *back_off = (wait * 2).min(Duration::from_millis(BULK_BACK_OFF_MAX_MS));
    wait
}
