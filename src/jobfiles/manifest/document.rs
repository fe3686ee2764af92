//! Files as documents: YAML with several of them, or JSON, read into values within limits, with the places of their fields.
//!
//! Values are built by our own visitor: a name that stands twice is refused instead of winning, and aliases cannot make much out
//! of little. The library tells places only with errors, so names and items end in an error on purpose, which is caught here:
//! one pass gives the places of everything.

use super::{
    nesting,
    place::{Spot, Step},
};
use campanile_schema::{
    limits::{MANIFEST_DEPTH, MANIFEST_TEXT_BYTES, MANIFEST_VALUES},
    shape::shortened,
};
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_yaml_ng::Deserializer;
use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::Arc,
};

/// One document of a file.
pub(super) struct Document {
    pub value: Value,
    /// Where its parts stand.
    pub spot: Arc<Spot>,
}

/// Why a file cannot be read further, at line and column from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub line: u64,
    pub column: u64,
    pub message: String,
}

/// Values between two looks at whether anybody still waits for the answer.
const LOOK_EVERY: usize = 256;

/// The documents up to the first that cannot be read. Empty ones are left out. `go_on`: asked now and then; false ends it.
pub(super) fn documents(text: &str, go_on: &dyn Fn() -> bool) -> (Vec<Document>, Option<Broken>) {
    let mut found = Vec::new();
    // A caller may send what an editor of Windows wrote; columns are counted without its mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((line, column)) = nesting::too_deep(text, MANIFEST_DEPTH) {
        return (found, Some(Broken { line, column, message: deeper() }));
    }
    let budget = Budget { values: Cell::new(MANIFEST_VALUES), bytes: Cell::new(MANIFEST_TEXT_BYTES), go_on };
    let begin = flow_begin(text);
    for document in Deserializer::from_str(text) {
        if !go_on() {
            return (found, Some(Broken { line: 1, column: 1, message: STOPPED.to_owned() }));
        }
        match (Build { budget: &budget, depth: 0, stash: None }).deserialize(document) {
            Ok((Value::Null, _)) => {}
            Ok((value, spot)) => {
                let spot = if found.is_empty() { spot.begins(begin) } else { spot };
                found.push(Document { value, spot: Arc::new(spot) });
            }
            Err(error) => return (found, Some(broken(text, &error))),
        }
    }
    (found, None)
}

/// Where a text begins with a bracket, as JSON does: there its first document begins, before its first part.
fn flow_begin(text: &str) -> Option<(u64, u64)> {
    let before = text.len() - text.trim_start().len();
    let blank = &text[..before];
    let column = blank.chars().rev().take_while(|c| *c != '\n').count() as u64 + 1;
    text[before..].starts_with(['[', '{']).then(|| (blank.matches('\n').count() as u64 + 1, column))
}

const STOPPED: &str = "reading the file took too long and was given up: split it into several";

fn deeper() -> String {
    format!("the file is nested deeper than {MANIFEST_DEPTH} levels")
}

fn broken(text: &str, error: &serde_yaml_ng::Error) -> Broken {
    let told = error.to_string();
    let (line, column) = error.location().map_or((1, 1), |at| (at.line().max(1) as u64, at.column().max(1) as u64));
    if told.contains(&deeper()) {
        return Broken { line, column, message: deeper() };
    }
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

/// The place that the text of an error ends with. The very first place of a text is not told.
fn place(told: &str) -> Option<(u64, u64)> {
    let (_, place) = told.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(" column ")?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// What reading one file may still build.
struct Budget<'a> {
    values: Cell<usize>,
    bytes: Cell<usize>,
    go_on: &'a dyn Fn() -> bool,
}

impl Budget<'_> {
    fn value<E: de::Error>(&self) -> Result<(), E> {
        let left = self.values.get().checked_sub(1).ok_or_else(|| {
            E::custom(format!("the file has more than {MANIFEST_VALUES} values, those of aliases counted"))
        })?;
        self.values.set(left);
        if left.is_multiple_of(LOOK_EVERY) && !(self.go_on)() {
            return Err(E::custom(STOPPED));
        }
        Ok(())
    }

    fn text<E: de::Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.bytes.get().checked_sub(bytes).ok_or_else(|| {
            E::custom(format!("the file has more than {MANIFEST_TEXT_BYTES} bytes of text, that of aliases counted"))
        })?;
        self.bytes.set(left);
        Ok(())
    }
}

/// In the error that tells the place of a name or an item.
const HERE: &str = "<the place that was looked for>";

/// Reads one scalar with `seed`, which leaves it in `stash` and ends in an error for its place.
fn spotted<T, E: de::Error>(read: Result<T, E>, stash: &RefCell<Option<T>>) -> Result<(T, (u64, u64)), E> {
    match (read, stash.take()) {
        (Ok(value), _) => Ok((value, (0, 0))),
        (Err(error), Some(value)) => Ok((value, place(&error.to_string()).unwrap_or((1, 1)))),
        (Err(error), None) => Err(error),
    }
}

type Built = (Value, Spot);

/// Builds a value, so many parts at most in one file.
#[derive(Clone, Copy)]
struct Build<'a> {
    budget: &'a Budget<'a>,
    /// Collections around it.
    depth: u32,
    /// Of an item: where a scalar is left for its place.
    stash: Option<&'a RefCell<Option<Built>>>,
}

impl<'a> Build<'a> {
    fn scalar<E: de::Error>(self, value: Value) -> Result<Built, E> {
        let built = (value, Spot::default());
        match self.stash {
            None => Ok(built),
            Some(stash) => {
                stash.replace(Some(built));
                Err(E::custom(HERE))
            }
        }
    }

    fn inside<E: de::Error>(self) -> Result<Build<'a>, E> {
        if self.depth == MANIFEST_DEPTH {
            return Err(E::custom(deeper()));
        }
        Ok(Build { depth: self.depth + 1, stash: None, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Built;
    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Built, D::Error> {
        self.budget.value()?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Built;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Built, E> {
        self.scalar(value.into())
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Built, E> {
        self.scalar(value.into())
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Built, E> {
        self.scalar(value.into())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Built, E> {
        let number =
            Number::from_f64(value).ok_or_else(|| E::custom(format!("{value} is no number that can be kept")))?;
        self.scalar(Value::Number(number))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Built, E> {
        self.budget.text(value.len())?;
        self.scalar(value.into())
    }
    fn visit_unit<E: de::Error>(self) -> Result<Built, E> {
        self.scalar(Value::Null)
    }
    fn visit_none<E: de::Error>(self) -> Result<Built, E> {
        self.scalar(Value::Null)
    }
    fn visit_some<D: de::Deserializer<'de>>(self, from: D) -> Result<Built, D::Error> {
        self.deserialize(from)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Built, A::Error> {
        let inside = self.inside()?;
        let (mut array, mut spot) = (Vec::new(), Spot::default());
        loop {
            let stash = RefCell::new(None);
            let read = items.next_element_seed(Build { stash: Some(&stash), ..inside });
            let ((value, within), at) = match read {
                Ok(None) => return Ok((array.into(), spot)),
                Ok(Some(built)) => (built, (0, 0)),
                Err(error) => spotted(Err(error), &stash)?,
            };
            array.push(value);
            spot.item(within.or_at(at));
        }
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Built, A::Error> {
        let inside = self.inside()?;
        let (mut object, mut spot) = (Map::new(), Spot::default());
        loop {
            let stash = RefCell::new(None);
            let read = entries.next_key_seed(Name { taken: &object, budget: self.budget, stash: &stash });
            let (name, at) = match read {
                Ok(None) => return Ok((object.into(), spot)),
                Ok(Some(name)) => (name, (0, 0)),
                Err(error) => spotted(Err(error), &stash)?,
            };
            let (value, within) = entries.next_value_seed(inside)?;
            spot.field(&name, at, within);
            object.insert(name, value);
        }
    }
}

/// A name that is not there yet.
struct Name<'a> {
    taken: &'a Map<String, Value>,
    budget: &'a Budget<'a>,
    stash: &'a RefCell<Option<String>>,
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
        self.budget.text(name.len())?;
        if name == "<<" {
            return Err(E::custom("merge keys (<<) are not read: write the fields out"));
        }
        if self.taken.contains_key(name) {
            return Err(E::custom(format!("`{}` stands here twice", shortened(name))));
        }
        self.stash.replace(Some(name.to_owned()));
        Err(E::custom(HERE))
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
        let (found, broken) = documents(text, &|| true);
        assert_eq!(broken, None, "{text}");
        found.into_iter().map(|document| document.value).collect()
    }
    fn refused(text: &str) -> Broken {
        documents(text, &|| true).1.unwrap_or_else(|| panic!("it was read: {text}"))
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
        let (found, broken) = documents("a: 1\n---\nb: [\n", &|| true);
        assert_eq!((found.len(), broken.is_some()), (1, true));
    }

    #[test]
    fn little_text_does_not_become_much() {
        let many = format!("a: &x [{}]\nb: [{}]\n", "1,".repeat(5_000), "*x,".repeat(5_000));
        let told = refused(&many);
        assert!(told.message.contains("more than"), "{told:?}");
        let text = format!("a: &x {}\nb: [{}]\n", "y".repeat(1 << 20), "*x,".repeat(10));
        let told = refused(&text);
        assert!(told.message.contains("bytes of text"), "{told:?}");
    }

    #[test]
    fn nesting_is_bounded_in_every_spelling() {
        let block: String = (0..100).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        let aliased: String = (1..100).map(|n| format!("a{n}: &x{n} [*x{}]\n", n - 1)).collect();
        for text in
            ["[".repeat(10_000), "- ".repeat(10_000), block, format!("a0: &x0 1\n{aliased}"), "{a: [".repeat(60_000)]
        {
            let told = refused(&text);
            assert_eq!(told.message, "the file is nested deeper than 64 levels", "{}", &text[..20]);
        }
        let most = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        assert_eq!(values(&most).len(), 1);
    }

    #[test]
    fn reading_ends_when_nobody_waits_for_it() {
        let asked = Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 4
        };
        let (found, broken) = documents(&format!("[{}]", "1,".repeat(50_000)), &go_on);
        assert!(found.is_empty());
        assert_eq!(broken.unwrap().message, STOPPED);
        assert_eq!(asked.get(), 4);
    }
}
