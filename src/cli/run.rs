//! `campanile run ...`.

use super::{
    change::{self, Again, Change, DryRun},
    explain,
    failure::{Failure, NOT_SUCCESS},
    following::{Followed, follow},
    job_flags,
    job_ref::JobRef,
    listing::{self, PageFlags, RUNS},
    output::{self, Format},
    progress::{Progress, Unit},
    remote::Remote,
    repeat, run_archive,
    watch::{self, UntilFlags},
};
use campanile_schema::{
    error::ErrorCode,
    limits::HTTP_WAIT_MS,
    operations::{JobGet, Operation, RunExplain, RunGet, RunList, rows},
    record::RunState,
    view::LogLevel,
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    str::FromStr,
    time::{Duration, Instant},
};

/// Which lines of a log.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct SearchFlags {
    /// Only lines with this text, in large or small letters
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Only lines of this level or a more severe one: trace, debug, info, warn, error
    #[arg(long, value_name = "LEVEL", value_parser = LogLevel::from_str)]
    level: Option<LogLevel>,
    /// Only the last lines, so many of those that the other flags leave
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
}

impl SearchFlags {
    pub fn query(&self) -> [(&'static str, Option<String>); 3] {
        let level = self.level.map(|level| level.as_str().to_owned());
        [("contains", self.grep.clone()), ("level", level), ("tail", self.tail.map(|lines| lines.to_string()))]
    }

    pub fn is_search(&self) -> bool {
        self.query().iter().any(|(_, given)| given.is_some())
    }
}

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// A run with its attempts
    Get {
        run: u64,
        /// Of this directory of `history archive` instead of a node
        #[arg(long, value_name = "DIR", conflicts_with = "watch")]
        archive: Option<PathBuf>,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Runs of all jobs: those that are open, newest first, then ended ones
    List(run_archive::ListArgs),
    /// Why a run exists, why it is not running, why it was late
    Explain {
        run: u64,
        #[command(flatten)]
        watch: repeat::Flags,
    },
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
        #[command(flatten)]
        search: SearchFlags,
        /// Of this directory of `history archive` instead of a node
        #[arg(long, value_name = "DIR", conflicts_with = "follow")]
        archive: Option<PathBuf>,
    },
    /// Cancel a run that is not final
    Cancel {
        run: u64,
        #[command(flatten)]
        change: Change,
    },
    /// Run a final run again, as its next generation
    Retry {
        run: u64,
        #[command(flatten)]
        again: Again,
        #[command(flatten)]
        change: Change,
    },
    /// Decide about a run in NEEDS_CONFIRMATION, or say that the body of a STOPPING run has ended
    Confirm {
        run: u64,
        /// rerun, succeeded or failed; ended for a run that is STOPPING
        #[arg(value_parser = ["rerun", "succeeded", "failed", "ended"])]
        decision: String,
        #[command(flatten)]
        change: Change,
    },
    /// Give a run that waits a priority of its own: it takes its place among the others at once
    Priority {
        run: u64,
        /// 0 to 1000, higher first
        priority: u16,
        #[command(flatten)]
        change: Change,
    },
    /// FAILED and TIMEOUT runs across jobs, newest first
    Failed {
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
}

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Get { run, archive: Some(archive), .. } => run_archive::get(&archive, run, format),
        Command::Log { search, archive: Some(_), .. } if search.is_search() => {
            Err(Failure::usage("--grep, --level and --tail search a log of a node, and not of --archive"))
        }
        Command::List(args) => run_archive::list(args, remote, format),
        Command::Explain { run, watch } => explain::show(watch, remote, format, &RunExplain::ROW.path_of(run), &[]),
        Command::Log { run, attempt, archive: Some(archive), .. } => run_archive::log(&archive, run, attempt, format),
        Command::Get { run, archive: None, watch } => {
            let zone = zone_of(remote, run, format)?;
            repeat::one(watch, format, zone.as_deref(), || remote.get(&path(run), &[]))
        }
        Command::Wait { run, timeout } => wait(remote, format, run, timeout),
        Command::Watch { run: Some(run), until, .. } => {
            watch::show(remote, format, &format!("{}/watch", path(run)), Vec::new(), &until)
        }
        Command::Watch { run: None, job, tenant, labels, state, until } => {
            let job = job.map(|job| JobRef::new(job, tenant.clone()).id(remote)).transpose()?;
            let query = vec![("jobId", job), ("tenantId", tenant), ("labels", labels), ("state", state)];
            watch::show(remote, format, rows::RUN_WATCH.path(), query, &until)
        }
        Command::Log { run, attempt, follow, search, archive: None } => {
            log(remote, format, run, attempt, follow, &search)
        }
        Command::Cancel { run, change } => {
            let wrong = |state: RunState| state.is_final().then_some("the run has ended; there is nothing to cancel");
            changed(remote, format, run, "cancel", &change.body(), change.dry, wrong)
        }
        Command::Retry { run, again, change } => {
            let wrong =
                |state: RunState| (!state.is_final()).then_some("only a run that has ended can be started again");
            changed(remote, format, run, "retry", &again.body(&change), change.dry, wrong)
        }
        Command::Confirm { run, decision, change } => {
            let body = json!({"decision": decision.to_ascii_uppercase(), "reason": change.reason});
            let ended = decision == "ended";
            let wrong = move |state: RunState| match state {
                RunState::Running | RunState::SuspectedLost if ended => None,
                _ if ended => Some("the run is not STOPPING"),
                RunState::NeedsConfirmation => None,
                _ => Some("the run does not wait for a confirmation"),
            };
            changed(remote, format, run, "confirm", &body, change.dry, wrong)
        }
        Command::Priority { run, priority, change } => {
            let body = json!({"priority": priority, "reason": change.reason});
            let wrong = |state: RunState| match state {
                RunState::Pending | RunState::Queued | RunState::RetryWait => None,
                _ => Some("only a run that is PENDING, QUEUED or RETRY_WAIT is given a priority"),
            };
            changed(remote, format, run, "priority", &body, change.dry, wrong)
        }
        Command::Failed { tenant, page, watch } => {
            let query = [("state", Some("FAILED,TIMEOUT".to_owned())), ("tenantId", tenant)];
            repeat::list(watch, format, RUNS, || page.read(remote, RunList::PATH, &query))
        }
    }
}

fn path(run: u64) -> String {
    RunGet::ROW.path_of(run)
}

/// Zone of the run's job, where instants are told by it.
fn zone_of(remote: &Remote, run: u64, format: Format) -> Result<Option<String>, Failure> {
    if !output::wants_job_zone(format) {
        return Ok(None);
    }
    let view = remote.get(&path(run), &[])?;
    // The run is what was asked for: it is shown, whatever became of its job.
    Ok(listing::zone_of(remote, &JobGet::ROW.path_of(&view["jobId"]), format).unwrap_or_default())
}

/// `wrong`: why a run of this state is refused, which a dry run says too.
fn changed(
    remote: &Remote,
    format: Format,
    run: u64,
    verb: &str,
    body: &Value,
    dry: DryRun,
    wrong: impl FnOnce(RunState) -> Option<&'static str>,
) -> Result<(), Failure> {
    if !dry.dry_run {
        return output::one(format, &remote.post(&format!("{}/{verb}", path(run)), body)?);
    }
    let view = remote.get(&path(run), &[])?;
    if verb == "retry" && body["force"] != true {
        Again::allowed(&view)?;
    }
    let state = view["state"].as_str().and_then(|state| state.parse().ok());
    match state.and_then(wrong) {
        Some(why) => Err(change::refused(ErrorCode::IllegalState, why)),
        None if verb == "priority" => {
            DryRun::told(&format!("give {} the priority {}", change::run(&view), body["priority"]))
        }
        None => DryRun::told(&format!("{verb} {}", change::run(&view))),
    }
}

/// Shows the run when it is final.
pub(super) fn wait(remote: &Remote, format: Format, run: u64, timeout: Option<u64>) -> Result<(), Failure> {
    let deadline = timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let view = until_final(remote, run, deadline)?;
    let state: Option<RunState> = view["state"].as_str().and_then(|state| state.parse().ok());
    let zone = listing::zone_of(remote, &JobGet::ROW.path_of(&view["jobId"]), format).unwrap_or_default();
    output::one_of(format, &view, zone.as_deref())?;
    match state {
        Some(RunState::Success) => Ok(()),
        Some(state) if state.is_final() => {
            let error = view["lastError"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
            Err(Failure::new(NOT_SUCCESS, format!("run {run} ended as {state}{error}")))
        }
        Some(state) => Err(Failure::unreachable(format!("run {run} is still {state}"))),
        None => Err(Failure::here("the node's answer has a state that this version does not know")),
    }
}

/// The run when it is final, or of an unknown state, or when it is time.
fn until_final(remote: &Remote, run: u64, deadline: Option<Instant>) -> Result<Value, Failure> {
    let waiting = Progress::new(format!("waiting for run {run}"), Unit::Time, None);
    loop {
        let left = deadline.map_or(Duration::from_millis(HTTP_WAIT_MS), |deadline| {
            deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(HTTP_WAIT_MS))
        });
        let seconds = left.as_secs().max(1).to_string();
        let view = remote.get(&path(run), &[("waitSec", Some(seconds))])?;
        let state: Option<RunState> = view["state"].as_str().and_then(|state| state.parse().ok());
        match state {
            Some(state) if !state.is_final() && deadline.is_none_or(|deadline| Instant::now() < deadline) => {
                waiting.name(format!("waiting for run {run}, {state}"));
            }
            Some(_) | None => return Ok(view),
        }
    }
}

fn log(
    remote: &Remote,
    format: Format,
    run: u64,
    attempt: Option<u32>,
    follow: bool,
    search: &SearchFlags,
) -> Result<(), Failure> {
    let path = format!("{}/log", path(run));
    if follow {
        return follow_log(remote, format, &path, attempt, search);
    }
    if search.is_search() {
        // The node looks at all of it for one answer.
        let mut query = vec![("attempt", attempt.map(|n| n.to_string()))];
        query.extend(search.query());
        return show(format, &remote.get(&path, &query)?);
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
fn follow_log(
    remote: &Remote,
    format: Format,
    path: &str,
    attempt: Option<u32>,
    search: &SearchFlags,
) -> Result<(), Failure> {
    let mut query = vec![("follow", Some("true".to_owned())), ("attempt", attempt.map(|n| n.to_string()))];
    query.extend(search.query());
    let followed = Followed { path, query: &query, what: "the log", ends: false };
    follow(remote, &followed, |event, data| {
        if event == "log" {
            show(format, data)?;
        }
        Ok(event == "end")
    })
}
