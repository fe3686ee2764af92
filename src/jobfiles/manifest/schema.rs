//! JSON Schema of manifests, from the types that read them: for editors and for checks before anything is sent.

use super::job::{JobManifest, camel};
use campanile_schema::operations::rows;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Where a node serves it.
pub const PATH: &str = rows::PAGE_JOB_SCHEMA.path();

/// The document, as text.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));
    &TEXT
}

pub(super) fn document() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<JobManifest>().to_value();
    schema["title"] = json!("Campanile job");
    schema["$id"] = json!(PATH);
    words(&mut schema);
    schema
}

/// Words such as `FIRE_ONCE_NOW` are also read as manifests write them, `FireOnceNow`.
fn words(value: &mut Value) {
    let is_upper =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    match value {
        Value::Object(fields) => {
            if let Some(word) = fields.get("const").and_then(Value::as_str).filter(|word| is_upper(word)) {
                let both = json!([camel(word), word]);
                fields.remove("const");
                fields.insert("enum".to_owned(), both);
                return;
            }
            if let Some(Value::Array(known)) = fields.get_mut("enum")
                && known.iter().all(|word| word.as_str().is_some_and(is_upper))
            {
                let camels: Vec<Value> =
                    known.iter().filter_map(Value::as_str).map(|word| camel(word).into()).collect();
                known.splice(0..0, camels);
                return;
            }
            fields.values_mut().for_each(words);
        }
        Value::Array(items) => items.iter_mut().for_each(words),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
