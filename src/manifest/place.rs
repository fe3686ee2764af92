//! Where something stands in a file: line and column of a path.
//!
//! The YAML reader tells places only with errors, so a walk to the path ends in one on purpose. Files are small, and it is done
//! only for what is told to a person.

use super::document::place;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    Item(usize),
}

/// `spec.command[2]`.
pub(super) fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        // Writing to a String cannot fail.
        let _ = match step {
            Step::Field(name) if text.is_empty() => write!(text, "{name}"),
            Step::Field(name) => write!(text, ".{name}"),
            Step::Item(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// Line and column, from 1, of a path's last field or item in a document; of the nearest one around it when it is not there.
pub(super) fn locate(text: &str, document: usize, path: &[Step]) -> (u64, u64) {
    for length in (0..=path.len()).rev() {
        let Some(document) = serde_yaml_ng::Deserializer::from_str(text).nth(document) else { break };
        if let Err(error) = (Walk { path: &path[..length] }).deserialize(document)
            && error.to_string().contains(FOUND)
            && let Some(location) = error.location()
        {
            return place(&location);
        }
    }
    (1, 1)
}

/// In the error that ends a walk at its aim.
const FOUND: &str = "<the place that was looked for>";

fn found<E: de::Error>() -> E {
    E::custom(FOUND)
}

struct Walk<'a> {
    path: &'a [Step],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();
    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// Scalars are an aim when the path ends there, else they are passed over.
macro_rules! scalars {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E: de::Error>(self, _: $type) -> Result<(), E> {
            if self.path.is_empty() { Err(found()) } else { Ok(()) }
        })+
    };
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        if self.path.is_empty() { Err(found()) } else { Ok(()) }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.path.split_first() else { return Err(found()) };
        let wanted = match step {
            Step::Item(index) => Some(*index),
            Step::Field(_) => None,
        };
        for index in 0.. {
            let more = if wanted == Some(index) {
                items.next_element_seed(Walk { path: rest })?.is_some()
            } else {
                items.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.path.split_first() else { return Err(found()) };
        let wanted = match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Item(_) => None,
        };
        while let Some(here) = entries.next_key_seed(Key { wanted, last: rest.is_empty() })? {
            if here {
                entries.next_value_seed(Walk { path: rest })?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// A name: the wanted one is the aim when the path ends with it.
struct Key<'a> {
    wanted: Option<&'a str>,
    last: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;
    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<bool, E> {
        match self.wanted == Some(name) {
            true if self.last => Err(found()),
            here => Ok(here),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_fields_and_items() {
        let text = "a: 1\n---\nspec:\n  command: [x,\n    yy, z]\n  env:\n    - name: k\n      value: 7\nlast: ~\n";
        let field = |name: &str| Step::Field(name.to_owned());
        let command = [field("spec"), field("command"), Step::Item(1)];
        let value = [field("spec"), field("env"), Step::Item(0), field("value")];
        for (document, path, expected) in [
            (0, &[field("a")][..], (1, 1)),
            (1, &[], (3, 1)),
            (1, &[field("spec")], (3, 1)),
            (1, &command, (5, 5)),
            (1, &value, (8, 7)),
            (1, &[field("last")], (9, 1)),
            // What is missing stands where it would belong.
            (1, &[field("spec"), field("schedule")], (3, 1)),
            (1, &[field("nowhere")], (3, 1)),
            (7, &[], (1, 1)),
        ] {
            assert_eq!(locate(text, document, path), expected, "{document} {}", shown(path));
        }
        assert_eq!(shown(&value), "spec.env[0].value");
        assert_eq!(locate("{\"a\":\n {\"b\": 1}}", 0, &[field("a"), field("b")]), (2, 3));
    }
}
