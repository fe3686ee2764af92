//! Rules of the manifests: which crate may know which, and what every crate declares.

use super::{Found, Tree};
use toml::{Table, Value};

/// Our crates: directory, name, which of the others (`campanile-NAME`) it may use. Arrows point one way; a new crate gets its line here.
const CRATES: [(&str, &str, &[&str]); 15] = [
    ("schema", "campanile-schema", &[]),
    ("actors/core", "campanile-core", &["schema"]),
    ("actors/ports", "campanile-ports", &["schema", "core"]),
    ("actors", "campanile-actors", &["schema", "core", "ports"]),
    ("client", "campanile-client", &["schema"]),
    ("loadtest", "campanile-loadtest", &["schema", "client"]),
    ("src/security", "campanile-security", &["schema", "ports"]),
    // The feature `testing`, which no program has, runs a session on a store.
    ("src/store", "campanile-store", &["schema", "core", "ports", "security", "actors"]),
    ("src/archive", "campanile-archive", &["schema", "core", "ports", "actors", "store"]),
    ("src/cluster", "campanile-cluster", &["schema", "core", "ports", "actors", "security"]),
    ("src/actions", "campanile-actions", &["schema", "core", "ports", "security", "client"]),
    ("src/jobfiles", "campanile-jobfiles", &["schema", "core"]),
    ("src/imports", "campanile-imports", &["schema", "core", "jobfiles"]),
    (
        "src/serve",
        "campanile-serve",
        &["schema", "core", "ports", "actors", "security", "store", "archive", "cluster", "jobfiles"],
    ),
    (
        ".",
        "campanile",
        &[
            "schema", "core", "ports", "actors", "client", "security", "store", "archive", "cluster", "actions",
            "jobfiles", "imports", "serve",
        ],
    ),
];

/// Crates of others that ours must not use, with the reason.
const KEPT_OUT: [(&str, &[&str], &str); 2] = [
    ("campanile-schema", &["tokio", "ractor", "axum", "rustix"], "it only says what is stored and sent"),
    ("campanile-core", &["tokio", "ractor", "axum", "rustix", "rand", "getrandom", "tracing", "metrics"], "it is pure"),
];

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

fn manifest_path(directory: &str) -> String {
    if directory == "." { "Cargo.toml".to_owned() } else { format!("{directory}/Cargo.toml") }
}

fn manifest(tree: &Tree, directory: &str) -> Option<Result<Table, String>> {
    let path = manifest_path(directory);
    tree.text(&path).map(|text| text.parse().map_err(|error| format!("{path}: {error}")))
}

/// Where the sources of each crate are, `actors/src/` for example, of those that the tree has.
pub fn sources(tree: &Tree) -> Vec<String> {
    let of = |directory: &str| match directory {
        "." => "src/".to_owned(),
        _ if tree.exists(&format!("{directory}/src")) => format!("{directory}/src/"),
        // A crate that is a folder of another one has its sources beside its manifest.
        _ => format!("{directory}/"),
    };
    CRATES.iter().map(|(directory, ..)| of(directory)).filter(|sources| tree.exists(sources)).collect()
}

/// Every dependency table of a manifest, those for single platforms too, with the section's name.
fn dependencies(manifest: &Table) -> Vec<(&'static str, &Table)> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let places: Vec<&Table> = std::iter::once(manifest).chain(platforms).collect();
    let of = |section: &'static str, place: &'_ Table| place.get(section).and_then(Value::as_table).is_some();
    let mut found = Vec::new();
    for place in places {
        for section in SECTIONS.into_iter().filter(|section| of(section, place)) {
            if let Some(table) = place.get(section).and_then(Value::as_table) {
                found.push((section, table));
            }
        }
    }
    found
}

/// schema <- core <- ports <- actors; ports <- security <- store, cluster, actions, serve; store <- archive <- serve; core <- jobfiles <-
/// serve, imports; schema <- client <- loadtest, actions; the root uses all but loadtest.
pub fn arrows(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (directory, name, allowed) in CRATES {
        let manifest = match manifest(tree, directory) {
            None => continue,
            Some(Err(error)) => {
                found.push(error);
                continue;
            }
            Some(Ok(manifest)) => manifest,
        };
        let out = KEPT_OUT.iter().filter(|(of, ..)| *of == name);
        let out: Vec<(&str, &str)> = out.flat_map(|(_, names, why)| names.iter().map(move |n| (*n, *why))).collect();
        for (section, table) in dependencies(&manifest) {
            for used in table.keys().map(String::as_str) {
                let ours = used.strip_prefix("campanile").map(|rest| rest.trim_start_matches('-'));
                if ours.is_some_and(|ours| !allowed.contains(&ours)) {
                    found.push(format!("{}: {name} must not know {used}", manifest_path(directory)));
                }
                if let Some((_, why)) = out.iter().find(|(n, _)| *n == used && section == "dependencies") {
                    found.push(format!("{}: {name} must not use {used}: {why}", manifest_path(directory)));
                }
            }
        }
    }
    found
}

/// Every member is known above, and takes the lints of the workspace.
pub fn members(tree: &Tree) -> Found {
    let root = match manifest(tree, ".") {
        None => return vec!["Cargo.toml: missing".to_owned()],
        Some(Err(error)) => return vec![error],
        Some(Ok(root)) => root,
    };
    let members = root.get("workspace").and_then(|w| w.get("members")).and_then(Value::as_array);
    let mut found = Found::new();
    for member in members.into_iter().flatten().filter_map(Value::as_str) {
        let path = manifest_path(member);
        if !CRATES.iter().any(|(directory, ..)| *directory == member) {
            found.push(format!("{path}: the crate is not in CRATES of tests/tidy/support/manifests.rs"));
        }
        let Some(Ok(manifest)) = manifest(tree, member) else {
            found.push(format!("{path}: cannot be read"));
            continue;
        };
        let lints = manifest.get("lints").and_then(|l| l.get("workspace")).and_then(Value::as_bool);
        if lints != Some(true) {
            found.push(format!("{path}: write [lints] workspace = true"));
        }
    }
    found
}

/// Fault hooks are in a build only when it asks for them: no default feature, and no dependency, switches them on.
pub fn faults_are_asked_for(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (directory, ..) in CRATES {
        let Some(Ok(manifest)) = manifest(tree, directory) else { continue };
        let path = manifest_path(directory);
        if manifest.get("features").and_then(|f| f.get("default")).is_some() {
            found.push(format!("{path}: a default feature; a release has none"));
        }
        let workspace = manifest.get("workspace").and_then(|w| w.get("dependencies")).and_then(Value::as_table);
        let tables = dependencies(&manifest).into_iter().map(|(_, table)| table).chain(workspace);
        for (name, dependency) in tables.flatten() {
            let features = dependency.get("features").and_then(Value::as_array);
            if features.is_some_and(|f| f.iter().any(|feature| feature.as_str() == Some("faults"))) {
                found.push(format!("{path}: {name} is used with the feature faults in every build"));
            }
        }
    }
    found
}
