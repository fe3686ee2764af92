//! `docs/concepts.md` has a table of the reasons to wait: exactly the codes that a node can answer with.

use campanile_schema::wait::WaitCode;
use std::collections::BTreeSet;

/// The codes in the first column of the table under "Why a run waits".
fn documented(page: &str) -> Vec<&str> {
    let section = page.split("\n## Why a run waits\n").nth(1).expect("concepts.md has the section");
    let table = section.lines().skip_while(|line| !line.starts_with("| code |")).skip(2);
    table.map_while(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_table_of_wait_reasons_has_exactly_the_codes_of_the_enum() {
    let documented = documented(include_str!("../../docs/concepts.md"));
    let codes: BTreeSet<&str> = WaitCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(documented.iter().copied().collect::<BTreeSet<_>>(), codes);
    assert_eq!(documented.len(), codes.len(), "each code has one row: {documented:?}");
}
