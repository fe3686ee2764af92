//! The table of rules: written by hand here, printed into `docs/graph-rules.md`, and what the code does.

use crate::graph::model::reference::{Says, says};
use campanile_core::graph::rules::{Counts, Verdict, markdown, verdict};
use campanile_schema::graph::state::NodeRule;
use std::path::PathBuf;

/// By hand: ok, failed, skipped, open (`+` some, `-` none), and what each rule says of it. r: run, w: wait, f: UPSTREAM_FAILED,
/// s: SKIPPED.
const TABLE: [(&str, &str); 16] = [
    // ALL_SUCCESS, ALL_DONE, ANY_SUCCESS, ANY_FAILED, NONE_FAILED
    ("----", "r r s s r"),
    ("---+", "w w w w w"),
    ("--+-", "s r s s r"),
    ("--++", "w w w w w"),
    ("-+--", "f r f r f"),
    ("-+-+", "f w w r f"),
    ("-++-", "f r f r f"),
    ("-+++", "f w w r f"),
    ("+---", "r r r s r"),
    ("+--+", "w w r w w"),
    ("+-+-", "s r r s r"),
    ("+-++", "w w r w w"),
    ("++--", "f r r r f"),
    ("++-+", "f w r r f"),
    ("+++-", "f r r r f"),
    ("++++", "f w r r f"),
];

fn verdict_of(letter: &str) -> Verdict {
    match letter {
        "r" => Verdict::Run,
        "w" => Verdict::Wait,
        "f" => Verdict::UpstreamFailed,
        "s" => Verdict::Skip,
        other => panic!("{other}"),
    }
}

/// The row of some counts, by its letters.
fn by_hand(rule: NodeRule, counts: Counts) -> Verdict {
    let Counts { ok, failed, skipped, open } = counts;
    let signs: String = [ok, failed, skipped, open].map(|n| if n > 0 { '+' } else { '-' }).iter().collect();
    let (_, says) = TABLE.iter().find(|(row, _)| *row == signs).unwrap();
    verdict_of(says.split(' ').nth(rule.code().into()).unwrap())
}

fn some_counts() -> impl Iterator<Item = Counts> {
    let numbers = (0u32..625).map(|n| [n % 5, n / 5 % 5, n / 25 % 5, n / 125]);
    numbers.map(|[ok, failed, skipped, open]| Counts { ok, failed, skipped, open })
}

#[test]
fn the_code_does_what_the_table_says() {
    for rule in NodeRule::ALL {
        for counts in some_counts() {
            assert_eq!(verdict(*rule, counts), by_hand(*rule, counts), "{rule} {counts:?}");
        }
    }
}

#[test]
fn the_table_says_what_follows_from_every_way_in_which_parents_can_still_end() {
    for rule in NodeRule::ALL {
        for counts in some_counts() {
            let Counts { ok, failed, skipped, open } = counts;
            let wanted = match says(*rule, [ok, failed, skipped, open].map(|n| n as usize)) {
                Says::Run => Verdict::Run,
                Says::Wait => Verdict::Wait,
                Says::UpstreamFailed => Verdict::UpstreamFailed,
                Says::Skip => Verdict::Skip,
            };
            assert_eq!(by_hand(*rule, counts), wanted, "{rule} {counts:?}");
        }
    }
}

#[test]
fn the_document_has_the_table() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/graph-rules.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&markdown()), "docs/graph-rules.md must contain\n{}", markdown());
    // The document is by hand as well: the code could print a wrong table into it.
    let cell = |letter: &str| verdict_of(letter).as_str();
    for (signs, says) in TABLE {
        let counts: Vec<&str> = signs.chars().map(|sign| if sign == '+' { "some" } else { "none" }).collect();
        let cells: Vec<&str> = says.split(' ').map(cell).collect();
        let row = format!("| {} | {} |", counts.join(" | "), cells.join(" | "));
        assert!(text.lines().any(|line| line == row), "{row}");
    }
}
