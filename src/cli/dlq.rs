//! `campanile dlq ...`: dead letters.

use super::{
    failure::Failure,
    job::PageFlags,
    output::{self, Column, Format},
    remote::Remote,
};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Dead letters, newest first
    List {
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        page: PageFlags,
    },
    /// Run dead letters again, each as its next generation
    Redrive {
        #[arg(required = true)]
        runs: Vec<u64>,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Put dead letters away; the runs stay in the history
    Discard {
        #[arg(required = true)]
        runs: Vec<u64>,
        #[arg(long)]
        reason: Option<String>,
    },
}

const LETTERS: &[Column] = &[
    ("RUN", "runId"),
    ("TENANT", "tenantId"),
    ("JOB", "jobName"),
    ("AT", "at"),
    ("ATTEMPTS", "attemptCount"),
    ("REASON", "reason"),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List { tenant, page } => {
            output::list(format, &page.read(remote, "/api/v1/dead-letters", &[("tenantId", tenant)])?, LETTERS)
        }
        Command::Redrive { runs, reason } => each(remote, &runs, "redrive", reason.as_deref()),
        Command::Discard { runs, reason } => each(remote, &runs, "discard", reason.as_deref()),
    }
}

/// One after the other; goes on after a refusal, and ends with the last one's exit code.
fn each(remote: &Remote, runs: &[u64], verb: &str, reason: Option<&str>) -> Result<(), Failure> {
    let mut refused = None;
    for run in runs {
        match remote.post(&format!("/api/v1/dead-letters/{run}/{verb}"), &json!({"reason": reason})) {
            Ok(_) => output::text(&format!("{run} {verb}: done\n")),
            Err(failure) => {
                eprintln!("{run} {verb}: {}", failure.message);
                refused = Some(failure);
            }
        }
    }
    match refused {
        Some(failure) => Err(Failure::new(failure.code, "")),
        None => Ok(()),
    }
}
