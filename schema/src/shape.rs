//! Compares a value with the shape of its type and reports every difference. HTTP, RPC and manifests all use it, so
//! that the same mistake is refused with the same words everywhere.
//!
//! The derived readers alone are not enough. They accept a list in place of an object, by the order of its fields; keep
//! the last of two values of one name in maps; lose the path inside of values that are distinguished by a field; and
//! show the value that they reject, which may be a secret. A difference that is found here is reported with the whole
//! path, in the words of the API, with what to write instead, and without the value unless the value helps and cannot
//! be secret.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::{
    any::TypeId,
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{LazyLock, RwLock},
};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Field(String),
    Item(usize),
}

/// Something that does not fit, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    pub path: Vec<Step>,
    pub message: String,
}

/// Longest word of a caller in a message, characters.
const SHOWN_CHARS: usize = 64;
/// Deepest value that a type describes, levels. Deeper ones are the caller's own (params).
const TYPE_DEPTH: usize = 24;
/// Fields whose values are never shown.
const SECRET: &str = "secretParams";

/// A caller's word as it is shown in a message: its beginning, without control characters.
pub fn shortened(word: &str) -> String {
    let mut shown: String = word.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if word.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// `spec.command[2]`.
pub fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&shortened(name));
            }
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", shown(&self.path), self.message)
        }
    }
}

/// Kinds of values. No kind at all = anything.
#[derive(Clone, Debug, Default)]
struct Shape {
    object: bool,
    list: bool,
    text: bool,
    number: bool,
    truth: bool,
    fields: BTreeMap<String, Shape>,
    /// Of the values of names that are not listed.
    rest: Option<Box<Shape>>,
    item: Option<Box<Shape>>,
}

impl Shape {
    fn is_any(&self) -> bool {
        !(self.object || self.list || self.text || self.number || self.truth)
    }

    /// Whatever fits one of both fits.
    fn or(mut self, other: Self, is_first: bool) -> Self {
        if is_first {
            return other;
        }
        if self.is_any() || other.is_any() {
            return Self::default();
        }
        let boxed = |a: Option<Box<Self>>, b: Option<Box<Self>>| match (a, b) {
            (Some(a), Some(b)) => Some(Box::new(a.or(*b, false))),
            (a, b) => a.or(b),
        };
        for (name, shape) in other.fields {
            let merged = match self.fields.remove(&name) {
                Some(own) => own.or(shape, false),
                None => shape,
            };
            self.fields.insert(name, merged);
        }
        Self {
            object: self.object || other.object,
            list: self.list || other.list,
            text: self.text || other.text,
            number: self.number || other.number,
            truth: self.truth || other.truth,
            fields: self.fields,
            rest: boxed(self.rest, other.rest),
            item: boxed(self.item, other.item),
        }
    }

    fn of(schema: &Value, definitions: &Value, depth: usize) -> Self {
        let Some(schema) = schema.as_object().filter(|_| depth < TYPE_DEPTH) else { return Self::default() };
        let of = |schema: &Value| Self::of(schema, definitions, depth + 1);
        if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
            return of(&definitions[name]);
        }
        let mut shape = Self::default();
        let mut is_known = false;
        let kind = |shape: &mut Self, name: &str| match name {
            "object" => shape.object = true,
            "array" => shape.list = true,
            "string" => shape.text = true,
            "number" | "integer" => shape.number = true,
            "boolean" => shape.truth = true,
            _ => {}
        };
        match schema.get("type") {
            Some(Value::String(name)) => {
                kind(&mut shape, name);
                is_known = true;
            }
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| kind(&mut shape, name));
                is_known = true;
            }
            _ => {}
        }
        if schema.get("const").is_some_and(Value::is_string) || schema.contains_key("enum") && !is_known {
            shape.text = true;
            is_known = true;
        }
        // RPC writes instants as numbers.
        shape.number |= schema.get("format").is_some_and(|format| format == "date-time");
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            shape.object = true;
            is_known = true;
            shape.fields.insert(name.clone(), of(field));
        }
        shape.rest = schema.get("additionalProperties").filter(|rest| rest.is_object()).map(|rest| Box::new(of(rest)));
        shape.item = schema.get("items").map(|item| Box::new(of(item)));
        let mut is_first = !is_known;
        for kind in ["anyOf", "oneOf", "allOf"] {
            for one in schema.get(kind).and_then(Value::as_array).into_iter().flatten() {
                if one.get("type").is_some_and(|kind| kind == "null") {
                    continue;
                }
                shape = shape.or(of(one), is_first);
                is_first = false;
            }
        }
        shape
    }

    fn wanted(&self) -> &'static str {
        match (self.object, self.list, self.text, self.number, self.truth) {
            (true, ..) => "an object is wanted: write {\"name\": value}",
            (_, true, ..) => "a list is wanted: write [value, ...]",
            (_, _, true, ..) => "text is wanted: write it in quotes",
            (_, _, _, true, _) => "a number is wanted",
            (_, _, _, _, true) => "write true or false",
            _ => "it cannot stand here",
        }
    }
}

/// Made once of each type.
fn shape_of<T: JsonSchema + 'static>() -> &'static Shape {
    static SHAPES: LazyLock<RwLock<HashMap<TypeId, &'static Shape>>> = LazyLock::new(RwLock::default);
    let id = TypeId::of::<T>();
    if let Some(shape) = SHAPES.read().ok().and_then(|shapes| shapes.get(&id).copied()) {
        return shape;
    }
    let mut generator = SchemaGenerator::default();
    let schema = T::json_schema(&mut generator).to_value();
    let definitions = Value::Object(generator.take_definitions(true));
    // As many as there are types of bodies.
    let shape: &'static Shape = Box::leak(Box::new(Shape::of(&schema, &definitions, 0)));
    if let Ok(mut shapes) = SHAPES.write() {
        shapes.insert(id, shape);
    }
    shape
}

/// The first misfit of a value that is read from `from`. The outer error: the value cannot be read at all, or is read up to there
/// (then the misfit is given too).
pub fn first_misfit<'de, T: JsonSchema + 'static, D: Deserializer<'de>>(from: D) -> (Option<Misfit>, Option<D::Error>) {
    let state = RefCell::new(State { most: 1, ..State::default() });
    let read = Walk { shape: Some(shape_of::<T>()), state: &state }.deserialize(from);
    (state.into_inner().found.pop(), read.err())
}

/// Up to so many misfits of a value.
pub fn misfits<T: JsonSchema + 'static>(value: &Value, most: usize) -> Vec<Misfit> {
    let state = RefCell::new(State { most, ..State::default() });
    // An error: there are as many as wanted.
    let _ = Walk { shape: Some(shape_of::<T>()), state: &state }.deserialize(value);
    state.into_inner().found
}

#[derive(Default)]
struct State {
    path: Vec<Step>,
    found: Vec<Misfit>,
    most: usize,
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    /// None: anything fits.
    shape: Option<&'a Shape>,
    state: &'a RefCell<State>,
}

impl<'a> Walk<'a> {
    fn misfit<E: de::Error>(self, message: impl Into<String>) -> Result<(), E> {
        let mut state = self.state.borrow_mut();
        let path = state.path.clone();
        state.found.push(Misfit { path, message: message.into() });
        if state.found.len() < state.most { Ok(()) } else { Err(E::custom("it does not fit")) }
    }

    /// The shape, unless anything fits.
    fn narrow(self) -> Option<&'a Shape> {
        self.shape.filter(|shape| !shape.is_any())
    }

    fn is_secret(self) -> bool {
        self.state.borrow().path.iter().any(|step| matches!(step, Step::Field(name) if name == SECRET))
    }

    fn number<E: de::Error>(self) -> Result<(), E> {
        match self.narrow() {
            Some(shape) if !shape.number => self.misfit(format!("this is a number, and {}", shape.wanted())),
            Some(_) | None => Ok(()),
        }
    }

    fn inside<T, E>(self, step: Step, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.state.borrow_mut().path.push(step);
        let done = read();
        self.state.borrow_mut().path.pop();
        done
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        match self.narrow() {
            Some(shape) if !shape.truth => self.misfit(format!("this is true or false, and {}", shape.wanted())),
            Some(_) | None => Ok(()),
        }
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.number()
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.number()
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.number()
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let Some(shape) = self.narrow().filter(|shape| !shape.text) else { return Ok(()) };
        if self.is_secret() {
            return self.misfit(format!("this is text, and {}", shape.wanted()));
        }
        let plain = text.trim();
        if shape.number && plain.parse::<f64>().is_ok_and(f64::is_finite) {
            return self.misfit(format!("write the number {} without quotes", shortened(plain)));
        }
        if shape.truth && matches!(plain, "true" | "false") {
            return self.misfit(format!("write {plain} without quotes"));
        }
        let hint = match self.state.borrow().path.last() {
            Some(Step::Field(name)) if name == "jobId" => {
                Some("an id is a number: job.find gives the id of a name (GET /api/v1/jobs/by-name?name=NAME)")
            }
            Some(Step::Field(name)) if name == "runId" => {
                Some("an id is a number: job.runs gives those of a job's runs")
            }
            Some(Step::Field(_) | Step::Item(_)) | None => None,
        };
        let hint = hint.unwrap_or_else(|| shape.wanted());
        self.misfit(format!("\"{}\" is text, and {hint}", shortened(text)))
    }
    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.deserialize(from)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        // An extension of MessagePack.
        from.deserialize_ignored_any(de::IgnoredAny).map(drop)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let shape = match self.narrow() {
            Some(shape) if !shape.list => {
                self.misfit(format!("this is a list, and {}", shape.wanted()))?;
                None
            }
            shape => shape.and_then(|shape| shape.item.as_deref()),
        };
        for index in 0.. {
            let read = self.inside(Step::Item(index), || items.next_element_seed(Walk { shape, ..self }))?;
            if read.is_none() {
                break;
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let shape = match self.narrow() {
            Some(shape) if !shape.object => {
                self.misfit(format!("this is an object, and {}", shape.wanted()))?;
                None
            }
            shape => shape,
        };
        let mut names = HashSet::new();
        while let Some(name) = entries.next_key_seed(Name)? {
            let of_name = shape.and_then(|shape| shape.fields.get(&name).or(shape.rest.as_deref()));
            let is_new = names.insert(name.clone());
            self.inside(Step::Field(name), || {
                if !is_new {
                    self.misfit("stands here twice: write it once")?;
                }
                entries.next_value_seed(Walk { shape: of_name, ..self })
            })?;
        }
        Ok(())
    }
}

/// A name in a map; MessagePack has others than text, which the readers refuse.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Name {
    type Value = String;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name in quotes")
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
        Ok(name.to_owned())
    }
    fn visit_bytes<E: de::Error>(self, name: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(name).into_owned())
    }
    fn visit_u64<E: de::Error>(self, name: u64) -> Result<String, E> {
        Ok(name.to_string())
    }
    fn visit_i64<E: de::Error>(self, name: i64) -> Result<String, E> {
        Ok(name.to_string())
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
