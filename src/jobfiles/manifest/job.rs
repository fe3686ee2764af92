//! `kind: Job` and `kind: Dag`: the shape of a manifest, and the job that it means. Fields that are left out have the defaults of
//! [`JobSpec`]; nothing here repeats them.

use super::{
    place::Step,
    span::{Delay, Seconds},
    typed::{self, Wrong},
};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec},
    job::{
        Action, Backoff, Blackout, ConcurrencyPolicy, Dialect, Gap, Hooks, JobCalendar, JobSpec, MisfirePolicy,
        OnLostContact, Overlap, Resources, Trigger, Window,
    },
    payload::Payload,
    time::{Moment, Timestamp},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const API_VERSION: &str = "campanile/v1";
pub(super) const KIND: &str = "Job";
pub(super) const DAG: &str = "Dag";

/// A job as a manifest.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobManifest {
    pub api_version: ApiVersion,
    pub kind: ManifestKind,
    pub metadata: Metadata,
    pub spec: Spec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    #[serde(rename = "campanile/v1")]
    V1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
pub enum ManifestKind {
    Job,
    /// Runs other jobs in the order of its edges.
    Dag,
}

/// What the job is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// 1 to 128 of letters, digits, `. _ - /`; unique in its namespace.
    pub name: String,
    /// The tenant. Default: the one of whoever applies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Texts for people and programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// When it is due and what it does. Of `schedule`, `every`, `afterLast` and `at` one at most; without any it runs only by hand.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Spec {
    /// Due by this cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Reading of the schedule.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub dialect: Option<Dialect>,
    /// Zone of the schedule, an IANA name. Default: UTC. Of `at`, if that has no offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What becomes of an instant that daylight saving leaves out.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub gap: Option<Gap>,
    /// What becomes of an instant that daylight saving repeats.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub overlap: Option<Overlap>,
    /// Due again and again at this interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Seconds>,
    /// An instant that `every` counts from. Default: one interval after the job is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_at: Option<Timestamp>,
    /// Due so long after the last run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_last: Option<Seconds>,
    /// Due once, at this instant, or at this local time of `timeZone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// Not due before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// Not due after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// Each run starts up to so much later, by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub misfire_policy: Option<MisfirePolicy>,
    /// Instants that are later than this are left to the misfire policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfire_threshold: Option<Seconds>,
    /// Missed instants that FireAllMissed makes up for at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_catch_up: Option<u32>,
    /// Pieces of every week in which instants count, or do not. Zone: that of the schedule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Stretches of time in which no instant counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<Blackout>,
    /// Days on which instants count, by a calendar of the tenant. Zone: that of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<JobCalendar>,
    /// true: paused; false: not paused. Left out: as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<Retry>,
    /// Longest time of an attempt; of a Dag: of a whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// Longest time of all attempts of a run together, from the start of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runtime: Option<Seconds>,
    /// false: after a lost executor a person decides whether it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub on_lost_contact: Option<OnLostContact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<bool>,
    /// The pool whose executors run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_selector: Option<String>,
    /// A program with its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Environment of the command.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// A function that an executor registered under this name. Default: the job's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Any action, as in the API; `command` and `handler` are the short forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Of a Dag: jobs of the same namespace. Each runs when those before it have ended as its rule says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<NodeSpec>>,
    /// Of a Dag: which node ends before which one starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeSpec>,
    /// Of a Dag: the first node that fails stops the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<bool>,
    /// Of a Dag: nodes whose runs are open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Payload>,
    /// Kept encrypted; "***" for all of them leaves those that are there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_params: BTreeMap<String, String>,
    /// 0 to 1000, higher first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Jobs that are started when a run of this one ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// The name that people read, in any language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the job is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who answers for the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The named system that its bodies call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

campanile_schema::redacted_debug!(Spec {
    schedule, dialect, time_zone, gap, overlap, every, anchor_at, after_last, at, start_at, end_at, jitter,
    misfire_policy, misfire_threshold, max_catch_up, windows, blackouts, calendar, suspend, concurrency_policy, retry_policy, timeout,
    max_runtime, idempotent, on_lost_contact, dead_letter, executor_selector, command, env, handler, action, nodes,
    edges, fail_fast, max_parallel, params,
    priority, resources, hooks, display_name, description, owner, target,
} hides { secret_params });

/// `maxAttempts` counts the first try.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub backoff: Option<Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_delay: Option<Delay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Delay>,
    /// Part of the delay that chance adds or takes, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// No attempt begins later than so long after the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_elapsed: Option<Seconds>,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Meant {
    /// Its tenant is empty when the manifest names none.
    pub spec: JobSpec,
    pub suspend: Option<bool>,
    pub hazards: Vec<String>,
}

pub(super) fn read(value: &Value, path: &[Step], kind: ManifestKind, wrong: &mut Vec<Wrong>) -> Option<Meant> {
    let before = wrong.len();
    let field = |name: &str| [path, &[Step::Field(name.to_owned())]].concat();
    for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str()) {
            wrong.push(Wrong::new(&field(name), "unknown field: a manifest has apiVersion, kind, metadata and spec"));
        }
    }
    let empty = Value::Object(serde_json::Map::new());
    let part = |name: &str| value.get(name).unwrap_or(&empty);
    if value.get("metadata").is_none() {
        wrong.push(Wrong::new(path, "metadata is missing: write metadata: {name: ...}"));
    }
    let metadata = value.get("metadata").and_then(|part| typed::read::<Metadata>(part, &field("metadata"), wrong));
    let spec = typed::read::<Spec>(part("spec"), &field("spec"), wrong);
    if let Some(spec) = &spec {
        check(spec, kind, &field("spec"), wrong);
    }
    let (metadata, spec) = (metadata?, spec?);
    if wrong.len() > before {
        return None;
    }
    meant(metadata, spec, kind).map_err(|why| wrong.push(Wrong::new(&field("spec"), why))).ok()
}

/// What does not fit together.
fn check(spec: &Spec, kind: ManifestKind, path: &[Step], wrong: &mut Vec<Wrong>) {
    let mut refuse = |name: &str, message: String| {
        wrong.push(Wrong::new(&[path, &[Step::Field(name.to_owned())]].concat(), message));
    };
    let dag = kind == ManifestKind::Dag;
    if dag && spec.nodes.is_none() {
        refuse("nodes", "is missing: write nodes: [{id: ..., job: ...}]".to_owned());
    }
    let (cron, rate, delay, once) =
        (spec.schedule.is_some(), spec.every.is_some(), spec.after_last.is_some(), spec.at.is_some());
    let triggers = [("schedule", cron), ("every", rate), ("afterLast", delay), ("at", once)];
    let given: Vec<&str> = triggers.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if given.len() > 1 {
        refuse(given[1], format!("a job has one trigger: write one of {}", given.join(" and ")));
        return;
    }
    for (name, is_given, fits, with) in [
        ("dialect", spec.dialect.is_some(), cron, "schedule"),
        ("timeZone", spec.time_zone.is_some(), cron || once, "schedule or at"),
        ("gap", spec.gap.is_some(), cron, "schedule"),
        ("overlap", spec.overlap.is_some(), cron, "schedule"),
        ("anchorAt", spec.anchor_at.is_some(), rate, "every"),
        ("startAt", spec.start_at.is_some(), cron || rate || delay, "schedule, every or afterLast"),
        ("endAt", spec.end_at.is_some(), cron || rate || delay, "schedule, every or afterLast"),
        ("jitter", spec.jitter.is_some(), cron || rate, "schedule or every"),
        ("maxCatchUp", spec.max_catch_up.is_some(), cron || rate, "schedule or every"),
        ("misfirePolicy", spec.misfire_policy.is_some(), !given.is_empty(), "schedule, every, afterLast or at"),
        ("misfireThreshold", spec.misfire_threshold.is_some(), !given.is_empty(), "schedule, every, afterLast or at"),
        ("env", !spec.env.is_empty(), spec.command.is_some(), "command"),
        ("handler", spec.handler.is_some(), spec.command.is_none(), "no command"),
        (
            "action",
            spec.action.is_some(),
            spec.command.is_none() && spec.handler.is_none(),
            "neither command nor handler",
        ),
        ("nodes", spec.nodes.is_some(), dag, "kind: Dag"),
        ("edges", !spec.edges.is_empty(), dag, "kind: Dag"),
        ("failFast", spec.fail_fast.is_some(), dag, "kind: Dag"),
        ("maxParallel", spec.max_parallel.is_some(), dag, "kind: Dag"),
        ("command", spec.command.is_some(), !dag, "kind: Job; a Dag has nodes"),
        ("handler", spec.handler.is_some(), !dag, "kind: Job; a Dag has nodes"),
        ("action", spec.action.is_some(), !dag, "kind: Job; a Dag has nodes"),
    ] {
        if is_given && !fits {
            refuse(name, format!("goes with {with}"));
        }
    }
    for (name, seconds) in [("jitter", spec.jitter), ("misfireThreshold", spec.misfire_threshold)] {
        if seconds.is_some_and(|Seconds(seconds)| u32::try_from(seconds).is_err()) {
            refuse(name, "is too long".to_owned());
        }
    }
}

/// Lays what was written over the defaults.
fn meant(metadata: Metadata, written: Spec, kind: ManifestKind) -> Result<Meant, String> {
    let mut spec = JobSpec::new(metadata.namespace.as_deref().unwrap_or_default(), &metadata.name, trigger(&written)?);
    (spec.labels, spec.annotations) = (metadata.labels, metadata.annotations);
    let Spec { retry_policy, command, env, handler, action, params, secret_params, suspend, nodes, edges, .. } =
        written;
    spec.concurrency_policy = written.concurrency_policy.unwrap_or(spec.concurrency_policy);
    let timeout_sec = written.timeout.map(|Seconds(seconds)| seconds);
    if kind == ManifestKind::Job {
        spec.timeout_sec = timeout_sec.unwrap_or(spec.timeout_sec);
    }
    spec.max_runtime_sec = written.max_runtime.map(|Seconds(seconds)| seconds);
    spec.idempotent = written.idempotent.unwrap_or(spec.idempotent);
    spec.on_lost_contact = written.on_lost_contact.unwrap_or(spec.on_lost_contact);
    spec.dead_letter = written.dead_letter.unwrap_or(spec.dead_letter);
    spec.executor_selector = written.executor_selector.unwrap_or(spec.executor_selector);
    spec.priority = written.priority.unwrap_or(spec.priority);
    spec.resources = written.resources.unwrap_or(spec.resources);
    spec.hooks = written.hooks.unwrap_or_default();
    (spec.windows, spec.blackouts, spec.calendar) = (written.windows, written.blackouts, written.calendar);
    (spec.display_name, spec.description, spec.owner) = (written.display_name, written.description, written.owner);
    spec.target = written.target;
    spec.params = params.unwrap_or(spec.params);
    spec.secret_params = secret_params;
    if let Some(retry) = retry_policy {
        let seconds = |Delay(ms): Delay| ms as f64 / 1e3;
        let policy = &mut spec.retry_policy;
        policy.max_attempts = retry.max_attempts.unwrap_or(policy.max_attempts);
        policy.backoff = retry.backoff.unwrap_or(policy.backoff);
        policy.base_delay_sec = retry.base_delay.map_or(policy.base_delay_sec, seconds);
        policy.max_delay_sec = retry.max_delay.map_or(policy.max_delay_sec, seconds);
        policy.jitter = retry.jitter.unwrap_or(policy.jitter);
        policy.max_elapsed_sec = retry.max_elapsed.map(|Seconds(seconds)| seconds);
    }
    spec.action = match (command, handler) {
        (Some(command), _) => Some(command_of(command, env)?),
        (None, Some(name)) => Some(Action::Handler { name }),
        (None, None) if kind == ManifestKind::Dag => {
            let graph = GraphSpec::new(nodes.unwrap_or_default(), edges);
            let fail_fast = written.fail_fast.unwrap_or(graph.fail_fast);
            let max_parallel = written.max_parallel.unwrap_or(graph.max_parallel);
            Some(Action::Dag(GraphSpec { fail_fast, max_parallel, timeout_sec, ..graph }))
        }
        (None, None) => action,
    };
    Ok(Meant { spec, suspend, hazards: Vec::new() })
}

/// A command with the defaults of all else.
pub(super) fn command_of(command: Vec<String>, env: BTreeMap<String, String>) -> Result<Action, String> {
    let written = serde_json::json!({"kind": "COMMAND", "command": command, "env": env});
    serde_json::from_value(written).map_err(|error| error.to_string())
}

/// The trigger with the defaults of all that was left out: those of the API's form, which it is read by.
fn trigger(written: &Spec) -> Result<Trigger, String> {
    let mut fields = serde_json::Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    let number = |seconds: Option<Seconds>| seconds.map(|Seconds(seconds)| seconds);
    let kind = match (&written.schedule, written.every, written.after_last, written.at) {
        (Some(_), ..) => "CRON",
        (None, Some(_), ..) => "FIXED_RATE",
        (None, None, Some(_), _) => "FIXED_DELAY",
        (None, None, None, Some(_)) => "ONCE",
        (None, None, None, None) => "MANUAL",
    };
    set("type", kind.into());
    set("expr", serde_json::json!(written.schedule));
    set("dialect", serde_json::json!(written.dialect));
    set("timezone", serde_json::json!(written.time_zone));
    set("gap", serde_json::json!(written.gap));
    set("overlap", serde_json::json!(written.overlap));
    set("everySec", serde_json::json!(number(written.every.or(written.after_last))));
    set("anchorAt", serde_json::json!(written.anchor_at));
    set("at", serde_json::json!(written.at));
    set("startAt", serde_json::json!(written.start_at));
    set("endAt", serde_json::json!(written.end_at));
    set("jitterSec", serde_json::json!(number(written.jitter)));
    set("misfirePolicy", serde_json::json!(written.misfire_policy));
    set("misfireThresholdSec", serde_json::json!(number(written.misfire_threshold)));
    set("maxCatchUp", serde_json::json!(written.max_catch_up));
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// `FireOnceNow` for `FIRE_ONCE_NOW`: as such words stand in manifests. They are read in any case, with and without `_`.
fn word<T: std::fmt::Display, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(|value| camel(&value.to_string())).serialize(s)
}

pub(super) fn camel(upper: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters.next().into_iter().chain(letters.flat_map(char::to_lowercase)).collect::<String>()
    };
    upper.split('_').map(capital).collect()
}
