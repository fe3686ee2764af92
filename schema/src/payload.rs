//! Opaque JSON that belongs to callers: params and results. Kept as its JSON text, never interpreted by the scheduler.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// A JSON value as text. In JSON bodies it is the value itself; in MessagePack it is `bin` holding the JSON text
/// (a native map, array, string or number is accepted too and turned into JSON).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload(pub String);

impl Default for Payload {
    /// The empty object.
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl Payload {
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string())
    }
    /// The parsed value; `null` when the text is not JSON, which cannot happen for values that came through serde.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty() || self.0 == "{}"
    }
    /// Whether it is an object, by its text.
    pub fn is_object(&self) -> bool {
        self.0.trim_start().starts_with('{')
    }
    /// With another one's values laid over it by their names, one level deep, where both are objects; otherwise the
    /// other one.
    pub fn laid_over(&self, over: Option<&Self>) -> Self {
        let Some(over) = over.filter(|over| !over.is_empty()) else { return self.clone() };
        if self.is_empty() {
            return over.clone();
        }
        match (self.to_value(), over.to_value()) {
            (serde_json::Value::Object(mut base), serde_json::Value::Object(values)) => {
                base.extend(values);
                Self::from_value(&serde_json::Value::Object(base))
            }
            (_, _) => over.clone(),
        }
    }
    /// Whether two requests bring the same params, however they are written. None is as good as the empty object.
    pub fn same(one: Option<&Self>, other: Option<&Self>) -> bool {
        let value = |params: Option<&Self>| {
            params.filter(|params| !params.is_empty()).map_or_else(|| serde_json::json!({}), Self::to_value)
        };
        one == other || value(one) == value(other)
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() { self.to_value().serialize(s) } else { s.serialize_bytes(self.0.as_bytes()) }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Not by `is_human_readable`: inside a flattened struct serde buffers values and then calls every format so.
        d.deserialize_any(BinOrValue)
    }
}

struct BinOrValue;
impl<'de> de::Visitor<'de> for BinOrValue {
    type Value = Payload;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON text as bin, or a map")
    }
    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Payload, E> {
        let text = std::str::from_utf8(bytes).map_err(|e| E::custom(format!("payload is not UTF-8: {e}")))?;
        // Checked without building a tree: a payload is stored as it came.
        serde_json::from_str::<de::IgnoredAny>(text).map_err(|e| E::custom(format!("payload is not JSON: {e}")))?;
        Ok(Payload(text.to_owned()))
    }
    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Payload, E> {
        self.visit_bytes(&bytes)
    }
    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Payload, A::Error> {
        serde_json::Value::deserialize(de::value::MapAccessDeserializer::new(map)).map(|v| Payload::from_value(&v))
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Payload, A::Error> {
        serde_json::Value::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(|v| Payload::from_value(&v))
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<Payload, E> {
        Ok(Payload::from_value(&serde_json::Value::from(v)))
    }
    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Payload, E> {
        Ok(Payload::from_value(&serde_json::Value::from(v)))
    }
    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Payload, E> {
        Ok(Payload::from_value(&serde_json::Value::from(v)))
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Payload, E> {
        Ok(Payload::from_value(&serde_json::Value::from(v)))
    }
    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Payload, E> {
        Ok(Payload::from_value(&serde_json::Value::from(v)))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Payload, E> {
        Ok(Payload("null".to_owned()))
    }
}

impl JsonSchema for Payload {
    fn schema_name() -> Cow<'static, str> {
        "Payload".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description":"Any JSON value; usually an object"})
    }
}
