//! `docs/concepts.md` has a table of the reasons to wait, and `docs/guides/explain.md` one of the other reasons of explanations: exactly the
//! codes that a node can answer with.

use campanile_schema::{reason::ReasonCode, wait::WaitCode};
use std::collections::BTreeSet;

/// The codes in the first column of the table under a title.
fn documented<'a>(page: &'a str, title: &str) -> Vec<&'a str> {
    let section = page.split(&format!("\n## {title}\n")).nth(1).expect("the page has the section");
    let table = section.lines().skip_while(|line| !line.starts_with("| code |")).skip(2);
    table.map_while(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_table_of_wait_reasons_has_exactly_the_codes_of_the_enum() {
    let documented = documented(include_str!("../../docs/concepts.md"), "Why a run waits");
    let codes: BTreeSet<&str> = WaitCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(documented.iter().copied().collect::<BTreeSet<_>>(), codes);
    assert_eq!(documented.len(), codes.len(), "each code has one row: {documented:?}");
}

#[test]
fn the_table_of_reasons_has_exactly_the_codes_of_the_enum() {
    let documented = documented(include_str!("../../docs/guides/explain.md"), "Codes");
    let codes: BTreeSet<&str> = ReasonCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(documented.iter().copied().collect::<BTreeSet<_>>(), codes);
    assert_eq!(documented.len(), codes.len(), "each code has one row: {documented:?}");
}

#[test]
fn no_code_means_two_things() {
    let both: Vec<&str> = WaitCode::ALL.iter().map(|code| code.as_str()).collect();
    assert!(ReasonCode::ALL.iter().all(|code| !both.contains(&code.as_str())));
}
