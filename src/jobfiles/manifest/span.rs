//! Lengths of time as people write them: `90`, `90s`, `5m`, `1h30m`, `7d`; for delays also `500ms`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr};

/// Milliseconds of each unit, the largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub u64);

/// Seconds with fractions down to a millisecond, held in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay(pub u64);

/// Milliseconds; a bare number counts seconds.
fn parse(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<u64>() {
        return seconds.checked_mul(1_000);
    }
    let (mut rest, mut sum) = (text, 0u64);
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        // Each unit once, the larger before the smaller.
        let (_, of_unit) = units.find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(*of_unit)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

fn text(mut ms: u64) -> String {
    let mut text = String::new();
    for (name, of_unit) in UNITS {
        if ms >= of_unit {
            text.push_str(&format!("{}{name}", ms / of_unit));
            ms %= of_unit;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

impl FromStr for Seconds {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match parse(text) {
            Some(ms) if ms % 1_000 == 0 => Ok(Self(ms / 1_000)),
            Some(_) | None => Err(format!("'{text}' is not a time: write 30, 30s, 5m, 2h, 1h30m or 1d")),
        }
    }
}

impl FromStr for Delay {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map(Self).ok_or_else(|| format!("'{text}' is not a time: write 30, 500ms, 30s, 5m, 2h or 1h30m"))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&text(self.0.saturating_mul(1_000)))
    }
}
impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&text(self.0))
    }
}

struct Written;
impl de::Visitor<'_> for Written {
    type Value = String;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as 30s or 5m, or a number of seconds")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<String, E> {
        Ok(seconds.to_string())
    }
    fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<String, E> {
        let ms = (seconds * 1e3).round();
        if (0.0..1e15).contains(&ms) {
            Ok(format!("{ms}ms"))
        } else {
            Err(E::custom(format!("{seconds} s is out of range")))
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Written)?.parse().map_err(de::Error::custom)
    }
}
impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Written)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: 30, 30s, 5m, 2h, 1h30m or 1d; a bare number counts seconds.",
            "anyOf": [
                {"type": "string", "minLength": 1, "pattern": "^([0-9]+|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"},
                {"type": "integer", "minimum": 0}
            ],
        })
    }
}
impl JsonSchema for Delay {
    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: 30, 500ms, 30s, 5m, 2h or 1h30m; a bare number counts seconds.",
            "anyOf": [
                {"type": "string", "minLength": 1, "pattern": "^([0-9]+|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$"},
                {"type": "number", "minimum": 0}
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (written, ms) in [
            ("0", 0),
            ("30", 30_000),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("500ms", 500),
            ("1s500ms", 1_500),
        ] {
            assert_eq!(parse(written), Some(ms), "{written}");
            assert_eq!(parse(&text(ms)), Some(ms), "{written}");
        }
        for wrong in ["", "m", "5x", "-5", "1m1h", "1m1m", "5 m", "99999999999999999999", "1.5h", "٣s"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(text(5_400_000), "1h30m");
        assert!("500ms".parse::<Seconds>().is_err());
        assert_eq!(serde_json::from_str::<Delay>("0.25").unwrap(), Delay(250));
        assert_eq!(serde_json::from_str::<Seconds>("90").unwrap(), Seconds(90));
        assert!(serde_json::from_str::<Seconds>("-1").is_err());
    }
}
