//! Brings each version of a calendar to every shard, as `pauses` does for pauses: the node that serves the home shard of the tenant sends it
//! until all shards hold it, and begins again whenever it has loaded the home shard. A message has all versions that are kept, so a shard
//! that was away misses none of them. A version takes effect some time after it was made, so that all shards hold it by then.

pub(crate) mod carry;

use campanile_schema::{
    ids::ShardId,
    limits::CALENDAR_MESSAGE_BYTES,
    stored::{CalendarRecord, CalendarRules},
    text::Text,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// A calendar that some shards may not hold.
struct Owed {
    record: CalendarRecord,
    home: ShardId,
    lacking: BTreeSet<ShardId>,
    not_before: Instant,
}

/// Calendars that a node is to bring to other shards, by tenant and name.
#[derive(Default)]
pub struct OwedCalendars {
    owed: Mutex<BTreeMap<(Text, Text), Owed>>,
}

impl OwedCalendars {
    /// A home shard that is served here holds it, durably, and other shards are to.
    pub(crate) fn owe(&self, record: CalendarRecord, home: ShardId, shards: u16, after: Duration) {
        let lacking: BTreeSet<ShardId> = (0..shards).map(ShardId).filter(|shard| *shard != home).collect();
        if lacking.is_empty() {
            return;
        }
        let not_before = Instant::now() + after;
        let key = (record.tenant.clone(), record.name.clone());
        self.owed.lock().insert(key, Owed { record, home, lacking, not_before });
    }

    /// A shard is not served here any more: whoever takes it begins again.
    pub(crate) fn leave(&self, home: ShardId) {
        self.owed.lock().retain(|_, owed| owed.home != home);
    }

    /// What is to be sent now, by shard: at least one calendar of those that it lacks, and no more than fit into a message.
    fn due(&self, now: Instant) -> BTreeMap<ShardId, Vec<CalendarRecord>> {
        let mut due: BTreeMap<ShardId, (usize, Vec<CalendarRecord>)> = BTreeMap::new();
        for owed in self.owed.lock().values().filter(|owed| owed.not_before <= now) {
            let bytes = bytes_of(&owed.record);
            for shard in &owed.lacking {
                let (taken, records) = due.entry(*shard).or_default();
                if records.is_empty() || *taken + bytes <= CALENDAR_MESSAGE_BYTES {
                    *taken += bytes;
                    records.push(owed.record.clone());
                }
            }
        }
        due.into_iter().map(|(shard, (_, records))| (shard, records)).collect()
    }

    /// A shard holds these, or newer ones.
    pub(crate) fn held(&self, shard: ShardId, records: &[CalendarRecord]) {
        let version = |record: &CalendarRecord| record.newest().map(|newest| newest.version);
        let mut all = self.owed.lock();
        for record in records {
            let key = (record.tenant.clone(), record.name.clone());
            let Some(owed) = all.get_mut(&key).filter(|owed| version(&owed.record) == version(record)) else {
                continue;
            };
            owed.lacking.remove(&shard);
            if owed.lacking.is_empty() {
                all.remove(&key);
            }
        }
    }
}

fn bytes_of(record: &CalendarRecord) -> usize {
    record.versions.iter().filter_map(|version| version.rules.as_ref()).map(CalendarRules::bytes).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{calendar::CalendarSpec, stored::CalendarVersion};
    use std::sync::Arc;

    const HOME: ShardId = ShardId(1);

    fn record(name: &str, versions: u64) -> CalendarRecord {
        let version = |version| {
            let rules = Some(CalendarRules::new(&CalendarSpec::default(), Vec::new()));
            Arc::new(CalendarVersion { version, from_ms: 1_000, rules })
        };
        CalendarRecord { tenant: "acme".into(), name: name.into(), versions: (1..=versions).map(version).collect() }
    }

    #[test]
    fn a_calendar_is_owed_until_every_shard_holds_it_or_a_newer_version_took_its_place() {
        let (calendars, now) = (OwedCalendars::default(), Instant::now());
        calendars.owe(record("days", 1), HOME, 3, Duration::ZERO);
        let before = calendars.due(now + Duration::from_secs(1));
        assert_eq!(before.keys().copied().collect::<Vec<_>>(), [ShardId(0), ShardId(2)], "the home shard holds it");
        calendars.held(ShardId(0), &before[&ShardId(0)]);
        // What was sent before the change says nothing of it.
        calendars.owe(record("days", 2), HOME, 3, Duration::ZERO);
        calendars.held(ShardId(2), &before[&ShardId(2)]);
        let due = calendars.due(now + Duration::from_secs(1));
        assert_eq!(due.len(), 2);
        for (shard, sent) in due {
            assert_eq!(sent, [record("days", 2)]);
            calendars.held(shard, &sent);
        }
        assert!(calendars.owed.lock().is_empty());
    }

    #[test]
    fn its_caller_sends_first_and_who_loses_the_home_shard_sends_no_more() {
        let (calendars, now, later) = (OwedCalendars::default(), Instant::now(), Duration::from_secs(5));
        calendars.owe(record("days", 1), HOME, 3, later);
        assert!(calendars.due(now).is_empty());
        assert_eq!(calendars.due(now + 2 * later).len(), 2);
        calendars.leave(HOME);
        assert!(calendars.due(now + 2 * later).is_empty());
    }
}
