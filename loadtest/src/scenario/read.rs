//! Reads a workload file. What is wrong is told with file, line and column, and with the word that was probably meant.

use super::{
    Scenario, rules,
    words::{closest, explained},
};
use serde::Deserialize;
use std::{borrow::Cow, fmt, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

/// The table that shrinks the others.
const SHORT: &str = "short";
/// The table that the short form does not take over.
const TARGET: &str = "target";

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}
impl std::error::Error for Wrong {}

/// Both forms of a file.
#[derive(Clone, Debug)]
pub struct Forms {
    pub full: Scenario,
    /// The full one where there is no `[short]`.
    pub short: Scenario,
}

/// Reads the text of a file; `file` is only for messages.
pub fn read(file: &str, text: &str) -> Result<Forms, Wrong> {
    let at = |span: Option<Range<usize>>, message: String| {
        let (line, column) = place(text, span.map_or(0, |span| span.start));
        Wrong { file: file.to_owned(), line, column, message }
    };
    let told = |error: toml::de::Error| at(error.span(), explained(error.message().trim_end()));
    let document = DeTable::parse(text).map_err(told)?;
    let whole = document.span();
    let mut full = document.into_inner();
    let short = full.remove(SHORT);
    let mut shrunk = full.clone();
    // What is aimed at is said of the full form.
    shrunk.remove(TARGET);
    if let Some(short) = short {
        let span = short.span();
        match short.into_inner() {
            DeValue::Table(table) => lay_over(&mut shrunk, table).map_err(|(span, message)| at(Some(span), message))?,
            other => return Err(at(Some(span), format!("[short] is a table, not a {}", other.type_str()))),
        }
    }
    let form = |table: DeTable<'_>| -> Result<Scenario, Wrong> {
        let places = table.clone();
        let scenario = Scenario::deserialize(Deserializer::from(Spanned::new(whole.clone(), table))).map_err(told)?;
        match rules::broken(&scenario) {
            None => Ok(scenario),
            Some((path, message)) => Err(at(span_of(&places, &path), message)),
        }
    };
    Ok(Forms { full: form(full)?, short: form(shrunk)? })
}

type Misplaced = (Range<usize>, String);

/// Tables are laid over tables key by key; entries of arrays of tables over the ones with the same name.
fn lay_over<'i>(base: &mut DeTable<'i>, over: DeTable<'i>) -> Result<(), Misplaced> {
    for (key, value) in over {
        let span = value.span();
        match (base.get_mut(&key).map(Spanned::get_mut), value.into_inner()) {
            (Some(DeValue::Table(base)), DeValue::Table(over)) => lay_over(base, over)?,
            (Some(DeValue::Array(base)), DeValue::Array(over)) if over.iter().all(|v| v.get_ref().is_table()) => {
                for entry in over {
                    lay_entry(base, entry)?;
                }
            }
            (_, other) => {
                base.insert(key, Spanned::new(span, other));
            }
        }
    }
    Ok(())
}

fn lay_entry<'i>(base: &mut toml::de::DeArray<'i>, entry: Spanned<DeValue<'i>>) -> Result<(), Misplaced> {
    let span = entry.span();
    let DeValue::Table(over) = entry.into_inner() else { return Ok(()) };
    let Some(name) = name_of(&over) else {
        return Err((span, "an entry in [short] needs the name of the entry that it changes".to_owned()));
    };
    let names: Vec<String> = base.iter().filter_map(|v| v.get_ref().as_table().and_then(name_of)).collect();
    match base.iter_mut().map(Spanned::get_mut).find(|v| v.as_table().and_then(name_of).as_deref() == Some(&*name)) {
        Some(DeValue::Table(table)) => lay_over(table, over),
        Some(_) | None => {
            let meant = closest(&name, names.iter().map(String::as_str));
            let hint = meant.map_or_else(String::new, |meant| format!("; did you mean \"{meant}\"?"));
            Err((span, format!("[short] changes \"{name}\", which is not there{hint}")))
        }
    }
}

fn name_of(table: &DeTable<'_>) -> Option<String> {
    table.get("name").and_then(|v| v.get_ref().as_str()).map(str::to_owned)
}

/// Where the value of a path such as `load.0.rate` stands, or the nearest thing around it.
fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let mut parts = path.split('.');
    let mut found = table.get(&Cow::from(parts.next()?) as &str)?;
    for part in parts {
        let inner = match found.get_ref() {
            DeValue::Table(table) => table.get(part),
            DeValue::Array(entries) => part.parse().ok().and_then(|n: usize| entries.get(n)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        };
        match inner {
            Some(inner) => found = inner,
            None => break,
        }
    }
    Some(found.span())
}

/// Line and column of an offset, both from 1; columns in characters.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SOUND: &str =
        "name = \"x\"\nabout = \"y\"\nseconds = 60\n[[load]]\nname = \"a\"\nkind = \"rate\"\nrate = 100\n";

    /// Three phases, and a load that is due in some of them.
    const PHASES: &str = "name = \"x\"\nabout = \"y\"\n[[phase]]\nname = \"p\"\nseconds = 1\n[[phase]]\nname = \"q\"\nseconds = 1\n\
        [[phase]]\nname = \"r\"\nseconds = 1\n[[load]]\nname = \"a\"\nkind = \"rate\"\nphases = [PHASES]\nrate = 1\n";

    #[test]
    fn the_short_form_lies_over_the_full_one() {
        let text = format!(
            "{SOUND}[expect]\np99_ms = 50\nrss_mb = 9\n[short]\nseconds = 5\n[[short.load]]\nname = \"a\"\nrate = 7\n[short.expect]\np99_ms = 500\n"
        );
        let forms = read("f", &text).unwrap();
        assert_eq!((forms.full.seconds, forms.full.loads[0].rate, forms.full.expect.p99_ms), (60, 100.0, Some(50.0)));
        assert_eq!((forms.short.seconds, forms.short.loads[0].rate, forms.short.expect.p99_ms), (5, 7.0, Some(500.0)));
        assert_eq!((forms.short.loads.len(), forms.short.expect.rss_mb), (1, Some(9.0)));
    }

    #[test]
    fn targets_are_those_of_their_form() {
        let text = format!("{SOUND}[target]\np99_ms = 5\n[short]\nseconds = 5\n");
        let forms = read("f", &text).unwrap();
        assert_eq!((forms.full.target.p99_ms, forms.short.target.p99_ms), (Some(5.0), None));
        let forms = read("f", &format!("{text}[short.target]\np99_ms = 9\n")).unwrap();
        assert_eq!((forms.full.target.p99_ms, forms.short.target.p99_ms), (Some(5.0), Some(9.0)));
    }

    #[test]
    fn slips_are_told_with_their_place() {
        let cases = [
            ("name = \"x\"\nabout = \"y\"\nsecnds = 1\n", "f:3:1: unknown field `secnds`", "did you mean `seconds`?"),
            (&format!("{SOUND}jbos = 1\n"), "f:8:1: unknown field `jbos`", "did you mean `jobs`?"),
            (&format!("{SOUND}arrivals = \"evn\"\n"), "f:8:12: unknown variant `evn`", "did you mean `even`?"),
            (&format!("{SOUND}arrivals = \"cron\"\njobs = 60\n"), "f:9:8: ", "leave jobs out"),
            (
                &format!("{SOUND}arrivals = \"cron\"\n").replace("\"rate\"", "\"trigger\""),
                "f:8:12: arrivals \"cron\" is for kind \"rate\"",
                "",
            ),
            (
                &format!("{SOUND}arrivals = \"cron\"\n").replace("rate = 100\n", "rate = 200000\n"),
                "f:7:8: with arrivals \"cron\" there are 60 jobs",
                "at most 10000000",
            ),
            (&format!("{SOUND}fail_percent = 101\n"), "f:8:16: ", "0 to 100"),
            (&format!("{SOUND}phases = [\"loud\"]\n"), "f:8:10: ", "no phase \"loud\""),
            (&PHASES.replace("PHASES", "\"p\", \"r\""), "f:15:10: its phases follow one another", ""),
            (&format!("{SOUND}[short]\nsecond = 1\n"), "f:9:1: unknown field `second`", "did you mean `seconds`?"),
            (&format!("{SOUND}[[short.load]]\nname = \"b\"\n"), "f:8:1: [short] changes \"b\"", "did you mean \"a\"?"),
            (&format!("{SOUND}[expect.group.aa]\np99_ms = 1\n"), "f:8:", "did you mean \"a\"?"),
            (&format!("{SOUND}[target.group.aa]\np99_ms = 1\n"), "f:8:", "did you mean \"a\"?"),
            (&format!("{SOUND}[target]\nrestart_s = 1\n"), "f:9:13: ", "no [[phase]] restarts the node"),
            ("name = \"x\nabout = 1\n", "f:1:", ""),
            ("name = 1\n", "f:1:8: invalid type", ""),
            ("", "f:1:1: missing field `name`", ""),
        ];
        for (text, begin, holds) in cases {
            let wrong = read("f", text).unwrap_err().to_string();
            assert!(wrong.starts_with(begin), "{text}\n  told: {wrong}\n  not: {begin} ... {holds}");
            assert!(wrong.contains(holds), "{text}\n  told: {wrong}\n  not: {begin} ... {holds}");
        }
    }
}
