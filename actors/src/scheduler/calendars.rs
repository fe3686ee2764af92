//! Calls about calendars. The home shard of the tenant makes their versions (`shard/calendars.rs`).

use super::{Scheduler, jobs::as_stored};
use crate::{ask::ask, calls::ShardCall, fan_out::ask_each, handles::SessionHandles, tenants::home_of};
use campanile_core::{
    calendar::{
        Calendar,
        book::{CalendarBook, date_of_day, day_of},
        day_number,
    },
    schedule::Schedule,
    spec,
};
use campanile_schema::{
    calendar::CalendarSpec,
    error::{Answer, ApiError, ErrorCode},
    event::LedgerEntry,
    format::MESSAGES_FORMAT,
    ids::ShardId,
    job::{JobSpec, JobView},
    limits::{CALENDAR_AHEAD_MS, CALENDAR_BYTES, CALENDAR_PREVIEW_DAYS, CALENDAR_PREVIEW_FIRES, CALENDAR_PREVIEW_JOBS},
    peer::calendars::{CalendarCall, CalendarChange},
    shape::shortened,
    stored::{CalendarRecord, CalendarRules, CalendarVersion, MinusRules, StoredJob},
    text::Text,
    time::Timestamp,
    view::{
        JobFilter, LedgerEntryView,
        calendars::{CalendarBody, CalendarJobChange, CalendarPreviewBody, CalendarPreviewView, CalendarView},
    },
};
use std::{collections::BTreeSet, sync::Arc};

/// Jobs in a page of those that a preview looks at.
const JOBS_A_PAGE: usize = 100;

impl Scheduler {
    /// The calendars of a tenant that are not deleted, by name.
    pub async fn calendars(&self, tenant: &str) -> Answer<Vec<CalendarView>> {
        let records = self.calendar_records(&self.handles()?, tenant, None).await?;
        let there = records.iter().filter(|record| record.is_there());
        Ok(there.filter_map(|record| CalendarView::of(record, Vec::new())).collect())
    }

    /// Also a deleted one, whose versions are kept.
    pub async fn calendar(&self, tenant: &str, name: &str) -> Answer<CalendarView> {
        spec::check_tenant("calendar", name)?;
        let records = self.calendar_records(&self.handles()?, tenant, Some(name)).await?;
        let view = records.first().and_then(|record| CalendarView::of(record, Vec::new()));
        view.ok_or_else(|| no_calendar(tenant, name))
    }

    pub async fn set_calendar(&self, tenant: &str, name: &str, body: CalendarBody) -> Answer<CalendarView> {
        let handles = self.handles()?;
        spec::check_tenant("calendar", name)?;
        known_by_all(&handles)?;
        let CalendarBody { spec, effective_from, version: seen, reason: _ } = body;
        let from_ms = effective_from.map(Timestamp::ms);
        let day = day_of(from_ms.unwrap_or_else(|| handles.identity.time.now_ms()));
        let (rules, _) = self.checked_calendar(&handles, tenant, name, &spec, day).await?;
        let change = CalendarChange { tenant: tenant.into(), name: name.into(), rules: Some(rules), from_ms, seen };
        self.change_calendar(&handles, change).await
    }

    /// As a version without days: jobs that name the calendar wait from its beginning on.
    pub async fn delete_calendar(&self, tenant: &str, name: &str) -> Answer<()> {
        let handles = self.handles()?;
        spec::check_tenant("calendar", name)?;
        known_by_all(&handles)?;
        let (tenant, name) = (tenant.into(), name.into());
        let change = CalendarChange { tenant, name, rules: None, from_ms: None, seen: None };
        self.change_calendar(&handles, change).await.map(|_| ())
    }

    /// First in the home shard, which makes the version; then everywhere.
    async fn change_calendar(&self, handles: &Arc<SessionHandles>, change: CalendarChange) -> Answer<CalendarView> {
        let home = home_of(&change.tenant, handles.identity.shards);
        let set = self.with_record(handles, ShardCall::Calendar(CalendarCall::Set(Box::new(change))));
        let records: Vec<CalendarRecord> = ask(&handles.client, home, set).await?;
        let hold = ShardCall::Calendar(CalendarCall::Hold(records.clone()));
        let others = (0..handles.identity.shards).map(ShardId).filter(|shard| *shard != home);
        let asked = others.map(|shard| (shard, hold.clone()));
        let answers = ask_each::<Vec<CalendarRecord>>(&handles.client, asked).await;
        let outstanding = answers.into_iter().filter(|(_, answer)| answer.is_err()).map(|(shard, _)| shard.0).collect();
        let view = records.first().and_then(|record| CalendarView::of(record, outstanding));
        view.ok_or_else(|| ApiError::new(ErrorCode::Internal, "the home shard answered without the calendar"))
    }

    /// The days that a calendar has or would have, and what a new version changes for jobs that name it.
    pub async fn preview_calendar(
        &self,
        tenant: &str,
        name: &str,
        body: CalendarPreviewBody,
    ) -> Answer<CalendarPreviewView> {
        let handles = self.handles()?;
        spec::check_tenant("calendar", name)?;
        let known = self.calendar_records(&handles, tenant, Some(name)).await?.into_iter().next();
        let now_ms = handles.identity.time.now_ms();
        let newest = known.as_ref().and_then(CalendarRecord::newest);
        let earliest = newest.map_or(now_ms, |newest| newest.from_ms.max(now_ms + CALENDAR_AHEAD_MS));
        let from_ms = body.effective_from.map_or(earliest, Timestamp::ms).max(earliest);
        let of_newest = newest.and_then(|newest| newest.rules.as_ref()?.spec());
        let spec = body.spec.as_ref().or(of_newest.as_ref()).ok_or_else(|| no_calendar(tenant, name))?;
        let (rules, calendar) = self.checked_calendar(&handles, tenant, name, spec, day_of(from_ms)).await?;
        let first = body.from.map_or_else(|| day_of(now_ms), day_number);
        let days = (first..).take(body.days.unwrap_or(31).min(CALENDAR_PREVIEW_DAYS));
        let days = days.filter(|day| calendar.has(*day)).filter_map(date_of_day).collect();
        let mut answer =
            CalendarPreviewView { effective_from: Timestamp(from_ms), days, jobs: Vec::new(), truncated: false };
        if body.spec.is_some() {
            let none = || CalendarRecord { tenant: tenant.into(), name: name.into(), versions: Vec::new() };
            let mut record = known.clone().unwrap_or_else(none);
            let before = CalendarBook::of_record(&record);
            let version = newest.map_or(0, |newest| newest.version) + 1;
            record.versions.push(Arc::new(CalendarVersion { version, from_ms, rules: Some(rules) }));
            let books = (before, CalendarBook::of_record(&record));
            (answer.jobs, answer.truncated) = self.changed_by(tenant, name, &books, now_ms).await?;
        }
        Ok(answer)
    }

    /// Jobs of the tenant that name the calendar, and whose next instants are others with the second book. True: there are more jobs.
    async fn changed_by(
        &self,
        tenant: &str,
        name: &str,
        books: &(CalendarBook, CalendarBook),
        now_ms: i64,
    ) -> Answer<(Vec<CalendarJobChange>, bool)> {
        let (mut changed, mut page_token) = (Vec::new(), None);
        for _ in 0..CALENDAR_PREVIEW_JOBS.div_ceil(JOBS_A_PAGE) {
            let filter = JobFilter {
                tenant_id: Some(tenant.to_owned()),
                page_size: Some(JOBS_A_PAGE),
                page_token: page_token.take(),
                ..JobFilter::default()
            };
            let page = self.jobs(filter).await?;
            let names_it = |job: &&JobView| job.spec.calendar.as_ref().is_some_and(|calendar| calendar.name == name);
            changed.extend(page.items.iter().filter(names_it).filter_map(|job| change_of(job, books, now_ms)));
            page_token = page.next_page_token;
            if page_token.is_none() {
                return Ok((changed, false));
            }
        }
        Ok((changed, true))
    }

    /// A definition with the calendars that it takes away, and the calendar that it makes. Refused: it has no day from `day` on.
    async fn checked_calendar(
        &self,
        handles: &SessionHandles,
        tenant: &str,
        name: &str,
        spec: &CalendarSpec,
        day: i64,
    ) -> Answer<(CalendarRules, Calendar)> {
        let known =
            if spec.minus.is_empty() { Vec::new() } else { self.calendar_records(handles, tenant, None).await? };
        checked(&known, name, spec, day)
    }

    /// Refuses a job whose calendar is not there.
    pub(super) async fn check_calendar(&self, spec: &JobSpec) -> Answer<()> {
        let Some(calendar) = &spec.calendar else { return Ok(()) };
        let records = self.calendar_records(&self.handles()?, &spec.tenant_id, Some(&calendar.name)).await?;
        if records.iter().any(CalendarRecord::is_there) {
            return Ok(());
        }
        let (name, tenant) = (shortened(&calendar.name), shortened(&spec.tenant_id));
        let why = format!("calendar.name: tenant '{tenant}' has no calendar '{name}'; make it with calendar.set");
        Err(ApiError::new(ErrorCode::InvalidArgument, why))
    }

    /// The schedule of a definition, with its calendar.
    pub(super) async fn schedule_of(&self, handles: &SessionHandles, def: &StoredJob) -> Answer<Schedule> {
        let mut schedule =
            Schedule::compile(def).map_err(|error| ApiError::new(ErrorCode::InvalidSchedule, error.to_string()))?;
        if let Some(calendar) = &def.calendar {
            for record in self.calendar_records(handles, &def.tenant, Some(&calendar.name)).await? {
                schedule.find_calendar(def, &CalendarBook::of_record(&record));
            }
        }
        Ok(schedule)
    }

    /// The first instant at or after one, and what takes that one away.
    pub(super) async fn calendar_instant(
        &self,
        handles: &SessionHandles,
        def: &StoredJob,
        at_ms: i64,
    ) -> Answer<(Option<Timestamp>, Option<LedgerEntryView>)> {
        let schedule = self.schedule_of(handles, def).await?;
        let before = at_ms.saturating_sub(1);
        let removed = schedule.removed(before, at_ms).into_iter().next();
        let removed = removed.map(|removed| LedgerEntryView::from(&LedgerEntry::from(removed)));
        Ok((schedule.next(before, Some(before)).map(Timestamp), removed))
    }

    async fn calendar_records(
        &self,
        handles: &SessionHandles,
        tenant: &str,
        name: Option<&str>,
    ) -> Answer<Vec<CalendarRecord>> {
        let get = CalendarCall::Get { tenant: tenant.into(), name: name.map(Text::from) };
        Ok(ask(&handles.client, home_of(tenant, handles.identity.shards), ShardCall::Calendar(get)).await?)
    }
}

fn no_calendar(tenant: &str, name: &str) -> ApiError {
    super::no_such("calendar", format!("'{}' of tenant '{}'", shortened(name), shortened(tenant)))
}

fn known_by_all(handles: &SessionHandles) -> Answer<()> {
    if handles.in_use.event() >= MESSAGES_FORMAT {
        return Ok(());
    }
    let why = "calendars: not all nodes of the cluster run the release that knows them; repeat the call when they do";
    Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0))
}

fn checked(known: &[CalendarRecord], name: &str, spec: &CalendarSpec, day: i64) -> Answer<(CalendarRules, Calendar)> {
    let invalid = |why: String| ApiError::new(ErrorCode::InvalidArgument, why);
    let (mut minus, mut taken) = (Vec::new(), Vec::new());
    for other in &spec.minus {
        let newest = known.iter().find(|record| record.name.as_str() == other).and_then(CalendarRecord::newest);
        let found = newest.and_then(|newest| Some((newest.version, newest.rules.as_ref()?.spec()?)));
        let Some((version, of_other)) = found else {
            return Err(invalid(format!("spec.minus: the tenant has no calendar '{}'", shortened(other))));
        };
        if other == name || !of_other.minus.is_empty() {
            let why = "a calendar that is taken away must be another one, and take away none itself";
            return Err(invalid(format!("spec.minus: '{}': {why}", shortened(other))));
        }
        taken.push(Calendar::compile(&of_other, Vec::new()).map_err(|error| invalid(error.to_string()))?);
        minus.push(MinusRules::new(other, version, &of_other));
    }
    let rules = CalendarRules::new(spec, minus);
    if rules.bytes() > CALENDAR_BYTES {
        let bytes = rules.bytes();
        let why = format!("spec: the calendar takes {bytes} bytes as JSON; at most {CALENDAR_BYTES} are allowed");
        return Err(ApiError::new(ErrorCode::BodyTooLarge, why));
    }
    let calendar = Calendar::compile(spec, taken).map_err(|error| invalid(format!("spec.{error}")))?;
    calendar.check(day).map_err(|error| invalid(format!("spec: {error}")))?;
    Ok((rules, calendar))
}

/// None: its next instants stay, or its schedule cannot be read.
fn change_of(job: &JobView, (before, after): &(CalendarBook, CalendarBook), now_ms: i64) -> Option<CalendarJobChange> {
    let def = as_stored(job)?;
    let ((before, to), (after, upto)) = (next_fires(&def, before, now_ms)?, next_fires(&def, after, now_ms)?);
    let end_ms = to.min(upto);
    let only = |of: &BTreeSet<i64>, other: &BTreeSet<i64>| -> Vec<Timestamp> {
        of.difference(other).filter(|at| **at <= end_ms).map(|at| Timestamp(*at)).collect()
    };
    let (removed, added) = (only(&before, &after), only(&after, &before));
    let is_changed = !removed.is_empty() || !added.is_empty();
    is_changed.then(|| CalendarJobChange { job_id: job.job_id, name: job.spec.name.clone(), removed, added })
}

/// Some next instants of a job, and up to when there are no others.
fn next_fires(def: &StoredJob, book: &CalendarBook, now_ms: i64) -> Option<(BTreeSet<i64>, i64)> {
    let mut schedule = Schedule::compile(def).ok()?;
    schedule.find_calendar(def, book);
    let (mut fires, mut after) = (BTreeSet::new(), now_ms);
    while fires.len() < CALENDAR_PREVIEW_FIRES {
        let Some(due) = schedule.next(after, Some(now_ms)) else { return Some((fires, i64::MAX)) };
        fires.insert(due);
        after = due;
        if schedule.is_fixed_delay() {
            break;
        }
    }
    Some((fires, after))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(text: &str) -> CalendarSpec {
        serde_json::from_str(text).unwrap()
    }

    fn known(name: &str, text: &str) -> CalendarRecord {
        let rules = Some(CalendarRules::new(&spec(text), Vec::new()));
        let version = CalendarVersion { version: 3, from_ms: 0, rules };
        CalendarRecord { tenant: "acme".into(), name: name.into(), versions: vec![Arc::new(version)] }
    }

    fn refused(known: &[CalendarRecord], text: &str) -> String {
        checked(known, "days", &spec(text), 20_000).unwrap_err().message
    }

    #[test]
    fn a_calendar_that_is_taken_away_is_kept_as_it_was() {
        let others = [known("closed", r#"{"include": {"weekly": ["SUN"]}}"#)];
        let (rules, calendar) = checked(&others, "days", &spec(r#"{"minus": ["closed"]}"#), 20_000).unwrap();
        assert_eq!((rules.minus[0].version, rules.minus.len()), (3, 1));
        // 1970-01-04 was a Sunday.
        assert_eq!([2, 3, 4].map(|day| calendar.has(day)), [true, false, true]);
        let book = CalendarBook::of_record(&CalendarRecord {
            tenant: "acme".into(),
            name: "days".into(),
            versions: vec![Arc::new(CalendarVersion { version: 1, from_ms: 0, rules: Some(rules) })],
        });
        assert_eq!(book.get("acme", "days").unwrap().answer(0, 3), Some(false), "as a shard reads it");
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_place() {
        let others = [known("days", "{}"), known("nested", r#"{"minus": ["days"]}"#)];
        for (text, why) in [
            (r#"{"minus": ["gone"]}"#, "spec.minus: the tenant has no calendar 'gone'"),
            (r#"{"minus": ["days"]}"#, "spec.minus: 'days': a calendar that is taken away must be another one"),
            (r#"{"minus": ["nested"]}"#, "spec.minus: 'nested': a calendar that is taken away must be another one"),
            (r#"{"exclude": {"monthly": [{"day": 0}]}}"#, "spec.exclude.monthly: "),
            (r#"{"validThrough": "1999-01-01"}"#, "spec: the calendar has no day from"),
        ] {
            let told = refused(&others, text);
            assert!(told.starts_with(why), "{text}: {told}");
        }
    }

    #[test]
    fn a_preview_tells_the_instants_that_a_job_loses_and_gains() {
        let job = serde_json::json!({
            "jobId": 8193, "status": "ENABLED", "version": 1, "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-01T00:00:00Z", "nextFireAt": null, "lastRunAt": null, "lastRunState": null,
            "runCount": 0, "name": "daily", "tenantId": "acme", "calendar": {"name": "days"},
            "trigger": {"type": "CRON", "expr": "0 12 * * *"},
        });
        let job: JobView = serde_json::from_value(job).unwrap();
        let now_ms = "2026-06-01T00:00:00Z".parse::<Timestamp>().unwrap().ms();
        let before = known("days", r#"{"exclude": {"weekly": ["SAT", "SUN"]}}"#);
        let after = known("days", r#"{"exclude": {"weekly": ["SUN"], "dates": ["2026-06-03"]}}"#);
        let books = (CalendarBook::of_record(&before), CalendarBook::of_record(&after));
        let change = change_of(&job, &books, now_ms).unwrap();
        assert_eq!(change.removed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2026-06-03T12:00:00.000Z"]);
        let saturdays = ["2026-06-06T12:00:00.000Z", "2026-06-13T12:00:00.000Z", "2026-06-20T12:00:00.000Z"];
        assert_eq!(change.added.iter().map(ToString::to_string).collect::<Vec<_>>(), saturdays);
        assert_eq!(change_of(&job, &(books.0.clone(), books.0), now_ms), None);
    }
}
