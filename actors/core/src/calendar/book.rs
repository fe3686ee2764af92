//! The calendars that a shard holds, each with its versions, ready to be asked.
//!
//! **Which version decides.** An instant is decided by the version in force at it: the last one whose beginning is not after it. When that
//! version is deleted, cannot be read, or is not valid on the day any more, the next later version that says something of the day decides.
//! When there is none the instant is held until there is one. So a new version changes no instant before its beginning that anybody could
//! have decided, and all shards decide alike although they learn of it at different times.

use super::{Calendar, day_number};
use campanile_schema::{
    calendar::CalendarDate,
    limits::CALENDAR_VERSIONS,
    stored::{CalendarRecord, CalendarRules, CalendarVersion},
};
use std::{collections::BTreeMap, sync::Arc};

/// By tenant and name; the versions of each, the oldest first.
pub type StoredCalendars = BTreeMap<String, BTreeMap<String, Vec<Arc<CalendarVersion>>>>;

/// Adds a version. One that is not newer than what is held changes nothing.
pub fn keep(calendars: &mut StoredCalendars, tenant: &str, name: &str, version: &Arc<CalendarVersion>) {
    let versions = calendars.entry(tenant.to_owned()).or_default().entry(name.to_owned()).or_default();
    if versions.last().is_some_and(|newest| newest.version >= version.version) {
        return;
    }
    versions.push(version.clone());
    let spare = versions.len().saturating_sub(CALENDAR_VERSIONS);
    versions.drain(..spare);
}

/// The record of a calendar, as nodes send it.
pub fn record(calendars: &StoredCalendars, tenant: &str, name: &str) -> Option<CalendarRecord> {
    let versions = calendars.get(tenant)?.get(name)?.clone();
    Some(CalendarRecord { tenant: tenant.into(), name: name.into(), versions })
}

/// The records of all calendars of a tenant, also of deleted ones.
pub fn records(calendars: &StoredCalendars, tenant: &str) -> Vec<CalendarRecord> {
    let of_tenant = calendars.get(tenant).into_iter().flatten();
    let record = |(name, versions): (&String, &Vec<Arc<CalendarVersion>>)| CalendarRecord {
        tenant: tenant.into(),
        name: name.as_str().into(),
        versions: versions.clone(),
    };
    of_tenant.map(record).collect()
}

/// Versions of one calendar, compiled.
#[derive(Debug)]
pub struct Versions {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    from_ms: i64,
    /// None: it is deleted, or a later release wrote it.
    calendar: Option<Calendar>,
}

impl Versions {
    pub fn compile(versions: &[Arc<CalendarVersion>]) -> Self {
        let step = |version: &Arc<CalendarVersion>| Step {
            from_ms: version.from_ms,
            calendar: version.rules.as_ref().and_then(compiled),
        };
        Self { steps: versions.iter().map(step).collect() }
    }

    /// Whether the calendar has the day of an instant. None: no version says anything of it.
    pub fn answer(&self, at_ms: i64, day: i64) -> Option<bool> {
        let begun = self.steps.partition_point(|step| step.from_ms <= at_ms);
        let in_force = self.steps.get(begun.saturating_sub(1)..).unwrap_or_default();
        let knows = |calendar: &&Calendar| calendar.valid_through().is_none_or(|last| day <= last);
        in_force.iter().filter_map(|step| step.calendar.as_ref()).find(knows).map(|calendar| calendar.has(day))
    }

    /// When the next version comes into force after an instant.
    pub fn next_change(&self, at_ms: i64) -> Option<i64> {
        self.steps.get(self.steps.partition_point(|step| step.from_ms <= at_ms)).map(|step| step.from_ms)
    }
}

/// None: a later release wrote it, and this one must not guess.
fn compiled(rules: &CalendarRules) -> Option<Calendar> {
    let minus = rules.minus.iter().map(|minus| Calendar::compile(&minus.spec()?, Vec::new()).ok());
    Calendar::compile(&rules.spec()?, minus.collect::<Option<_>>()?).ok()
}

/// All calendars of a shard. Copies share what they hold.
#[derive(Clone, Debug, Default)]
pub struct CalendarBook(BTreeMap<String, BTreeMap<String, Arc<Versions>>>);

impl CalendarBook {
    pub fn of(calendars: &StoredCalendars) -> Self {
        let mut book = Self::default();
        for (tenant, named) in calendars {
            for (name, versions) in named {
                book.put(tenant, name, versions);
            }
        }
        book
    }

    /// One calendar alone.
    pub fn of_record(record: &CalendarRecord) -> Self {
        let mut book = Self::default();
        book.put(&record.tenant, &record.name, &record.versions);
        book
    }

    pub fn put(&mut self, tenant: &str, name: &str, versions: &[Arc<CalendarVersion>]) {
        let named = self.0.entry(tenant.to_owned()).or_default();
        named.insert(name.to_owned(), Arc::new(Versions::compile(versions)));
    }

    pub fn get(&self, tenant: &str, name: &str) -> Option<&Arc<Versions>> {
        self.0.get(tenant)?.get(name)
    }
}

/// The day number of an instant in UTC.
pub fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(86_400_000)
}

/// The date of a day number. None: beyond the years that dates have.
pub fn date_of_day(day: i64) -> Option<CalendarDate> {
    let date = super::date_of(day)?;
    let date = CalendarDate::new(date.year(), date.month(), date.day())?;
    debug_assert_eq!(day_number(date), day, "a date is its day number");
    Some(date)
}
