//! Reads and writes triggers. `DELAY` and `IMMEDIATE` become ONCE as they are read, so that nothing else knows them: they
//! are never stored, never sent, and a job that was written with one is the same as its ONCE.

use super::{Trigger, same_word};
use schemars::Schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};

const DELAYS: [&str; 2] = ["delaySec", "delayMs"];
/// What belongs to an instant.
const INSTANT: [&str; 2] = ["at", "timezone"];

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, s)
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(d)?;
        if let Value::Object(fields) = &mut value {
            to_once(fields).map_err(D::Error::custom)?;
        }
        Self::deserialize(value).map_err(D::Error::custom)
    }
}

/// Rewrites a trigger of one of the other words; every other one stays as it is.
fn to_once(fields: &mut Map<String, Value>) -> Result<(), String> {
    let Some(kind) = fields.get("type").and_then(Value::as_str) else { return Ok(()) };
    let given = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    if same_word(kind, "DELAY") {
        if let Some(name) = INSTANT.into_iter().find(|name| given(name)) {
            return Err(format!("a trigger of type DELAY has no '{name}': to name an instant, write type ONCE"));
        }
        if DELAYS.into_iter().filter(|name| given(name)).count() != 1 {
            return Err("a trigger of type DELAY takes exactly one of 'delaySec' and 'delayMs'".to_owned());
        }
    } else if same_word(kind, "IMMEDIATE") {
        if let Some(name) = INSTANT.into_iter().chain(DELAYS).find(|name| given(name)) {
            return Err(format!(
                "a trigger of type IMMEDIATE has no '{name}': for a later instant write type DELAY or ONCE"
            ));
        }
        fields.insert("delaySec".to_owned(), 0.into());
    } else {
        return Ok(());
    }
    fields.insert("type".to_owned(), "ONCE".into());
    Ok(())
}

/// Adds the other words to the derived schema.
pub(super) fn describe(schema: &mut Schema) {
    let Some(Value::Array(kinds)) = schema.get_mut("oneOf") else { return };
    let Some(once) = kinds.iter().find(|kind| kind["properties"]["type"]["const"] == "ONCE").cloned() else { return };
    let words: [(&str, &str, &[&str]); 2] = [
        ("DELAY", "Exactly one of `delaySec` and `delayMs`. Read back as ONCE.", &INSTANT),
        (
            "IMMEDIATE",
            "Due as soon as the job is stored. Read back as ONCE.",
            &["at", "timezone", "delaySec", "delayMs"],
        ),
    ];
    for (word, description, without) in words {
        let mut kind = once.clone();
        kind["description"] = description.into();
        kind["properties"]["type"]["const"] = word.into();
        if let Some(fields) = kind["properties"].as_object_mut() {
            fields.retain(|name, _| !without.contains(&name.as_str()));
        }
        kinds.push(kind);
    }
}
