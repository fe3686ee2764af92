//! `campanile dlq ...`: dead letters.

use super::{
    change::{self, Again, Change, DryRun},
    failure::Failure,
    job_ref::JobRef,
    listing::PageFlags,
    output::{self, Column, Format},
    progress::{Progress, Unit},
    remote::Remote,
    repeat,
};
use campanile_schema::{
    error::ErrorCode,
    operations::{DlqCauses, DlqDiscard, DlqList, DlqRedrive, Operation, Row, RunGet},
};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Dead letters, newest first
    List {
        #[command(flatten)]
        which: Which,
        /// Of this job, by id or name; `name:123` for a name that looks like an id
        #[arg(long)]
        job: Option<String>,
        /// With this cause, as `dlq causes` shows it
        #[arg(long)]
        cause: Option<String>,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Dead letters by cause, the most frequent first: errors that differ in numbers and ids only are one
    Causes {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Run dead letters again, each as its next generation
    Redrive {
        #[arg(required = true)]
        runs: Vec<u64>,
        #[command(flatten)]
        again: Again,
        #[command(flatten)]
        change: Change,
    },
    /// Put dead letters away; the runs stay in the history
    Discard {
        #[arg(required = true)]
        runs: Vec<u64>,
        #[command(flatten)]
        change: Change,
    },
}

/// Whose, and of which time.
#[derive(clap::Args)]
pub(super) struct Which {
    #[arg(long)]
    tenant: Option<String>,
    /// Ended at this instant or later: 2026-02-01T00:00:00Z
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// Ended at this instant or earlier
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,
}

impl Which {
    fn query(self) -> Vec<(&'static str, Option<String>)> {
        vec![("tenantId", self.tenant), ("from", self.from), ("to", self.to)]
    }
}

const CAUSES: &[Column] = &[
    Column::id("CAUSE", "cause"),
    Column::number("COUNT", "count"),
    Column::number("JOBS", "jobs").minor(2),
    Column::time("LAST", "lastAt").minor(1),
    Column::id("RUN", "runId").minor(3),
    Column::text("REASON", "reason"),
];
const LETTERS: &[Column] = &[
    Column::id("RUN", "runId"),
    Column::text("TENANT", "tenantId").minor(2),
    Column::text("JOB", "jobName"),
    Column::time("AT", "at").minor(1),
    Column::number("ATTEMPTS", "attemptCount").minor(3),
    Column::text("REASON", "reason").minor(4),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Causes { which, watch } => {
            let query = which.query();
            repeat::list(watch, format, CAUSES, || remote.get(DlqCauses::PATH, &query))
        }
        Command::List { which, job, cause, page, watch } => {
            let job = job.map(|job| JobRef::new(job, which.tenant.clone()).id(remote)).transpose()?;
            let mut query = which.query();
            query.extend([("jobId", job), ("cause", cause)]);
            repeat::list(watch, format, LETTERS, || page.read(remote, DlqList::PATH, &query))
        }
        Command::Redrive { runs, again, change } => {
            let would = if again.force { would } else { would_redrive };
            each(remote, &runs, ("redrive", DlqRedrive::ROW, &again.body(&change)), change.dry, format, would)
        }
        Command::Discard { runs, change } => {
            each(remote, &runs, ("discard", DlqDiscard::ROW, &change.body()), change.dry, format, would)
        }
    }
}

/// One after the other; goes on after a refusal, and ends with the last one's exit code. `would` reads the run in a dry run, or says why
/// the change would be refused.
pub(super) fn each(
    remote: &Remote,
    runs: &[u64],
    (verb, row, body): (&str, &Row, &Value),
    dry: DryRun,
    format: Format,
    would: fn(&Remote, u64) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    let (mut refused, mut items) = (None, Vec::new());
    let progress = Progress::new(verb, Unit::Things("runs"), Some(runs.len() as u64));
    for run in runs {
        let done = if dry.dry_run {
            let would = would(remote, *run).map(|view| format!("{verb} {}", change::run(&view)));
            would.map(|would| (format!("would {would}"), json!({"runId": run, "dryRun": true, "would": would})))
        } else {
            let done = remote.post(&row.path_of(run), body);
            done.map(|_| (format!("{run} {verb}: done"), json!({"runId": run, "done": verb})))
        };
        match done {
            Ok((told, value)) => match format {
                Format::Table => output::text(&format!("{told}\n")),
                Format::Json | Format::Yaml => items.push(value),
            },
            Err(failure) => {
                items.push(json!({"runId": run, "error": failure.message}));
                progress.say(&format!("{run} {verb}: {}", failure.message));
                refused = Some(failure);
            }
        }
        progress.add(1);
    }
    drop(progress);
    if format != Format::Table {
        output::one(format, &json!({"items": items}))?;
    }
    if dry.dry_run {
        DryRun::nothing_changed();
    }
    match refused {
        Some(failure) => Err(Failure::new(failure.code, "")),
        None => Ok(()),
    }
}

fn would_redrive(remote: &Remote, run: u64) -> Result<Value, Failure> {
    let view = would(remote, run)?;
    Again::allowed(&view)?;
    Ok(view)
}

/// The run, when it is a dead letter.
fn would(remote: &Remote, run: u64) -> Result<Value, Failure> {
    let view = remote.get(&RunGet::ROW.path_of(run), &[])?;
    if view["deadLetter"] == true {
        return Ok(view);
    }
    Err(change::refused(ErrorCode::IllegalState, "the run is not a dead letter (it may have been redriven)"))
}
