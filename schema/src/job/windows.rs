//! Windows and blackouts of a job: which of the instants of its trigger count.
//!
//! A window is a piece of every week in the clock of a zone: an instant must lie in one of the windows that allow, if there are any, and in
//! none of those that deny. A blackout is one stretch of time. An instant that they remove makes no run; the ledger says so
//! (`SKIPPED(WINDOW)`, `SKIPPED(BLACKOUT)`).

use super::upper_enum;
use crate::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use std::{borrow::Cow, fmt, str::FromStr};

upper_enum!(/// A day of the week.
    Weekday { Mon = "MON" = 0, Tue = "TUE" = 1, Wed = "WED" = 2, Thu = "THU" = 3, Fri = "FRI" = 4, Sat = "SAT" = 5, Sun = "SUN" = 6 } default Mon);
upper_enum!(/// What a window does with the instants in it.
    WindowEffect { Allow = "ALLOW" = 0, Deny = "DENY" = 1 } default Allow);

/// Minutes of a day.
pub const DAY_MINUTES: u16 = 1_440;

/// A time of day in whole minutes, `00:00` to `24:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DayMinute(u16);

impl DayMinute {
    pub const MIDNIGHT: Self = Self(0);
    pub const END: Self = Self(DAY_MINUTES);

    /// Minutes since midnight; more than a day's count as a day.
    pub fn new(minutes: u16) -> Self {
        Self(minutes.min(DAY_MINUTES))
    }
    pub fn minutes(self) -> u16 {
        self.0
    }
}

impl fmt::Display for DayMinute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl FromStr for DayMinute {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let two = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            two.then(|| digits.parse::<u16>().ok()).flatten()
        };
        let (hours, minutes) = text.split_once(':').unwrap_or_default();
        match (number(hours), number(minutes)) {
            (Some(hours), Some(minutes)) if minutes < 60 && hours * 60 + minutes <= DAY_MINUTES => {
                Ok(Self(hours * 60 + minutes))
            }
            (_, _) => Err(format!(
                "'{}' is not a time of day; write it as 09:00, from 00:00 to 24:00",
                crate::shape::shortened(text)
            )),
        }
    }
}

impl TryFrom<String> for DayMinute {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
impl From<DayMinute> for String {
    fn from(minute: DayMinute) -> Self {
        minute.to_string()
    }
}

impl JsonSchema for DayMinute {
    fn schema_name() -> Cow<'static, str> {
        "DayMinute".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$", "examples": ["09:00"]})
    }
}

/// A piece of every week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Window {
    #[serde(default)]
    pub effect: WindowEffect,
    /// Days on which it begins. Default: every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Weekday>,
    /// Its first minute, `HH:MM`. Default: `00:00`.
    #[serde(default = "midnight")]
    pub from: DayMinute,
    /// The first minute after it, `HH:MM`. One that is not after `from` is of the next day. Default: `24:00`.
    #[serde(default = "end_of_day")]
    pub to: DayMinute,
    /// An IANA name. Default: the zone of the trigger, or UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

fn midnight() -> DayMinute {
    DayMinute::MIDNIGHT
}
fn end_of_day() -> DayMinute {
    DayMinute::END
}

/// A stretch of time in which no instant counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blackout {
    /// The first instant in it.
    pub from: Timestamp,
    /// The first instant after it.
    pub to: Timestamp,
    /// What people read about it. At most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_of_day_are_read_as_they_are_written_and_nothing_else_is() {
        for minutes in 0..=DAY_MINUTES {
            let text = DayMinute::new(minutes).to_string();
            assert_eq!(text.parse(), Ok(DayMinute::new(minutes)), "{text}");
        }
        for wrong in ["", "9:00", "09:0", "24:01", "25:00", "12:60", "-1:00", "+1:00", "09:00:00", "noon", "0９:00"] {
            assert!(wrong.parse::<DayMinute>().unwrap_err().contains("write it as 09:00"), "{wrong}");
        }
    }

    #[test]
    fn a_window_has_defaults_and_refuses_what_it_does_not_know() {
        let window: Window = serde_json::from_str(r#"{"days":["mon"]}"#).unwrap();
        assert_eq!((window.effect, window.from, window.to), (WindowEffect::Allow, DayMinute::MIDNIGHT, DayMinute::END));
        assert_eq!(window.days, [Weekday::Mon]);
        assert!(serde_json::from_str::<Window>(r#"{"day":"MON"}"#).is_err());
        assert!(serde_json::from_str::<Window>(r#"{"days":["HOLIDAY"]}"#).is_err());
    }
}
