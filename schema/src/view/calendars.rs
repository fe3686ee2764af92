//! Bodies of calls about calendars.

use crate::{
    calendar::{CalendarDate, CalendarSpec},
    ids::JobId,
    stored::CalendarRecord,
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `PUT /tenants/{tenantId}/calendars/{calendar}`, `calendar.set`: all days of a calendar, as its next version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CalendarBody {
    pub spec: CalendarSpec,
    /// From when on the version decides. Default: 60 s from now, or at once if the calendar is new. Not earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_from: Option<Timestamp>,
    /// The version that the caller has read: if it is not the newest one any more, the change is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A calendar as read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarView {
    pub tenant_id: String,
    pub calendar: String,
    /// The newest version; it counts the changes.
    pub version: u64,
    /// From when on the newest version decides.
    pub effective_from: Timestamp,
    /// Of the newest version. Left out: the calendar is deleted, and jobs that name it wait from `effectiveFrom` on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<CalendarSpec>,
    /// The versions that are kept, the newest first.
    pub versions: Vec<CalendarVersionView>,
    /// Shards that were not heard to hold the newest version in time; they come to hold it without another call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<u16>,
}

/// A version of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarVersionView {
    pub version: u64,
    pub effective_from: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Calendars that it takes away, with the version that they had when it was set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub minus: Vec<MinusView>,
}

/// A calendar that another one takes away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinusView {
    pub calendar: String,
    pub version: u64,
}

impl CalendarView {
    /// None: the record has no version.
    pub fn of(record: &CalendarRecord, outstanding: Vec<u16>) -> Option<Self> {
        let newest = record.newest()?;
        let versions = record.versions.iter().rev().map(|version| CalendarVersionView {
            version: version.version,
            effective_from: Timestamp(version.from_ms),
            deleted: version.rules.is_none(),
            minus: version.rules.iter().flat_map(|rules| &rules.minus).map(MinusView::from).collect(),
        });
        Some(Self {
            tenant_id: record.tenant.to_string(),
            calendar: record.name.to_string(),
            version: newest.version,
            effective_from: Timestamp(newest.from_ms),
            spec: newest.rules.as_ref().and_then(crate::stored::CalendarRules::spec),
            versions: versions.collect(),
            outstanding,
        })
    }
}

impl From<&crate::stored::MinusRules> for MinusView {
    fn from(minus: &crate::stored::MinusRules) -> Self {
        Self { calendar: minus.name.to_string(), version: minus.version }
    }
}

/// `POST /tenants/{tenantId}/calendars/{calendar}/preview`, `calendar.preview`: what a version would change, before it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CalendarPreviewBody {
    /// Left out: the calendar as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<CalendarSpec>,
    /// As in `calendar.set`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_from: Option<Timestamp>,
    /// The first day that is looked at. Default: today in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<CalendarDate>,
    /// Days that are looked at. Default 31, at most 366.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<usize>,
}

/// Answer of a preview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarPreviewView {
    pub effective_from: Timestamp,
    /// The days that the calendar has, among those that were looked at.
    pub days: Vec<CalendarDate>,
    /// Jobs that name the calendar and whose next instants change.
    pub jobs: Vec<CalendarJobChange>,
    /// The tenant has more jobs than were looked at.
    pub truncated: bool,
}

/// A job whose next instants change with a calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarJobChange {
    pub job_id: JobId,
    pub name: String,
    /// Instants among its next ones that it loses.
    pub removed: Vec<Timestamp>,
    /// Instants among its next ones that it gains.
    pub added: Vec<Timestamp>,
}
