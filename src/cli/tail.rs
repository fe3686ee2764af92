//! `campanile tail`: runs as they change, and with `--logs` what they write, as it happens: of a job, of a tenant, or all that the
//! credential sees.
//!
//! The changes are those of `run watch`. The log of each run that starts is followed on a connection of its own, at most
//! [`FOLLOWED`] at once.

use super::{
    failure::Failure,
    following::{Followed, follow},
    job_ref::JobRef,
    output::{self, Format},
    remote::Remote,
    run::SearchFlags,
    watch::{self, UntilFlags},
};
use campanile_schema::{
    operations::{Operation, RunLog, rows},
    record::RunState,
};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Logs that are followed at once.
const FOLLOWED: usize = 32;
/// With `--for`, the logs that are followed get this long to end.
const REST: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(super) struct Args {
    /// Of this job, by id or name; `name:123` for a name that looks like an id [default: of all jobs]
    job: Option<String>,
    /// Of this tenant; also the tenant of the job's name
    #[arg(long)]
    tenant: Option<String>,
    /// Of jobs with these labels: key=value,key2!=value2,key3
    #[arg(short, long)]
    labels: Option<String>,
    /// Only changes to this state: running, success, failed, ... Logs are those of all runs
    #[arg(long)]
    state: Option<RunState>,
    /// Also what the runs that start from now on write, 32 of them at once at most
    #[arg(long)]
    logs: bool,
    #[command(flatten)]
    search: SearchFlags,
    #[command(flatten)]
    until: UntilFlags,
}

pub(super) fn run(args: Args, remote: &Remote, format: Format) -> Result<(), Failure> {
    let Args { job, tenant, labels, state, logs, search, until } = args;
    if !logs && search.is_search() {
        return Err(Failure::usage("--grep, --level and --tail choose lines of logs: add --logs"));
    }
    let job = job.map(|job| JobRef::new(job, tenant.clone()).id(remote)).transpose()?;
    // A run's log is followed from its start on, whatever state is asked for.
    let wanted = state.filter(|_| !logs).map(|state| state.as_str().to_owned());
    let mut query = vec![("jobId", job), ("tenantId", tenant), ("labels", labels), ("state", wanted)];
    query.push(("waitSec", until.seconds()));
    let followers = Followers { remote: remote.clone(), format, search, open: Arc::default() };
    let followed =
        Followed { path: rows::RUN_WATCH.path(), query: &query, what: "the watch", ends: until.seconds().is_some() };
    follow(remote, &followed, |event, data| {
        match event {
            "run" => {
                if state.is_none_or(|state| data["state"] == state.as_str()) {
                    watch::run_line(format, data)?;
                }
                if logs && data["state"] == RunState::Running.as_str() {
                    followers.begin(data);
                }
            }
            "dropped" => eprintln!("{} changes or more were not seen, perhaps none of these", data["dropped"]),
            "end" => return Ok(true),
            _ => {}
        }
        Ok(false)
    })?;
    followers.rest();
    Ok(())
}

/// The runs whose logs are followed, and who waits for their ends.
type Open = Arc<(Mutex<HashSet<u64>>, Condvar)>;

struct Followers {
    remote: Remote,
    format: Format,
    search: SearchFlags,
    open: Open,
}

impl Followers {
    /// Follows the log of a run, over all its attempts, unless somebody does.
    fn begin(&self, change: &Value) {
        let Some(run) = change["runId"].as_u64() else { return };
        {
            let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
            if open.contains(&run) {
                return;
            }
            if open.len() >= FOLLOWED {
                return eprintln!("run {run}: its log is not followed, because {FOLLOWED} others are");
            }
            open.insert(run);
        }
        let name = change["jobName"].as_str().unwrap_or_default().to_owned();
        let (remote, format, search, open) = (self.remote.clone(), self.format, self.search.clone(), self.open.clone());
        std::thread::spawn(move || {
            let mut lines = Lines { format, run, name, attempt: None, begun: String::new() };
            if let Err(failure) = follow_log(&remote, run, &search, &mut lines) {
                eprintln!("run {run}: its log is not followed any more: {}", failure.message);
            }
            lines.end();
            open.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            open.1.notify_all();
        });
    }

    /// Lets logs that are followed come to their end, for a moment.
    fn rest(&self) {
        let open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.open.1.wait_timeout_while(open, REST, |open| !open.is_empty());
        drop(waited);
    }
}

fn follow_log(remote: &Remote, run: u64, search: &SearchFlags, lines: &mut Lines) -> Result<(), Failure> {
    let path = RunLog::ROW.path_of(run);
    let mut query = vec![("follow", Some("true".to_owned()))];
    query.extend(search.query());
    let followed = Followed { path: &path, query: &query, what: "the log", ends: false };
    follow(remote, &followed, |event, data| {
        if event == "log" {
            lines.more(data)?;
        }
        Ok(event == "end")
    })
}

/// Lines of one run among those of others: each is written whole, with the run before it.
struct Lines {
    format: Format,
    run: u64,
    name: String,
    /// The attempt that is read.
    attempt: Option<u64>,
    /// The beginning of a line of it.
    begun: String,
}

impl Lines {
    fn more(&mut self, part: &Value) -> Result<(), Failure> {
        let text = part["text"].as_str().unwrap_or_default();
        match self.format {
            Format::Table => {
                let attempt = part["attempt"].as_u64();
                if attempt != self.attempt {
                    // The attempt before has written no end of its last line.
                    self.end();
                    self.attempt = attempt;
                }
                self.begun.push_str(text);
                if let Some(end) = self.begun.rfind('\n') {
                    let rest = self.begun.split_off(end + 1);
                    let whole = std::mem::replace(&mut self.begun, rest);
                    output::text(&self.prefixed(&whole));
                }
                Ok(())
            }
            Format::Json => {
                output::text(&format!("{}\n", self.told(part)));
                Ok(())
            }
            Format::Yaml => {
                output::text("---\n");
                output::one(self.format, &self.told(part))
            }
        }
    }

    fn end(&mut self) {
        let rest = std::mem::take(&mut self.begun);
        if !rest.is_empty() {
            output::text(&self.prefixed(&rest));
        }
    }

    fn told(&self, part: &Value) -> Value {
        json!({"runId": self.run, "jobName": self.name, "attempt": part["attempt"], "text": part["text"]})
    }

    fn prefixed(&self, text: &str) -> String {
        text.lines().map(|line| format!("{} {} | {line}\n", self.name, self.run)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_its_run() {
        let name = "billing".to_owned();
        let lines = Lines { format: Format::Table, run: 7, name, attempt: None, begun: String::new() };
        assert_eq!(lines.prefixed("one\n\ntwo"), "billing 7 | one\nbilling 7 | \nbilling 7 | two\n");
    }
}
