//! `campanile audit ...`: who changed what and why, and who was refused.

use super::{
    failure::Failure,
    listing::PageFlags,
    output::{self, Column, Format},
    remote::Remote,
    repeat,
};
use campanile_schema::operations::{AuditList, rows};
use serde_json::Value;
use std::io::{BufRead, BufReader};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Records, newest first
    List {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Records as lines of JSON, newest first, whatever -o says
    Export {
        #[command(flatten)]
        which: Which,
    },
}

/// Which records. All of what is given must fit.
#[derive(clap::Args)]
pub(super) struct Which {
    /// About this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// About this job, by id
    #[arg(long, value_name = "ID")]
    job: Option<u64>,
    /// About this run
    #[arg(long, value_name = "ID")]
    run: Option<u64>,
    /// By the credential of this name
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// By its name in the API: job.pause, run.cancel, ...
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// DONE, REFUSED (all others), or an error code
    #[arg(long)]
    outcome: Option<String>,
    /// From this instant on: 2026-02-01T00:00:00Z
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// Up to this instant, which is included
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,
}

impl Which {
    fn query(self) -> Vec<(&'static str, Option<String>)> {
        let id = |id: Option<u64>| id.map(|id| id.to_string());
        vec![
            ("tenantId", self.tenant),
            ("jobId", id(self.job)),
            ("runId", id(self.run)),
            ("who", self.who),
            ("operation", self.operation),
            ("outcome", self.outcome),
            ("from", self.from),
            ("to", self.to),
        ]
    }
}

const RECORDS: &[Column] = &[
    Column::time("AT", "at"),
    Column::text("WHO", "who"),
    Column::text("ADDRESS", "address").minor(6),
    Column::text("OPERATION", "operation"),
    Column::text("TENANT", "tenantId").minor(3),
    Column::id("JOB", "jobId").minor(1),
    Column::id("RUN", "runId").minor(2),
    Column::text("TARGET", "target").minor(5),
    Column::text("OUTCOME", "outcome"),
    Column::number("COUNT", "count").minor(4),
    Column::text("REASON", "reason").minor(7),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List { which, page, watch } => {
            let query = which.query();
            repeat::list(watch, format, RECORDS, || page.read(remote, AuditList::PATH, &query))
        }
        Command::Export { which } => export(remote, &which.query()),
    }
}

/// The last line says that it was the last; it is not a record, and is not printed.
fn export(remote: &Remote, query: &[(&str, Option<String>)]) -> Result<(), Failure> {
    let (server, answer) = remote.stream(rows::AUDIT_EXPORT.path(), query)?;
    for line in BufReader::new(answer).lines() {
        let line = line.map_err(|error| Failure::unreachable(format!("{server}: {error}")))?;
        let value: Value = serde_json::from_str(&line).unwrap_or_default();
        if value["end"] == true {
            return Ok(());
        }
        if let Some(message) = value["error"]["detail"].as_str() {
            return Err(Failure::unreachable(format!("{server}: the export broke off: {message}")));
        }
        if output::written(&format!("{line}\n")).is_err() {
            // Nobody reads any more.
            return Ok(());
        }
    }
    Err(Failure::unreachable(format!("{server}: the export was cut off; what was printed is not all")))
}
