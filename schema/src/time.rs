//! Instants. Stored and sent in binary as int64 milliseconds since 1970 UTC; in JSON as RFC 3339 in UTC with milliseconds.

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
