//! SQL dumps as rows: what `mysqldump`, `pg_dump` and their like write, for the tables that the caller names.
//!
//! **Why our own.** A dump is statements of three forms (`CREATE TABLE`, `INSERT ... VALUES`, and `COPY ... FROM stdin`) between thousands
//! of other lines. The general parser of SQL that there is holds a whole statement as a tree, many times its size, and gives up the file at
//! one statement that it does not know. Here a file is read as a stream: memory is bounded by one row, and by the rows that are kept.
//!
//! **Never:** no statement is carried out, and values that are expressions are not computed: they are [`Cell::Other`].

mod lexer;
mod statement;
mod told;

pub use statement::{Dump, read};
pub use told::{told, unknown_columns};

use std::collections::BTreeMap;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    /// Text or bytes, or a number as it is written.
    Bytes(Vec<u8>),
    /// An expression.
    Other(String),
}

/// A row with the names of its columns, in lower case.
#[derive(Clone, Debug)]
pub struct Row {
    pub line: u64,
    pub cells: BTreeMap<String, Cell>,
}

impl Row {
    /// Text of a column; None: it is NULL, not there, or not text.
    pub fn text(&self, column: &str) -> Option<String> {
        match self.cells.get(column)? {
            Cell::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
            Cell::Null | Cell::Other(_) => None,
        }
    }

    /// The same for people: what is not UTF-8 is replaced, nothing is empty text.
    pub fn words(&self, column: &str) -> String {
        match self.cells.get(column) {
            Some(Cell::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Cell::Null | Cell::Other(_)) | None => String::new(),
        }
    }

    pub fn number(&self, column: &str) -> Option<i64> {
        self.text(column)?.trim().parse().ok()
    }

    /// `1`, `Y`, `t`, `true`, and the bit 1.
    pub fn flag(&self, column: &str) -> bool {
        let Some(Cell::Bytes(bytes)) = self.cells.get(column) else { return false };
        matches!(bytes.as_slice(), b"1" | b"Y" | b"y" | b"t" | b"T" | [1])
            || bytes.eq_ignore_ascii_case(b"true")
            || bytes.eq_ignore_ascii_case(b"yes")
    }

    /// Whether its value is an expression, which is not computed.
    pub fn is_expression(&self, column: &str) -> bool {
        matches!(self.cells.get(column), Some(Cell::Other(_)))
    }

    pub fn bytes(&self, column: &str) -> &[u8] {
        match self.cells.get(column) {
            Some(Cell::Bytes(bytes)) => bytes,
            Some(Cell::Null | Cell::Other(_)) | None => &[],
        }
    }
}
