//! `campanile backfill ...`: stretches of a job's past that it runs.

use super::{
    change::{self, Change, DryRun},
    failure::Failure,
    job_ref::JobRef,
    output::{self, Format},
    remote::Remote,
    repeat,
};
use campanile_schema::{
    error::ErrorCode,
    operations::{
        BackfillCancel, BackfillGet, BackfillPause, BackfillResume, JobBackfill, JobBackfillGet, JobReplay, Operation,
        Row,
    },
};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(super) struct Stretch {
    #[command(flatten)]
    job: JobRef,
    /// First instant, for example 2026-02-01T00:00:00Z
    #[arg(long)]
    from: String,
    /// Last instant; what the schedule has not decided yet is left to it
    #[arg(long)]
    to: String,
    /// Runs that are open at once, 1 to 200; 1 under FORBID and QUEUE_ONE [default: 8]
    #[arg(long, value_name = "N")]
    parallelism: Option<u32>,
    /// Start the job's hooks when a run fails
    #[arg(long)]
    hooks: bool,
    #[command(flatten)]
    change: Change,
}

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Run instants of the past; with --dry-run only count them
    Create {
        #[command(flatten)]
        stretch: Stretch,
        /// missing: those that made no run; failed: those whose run failed; all
        #[arg(long, value_parser = ["missing", "failed", "all"], default_value = "missing")]
        mode: String,
        /// skip or run instants of which the ledger says nothing any more
        #[arg(long, value_parser = ["skip", "run"], default_value = "skip")]
        unknown: String,
    },
    /// Run instants that made a run once more, with the params of that run
    Replay {
        #[command(flatten)]
        stretch: Stretch,
    },
    /// A backfill and its progress
    Get {
        id: u64,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// The newest backfill of a job
    Of {
        #[command(flatten)]
        job: JobRef,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Start nothing more; runs that are open go on
    Pause {
        id: u64,
        #[command(flatten)]
        change: Change,
    },
    /// Go on with a backfill that was paused
    Resume {
        id: u64,
        #[command(flatten)]
        change: Change,
    },
    /// Start nothing more, and cancel the open runs
    Cancel {
        id: u64,
        #[command(flatten)]
        change: Change,
    },
}

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Create { stretch, mode, unknown } => {
            let more = json!({"mode": mode.to_ascii_uppercase(), "unknown": unknown.to_ascii_uppercase()});
            begin(remote, format, JobBackfill::ROW, &stretch, &more)
        }
        Command::Replay { stretch } => begin(remote, format, JobReplay::ROW, &stretch, &json!({})),
        Command::Get { id, watch } => {
            repeat::one(watch, format, None, || remote.get(&BackfillGet::ROW.path_of(id), &[]))
        }
        Command::Of { job, watch } => {
            let path = JobBackfillGet::ROW.path_of(job.id(remote)?);
            repeat::one(watch, format, None, || remote.get(&path, &[]))
        }
        Command::Pause { id, change } => changed(remote, format, BackfillPause::ROW, id, &change),
        Command::Resume { id, change } => changed(remote, format, BackfillResume::ROW, id, &change),
        Command::Cancel { id, change } => {
            if change.dry.dry_run {
                return would(remote, "cancel", id);
            }
            let path = BackfillCancel::ROW.path_of(id);
            remote.delete(&path, &[("reason", change.reason)])?;
            output::one(format, &remote.get(&BackfillGet::ROW.path_of(id), &[])?)
        }
    }
}

fn begin(remote: &Remote, format: Format, row: &Row, stretch: &Stretch, more: &Value) -> Result<(), Failure> {
    let Stretch { job, from, to, parallelism, hooks, change } = stretch;
    let mut body = json!({
        "from": from, "to": to, "parallelism": parallelism, "hooks": hooks, "dryRun": change.dry.dry_run,
        "reason": change.reason,
    });
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    let answer = remote.post(&row.path_of(job.id(remote)?), &body)?;
    output::one(format, &answer)?;
    if change.dry.dry_run {
        DryRun::nothing_changed();
    }
    Ok(())
}

fn changed(remote: &Remote, format: Format, row: &Row, id: u64, change: &Change) -> Result<(), Failure> {
    let verb = row.name.trim_start_matches("backfill.");
    if change.dry.dry_run {
        return would(remote, verb, id);
    }
    output::one(format, &remote.post(&row.path_of(id), &change.body())?)
}

fn would(remote: &Remote, verb: &str, id: u64) -> Result<(), Failure> {
    let view = remote.get(&BackfillGet::ROW.path_of(id), &[])?;
    let state = view["state"].as_str().unwrap_or("?");
    if matches!(state, "DONE" | "CANCELED") {
        let why = format!("the backfill is {state}; create another one");
        return Err(change::refused(ErrorCode::IllegalState, why));
    }
    DryRun::told(&format!("{verb} backfill {id} of job {} ({state})", view["jobId"]))
}
