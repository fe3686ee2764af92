//! `campanile bulk ...`: one change for all jobs or runs that a filter names.
//!
//! Each command first asks the node how many there are (a dry run), and above [`ASKED_ABOVE`] a person has to agree.

use super::{
    change::{self, Change, DryRun},
    failure::Failure,
    job_flags,
    job_ref::JobRef,
    listing::PageFlags,
    output::{self, Column, Format},
    progress::{Progress, Unit},
    remote::Remote,
    repeat,
};
use campanile_schema::{
    error::ErrorCode,
    operations::{BulkAbort, BulkCreate, BulkGet, BulkList, BulkUndo, Operation},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, IsTerminal},
    time::Duration,
};

/// So many items are changed without a question.
const ASKED_ABOVE: u64 = 10;
/// Between two looks at an operation that is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Pause all jobs that fit
    Pause {
        #[command(flatten)]
        jobs: Jobs,
        #[command(flatten)]
        how: How,
    },
    /// Resume all jobs that fit
    Resume {
        #[command(flatten)]
        jobs: Jobs,
        #[command(flatten)]
        how: How,
    },
    /// Run all jobs that fit now, each once
    Trigger {
        #[command(flatten)]
        jobs: Jobs,
        #[command(flatten)]
        how: How,
    },
    /// Delete all jobs that fit; with --grace they are paused first, and `bulk undo` brings them back until then
    Delete {
        #[command(flatten)]
        jobs: Jobs,
        /// Pause now and delete after this time: 30m, 12h, 7d
        #[arg(long, value_name = "TIME", value_parser = job_flags::seconds)]
        grace: Option<u64>,
        #[command(flatten)]
        how: How,
    },
    /// Cancel all open runs that fit
    Cancel {
        #[command(flatten)]
        runs: Runs,
        #[command(flatten)]
        how: How,
    },
    /// Run all failed runs that fit again, each as its next generation
    Retry {
        #[command(flatten)]
        runs: Runs,
        #[command(flatten)]
        how: How,
    },
    /// Run all dead letters that fit again, each as its next generation
    Redrive {
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        of: Of,
        /// With this cause, as `dlq causes` shows it
        #[arg(long)]
        cause: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// Bulk operations, the newest first
    List {
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// A bulk operation and its progress
    Get {
        id: u64,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Begin no further items; what was done stays
    Abort {
        id: u64,
        #[command(flatten)]
        change: Change,
    },
    /// Resume what it has paused, or pause what it has resumed, where nobody has changed it since
    Undo {
        id: u64,
        #[command(flatten)]
        change: Change,
    },
}

/// Which jobs.
#[derive(clap::Args)]
pub(super) struct Jobs {
    #[arg(long)]
    tenant: Option<String>,
    /// enabled or paused
    #[arg(long)]
    status: Option<String>,
    /// With these labels: key=value,key2!=value2,key3
    #[arg(short, long)]
    labels: Option<String>,
    /// Part of the name, display name, description, owner or an annotation
    #[arg(long)]
    text: Option<String>,
}

/// Which runs.
#[derive(clap::Args)]
pub(super) struct Runs {
    #[arg(long)]
    tenant: Option<String>,
    /// In one of these states, with commas between them
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    of: Of,
    /// Of jobs with these labels: key=value,key2!=value2,key3
    #[arg(short, long)]
    labels: Option<String>,
    /// schedule, manual, backfill, dag, event, compensation or replay
    #[arg(long)]
    source: Option<String>,
}

/// Of which job and which time.
#[derive(clap::Args)]
pub(super) struct Of {
    /// Of this job, by id or name; `name:123` for a name that looks like an id
    #[arg(long)]
    job: Option<String>,
    /// Ended at this instant or later, or created if they are open: 2026-02-01T00:00:00Z
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// The same, or earlier
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,
}

/// What every change of many takes.
#[derive(clap::Args)]
pub(super) struct How {
    /// All of the tenant: without it a filter is needed
    #[arg(long)]
    all: bool,
    /// Do not ask, however many there are
    #[arg(short, long)]
    yes: bool,
    /// Wait until the operation has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    change: Change,
}

const COLUMNS: &[Column] = &[
    Column::id("BULK", "bulkId"),
    Column::text("ACTION", "action"),
    Column::state("STATE", "state"),
    Column::text("TENANT", "tenantId").minor(4),
    Column::number("MATCHED", "matched").minor(1),
    Column::number("DONE", "done"),
    Column::number("UNCHANGED", "unchanged").minor(2),
    Column::number("FAILED", "failed"),
    Column::number("COMPENSATED", "compensated").minor(6),
    Column::text("BY", "requestedBy").minor(5),
    Column::time("CREATED", "createdAt").minor(3),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Pause { jobs, how } => begin(remote, format, &jobs.body("PAUSE"), &how),
        Command::Resume { jobs, how } => begin(remote, format, &jobs.body("RESUME"), &how),
        Command::Trigger { jobs, how } => begin(remote, format, &jobs.body("TRIGGER"), &how),
        Command::Delete { jobs, grace, how } => {
            let mut body = jobs.body("DELETE");
            body["graceSec"] = json!(grace);
            begin(remote, format, &body, &how)
        }
        Command::Cancel { runs, how } => begin(remote, format, &runs.body("CANCEL", remote)?, &how),
        Command::Retry { runs, how } => begin(remote, format, &runs.body("RETRY", remote)?, &how),
        Command::Redrive { tenant, of, cause, how } => {
            let mut filter = of.filter(tenant.as_deref(), remote)?;
            put(&mut filter, "cause", cause.as_deref());
            begin(remote, format, &json!({"action": "REDRIVE", "tenantId": tenant, "filter": filter}), &how)
        }
        Command::List { tenant, page, watch } => {
            let query = [("tenantId", tenant)];
            repeat::list(watch, format, COLUMNS, || page.read(remote, BulkList::PATH, &query))
        }
        Command::Get { id, watch } => repeat::one(watch, format, None, || remote.get(&BulkGet::ROW.path_of(id), &[])),
        Command::Abort { id, change } => {
            if change.dry.dry_run {
                return would(remote, "abort", id);
            }
            output::one(format, &remote.post(&BulkAbort::ROW.path_of(id), &change.body())?)
        }
        Command::Undo { id, change } => {
            if change.dry.dry_run {
                return would(remote, "undo", id);
            }
            output::one(format, &remote.post(&BulkUndo::ROW.path_of(id), &change.body())?)
        }
    }
}

/// A field that was given.
fn put(filter: &mut Value, name: &str, given: Option<&str>) {
    if let Some(given) = given {
        filter[name] = json!(given);
    }
}

impl Jobs {
    fn body(&self, action: &str) -> Value {
        let mut filter = json!({});
        put(&mut filter, "status", self.status.as_deref());
        put(&mut filter, "labels", self.labels.as_deref());
        put(&mut filter, "text", self.text.as_deref());
        json!({"action": action, "tenantId": self.tenant, "filter": filter})
    }
}

impl Of {
    fn filter(&self, tenant: Option<&str>, remote: &Remote) -> Result<Value, Failure> {
        let mut filter = json!({});
        if let Some(job) = &self.job {
            let id = JobRef::new(job.clone(), tenant.map(str::to_owned)).id(remote)?;
            filter["jobId"] = json!(id.parse::<u64>().map_err(|error| Failure::usage(format!("--job: {error}")))?);
        }
        put(&mut filter, "from", self.from.as_deref());
        put(&mut filter, "to", self.to.as_deref());
        Ok(filter)
    }
}

impl Runs {
    fn body(&self, action: &str, remote: &Remote) -> Result<Value, Failure> {
        let mut filter = self.of.filter(self.tenant.as_deref(), remote)?;
        put(&mut filter, "state", self.state.as_deref());
        put(&mut filter, "labels", self.labels.as_deref());
        put(&mut filter, "source", self.source.as_deref());
        Ok(json!({"action": action, "tenantId": self.tenant, "filter": filter}))
    }
}

/// Counts, asks, begins.
fn begin(remote: &Remote, format: Format, body: &Value, how: &How) -> Result<(), Failure> {
    let mut body = body.clone();
    body["all"] = json!(how.all);
    body["reason"] = json!(how.change.reason);
    let path = BulkCreate::PATH;
    let dry = how.change.dry.dry_run;
    if dry || !how.yes {
        let mut preview = body.clone();
        preview["dryRun"] = json!(true);
        let counted = remote.post(path, &preview)?;
        if dry {
            output::one(format, &counted)?;
            DryRun::nothing_changed();
            return Ok(());
        }
        agreed(&counted)?;
    }
    let mut bulk = remote.post(path, &body)?;
    if how.wait {
        bulk = wait(remote, bulk)?;
    }
    output::one(format, &bulk)
}

/// `12 jobs`, `at least 1000000 runs`.
fn count(counted: &Value) -> String {
    let of_runs = matches!(counted["action"].as_str(), Some("CANCEL" | "RETRY" | "REDRIVE"));
    let (matched, what) = (counted["matched"].as_u64().unwrap_or_default(), if of_runs { "runs" } else { "jobs" });
    let at_least = if counted["matchedMore"] == json!(true) { "at least " } else { "" };
    format!("{at_least}{matched} {what}")
}

/// Only a person can agree, and only one who can be asked.
fn agreed(counted: &Value) -> Result<(), Failure> {
    let few = counted["matched"].as_u64().is_some_and(|matched| matched <= ASKED_ABOVE);
    if few && counted["matchedMore"] != json!(true) {
        return Ok(());
    }
    let (action, count) = (counted["action"].as_str().unwrap_or("?").to_ascii_lowercase(), count(counted));
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{action} {count}: nothing was changed; add --yes to do it")));
    }
    eprint!("{action} {count}. Go on? [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::usage("nothing was changed")),
    }
}

/// Until it has ended, or waits for the end of its grace.
fn wait(remote: &Remote, mut bulk: Value) -> Result<Value, Failure> {
    let path = BulkGet::ROW.path_of(&bulk["bulkId"]);
    let progress = Progress::new("items", Unit::Things("items"), bulk["matched"].as_u64());
    let ended = ["done", "unchanged", "failed", "compensated"];
    let seen = |bulk: &Value| ended.iter().filter_map(|field| bulk[field].as_u64()).sum();
    let mut shown: u64 = 0;
    while matches!(bulk["state"].as_str(), Some("RUNNING" | "ABORTING")) {
        std::thread::sleep(LOOK_AGAIN);
        bulk = remote.get(&path, &[])?;
        let now: u64 = seen(&bulk);
        progress.add(now.saturating_sub(shown));
        shown = shown.max(now);
    }
    drop(progress);
    if let Some(left) = bulk["compensated"].as_u64().filter(|left| *left > 0) {
        eprintln!(
            "{left} runs were left as they are, because their compensation was started; `run retry ID --force` runs one again"
        );
    }
    match bulk["failed"].as_u64() {
        Some(0) | None => Ok(bulk),
        Some(failed) => {
            let first = &bulk["failures"][0];
            let why = format!("{failed} items failed; the first, {}: {}", first["id"], first["message"]);
            Err(Failure::here(why))
        }
    }
}

fn would(remote: &Remote, verb: &str, id: u64) -> Result<(), Failure> {
    let view = remote.get(&BulkGet::ROW.path_of(id), &[])?;
    let (action, state) = (view["action"].as_str().unwrap_or("?"), view["state"].as_str().unwrap_or("?"));
    if verb == "abort" && matches!(state, "DONE" | "ABORTED") {
        let why = format!("the bulk operation is {state}: there is nothing to abort");
        return Err(change::refused(ErrorCode::IllegalState, why));
    }
    DryRun::told(&format!("{verb} bulk operation {id}, {action} ({state})"))
}
