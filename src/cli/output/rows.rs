//! A list of any length, written while it is read.

use super::{Column, Format, beside, list_text, structured, text};
use crate::cli::failure::Failure;
use serde_json::{Value, json};

/// Rows of a table that are lined up together, count.
const ROWS_TOGETHER: usize = 1_000;

/// See the module's text.
pub(in crate::cli) struct Rows {
    format: Format,
    columns: &'static [Column],
    /// Of a table: rows that are lined up together.
    waiting: Vec<Value>,
    any: bool,
}

impl Rows {
    pub fn begin(format: Format, columns: &'static [Column]) -> Self {
        Self { format, columns, waiting: Vec::new(), any: false }
    }

    pub fn row(&mut self, item: Value) -> Result<(), Failure> {
        if self.format == Format::Table {
            self.waiting.push(item);
            return if self.waiting.len() >= ROWS_TOGETHER { self.lines() } else { Ok(()) };
        }
        let begin = match (self.format, self.any) {
            (Format::Table, _) => "",
            (Format::Json, false) => "{\n  \"items\": [\n",
            (Format::Json, true) => ",\n",
            (Format::Yaml, false) => "items:\n",
            (Format::Yaml, true) => "",
        };
        self.any = true;
        // As an item of a list within a list's field.
        let (item, indent) = match self.format {
            Format::Table | Format::Json => (structured(Format::Json, &item)?, "    "),
            Format::Yaml => (structured(Format::Yaml, &json!([item]))?, ""),
        };
        let lines: Vec<String> = item.trim_end().lines().map(|line| format!("{indent}{line}")).collect();
        let end = if self.format == Format::Yaml { "\n" } else { "" };
        text(&format!("{begin}{}{end}", lines.join("\n")));
        Ok(())
    }

    fn lines(&mut self) -> Result<(), Failure> {
        let items = json!({"items": std::mem::take(&mut self.waiting)});
        let (table, more) = list_text(self.format, &items, self.columns, None)?;
        // Titles, and what had no room, are said once.
        if self.any {
            text(table.split_once('\n').map_or("", |(_, rows)| rows));
        } else {
            text(&table);
            beside(&more);
        }
        self.any = true;
        Ok(())
    }

    pub fn end(mut self) -> Result<(), Failure> {
        match (self.format, self.any) {
            (Format::Table, any) => {
                if !any || !self.waiting.is_empty() {
                    self.lines()?;
                }
            }
            (Format::Json, true) => text("\n  ]\n}\n"),
            (Format::Yaml, true) => {}
            (Format::Json | Format::Yaml, false) => text(&structured(self.format, &json!({"items": []}))?),
        }
        Ok(())
    }
}
