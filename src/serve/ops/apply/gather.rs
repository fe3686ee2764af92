//! A body's manifests as jobs. Everything that is wrong with them is told at once.

use super::{
    super::{Answer, access, invalid},
    GonePolicy, LABELS, Set, check_owner,
};
use campanile_jobfiles::manifest::{self, ManifestJob};
use campanile_schema::{
    apply::{ApplyBody, ManifestFile, ManifestProblem},
    error::{ApiError, ErrorCode},
    job::JobSpec,
    limits::{APPLY_FILES, APPLY_JOBS, MANIFEST_PROBLEMS},
};
use campanile_security::auth::Caller;
use std::collections::BTreeSet;

/// A job as it is to be.
#[derive(Clone, Debug)]
pub struct DesiredJob {
    pub spec: JobSpec,
    /// None: whether it is paused is nobody's business here.
    pub suspend: Option<bool>,
    pub hazards: Vec<String>,
    /// File and line, for people.
    pub place: Option<(String, u64)>,
    /// From a crontab, which decides only some of a job: the rest stays as it is.
    pub is_crontab: bool,
    /// Where it stands; None: not in one of the set's files.
    pub origin: Option<manifest::Origin>,
}

/// `go_on`: asked now and then; false ends the reading.
pub(super) fn gather(caller: &Caller, body: ApplyBody, go_on: &dyn Fn() -> bool) -> Answer<Set> {
    if let Some(owner) = &body.owner {
        check_owner(owner)?;
    }
    if body.prune && body.owner.is_none() && body.prune_labels.is_none() {
        return Err(invalid("prune: needs an owner or pruneLabels: only their jobs can be told to be left over"));
    }
    if let Some(labels) = &body.prune_labels {
        if !body.prune {
            return Err(invalid("pruneLabels: goes with prune"));
        }
        if labels.trim().is_empty() {
            return Err(invalid("pruneLabels: is empty: write labels such as team=payments"));
        }
    }
    let tenant = access::scope(caller, body.tenant_id.clone())?;
    let mut files = body.files;
    files.extend(body.manifests.iter().enumerate().map(|(index, value)| ManifestFile {
        name: format!("manifests[{index}]"),
        text: value.to_value().to_string(),
    }));
    if files.len() > APPLY_FILES {
        return Err(invalid(format!("files: {} in one call; at most {APPLY_FILES}", files.len())));
    }
    let named = tenant.as_deref().unwrap_or(access::DEFAULT_TENANT);
    let mut read = manifest::read_while(&files, named, go_on);
    if read.jobs.len() > APPLY_JOBS {
        return Err(invalid(format!("files: {} jobs in one call; at most {APPLY_JOBS}", read.jobs.len())));
    }
    if body.strict {
        read.problems.append(&mut read.passed_over);
    }
    if read.jobs.is_empty() && read.problems.is_empty() {
        let all =
            if body.prune { "; with prune that would delete every job of the owner or with the labels" } else { "" };
        let others = match read.passed_over.len() {
            0 => String::new(),
            count => format!(" ({count} objects of other kinds, the first: {})", read.passed_over[0]),
        };
        return Err(invalid(format!("files: there is no manifest in them{others}{all}")));
    }
    let (jobs, mut problems) = (read.jobs, read.problems);
    let wanted: Vec<DesiredJob> = jobs.into_iter().filter_map(|job| one(job, &files, named, &mut problems)).collect();
    let gone = if body.prune { GonePolicy::Delete } else { GonePolicy::Stay };
    Ok(Set {
        wanted,
        files,
        problems,
        passed_over: read.passed_over,
        owner: body.owner.clone(),
        gone,
        kept_files: BTreeSet::new(),
        take_over: body.take_over,
        tenant: body.tenant_id,
        prune_labels: body.prune_labels,
        forecast: body.forecast,
    })
}

fn one(
    job: ManifestJob,
    files: &[ManifestFile],
    tenant: &str,
    problems: &mut Vec<ManifestProblem>,
) -> Option<DesiredJob> {
    let ManifestJob { mut spec, suspend, hazards, origin } = job;
    if let Some(own) = spec.labels.keys().find(|name| name.starts_with(LABELS)) {
        let message = format!("'{own}': labels that begin with {LABELS} are set by apply itself: take it out");
        problems.push(manifest::problem(files, &origin, "metadata.labels", message));
        return None;
    }
    if spec.tenant_id.is_empty() {
        tenant.clone_into(&mut spec.tenant_id);
    }
    let place = Some(manifest::stands(files, &origin));
    Some(DesiredJob { spec, suspend, hazards, place, is_crontab: false, origin: Some(origin) })
}

/// All of it in one refusal.
pub(super) fn refused(problems: &[ManifestProblem]) -> ApiError {
    let lines: Vec<String> = problems.iter().take(MANIFEST_PROBLEMS).map(ToString::to_string).collect();
    let message = match lines.as_slice() {
        [one] => one.clone(),
        several => format!("{} things are wrong, nothing was changed:\n{}", several.len(), several.join("\n")),
    };
    ApiError::new(ErrorCode::InvalidArgument, message).with_detail(serde_json::json!({"errors": problems}))
}
