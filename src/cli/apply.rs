//! `campanile apply`: shows what manifests would change, then changes it.

use super::{
    change::DryRun,
    failure::{Failure, NOT_SUCCESS},
    output::{self, Format},
    progress::{Progress, Unit},
    remote::Remote,
};
use campanile_jobfiles::manifest;
use campanile_schema::{
    apply::{AppliedView, ApplyBody, ApplyOutcome, FieldChange, ManifestFile, PlanAction, PlanItem, PlanView},
    error::ErrorCode,
    operations::{JobApply, JobPlan},
    payload::Payload,
};
use campanile_security::text;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    fmt::Write,
    io::{BufRead, IsTerminal},
    path::{Path, PathBuf},
};

/// Files of a directory that hold manifests, by their ending.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// Longest value of a field on one line, characters.
const VALUE_CHARS: usize = 100;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Manifests: files, directories (their .yaml, .yml and .json files, without going deeper), or - for stdin
    #[arg(short, long = "file", value_name = "PATH", required_unless_present = "schema")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    scope: Scope,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking
    #[arg(short, long)]
    yes: bool,
    /// Print the JSON Schema of manifests, for editors; asks no node
    #[arg(long)]
    schema: bool,
}

/// What of the jobs that there are is compared with manifests, and which objects count.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("whose").args(["owner", "prune_labels"]).multiple(true)))]
pub(super) struct Scope {
    /// Tenant of manifests without a namespace [default: the credential's; for operators `default`]
    #[arg(long)]
    tenant: Option<String>,
    /// Whose jobs these are; kept with each as the label apply.owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Delete the owner's jobs, or those of --prune-labels, that no manifest names
    #[arg(long, requires = "whose")]
    prune: bool,
    /// With --prune: only jobs with these labels (key=value,key2); without --owner those that have no owner
    #[arg(long, value_name = "LABELS", requires = "prune")]
    prune_labels: Option<String>,
    /// Take jobs over that belong to another owner
    #[arg(long, requires = "owner")]
    take_over: bool,
    /// Refuse objects of other kinds, such as a ServiceAccount beside a CronJob, which are passed over otherwise
    #[arg(long)]
    strict: bool,
}

/// The call for these files.
pub(super) fn body(files: &[PathBuf], scope: Scope) -> Result<ApplyBody, Failure> {
    let Scope { tenant, owner, prune, prune_labels, take_over, strict } = scope;
    let files = read_all(files)?;
    Ok(ApplyBody { files, tenant_id: tenant, owner, prune, prune_labels, take_over, strict, ..ApplyBody::default() })
}

pub(super) fn run(args: Args, remote: impl FnOnce() -> Result<Remote, Failure>, format: Format) -> Result<(), Failure> {
    if args.schema {
        return match format {
            Format::Table | Format::Json => {
                output::text(manifest::schema_text());
                Ok(())
            }
            Format::Yaml => {
                let schema = serde_json::from_str(manifest::schema_text());
                output::one(format, &schema.map_err(|error| Failure::here(error.to_string()))?)
            }
        };
    }
    let body = body(&args.files, args.scope)?;
    let from_stdin = args.files.iter().any(|file| file.as_os_str() == "-");
    carry_out(&remote()?, body, Consent { dry_run: args.dry_run, yes: args.yes, from_stdin }, format)
}

/// Whether and how a change is agreed to.
pub(super) struct Consent {
    pub dry_run: bool,
    /// Deletes without a question.
    pub yes: bool,
    /// Nobody can be asked.
    pub from_stdin: bool,
}

/// Shows the plan, and carries it out.
pub(super) fn carry_out(remote: &Remote, mut body: ApplyBody, consent: Consent, format: Format) -> Result<(), Failure> {
    let planning = Progress::new("planning", Unit::Time, None);
    let plan: PlanView = call(remote, JobPlan::PATH, &body)?;
    drop(planning);
    let nothing = plan.create + plan.change + plan.delete == 0;
    if consent.dry_run || nothing {
        return match format {
            Format::Table => {
                output::text(&shown(&plan));
                if !nothing {
                    DryRun::nothing_changed();
                }
                Ok(())
            }
            Format::Json | Format::Yaml => output::one(format, &value(&plan)?),
        };
    }
    if format == Format::Table {
        output::text(&shown(&plan));
    }
    if plan.delete > 0 && !consent.yes {
        ask(plan.delete, consent.from_stdin)?;
    }
    body.plan_id = Some(plan.plan_id);
    let changes = plan.create + plan.change + plan.delete;
    let applying = Progress::new(format!("applying {changes} changes"), Unit::Time, None);
    let applied = call(remote, JobApply::PATH, &body)?;
    drop(applying);
    told(&applied, format)
}

pub(super) fn value(view: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(view).map_err(|error| Failure::here(format!("the answer cannot be shown: {error}")))
}

pub(super) fn call<T: DeserializeOwned>(remote: &Remote, path: &str, body: &ApplyBody) -> Result<T, Failure> {
    let answer = remote.post(path, &value(body)?)?;
    serde_json::from_value(answer).map_err(|error| Failure::here(format!("the node's answer cannot be read: {error}")))
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<ManifestFile>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let text = text::read_from(std::io::stdin().lock(), true)
                .map_err(|error| Failure::usage(format!("stdin: {error}")))?;
            files.push(ManifestFile { name: "stdin".to_owned(), text });
        } else if path.is_dir() {
            let of_directory =
                in_directory(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            if of_directory.is_empty() {
                let endings = ENDINGS.map(|ending| format!(".{ending}")).join(", ");
                return Err(Failure::usage(format!("{}: no file that ends in {endings}", path.display())));
            }
            for file in of_directory {
                files.push(read(&file)?);
            }
        } else {
            files.push(read(path)?);
        }
    }
    Ok(files)
}

/// In order of their names, without hidden ones.
fn in_directory(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        let hidden = file.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let ending = file.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        if ending && !hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<ManifestFile, Failure> {
    let text = text::read(path, true).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Ok(ManifestFile { name: path.display().to_string(), text })
}

/// Only a person can agree, and only one who can be asked.
fn ask(count: u64, from_stdin: bool) -> Result<(), Failure> {
    if from_stdin || !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{count} jobs would be deleted: nothing was changed; add --yes to do it")));
    }
    eprint!("{count} jobs will be deleted; their history stays. Go on? [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::usage("nothing was changed")),
    }
}

/// The plan, for people.
pub(super) fn shown(plan: &PlanView) -> String {
    shown_with(plan, |_, _| ())
}

/// The same, with more below each job that changes.
pub(super) fn shown_with(plan: &PlanView, below: impl Fn(&PlanItem, &mut String)) -> String {
    let mut text = String::new();
    let changing: Vec<&PlanItem> = plan.items.iter().filter(|item| item.action != PlanAction::Unchanged).collect();
    let named = |item: &PlanItem| format!("{}/{}", item.tenant_id, item.name);
    let width = changing.iter().map(|item| named(item).chars().count()).max().unwrap_or(0);
    for item in changing {
        let place = match (&item.file, item.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (file, _) => file.clone().unwrap_or_default(),
        };
        let line = format!("{:<7} {:<width$}  {place}", item.action.as_str(), named(item));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
        for FieldChange { field, before, after } in &item.changes {
            let _ = writeln!(text, "        ~ {field}: {} -> {}", short(before.as_ref()), short(after.as_ref()));
        }
        for hazard in &item.hazards {
            let _ = writeln!(text, "        ! {hazard}");
        }
        below(item, &mut text);
    }
    for other in &plan.passed_over {
        let _ = writeln!(text, "- {other}");
    }
    let PlanView { create, change, unchanged, delete, .. } = plan;
    let _ = writeln!(text, "{create} to create, {change} to change, {unchanged} unchanged, {delete} to delete");
    text
}

pub(super) fn short(value: Option<&Payload>) -> String {
    let text = match value.map(Payload::to_value) {
        None => return "(none)".to_owned(),
        Some(Value::String(text)) if !text.is_empty() && !text.chars().any(char::is_control) => text,
        Some(other) => other.to_string(),
    };
    let cut: String = text.chars().take(VALUE_CHARS).collect();
    if cut.len() < text.len() { cut + "..." } else { cut }
}

fn told(applied: &AppliedView, format: Format) -> Result<(), Failure> {
    let AppliedView { created, changed, unchanged, deleted, failed, not_begun, items } = applied;
    match format {
        Format::Table => {
            let mut text = format!("created {created}, changed {changed}, unchanged {unchanged}, deleted {deleted}");
            if failed + not_begun > 0 {
                let _ = write!(text, ", failed {failed}, not begun {not_begun}");
            }
            output::text(&(text + "\n"));
        }
        Format::Json | Format::Yaml => output::one(format, &value(applied)?)?,
    }
    let mut code = None;
    for item in items {
        if let (Some(ApplyOutcome::Failed), Some(error)) = (item.outcome, &item.error) {
            eprintln!("{}/{}: {}: {}", item.tenant_id, item.name, error.code, error.message);
            code = code.or(ErrorCode::parse(&error.code).map(ErrorCode::exit_code));
        }
    }
    if failed + not_begun == 0 {
        return Ok(());
    }
    let advice = "apply the same again: what is done stays done, and the rest follows";
    Err(Failure { advice, ..Failure::new(code.unwrap_or(NOT_SUCCESS), "not everything could be applied, see above") })
}
