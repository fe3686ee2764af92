//! Calendars in a shard: the home shard of a tenant makes the versions, every shard holds them, and jobs that name a calendar get their next
//! instant anew when it has a new version.

use super::Shard;
use crate::{
    calls::Responder,
    messages::{ReplyTo, ShardMsg},
    pauses::CALLERS_TURN,
    tenants::home_of,
};
use campanile_core::{
    calendar::book::{self, CalendarBook, StoredCalendars},
    job::Reply,
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    event::Event,
    ids::JobId,
    limits::{CALENDAR_AHEAD_MS, CALENDAR_JOBS_A_TURN, CALENDAR_NAMES_PER_TENANT, CALENDARS_PER_TENANT},
    peer::calendars::{CalendarCall, CalendarChange},
    stored::{CalendarRecord, CalendarVersion},
    time::Timestamp,
};
use ractor::ActorRef;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// What a shard has of calendars besides their stored versions.
#[derive(Default)]
pub(super) struct ShardCalendars {
    pub book: Arc<CalendarBook>,
    /// Jobs that name a calendar; some may be gone, or name none any more.
    named_by: BTreeSet<JobId>,
    /// Those of them whose next instant may have been computed with older versions.
    behind: BTreeSet<JobId>,
}

impl ShardCalendars {
    pub fn of(calendars: &StoredCalendars) -> Self {
        Self { book: Arc::new(CalendarBook::of(calendars)), ..Self::default() }
    }

    /// A job names a calendar.
    pub fn note(&mut self, job: JobId) {
        self.named_by.insert(job);
    }

    pub fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }
}

type Answering = Responder<Vec<CalendarRecord>>;

impl Shard {
    pub(super) fn calendar(&mut self, myself: &ActorRef<ShardMsg>, call: CalendarCall, responder: Answering) {
        match call {
            CalendarCall::Set(change) => self.set_calendar(myself, *change, responder),
            CalendarCall::Hold(records) => self.hold_calendars(myself, &records, responder),
            CalendarCall::Get { tenant, name } => {
                let records = match name {
                    Some(name) => book::record(&self.state.calendars, &tenant, &name).into_iter().collect(),
                    None => book::records(&self.state.calendars, &tenant),
                };
                self.when_durable(move || responder.send(Ok(records)));
            }
        }
    }

    /// In the home shard of the tenant: versions are made here, one after the other.
    fn set_calendar(&mut self, myself: &ActorRef<ShardMsg>, change: CalendarChange, responder: Answering) {
        let CalendarChange { tenant, name, .. } = &change;
        let (tenant, name) = (tenant.clone(), name.clone());
        let version = match next_version(&self.state.calendars, change, self.now_ms()) {
            Ok(version) => Arc::new(version),
            Err(error) => return self.when_durable(move || responder.send(Err(error))),
        };
        let event = Event::CalendarSet { tenant: tenant.clone(), name: name.clone(), calendar: version };
        self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        let record = book::record(&self.state.calendars, &tenant, &name);
        let (deps, home) = (self.deps.clone(), self.id);
        self.when_durable(move || {
            if let Some(record) = &record {
                deps.calendars.owe(record.clone(), home, deps.identity.shards, CALLERS_TURN);
            }
            responder.send(Ok(record.into_iter().collect()));
        });
    }

    /// Versions that the shard holds change nothing.
    fn hold_calendars(&mut self, myself: &ActorRef<ShardMsg>, records: &[CalendarRecord], responder: Answering) {
        let mut events = Vec::new();
        for record in records {
            let held = book::record(&self.state.calendars, &record.tenant, &record.name);
            let held = held.as_ref().and_then(CalendarRecord::newest).map_or(0, |newest| newest.version);
            events.extend(record.versions.iter().filter(|version| version.version > held).map(|version| {
                let (tenant, name) = (record.tenant.clone(), record.name.clone());
                Event::CalendarSet { tenant, name, calendar: version.clone() }
            }));
        }
        if !events.is_empty() {
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        self.when_durable(move || responder.send(Ok(Vec::new())));
    }

    /// After a start: who served the shard before may have died before all shards held what it had made.
    pub(super) fn owe_calendars(&self) {
        let shards = self.deps.identity.shards;
        for tenant in self.state.calendars.keys().filter(|tenant| home_of(tenant, shards) == self.id) {
            for record in book::records(&self.state.calendars, tenant) {
                self.deps.calendars.owe(record, self.id, shards, Duration::ZERO);
            }
        }
    }

    /// Keeps the look-ups in step with an event, which was applied to the shard's state.
    pub(super) fn index_calendar(&mut self, event: &Event) {
        if let Event::CalendarSet { tenant, name, .. } = event
            && let Some(versions) = self.state.calendars.get(tenant.as_str()).and_then(|named| named.get(name.as_str()))
        {
            Arc::make_mut(&mut self.calendars.book).put(tenant, name, versions);
            let ShardCalendars { named_by, behind, .. } = &mut self.calendars;
            behind.extend(named_by.iter().copied());
        }
        if let Event::JobCreated { job, spec, .. } = event
            && spec.calendar.is_some()
        {
            self.calendars.note(*job);
        }
        if let Event::JobReplaced { job, spec, .. } = event
            && spec.calendar.is_some()
        {
            self.calendars.note(*job);
        }
    }

    /// Some jobs at a time, so that what is due now need not wait for all.
    pub(super) fn refresh_for_calendars(&mut self, now_ms: i64) {
        for _ in 0..CALENDAR_JOBS_A_TURN {
            let Some(id) = self.calendars.behind.pop_first() else { return };
            self.refresh_for_calendar(id, now_ms);
        }
    }

    fn refresh_for_calendar(&mut self, id: JobId, now_ms: i64) {
        let Some(mut job) = self.materialize(id).filter(|job| job.def.calendar.is_some()) else {
            self.calendars.named_by.remove(&id);
            return;
        };
        job.refresh_next_due();
        let wake = job.wake_at(now_ms);
        let Some(slot) = self.jobs.get_mut(&id) else { return };
        match &mut slot.live {
            Some(live) => live.job = job,
            None => job.encode_hot_over(&mut slot.hot),
        }
        self.schedule(id, wake);
    }
}

/// The version that a change makes, or why it makes none.
fn next_version(calendars: &StoredCalendars, change: CalendarChange, now_ms: i64) -> Answer<CalendarVersion> {
    let CalendarChange { tenant, name, rules, from_ms, seen } = change;
    let of_tenant = calendars.get(tenant.as_str());
    let newest = of_tenant.and_then(|named| named.get(name.as_str())).and_then(|versions| versions.last());
    let is_there = newest.is_some_and(|newest| newest.rules.is_some());
    if rules.is_none() && !is_there {
        let why = format!("no calendar '{name}' of tenant '{tenant}'");
        return Err(ApiError::new(ErrorCode::NotFound, why));
    }
    let version = newest.map_or(0, |newest| newest.version);
    if let Some(seen) = seen.filter(|seen| *seen != version) {
        let why = format!("the calendar '{name}' has version {version}, and not {seen}: read it and decide again");
        return Err(ApiError::new(ErrorCode::StaleVersion, why));
    }
    if !is_there {
        check_room(of_tenant.into_iter().flatten(), &tenant, newest.is_none())?;
    }
    let earliest = newest.map_or(now_ms, |newest| newest.from_ms.max(now_ms + CALENDAR_AHEAD_MS));
    let from_ms = from_ms.unwrap_or(earliest);
    if from_ms < earliest {
        let why = format!(
            "effectiveFrom: must not lie before {}: shards decide instants before it with the versions that they hold",
            Timestamp(earliest)
        );
        return Err(ApiError::new(ErrorCode::InvalidArgument, why));
    }
    Ok(CalendarVersion { version: version + 1, from_ms, rules })
}

/// Refuses a calendar more than a tenant may have.
fn check_room<'a>(
    of_tenant: impl Iterator<Item = (&'a String, &'a Vec<Arc<CalendarVersion>>)>,
    tenant: &str,
    is_new: bool,
) -> Answer<()> {
    let (mut there, mut names) = (0, 0);
    for (_, versions) in of_tenant {
        names += 1;
        there += usize::from(versions.last().is_some_and(|newest| newest.rules.is_some()));
    }
    if there >= CALENDARS_PER_TENANT {
        let why = format!("tenant '{tenant}' has {CALENDARS_PER_TENANT} calendars, and not more: delete some");
        return Err(ApiError::new(ErrorCode::TenantQuota, why));
    }
    if is_new && names >= CALENDAR_NAMES_PER_TENANT {
        let why = format!(
            "tenant '{tenant}' has used {CALENDAR_NAMES_PER_TENANT} names of calendars, and not more: take one that was deleted"
        );
        return Err(ApiError::new(ErrorCode::TenantQuota, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{calendar::CalendarSpec, stored::CalendarRules};

    const NOW: i64 = 1_782_000_000_000;

    fn change(name: &str, there: bool, from_ms: Option<i64>, seen: Option<u64>) -> CalendarChange {
        let rules = there.then(|| CalendarRules::new(&CalendarSpec::default(), Vec::new()));
        CalendarChange { tenant: "acme".into(), name: name.into(), rules, from_ms, seen }
    }

    fn set(calendars: &mut StoredCalendars, change: CalendarChange, now_ms: i64) -> Result<(u64, i64), ErrorCode> {
        let name = change.name.clone();
        let version = Arc::new(next_version(calendars, change, now_ms).map_err(|error| error.known())?);
        book::keep(calendars, "acme", &name, &version);
        Ok((version.version, version.from_ms - now_ms))
    }

    #[test]
    fn a_version_begins_no_earlier_than_all_shards_hold_it_and_not_before_the_one_that_it_follows() {
        let mut all = StoredCalendars::new();
        assert_eq!(set(&mut all, change("days", true, None, None), NOW), Ok((1, 0)), "nothing was decided by it");
        assert_eq!(set(&mut all, change("days", true, None, Some(1)), NOW), Ok((2, CALENDAR_AHEAD_MS)));
        let early = change("days", true, Some(NOW + CALENDAR_AHEAD_MS - 1), None);
        assert_eq!(set(&mut all, early, NOW), Err(ErrorCode::InvalidArgument));
        let next_year = change("days", true, Some(NOW + 9_000_000), None);
        assert_eq!(set(&mut all, next_year, NOW), Ok((3, 9_000_000)));
        assert_eq!(set(&mut all, change("days", true, None, None), NOW), Ok((4, 9_000_000)), "it takes the place of 3");
        assert_eq!(set(&mut all, change("days", true, None, Some(3)), NOW), Err(ErrorCode::StaleVersion));
    }

    #[test]
    fn a_deleted_calendar_counts_on_and_makes_room() {
        let mut all = StoredCalendars::new();
        assert_eq!(set(&mut all, change("days", false, None, None), NOW), Err(ErrorCode::NotFound));
        for n in 0..CALENDARS_PER_TENANT {
            assert_eq!(set(&mut all, change(&format!("c{n}"), true, None, None), NOW), Ok((1, 0)));
        }
        assert_eq!(set(&mut all, change("days", true, None, None), NOW), Err(ErrorCode::TenantQuota));
        assert_eq!(
            set(&mut all, change("c0", true, None, None), NOW),
            Ok((2, CALENDAR_AHEAD_MS)),
            "an edit needs none"
        );
        assert_eq!(set(&mut all, change("c0", false, None, None), NOW), Ok((3, CALENDAR_AHEAD_MS)));
        assert_eq!(set(&mut all, change("c0", false, None, None), NOW), Err(ErrorCode::NotFound));
        assert_eq!(set(&mut all, change("days", true, None, None), NOW), Ok((1, 0)));
        assert_eq!(set(&mut all, change("c0", true, None, None), NOW), Err(ErrorCode::TenantQuota));
    }
}
