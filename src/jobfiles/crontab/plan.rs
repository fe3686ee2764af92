//! What an import would do to the jobs that exist. Applying the same crontab twice leaves nothing to do.
//!
//! A crontab decides the schedule, its zone and random delay, the command with its environment and input, the pool, and
//! the `cron.*` labels. All else (policies, time limit, priority, other labels ...) belongs to the job's owner once the
//! job exists, and a later import leaves it alone.

use crate::LABELS as LABELS_OF_APPLY;

use super::{Import, LABEL_FILE, LABEL_MAILTO, LABEL_USER};
use campanile_schema::{
    ids::JobId,
    job::{Action, JobSpec, JobStatus, JobView, Trigger},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

const LABELS: [&str; 3] = [LABEL_FILE, LABEL_MAILTO, LABEL_USER];

#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub create: Vec<JobSpec>,
    pub change: Vec<Change>,
    /// Names of jobs that are as the crontab says.
    pub same: Vec<String>,
    /// Names of jobs made from these files whose line is no longer there. Only reported: an import deletes nothing.
    pub gone: Vec<String>,
}

/// A job that exists and differs.
#[derive(Clone, Debug)]
pub struct Change {
    pub job_id: JobId,
    /// The version that was compared: a PUT with it is refused when somebody else was faster.
    pub version: u64,
    /// The job as it should become.
    pub spec: JobSpec,
    /// One line per difference, old and new value.
    pub what: Vec<String>,
}

impl Plan {
    /// Whether applying it would change anything.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.change.is_empty()
    }
}

/// Compares. `existing`: all jobs of the tenant, or at least those with the label `cron.file`.
pub fn plan(import: &Import, existing: &[JobView]) -> Plan {
    let mut plan = Plan::default();
    let by_name: BTreeMap<(&str, &str), &JobView> = existing
        .iter()
        .filter(|view| view.status != JobStatus::Deleted)
        .map(|view| ((view.spec.tenant_id.as_str(), view.spec.name.as_str()), view))
        .collect();
    let mut wanted = BTreeSet::new();
    for job in &import.jobs {
        let key = (job.spec.tenant_id.as_str(), job.spec.name.as_str());
        wanted.insert(key);
        match by_name.get(&key) {
            None => plan.create.push(job.spec.clone()),
            Some(view) => {
                let (spec, what) = compared(&view.spec, &job.spec);
                if what.is_empty() {
                    plan.same.push(spec.name);
                } else {
                    plan.change.push(Change { job_id: view.job_id, version: view.version, spec, what });
                }
            }
        }
    }
    for (key, view) in &by_name {
        let from_here = view.spec.labels.get(LABEL_FILE).is_some_and(|file| covers(&import.covered, file));
        let tenant_imported = import.jobs.first().is_none_or(|job| job.spec.tenant_id == key.0);
        if from_here && tenant_imported && !wanted.contains(key) {
            plan.gone.push(view.spec.name.clone());
        }
    }
    plan
}

/// The file was read, or its whole directory was.
fn covers(covered: &BTreeSet<String>, file: &str) -> bool {
    let directory = Path::new(file).parent().and_then(Path::to_str);
    covered.contains(file) || directory.is_some_and(|d| covered.contains(d))
}

/// The existing job with what the crontab decides put in, and the labels of where it comes from.
pub fn merged(old: &JobSpec, new: &JobSpec) -> JobSpec {
    let (mut spec, _) = compared(old, new);
    spec.labels.retain(|name, _| !name.starts_with(LABELS_OF_APPLY) || new.labels.contains_key(name));
    let own = new.labels.iter().filter(|(name, _)| name.starts_with(LABELS_OF_APPLY));
    spec.labels.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    spec
}

/// The existing job with what the crontab decides put in, and the differences.
fn compared(old: &JobSpec, new: &JobSpec) -> (JobSpec, Vec<String>) {
    let mut spec = old.clone();
    let mut what = Vec::new();
    spec.trigger = merged_trigger(&old.trigger, &new.trigger, &mut what);
    if actions_differ(old, new, &mut what) {
        spec.action = merged_action(old, new);
    }
    if old.executor_selector != new.executor_selector {
        what.push(changed("pool", &old.executor_selector, &new.executor_selector));
        spec.executor_selector.clone_from(&new.executor_selector);
    }
    for label in LABELS {
        let (before, after) = (old.labels.get(label), new.labels.get(label));
        if before != after {
            what.push(changed_option(&format!("label {label}"), before, after));
            match after {
                Some(value) => spec.labels.insert(label.to_owned(), value.clone()),
                None => spec.labels.remove(label),
            };
        }
    }
    (spec, what)
}

fn merged_trigger(old: &Trigger, new: &Trigger, what: &mut Vec<String>) -> Trigger {
    let (
        Trigger::Cron { expr: old_expr, timezone: old_zone, jitter_sec: old_jitter, .. },
        Trigger::Cron { expr: new_expr, timezone: new_zone, jitter_sec: new_jitter, dialect: new_dialect, .. },
    ) = (old, new)
    else {
        if old == new {
            return old.clone();
        }
        what.push(changed("schedule", schedule_text(old), schedule_text(new)));
        return new.clone();
    };
    let same_fields = old_expr.split_whitespace().eq(new_expr.split_whitespace());
    if !same_fields {
        what.push(changed("schedule", old_expr, new_expr));
    }
    if old_zone != new_zone {
        what.push(changed("zone", old_zone, new_zone));
    }
    if old_jitter != new_jitter {
        what.push(changed("random delay", &format!("{old_jitter} s"), &format!("{new_jitter} s")));
    }
    let mut merged = old.clone();
    if let Trigger::Cron { expr, dialect, timezone, jitter_sec, .. } = &mut merged {
        if !same_fields {
            expr.clone_from(new_expr);
            *dialect = *new_dialect;
        }
        timezone.clone_from(new_zone);
        *jitter_sec = *new_jitter;
    }
    merged
}

/// A trigger's schedule for people.
pub(super) fn schedule_text(trigger: &Trigger) -> &str {
    match trigger {
        Trigger::Cron { expr, .. } => expr,
        Trigger::FixedRate { .. } => "at a fixed rate",
        Trigger::FixedDelay { .. } => "with a fixed delay",
        Trigger::Once { .. } => "once",
        Trigger::Manual {} => "@reboot (MANUAL)",
    }
}

fn actions_differ(old: &JobSpec, new: &JobSpec, what: &mut Vec<String>) -> bool {
    let before = what.len();
    match (old.resolved_action(), new.resolved_action()) {
        (
            Action::Command { command: old_command, env: old_env, stdin: old_stdin, .. },
            Action::Command { command: new_command, env: new_env, stdin: new_stdin, .. },
        ) => {
            if old_command != new_command {
                what.push(changed("command", &old_command.join(" "), &new_command.join(" ")));
            }
            if old_stdin != new_stdin {
                what.push(changed_option("standard input", old_stdin.as_ref(), new_stdin.as_ref()));
            }
            let names: BTreeSet<&String> = old_env.keys().chain(new_env.keys()).collect();
            for name in names.into_iter().filter(|name| old_env.get(*name) != new_env.get(*name)) {
                what.push(changed_option(&format!("variable {name}"), old_env.get(name), new_env.get(name)));
            }
        }
        (Action::Handler { name }, Action::Command { command, .. }) => {
            what.push(changed("action", &format!("the handler {name}"), &command.join(" ")));
        }
        (Action::Http { method, url, .. }, Action::Command { command, .. }) => {
            what.push(changed("action", &format!("{method} {url}"), &command.join(" ")));
        }
        (Action::Webhook { url, .. }, Action::Command { command, .. }) => {
            what.push(changed("action", &format!("the webhook {url}"), &command.join(" ")));
        }
        (Action::Dag(_), Action::Command { command, .. }) => {
            what.push(changed("action", "a DAG", &command.join(" ")));
        }
        // Lines always make commands.
        (
            Action::Command { .. }
            | Action::Handler { .. }
            | Action::Http { .. }
            | Action::Webhook { .. }
            | Action::Dag(_),
            Action::Handler { .. } | Action::Http { .. } | Action::Webhook { .. } | Action::Dag(_),
        ) => {}
    }
    what.len() > before
}

/// The working directory, the cap of the output, limits and niceness are the owner's.
fn merged_action(old: &JobSpec, new: &JobSpec) -> Option<Action> {
    match (old.resolved_action(), new.resolved_action()) {
        (Action::Command { cwd, output_cap_kb, limits, nice, .. }, Action::Command { command, env, stdin, .. }) => {
            Some(Action::Command { command, env, cwd, stdin, output_cap_kb, limits, nice })
        }
        (
            Action::Handler { .. }
            | Action::Command { .. }
            | Action::Http { .. }
            | Action::Webhook { .. }
            | Action::Dag(_),
            new,
        ) => Some(new),
    }
}

fn changed(what: &str, old: &str, new: &str) -> String {
    format!("{what}: {old} -> {new}")
}

fn changed_option(what: &str, old: Option<&String>, new: Option<&String>) -> String {
    let text = |value: Option<&String>| value.map_or_else(|| "(none)".to_owned(), |v| format!("{v:?}"));
    format!("{what}: {} -> {}", text(old), text(new))
}
