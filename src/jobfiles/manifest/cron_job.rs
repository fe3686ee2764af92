//! Kubernetes' own `kind: CronJob`: what of it has a meaning here becomes a job, what would make another program of it is refused,
//! and what is passed over is told.
//!
//! The command runs on an executor's machine, not in the image: that is told each time.

use super::{
    job::{Meant, command_of},
    kubernetes_schedule::{Meaning, meaning},
    place::{Step, shown},
    quantity,
    typed::Wrong,
};
use campanile_core::cron::CronExpr;
use campanile_schema::{
    job::{Backoff, ConcurrencyPolicy, Dialect, JobSpec, MisfirePolicy, Resources, RetryPolicy, Trigger},
    limits::SECONDS_MAX,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(super) const API_VERSION: &str = "batch/v1";
pub(super) const KIND: &str = "CronJob";

/// `backoffLimit` when none is written.
const BACKOFF_LIMIT: u64 = 6;
/// Kubernetes doubles from this to that, seconds.
const BACKOFF: (f64, f64) = (10.0, 360.0);

/// Fields without a counterpart here whose loss changes what the job does.
const NEEDED: [&str; 6] = ["volumes", "initContainers", "volumeMounts", "volumeDevices", "envFrom", "lifecycle"];

/// An object on the way down: what was looked at, what is wrong, what is passed over.
struct Walk<'a, 'b> {
    path: Vec<Step>,
    fields: &'a Map<String, Value>,
    seen: Vec<&'static str>,
    problems: &'b mut Problems,
}

#[derive(Default)]
struct Problems {
    wrong: Vec<Wrong>,
    hazards: Vec<String>,
}

pub(super) fn read(value: &Value, path: &[Step], wrong: &mut Vec<Wrong>) -> Option<Meant> {
    let empty = Map::new();
    let mut problems = Problems::default();
    let fields = value.as_object().unwrap_or(&empty);
    let mut walk =
        Walk { path: path.to_vec(), fields, seen: vec!["apiVersion", "kind", "status"], problems: &mut problems };
    let made = manifest(&mut walk);
    walk.done();
    if problems.wrong.is_empty() {
        let (spec, suspend) = made?;
        return Some(Meant { spec, suspend, hazards: problems.hazards });
    }
    wrong.extend(problems.wrong);
    None
}

fn manifest(top: &mut Walk<'_, '_>) -> Option<(JobSpec, Option<bool>)> {
    let named = top.part("metadata", |metadata| {
        let name = metadata.needed("name", Value::as_str).map(str::to_owned);
        let tenant = metadata.get("namespace", "text", Value::as_str).unwrap_or_default().to_owned();
        let labels = metadata.texts("labels");
        Some((name?, tenant, labels))
    });
    let made = top.part("spec", |spec| {
        let trigger = trigger(spec);
        let policy =
            spec.get("concurrencyPolicy", "text", Value::as_str).unwrap_or("Allow").parse::<ConcurrencyPolicy>();
        let concurrency = policy.map_err(|why| spec.refuse("concurrencyPolicy", why)).ok();
        // `suspend: false` is what every CronJob has by default, and says nothing.
        let suspend = spec.get("suspend", "true or false", Value::as_bool);
        spec.seen.extend(["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]);
        let work = spec.part("jobTemplate", |template| {
            template.seen.push("metadata");
            template.part("spec", work)
        });
        Some((trigger?, concurrency?, suspend, work?))
    });
    let ((name, tenant, labels), (trigger, concurrency, suspend, work)) = (named?, made?);
    let mut spec = JobSpec::new(&tenant, &name, trigger);
    spec.labels = labels;
    spec.concurrency_policy = concurrency;
    spec.timeout_sec = work.timeout_sec;
    spec.retry_policy = work.retry;
    spec.resources = work.resources;
    spec.action = match command_of(work.command, work.env) {
        Ok(action) => Some(with_directory(action, work.cwd)?),
        Err(why) => {
            top.refuse("spec", why);
            return None;
        }
    };
    Some((spec, suspend))
}

fn with_directory(action: campanile_schema::job::Action, cwd: Option<String>) -> Option<campanile_schema::job::Action> {
    let mut written = serde_json::to_value(action).ok()?;
    written["cwd"] = json!(cwd);
    serde_json::from_value(written).ok()
}

fn trigger(spec: &mut Walk<'_, '_>) -> Option<Trigger> {
    let expr = spec.needed("schedule", Value::as_str)?.to_owned();
    if expr.contains("TZ=") {
        spec.refuse("schedule", "a zone within the schedule is not read: write timeZone");
    }
    let zone = spec.get("timeZone", "text", Value::as_str).map(str::to_owned);
    if zone.is_none() && !expr.starts_with("@every") {
        spec.problems
            .hazards
            .push("no timeZone: it is due by UTC here, by its controller's zone in Kubernetes".to_owned());
    }
    let deadline = spec.get("startingDeadlineSeconds", "a number", Value::as_u64);
    // Within its deadline a late start is made up for, after it it is left out; without one the latest is made up for.
    let (misfire, threshold) = match deadline {
        Some(seconds) => (MisfirePolicy::Skip, seconds),
        None => (MisfirePolicy::FireOnceNow, 60),
    };
    let written = match meaning(&expr) {
        Meaning::Every(seconds) => json!({
            "type": "FIXED_RATE", "everySec": seconds, "misfirePolicy": misfire, "misfireThresholdSec": threshold,
        }),
        Meaning::Cron { expr, note } => {
            spec.problems.hazards.extend(note);
            if let Err(error) = CronExpr::parse(&expr, Dialect::Unix, 0)
                && error.never_fires
            {
                // Kubernetes takes such a CronJob and never starts it.
                let why = &error.message;
                let told =
                    format!("the schedule '{expr}' is not kept, for {why}: the job is MANUAL, it runs by hand only");
                spec.problems.hazards.push(told);
                return Some(Trigger::Manual {});
            }
            json!({
                "type": "CRON", "expr": expr, "dialect": Dialect::Unix, "timezone": zone.as_deref().unwrap_or("UTC"),
                "misfirePolicy": misfire, "misfireThresholdSec": threshold,
            })
        }
    };
    serde_json::from_value(written).map_err(|why| spec.refuse("startingDeadlineSeconds", why.to_string())).ok()
}

/// What the job template says.
struct Work {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    resources: Resources,
    retry: RetryPolicy,
    timeout_sec: u64,
}

fn work(spec: &mut Walk<'_, '_>) -> Option<Work> {
    for name in ["completions", "parallelism"] {
        if spec.get(name, "a number", Value::as_u64).is_some_and(|count| count > 1) {
            spec.refuse(name, "one run starts one command here; more than 1 is not possible");
        }
    }
    let tries = spec.get("backoffLimit", "a number", Value::as_u64).unwrap_or(BACKOFF_LIMIT) + 1;
    let retry = RetryPolicy {
        max_attempts: u32::try_from(tries).unwrap_or(u32::MAX),
        backoff: Backoff::Exponential,
        base_delay_sec: BACKOFF.0,
        max_delay_sec: BACKOFF.1,
        jitter: 0.0,
        max_elapsed_sec: None,
    };
    let timeout = spec.get("activeDeadlineSeconds", "a number", Value::as_u64);
    if timeout.is_some() {
        spec.problems
            .hazards
            .push("activeDeadlineSeconds is the longest time of an attempt here, not of all tries".to_owned());
    }
    // History is kept by the node's retention.
    spec.seen.push("ttlSecondsAfterFinished");
    let container = spec.part("template", |template| {
        template.seen.push("metadata");
        template.part("spec", |pod| {
            // Both mean that a failed attempt is followed by another one.
            pod.seen.push("restartPolicy");
            pod.one("containers", container)
        })
    })?;
    let (command, env, cwd, resources) = container;
    Some(Work { command, env, cwd, resources, retry, timeout_sec: timeout.unwrap_or(SECONDS_MAX) })
}

type Container = (Vec<String>, BTreeMap<String, String>, Option<String>, Resources);

fn container(container: &mut Walk<'_, '_>) -> Option<Container> {
    container.seen.extend(["name", "imagePullPolicy"]);
    let image = container.get("image", "text", Value::as_str).unwrap_or("(none)");
    let told = format!("the command runs on the executor's machine: the image {image} is not used");
    container.problems.hazards.push(told);
    let before = container.problems.wrong.len();
    let mut command = container.list("command");
    // A command that cannot be read was told.
    if command.is_empty() && container.problems.wrong.len() == before {
        container.refuse("command", "what the image starts by itself is not known here: write command");
    }
    command.extend(container.list("args"));
    if command.iter().any(|word| word.contains("$(")) {
        container
            .problems
            .hazards
            .push("$(NAME) in command and args is handed to the command as it is written".to_owned());
    }
    let env = container.variables();
    let cwd = container.get("workingDir", "text", Value::as_str).map(str::to_owned);
    let mut resources = Resources::default();
    if container.fields.contains_key("resources") {
        container.part("resources", |wanted| {
            if wanted.fields.contains_key("requests") {
                wanted.part("requests", |requests| {
                    resources.cpu = requests.quantity("cpu", quantity::cores).unwrap_or(resources.cpu);
                    resources.memory_mb =
                        requests.quantity("memory", quantity::mebibytes).unwrap_or(resources.memory_mb);
                    resources.storage_mb =
                        requests.quantity("ephemeral-storage", quantity::mebibytes).unwrap_or(resources.storage_mb);
                    Some(())
                });
            }
            Some(())
        });
    }
    Some((command, env, cwd, resources))
}

impl<'a> Walk<'a, '_> {
    fn step(&self, name: &str) -> Vec<Step> {
        [&self.path[..], &[Step::Field(name.to_owned())]].concat()
    }

    fn refuse(&mut self, name: &str, message: impl Into<String>) {
        let path = self.step(name);
        self.problems.wrong.push(Wrong::new(&path, message));
    }

    /// A field of a kind, if it is there.
    fn get<T>(&mut self, name: &'static str, kind: &str, as_kind: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        self.seen.push(name);
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        let read = as_kind(value);
        if read.is_none() {
            self.refuse(name, format!("is {kind}, not {value}"));
        }
        read
    }

    fn needed<T>(&mut self, name: &'static str, as_kind: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        if self.fields.get(name).is_none_or(Value::is_null) {
            self.seen.push(name);
            let path = self.path.clone();
            self.problems.wrong.push(Wrong::new(&path, format!("{name} is missing")));
            return None;
        }
        self.get(name, "text", as_kind)
    }

    /// An object in it.
    fn part<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Walk<'_, '_>) -> Option<T>) -> Option<T> {
        let fields = self.needed(name, Value::as_object)?;
        let mut inner = Walk { path: self.step(name), fields, seen: Vec::new(), problems: self.problems };
        let made = read(&mut inner);
        inner.done();
        made
    }

    /// The one object of a list.
    fn one<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Walk<'_, '_>) -> Option<T>) -> Option<T> {
        let items = self.needed(name, Value::as_array)?;
        let [Value::Object(fields)] = items.as_slice() else {
            self.refuse(name, format!("one container makes a job here; there are {}", items.len()));
            return None;
        };
        let path = [self.step(name), vec![Step::Item(0)]].concat();
        let mut inner = Walk { path, fields, seen: Vec::new(), problems: self.problems };
        let made = read(&mut inner);
        inner.done();
        made
    }

    fn list(&mut self, name: &'static str) -> Vec<String> {
        let words = |value: &Value| {
            value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        self.get(name, "a list of texts", words).unwrap_or_default()
    }

    fn texts(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let texts = |value: &Value| {
            let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            value.as_object()?.iter().map(text).collect::<Option<BTreeMap<_, _>>>()
        };
        self.get(name, "names with texts", texts).unwrap_or_default()
    }

    /// `env`: a list of names and values.
    fn variables(&mut self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for (index, entry) in self.get("env", "a list", Value::as_array).into_iter().flatten().enumerate() {
            let path = [self.step("env"), vec![Step::Item(index)]].concat();
            match (entry["name"].as_str(), &entry["value"], entry.get("valueFrom")) {
                (Some(name), Value::String(value), None) => drop(env.insert(name.to_owned(), value.clone())),
                (Some(name), Value::Null, None) => drop(env.insert(name.to_owned(), String::new())),
                (_, _, Some(_)) => {
                    let why =
                        "valueFrom is not read here: write the value, or give it as a secret param of a kind: Job";
                    self.problems.wrong.push(Wrong::new(&path, why));
                }
                _ => self.problems.wrong.push(Wrong::new(&path, "is a name with a value that is text")),
            }
        }
        env
    }

    fn quantity<T>(&mut self, name: &'static str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = |value: &Value| value.as_str().map(str::to_owned).or_else(|| value.as_f64().map(|n| n.to_string()));
        let written = self.get(name, "a quantity", text)?;
        let quantity = read(&written);
        if quantity.is_none() {
            self.refuse(name, format!("'{written}' is not a quantity such as 100m, 0.5, 128Mi or 1G"));
        }
        quantity
    }

    /// What was not looked at is told.
    fn done(&mut self) {
        for (name, value) in self.fields {
            if self.seen.contains(&name.as_str()) || value.is_null() {
                continue;
            }
            if NEEDED.contains(&name.as_str()) {
                self.refuse(name, "has no counterpart here, and the command may need it");
            } else {
                let path = shown(&self.step(name));
                self.problems.hazards.push(format!("{path} is passed over"));
            }
        }
    }
}
