//! `campanile run ...`.

use super::{
    failure::{Failure, NOT_SUCCESS},
    job::PageFlags,
    job_flags,
    output::{self, Column, Format},
    remote::Remote,
};
use crate::api::Problem;
use campanile_schema::{error::ErrorCode, limits::HTTP_WAIT_MS, record::RunState};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// A run with its attempts
    Get { run: u64 },
    /// Wait for the end of a run; exit code 8 when that is not SUCCESS
    Wait {
        run: u64,
        /// Give up after this (exit code 7): 30s, 5m [default: never]
        #[arg(long, value_name = "TIME", value_parser = job_flags::seconds)]
        timeout: Option<u64>,
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
/// Pause before a log that broke off is followed again.
const FOLLOW: Duration = Duration::from_millis(500);
/// A node that was heard may be away so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Get { run } => output::one(format, &remote.get(&path(run), &[])?),
        Command::Wait { run, timeout } => wait(remote, format, run, timeout),
        Command::Log { run, attempt, follow } => log(remote, format, run, attempt, follow),
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

/// As it grows, over all attempts to come. A broken connection is made again where it broke, for a while.
fn follow_log(remote: &Remote, format: Format, path: &str, attempt: Option<u32>) -> Result<(), Failure> {
    let query = [("follow", Some("true".to_owned())), ("attempt", attempt.map(|n| n.to_string()))];
    let (mut last, mut heard) = (None, None);
    loop {
        let (mut ended, mut failed) = (false, None);
        let came = remote.events(path, &query, last.clone().as_deref(), |event| {
            heard = Some(Instant::now());
            let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            match event.name.as_str() {
                "log" => {
                    last = event.id;
                    if let Err(failure) = show(format, &data) {
                        failed = Some(failure);
                    }
                }
                "end" => ended = true,
                "problem" => failed = serde_json::from_value::<Problem>(data).ok().map(|p| p.into_error().into()),
                _ => {}
            }
            !ended && failed.is_none()
        });
        let failure = match (ended, failed, came) {
            (true, None, _) => return Ok(()),
            (_, Some(failure), _) | (_, None, Err(failure)) => failure,
            (false, None, Ok(())) => Failure::unreachable("the log broke off"),
        };
        // What a node that comes back can make good; never at first, when the call itself may be wrong.
        let passing = failure.code == ErrorCode::NotReady.exit_code();
        if !passing || heard.is_none_or(|at: Instant| at.elapsed() > PATIENCE) {
            return Err(failure);
        }
        std::thread::sleep(FOLLOW);
    }
}
