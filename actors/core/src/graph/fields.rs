//! Which fields of a node's result its DAG reads. Only they travel to the DAG run and are kept there.

use campanile_schema::{limits, text::Text};
use serde_json::{Map, Value};

/// The names on the way to a value in a result. A list is taken whole, so a number after it is a place in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<Text>);

impl FieldPath {
    /// At least one name, at most [`limits::RESULT_FIELD_DEPTH`], none empty.
    pub fn new(names: Vec<Text>) -> Result<Self, String> {
        if names.is_empty() {
            return Err("name a field of the result, as in result.rows".to_owned());
        }
        if names.len() > limits::RESULT_FIELD_DEPTH {
            return Err(format!("a result field has at most {} names on its path", limits::RESULT_FIELD_DEPTH));
        }
        if names.iter().any(|name| name.is_empty()) {
            return Err("a name on the path to a result field is empty".to_owned());
        }
        Ok(Self(names))
    }

    /// `customer.name`.
    pub fn text(&self) -> String {
        self.0.join(".")
    }

    /// The value, if the result has it.
    pub fn find<'v>(&self, result: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(result, |value, name| {
            value.get(name.as_str()).or_else(|| value.as_array()?.get(name.parse::<usize>().ok()?))
        })
    }

    fn covers(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

/// The fields of one node's result that are read, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<FieldPath>);

impl Fields {
    /// Paths in any order. A path into a value that is read whole is left out.
    pub fn new(mut paths: Vec<FieldPath>) -> Self {
        // A path comes right before those that begin with it.
        paths.sort();
        let mut fields: Vec<FieldPath> = Vec::new();
        for path in paths {
            if !fields.last().is_some_and(|last| last.covers(&path)) {
                fields.push(path);
            }
        }
        Self(fields)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn iter(&self) -> impl Iterator<Item = &FieldPath> {
        self.0.iter()
    }

    /// The result without all that is not read; None when nothing of it is. Taking twice is taking once.
    pub fn take(&self, result: &Value) -> Option<Value> {
        let mut kept = Value::Null;
        for path in &self.0 {
            copy(&path.0, result, &mut kept);
        }
        (!kept.is_null()).then_some(kept)
    }
}

/// Copies what is at the end of the path, with the objects on the way. A list on the way is copied whole.
fn copy(names: &[Text], from: &Value, to: &mut Value) {
    let (Some((name, rest)), Value::Object(object)) = (names.split_first(), from) else {
        if names.is_empty() || from.is_array() {
            *to = from.clone();
        }
        return;
    };
    let Some(value) = object.get(name.as_str()) else { return };
    let mut inner = match to {
        Value::Object(kept) => kept.remove(name.as_str()).unwrap_or(Value::Null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Value::Null,
    };
    let had = !inner.is_null();
    copy(rest, value, &mut inner);
    // An object on the way to nothing is left out; a null at the end is a value.
    if inner.is_null() && !had && !(value.is_null() && rest.is_empty()) {
        return;
    }
    match to {
        Value::Object(kept) => {
            kept.insert(name.to_string(), inner);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            *to = Value::Object(Map::from_iter([(name.to_string(), inner)]));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn path(text: &str) -> FieldPath {
        FieldPath::new(text.split('.').map(Text::from).collect()).unwrap()
    }

    #[test]
    fn only_what_is_read_is_kept() {
        let result = json!({"rows":3,"big":"x","customer":{"name":"Ada","age":36},"list":[1,{"a":2}],"none":null});
        for (paths, kept) in [
            (vec!["rows"], json!({"rows":3})),
            (vec!["customer.name"], json!({"customer":{"name":"Ada"}})),
            (vec!["customer.name", "customer.age", "rows"], json!({"customer":{"name":"Ada","age":36},"rows":3})),
            (vec!["customer", "customer.name"], json!({"customer":{"name":"Ada","age":36}})),
            (vec!["list.1.a"], json!({"list":[1,{"a":2}]})),
            (vec!["none"], json!({"none":null})),
        ] {
            let fields = Fields::new(paths.into_iter().map(path).collect());
            let taken = fields.take(&result).unwrap();
            assert_eq!(taken, kept);
            assert_eq!(fields.take(&taken), Some(kept), "taking twice is taking once");
        }
        for missing in ["nothing", "rows.x", "customer.x.y"] {
            assert_eq!(Fields::new(vec![path(missing)]).take(&result), None, "{missing}");
        }
    }

    #[test]
    fn a_value_is_found_by_names_and_places() {
        let result = json!({"list":[1,{"a":2}],"7":"seven"});
        assert_eq!(path("list.1.a").find(&result), Some(&json!(2)));
        assert_eq!(path("7").find(&result), Some(&json!("seven")));
        assert_eq!(path("list.2").find(&result), None);
        assert_eq!(path("list.x").find(&result), None);
    }

    #[test]
    fn a_field_that_is_read_whole_covers_what_is_in_it() {
        let fields = Fields::new(vec![path("a.b"), path("a"), path("ab"), path("a.c.d"), path("a")]);
        assert_eq!(fields.iter().map(FieldPath::text).collect::<Vec<_>>(), ["a", "ab"]);
        assert!(FieldPath::new(Vec::new()).is_err());
        assert!(FieldPath::new(vec!["a".into(), "".into()]).is_err());
        assert!(FieldPath::new(vec!["a".into(); limits::RESULT_FIELD_DEPTH + 1]).is_err());
    }
}
