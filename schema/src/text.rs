//! Texts that stand in every job and every run: names of tenants, pools, handlers, executors.
//!
//! They are short, and a run's way from decision to row copies each of them many times. So up to 23 bytes lie in the value itself, where a
//! copy costs no allocation; longer ones are shared.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use std::collections::BTreeMap;

pub use smol_str::SmolStr as Text;

/// Whether a character of a name can be seen and does nothing else: no control character, no separator of lines or paragraphs, no sign
/// that changes the direction of writing, nothing without a width.
pub fn is_shown(c: char) -> bool {
    let invisible = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    !c.is_control() && !invisible
}

/// Labels of a stored definition: a map in one piece of memory, by key. Nothing on the way of a trigger looks at them, but each
/// activation of a job reads and drops them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Text, Text)]>);

/// Room that is made before the labels are read: what a damaged length says must not cost memory.
const ROOM: usize = 16;

impl Labels {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find_map(|(k, value)| (k == key).then_some(value.as_str()))
    }
    /// As callers have them.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(map: &BTreeMap<String, String>) -> Self {
        Self(map.iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(LabelsVisitor)
    }
}

struct LabelsVisitor;
impl<'de> Visitor<'de> for LabelsVisitor {
    type Value = Labels;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map of texts")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut labels: Vec<(Text, Text)> = Vec::with_capacity(map.size_hint().unwrap_or_default().min(ROOM));
        while let Some(label) = map.next_entry()? {
            labels.push(label);
        }
        if !labels.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Not by this build, which writes them in order. Of one key the last counts, as in any map.
            labels = labels.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        }
        Ok(Labels(labels.into_boxed_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;

    fn map(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn labels_are_stored_as_any_map() {
        let long = "x".repeat(200);
        for given in [map(&[]), map(&[("team", "a"), ("kind", &long), (&long, "")])] {
            let labels = Labels::from(&given);
            let bytes = frame::encode(&labels);
            assert_eq!(bytes, frame::encode(&given));
            let back: Labels = frame::decode("labels", &bytes).expect("a map");
            assert_eq!((back.to_map(), back.is_empty()), (given.clone(), given.is_empty()));
            assert_eq!((back.get("team"), back.get("tea")), (given.get("team").map(String::as_str), None));
        }
    }

    #[test]
    fn labels_in_no_order_are_put_in_order_and_the_last_of_a_key_counts() {
        // {"b": "1", "a": "2", "b": "3"}
        let bytes = [0x83, 0xa1, b'b', 0xa1, b'1', 0xa1, b'a', 0xa1, b'2', 0xa1, b'b', 0xa1, b'3'];
        let labels: Labels = frame::decode("labels", &bytes).expect("a map");
        assert_eq!(labels, Labels::from(&map(&[("a", "2"), ("b", "3")])));
    }
}
