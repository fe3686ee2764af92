//! `campanile run watch` and `campanile job watch`: changes as they become durable, a line each.

use super::{
    failure::Failure,
    following::{Followed, follow},
    job_flags,
    output::{self, Format},
    remote::Remote,
};
use serde_json::Value;

/// How long.
#[derive(clap::Args)]
pub(super) struct UntilFlags {
    /// End after this, 1h at most: 30s, 5m [default: until it is interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = job_flags::seconds)]
    time: Option<u64>,
}

impl UntilFlags {
    pub fn seconds(&self) -> Option<String> {
        self.time.map(|seconds| seconds.to_string())
    }
}

/// Fields that a line shows of a run, and of a job.
const RUN: &[&str] = &["at", "state", "runId", "jobName", "attemptCount", "executorId", "lastError"];
const JOB: &[&str] = &["at", "change", "jobId", "jobName", "tenantId", "version"];

/// Shows changes until the watch ends.
pub(super) fn show(
    remote: &Remote,
    format: Format,
    path: &str,
    mut query: Vec<(&str, Option<String>)>,
    until: &UntilFlags,
) -> Result<(), Failure> {
    query.push(("waitSec", until.seconds()));
    let followed = Followed { path, query: &query, what: "the watch", ends: until.time.is_some() };
    follow(remote, &followed, |event, data| {
        match event {
            "run" => line(format, data, RUN)?,
            "job" => line(format, data, JOB)?,
            "dropped" => {
                eprintln!("{} changes or more were not seen, perhaps none of these", data["dropped"]);
            }
            "end" => return Ok(true),
            _ => {}
        }
        Ok(false)
    })
}

/// One change of a run.
pub(super) fn run_line(format: Format, change: &Value) -> Result<(), Failure> {
    line(format, change, RUN)
}

/// One change: a line of text or of JSON, or a document of YAML.
fn line(format: Format, change: &Value, fields: &[&str]) -> Result<(), Failure> {
    match format {
        Format::Table => output::text(&(output::words(change, fields) + "\n")),
        Format::Json => output::text(&format!("{change}\n")),
        Format::Yaml => {
            output::text("---\n");
            output::one(format, change)?;
        }
    }
    Ok(())
}
