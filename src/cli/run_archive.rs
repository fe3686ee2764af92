//! `campanile run list`, of a node or of a directory of days, and `run get` and `run log` of such a directory: ended runs without a node.

use super::{
    failure::{Failure, of_store},
    job_ref::JobRef,
    listing::{PageFlags, RUNS},
    output::{self, Format},
    remote::Remote,
    repeat,
};
use campanile_archive::days::{Archive, RunFilter};
use campanile_schema::{
    ids::{JobId, RunId},
    limits::PAGE_SIZE_MAX,
    operations::RunList,
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
    /// Of this directory of `history archive` instead of a node: runs that have ended
    #[arg(long, value_name = "DIR", conflicts_with_all = ["labels", "source", "watch"])]
    archive: Option<std::path::PathBuf>,
    #[arg(long)]
    tenant: Option<String>,
    /// Of this job, by id; of a node also by name, `name:123` for a name that looks like an id
    #[arg(long)]
    job: Option<String>,
    /// One or several, with commas between them: running, queued, success, failed, ... [default: with --job and of an archive all;
    /// otherwise those of open runs, failed and timeout]
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    /// Of jobs that have these labels now: key=value,key2!=value2,key3
    #[arg(short, long)]
    labels: Option<String>,
    /// schedule, manual, dag, event, ...
    #[arg(long)]
    source: Option<String>,
    /// Ended at this instant or later, or created if it is open: 2026-02-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// ... or earlier
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Items of a page, at most 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=PAGE_SIZE_MAX as i64))]
    page_size: Option<u16>,
    /// Go on after the page before
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// All pages
    #[arg(long, conflicts_with_all = ["page_size", "page_token"])]
    all: bool,
    #[command(flatten)]
    watch: repeat::Flags,
}

fn states(text: &str) -> Result<Vec<RunState>, Failure> {
    let state = |word: &str| word.trim().parse::<RunState>().map_err(|why| Failure::usage(format!("--state: {why}")));
    text.split(',').map(state).collect()
}

/// When the last run of a page ended, and its id.
fn token(text: &str) -> Result<(i64, u64), String> {
    let parts = text.split_once('-').and_then(|(ended, run)| Some((ended.parse().ok()?, run.parse().ok()?)));
    parts.ok_or_else(|| "it is no token of a page before".to_owned())
}

pub(super) fn list(mut args: ListArgs, remote: &Remote, format: Format) -> Result<(), Failure> {
    match args.archive.take() {
        Some(archive) => list_of(&archive, args, format),
        None => list_of_node(args, remote, format),
    }
}

fn list_of_node(args: ListArgs, remote: &Remote, format: Format) -> Result<(), Failure> {
    let ListArgs { archive: _, tenant, job, state, labels, source, from, to, page_size, page_token, all, watch } = args;
    let job = job.map(|job| JobRef::new(job, tenant.clone()).id(remote)).transpose()?;
    let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let query = vec![
        ("tenantId", tenant),
        ("jobId", job),
        ("state", state),
        ("labels", labels),
        ("source", source),
        ("from", instant(from)),
        ("to", instant(to)),
    ];
    let page = PageFlags::new(page_size.map(usize::from), page_token, all);
    repeat::list(watch, format, RUNS, || page.read(remote, RunList::PATH, &query))
}

fn list_of(archive: &Path, args: ListArgs, format: Format) -> Result<(), Failure> {
    let ListArgs { tenant, job, state, from, to, page_size, page_token, all, .. } = args;
    let job = job.map(|job| job.parse().map_err(|_| Failure::usage("--job: an archive has jobs by their id only")));
    let states = state.as_deref().map(states).transpose()?.unwrap_or_default();
    let [state] = match states.as_slice() {
        [] => [None],
        [state] => [Some(*state)],
        _ => return Err(Failure::usage("--state: of an archive one state at a time")),
    };
    let after =
        page_token.as_deref().map(|text| token(text).map_err(|why| Failure::usage(format!("--page-token: {why}"))));
    let wanted = RunFilter {
        tenant,
        job: job.transpose()?.map(JobId),
        state,
        run: None,
        from_ms: from.map(Timestamp::ms),
        // The archive takes what ended before an instant.
        to_ms: to.map(|to| to.ms().saturating_add(1)),
        after: after.transpose()?,
    };
    let mut archive = open(archive)?;
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
