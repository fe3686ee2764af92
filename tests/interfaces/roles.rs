//! `docs/security.md` against the program: its roles, and the least role of each operation.

use campanile_schema::operations::{self, LeastRole};
use campanile_security::auth::Role;
use std::{fs, path::Path};

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/security.md")).unwrap()
}

/// Cells of the table below this heading row.
fn table<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let below = page.split_once(heading).unwrap_or_else(|| panic!("no table with the heading '{heading}'")).1;
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn every_role_has_its_row() {
    let page = page();
    let rows = table(&page, "| role | HTTP and CLI |");
    let roles: Vec<&str> = rows.iter().map(|cells| cells[0]).collect();
    let known: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).chain(["no token"]).collect();
    assert_eq!(roles, known);
}

#[test]
fn the_least_role_of_every_operation_is_that_of_the_table_of_operations() {
    let page = page();
    let rows = table(&page, "| least role | operations |");
    let named: Vec<(&str, &str)> =
        rows.iter().flat_map(|cells| cells[1].split(", ").map(|name| (cells[0], name.trim_matches('`')))).collect();
    let mut used = vec![false; named.len()];
    for row in operations::all() {
        let exact = named.iter().position(|(_, name)| *name == row.name);
        let of_kind = |name: &str| name.strip_suffix('*').is_some_and(|kind| row.name.starts_with(kind));
        let found = exact.or_else(|| named.iter().position(|(_, name)| of_kind(name)));
        let found = found.unwrap_or_else(|| panic!("docs/security.md does not name {}", row.name));
        used[found] = true;
        let least = match row.least {
            LeastRole::Public => "no token",
            LeastRole::Metrics => "metrics",
            LeastRole::Executor => "executor",
            LeastRole::Tenant => "tenant",
            LeastRole::Operator => "operator",
        };
        assert_eq!(
            named[found].0, least,
            "{}: docs/security.md names another role than the table of operations",
            row.name
        );
    }
    let unused: Vec<_> = named.iter().zip(used).filter(|(_, used)| !used).map(|(named, _)| named).collect();
    assert!(unused.is_empty(), "docs/security.md names what is no operation: {unused:?}");
}

/// The tests that are named for the threats are there.
#[test]
fn the_tests_of_the_threats_exist() {
    let page = page();
    let rows = table(&page, "| threat | defence | test |");
    assert!(rows.len() > 10);
    for cells in rows {
        for file in cells[2].split(", ").map(|file| file.trim_matches('`')) {
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(file).exists(), "{file}");
        }
    }
}
