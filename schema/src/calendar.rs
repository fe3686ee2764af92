//! A calendar as callers write it: a set of days, for example the working days of a country.
//!
//! A day is in the calendar when `include` has it and `exclude` has not, or when `makeUp` has it: a Saturday that is worked because a holiday
//! was moved is in `makeUp`. Days are civil dates; which instants they hold is decided by the zone of the job.

use crate::job::Weekday;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt, str::FromStr};

/// A civil date, `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CalendarDate(jiff::civil::Date);

impl CalendarDate {
    /// None: there is no such date.
    pub fn new(year: i16, month: i8, day: i8) -> Option<Self> {
        jiff::civil::Date::new(year, month, day).ok().map(Self)
    }
    pub fn year(self) -> i16 {
        self.0.year()
    }
    pub fn month(self) -> i8 {
        self.0.month()
    }
    pub fn day(self) -> i8 {
        self.0.day()
    }
}

impl fmt::Display for CalendarDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year(), self.month(), self.day())
    }
}

impl FromStr for CalendarDate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let shaped = text.len() == 10
            && text.bytes().enumerate().all(|(n, b)| match n {
                4 | 7 => b == b'-',
                _ => b.is_ascii_digit(),
            });
        let date = if shaped { text.parse().ok() } else { None };
        date.map(Self)
            .ok_or_else(|| format!("'{}' is not a date; write it as 2026-10-01", crate::shape::shortened(text)))
    }
}

impl TryFrom<String> for CalendarDate {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
impl From<CalendarDate> for String {
    fn from(date: CalendarDate) -> Self {
        date.to_string()
    }
}

impl JsonSchema for CalendarDate {
    fn schema_name() -> Cow<'static, str> {
        "CalendarDate".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date", "examples": ["2026-10-01"]})
    }
}

/// Days from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DateRange {
    pub from: CalendarDate,
    pub to: CalendarDate,
}

/// A day of a month, or a weekday of a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MonthlyRule {
    /// 1 to 12. Left out: every month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<i8>,
    /// 1 to 31, or -1 to -31 from the end of the month. A month without it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<i8>,
    /// With `nth`, instead of `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekday: Option<Weekday>,
    /// 1 to 5, or -1 to -5 from the end of the month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<i8>,
}

/// Days by rules; a day that one of them names is among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DayRules {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<CalendarDate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<DateRange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weekly: Vec<Weekday>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monthly: Vec<MonthlyRule>,
    /// Days after Easter Sunday of the western churches: 1 is Easter Monday, -2 Good Friday.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub easter: Vec<i16>,
}

impl DayRules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CalendarSpec {
    /// Without any rule: every day.
    #[serde(skip_serializing_if = "DayRules::is_empty")]
    pub include: DayRules,
    #[serde(skip_serializing_if = "DayRules::is_empty")]
    pub exclude: DayRules,
    /// Days that are in the calendar although `exclude` has them, such as make-up working days.
    #[serde(skip_serializing_if = "DayRules::is_empty")]
    pub make_up: DayRules,
    /// Other calendars of the tenant whose days are taken away from this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub minus: Vec<String>,
    /// The last day that somebody has looked after. Behind it nobody knows the holidays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_through: Option<CalendarDate>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written_and_nothing_else_is() {
        let date: CalendarDate = "2028-02-29".parse().unwrap();
        assert_eq!((date.to_string().as_str(), date.day()), ("2028-02-29", 29));
        for wrong in ["2027-02-29", "2026-1-01", "20260101", "2026-01-01T00:00", "", "2026-13-01", "+026-01-01"] {
            assert!(wrong.parse::<CalendarDate>().unwrap_err().contains("write it as 2026-10-01"), "{wrong}");
        }
    }

    #[test]
    fn a_calendar_refuses_fields_that_it_does_not_know() {
        let spec: CalendarSpec = serde_json::from_str(r#"{"exclude": {"weekly": ["SAT", "SUN"]}}"#).unwrap();
        assert_eq!(spec.exclude.weekly, [Weekday::Sat, Weekday::Sun]);
        assert_eq!(serde_json::to_string(&spec).unwrap(), r#"{"exclude":{"weekly":["SAT","SUN"]}}"#);
        assert!(serde_json::from_str::<CalendarSpec>(r#"{"excluded": {}}"#).is_err());
    }
}
