//! `client/python/src/campanile/methods.py`: what the table of operations says of each RPC method, for the Python client.
//! `UPDATE_GOLDEN=1` writes it.

use campanile_schema::operations::{self, CallEffect, Row};
use std::fmt::Write;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/client/python/src/campanile/methods.py");
const HEAD: &str = r#""""The protocol's methods and what makes each safe to repeat.

Generated from the table of operations (`schema/src/operations/table`) by `tests/interfaces/python_methods.rs`: change
the table, then write this file with `UPDATE_GOLDEN=1 cargo test --workspace --features campanile/faults --test interfaces`.
"""

from typing import Final, NamedTuple


class Method(NamedTuple):
    """A method of callers."""

    name: str
    """As RPC has it."""
    changes: bool = True
    """False: it only reads, so it is sent again when its answer was lost."""
    key: str | None = None
    """The field with the caller's key. A change that carries one is safe to repeat."""

"#;

fn line(row: &Row) -> String {
    let name = row.python_name().expect("only rows that Python has").to_ascii_uppercase();
    let mut arguments = format!("\"{}\"", row.name);
    match row.effect {
        CallEffect::Read => arguments += ", changes=False",
        CallEffect::Once => {}
    }
    if let Some(key) = row.key {
        write!(arguments, ", key=\"{key}\"").unwrap();
    }
    format!("{name}: Final = Method({arguments})\n\"\"\"{}.\"\"\"\n", row.summary())
}

fn generated() -> String {
    let rows: Vec<&Row> = operations::handled().filter(|row| row.python.is_ok()).collect();
    assert!(rows.len() > 30, "{} methods", rows.len());
    let mut text = HEAD.to_owned();
    for row in &rows {
        text += "\n";
        text += &line(row);
    }
    text += "\nMETHODS: Final = {\n    method.name: method\n    for method in (\n";
    for row in &rows {
        writeln!(text, "        {},", row.python_name().unwrap().to_ascii_uppercase()).unwrap();
    }
    text + "    )\n}\n\"\"\"Every method of callers, by its name.\"\"\"\n"
}

#[test]
fn the_python_client_has_the_methods_of_the_table() {
    let text = generated();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(kept == text, "{FILE} is not what the table of operations says: write it with UPDATE_GOLDEN=1");
}
