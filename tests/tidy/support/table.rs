//! The table of operations is the only place that names a route or a method of RPC.

use super::{Found, Tree, code_of, numbered, sources::test_lines};

/// Where the table is.
const TABLE: &str = "schema/src/operations/";

/// Files that name operations by right, each with its reason. An entry that names none is an error too.
const NAMED_IN: [(&str, &str); 1] =
    [("src/serve/api/examples.rs", "an example for each operation; a test asks for the examples of every row")];

/// Texts between quotes of a line, roughly.
fn texts(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

/// Names such as `job.pause`, and paths such as `/readyz`, as the table has them.
fn of_the_table(tree: &Tree) -> (Vec<String>, Vec<String>) {
    let (mut names, mut paths) = (Vec::new(), Vec::new());
    for (_, text) in tree.ending(".rs").filter(|(path, _)| path.starts_with(TABLE)) {
        for (_, line) in numbered(text) {
            let code = code_of(line);
            let is_row = code.contains(" = \"") || code.contains(": &str = \"");
            names.extend(texts(code).filter(|text| is_row && is_name(text)).map(str::to_owned));
            // The root alone is no sign of a route.
            let of_http = code.contains("Http::");
            paths.extend(texts(code).filter(|text| of_http && text.len() > 1).map(str::to_owned));
        }
    }
    (names, paths)
}

fn is_name(text: &str) -> bool {
    text.split_once('.').is_some_and(|(noun, verb)| {
        let is_noun = !noun.is_empty() && noun.bytes().all(|byte| byte.is_ascii_lowercase());
        is_noun && !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_alphabetic())
    })
}

/// A text that is a path of the API, or begins or ends as one does. A sentence may speak of one.
fn is_route(text: &str, paths: &[String]) -> bool {
    text.starts_with("/api/v1") || text.contains("}/api/v1") || paths.iter().any(|path| path == text)
}

/// Nothing but the table, tests and examples names a route or a method.
pub fn routes_stand_in_the_table(tree: &Tree) -> Found {
    let (names, paths) = of_the_table(tree);
    let (mut found, mut needed) = (Found::new(), Vec::new());
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !path.starts_with(TABLE)) {
        let tests = test_lines(path, text).first().map_or(usize::MAX, |(number, _)| *number);
        let excused = NAMED_IN.iter().any(|(file, reason)| *file == path && !reason.is_empty());
        for (number, line) in numbered(text).take_while(|(number, _)| *number < tests) {
            // A `//` within a text is the beginning of a host, not of a comment.
            let code = if line.trim_start().starts_with("//") { "" } else { line };
            let named = texts(code).find(|text| is_route(text, &paths) || names.iter().any(|name| name == text));
            match named {
                Some(_) if excused => needed.push(path),
                Some(named) => found.push(format!("{path}:{number}: \"{named}\": take it from {TABLE}")),
                None => {}
            }
        }
    }
    let idle = NAMED_IN.iter().filter(|(file, _)| tree.text(file).is_some() && !needed.contains(file));
    found.extend(idle.map(|(file, _)| format!("{file}: names no operation; take its entry out of NAMED_IN")));
    found
}
