//! Jobs as they are to be beside those that there are: what would be done, field by field.

use super::{
    super::{Answer, Operations, access},
    DesiredJob, LABEL_FILE, LABEL_GONE, LABEL_OWNER, LABELS,
    forecast::{Timed, Turn},
    gather::refused,
};
use campanile_jobfiles::{crontab, manifest};
use campanile_schema::{
    apply::{FieldChange, ManifestFile, ManifestProblem, PlanAction, PlanItem, PlanView},
    error::{ApiError, ErrorCode},
    job::{Action, JobSpec, JobStatus, JobView, Trigger},
    limits::{APPLY_IN_FLIGHT, PAGE_SIZE_MAX},
    operations::JobList,
    payload::Payload,
    stored::MASK,
    time::Timestamp,
    view::{JobFilter, PreviewBody},
};
use campanile_security::auth::Caller;
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of jobs of the owner that are not in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GonePolicy {
    Stay,
    Pause,
    Delete,
}

/// Jobs that are to be, and who says so.
#[derive(Clone, Debug)]
pub struct Set {
    pub wanted: Vec<DesiredJob>,
    /// Of the wanted ones' origins.
    pub files: Vec<ManifestFile>,
    pub owner: Option<String>,
    pub gone: GonePolicy,
    pub take_over: bool,
    /// What is wrong with manifests that make no wanted job.
    pub problems: Vec<ManifestProblem>,
    /// Objects of the files that are no jobs.
    pub passed_over: Vec<ManifestProblem>,
    /// Jobs of these files, by the label `apply.file`, are not gone.
    pub kept_files: BTreeSet<String>,
    /// Only jobs of this tenant can be gone.
    pub tenant: Option<String>,
    /// Jobs with these labels can be gone, instead of all of the owner.
    pub prune_labels: Option<String>,
    /// What the changes mean is asked for too.
    pub forecast: bool,
}

/// One thing that is done with a job.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Create(JobSpec),
    /// None: of the version that the step before left.
    Replace {
        version: Option<u64>,
        spec: JobSpec,
    },
    Pause,
    Resume,
    Delete,
}

impl Step {
    /// It stores a DAG, whose nodes must be there.
    pub fn is_dag(&self) -> bool {
        match self {
            Self::Create(spec) | Self::Replace { spec, .. } => matches!(spec.action, Some(Action::Dag(_))),
            Self::Pause | Self::Resume | Self::Delete => false,
        }
    }
}

/// A plan, with what is to be done for each of its items.
pub struct Planned {
    pub(super) items: Vec<(PlanItem, Vec<Step>)>,
    /// Of each item that is not unchanged, in their order, if a forecast is asked for.
    pub(super) turns: Vec<Turn>,
    passed_over: Vec<ManifestProblem>,
}

impl Planned {
    pub fn view(self) -> PlanView {
        let count = |action| self.items.iter().filter(|(item, _)| item.action == action).count() as u64;
        PlanView {
            plan_id: self.id(),
            create: count(PlanAction::Create),
            change: count(PlanAction::Change),
            unchanged: count(PlanAction::Unchanged),
            delete: count(PlanAction::Delete),
            items: self.items.into_iter().map(|(item, _)| item).collect(),
            passed_over: self.passed_over,
            forecast: None,
        }
    }

    /// The same for the same changes of the same versions.
    pub(super) fn id(&self) -> String {
        let mut hash = Sha256::new();
        for (item, _) in self.items.iter().filter(|(item, _)| item.action != PlanAction::Unchanged) {
            let changes: Vec<_> = item.changes.iter().map(|c| (&c.field, &c.before, &c.after)).collect();
            let named = serde_json::json!([item.action, item.tenant_id, item.name, item.job_id, item.version, changes]);
            hash.update(named.to_string());
        }
        hex::encode(&hash.finalize()[..8])
    }
}

type Compared = Result<(PlanItem, Vec<Step>, Turn), ManifestProblem>;

pub(super) async fn plan(ops: &Operations, caller: &Caller, set: Set) -> Answer<Planned> {
    let wanted: BTreeSet<(String, String)> =
        set.wanted.iter().map(|job| (job.spec.tenant_id.clone(), job.spec.name.clone())).collect();
    let comparing: Vec<_> = set.wanted.iter().map(|job| compare(ops, caller, &set, job)).collect();
    let compared: Vec<Compared> = stream::iter(comparing).buffered(APPLY_IN_FLIGHT).try_collect().await?;
    let (mut items, mut turns, mut problems) = (Vec::new(), Vec::new(), set.problems.clone());
    for compared in compared {
        match compared {
            Ok((item, steps, turn)) => {
                turns.extend((set.forecast && item.action != PlanAction::Unchanged).then_some(turn));
                items.push((item, steps));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        let order: BTreeMap<&str, usize> =
            set.files.iter().enumerate().rev().map(|(index, file)| (file.name.as_str(), index)).collect();
        problems.sort_by_key(|problem| (order.get(problem.file.as_str()).copied(), problem.line));
        return Err(refused(&problems));
    }
    for view in left_over(ops, caller, &set).await? {
        let is_kept = view.spec.labels.get(LABEL_FILE).is_some_and(|file| set.kept_files.contains(file));
        if !is_kept && !wanted.contains(&(view.spec.tenant_id.clone(), view.spec.name.clone())) {
            let Some(step) = gone(&view, set.gone) else { continue };
            let before = Timed::of(&view.spec, view.status == JobStatus::Paused);
            turns.extend(set.forecast.then_some(Turn { before, after: None }));
            items.push(step);
        }
    }
    Ok(Planned { items, turns, passed_over: set.passed_over })
}

/// Jobs of the owner, or with the labels, as far as they may be gone.
async fn left_over(ops: &Operations, caller: &Caller, set: &Set) -> Answer<Vec<JobView>> {
    let owner = set.owner.as_ref().map(|owner| format!("{LABEL_OWNER}={owner}"));
    let labels: Vec<String> = owner.into_iter().chain(set.prune_labels.clone()).collect();
    if labels.is_empty() || set.gone == GonePolicy::Stay {
        return Ok(Vec::new());
    }
    let tenants: BTreeSet<&str> = set.wanted.iter().map(|job| job.spec.tenant_id.as_str()).collect();
    // Without an owner only labels tell, which other tenants and other owners may use too.
    let may_go = |view: &JobView| {
        let of_nobody =
            || tenants.contains(view.spec.tenant_id.as_str()) && !view.spec.labels.contains_key(LABEL_OWNER);
        view.status != JobStatus::Deleted && (set.owner.is_some() || of_nobody())
    };
    let mut found = Vec::new();
    let mut page_token = None;
    loop {
        let filter = JobFilter {
            tenant_id: set.tenant.clone(),
            labels: Some(labels.join(",")),
            page_token,
            page_size: Some(PAGE_SIZE_MAX),
            ..JobFilter::default()
        };
        let page = ops.call::<JobList>(caller, filter).await?;
        found.extend(page.items.into_iter().filter(&may_go));
        page_token = page.next_page_token;
        if page_token.is_none() {
            return Ok(found);
        }
    }
}

fn gone(view: &JobView, policy: GonePolicy) -> Option<(PlanItem, Vec<Step>)> {
    let item = |action, changes| PlanItem {
        action,
        tenant_id: view.spec.tenant_id.clone(),
        name: view.spec.name.clone(),
        job_id: Some(view.job_id),
        version: Some(view.version),
        file: None,
        line: None,
        changes,
        hazards: Vec::new(),
        outcome: None,
        error: None,
        forecast: None,
    };
    match policy {
        GonePolicy::Stay => None,
        GonePolicy::Delete => Some((item(PlanAction::Delete, Vec::new()), vec![Step::Delete])),
        GonePolicy::Pause => {
            let mut steps = Vec::new();
            let mut spec = view.spec.clone();
            // The label first: paused without it, it would stay paused when it comes back.
            if spec.labels.insert(LABEL_GONE.to_owned(), "paused".to_owned()).is_none() {
                steps.push(Step::Replace { version: Some(view.version), spec });
            }
            if view.status != JobStatus::Paused {
                steps.push(Step::Pause);
            }
            let change = FieldChange {
                field: "spec.suspend".to_owned(),
                before: Some(Payload::from_value(&false.into())),
                after: Some(Payload::from_value(&true.into())),
            };
            (!steps.is_empty()).then(|| (item(PlanAction::Change, vec![change]), steps))
        }
    }
}

/// One job beside the one that there is. Outer errors are of the whole call, inner ones of the manifest.
async fn compare(ops: &Operations, caller: &Caller, set: &Set, job: &DesiredJob) -> Answer<Compared> {
    let problem = |field: &str, message: String| match &job.origin {
        Some(origin) => manifest::problem(&set.files, origin, field, message),
        None => {
            let (file, line) = job.place.clone().unwrap_or_default();
            ManifestProblem { file, line, column: 1, path: String::new(), message }
        }
    };
    let mut spec = job.spec.clone();
    if let Err(error) = access::settle_spec(caller, &mut spec) {
        let field =
            if error.message.starts_with("executorSelector") { "spec.executorSelector" } else { "metadata.namespace" };
        return refuse_or_fail(error, |message| problem(field, message));
    }
    let old = match ops.scheduler.job_by_name(&spec.tenant_id, &spec.name).await {
        Ok(view) => Some(view),
        Err(error) if error.known() == ErrorCode::NotFound => None,
        Err(error) => return Err(error),
    };
    let theirs = old.as_ref().and_then(|old| old.spec.labels.get(LABEL_OWNER));
    if let (Some(theirs), Some(owner)) = (theirs, &set.owner)
        && theirs != owner
        && !set.take_over
    {
        let message = format!("the job belongs to '{theirs}'; apply it as '{theirs}', or with takeOver");
        return Ok(Err(problem("metadata.name", message)));
    }
    keep_labels(&mut spec, old.as_ref(), set.owner.as_deref());
    if let Some(old) = old.as_ref().filter(|_| job.is_crontab) {
        spec = crontab::merged(&old.spec, &spec);
    }
    let mut hazards = job.hazards.clone();
    let mut read_back = resolved(ops, &spec, old.as_ref());
    if let Err(error) = &read_back
        && error.known() == ErrorCode::ScheduleNeverFires
        && let Some(hazard) = past(ops, &spec)
    {
        spec.trigger = Trigger::Manual {};
        (spec.windows, spec.blackouts) = (Vec::new(), Vec::new());
        hazards.push(hazard);
        read_back = resolved(ops, &spec, old.as_ref());
    }
    let resolved = match read_back {
        Ok(resolved) => resolved,
        Err(error) => {
            let field = field_of(&error.message);
            return refuse_or_fail(error, |message| problem(field, message));
        }
    };
    let came_back = old.as_ref().is_some_and(|old| old.spec.labels.contains_key(LABEL_GONE));
    let was_paused = old.as_ref().is_some_and(|old| old.status == JobStatus::Paused);
    let suspend = job.suspend.unwrap_or(was_paused && !came_back);
    let mut changes = match &old {
        Some(old) => changes(&old.spec, was_paused, &resolved, suspend)?,
        None => Vec::new(),
    };
    if let Some(old) = &old
        && !spec.secret_params.is_empty()
        && spec.secret_params.keys().eq(old.spec.secret_params.keys())
        && spec.secret_params.values().any(|value| value != MASK)
        && !ops.scheduler.has_secrets(old.job_id, &spec).await?
    {
        let masked = Some(Payload::from_value(&MASK.into()));
        changes.push(FieldChange { field: "spec.secretParams".to_owned(), before: masked.clone(), after: masked });
    }
    let action = match &old {
        None => PlanAction::Create,
        Some(_) if changes.is_empty() => PlanAction::Unchanged,
        Some(_) => PlanAction::Change,
    };
    if action != PlanAction::Unchanged && !job.is_crontab {
        hazards.extend(surprises(ops, &resolved));
    }
    let is_other = changes.iter().any(|change| change.field != "spec.suspend");
    let item = PlanItem {
        action,
        tenant_id: spec.tenant_id.clone(),
        name: spec.name.clone(),
        job_id: old.as_ref().map(|old| old.job_id),
        version: old.as_ref().map(|old| old.version),
        file: job.place.as_ref().map(|(file, _)| file.clone()),
        line: job.place.as_ref().map(|(_, line)| *line),
        changes,
        hazards,
        outcome: None,
        error: None,
        forecast: None,
    };
    let turn = Turn {
        before: old.as_ref().and_then(|old| Timed::of(&old.spec, was_paused)),
        after: Timed::of(&resolved, suspend),
    };
    let steps = match &old {
        None => create(spec, suspend),
        Some(old) => change(old, spec, is_other, was_paused, suspend),
    };
    Ok(Ok((item, steps, turn)))
}

/// A paused job is made as one that is never due: between two steps it must not fire.
fn create(spec: JobSpec, suspend: bool) -> Vec<Step> {
    if !suspend || matches!(spec.trigger, Trigger::Manual {}) {
        let pause = suspend.then_some(Step::Pause);
        return std::iter::once(Step::Create(spec)).chain(pause).collect();
    }
    let mut quiet = spec.clone();
    quiet.trigger = Trigger::Manual {};
    vec![Step::Create(quiet), Step::Pause, Step::Replace { version: None, spec }]
}

/// Paused before it is changed, resumed after.
fn change(old: &JobView, spec: JobSpec, is_other: bool, was_paused: bool, suspend: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend((suspend && !was_paused).then_some(Step::Pause));
    steps.extend(is_other.then_some(Step::Replace { version: Some(old.version), spec }));
    steps.extend((!suspend && was_paused).then_some(Step::Resume));
    steps
}

/// The labels that apply sets itself: what another apply said stays.
fn keep_labels(spec: &mut JobSpec, old: Option<&JobView>, owner: Option<&str>) {
    if let Some(owner) = owner {
        spec.labels.insert(LABEL_OWNER.to_owned(), owner.to_owned());
    }
    for name in [LABEL_OWNER, LABEL_FILE] {
        let kept = old.and_then(|old| old.spec.labels.get(name));
        if let (Some(kept), false) = (kept, spec.labels.contains_key(name)) {
            spec.labels.insert(name.to_owned(), kept.clone());
        }
    }
    debug_assert!(LABEL_FILE.starts_with(LABELS));
    debug_assert!(LABEL_OWNER.starts_with(LABELS));
}

/// As it would be read back. A schedule that has come to its end is only refused when something is changed.
fn resolved(ops: &Operations, spec: &JobSpec, old: Option<&JobView>) -> Answer<JobSpec> {
    match (ops.scheduler.resolved(spec, old), old) {
        (Err(error), Some(old)) if error.known() == ErrorCode::ScheduleNeverFires => {
            let as_written = ops.scheduler.resolved_unchecked(spec, old)?;
            let is_same = changes(&old.spec, false, &as_written, false)?.is_empty();
            if is_same { Ok(as_written) } else { Err(error) }
        }
        (resolved, _) => resolved,
    }
}

/// A schedule that was right once and is over: it blocks no others. The job is made without a next fire, which is told.
/// `None`: it was never right.
fn past(ops: &Operations, spec: &JobSpec) -> Option<String> {
    ops.scheduler.preview(first_after(spec, Some(Timestamp(0)))).ok()?;
    let (field, when) = match &spec.trigger {
        Trigger::Once { at: Some(at), .. } => ("at", at.to_string()),
        Trigger::Cron { end_at: Some(end), .. }
        | Trigger::FixedRate { end_at: Some(end), .. }
        | Trigger::FixedDelay { end_at: Some(end), .. } => ("endAt", end.to_string()),
        Trigger::Cron { expr, .. } => ("schedule", expr.clone()),
        Trigger::Once { .. } | Trigger::FixedRate { .. } | Trigger::FixedDelay { .. } | Trigger::Manual {} => {
            return None;
        }
    };
    Some(format!(
        "{field} {when} lies in the past: the job is MANUAL and has no next fire; trigger it by hand, or give a later instant"
    ))
}

fn changes(from: &JobSpec, from_paused: bool, to: &JobSpec, to_paused: bool) -> Answer<Vec<FieldChange>> {
    let bug = |why: String| ApiError::new(ErrorCode::Internal, format!("a job cannot be written as a manifest: {why}"));
    let before = manifest::manifest(from, Some(from_paused)).map_err(bug)?;
    let after = manifest::manifest(to, Some(to_paused)).map_err(bug)?;
    let found = manifest::differences(&before, &after).map_err(bug)?;
    let payload = |value: Option<serde_json::Value>| value.map(|value| Payload::from_value(&value));
    let change = |(field, from, to)| FieldChange { field, before: payload(from), after: payload(to) };
    Ok(found.into_iter().map(change).collect())
}

fn first_after(spec: &JobSpec, after: Option<Timestamp>) -> PreviewBody {
    let JobSpec { trigger, windows, blackouts, .. } = spec;
    let (windows, blackouts) = (windows.clone(), blackouts.clone());
    PreviewBody { trigger: trigger.clone(), windows, blackouts, after, count: Some(1) }
}

fn surprises(ops: &Operations, spec: &JobSpec) -> Vec<String> {
    ops.scheduler.preview(first_after(spec, None)).map(|preview| preview.hazards).unwrap_or_default()
}

/// What is the manifest's fault is told with its place; all else is of the call.
fn refuse_or_fail(error: ApiError, problem: impl FnOnce(String) -> ManifestProblem) -> Answer<Compared> {
    match error.known().status() {
        400 | 413 => Ok(Err(problem(error.message))),
        _ => Err(error),
    }
}

/// The manifest's field that the API calls by the message's first word.
fn field_of(message: &str) -> &'static str {
    const FIELDS: [(&str, &str); 16] = [
        ("trigger.expr", "spec.schedule"),
        ("trigger.timezone", "spec.timeZone"),
        ("trigger.everySec", "spec.every"),
        ("trigger.anchorAt", "spec.anchorAt"),
        ("trigger.at", "spec.at"),
        ("trigger.startAt", "spec.startAt"),
        ("trigger.endAt", "spec.endAt"),
        ("trigger.jitterSec", "spec.jitter"),
        ("trigger.maxCatchUp", "spec.maxCatchUp"),
        ("this never fires", "spec.schedule"),
        ("name ", "metadata.name"),
        ("tenantId", "metadata.namespace"),
        ("label", "metadata.labels"),
        ("timeoutSec", "spec.timeout"),
        ("action.command", "spec.command"),
        ("action.name", "spec.handler"),
    ];
    const SAME: [(&str, &str); 16] = [
        ("target", "spec.target"),
        ("displayName", "spec.displayName"),
        ("description", "spec.description"),
        ("owner", "spec.owner"),
        ("annotations", "metadata.annotations"),
        ("executorSelector", "spec.executorSelector"),
        ("retryPolicy", "spec.retryPolicy"),
        ("priority", "spec.priority"),
        ("resources", "spec.resources"),
        ("hooks", "spec.hooks"),
        ("windows", "spec.windows"),
        ("blackouts", "spec.blackouts"),
        ("calendar", "spec.calendar"),
        ("params", "spec.params"),
        ("secretParams", "spec.secretParams"),
        ("action", "spec.action"),
    ];
    FIELDS.iter().chain(&SAME).find(|(api, _)| message.starts_with(api)).map_or("spec", |(_, field)| field)
}
