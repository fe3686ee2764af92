//! What of a dump was not read, for the report.

use super::{Dump, Row};
use crate::{Place, draft::Drafts, text};
use std::collections::BTreeSet;

/// Rows and statements that were not read.
pub fn told(dump: &Dump, file: &str, drafts: &mut Drafts) {
    for (line, why) in dump.wrong.iter().chain(&dump.passed_over) {
        let place = Place { file: file.to_owned(), line: *line };
        drafts.refuse(
            &place,
            "row",
            text::sentence(why),
            "dump the table with its columns: mysqldump --complete-insert",
        );
    }
}

pub fn unknown_columns(file: &str, table: &str, known: &[&str], rows: &[Row], drafts: &mut Drafts) {
    let unknown: BTreeSet<&str> = rows.iter().flat_map(|row| row.cells.keys()).map(String::as_str).collect();
    let unknown: Vec<&str> = unknown.into_iter().filter(|column| !known.contains(column)).collect();
    if !unknown.is_empty() {
        let named = text::sentence(&unknown.join(", "));
        drafts.note(format!("{file}: unknown columns of {table} are ignored: {named}"));
    }
}
