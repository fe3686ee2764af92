//! Dead letters by their cause: those whose error texts differ in numbers and ids only.

use super::{Scheduler, unavailable};
use campanile_schema::{
    error::Answer,
    ids::{JobId, RunId},
    limits::{CAUSE_LOOKS, CAUSES, PAGE_SIZE_MAX},
    record::RunRecord,
    time::Timestamp,
    view::runs::{CauseView, CausesView},
};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap};

/// Characters of an error text that count for its cause.
const CHARS: usize = 500;
/// Letters and digits without a gap that are an id from this length on, if a digit is among them.
const ID_CHARS: usize = 8;

/// What a dead letter says of its run.
pub(super) fn dead_letter_reason(record: &RunRecord) -> String {
    record.last_error().map_or_else(|| record.state.to_string(), |e| format!("{}: {e}", record.state))
}

/// Names the error without its numbers and ids, so that the same trouble has the same cause in every run and job.
pub(super) fn cause(reason: &str) -> String {
    let hash = Sha256::digest(pattern(reason));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The text in small letters, with `#` for each number and each id.
fn pattern(reason: &str) -> String {
    let text: String = reason.chars().take(CHARS).collect::<String>().to_lowercase();
    let mut pattern = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let letters = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let has_digit = letters.chars().any(|c| c.is_ascii_digit());
        if has_digit && letters.chars().count() >= ID_CHARS {
            pattern.push('#');
        } else {
            let mut in_number = false;
            for c in letters.chars() {
                if !c.is_ascii_digit() {
                    pattern.push(c);
                } else if !in_number {
                    pattern.push('#');
                }
                in_number = c.is_ascii_digit();
            }
        }
        pattern.push_str(&word[letters.len()..]);
    }
    pattern
}

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
                let older = page.items.last().is_some_and(|last| ended(last) < from_ms);
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

fn ended(record: &RunRecord) -> i64 {
    record.ended_ms.unwrap_or(record.created_ms)
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
        for record in records.iter().filter(|record| (from_ms..=to_ms).contains(&ended(record))) {
            self.counted += 1;
            let (reason, at_ms) = (dead_letter_reason(record), ended(record));
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

#[cfg(test)]
mod tests {
    use super::{cause, pattern};

    #[test]
    fn numbers_and_ids_do_not_make_another_cause() {
        let told = pattern("FAILED: order 4711 (0123-9f1c2a9017d3) timed out after 30s at db2:5432");
        assert_eq!(told, "failed: order # (#-#) timed out after #s at db#:#");
        assert_eq!(pattern("no such file: deadbeefcafe"), "no such file: deadbeefcafe", "a word");
        assert_eq!(pattern("no such file: deadbeef01"), "no such file: #");
        assert_eq!(cause("exit code 3"), cause("Exit code 17"));
        assert_ne!(cause("exit code 3"), cause("signal 3"));
        assert_eq!(cause("x").len(), 16);
    }
}
