//! What goes to stdout: tables for people, JSON and YAML for programs.

use super::failure::Failure;
use serde_json::Value;
use std::io::Write;

/// Form of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// A column: its title, and the field that it shows, `a.b` for one within another.
pub(super) type Column = (&'static str, &'static str);

/// Widest cell of a table, characters; the last column is not cut.
const CELL_CHARS: usize = 60;

/// Prints as it is. A closed pipe ends the output, not the command.
pub(super) fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// One thing: every field on a line.
pub(super) fn one(format: Format, value: &Value) -> Result<(), Failure> {
    match format {
        Format::Table => {
            let mut fields = Vec::new();
            flatten("", value, &mut fields);
            let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            text(&fields.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect::<String>());
            Ok(())
        }
        Format::Json | Format::Yaml => structured(format, value),
    }
}

/// A list: the items as rows, or the whole answer.
pub(super) fn list(format: Format, value: &Value, columns: &[Column]) -> Result<(), Failure> {
    match format {
        Format::Table => {
            let items = value["items"].as_array().or_else(|| value.as_array()).map_or(&[][..], Vec::as_slice);
            text(&table(items, columns));
            if let Some(token) = value["nextPageToken"].as_str() {
                eprintln!("there is more: --page-token {token}");
            }
            Ok(())
        }
        Format::Json | Format::Yaml => structured(format, value),
    }
}

/// Some fields of one thing on a line of their own.
pub(super) fn words(value: &Value, fields: &[&str]) -> String {
    fields.iter().map(|field| cell(at(value, field))).collect::<Vec<_>>().join("  ")
}

/// JSON or YAML.
fn structured(format: Format, value: &Value) -> Result<(), Failure> {
    let written = match format {
        Format::Table | Format::Json => {
            serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| e.to_string())
        }
        Format::Yaml => serde_yaml_ng::to_string(value).map_err(|e| e.to_string()),
    };
    text(&written.map_err(|error| Failure::here(format!("the answer cannot be shown: {error}")))?);
    Ok(())
}

pub(super) fn table(items: &[Value], columns: &[Column]) -> String {
    let mut rows: Vec<Vec<String>> = vec![columns.iter().map(|(title, _)| (*title).to_owned()).collect()];
    for item in items {
        let last = columns.len().saturating_sub(1);
        let cells = columns.iter().enumerate();
        rows.push(cells.map(|(index, (_, field))| clipped(cell(at(item, field)), index < last)).collect());
    }
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in &rows {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn clipped(cell: String, clip: bool) -> String {
    if clip && cell.chars().count() > CELL_CHARS {
        return cell.chars().take(CELL_CHARS - 1).chain(['…']).collect();
    }
    cell
}

fn at<'a>(item: &'a Value, field: &str) -> &'a Value {
    field.split('.').fold(item, |value, name| &value[name])
}

/// A value on one line.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        // Control characters of a command's output must not reach the terminal.
        Value::String(text) if text.chars().any(char::is_control) => text.escape_debug().to_string(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            if items.is_empty() {
                "-".to_owned()
            } else {
                items.iter().map(cell).collect::<Vec<_>>().join(", ")
            }
        }
        Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Fields of nested objects as `outer.inner`.
fn flatten(prefix: &str, value: &Value, into: &mut Vec<(String, String)>) {
    let nested = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                flatten(&nested(name), value, into);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&nested(&(index + 1).to_string()), item, into);
            }
        }
        Value::Object(_) => into.push((prefix.to_owned(), "-".to_owned())),
        other => into.push((prefix.to_owned(), cell(other))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_lines_up_and_shows_nothing_harmful() {
        let items =
            [json!({"a": 1, "b": {"c": "x\u{1b}[31m"}, "d": null}), json!({"a": 1000, "b": {"c": "ü"}, "d": "end"})];
        let shown = table(&items, &[("A", "a"), ("C", "b.c"), ("D", "d")]);
        assert_eq!(shown, "A     C            D\n1     x\\u{1b}[31m  -\n1000  ü            end\n");
    }

    #[test]
    fn one_thing_is_flattened() {
        let mut fields = Vec::new();
        flatten("", &json!({"a": {"b": 1, "e": {}}, "c": [1, 2], "d": [{"x": true}]}), &mut fields);
        let shown: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown, ["a.b=1", "a.e=-", "c=1, 2", "d.1.x=true"]);
    }
}
