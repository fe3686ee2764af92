//! What is stored or sent, byte for byte: one line for each form and each of its variants in `golden/*.jsonl` of the crate that has the
//! form. Tests of all crates share this file.
//!
//! - A line that is there never changes: nodes of the earlier release, directories and backups have these bytes. `UPDATE_GOLDEN=1`
//!   only adds the lines that are missing.
//! - Every line is readable for ever, also when no sample writes it any more.
//! - Of a form that is sent with the names of its fields, a reader passes over a field that it does not know.
//!
//! A form's name is its module and its type, `calls::ShardCall` for example. `tests/tidy` asks for a line of every type outside of
//! `schema` that can be written.
#![allow(dead_code, unused_macros, unused_imports, clippy::unwrap_used)]

#[path = "../diagnostic/mod.rs"]
pub mod diagnostic;
#[path = "../samples/mod.rs"]
pub mod samples;

use campanile_schema::frame;
use samples::grow;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

type Write<T> = Box<dyn Fn(&T) -> Vec<u8>>;
type Read<T> = Box<dyn Fn(&[u8]) -> Result<T, String>>;

/// How the values of a form become bytes and are read again.
pub struct Coding<T> {
    write: Write<T>,
    read: Read<T>,
    /// Whether fields may be added, since a reader passes over those that it does not know; and the names under which that is not so.
    grows: Option<&'static [&'static str]>,
    show: fn(&[u8]) -> String,
}

impl<T: Serialize + DeserializeOwned + 'static> Coding<T> {
    /// MessagePack with the names of fields, as `frame::encode` writes it.
    pub fn named() -> Self {
        Self::written(frame::encode)
    }

    /// MessagePack with the names of fields, by the function that the node writes it with.
    pub fn written(write: impl Fn(&T) -> Vec<u8> + 'static) -> Self {
        Self::of(write, |bytes| frame::decode("form", bytes).map_err(|error| error.to_string()))
    }

    /// MessagePack without the names of fields: nothing can be added.
    pub fn array(write: impl Fn(&T) -> Vec<u8> + 'static) -> Self {
        Self { grows: None, ..Self::written(write) }
    }

    /// One line of JSON.
    pub fn json() -> Self {
        Self {
            write: Box::new(|value| serde_json::to_vec(value).unwrap()),
            read: Box::new(|bytes| serde_json::from_slice(bytes).map_err(|error| error.to_string())),
            grows: None,
            show: |bytes| String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }
}

impl<T> Coding<T> {
    pub fn of(write: impl Fn(&T) -> Vec<u8> + 'static, read: impl Fn(&[u8]) -> Result<T, String> + 'static) -> Self {
        Self { write: Box::new(write), read: Box::new(read), grows: Some(&[]), show: diagnostic::of }
    }

    /// What stands under these names is the caller's own, or refuses unknown fields on purpose.
    #[must_use]
    pub fn but_under(self, names: &'static [&'static str]) -> Self {
        Self { grows: Some(names), ..self }
    }

    #[must_use]
    pub fn fixed(self) -> Self {
        Self { grows: None, ..self }
    }
}

/// The names of an enum's variants, and the function that names a value's. Its match has no wildcard, so a new variant does not
/// compile until it is named here, and a name without a sample fails the test.
macro_rules! variants {
    ($of:ident: $($variant:ident),+ $(,)?) => {{
        fn name(value: &$of) -> &'static str {
            match value { $($of::$variant { .. } => stringify!($variant)),+ }
        }
        let names: &'static [&'static str] = &[$(stringify!($variant)),+];
        let name: fn(&$of) -> &'static str = name;
        (names, name)
    }};
}
pub(crate) use variants;

struct Line {
    form: String,
    name: String,
    /// To read.
    fields: String,
    hex: String,
}

impl Line {
    fn text(&self) -> String {
        let Self { form, name, fields, hex } = self;
        serde_json::json!({"form": form, "name": name, "fields": fields, "hex": hex}).to_string()
    }

    fn of(text: &str) -> Self {
        let line: serde_json::Value = serde_json::from_str(text).unwrap();
        let field = |name: &str| line[name].as_str().unwrap().to_owned();
        Self { form: field("form"), name: field("name"), fields: field("fields"), hex: field("hex") }
    }

    fn bytes(&self) -> Vec<u8> {
        (0..self.hex.len()).step_by(2).map(|at| u8::from_str_radix(&self.hex[at..at + 2], 16).unwrap()).collect()
    }

    fn is(&self, other: &Self) -> bool {
        (&self.form, &self.name) == (&other.form, &other.name)
    }
}

type Reader = Box<dyn Fn(&[u8]) -> Result<(), String>>;

/// The forms of one golden file.
pub struct Forms {
    path: PathBuf,
    /// What this build writes.
    now: Vec<Line>,
    readers: BTreeMap<&'static str, Reader>,
    wrong: Vec<String>,
}

impl Forms {
    /// `path`: of the golden file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), now: Vec::new(), readers: BTreeMap::new(), wrong: Vec::new() }
    }

    /// Samples of a form that has no variants: with every field, and with all left out that may be.
    pub fn samples<T: 'static>(
        &mut self,
        form: &'static str,
        coding: Coding<T>,
        samples: impl IntoIterator<Item = (impl Into<String>, T)>,
    ) {
        for (name, value) in samples {
            let (name, bytes) = (name.into(), (coding.write)(&value));
            self.comes_back(form, &name, &coding, &bytes);
            let fields = (coding.show)(&bytes);
            let line = Line { form: form.to_owned(), name, fields, hex: hex(&bytes) };
            assert!(!self.now.iter().any(|other| other.is(&line)), "{form} {}: two samples have this name", line.name);
            self.now.push(line);
        }
        let read = coding.read;
        assert!(self.readers.insert(form, Box::new(move |bytes| read(bytes).map(drop))).is_none(), "{form} twice");
    }

    /// Samples of an enum, each with what tells it from others of its variant; see [`variants`].
    pub fn enumeration<T: 'static>(
        &mut self,
        form: &'static str,
        coding: Coding<T>,
        (names, name): (&[&'static str], fn(&T) -> &'static str),
        samples: impl IntoIterator<Item = (&'static str, T)>,
    ) {
        let samples: Vec<_> = samples.into_iter().collect();
        let sampled: BTreeSet<_> = samples.iter().map(|(_, value)| name(value)).collect();
        let lacking = names.iter().filter(|name| !sampled.contains(*name));
        self.wrong.extend(lacking.map(|name| format!("{form} {name}: write a sample of this variant")));
        let named = samples.into_iter().map(|(more, value)| {
            let name = name(&value);
            (if more.is_empty() { name.to_owned() } else { format!("{name}, {more}") }, value)
        });
        self.samples(form, coding, named);
    }

    /// What was read writes the same bytes again, also when a later release added fields.
    fn comes_back<T>(&mut self, form: &str, name: &str, coding: &Coding<T>, bytes: &[u8]) {
        let mut written = vec![("", bytes.to_vec())];
        written.extend(coding.grows.map(|but| (" of a later release", grow::grown_forms(bytes, but))));
        for (whose, sent) in written {
            match (coding.read)(&sent) {
                Ok(read) if (coding.write)(&read) == bytes => {}
                Ok(_) => self.wrong.push(format!("{form} {name}{whose}: what was read is not what was written")),
                Err(error) => self.wrong.push(format!("{form} {name}{whose} is not readable: {error}")),
            }
        }
    }

    /// Fails with all that is wrong.
    pub fn hold(mut self) {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let mut golden: Vec<Line> = text.lines().map(Line::of).collect();
        for line in &golden {
            match self.readers.get(line.form.as_str()).map(|read| read(&line.bytes())) {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    self.wrong
                        .push(format!("{} {}: these bytes are not readable any more: {error}", line.form, line.name));
                }
                None => self.wrong.push(format!("{}: a form with golden lines must be readable for ever", line.form)),
            }
        }
        let mut added = false;
        for line in self.now {
            if let Some(old) = golden.iter().find(|old| old.is(&line)) {
                if old.hex != line.hex {
                    let (form, name) = (&line.form, &line.name);
                    self.wrong.push(format!(
                        "{form} {name} has other bytes than before. A new field has a default and is left out while it has it; its sample \
                         is another line.\n      before: {}\n      now:    {}",
                        old.fields, line.fields
                    ));
                }
            } else if std::env::var_os("UPDATE_GOLDEN").is_some() {
                added = true;
                let behind = golden.iter().rposition(|other| other.form == line.form).map_or(golden.len(), |at| at + 1);
                golden.insert(behind, line);
            } else {
                self.wrong.push(format!("{} {}: UPDATE_GOLDEN=1 adds its line", line.form, line.name));
            }
        }
        if added {
            write(&self.path, &golden);
        }
        assert!(self.wrong.is_empty(), "{}:\n  {}", self.path.display(), self.wrong.join("\n  "));
    }
}

fn write(path: &Path, lines: &[Line]) {
    let text: Vec<String> = lines.iter().map(Line::text).collect();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.join("\n") + "\n").unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
