//! A day in UTC.

use std::{fmt, str::FromStr};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day of an instant, milliseconds since 1970.
    pub fn of_ms(ms: i64) -> Self {
        Self(ms.div_euclid(DAY_MS))
    }

    /// Its first millisecond since 1970.
    pub fn begin_ms(self) -> i64 {
        self.0.saturating_mul(DAY_MS)
    }

    /// The first millisecond after it.
    pub fn end_ms(self) -> i64 {
        self.begin_ms().saturating_add(DAY_MS)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.begin_ms()) {
            Ok(begin) => write!(f, "{}", begin.strftime("%Y-%m-%d")),
            Err(_) => write!(f, "day {}", self.0),
        }
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let date: Result<jiff::civil::Date, _> = text.parse();
        let begin = date.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC));
        match begin {
            // Nothing but the date: no time and no zone behind it.
            Ok(begin) if text.len() == "2026-02-01".len() => Ok(Self::of_ms(begin.timestamp().as_millisecond())),
            Ok(_) | Err(_) => Err(format!("'{text}' is not a day such as 2026-02-01")),
        }
    }
}

impl serde::Serialize for Day {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
