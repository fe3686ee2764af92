//! Dead letters by their cause: those whose error texts differ in numbers and ids only.

use super::{
    Scheduler,
    fingerprint::{cause, dead_letter_reason},
    unavailable,
};
use campanile_schema::{
    error::Answer,
    ids::{JobId, RunId},
    limits::{CAUSE_LOOKS, CAUSES, PAGE_SIZE_MAX},
    record::RunRecord,
    time::Timestamp,
    view::runs::{CauseView, CausesView},
};
use std::collections::{BTreeSet, HashMap};

impl Scheduler {
    /// Dead letters of these tenants that ended within a time, the newest of each tenant.
    pub async fn causes(&self, tenants: &[String], from_ms: i64, to_ms: i64) -> Answer<CausesView> {
        let handles = self.handles()?;
        handles.client.projector.shows_all().await;
        let mut grouped = Grouped::default();
        for tenant in tenants {
            let mut after = None;
            loop {
                if grouped.looked >= CAUSE_LOOKS {
                    return Ok(grouped.view(true));
                }
                let ask = (CAUSE_LOOKS - grouped.looked).min(PAGE_SIZE_MAX);
                let page = handles.views.dead_letters(tenant, after, ask).await.map_err(|e| unavailable(&e))?;
                let older = page.items.last().is_some_and(|last| last.last_ms() < from_ms);
                grouped.add(&page.items, from_ms, to_ms);
                after = page.next;
                if after.is_none() || older {
                    break;
                }
            }
        }
        Ok(grouped.view(false))
    }
}

#[derive(Default)]
struct Grouped {
    looked: usize,
    counted: u64,
    groups: HashMap<String, Group>,
}

struct Group {
    reason: String,
    count: u64,
    jobs: BTreeSet<JobId>,
    run: RunId,
    first_ms: i64,
    last_ms: i64,
}

impl Grouped {
    fn add(&mut self, records: &[RunRecord], from_ms: i64, to_ms: i64) {
        self.looked += records.len();
        for record in records.iter().filter(|record| (from_ms..=to_ms).contains(&record.last_ms())) {
            self.counted += 1;
            let (reason, at_ms) = (dead_letter_reason(record), record.last_ms());
            let group = self.groups.entry(cause(&reason)).or_insert_with(|| Group {
                reason: reason.clone(),
                count: 0,
                jobs: BTreeSet::new(),
                run: record.run,
                first_ms: at_ms,
                last_ms: at_ms,
            });
            group.count += 1;
            group.jobs.insert(record.job);
            group.first_ms = group.first_ms.min(at_ms);
            if at_ms > group.last_ms {
                (group.last_ms, group.run, group.reason) = (at_ms, record.run, reason);
            }
        }
    }

    fn view(self, truncated: bool) -> CausesView {
        let item = |(cause, group): (String, Group)| CauseView {
            cause,
            reason: group.reason,
            count: group.count,
            jobs: group.jobs.len() as u64,
            run_id: group.run,
            first_at: Timestamp(group.first_ms),
            last_at: Timestamp(group.last_ms),
        };
        let mut items: Vec<CauseView> = self.groups.into_iter().map(item).collect();
        items.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cause.cmp(&b.cause)));
        items.truncate(CAUSES);
        CausesView { items, counted: self.counted, truncated }
    }
}
