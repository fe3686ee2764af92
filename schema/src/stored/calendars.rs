//! Stored forms of calendars: their versions, which every shard holds, and what a job says of one.
//!
//! A definition is kept as the JSON that callers write. A release that does not know one of its fields cannot read it, and then the jobs that
//! name the calendar wait: a field that is passed over could make a run on a holiday.

use super::windows::zone_of;
use crate::{
    calendar::CalendarSpec,
    job::{CalendarRule, JobCalendar, JobSpec},
    text::Text,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One version of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarVersion {
    /// Counts the changes of the calendar, from 1.
    #[serde(rename = "v")]
    pub version: u64,
    /// Instants from this one on are decided by it, ms.
    #[serde(rename = "f")]
    pub from_ms: i64,
    /// None: the calendar was deleted.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<CalendarRules>,
}

/// The days of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarRules {
    /// A [`CalendarSpec`] as JSON.
    #[serde(rename = "s")]
    pub spec: String,
    /// The calendars that it takes away, as they were when it was set.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub minus: Vec<MinusRules>,
}

/// A calendar that is taken away from another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinusRules {
    #[serde(rename = "n")]
    pub name: Text,
    #[serde(rename = "v")]
    pub version: u64,
    #[serde(rename = "s")]
    pub spec: String,
}

/// Versions of a calendar, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarRecord {
    #[serde(rename = "t")]
    pub tenant: Text,
    #[serde(rename = "n")]
    pub name: Text,
    #[serde(rename = "k")]
    pub versions: Vec<Arc<CalendarVersion>>,
}

impl CalendarRules {
    pub fn new(spec: &CalendarSpec, minus: Vec<MinusRules>) -> Self {
        Self { spec: written(spec), minus }
    }

    /// None: a later release wrote it.
    pub fn spec(&self) -> Option<CalendarSpec> {
        serde_json::from_str(&self.spec).ok()
    }

    /// What it takes of the journal and of each shard, nearly.
    pub fn bytes(&self) -> usize {
        self.spec.len() + self.minus.iter().map(|minus| minus.spec.len()).sum::<usize>()
    }
}

impl MinusRules {
    pub fn new(name: &str, version: u64, spec: &CalendarSpec) -> Self {
        Self { name: name.into(), version, spec: written(spec) }
    }

    /// None: a later release wrote it.
    pub fn spec(&self) -> Option<CalendarSpec> {
        serde_json::from_str(&self.spec).ok()
    }
}

fn written(spec: &CalendarSpec) -> String {
    serde_json::to_string(spec).expect("dates, words and numbers are JSON")
}

impl CalendarRecord {
    pub fn newest(&self) -> Option<&CalendarVersion> {
        self.versions.last().map(|version| &**version)
    }

    /// Whether its newest version has days.
    pub fn is_there(&self) -> bool {
        self.newest().is_some_and(|newest| newest.rules.is_some())
    }
}

/// What a job says of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredJobCalendar {
    #[serde(rename = "n")]
    pub name: Text,
    /// Instants count on the days that it has not.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub not_on: bool,
    #[serde(rename = "z")]
    pub zone: Text,
}

impl StoredJobCalendar {
    /// That of a spec. One that names no zone takes the one of the trigger.
    pub fn of(spec: &JobSpec) -> Option<Box<Self>> {
        spec.calendar.as_ref().map(|calendar| {
            let zone = calendar.timezone.as_deref().unwrap_or_else(|| zone_of(&spec.trigger));
            Box::new(Self {
                name: calendar.name.as_str().into(),
                not_on: calendar.rule == CalendarRule::NotOn,
                zone: zone.into(),
            })
        })
    }

    /// As callers have it.
    pub fn to_spec(&self) -> JobCalendar {
        JobCalendar {
            name: self.name.to_string(),
            rule: if self.not_on { CalendarRule::NotOn } else { CalendarRule::OnlyOn },
            timezone: Some(self.zone.to_string()),
        }
    }
}
