//! `campanile outbox ...`: messages between jobs that wait or were given up.

use super::{
    change::{self, Change},
    dlq::each,
    failure::Failure,
    listing::PageFlags,
    output::{Column, Format},
    remote::Remote,
    repeat,
};
use campanile_schema::{
    error::ErrorCode,
    operations::{Operation, OutboxDiscard, OutboxList, OutboxResend, RunGet},
};
use serde_json::Value;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Messages that wait or were given up, by the run that sends them
    List {
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Send what was given up of these runs again, at most 47 hours after it was decided
    Resend {
        #[arg(required = true)]
        runs: Vec<u64>,
        #[command(flatten)]
        change: Change,
    },
    /// Take what was given up of these runs off the list
    Discard {
        #[arg(required = true)]
        runs: Vec<u64>,
        #[command(flatten)]
        change: Change,
    },
}

const MESSAGES: &[Column] = &[
    Column::id("RUN", "runId"),
    Column::number("GENERATION", "generation").minor(3),
    Column::text("TENANT", "tenantId").minor(2),
    Column::text("FOR", "targetJob"),
    Column::text("STATE", "state"),
    Column::text("REASON", "reason").minor(4),
    Column::time("DECIDED", "decidedAt").minor(1),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List { tenant, page, watch } => {
            let query = [("tenantId", tenant)];
            repeat::list(watch, format, MESSAGES, || page.read(remote, OutboxList::PATH, &query))
        }
        Command::Resend { runs, change } => {
            each(remote, &runs, ("resend", OutboxResend::ROW, &change.body()), change.dry, format, would)
        }
        Command::Discard { runs, change } => {
            each(remote, &runs, ("discard", OutboxDiscard::ROW, &change.body()), change.dry, format, would)
        }
    }
}

/// The run, when a message of it was given up.
fn would(remote: &Remote, run: u64) -> Result<Value, Failure> {
    let view = remote.get(&RunGet::ROW.path_of(run), &[])?;
    let mut token: Option<String> = None;
    loop {
        let tenant = view["tenantId"].as_str().map(str::to_owned);
        let page = remote.get(OutboxList::PATH, &[("tenantId", tenant), ("pageToken", token)])?;
        let is_its = |item: &Value| item["runId"] == run && item["state"] != "WAITING";
        if page["items"].as_array().is_some_and(|items| items.iter().any(is_its)) {
            return Ok(view);
        }
        token = page["nextPageToken"].as_str().map(str::to_owned);
        if token.is_none() {
            let why = "no message of the run was given up: it was delivered, still waits, or was put away";
            return Err(change::refused(ErrorCode::IllegalState, why));
        }
    }
}
