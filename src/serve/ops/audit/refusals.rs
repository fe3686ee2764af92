//! Equal refusals are one record: a flood of them costs a look-up each, and no more memory than there are entries.
//!
//! Equal are those of one credential, or of one address where the credential is not known, with one operation and one code, within a
//! minute. The first of them is handed out with the next batch; its count follows when the minute is over, in a record with the same time
//! and id, which takes its place. Pure: the time is an argument.

use campanile_schema::{
    limits::{AUDIT_REFUSALS, AUDIT_REFUSALS_MS},
    stored::audit::{AuditRecord, CallOrigin},
    text::Text,
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

const WINDOW: Duration = Duration::from_millis(AUDIT_REFUSALS_MS.unsigned_abs());

#[derive(Clone, PartialEq, Eq, Hash)]
enum Whom {
    Credential(Text),
    Address(Text),
    /// There are as many as are kept apart.
    Others,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    whom: Whom,
    operation: Text,
    code: Text,
}

struct CountedRefusal {
    /// The first one, with the count so far.
    record: AuditRecord,
    /// The count that was handed out; 0: none yet.
    told: u64,
    until: Instant,
}

/// See the module's text.
#[derive(Default)]
pub struct Refusals {
    counted: HashMap<Key, CountedRefusal>,
    /// Entries that were not handed out yet.
    new: usize,
    /// Records whose minute was over before they were asked for.
    over: Vec<AuditRecord>,
}

impl Refusals {
    /// Counts a refusal. True: so many new ones wait that they are worth a batch.
    pub fn count(&mut self, mut record: AuditRecord, now: Instant, batch: usize) -> bool {
        let CallOrigin { who, address, .. } = &record.origin;
        let whom = who.clone().map(Whom::Credential).or_else(|| address.clone().map(Whom::Address));
        let (operation, code) = (record.operation.clone(), record.refused.clone().unwrap_or_default());
        let mut key = Key { whom: whom.unwrap_or(Whom::Others), operation, code };
        if self.counted.len() >= AUDIT_REFUSALS && !self.counted.contains_key(&key) {
            key.whom = Whom::Others;
        }
        if key.whom == Whom::Others {
            // Of many: only what all of them share.
            let (id, at_ms) = (record.id, record.at_ms);
            let (operation, refused) = (record.operation, record.refused);
            record = AuditRecord { id, at_ms, operation, refused, count: 1, ..AuditRecord::default() };
        }
        match self.counted.get_mut(&key) {
            Some(known) if now < known.until => known.record.count += 1,
            Some(known) => {
                let next = CountedRefusal { record, told: 0, until: now + WINDOW };
                let CountedRefusal { record, told, .. } = std::mem::replace(known, next);
                if record.count > told {
                    self.over.push(record);
                }
                self.new += usize::from(told > 0);
            }
            None => {
                self.counted.insert(key, CountedRefusal { record, told: 0, until: now + WINDOW });
                self.new += 1;
            }
        }
        self.new >= batch
    }

    /// What is to be written: new entries, and those whose minute is over with their counts. `all`: the counts of others too, because
    /// nobody asks again.
    pub fn take(&mut self, now: Instant, all: bool) -> Vec<AuditRecord> {
        let mut taken = std::mem::take(&mut self.over);
        self.new = 0;
        self.counted.retain(|_, counted| {
            let is_over = now >= counted.until;
            if counted.told == 0 || (is_over || all) && counted.record.count > counted.told {
                counted.told = counted.record.count;
                taken.push(counted.record.clone());
            }
            !is_over
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(id: u64, who: Option<&str>, address: &str, operation: &str) -> AuditRecord {
        AuditRecord {
            id,
            at_ms: id as i64,
            origin: CallOrigin { who: who.map(Into::into), address: Some(address.into()), ..CallOrigin::default() },
            operation: operation.into(),
            refused: Some("401_UNAUTHENTICATED".into()),
            count: 1,
            ..AuditRecord::default()
        }
    }

    fn told(records: &[AuditRecord]) -> Vec<(u64, u64)> {
        let mut told: Vec<_> = records.iter().map(|record| (record.id, record.count)).collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn equal_refusals_of_a_minute_are_one_record_with_a_count() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        let second = |n| begin + Duration::from_secs(n);
        for id in 1..=40_000 {
            refusals.count(refusal(id, None, "192.0.2.7", "job.list"), begin, 256);
        }
        refusals.count(refusal(50_001, None, "192.0.2.8", "job.list"), begin, 256);
        refusals.count(refusal(50_002, None, "192.0.2.7", "job.get"), begin, 256);
        refusals.count(refusal(50_003, Some("olga"), "192.0.2.7", "job.list"), begin, 256);
        assert_eq!(told(&refusals.take(second(1), false)), [(1, 40_000), (50_001, 1), (50_002, 1), (50_003, 1)]);
        assert_eq!(told(&refusals.take(second(2), false)), []);
        refusals.count(refusal(60_000, None, "192.0.2.7", "job.list"), second(30), 256);
        assert_eq!(told(&refusals.take(second(31), false)), [], "its count follows when the minute is over");
        assert_eq!(told(&refusals.take(second(60), false)), [(1, 40_001)], "in the same record");
        refusals.count(refusal(70_000, None, "192.0.2.7", "job.list"), second(61), 256);
        assert_eq!(told(&refusals.take(second(62), false)), [(70_000, 1)], "another minute is another record");
        assert_eq!(refusals.counted.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn a_credential_is_counted_from_whichever_address_it_calls() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        for (id, address) in (1..).zip(["192.0.2.7", "192.0.2.8", "2001:db8::1"]) {
            refusals.count(refusal(id, Some("olga"), address, "job.list"), begin, 256);
        }
        assert_eq!(told(&refusals.take(begin, false)), [(1, 3)]);
    }

    #[test]
    fn a_count_is_not_lost_when_the_next_minute_begins_before_it_was_asked_for() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        refusals.count(refusal(1, None, "192.0.2.7", "job.list"), begin, 256);
        refusals.take(begin, false);
        refusals.count(refusal(2, None, "192.0.2.7", "job.list"), begin, 256);
        let later = begin + WINDOW;
        refusals.count(refusal(3, None, "192.0.2.7", "job.list"), later, 256);
        assert_eq!(told(&refusals.take(later, false)), [(1, 2), (3, 1)]);
    }

    #[test]
    fn refusals_of_too_many_addresses_are_counted_together() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        let many = AUDIT_REFUSALS as u64 + 1_000;
        let mut asked = 0;
        for id in 1..=many {
            asked +=
                usize::from(refusals.count(refusal(id, None, &format!("2001:db8::{id:x}"), "job.list"), begin, 256));
        }
        assert!(asked > 0, "a batch is full before a second has passed");
        assert_eq!(refusals.counted.len(), AUDIT_REFUSALS + 1);
        let taken = refusals.take(begin, false);
        assert_eq!(taken.iter().map(|record| record.count).sum::<u64>(), many, "none is lost");
        let others: Vec<_> = taken.iter().filter(|record| record.origin == CallOrigin::default()).collect();
        assert_eq!(others.len(), 1);
        assert_eq!(others[0].count, 1_000);
    }

    #[test]
    fn at_the_end_every_count_is_told() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        refusals.count(refusal(1, None, "192.0.2.7", "job.list"), begin, 256);
        refusals.take(begin, false);
        refusals.count(refusal(2, None, "192.0.2.7", "job.list"), begin, 256);
        assert_eq!(told(&refusals.take(begin, true)), [(1, 2)]);
        assert_eq!(told(&refusals.take(begin, true)), []);
    }
}
