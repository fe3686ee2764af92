//! What goes to stdout: tables for people, JSON and YAML for programs.
//!
//! Files: `style` what flags and terminal ask for, `table` columns that fit, `rows` lists without an end, `times` instants.

mod rows;
mod style;
mod table;
mod times;

pub(super) use rows::Rows;
pub(super) use style::{Flags, colour_of, decide, size, style};
pub(super) use table::within;
pub(super) use times::{TimeForm, machine_zone};

use super::failure::Failure;
use campanile_schema::time::Timestamp;
use serde_json::Value;
use std::io::Write;
use table::TableStyle;
use unicode_width::UnicodeWidthStr;

/// Form of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// What a column holds, and so how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Never shortened: it is there to be copied.
    Id,
    /// Shortened where there is no room.
    Text,
    /// One of a few words, with a colour.
    State,
    /// To the right.
    Number,
    /// An instant.
    Time,
}

/// A column: its title, and the field that it shows, `a.b` for one within another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    title: &'static str,
    field: &'static str,
    kind: ColumnKind,
    /// 0: it always stays. Where there is no room, the highest is shortened first, and left out first.
    rank: u8,
}

impl Column {
    const fn new(title: &'static str, field: &'static str, kind: ColumnKind) -> Self {
        Self { title, field, kind, rank: 0 }
    }
    pub const fn id(title: &'static str, field: &'static str) -> Self {
        Self::new(title, field, ColumnKind::Id)
    }
    pub const fn text(title: &'static str, field: &'static str) -> Self {
        Self::new(title, field, ColumnKind::Text)
    }
    pub const fn state(title: &'static str, field: &'static str) -> Self {
        Self::new(title, field, ColumnKind::State)
    }
    pub const fn number(title: &'static str, field: &'static str) -> Self {
        Self::new(title, field, ColumnKind::Number)
    }
    pub const fn time(title: &'static str, field: &'static str) -> Self {
        Self::new(title, field, ColumnKind::Time)
    }
    /// May be left out on a narrow terminal; the highest goes first.
    pub const fn minor(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// Prints as it is. A closed pipe ends the output, not the command.
pub(super) fn text(text: &str) {
    let _ = written(text);
}

/// Like [`text`]; an error means that nobody reads any more.
pub(super) fn written(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// A word on the way, on stderr; none with `--quiet`.
pub(super) fn hint(text: &str) {
    if !style().quiet {
        eprintln!("{text}");
    }
}

/// What was done, or would be: a sentence for people, its fields for programs.
pub(super) fn said(sentence: &str, value: &Value) -> Result<(), Failure> {
    match style().format {
        Format::Table => text(&format!("{sentence}\n")),
        format @ (Format::Json | Format::Yaml) => text(&structured(format, value)?),
    }
    Ok(())
}

/// Refuses `-o json` and `-o yaml` for a command that gives no answer, so that no script takes its text for one.
pub(super) fn no_answer(command: &str) -> Result<(), Failure> {
    match style().format {
        Format::Table => Ok(()),
        Format::Json | Format::Yaml => Err(Failure::usage(format!(
            "`campanile {command}` gives no answer that could be JSON or YAML: leave -o out"
        ))),
    }
}

/// One thing: every field on a line.
pub(super) fn one(format: Format, value: &Value) -> Result<(), Failure> {
    one_of(format, value, None)
}

/// One thing whose instants are those of a job in this zone.
pub(super) fn one_of(format: Format, value: &Value, zone: Option<&str>) -> Result<(), Failure> {
    text(&one_text(format, value, zone)?);
    Ok(())
}

/// What [`one_of`] prints.
pub(super) fn one_text(format: Format, value: &Value, zone: Option<&str>) -> Result<String, Failure> {
    match format {
        Format::Table => {
            let mut fields = Vec::new();
            flatten("", value, &mut fields);
            // On a terminal what belongs to no job is told by the clock of its user.
            let zone = match zone.or(value["trigger"]["timezone"].as_str()) {
                Some(name) => times::zone_or_utc(Some(name)),
                None if style().terminal && style().time.is_none() => times::machine_zone(),
                None => jiff::tz::TimeZone::UTC,
            };
            let now = Timestamp(jiff::Timestamp::now().as_millisecond());
            let width = fields.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
            let line = |(name, value): &(String, String)| {
                let instant = value.parse::<Timestamp>().ok().filter(|_| times::is_instant(name));
                let shown = match instant {
                    Some(at) => times::of_one(at, style().time.as_ref(), style().terminal, now, &zone),
                    None if style().colours && is_state(name) => style::painted(value, value),
                    None => value.clone(),
                };
                format!("{name}{}  {shown}\n", " ".repeat(width - name.width()))
            };
            Ok(fields.iter().map(line).collect())
        }
        Format::Json | Format::Yaml => structured(format, value),
    }
}

fn is_state(field: &str) -> bool {
    matches!(field.rsplit('.').next(), Some("state" | "status" | "lastRunState"))
}

/// A list: the items as rows, or the whole answer.
pub(super) fn list(format: Format, value: &Value, columns: &[Column]) -> Result<(), Failure> {
    list_of(format, value, columns, None)
}

/// A list whose instants are those of a job in this zone.
pub(super) fn list_of(format: Format, value: &Value, columns: &[Column], zone: Option<&str>) -> Result<(), Failure> {
    let (shown, more) = list_text(format, value, columns, zone)?;
    text(&shown);
    beside(&more);
    Ok(())
}

/// What is said beside an answer, on stderr.
pub(super) fn beside(more: &str) {
    if !more.is_empty() {
        eprintln!("{more}");
    }
}

/// What [`list_of`] prints, and what it says beside it: that there is more, and what had no room.
pub(super) fn list_text(
    format: Format,
    value: &Value,
    columns: &[Column],
    zone: Option<&str>,
) -> Result<(String, String), Failure> {
    match format {
        Format::Table => {
            let items = value["items"].as_array().or_else(|| value.as_array()).map_or(&[][..], Vec::as_slice);
            let table_style = TableStyle {
                width: style().width(),
                colours: style().colours,
                time: style().time.as_ref(),
                terminal: style().terminal,
                now: Timestamp(jiff::Timestamp::now().as_millisecond()),
                zone: &times::zone_or_utc(zone),
            };
            let (shown, dropped) = table::table(items, columns, &table_style);
            let mut more = Vec::new();
            if let Some(token) = value["nextPageToken"].as_str() {
                more.push(format!("there is more: --page-token {token}"));
            }
            for missing in value["missing"].as_array().map_or(&[][..], Vec::as_slice) {
                let (node, reason) = (cell(&missing["node"]), cell(&missing["reason"]));
                more.push(format!("without node {node}: {reason}"));
            }
            if !dropped.is_empty() && !style().quiet {
                more.push(format!("no room for {}: --wide shows all", dropped.join(", ")));
            }
            Ok((shown, more.join("\n")))
        }
        Format::Json | Format::Yaml => Ok((structured(format, value)?, String::new())),
    }
}

/// Whether instants are to be told in the zone of their job, which may have to be asked for.
pub(super) fn wants_job_zone(format: Format) -> bool {
    format == Format::Table && matches!((&style().time, style().terminal), (Some(TimeForm::Job), _) | (None, true))
}

/// Some fields of one thing on a line of their own.
pub(super) fn words(value: &Value, fields: &[&str]) -> String {
    let shown = |field: &&str| {
        let text = cell(at(value, field));
        match (text.parse::<Timestamp>().ok().filter(|_| times::is_instant(field)), &style().time) {
            // A line that stays does not tell how long ago it was.
            (Some(instant), Some(form)) if *form != TimeForm::Relative => {
                times::in_list(instant, Some(form), false, instant, &jiff::tz::TimeZone::UTC)
            }
            (Some(_) | None, _) => text,
        }
    };
    fields.iter().map(shown).collect::<Vec<_>>().join("  ")
}

/// JSON or YAML.
fn structured(format: Format, value: &Value) -> Result<String, Failure> {
    let written = match format {
        Format::Table | Format::Json => {
            serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| e.to_string())
        }
        Format::Yaml => serde_yaml_ng::to_string(value).map_err(|e| e.to_string()),
    };
    written.map_err(|error| Failure::here(format!("the answer cannot be shown: {error}")))
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
        let items = json!([{"a": 1, "b": {"c": "x\u{1b}[31m"}, "d": null}, {"a": 1000, "b": {"c": "ü"}, "d": "end"}]);
        let columns = [Column::number("A", "a"), Column::text("C", "b.c"), Column::text("D", "d")];
        let (shown, more) = list_text(Format::Table, &items, &columns, None).unwrap();
        assert_eq!(shown, "   A  C            D\n   1  x\\u{1b}[31m  -\n1000  ü            end\n");
        assert_eq!(more, "");
    }

    #[test]
    fn one_thing_is_flattened() {
        let mut fields = Vec::new();
        flatten("", &json!({"a": {"b": 1, "e": {}}, "c": [1, 2], "d": [{"x": true}]}), &mut fields);
        let shown: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown, ["a.b=1", "a.e=-", "c=1, 2", "d.1.x=true"]);
    }
}
