//! `campanile run ...`.

use super::{
    failure::{Failure, NOT_SUCCESS},
    following::{Followed, follow},
    job::PageFlags,
    job_flags,
    job_ref::JobRef,
    output::{self, Column, Format},
    remote::Remote,
    run_archive,
    watch::{self, UntilFlags},
};
use campanile_schema::{limits::HTTP_WAIT_MS, record::RunState};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// A run with its attempts
    Get {
        run: u64,
        /// Of this directory of `history archive` instead of a node
        #[arg(long, value_name = "DIR")]
        archive: Option<PathBuf>,
    },
    /// Ended runs of a directory of `history archive`, newest first. Of a node: `job runs`, `run failed`
    List(run_archive::ListArgs),
    /// Wait for the end of a run; exit code 8 when that is not SUCCESS
    Wait {
        run: u64,
        /// Give up after this (exit code 7): 30s, 5m [default: never]
        #[arg(long, value_name = "TIME", value_parser = job_flags::seconds)]
        timeout: Option<u64>,
    },
    /// Runs as they change, a line each: one until its end, or all that the flags leave
    Watch {
        run: Option<u64>,
        /// Of this job, by id or name; `name:123` for a name that looks like an id
        #[arg(long, conflicts_with = "run")]
        job: Option<String>,
        /// Of this tenant; also the tenant of the job's name
        #[arg(long, conflicts_with = "run")]
        tenant: Option<String>,
        /// Of jobs with these labels: key=value,key2!=value2,key3
        #[arg(short, long, conflicts_with = "run")]
        labels: Option<String>,
        /// Only changes to this state: running, success, failed, ...
        #[arg(long, conflicts_with = "run")]
        state: Option<String>,
        #[command(flatten)]
        until: UntilFlags,
    },
    /// The output of an attempt
    Log {
        run: u64,
        /// [default: the newest]
        #[arg(long)]
        attempt: Option<u32>,
        /// Go on as it grows, until the run (with --attempt: the attempt) has ended
        #[arg(short, long)]
        follow: bool,
        /// Of this directory of `history archive` instead of a node
        #[arg(long, value_name = "DIR", conflicts_with = "follow")]
        archive: Option<PathBuf>,
    },
    /// Cancel a run that is not final
    Cancel {
        run: u64,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Run a final run again, as its next generation
    Retry {
        run: u64,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Decide about a run in NEEDS_CONFIRMATION
    Confirm {
        run: u64,
        /// rerun, succeeded or failed
        #[arg(value_parser = ["rerun", "succeeded", "failed"])]
        decision: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// FAILED and TIMEOUT runs across jobs, newest first
    Failed {
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        page: PageFlags,
    },
}

pub(super) const RUNS: &[Column] = &[
    ("RUN", "runId"),
    ("STATE", "state"),
    ("SOURCE", "source"),
    ("LOGICAL TIME", "logicalTime"),
    ("ATTEMPTS", "attemptCount"),
    ("CREATED", "createdAt"),
    ("ENDED", "endedAt"),
    ("ERROR", "lastError"),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Get { run, archive: Some(archive) } => run_archive::get(&archive, run, format),
        Command::List(args) => run_archive::list(args, format),
        Command::Log { run, attempt, archive: Some(archive), .. } => run_archive::log(&archive, run, attempt, format),
        Command::Get { run, archive: None } => output::one(format, &remote.get(&path(run), &[])?),
        Command::Wait { run, timeout } => wait(remote, format, run, timeout),
        Command::Watch { run: Some(run), until, .. } => {
            watch::show(remote, format, &format!("{}/watch", path(run)), Vec::new(), &until)
        }
        Command::Watch { run: None, job, tenant, labels, state, until } => {
            let job = job.map(|job| JobRef::new(job, tenant.clone()).id(remote)).transpose()?;
            let query = vec![("jobId", job), ("tenantId", tenant), ("labels", labels), ("state", state)];
            watch::show(remote, format, "/api/v1/runs/watch", query, &until)
        }
        Command::Log { run, attempt, follow, archive: None } => log(remote, format, run, attempt, follow),
        Command::Cancel { run, reason } => post(remote, format, run, "cancel", &json!({"reason": reason})),
        Command::Retry { run, reason } => post(remote, format, run, "retry", &json!({"reason": reason})),
        Command::Confirm { run, decision, reason } => {
            let decision = decision.to_ascii_uppercase();
            post(remote, format, run, "confirm", &json!({"decision": decision, "reason": reason}))
        }
        Command::Failed { tenant, page } => {
            let query = [("state", Some("FAILED".to_owned())), ("tenantId", tenant)];
            output::list(format, &page.read(remote, "/api/v1/runs", &query)?, RUNS)
        }
    }
}

fn path(run: u64) -> String {
    format!("/api/v1/runs/{run}")
}

fn post(remote: &Remote, format: Format, run: u64, verb: &str, body: &Value) -> Result<(), Failure> {
    output::one(format, &remote.post(&format!("{}/{verb}", path(run)), body)?)
}

/// Shows the run when it is final.
pub(super) fn wait(remote: &Remote, format: Format, run: u64, timeout: Option<u64>) -> Result<(), Failure> {
    let deadline = timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    loop {
        let left = deadline.map_or(Duration::from_millis(HTTP_WAIT_MS), |deadline| {
            deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(HTTP_WAIT_MS))
        });
        let seconds = left.as_secs().max(1).to_string();
        let view = remote.get(&path(run), &[("waitSec", Some(seconds))])?;
        let state: Option<RunState> = view["state"].as_str().and_then(|state| state.parse().ok());
        match state {
            None => return Err(Failure::here("the node's answer has a state that this version does not know")),
            Some(RunState::Success) => return output::one(format, &view),
            Some(state) if state.is_final() => {
                output::one(format, &view)?;
                let error = view["lastError"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
                return Err(Failure::new(NOT_SUCCESS, format!("run {run} ended as {state}{error}")));
            }
            Some(state) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                output::one(format, &view)?;
                return Err(Failure::unreachable(format!("run {run} is still {state}")));
            }
            Some(_) => {}
        }
    }
}

fn log(remote: &Remote, format: Format, run: u64, attempt: Option<u32>, follow: bool) -> Result<(), Failure> {
    let path = format!("{}/log", path(run));
    if follow {
        return follow_log(remote, format, &path, attempt);
    }
    let mut attempt = attempt;
    let mut offset = 0;
    loop {
        let query = [("attempt", attempt.map(|n| n.to_string())), ("offset", Some(offset.to_string()))];
        let part = remote.get(&path, &query)?;
        let next = part["nextOffset"].as_u64().unwrap_or(offset);
        show(format, &part)?;
        let stands = next == offset;
        offset = next;
        attempt = part["attempt"].as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).or(attempt);
        if part["end"] == true || stands {
            return Ok(());
        }
    }
}

fn show(format: Format, part: &Value) -> Result<(), Failure> {
    match format {
        Format::Table => output::text(part["text"].as_str().unwrap_or_default()),
        Format::Json | Format::Yaml => output::one(format, part)?,
    }
    Ok(())
}

/// As it grows, over all attempts to come.
fn follow_log(remote: &Remote, format: Format, path: &str, attempt: Option<u32>) -> Result<(), Failure> {
    let query = [("follow", Some("true".to_owned())), ("attempt", attempt.map(|n| n.to_string()))];
    let followed = Followed { path, query: &query, what: "the log", ends: false };
    follow(remote, &followed, |event, data| {
        if event == "log" {
            show(format, data)?;
        }
        Ok(event == "end")
    })
}
