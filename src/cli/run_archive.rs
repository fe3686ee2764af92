//! `campanile run list`, and `run get` and `run log` of a directory of days: ended runs without a node.

use super::{
    failure::{Failure, of_store},
    listing::RUNS,
    output::{self, Format},
};
use campanile_archive::days::{Archive, RunFilter};
use campanile_schema::{
    ids::{JobId, RunId},
    limits::PAGE_SIZE_MAX,
    record::{RunRecord, RunState},
    time::Timestamp,
    view::RunView,
};
use serde_json::{Value, json};
use std::{ops::ControlFlow, path::Path};

/// Items of a page unless told otherwise, as a node has it.
const PAGE_SIZE: usize = 100;

#[derive(clap::Args)]
pub(super) struct ListArgs {
    /// Directory that `history archive` has written
    #[arg(long, value_name = "DIR")]
    archive: std::path::PathBuf,
    #[arg(long)]
    tenant: Option<String>,
    /// Of this job, by its id
    #[arg(long, value_name = "ID")]
    job: Option<u64>,
    /// success, failed, timeout, canceled, ...
    #[arg(long, value_parser = state)]
    state: Option<RunState>,
    /// Ended at this instant or later: 2026-02-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Ended at this instant or earlier
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Items of a page, at most 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=PAGE_SIZE_MAX as i64))]
    page_size: Option<u16>,
    /// Go on after the page before
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    page_token: Option<(i64, u64)>,
    /// All pages
    #[arg(long, conflicts_with_all = ["page_size", "page_token"])]
    all: bool,
}

fn state(text: &str) -> Result<RunState, String> {
    text.to_ascii_uppercase().replace('-', "_").parse()
}

/// When the last run of a page ended, and its id.
fn token(text: &str) -> Result<(i64, u64), String> {
    let parts = text.split_once('-').and_then(|(ended, run)| Some((ended.parse().ok()?, run.parse().ok()?)));
    parts.ok_or_else(|| "it is no token of a page before".to_owned())
}

pub(super) fn list(args: ListArgs, format: Format) -> Result<(), Failure> {
    let ListArgs { archive, tenant, job, state, from, to, page_size, page_token, all } = args;
    let wanted = RunFilter {
        tenant,
        job: job.map(JobId),
        state,
        run: None,
        from_ms: from.map(Timestamp::ms),
        // The archive takes what ended before an instant.
        to_ms: to.map(|to| to.ms().saturating_add(1)),
        after: page_token,
    };
    let mut archive = open(&archive)?;
    if all {
        let mut rows = output::Rows::begin(format, RUNS);
        let mut told = Ok(());
        let read = archive.runs(&wanted, |record| {
            told = view(&record).and_then(|view| rows.row(view));
            if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read.map_err(|e| of_store(&e))?;
        told?;
        rows.end()?;
        return whole(&archive);
    }
    let size = page_size.map_or(PAGE_SIZE, usize::from);
    let (mut items, mut last, mut next) = (Vec::new(), None, Value::Null);
    let read = archive.runs(&wanted, |record| {
        if items.len() == size {
            next = json!(last);
            return ControlFlow::Break(());
        }
        last = Some(format!("{}-{}", record.ended_ms.unwrap_or_default(), record.run.0));
        items.push(view(&record));
        ControlFlow::Continue(())
    });
    read.map_err(|e| of_store(&e))?;
    let items: Vec<Value> = items.into_iter().collect::<Result<_, _>>()?;
    output::list(format, &json!({"items": items, "nextPageToken": next}), RUNS)?;
    whole(&archive)
}

pub(super) fn get(directory: &Path, run: u64, format: Format) -> Result<(), Failure> {
    let mut archive = open(directory)?;
    let record = find(&mut archive, directory, run)?;
    output::one(format, &view(&record)?)?;
    whole(&archive)
}

/// The output of an attempt; None: the last one.
pub(super) fn log(directory: &Path, run: u64, attempt: Option<u32>, format: Format) -> Result<(), Failure> {
    let mut archive = open(directory)?;
    let record = find(&mut archive, directory, run)?;
    let attempt = attempt.or_else(|| record.attempts.last().map(|last| last.attempt)).unwrap_or(0);
    let mut bytes = Vec::new();
    for piece in archive.logs(&record).map_err(|e| of_store(&e))? {
        if piece.attempt == attempt {
            bytes.extend(piece.bytes);
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    match format {
        Format::Table => output::text(&text),
        Format::Json | Format::Yaml => {
            output::one(format, &json!({"runId": run, "attempt": attempt, "text": text, "end": true}))?;
        }
    }
    whole(&archive)
}

fn open(directory: &Path) -> Result<Archive, Failure> {
    Archive::open(directory).map_err(|e| of_store(&e))
}

fn find(archive: &mut Archive, directory: &Path, run: u64) -> Result<RunRecord, Failure> {
    let found = archive.run(RunId(run)).map_err(|e| of_store(&e))?;
    found.ok_or_else(|| {
        let absent = Failure::new(3, format!("run {run} is in no day of {}", directory.display()));
        whole(archive)
            .err()
            .map_or(absent, |damaged| Failure::here(format!("run {run} was not found: {}", damaged.message)))
    })
}

fn view(record: &RunRecord) -> Result<Value, Failure> {
    serde_json::to_value(RunView::from(record)).map_err(|error| Failure::here(error.to_string()))
}

/// What could not be read is told after what could.
fn whole(archive: &Archive) -> Result<(), Failure> {
    if archive.damaged.is_empty() { Ok(()) } else { Err(Failure::here(archive.damaged.join("\n"))) }
}
