//! Rules of what people read, and of what must stand nowhere.

use super::{Found, Tree, numbered};

/// The headings of a decision record.
const HEADINGS: [&str; 5] = ["## Status", "## Context", "## Decision", "## Alternatives", "## Figures"];

/// Files that name hosts because a tool writes them.
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// In pieces, so that this file keeps its own rules.
fn machine_paths() -> [String; 3] {
    ["work", "root", "home"].map(|name| format!("/{name}/"))
}

/// A user that only exists in tests.
const FIXTURE_USER: &str = "ada";

fn registry_hosts() -> Vec<String> {
    let hosts = [
        ("crates", "io"),
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("maven", "org"),
        ("maven.apache", "org"),
        ("proxy.golang", "org"),
        ("deb.debian", "org"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
    ];
    hosts.iter().map(|(name, end)| format!("{name}.{end}")).collect()
}

/// No path of somebody's machine.
pub fn no_machine_paths(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (path, text) in tree.all() {
        for (number, line) in numbered(text) {
            for part in machine_paths() {
                let somebodys = |at: usize| {
                    // `cron/root/...` is a name, not a path.
                    let part_of_name = line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_.}".contains(c));
                    !part_of_name && !line[at + part.len()..].starts_with(FIXTURE_USER)
                };
                if line.match_indices(&part).any(|(at, _)| somebodys(at)) {
                    found.push(format!("{path}:{number}: {part} is a path of one machine"));
                }
            }
        }
    }
    found
}

/// No registry is named: whoever builds chooses where packages come from.
pub fn no_registry_hosts(tree: &Tree) -> Found {
    let hosts = registry_hosts();
    let mut found = Found::new();
    for (path, text) in tree.all().filter(|(path, _)| !LOCK_FILES.iter().any(|lock| path.ends_with(lock))) {
        for (number, line) in numbered(text) {
            for host in hosts.iter().filter(|host| line.contains(host.as_str())) {
                found.push(format!("{path}:{number}: names the registry {host}"));
            }
        }
    }
    found
}

/// Decision records are numbered without a hole, and each says all five things.
pub fn decisions_are_whole(tree: &Tree) -> Found {
    let mut found = Found::new();
    let records = tree.ending(".md").filter(|(path, _)| path.starts_with("docs/adr/"));
    for (index, (path, text)) in records.enumerate() {
        let number = format!("{:04}", index + 1);
        if !path.starts_with(&format!("docs/adr/{number}-")) {
            found.push(format!("{path}: the next record is {number}-NAME.md"));
        }
        let mut lines = text.lines();
        if !lines.next().is_some_and(|title| title.starts_with(&format!("# {number} "))) {
            found.push(format!("{path}: begins with '# {number} TITLE'"));
        }
        for heading in HEADINGS {
            let said = text.split(&format!("\n{heading}\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
            if said.is_none_or(|body| body.trim().is_empty()) {
                found.push(format!("{path}: nothing under '{heading}'"));
            }
        }
    }
    found
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// `a/b` and `../c` give `a/c`.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = parent(from).split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Links inside the repository lead somewhere, and the source files that documents name are there.
pub fn documents_name_what_is_there(tree: &Tree) -> Found {
    let mut found = Found::new();
    for (path, text) in tree.ending(".md") {
        let mut in_code = false;
        for (number, line) in numbered(text) {
            in_code ^= line.trim_start().starts_with("```");
            if in_code {
                continue;
            }
            let links = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for link in links.filter(|link| !link.contains("://") && !link.starts_with(['#', '<'])) {
                let file = link.split(['#', ' ']).next().unwrap_or_default();
                if !tree.exists(&resolved(path, file)) {
                    found.push(format!("{path}:{number}: the link {link} leads nowhere"));
                }
            }
            for name in line.split('`').skip(1).step_by(2) {
                let source = name.ends_with(".rs") && !name.contains([' ', '*', '<', '{']);
                let ending = format!("/{name}");
                if source && !tree.all().any(|(known, _)| known == name || known.ends_with(&ending)) {
                    found.push(format!("{path}:{number}: there is no file {name}"));
                }
            }
        }
    }
    found
}
