//! Instants. Stored and sent in binary as int64 milliseconds since 1970 UTC; in JSON as RFC 3339 in UTC with milliseconds.
//! A caller may write some of them as a local time of a time zone instead ([`Moment`]); nothing stores that form.

use jiff::civil;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
    pub fn ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let t: jiff::Timestamp = text
            .parse()
            .map_err(|e| format!("'{text}' is not an RFC 3339 instant such as 2026-02-01T00:00:00Z: {e}"))?;
        Ok(Self(t.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() { s.collect_str(self) } else { s.serialize_i64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    /// Takes both forms everywhere: inside a tagged enum or a flattened struct serde buffers values and then calls
    /// every format human-readable, so the format cannot tell which form follows.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Instant)
    }
}

struct Instant;
impl de::Visitor<'_> for Instant {
    type Value = Timestamp;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 instant such as 2026-02-01T00:00:00Z, or milliseconds since 1970 UTC")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, ms: i64) -> Result<Timestamp, E> {
        Ok(Timestamp(ms))
    }
    fn visit_u64<E: de::Error>(self, ms: u64) -> Result<Timestamp, E> {
        i64::try_from(ms).map(Timestamp).map_err(|_| E::custom(format!("{ms} ms is out of range")))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type":"string","format":"date-time","examples":["2026-02-01T00:00:00.000Z"]})
    }
}

/// An instant as a caller may write it. A local time becomes an instant where its time zone is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Instant(Timestamp),
    /// What the clocks of a time zone show.
    Local(civil::DateTime),
}

impl Moment {
    /// The instant, unless it still depends on a time zone.
    pub fn instant(self) -> Option<Timestamp> {
        match self {
            Self::Instant(instant) => Some(instant),
            Self::Local(_) => None,
        }
    }
}

impl From<Timestamp> for Moment {
    fn from(instant: Timestamp) -> Self {
        Self::Instant(instant)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant(instant) => instant.fmt(f),
            Self::Local(local) => write!(f, "{local:.3}"),
        }
    }
}

impl FromStr for Moment {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(instant) => Ok(Self::Instant(instant)),
            // The reader of local times passes an offset over, so a text with a wrong one must not come to it.
            Err(error) if is_without_offset(text) => text.parse().map(Self::Local).map_err(|_| error),
            Err(error) => Err(error),
        }
    }
}

/// `2026-01-15 10:00:00.000`, also with `T`: a date and a time, and nothing after them.
fn is_without_offset(text: &str) -> bool {
    let (Some(date), Some(time)) = (text.get(..10), text.get(11..)) else { return false };
    date.bytes().all(|b| b.is_ascii_digit() || b == b'-')
        && time.bytes().all(|b| b.is_ascii_digit() || matches!(b, b':' | b'.'))
        && time.contains(':')
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Instant(instant) => instant.serialize(s),
            Self::Local(_) => s.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(MomentVisitor)
    }
}

struct MomentVisitor;
impl de::Visitor<'_> for MomentVisitor {
    type Value = Moment;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Instant.expecting(f)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Moment, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, ms: i64) -> Result<Moment, E> {
        Instant.visit_i64(ms).map(Moment::Instant)
    }
    fn visit_u64<E: de::Error>(self, ms: u64) -> Result<Moment, E> {
        Instant.visit_u64(ms).map(Moment::Instant)
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            generator.subschema_for::<Timestamp>(),
            {
                "description": "A local time of the time zone in `timezone`.",
                "type": "string",
                "pattern": r"^\d{4}-\d{2}-\d{2}[ Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$",
                "examples": ["2026-01-15 10:00:00.000"],
            },
        ]})
    }
}
