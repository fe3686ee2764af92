//! Files as documents: YAML with several of them, or JSON, read into values within limits.
//!
//! Values are built by our own visitor: a name that stands twice is refused instead of winning, and aliases cannot make much out
//! of little.

use super::place::Step;
use campanile_schema::limits::MANIFEST_VALUES;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_yaml_ng::{Deserializer, Location};
use std::{cell::Cell, fmt};

/// One document of a file.
pub(super) struct Document {
    /// Its place among those of the file, from 0.
    pub index: usize,
    pub value: Value,
}

/// Why a file cannot be read further, at line and column from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub line: u64,
    pub column: u64,
    pub message: String,
}

/// The documents up to the first that cannot be read. Empty ones are left out.
pub(super) fn documents(text: &str) -> (Vec<Document>, Option<Broken>) {
    let left = Cell::new(MANIFEST_VALUES);
    let mut found = Vec::new();
    for (index, document) in Deserializer::from_str(text).enumerate() {
        match (Build { left: &left }).deserialize(document) {
            Ok(Value::Null) => {}
            Ok(value) => found.push(Document { index, value }),
            Err(error) => return (found, Some(broken(text, &error))),
        }
    }
    (found, None)
}

fn broken(text: &str, error: &serde_yaml_ng::Error) -> Broken {
    let (line, column) = error.location().as_ref().map_or((1, 1), place);
    let told = error.to_string();
    // The place is told apart.
    let message = told.rfind(" at line ").map_or(told.as_str(), |at| &told[..at]);
    let tab = text.lines().nth(line as usize - 1).is_some_and(|line| line.trim_start_matches(' ').starts_with('\t'));
    let hint = match (tab, unquoted(text, line)) {
        (true, _) => "; the line begins with a tab: YAML is indented with spaces".to_owned(),
        (false, Some(value)) => format!("; put the value in quotes: \"{value}\""),
        (false, None) => String::new(),
    };
    Broken { line, column, message: format!("{message}{hint}") }
}

/// A value near this line that begins with a character that means something to YAML, as cron expressions do.
fn unquoted(text: &str, line: u64) -> Option<&str> {
    let near = |number: u64| text.lines().nth(usize::try_from(number.checked_sub(1)?).ok()?);
    [Some(line), line.checked_sub(1)].into_iter().flatten().filter_map(near).find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let name = name.trim_start_matches([' ', '-', '{']);
        let value = value.trim();
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        // An alias is a word; an expression has blanks or signs.
        let is_alias = value.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        (plain && value.starts_with(['*', '@', '%', '`']) && (!is_alias || value == "*" || value.starts_with('@')))
            .then_some(value)
    })
}

pub(super) fn place(location: &Location) -> (u64, u64) {
    (location.line().max(1) as u64, location.column().max(1) as u64)
}

/// Builds a value, so many parts at most in one file.
#[derive(Clone, Copy)]
struct Build<'a> {
    left: &'a Cell<usize>,
}

impl Build<'_> {
    fn one<E: de::Error>(self) -> Result<(), E> {
        match self.left.get() {
            0 => Err(E::custom(format!("the file has more than {MANIFEST_VALUES} values, those of aliases counted"))),
            left => {
                self.left.set(left - 1);
                Ok(())
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Value;
    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        self.one()?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number =
            Number::from_f64(value).ok_or_else(|| E::custom(format!("{value} is no number that can be kept")))?;
        Ok(Value::Number(number))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: de::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        self.deserialize(from)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(array.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key_seed(Name { taken: &object })? {
            let value = entries.next_value_seed(self)?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

/// A name that is not there yet.
struct Name<'a> {
    taken: &'a Map<String, Value>,
}

impl Name<'_> {
    fn free<E: de::Error>(&self, name: String) -> Result<String, E> {
        if name == "<<" {
            return Err(E::custom("merge keys (<<) are not read: write the fields out"));
        }
        if self.taken.contains_key(&name) {
            return Err(E::custom(format!("`{name}` stands here twice")));
        }
        Ok(name)
    }
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = String;
    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = String;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name (put numbers and true, false, null in quotes)")
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
        self.free(name.to_owned())
    }
    fn visit_string<E: de::Error>(self, name: String) -> Result<String, E> {
        self.free(name)
    }
}

/// A value within another one.
pub(super) fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Item(index) => value.get(index),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn values(text: &str) -> Vec<Value> {
        let (found, broken) = documents(text);
        assert_eq!(broken, None, "{text}");
        found.into_iter().map(|document| document.value).collect()
    }
    fn refused(text: &str) -> Broken {
        documents(text).1.unwrap_or_else(|| panic!("it was read: {text}"))
    }

    #[test]
    fn documents_of_yaml_and_json() {
        assert_eq!(
            values("a: 1\n---\n# nothing\n---\nb: [x, 1.5, null, true]\n"),
            [json!({"a": 1}), json!({"b": ["x", 1.5, null, true]})]
        );
        assert_eq!(values("{\"a\":\n\t{\"b\": \"\\u00fc\"}}"), [json!({"a": {"b": "ü"}})]);
        assert_eq!(values("a: &x {b: 1}\nc: *x\n"), [json!({"a": {"b": 1}, "c": {"b": 1}})]);
        assert_eq!(values(""), Vec::<Value>::new());
    }

    #[test]
    fn what_breaks_is_told_with_its_place() {
        for (text, line, column, part) in [
            ("a: 1\nb: [1,\n", 3, 1, "did not find expected"),
            ("a: 1\nb: 2\na: 3\n", 3, 1, "`a` stands here twice"),
            ("a:\n  1: x\n", 2, 3, "a name (put numbers"),
            ("a: !secret x\n", 1, 4, "without a tag"),
            ("a: .nan\n", 1, 4, "no number that can be kept"),
            ("a:\n\tb: 1\n", 2, 1, "a tab: YAML is indented with spaces"),
            ("a: 1\nschedule: * * * * *\n", 2, 12, "put the value in quotes: \"* * * * *\""),
            ("schedule: */5 * * * *\n", 1, 12, "put the value in quotes: \"*/5 * * * *\""),
            ("schedule: @daily\n", 1, 11, "put the value in quotes: \"@daily\""),
            ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, 3, "merge keys"),
        ] {
            let told = refused(text);
            assert!(told.message.contains(part), "{text:?}: {told:?}");
            assert_eq!((told.line, told.column), (line, column), "{text:?}: {told:?}");
        }
        let (found, broken) = documents("a: 1\n---\nb: [\n");
        assert_eq!((found.len(), broken.is_some()), (1, true));
    }

    #[test]
    fn little_text_does_not_become_much() {
        let many = format!("a: &x [{}]\nb: [{}]\n", "1,".repeat(5_000), "*x,".repeat(5_000));
        let told = refused(&many);
        assert!(told.message.contains("more than"), "{told:?}");
        let deep = "[".repeat(10_000);
        assert!(refused(&deep).message.contains("recursion limit"));
    }
}
