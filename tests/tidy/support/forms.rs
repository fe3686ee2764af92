//! A rule of what is stored or sent: its bytes are in golden lines.

use super::{Found, Tree, code_of, has_word, numbered, sources::test_lines};
use std::collections::BTreeSet;

/// Whose forms need golden lines besides those of all other crates: older modules of `schema` have theirs under names of their own.
const OF_SCHEMA: [&str; 2] = ["schema/src/peer/", "schema/src/stored/"];

/// Reports, command output, settings and the like: neither stored by a node nor sent between nodes. A path, or a path and a type, with
/// the reason. An entry that nothing needs is an error too.
const NOT_FORMS: [(&str, &str); 27] = [
    ("client/src/caller/watch.rs::Body", "writes WatchRuns or WatchJobs of schema"),
    ("client/src/executor/outgoing.rs::FinishRef", "the borrowed twin of Finish, whose bytes are in schema/golden/rpc"),
    ("loadtest/", "reports, scenarios and histories of one load run; no node reads them"),
    ("schema/src/peer/outbox.rs", "its lines are in schema/golden/stored.jsonl under other names"),
    (
        "schema/src/stored/calendars.rs::StoredJobCalendar",
        "a part of definitions, whose lines are in schema/golden/stored.jsonl",
    ),
    ("schema/src/stored/graph.rs", "its lines are in schema/golden/stored.jsonl under other names"),
    ("schema/src/stored/hooks.rs", "parts of definitions, whose lines are in schema/golden/stored.jsonl"),
    ("schema/src/stored/limits.rs", "a part of definitions, whose lines are in schema/golden/stored.jsonl"),
    ("schema/src/stored/outbox.rs", "its lines are in schema/golden/stored.jsonl under other names"),
    ("schema/src/stored/sealed.rs", "a part of definitions, whose lines are in schema/golden/stored.jsonl"),
    ("schema/src/stored/windows.rs", "parts of definitions, whose lines are in schema/golden/stored.jsonl"),
    ("src/actions/command/confine.rs", "an argument that a program gives itself"),
    ("src/actions/command/wire.rs", "lines in a pipe between two processes of one program"),
    ("src/archive/days/day.rs", "command output"),
    ("src/archive/days/keep.rs", "command output"),
    ("src/archive/report.rs", "command output"),
    ("src/archive/restore.rs", "command output"),
    ("src/cli/doctor.rs", "command output"),
    (
        "src/cli/remote.rs::DevFile",
        "each start of `campanile dev` writes it anew, and an unreadable one is passed over",
    ),
    ("src/cli/store_restore.rs", "command output"),
    ("src/config/", "settings"),
    ("src/files/mod.rs::WhenGone", "a setting"),
    ("src/jobfiles/manifest/", "files that people write, and that export writes for them"),
    ("src/serve/api/bulk.rs", "a body of HTTP, in the OpenAPI document"),
    ("src/serve/api/problem.rs", "a body of HTTP, in the OpenAPI document"),
    ("src/store/embedded/check.rs", "command output"),
    ("src/store/embedded/mod.rs::DiskUsage", "a report"),
];

/// A type that can be written: the file, the line, its name.
struct Written<'t> {
    path: &'t str,
    number: usize,
    name: String,
}

impl Written<'_> {
    /// Module and type, as golden lines name a form.
    fn form(&self) -> String {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        let module = match file.trim_end_matches(".rs") {
            "mod" | "lib" | "main" => folder.rsplit('/').next().unwrap_or_default(),
            module => module,
        };
        format!("{module}::{}", self.name)
    }

    fn is_excused_by(&self, entry: &str) -> bool {
        format!("{}::{}", self.path, self.name).starts_with(entry)
    }
}

/// What stands in a line after `struct` or `enum`, or after `Serialize for`.
fn name_behind(code: &str, words: &[&str]) -> Option<String> {
    let behind = words.iter().find_map(|word| code.split_once(word))?.1;
    // A macro's type has its parameter's name.
    let name: String =
        behind.trim_start_matches('$').chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// Types with a derived or a hand-written `Serialize`, tests left out.
fn written<'t>(path: &'t str, text: &'t str) -> Vec<Written<'t>> {
    let tests = test_lines(path, text).first().map_or(usize::MAX, |(number, _)| *number);
    let (mut found, mut derive, mut derived) = (Vec::new(), None::<String>, false);
    for (number, line) in numbered(text).take_while(|(number, _)| *number < tests) {
        let code = code_of(line).trim();
        if code.starts_with("#[derive(") {
            derive = Some(String::new());
        }
        if let Some(list) = &mut derive {
            list.push_str(code);
            if code.ends_with(")]") {
                derived |= has_word(list, "Serialize");
                derive = None;
            }
            continue;
        }
        let name = if code.starts_with("impl") {
            name_behind(code, &[" Serialize for ", "::Serialize for "])
        } else {
            let item = name_behind(&format!(" {code}"), &[" struct ", " enum "]);
            item.filter(|_| std::mem::take(&mut derived))
        };
        found.extend(name.map(|name| Written { path, number, name }));
    }
    found
}

/// The folder of the crate that a file belongs to.
fn crate_of<'t>(tree: &'t Tree, path: &str) -> &'t str {
    let folders = tree.ending("/Cargo.toml").map(|(manifest, _)| manifest.trim_end_matches("Cargo.toml"));
    folders.filter(|folder| path.starts_with(folder)).max_by_key(|folder| folder.len()).unwrap_or_default()
}

/// The forms that have golden lines in this crate.
fn golden_forms(tree: &Tree, of: &str) -> BTreeSet<String> {
    let folder = format!("{of}golden/");
    let files = tree.ending(".jsonl").filter(|(path, _)| path.starts_with(&folder));
    let lines = files.flat_map(|(_, text)| text.lines());
    let form = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(line.get("form")?.as_str()?.to_owned())
    };
    lines.filter_map(form).collect()
}

/// A type that can be written is in golden lines that a test of its crate reads, or it is neither stored nor sent.
pub fn forms_have_golden_lines(tree: &Tree) -> Found {
    let (mut found, mut needed) = (Found::new(), BTreeSet::new());
    let counts = |path: &str| !path.starts_with("schema/") || OF_SCHEMA.iter().any(|of| path.starts_with(of));
    for (path, text) in tree.ending(".rs").filter(|(path, _)| counts(path)) {
        let types = written(path, text);
        if types.is_empty() {
            continue;
        }
        let of = crate_of(tree, path);
        let forms = golden_forms(tree, of);
        for one in types {
            if let Some((entry, _)) = NOT_FORMS.iter().find(|(entry, why)| one.is_excused_by(entry) && !why.is_empty())
            {
                needed.insert(*entry);
                continue;
            }
            let (form, number) = (one.form(), one.number);
            let named = format!("\"{form}\"");
            let read = tree.ending(".rs").any(|(file, text)| file.starts_with(of) && text.contains(&named));
            if !forms.contains(&form) || !read {
                found.push(format!(
                    "{path}:{number}: {} is written; have a test keep golden lines of {form} in {of}golden, or say in NOT_FORMS of \
                     tests/tidy/support/forms.rs why it is neither stored nor sent between nodes",
                    one.name
                ));
            }
        }
    }
    let idle = NOT_FORMS.iter().map(|(entry, _)| *entry).filter(|entry| {
        let path = entry.split("::").next().unwrap_or_default();
        tree.exists(path) && !needed.contains(entry)
    });
    found.extend(idle.map(|entry| format!("{entry}: nothing there is written; take its entry out of NOT_FORMS")));
    found
}
