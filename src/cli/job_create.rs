//! `campanile job create`: from a file of specs, or from flags.

use super::{
    failure::Failure,
    job_flags::JobFlags,
    output::{self, Column, Format},
    progress::{Progress, Unit},
    remote::Remote,
};
use campanile_schema::operations::JobCreate;
use campanile_security::text;
use serde_json::Value;
use std::path::{Path, PathBuf};

const CREATED: &[Column] = &[
    Column::id("ID", "jobId"),
    Column::text("NAME", "name"),
    Column::state("STATUS", "status"),
    Column::time("NEXT FIRE", "nextFireAt").minor(1),
];

pub(super) fn specs_of(file: Option<PathBuf>, flags: JobFlags) -> Result<Vec<Value>, Failure> {
    match file {
        Some(file) => read_specs(&file),
        None if flags.given() => Ok(vec![flags.spec()?]),
        None => Err(Failure::usage("give a FILE (- for stdin), or --name with the other flags")),
    }
}

/// One after the other; what was made before a refusal stays.
pub(super) fn create(specs: Vec<Value>, key: Option<String>, remote: &Remote, format: Format) -> Result<(), Failure> {
    if specs.len() > 1 && key.is_some() {
        return Err(Failure::usage("--idempotency-key is for one job"));
    }
    let several = specs.len() > 1;
    let mut made = Vec::new();
    let creating = Progress::new("creating", Unit::Things("jobs"), Some(specs.len() as u64));
    for spec in specs {
        let mut created = remote.post_once(JobCreate::PATH, &spec, key.as_deref()).map_err(|failure| {
            let name = spec["name"].as_str().map(|name| format!("{name}: ")).unwrap_or_default();
            let before = if several { format!(" ({} jobs before it were created)", made.len()) } else { String::new() };
            Failure { message: format!("{name}{}{before}", failure.message), ..failure }
        })?;
        created["name"] = spec["name"].clone();
        made.push(created);
        creating.add(1);
    }
    drop(creating);
    match (made.as_slice(), format) {
        ([one], Format::Json | Format::Yaml) => output::one(format, one),
        _ => output::list(format, &Value::Array(made), CREATED),
    }
}

/// One spec, or a list of them, or `items` of an exported list.
pub(super) fn read_specs(file: &Path) -> Result<Vec<Value>, Failure> {
    let shown = file.display();
    let text =
        if file.as_os_str() == "-" { text::read_from(std::io::stdin().lock(), true) } else { text::read(file, true) };
    let text = text.map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let json = text.trim_start().starts_with(['{', '[']);
    let value: Value = if json {
        campanile_serve::api::parse_json(text.as_bytes())
            .map_err(|error| Failure::usage(format!("{shown}: {}", error.message)))?
    } else {
        serde_yaml_ng::from_str(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))?
    };
    match value {
        Value::Object(_) => Ok(vec![value]),
        Value::Array(specs) if !specs.is_empty() => Ok(specs),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(Failure::usage(format!("{shown}: holds no job: write an object, or a list of them")))
        }
    }
}
