//! Manifests: jobs as people keep them in files, in the shape of Kubernetes.
//!
//! **What.** [`read`] takes files and gives the jobs that they mean, or everything that is wrong with them, each with file, line
//! and column. [`manifest`] goes the other way. What is done with the jobs is decided in `ops::apply`.
//!
//! **Rules.** A file is YAML of one or several documents, or JSON; a document is a manifest, a list of them, or a `kind: List`.
//! Unknown fields are refused by name. The same job twice is refused. Nothing of a file counts while something in it is wrong.
//!
//! **Never:** no file is opened here, nothing is asked of a node, no defaults but those of the API's form.
//!
//! Files: `document` text to values; `nesting` how deeply a text is nested; `place` where something stands; `typed` values to types with all errors; `job` and
//! `cron_job` the kinds, `kubernetes_schedule` the schedule of the second; `span` and `quantity` how times and sizes are written; `render` jobs to manifests; `schema`.

mod cron_job;
mod document;
mod job;
mod kubernetes_schedule;
mod nesting;
mod place;
mod quantity;
mod render;
mod schema;
mod span;
mod typed;

pub use job::JobManifest;
pub use kubernetes_schedule::{Meaning as KubernetesSchedule, meaning as kubernetes_schedule};
pub use render::differences;
pub use render::{manifest, yaml};
pub use schema::{PATH as SCHEMA_PATH, text as schema_text};
pub use span::Seconds;

use crate::suggest::closest;
use campanile_schema::{
    apply::{ManifestFile, ManifestProblem},
    job::JobSpec,
    limits::{MANIFEST_FILE_BYTES, MANIFEST_PROBLEMS},
};
use document::Document;
use place::{Spot, Step, locate, shown};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use typed::Wrong;

/// A job as a manifest means it.
#[derive(Clone, Debug)]
pub struct ManifestJob {
    /// Its tenant is empty when the manifest names none.
    pub spec: JobSpec,
    /// Whether it is to be paused; None: as it is.
    pub suspend: Option<bool>,
    /// What the manifest asks for and does not get.
    pub hazards: Vec<String>,
    pub origin: Origin,
}

/// Where a manifest stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its place in the list of files.
    file: usize,
    /// Places of its document.
    document: Arc<Spot>,
    path: Vec<Step>,
}

/// What files hold.
#[derive(Debug, Default)]
pub struct Manifests {
    pub jobs: Vec<ManifestJob>,
    /// At most [`MANIFEST_PROBLEMS`], in order of the files.
    pub problems: Vec<ManifestProblem>,
    /// Objects of Kubernetes that are no jobs, as a chart holds them beside its CronJobs. As many at most.
    pub passed_over: Vec<ManifestProblem>,
}

/// Reads files. `tenant`: of manifests that name none, for telling twins.
pub fn read(files: &[ManifestFile], tenant: &str) -> Manifests {
    read_while(files, tenant, &|| true)
}

/// The same, for as long as `go_on` says so; what was not read is told among the problems.
pub fn read_while(files: &[ManifestFile], tenant: &str, go_on: &dyn Fn() -> bool) -> Manifests {
    let mut found = Manifests::default();
    for (index, file) in files.iter().enumerate() {
        if file.text.len() > MANIFEST_FILE_BYTES {
            let message = format!("the file has {} bytes; at most {MANIFEST_FILE_BYTES} are read", file.text.len());
            found.problems.push(ManifestProblem {
                file: file.name.clone(),
                line: 1,
                column: 1,
                path: String::new(),
                message,
            });
            continue;
        }
        let (documents, broken) = document::documents(&file.text, go_on);
        for document in &documents {
            if go_on() && found.problems.len() < MANIFEST_PROBLEMS {
                one(file, index, document, &mut found);
            }
        }
        if let Some(broken) = broken {
            let document::Broken { line, column, message } = broken;
            found.problems.push(ManifestProblem {
                file: file.name.clone(),
                line,
                column,
                path: String::new(),
                message,
            });
        }
    }
    twins(files, tenant, &mut found);
    found.problems.truncate(MANIFEST_PROBLEMS);
    found
}

/// What is wrong with something of a manifest.
pub fn problem(files: &[ManifestFile], origin: &Origin, field: &str, message: impl Into<String>) -> ManifestProblem {
    let mut path = origin.path.clone();
    path.extend(field.split('.').filter(|part| !part.is_empty()).map(|part| Step::Field(part.to_owned())));
    let unnamed = ManifestFile::default();
    let file = files.get(origin.file).unwrap_or(&unnamed);
    problem_at(file, &origin.document, &Wrong { path, message: message.into() })
}

/// The file and the line where a manifest begins.
pub fn stands(files: &[ManifestFile], origin: &Origin) -> (String, u64) {
    let problem = problem(files, origin, "", "");
    (problem.file, problem.line)
}

fn problem_at(file: &ManifestFile, document: &Spot, wrong: &Wrong) -> ManifestProblem {
    let (line, column) = locate(document, &wrong.path);
    ManifestProblem { file: file.name.clone(), line, column, path: shown(&wrong.path), message: wrong.message.clone() }
}

fn one(file: &ManifestFile, index: usize, document: &Document, found: &mut Manifests) {
    let (mut wrong, mut foreign) = (Vec::new(), Vec::new());
    of_value(&document.value, &[], &mut wrong, &mut foreign, &mut |meant, path| {
        let origin = Origin { file: index, document: document.spot.clone(), path: path.to_vec() };
        found.jobs.push(ManifestJob { spec: meant.spec, suspend: meant.suspend, hazards: meant.hazards, origin });
    });
    let room = MANIFEST_PROBLEMS.saturating_sub(found.problems.len());
    found.problems.extend(wrong.iter().take(room).map(|wrong| problem_at(file, &document.spot, wrong)));
    let room = MANIFEST_PROBLEMS.saturating_sub(found.passed_over.len());
    found.passed_over.extend(foreign.iter().take(room).map(|wrong| problem_at(file, &document.spot, wrong)));
}

fn of_value(
    value: &Value,
    path: &[Step],
    wrong: &mut Vec<Wrong>,
    foreign: &mut Vec<Wrong>,
    give: &mut dyn FnMut(job::Meant, &[Step]),
) {
    let inside = |name: &str, index: usize| {
        let mut inner = path.to_vec();
        inner.extend((!name.is_empty()).then(|| Step::Field(name.to_owned())));
        inner.push(Step::Item(index));
        inner
    };
    let items = match value {
        Value::Array(items) => Some(("", items)),
        other if other["kind"] == "List" => other["items"].as_array().map(|items| ("items", items)),
        _ => None,
    };
    if let Some((name, items)) = items {
        for (index, item) in items.iter().enumerate() {
            // More are not told.
            if wrong.len() >= MANIFEST_PROBLEMS {
                return;
            }
            of_value(item, &inside(name, index), wrong, foreign, give);
        }
        return;
    }
    let (version, kind) = (value["apiVersion"].as_str(), value["kind"].as_str());
    let meant = match (version, kind) {
        (Some(job::API_VERSION), Some(job::KIND)) => job::read(value, path, job::ManifestKind::Job, wrong),
        (Some(job::API_VERSION), Some(job::DAG)) => job::read(value, path, job::ManifestKind::Dag, wrong),
        (Some(cron_job::API_VERSION), Some(cron_job::KIND)) => cron_job::read(value, path, wrong),
        (Some(version), Some(kind)) if is_foreign(version, kind) => {
            let name = value["metadata"]["name"].as_str().unwrap_or("without a name");
            let message = format!("the {} '{}' is passed over: it is no job", kind.escape_debug(), name.escape_debug());
            foreign.push(Wrong::new(path, message));
            None
        }
        _ => {
            wrong.push(no_manifest(value, path));
            None
        }
    };
    if let Some(meant) = meant {
        give(meant, path);
    }
}

/// An object of Kubernetes of another kind, and no slip: neither the version nor the kind is nearly one of ours.
fn is_foreign(version: &str, kind: &str) -> bool {
    let ours = [job::KIND, job::DAG, cron_job::KIND];
    !version.starts_with("campanile/") && !ours.contains(&kind) && closest(kind, ours).is_none()
}

/// What it is instead, as far as that can be told.
fn no_manifest(value: &Value, path: &[Step]) -> Wrong {
    const KINDS: [(&str, &str); 3] =
        [(job::KIND, job::API_VERSION), (job::DAG, job::API_VERSION), (cron_job::KIND, cron_job::API_VERSION)];
    let at = |name: &str| [path, &[Step::Field(name.to_owned())]].concat();
    if !value.is_object() {
        return Wrong::new(path, "is no manifest: write an object with apiVersion, kind, metadata and spec");
    }
    if value["kind"].is_null() && !value["trigger"].is_null() {
        let why =
            "is a job as the API takes it, not a manifest: `campanile job create FILE` takes it; or write kind: Job";
        return Wrong::new(path, why);
    }
    let Some(kind) = value["kind"].as_str() else {
        return Wrong::new(path, "kind is missing: write apiVersion: campanile/v1 and kind: Job");
    };
    if let Some((_, version)) = KINDS.iter().find(|(known, _)| *known == kind) {
        let message = match value["apiVersion"].as_str() {
            Some("batch/v1") => {
                "a Job of Kubernetes runs once when it is made: write a CronJob, or apiVersion: campanile/v1".to_owned()
            }
            Some(other) => format!("'{}' is not known for kind {kind}: write {version}", other.escape_debug()),
            None => format!("is missing: write apiVersion: {version}"),
        };
        return Wrong::new(&at("apiVersion"), message);
    }
    let meant = closest(kind, KINDS.iter().map(|(known, _)| *known)).map(|meant| format!("; did you mean {meant}?"));
    let message = format!("'{}' is not Job, Dag or CronJob{}", kind.escape_debug(), meant.unwrap_or_default());
    Wrong::new(&at("kind"), message)
}

/// The same job twice: nobody could say which one counts.
fn twins(files: &[ManifestFile], tenant: &str, found: &mut Manifests) {
    let mut first: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (index, job) in found.jobs.iter().enumerate() {
        if found.problems.len() >= MANIFEST_PROBLEMS {
            return;
        }
        let named = if job.spec.tenant_id.is_empty() { tenant } else { &job.spec.tenant_id };
        let key = (named.to_owned(), job.spec.name.clone());
        if let Some(before) = first.get(&key) {
            let (file, line) = stands(files, &found.jobs[*before].origin);
            let message = format!("the job '{}' of tenant '{named}' stands in {file}, line {line}, too", job.spec.name);
            found.problems.push(problem(files, &job.origin, "metadata.name", message));
        } else {
            first.insert(key, index);
        }
    }
}

#[cfg(test)]
mod tests;
