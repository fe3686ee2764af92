//! The schemas of the OpenAPI document. A request may leave out what has a default, an answer always has it, so a type that is in both
//! has two schemas where they differ: `Trigger` in answers, `TriggerInput` in requests. Defaults are told in words: generators
//! of clients take a field with a default for one that is always there.

use schemars::{
    SchemaGenerator,
    generate::{Contract, SchemaSettings},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const ANSWERS: &str = "/components/schemas";
/// Only until the document is whole.
const REQUESTS: &str = "/components/requests";

pub(super) struct Shapes {
    pub requests: SchemaGenerator,
    pub answers: SchemaGenerator,
}

impl Shapes {
    pub fn new() -> Self {
        let generator = |path: &str, contract: Contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = path.to_owned().into();
                settings.meta_schema = None;
                settings.contract = contract;
            });
            settings.into_generator()
        };
        Self { requests: generator(REQUESTS, Contract::Deserialize), answers: generator(ANSWERS, Contract::Serialize) }
    }

    /// All schemas, under the names that `paths` then refers to.
    pub fn finish(mut self, paths: &mut Value) -> Map<String, Value> {
        let mut answers = self.answers.take_definitions(true);
        let mut requests = self.requests.take_definitions(true);
        for schema in answers.values_mut().chain(requests.values_mut()) {
            defaults_in_words(schema);
        }
        defaults_in_words(paths);
        let two = differing(&requests, &answers);
        for (name, mut schema) in requests {
            let own = refer(&name, &two);
            if own != name || !answers.contains_key(&name) {
                rename(&mut schema, &two);
                answers.insert(own, schema);
            }
        }
        rename(paths, &two);
        answers
    }
}

/// Types whose schema is another one in requests than in answers, because of their own fields or of what these refer to.
fn differing(requests: &Map<String, Value>, answers: &Map<String, Value>) -> BTreeSet<String> {
    let mut two = BTreeSet::new();
    loop {
        let before = two.len();
        for (name, schema) in requests {
            let mut renamed = schema.clone();
            rename(&mut renamed, &two);
            if answers.get(name).is_some_and(|answer| *answer != renamed) {
                two.insert(name.clone());
            }
        }
        if two.len() == before {
            return two;
        }
    }
}

fn refer(name: &str, two: &BTreeSet<String>) -> String {
    if two.contains(name) { format!("{name}Input") } else { name.to_owned() }
}

/// References to requests' schemas get the names that these have in the document.
fn rename(value: &mut Value, two: &BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix('#').and_then(|path| path.strip_prefix(REQUESTS)?.strip_prefix('/')) {
                *text = format!("#{ANSWERS}/{}", refer(name, two));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, two)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, two)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Moves `default` of schemas into their descriptions. Examples and names of fields are left alone.
fn defaults_in_words(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(defaults_in_words),
        Value::Object(fields) => {
            let is_schema = ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "description"];
            if is_schema.iter().any(|key| fields.contains_key(*key))
                && let Some(default) = fields.remove("default")
                && !default.is_null()
            {
                let before = fields.get("description").and_then(Value::as_str).unwrap_or_default();
                let gap = if before.is_empty() { "" } else { " " };
                let text = format!("{before}{gap}Default: {default}");
                fields.insert("description".to_owned(), text.into());
            }
            fields.iter_mut().filter(|(name, _)| !matches!(name.as_str(), "example" | "examples")).for_each(
                |(_, value)| {
                    defaults_in_words(value);
                },
            );
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
