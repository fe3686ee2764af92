//! `docs/reference/operations.md`: every operation and its name in each interface. `UPDATE_GOLDEN=1` writes it.

use super::table::{self, There, operations};
use campanile_schema::operations::Row;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
};

const HEAD: &str = "# Operations\n\nEvery operation and its name in each interface. Written by `tests/interfaces/parity` from the program itself: \
    change the program, not this page. Parameters and bodies have the same names everywhere: HTTP takes some in path and query, RPC all \
    of them in one map ([rpc.md](../rpc.md)), a command as arguments and flags ([cli.md](cli.md)), Python as arguments. Shapes with \
    every field, with examples, are in a node's `/openapi.json`; what errors mean is in [errors.md](../errors.md).\n";

/// An operation of the OpenAPI document.
struct Described<'a> {
    verb: String,
    path: &'a str,
    value: &'a Value,
}

fn described(document: &Value) -> BTreeMap<&str, Described<'_>> {
    let mut all = BTreeMap::new();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        for (verb, value) in verbs.as_object().unwrap() {
            let described = Described { verb: verb.to_uppercase(), path, value };
            all.insert(value["operationId"].as_str().unwrap(), described);
        }
    }
    all
}

/// Name of a schema, or of the items of a list.
fn shape(schema: &Value) -> Option<String> {
    let name = |value: &Value| value["$ref"].as_str()?.rsplit('/').next().map(str::to_owned);
    name(schema).or_else(|| name(&schema["items"]).map(|item| format!("{item}, many")))
}

fn takes(operation: &Value) -> Vec<String> {
    let mut all: Vec<String> = operation["parameters"].as_array().into_iter().flatten().map(parameter).collect();
    for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
        let shape = shape(&content["schema"]).map_or_else(|| kind.clone(), |name| format!("`{name}`"));
        let optional = if operation["requestBody"]["required"] == true { "" } else { ", optional" };
        all.push(format!("a body: {shape}{optional}"));
    }
    all
}

fn parameter(parameter: &Value) -> String {
    let text = |field: &str| parameter[field].as_str().unwrap_or_default();
    let optional = if parameter["required"] == true { "" } else { ", optional" };
    let told = text("description").trim_end_matches('.');
    let told = if told.is_empty() { String::new() } else { format!(": {}", told.replace(['|', '\n'], " ")) };
    format!("`{}` ({}{optional}){told}", text("name"), text("in"))
}

fn gives(operation: &Value) -> Vec<String> {
    let good = operation["responses"].as_object().unwrap().iter().filter(|(status, _)| status.starts_with('2'));
    let told = good.map(|(status, response)| {
        let content = response["content"].as_object().into_iter().flatten().next();
        let what = content.map(|(kind, content)| {
            shape(&content["schema"]).map_or_else(|| format!(" {kind}"), |name| format!(" `{name}`"))
        });
        format!("{status}{}", what.unwrap_or_default())
    });
    told.collect()
}

fn refusals(operation: &Value) -> BTreeSet<String> {
    let bad = operation["responses"].as_object().unwrap().iter().filter(|(status, _)| !status.starts_with('2'));
    bad.flat_map(|(_, response)| response["content"].as_object().into_iter().flatten())
        .flat_map(|(_, content)| content["examples"].as_object().into_iter().flatten())
        .map(|(code, _)| format!("[`{code}`](../errors.md#{})", code.to_ascii_lowercase()))
        .collect()
}

fn name(there: There, before: &str) -> String {
    there.map_or_else(|why| format!("- ({why})"), |name| format!("`{before}{name}`"))
}

fn section(row: &Row, described: &BTreeMap<&str, Described<'_>>, text: &mut String) {
    let of_http =
        table::http(row).ok().map(|id| described.get(id.as_str()).unwrap_or_else(|| panic!("HTTP has no {id}")));
    write!(text, "\n### {}\n\n{}.\n\n| | |\n|---|---|\n", row.name, row.summary()).unwrap();
    let http = match of_http {
        Some(of) => format!("`{} {}`", of.verb, of.path),
        None => name(table::http(row), ""),
    };
    let mut rows = vec![
        ("HTTP", http),
        ("RPC", name(table::rpc(row), "")),
        ("command", name(table::cli(row), "campanile ")),
        ("Python", name(table::python(row), "")),
    ];
    if let Some(of) = of_http {
        rows.push(("takes", takes(of.value).join("; ")));
        rows.push(("gives", gives(of.value).join("; ")));
        rows.push(("refuses with", refusals(of.value).into_iter().collect::<Vec<_>>().join(", ")));
    }
    for (what, told) in rows.into_iter().filter(|(_, told)| !told.is_empty()) {
        writeln!(text, "| {what} | {told} |").unwrap();
    }
}

#[test]
fn every_operation_is_in_the_reference_with_its_names() {
    let document = campanile_serve::api::openapi_document();
    let described = described(&document);
    let mut text = HEAD.to_owned();
    let mut nouns: Vec<&str> = Vec::new();
    for row in operations() {
        if !nouns.contains(&row.noun()) {
            nouns.push(row.noun());
        }
    }
    for of in nouns {
        write!(text, "\n## {of}\n").unwrap();
        for row in operations().filter(|row| row.noun() == of) {
            section(row, &described, &mut text);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/operations.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == text, "docs/reference/operations.md is not what the program has: write it with UPDATE_GOLDEN=1");
}
