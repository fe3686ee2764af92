//! `campanile job edit`: a job's manifest in an editor; what was changed is shown and then done. What is refused is kept in a file.

use super::{
    apply::short,
    change::DryRun,
    credentials::create_private,
    failure::Failure,
    job_ref::JobRef,
    output::{self, Format},
    remote::Remote,
};
use campanile_jobfiles::manifest::{self, differences};
use campanile_schema::{
    apply::ManifestFile,
    job::{JobStatus, JobView},
    payload::Payload,
};
use campanile_security::text;
use campanile_serve::ops::apply::LABELS;
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobRef,
    /// Go on with this text instead of the job's own: what an edit that was refused has kept
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only show what would be changed
    #[arg(long)]
    dry_run: bool,
}

/// On top of the text; the editor's user reads it.
const HEAD: &str =
    "# Edit the job, save and leave the editor; with nothing changed nothing is done. Fields: docs/manifests.md\n";

pub(super) fn run(args: Args, remote: &Remote, format: Format) -> Result<(), Failure> {
    let path = args.job.path(remote)?;
    let view: JobView = serde_json::from_value(remote.get(&path, &[])?)
        .map_err(|error| Failure::here(format!("the node's job cannot be read: {error}")))?;
    let mut shown = view.spec.clone();
    shown.labels.retain(|name, _| !name.starts_with(LABELS));
    let was_paused = view.status == JobStatus::Paused;
    let before = manifest::manifest(&shown, was_paused.then_some(true)).map_err(Failure::here)?;
    let own = format!("{HEAD}{}", manifest::yaml(&before).map_err(Failure::here)?);
    let text = match &args.file {
        Some(file) => text::read(file, true).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?,
        None => own.clone(),
    };
    let kept = std::env::temp_dir().join(format!("campanile-edit-{}-{}.yaml", view.job_id, std::process::id()));
    create_private(&kept, &text).map_err(|error| Failure::here(format!("{}: {error}", kept.display())))?;
    let done = edited(&kept, &view, &before, &own, |change| carry_out(change, &args, remote, &path, &view, format));
    match done {
        Ok(()) => {
            // Nothing of it is needed any more; the system's own tidying takes what stays.
            let _ = fs::remove_file(&kept);
            Ok(())
        }
        Err(failure) => {
            let again = format!("the text is kept: campanile job edit {} --file {}", view.job_id, kept.display());
            Err(Failure { message: format!("{}\n  {again}", failure.message), ..failure })
        }
    }
}

/// What the text means now.
struct Edit {
    spec: campanile_schema::job::JobSpec,
    suspend: bool,
    /// Lines for people; empty: nothing but the pause is changed.
    told: Vec<String>,
    is_other: bool,
}

fn edited(
    kept: &Path,
    view: &JobView,
    before: &manifest::JobManifest,
    own: &str,
    change: impl FnOnce(Edit) -> Result<(), Failure>,
) -> Result<(), Failure> {
    open_editor(kept)?;
    let text = text::read(kept, true).map_err(|error| Failure::here(format!("{}: {error}", kept.display())))?;
    if text == own {
        return unchanged();
    }
    let file = ManifestFile { name: kept.display().to_string(), text };
    let read = manifest::read(&[file], &view.spec.tenant_id);
    if !read.problems.is_empty() {
        let lines: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
        return Err(Failure::usage(lines.join("\n")));
    }
    let [found] = <[manifest::ManifestJob; 1]>::try_from(read.jobs)
        .map_err(|jobs| Failure::usage(format!("the text holds {} jobs, not one", jobs.len())))?;
    let mut spec = found.spec;
    if spec.tenant_id.is_empty() {
        spec.tenant_id.clone_from(&view.spec.tenant_id);
    }
    if (&spec.name, &spec.tenant_id) != (&view.spec.name, &view.spec.tenant_id) {
        return Err(Failure::usage("metadata: name and namespace of a job cannot be changed: create another job"));
    }
    let was_paused = view.status == JobStatus::Paused;
    let suspend = found.suspend.unwrap_or(false);
    let after = manifest::manifest(&spec, suspend.then_some(true)).map_err(Failure::here)?;
    let found = differences(before, &after).map_err(Failure::here)?;
    let is_other = found.iter().any(|(field, ..)| field != "spec.suspend");
    let payload = |value: Option<&serde_json::Value>| value.map(Payload::from_value);
    let line = |(field, from, to): &(String, Option<serde_json::Value>, Option<serde_json::Value>)| {
        format!("~ {field}: {} -> {}", short(payload(from.as_ref()).as_ref()), short(payload(to.as_ref()).as_ref()))
    };
    let told: Vec<String> = found.iter().map(line).collect();
    if told.is_empty() && suspend == was_paused {
        return unchanged();
    }
    // Labels that apply sets are not shown, and stay.
    let hidden = view.spec.labels.iter().filter(|(name, _)| name.starts_with(LABELS));
    spec.labels.extend(hidden.map(|(name, value)| (name.clone(), value.clone())));
    change(Edit { spec, suspend, told, is_other })
}

fn unchanged() -> Result<(), Failure> {
    match output::style().format {
        Format::Table => eprintln!("nothing was changed"),
        format @ (Format::Json | Format::Yaml) => output::one(format, &json!({"changed": false}))?,
    }
    Ok(())
}

fn open_editor(file: &Path) -> Result<(), Failure> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // It may have arguments of its own.
    let left = Command::new("/bin/sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file).status();
    match left {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::usage(format!("the editor '{editor}' ended with {status}: nothing was changed"))),
        Err(error) => Err(Failure::here(format!("the editor '{editor}' cannot be started: {error}; set EDITOR"))),
    }
}

fn carry_out(
    edit: Edit,
    args: &Args,
    remote: &Remote,
    path: &str,
    view: &JobView,
    format: Format,
) -> Result<(), Failure> {
    let told: String = edit.told.iter().map(|line| format!("{line}\n")).collect();
    eprint!("{told}");
    if args.dry_run {
        if format != Format::Table {
            output::one(format, &json!({"dryRun": true, "changes": edit.told}))?;
        }
        DryRun::nothing_changed();
        return Ok(());
    }
    let was_paused = view.status == JobStatus::Paused;
    let reason = json!({"reason": "job edit"});
    if edit.suspend && !was_paused {
        remote.post(&format!("{path}/pause"), &reason)?;
    }
    if edit.is_other {
        // The version that was edited: somebody else's change in between is not lost.
        remote.put(path, &json!({"version": view.version, "spec": edit.spec}))?;
    }
    if !edit.suspend && was_paused {
        remote.post(&format!("{path}/resume"), &reason)?;
    }
    let now = remote.get(path, &[])?;
    match format {
        Format::Table => {
            output::text(&format!("{} is of version {} now\n", view.spec.name, now["version"]));
            Ok(())
        }
        Format::Json | Format::Yaml => output::one(format, &now),
    }
}
