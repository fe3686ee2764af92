//! CronJobs of Kubernetes. Manifests know them already: what `campanile apply` makes of a CronJob is what is written here, with two
//! differences. The instants around a change of the clock are kept as Kubernetes has them, and objects that cannot be read do not hold up
//! the others.

use super::{
    ImportError, Options, Place,
    draft::{DEFAULT_TENANT, Draft, Drafts},
    source, text,
};
use campanile_core::cron::CronExpr;
use campanile_jobfiles::manifest::{self, ManifestJob};
use campanile_schema::{
    apply::ManifestFile,
    job::{ConcurrencyPolicy, Gap, JobSpec, Overlap, Trigger},
    limits::{MANIFEST_FILE_BYTES, MANIFEST_PROBLEMS},
};
use std::path::{Path, PathBuf};

/// What Kubernetes does with an instant of a CronJob whose run goes on.
const FORBIDS: &str = "Kubernetes starts the latest instant that a run held up when that run ends, within startingDeadlineSeconds; here it \
                       is left out (Forbid), and QueueOne would keep one";
/// What a manifest says of a CronJob without a zone.
const NO_ZONE: &str = "no timeZone:";

pub fn read(paths: &[PathBuf], options: &Options, drafts: &mut Drafts) -> Result<(), ImportError> {
    let files = source::files(paths, &["yaml", "yml", "json"])?;
    for path in files {
        let text = source::text(&path, MANIFEST_FILE_BYTES as u64)?;
        file(&path, text, options, drafts);
    }
    drafts.note(
        "commands run on the machine of an executor, not in their images: each needs what its image has, or an image of its own \
         that starts an executor",
    );
    Ok(())
}

fn file(path: &Path, text: String, options: &Options, drafts: &mut Drafts) {
    let files = [ManifestFile { name: source::shown(path), text }];
    // Twins of one tenant are refused there; of an import they would be two objects of two namespaces.
    let read = manifest::read(&files, DEFAULT_TENANT);
    if read.problems.len() >= MANIFEST_PROBLEMS {
        let place = Place { file: files[0].name.clone(), line: 0 };
        let reason = format!("{MANIFEST_PROBLEMS} things are wrong in this file, and no more of it was read");
        drafts.refuse(&place, "", reason, "correct them, or split the file, and import again");
    }
    for problem in read.problems {
        let place = Place { file: problem.file, line: problem.line };
        drafts.refuse(&place, &problem.path, text::sentence(&problem.message), "");
    }
    for other in read.passed_over {
        drafts.note(format!("{}:{}: {}", other.file, other.line, text::sentence(&other.message)));
    }
    for job in read.jobs {
        let (file, line) = manifest::stands(&files, &job.origin);
        drafts.add(draft(job, Place { file, line }, options));
    }
}

fn draft(job: ManifestJob, place: Place, options: &Options) -> Draft {
    let ManifestJob { mut spec, suspend, hazards, .. } = job;
    let mut changed: Vec<String> = hazards.iter().map(|hazard| text::sentence(hazard)).collect();
    let namespace = std::mem::take(&mut spec.tenant_id);
    let named = if namespace.is_empty() { spec.name.clone() } else { format!("{namespace}/{}", spec.name) };
    match &options.tenant {
        Some(tenant) => {
            tenant.clone_into(&mut spec.tenant_id);
            spec.name = text::name(&named.split('/').collect::<Vec<_>>());
        }
        None if namespace.is_empty() => DEFAULT_TENANT.clone_into(&mut spec.tenant_id),
        None => spec.tenant_id = namespace,
    }
    if let Some(pool) = &options.pool {
        pool.clone_into(&mut spec.executor_selector);
    }
    zone(&mut spec, options, &mut changed);
    if spec.concurrency_policy == ConcurrencyPolicy::Forbid {
        changed.push(FORBIDS.to_owned());
    }
    Draft { spec, suspend: suspend.filter(|suspend| *suspend), place, origin: format!("CronJob {named}"), changed }
}

/// The zone of a schedule that names none, and what Kubernetes does where the clock changes: a time that does not exist is left out, one
/// that comes twice fires twice.
fn zone(spec: &mut JobSpec, options: &Options, changed: &mut Vec<String>) {
    let Trigger::Cron { expr, dialect, timezone, gap, overlap, .. } = &mut spec.trigger else { return };
    let has_none = changed.iter().position(|told| told.starts_with(NO_ZONE));
    if let (Some(index), Some(zone)) = (has_none, &options.zone) {
        changed.remove(index);
        zone.clone_into(timezone);
    }
    let is_fixed = CronExpr::parse(expr, *dialect, 0).is_ok_and(|(compiled, _)| !compiled.follows_elapsed_time());
    if is_fixed && timezone != "UTC" {
        (*gap, *overlap) = (Gap::Skip, Overlap::Both);
    }
}

#[cfg(test)]
mod tests;
