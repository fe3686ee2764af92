//! A job as the manifest that means it. What is as by default is left out, so that a manifest that is applied again, or compared,
//! differs only where the jobs do.

use super::{
    job::{ApiVersion, JobManifest, ManifestKind, Metadata, Retry, Spec, command_of},
    span::Delay,
};
use campanile_core::cron::CronExpr;
use campanile_schema::{
    graph::GraphSpec,
    job::{Action, Dialect, JobSpec, RetryPolicy, Trigger},
    payload::Payload,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Fields of a trigger that a manifest calls otherwise.
const RENAMED: [(&str, &str); 4] = [
    ("expr", "schedule"),
    ("timezone", "timeZone"),
    ("jitterSec", "jitter"),
    ("misfireThresholdSec", "misfireThreshold"),
];

/// `suspend`: what it says of the job's pause.
pub fn manifest(job: &JobSpec, suspend: Option<bool>) -> Result<JobManifest, String> {
    // Every field by name: one that is new must be written too.
    let JobSpec {
        name,
        tenant_id,
        trigger,
        concurrency_policy,
        retry_policy,
        timeout_sec,
        max_runtime_sec,
        idempotent,
        on_lost_contact,
        dead_letter,
        executor_selector,
        action,
        params,
        secret_params,
        labels,
        priority,
        resources,
        hooks,
        display_name,
        description,
        owner,
        annotations,
        target,
        windows,
        blackouts,
        calendar,
    } = job;
    let usual = JobSpec::new(tenant_id, name, Trigger::Manual {});
    let mut spec: Spec = serde_json::from_value(Value::Object(timing(trigger)?)).map_err(|error| error.to_string())?;
    spec.dialect = spec.dialect.filter(|dialect| needs_dialect(trigger, *dialect));
    spec.suspend = suspend;
    spec.concurrency_policy = unusual(concurrency_policy, &usual.concurrency_policy);
    spec.retry_policy = retry(retry_policy);
    spec.timeout = unusual(timeout_sec, &usual.timeout_sec).map(super::span::Seconds);
    spec.max_runtime = max_runtime_sec.map(super::span::Seconds);
    spec.idempotent = unusual(idempotent, &usual.idempotent);
    spec.on_lost_contact = unusual(on_lost_contact, &usual.on_lost_contact);
    spec.dead_letter = unusual(dead_letter, &usual.dead_letter);
    spec.executor_selector = unusual(executor_selector, &usual.executor_selector);
    spec.params = unusual(&params.to_value(), &usual.params.to_value()).map(|params| Payload::from_value(&params));
    spec.secret_params.clone_from(secret_params);
    spec.priority = unusual(priority, &usual.priority);
    spec.resources = unusual(resources, &usual.resources);
    spec.hooks = unusual(hooks, &usual.hooks);
    spec.windows.clone_from(windows);
    spec.blackouts.clone_from(blackouts);
    spec.calendar.clone_from(calendar);
    spec.display_name.clone_from(display_name);
    spec.description.clone_from(description);
    spec.owner.clone_from(owner);
    spec.target.clone_from(target);
    let kind = match action {
        Some(Action::Dag(graph)) => {
            set_graph(&mut spec, graph);
            ManifestKind::Dag
        }
        Some(Action::Handler { .. } | Action::Command { .. } | Action::Http { .. }) | None => {
            set_action(&mut spec, name, action.as_ref())?;
            ManifestKind::Job
        }
    };
    let metadata = Metadata {
        name: name.clone(),
        namespace: Some(tenant_id.clone()).filter(|tenant| !tenant.is_empty()),
        labels: labels.clone(),
        annotations: annotations.clone(),
    };
    Ok(JobManifest { api_version: ApiVersion::V1, kind, metadata, spec })
}

/// As a document of YAML.
pub fn yaml(manifest: &JobManifest) -> Result<String, String> {
    serde_yaml_ng::to_string(manifest).map_err(|error| error.to_string())
}

fn unusual<T: PartialEq + Clone>(value: &T, usual: &T) -> Option<T> {
    (value != usual).then(|| value.clone())
}

fn object(value: impl serde::Serialize) -> Result<Map<String, Value>, String> {
    match serde_json::to_value(value).map_err(|error| error.to_string())? {
        Value::Object(fields) => Ok(fields),
        other => Err(format!("no object: {other}")),
    }
}

/// The fields of `spec` that say when it is due.
fn timing(trigger: &Trigger) -> Result<Map<String, Value>, String> {
    let full = object(trigger)?;
    let own = |name: &str| full.get(name).cloned().unwrap_or(Value::Null);
    // What the form fills in by itself, and under which name the interval goes.
    let (least, interval) = match trigger {
        Trigger::Cron { .. } => (json!({"type": "CRON", "expr": ""}), None),
        Trigger::FixedRate { .. } => (json!({"type": "FIXED_RATE", "everySec": 0}), Some("every")),
        Trigger::FixedDelay { .. } => (json!({"type": "FIXED_DELAY", "everySec": 0}), Some("afterLast")),
        Trigger::Once { .. } => (json!({"type": "ONCE"}), None),
        Trigger::Manual {} => (json!({"type": "MANUAL"}), None),
    };
    let usual: Trigger = serde_json::from_value(least).map_err(|error| error.to_string())?;
    let usual = object(usual)?;
    let mut written = Map::new();
    for (name, value) in &full {
        if name == "everySec" || usual.get(name) == Some(value) {
            continue;
        }
        let called = RENAMED.iter().find(|(field, _)| field == name).map_or(name.as_str(), |(_, called)| *called);
        written.insert(called.to_owned(), value.clone());
    }
    if let Some(interval) = interval {
        written.insert(interval.to_owned(), own("everySec"));
    }
    Ok(written)
}

/// Whether the expression alone would be read otherwise.
fn needs_dialect(trigger: &Trigger, dialect: Dialect) -> bool {
    match trigger {
        Trigger::Cron { expr, .. } => {
            !CronExpr::parse(expr, Dialect::Auto, 0).is_ok_and(|(_, resolved)| resolved == dialect)
        }
        Trigger::FixedRate { .. } | Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => false,
    }
}

fn retry(policy: &RetryPolicy) -> Option<Retry> {
    let usual = RetryPolicy::default();
    let ms = |seconds: f64| Delay((seconds * 1e3).round() as u64);
    let retry = Retry {
        max_attempts: unusual(&policy.max_attempts, &usual.max_attempts),
        backoff: unusual(&policy.backoff, &usual.backoff),
        base_delay: unusual(&policy.base_delay_sec, &usual.base_delay_sec).map(ms),
        max_delay: unusual(&policy.max_delay_sec, &usual.max_delay_sec).map(ms),
        jitter: unusual(&policy.jitter, &usual.jitter),
        max_elapsed: policy.max_elapsed_sec.map(super::span::Seconds),
    };
    (retry != Retry::default()).then_some(retry)
}

/// A DAG has its graph where a job has its action, and its time is that of a whole run.
fn set_graph(spec: &mut Spec, graph: &GraphSpec) {
    let usual = GraphSpec::new(Vec::new(), Vec::new());
    spec.nodes = Some(graph.nodes.clone());
    spec.edges.clone_from(&graph.edges);
    spec.fail_fast = unusual(&graph.fail_fast, &usual.fail_fast);
    spec.max_parallel = unusual(&graph.max_parallel, &usual.max_parallel);
    spec.timeout = graph.timeout_sec.map(super::span::Seconds);
}

/// The short form where it says all.
fn set_action(spec: &mut Spec, job: &str, action: Option<&Action>) -> Result<(), String> {
    match action {
        None => {}
        Some(Action::Handler { name }) => spec.handler = Some(name.clone()).filter(|name| name != job),
        Some(action @ Action::Command { command, env, .. }) => {
            if *action == command_of(command.clone(), env.clone())? {
                spec.command = Some(command.clone());
                spec.env.clone_from(env);
            } else {
                spec.action = Some(action.clone());
            }
        }
        Some(action @ (Action::Http { .. } | Action::Dag(_))) => spec.action = Some(action.clone()),
    }
    Ok(())
}

/// A field, and its values there and there.
pub type Difference = (String, Option<Value>, Option<Value>);

/// What differs between two manifests: the path of each field, and its values there and there.
pub fn differences(from: &JobManifest, to: &JobManifest) -> Result<Vec<Difference>, String> {
    let mut found = BTreeMap::new();
    compare("", Some(&Value::Object(object(from)?)), Some(&Value::Object(object(to)?)), &mut found);
    Ok(found.into_iter().map(|(path, (from, to))| (path, from, to)).collect())
}

type Differences = BTreeMap<String, (Option<Value>, Option<Value>)>;

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Differences) {
    if from == to {
        return;
    }
    let fields = |value: Option<&Value>| match value {
        Some(Value::Object(fields)) => Some(fields.clone()),
        // A part that is not there has no fields: what is new in it is told field by field.
        None if path.is_empty() || path.matches('.').count() < 2 => Some(Map::new()),
        Some(_) | None => None,
    };
    let is_object = |value: Option<&Value>| value.is_none_or(Value::is_object);
    match (fields(from), fields(to)) {
        (Some(before), Some(after)) if is_object(from) && is_object(to) => {
            let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&inner, before.get(name), after.get(name), found);
            }
        }
        _ => drop(found.insert(path.to_owned(), (from.cloned(), to.cloned()))),
    }
}
