//! `campanile export`, `campanile job get --manifest`: jobs as manifests that mean them.

use super::{
    failure::Failure,
    output::{self, Format},
    remote::Remote,
};
use campanile_jobfiles::manifest::{self, JobManifest};
use campanile_schema::{
    job::{JobStatus, JobView},
    operations::{JobFind, JobList},
};
use campanile_serve::ops::apply::{LABEL_OWNER, LABELS};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(super) struct Args {
    /// Names of the jobs [default: all]
    names: Vec<String>,
    #[arg(long)]
    tenant: Option<String>,
    /// key=value,key2!=value2,key3
    #[arg(short, long)]
    labels: Option<String>,
    /// Part of the name
    #[arg(long)]
    text: Option<String>,
    /// Only jobs of this owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

pub(super) fn run(args: Args, remote: &Remote, format: Format) -> Result<(), Failure> {
    let of_owner = args.owner.map(|owner| format!("{LABEL_OWNER}={owner}"));
    let labels: Vec<String> = args.labels.into_iter().chain(of_owner).collect();
    let query = [
        ("tenantId", args.tenant.clone()),
        ("labels", (!labels.is_empty()).then(|| labels.join(","))),
        ("text", args.text),
    ];
    let found = if args.names.is_empty() {
        remote.all(JobList::PATH, &query)?
    } else {
        let one = |name: String| remote.get(JobFind::PATH, &[("name", Some(name)), ("tenantId", args.tenant.clone())]);
        args.names.into_iter().map(one).collect::<Result<_, _>>()?
    };
    let jobs = found.into_iter().map(of_view).collect::<Result<Vec<Option<JobManifest>>, _>>()?;
    let jobs: Vec<JobManifest> = jobs.into_iter().flatten().collect();
    match format {
        Format::Table | Format::Yaml => {
            let documents = jobs.iter().map(manifest::yaml).collect::<Result<Vec<_>, _>>().map_err(Failure::here)?;
            output::text(&documents.join("---\n"));
            Ok(())
        }
        Format::Json => output::one(format, &json!({"apiVersion": "v1", "kind": "List", "items": jobs})),
    }
}

/// `job get --manifest`.
pub(super) fn one(view: Value, format: Format) -> Result<(), Failure> {
    let Some(job) = of_view(view)? else { return Err(Failure::usage("the job was deleted")) };
    match format {
        Format::Table | Format::Yaml => {
            output::text(&manifest::yaml(&job).map_err(Failure::here)?);
            Ok(())
        }
        Format::Json => output::one(format, &json!(job)),
    }
}

/// None: it was deleted. Labels that apply sets are left out: it sets them again.
fn of_view(view: Value) -> Result<Option<JobManifest>, Failure> {
    let unreadable = |error| Failure::here(format!("the node's job cannot be read: {error}"));
    let mut view: JobView = serde_json::from_value(view).map_err(unreadable)?;
    view.spec.labels.retain(|name, _| !name.starts_with(LABELS));
    let suspend = match view.status {
        JobStatus::Enabled => None,
        JobStatus::Paused => Some(true),
        JobStatus::Deleted => return Ok(None),
    };
    manifest::manifest(&view.spec, suspend).map(Some).map_err(Failure::here)
}
