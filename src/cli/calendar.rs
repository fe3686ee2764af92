//! `campanile calendar ...`.

use super::{
    change::{Change, DryRun},
    failure::Failure,
    output::{self, Column, Format},
    remote::{Remote, encoded},
    repeat,
};
use campanile_core::calendar::ics;
use campanile_schema::operations::{CalendarList, Operation};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// The calendars of a tenant
    List {
        tenant: String,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// A calendar, with its versions
    Get {
        tenant: String,
        calendar: String,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Set all days of a calendar, as its next version; with --dry-run say which jobs change
    Set {
        tenant: String,
        calendar: String,
        #[command(flatten)]
        days: Days,
        /// From when on the version decides; at least 60 s ahead, unless the calendar is new
        #[arg(long, value_name = "INSTANT")]
        effective_from: Option<String>,
        /// The version that you have read: another one is refused
        #[arg(long, value_name = "N")]
        version: Option<u64>,
        /// Why; stands in the audit trail
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Delete a calendar, 60 s later; jobs that name it wait from then on
    Delete {
        tenant: String,
        calendar: String,
        #[command(flatten)]
        change: Change,
    },
    /// The days that a calendar has, or would have with a file, and the jobs that change
    Preview {
        tenant: String,
        calendar: String,
        #[command(flatten)]
        days: Days,
        /// The first day that is looked at [default: today]
        #[arg(long, value_name = "DATE")]
        from: Option<String>,
        /// Days that are looked at, 1 to 366 [default: 31]
        #[arg(long = "days", value_name = "N")]
        count: Option<usize>,
    },
}

/// Where the days come from.
#[derive(clap::Args)]
pub(super) struct Days {
    /// A JSON file with the definition: include, exclude, makeUp, minus, validThrough
    #[arg(long, value_name = "FILE", conflicts_with = "spec")]
    file: Option<PathBuf>,
    /// The definition itself, as JSON
    #[arg(long, value_name = "JSON")]
    spec: Option<String>,
    /// An iCalendar file whose days are excluded, besides those of --file
    #[arg(long, value_name = "FILE")]
    exclude_ics: Option<PathBuf>,
}

const CALENDARS: &[Column] = &[
    Column::id("CALENDAR", "calendar"),
    Column::number("VERSION", "version"),
    Column::text("EFFECTIVE FROM", "effectiveFrom"),
    Column::text("VALID THROUGH", "spec.validThrough").minor(1),
];

fn list_path(tenant: &str) -> String {
    CalendarList::ROW.path_of(encoded(tenant))
}

fn path(tenant: &str, calendar: &str) -> String {
    format!("{}/{}", list_path(tenant), encoded(calendar))
}

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List { tenant, watch } => {
            repeat::list(watch, format, CALENDARS, || remote.get(&list_path(&tenant), &[]))
        }
        Command::Get { tenant, calendar, watch } => {
            repeat::one(watch, format, None, || remote.get(&path(&tenant, &calendar), &[]))
        }
        Command::Set { tenant, calendar, days, effective_from, version, reason, dry } => {
            let spec = days.spec()?.ok_or_else(|| Failure::usage("name --file or --spec, --exclude-ics, or both"))?;
            let path = path(&tenant, &calendar);
            if dry.dry_run {
                let body = given(json!({"spec": spec}), [("effectiveFrom", effective_from.map(Value::from))]);
                return output::one(format, &remote.post(&format!("{path}/preview"), &body)?);
            }
            let more = [
                ("effectiveFrom", effective_from.map(Value::from)),
                ("version", version.map(Value::from)),
                ("reason", reason.map(Value::from)),
            ];
            output::one(format, &remote.put(&path, &given(json!({"spec": spec}), more))?)
        }
        Command::Delete { tenant, calendar, change } => delete(remote, &tenant, &calendar, &change),
        Command::Preview { tenant, calendar, days, from, count } => {
            let more = [("spec", days.spec()?), ("from", from.map(Value::from)), ("days", count.map(Value::from))];
            let path = format!("{}/preview", path(&tenant, &calendar));
            output::one(format, &remote.post(&path, &given(json!({}), more))?)
        }
    }
}

fn given<const N: usize>(mut body: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}

impl Days {
    /// None: no file is named.
    fn spec(&self) -> Result<Option<Value>, Failure> {
        let mut spec = match (&self.file, &self.spec) {
            (Some(file), _) => parsed(&read(file)?, &file.display().to_string())?,
            (None, Some(text)) => parsed(text.as_bytes(), "--spec")?,
            (None, None) if self.exclude_ics.is_some() => json!({}),
            (None, None) => return Ok(None),
        };
        if !spec.is_object() {
            return Err(Failure::usage("the definition of a calendar is a JSON object"));
        }
        if let Some(file) = &self.exclude_ics {
            let days =
                ics::read(&read(file)?).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
            exclude(&mut spec, &json!(days));
        }
        Ok(Some(spec))
    }
}

/// Adds rules to the days that a definition excludes.
fn exclude(spec: &mut Value, rules: &Value) {
    for (kind, days) in rules.as_object().into_iter().flatten() {
        let known = &mut spec["exclude"][kind.as_str()];
        let mut all = known.as_array().cloned().unwrap_or_default();
        all.extend(days.as_array().into_iter().flatten().cloned());
        *known = Value::Array(all);
    }
}

fn parsed(text: &[u8], what: &str) -> Result<Value, Failure> {
    serde_json::from_slice(text).map_err(|error| Failure::usage(format!("{what}: {error}")))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn delete(remote: &Remote, tenant: &str, calendar: &str, change: &Change) -> Result<(), Failure> {
    let path = path(tenant, calendar);
    if change.dry.dry_run {
        remote.get(&path, &[])?;
        return DryRun::told(&format!("delete calendar {calendar} of tenant {tenant}"));
    }
    remote.delete(&path, &[("reason", change.reason.clone())])?;
    output::said(&format!("{calendar}: deleted"), &json!({"tenantId": tenant, "calendar": calendar, "done": "delete"}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_a_file_are_added_to_those_of_the_definition() {
        let mut spec = json!({"exclude": {"weekly": ["SUN"], "dates": ["2026-01-01"]}});
        exclude(&mut spec, &json!({"dates": ["2026-05-01"], "ranges": [{"from": "2026-04-04", "to": "2026-04-06"}]}));
        let wanted = json!({"exclude": {
            "weekly": ["SUN"],
            "dates": ["2026-01-01", "2026-05-01"],
            "ranges": [{"from": "2026-04-04", "to": "2026-04-06"}],
        }});
        assert_eq!(spec, wanted);
    }
}
