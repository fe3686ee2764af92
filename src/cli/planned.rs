//! `job create --dry-run`, `job replace --dry-run`: the node judges the definition as it would the change, and nothing is changed.

use super::{
    apply,
    change::{DryRun, refused},
    failure::Failure,
    output::{self, Format},
    remote::Remote,
};
use campanile_jobfiles::{manifest, suggest::explained};
use campanile_schema::{
    apply::{ApplyBody, PlanAction, PlanView},
    error::ErrorCode,
    job::{JobSpec, JobView},
    operations::JobPlan,
    payload::Payload,
    replace::ReplacedSpec,
};
use campanile_serve::ops::apply::{LABEL_OWNER, LABELS};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Jobs that would be made.
pub(super) fn create(remote: &Remote, specs: Vec<Value>, format: Format) -> Result<(), Failure> {
    told(&judged(remote, specs)?, format)
}

/// The plan, when all of them would be made.
pub(super) fn judged(remote: &Remote, specs: Vec<Value>) -> Result<PlanView, Failure> {
    let manifests = specs.into_iter().map(read).map(|spec| of_spec(&spec?)).collect::<Result<Vec<_>, _>>()?;
    let plan = ask(remote, &ApplyBody { manifests, ..ApplyBody::default() })?;
    if let Some(item) = plan.items.iter().find(|item| item.action != PlanAction::Create) {
        let told = format!("the tenant {} has a job of the name '{}'", item.tenant_id, item.name);
        return Err(refused(ErrorCode::DuplicateName, told));
    }
    Ok(plan)
}

/// What would become of a job.
pub(super) fn replace(
    remote: &Remote,
    view: Value,
    version: Option<u64>,
    spec: Value,
    format: Format,
) -> Result<(), Failure> {
    let view: JobView = serde_json::from_value(view)
        .map_err(|error| Failure::here(format!("the node's job cannot be read: {error}")))?;
    if let Some(version) = version.filter(|version| *version != view.version) {
        let told = format!("the job is of version {} now, not {version}", view.version);
        return Err(refused(ErrorCode::StaleVersion, told));
    }
    let ReplacedSpec { mut spec, read } = read(spec)?;
    read.check(view.job_id, view.version, Some(view.created_at))
        .map_err(|error| refused(error.known(), error.message))?;
    if spec.tenant_id.is_empty() {
        spec.tenant_id.clone_from(&view.spec.tenant_id);
    }
    if (&spec.name, &spec.tenant_id) != (&view.spec.name, &view.spec.tenant_id) {
        return Err(Failure::usage("name and tenantId of a job cannot be changed: create another job"));
    }
    spec.labels.retain(|name, _| !name.starts_with(LABELS));
    let owner = view.spec.labels.get(LABEL_OWNER).cloned();
    let body = ApplyBody { manifests: vec![of_spec(&spec)?], owner, ..ApplyBody::default() };
    told(&ask(remote, &body)?, format)
}

/// With an empty tenant where the text names none: it is the credential's then.
fn read<T: DeserializeOwned>(mut spec: Value) -> Result<T, Failure> {
    if let Some(fields) = spec.as_object_mut() {
        fields.entry("tenantId").or_insert_with(|| json!(""));
    }
    serde_path_to_error::deserialize(spec).map_err(|error| {
        let (path, told) = (error.path().to_string(), explained(&error.inner().to_string()));
        Failure::usage(if path == "." { told } else { format!("{path}: {told}") })
    })
}

fn of_spec(spec: &JobSpec) -> Result<Payload, Failure> {
    let manifest = manifest::manifest(spec, None).map_err(Failure::here)?;
    let value = serde_json::to_value(manifest).map_err(|error| Failure::here(error.to_string()))?;
    Ok(Payload::from_value(&value))
}

fn ask(remote: &Remote, body: &ApplyBody) -> Result<PlanView, Failure> {
    apply::call(remote, JobPlan::PATH, body)
}

fn told(plan: &PlanView, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table => output::text(&apply::shown(plan)),
        Format::Json | Format::Yaml => output::one(format, &apply::value(plan)?)?,
    }
    DryRun::nothing_changed();
    Ok(())
}
