//! Calls about jobs.

use super::{Scheduler, changed::read_changed, no_such, nodes::graph_of};
use crate::{
    ask::ask,
    call_error::CallError,
    calls::{CreateKey, ShardCall},
    chunks::chunks,
    handles::SessionHandles,
};
use campanile_core::{
    cron,
    job::{Command, Reply},
    schedule::Schedule,
    spec,
};
use campanile_ports::SecretOwner;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    event::LedgerEntry,
    format::MESSAGES_FORMAT,
    frame,
    ids::{Digest, JobId, ShardId, shard_of_slot, slot_of},
    job::{JobSpec, JobView},
    limits,
    stored::{Sealed, StoredJob, StoredTrigger},
    time::Timestamp,
    view::{Created, LedgerEntryView, Preview, PreviewBody},
};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;

fn owner_of(spec: &JobSpec) -> SecretOwner<'_> {
    SecretOwner { tenant: &spec.tenant_id, job: &spec.name }
}

impl Scheduler {
    /// Checks, seals secrets, resolves.
    fn stored(&self, spec: &JobSpec, old: Option<&StoredJob>) -> Answer<StoredJob> {
        let handles = self.handles()?;
        let news = [
            ("action.kind", graph_of(spec).is_some()),
            ("hooks", !spec.hooks.is_empty()),
            ("displayName, description, owner and annotations", spec.has_texts()),
            ("maxRuntimeSec and retryPolicy.maxElapsedSec", spec.has_time_limit()),
            ("target", spec.target.is_some()),
            ("windows and blackouts", spec.has_windows()),
            ("calendar", spec.calendar.is_some()),
        ];
        if let Some((what, _)) = news.iter().find(|(_, given)| *given)
            && handles.in_use.event() < MESSAGES_FORMAT
        {
            let why = format!(
                "{what}: not all nodes of the cluster run the release that knows them; repeat the call when they do"
            );
            return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
        }
        let sealed = if spec.secret_params.is_empty() || spec::masked(spec) {
            None
        } else {
            let sealed = handles.secrets.seal(owner_of(spec), &spec.secret_params).ok_or_else(|| {
                ApiError::new(
                    ErrorCode::NoSecretKey,
                    "secretParams need a key: set secrets.key_file in the configuration ('campanile secrets new-key' makes one)",
                )
            })?;
            Some(sealed)
        };
        Ok(spec::resolve(spec, sealed, old, handles.identity.time.now_ms())?)
    }

    /// `idempotency_key`: the same one with the same spec again answers with the job that was made, edited or deleted as it
    /// may be since; with another spec it is refused.
    pub async fn create_job(&self, spec: JobSpec, idempotency_key: Option<String>) -> Answer<Created> {
        let handles = self.handles()?;
        let shard = shard_of_slot(slot_of(&spec.tenant_id, &spec.name), handles.identity.shards);
        let once = idempotency_key.map(|key| once(&spec, &key));
        if let Some(once) = once
            && let Some(made) = ask::<Option<Created>>(&handles.client, shard, ShardCall::Created(once)).await?
        {
            return Ok(made);
        }
        // Only now: a ONCE that was made in time may lie in the past by the time of the repeat.
        let stored = Box::new(self.stored(&spec, None)?);
        self.check_nodes(&spec).await?;
        self.check_calendar(&spec).await?;
        if let Some(once) = once {
            let keeper = shard_of_slot(once.key.slot(), handles.identity.shards);
            ask::<()>(&handles.client, keeper, ShardCall::KeepCreate(once)).await?;
        }
        let create = self.with_record(&handles, ShardCall::Create { spec: stored, once });
        Ok(ask(&handles.client, shard, create).await?)
    }

    /// Creates many in one go; an answer per item, each given when it is durable. DAGs come behind the other jobs, which may be their
    /// nodes, and so do jobs with a calendar, which is looked up for each.
    pub async fn create_jobs(&self, specs: Vec<JobSpec>) -> Vec<Answer<Created>> {
        let is_apart = |spec: &JobSpec| graph_of(spec).is_some() || spec.calendar.is_some();
        if !specs.iter().any(is_apart) {
            return self.create_together(specs).await;
        }
        let mut answers: Vec<Answer<Created>> = specs.iter().map(|_| Err(CallError::Unanswered.into())).collect();
        let (apart, others): (Vec<_>, Vec<_>) = specs.into_iter().enumerate().partition(|(_, spec)| is_apart(spec));
        let (places, others): (Vec<usize>, Vec<JobSpec>) = others.into_iter().unzip();
        for (place, made) in places.into_iter().zip(self.create_together(others).await) {
            answers[place] = made;
        }
        for (place, spec) in apart {
            answers[place] = self.create_job(spec, None).await;
        }
        answers
    }

    async fn create_together(&self, specs: Vec<JobSpec>) -> Vec<Answer<Created>> {
        let handles = match self.handles() {
            Ok(handles) => handles,
            Err(error) => return specs.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut answers: Vec<Answer<Created>> = specs.iter().map(|_| Err(CallError::Unanswered.into())).collect();
        let mut groups: HashMap<ShardId, Vec<(usize, StoredJob)>> = HashMap::new();
        for (index, spec) in specs.iter().enumerate() {
            match self.stored(spec, None) {
                Ok(stored) => {
                    let shard = shard_of_slot(slot_of(&stored.tenant, &stored.name), handles.identity.shards);
                    groups.entry(shard).or_default().push((index, stored));
                }
                Err(error) => answers[index] = Err(error),
            }
        }
        let asked = groups.into_iter().map(|(shard, specs)| {
            let (scheduler, handles) = (self.clone(), handles.clone());
            tokio::spawn(async move { scheduler.create_many(&handles, shard, specs).await })
        });
        for made in asked.collect::<Vec<_>>() {
            // Without an answer nobody knows, as it was said above.
            made.await.unwrap_or_default().into_iter().for_each(|(index, made)| answers[index] = made);
        }
        answers
    }

    /// All of them in one shard, in their order: of two with one name the first is made.
    async fn create_many(
        &self,
        handles: &SessionHandles,
        shard: ShardId,
        specs: Vec<(usize, StoredJob)>,
    ) -> Vec<(usize, Answer<Created>)> {
        let mut made = Vec::with_capacity(specs.len());
        // On a node alone nothing travels.
        let chunks = if handles.client.shards.is_alone() { vec![specs] } else { chunks(specs) };
        for chunk in chunks {
            let places: Vec<usize> = chunk.iter().map(|(index, _)| *index).collect();
            let create = self.with_record(handles, ShardCall::CreateMany(chunk));
            match ask::<Vec<(usize, Answer<Created>)>>(&handles.client, shard, create).await {
                Ok(some) => made.extend(some),
                Err(error) => {
                    let error = ApiError::from(error);
                    made.extend(places.into_iter().map(|index| (index, Err(error.clone()))));
                }
            }
        }
        made
    }

    pub async fn job(&self, job: JobId) -> Answer<JobView> {
        let handles = self.handles()?;
        let view: Box<JobView> = ask(&handles.client, job.shard(handles.identity.shards), ShardCall::GetJob(job))
            .await
            .map_err(|e| named(e, "job", job))?;
        Ok(*view)
    }

    /// By name; used by the CLI (`NAME` or id).
    pub async fn job_by_name(&self, tenant: &str, name: &str) -> Answer<JobView> {
        let handles = self.handles()?;
        let shard = shard_of_slot(slot_of(tenant, name), handles.identity.shards);
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        let view: Box<JobView> = ask(&handles.client, shard, ShardCall::GetJobByName { tenant, name }).await?;
        Ok(*view)
    }

    /// What a job would be read back as if the spec were stored now, in place of `old` when there is one. Changes nothing.
    pub fn resolved(&self, spec: &JobSpec, old: Option<&JobView>) -> Answer<JobSpec> {
        let kept = old.and_then(as_stored);
        let mut stored = self.stored(spec, kept.as_ref())?;
        if spec::masked(spec) {
            stored.secrets = Some(Sealed::keep(spec.secret_params.keys().cloned().collect()));
        }
        Ok(stored.to_spec())
    }

    /// The same without asking whether it is ever due: a definition stays what it is when its time is over.
    pub fn resolved_unchecked(&self, spec: &JobSpec, old: &JobView) -> Answer<JobSpec> {
        let trigger = spec::resolve_trigger(spec, as_stored(old).as_ref(), self.handles()?.identity.time.now_ms())?;
        let names = spec.secret_params.keys().cloned().collect();
        let secrets = (!spec.secret_params.is_empty()).then(|| Sealed::keep(names));
        Ok(StoredJob::from_spec(spec, trigger, secrets).to_spec())
    }

    /// Whether a job's secret params are these. They are opened here and go nowhere.
    pub async fn has_secrets(&self, job: JobId, spec: &JobSpec) -> Answer<bool> {
        let handles = self.handles()?;
        let sealed: Option<Sealed> =
            ask(&handles.client, job.shard(handles.identity.shards), ShardCall::GetSealed(job))
                .await
                .map_err(|e| named(e, "job", job))?;
        // Sealed with a key that is gone: they are not these any more.
        Ok(sealed.is_some_and(|sealed| {
            handles.secrets.open(owner_of(spec), &sealed).is_ok_and(|opened| opened == spec.secret_params)
        }))
    }

    pub async fn replace_job(&self, job: JobId, version: u64, spec: JobSpec) -> Answer<JobView> {
        let known = self.job(job).await?;
        let mut stored = self.stored(&spec, as_stored(&known).as_ref())?;
        self.check_nodes(&spec).await?;
        self.check_calendar(&spec).await?;
        if spec::masked(&spec) {
            stored.secrets = Some(Sealed::keep(spec.secret_params.keys().cloned().collect()));
        }
        self.command(job, Command::Replace { version, spec: Box::new(stored) }).await?;
        read_changed(|| self.job(job)).await
    }

    pub async fn delete_job(&self, job: JobId, reason: Option<String>) -> Answer<()> {
        self.because(reason).command(job, Command::Delete).await.map(|_| ())
    }
    pub async fn pause_job(&self, job: JobId, reason: Option<String>) -> Answer<JobView> {
        self.command(job, Command::Pause { reason }).await?;
        read_changed(|| self.job(job)).await
    }
    pub async fn resume_job(&self, job: JobId, reason: Option<String>) -> Answer<JobView> {
        self.because(reason).command(job, Command::Resume).await?;
        read_changed(|| self.job(job)).await
    }

    /// Tenant of a job, for permission checks of callers that name only an id (no store access).
    pub async fn tenant_of_job(&self, job: JobId) -> Answer<String> {
        let handles = self.handles()?;
        ask(&handles.client, job.shard(handles.identity.shards), ShardCall::TenantOfJob(job))
            .await
            .map_err(|e| named(e, "job", job))
    }

    /// Gives a job a command and waits until its outcome is durable.
    pub(super) async fn command(&self, job: JobId, command: Command) -> Answer<Reply> {
        let handles = self.handles()?;
        let change = self.with_record(&handles, ShardCall::Command { job, command });
        ask(&handles.client, job.shard(handles.identity.shards), change).await.map_err(|e| named(e, "job", job))
    }

    /// Next instants of a trigger, without creating anything.
    pub fn preview(&self, body: PreviewBody) -> Answer<Preview> {
        let now = self.handles().map_or_else(|_| 0, |d| d.identity.time.now_ms());
        preview(body, now)
    }
}

/// A job that was read, as it is stored, but for the values of its secrets.
pub(super) fn as_stored(view: &JobView) -> Option<StoredJob> {
    let trigger = spec::resolve_trigger(&view.spec, None, view.created_at.ms()).ok()?;
    let names: Vec<String> = view.spec.secret_params.keys().cloned().collect();
    let secrets = (!names.is_empty()).then(|| Sealed::keep(names));
    Some(StoredJob::from_spec(&view.spec, trigger, secrets))
}

/// See [`Scheduler::preview`]; pure, used by the CLI without a node too.
pub fn preview(body: PreviewBody, now_ms: i64) -> Answer<Preview> {
    let after = body.after.map_or(now_ms, Timestamp::ms);
    let count = body.count.unwrap_or(5).min(100);
    let mut spec = JobSpec::new("default", "preview", body.trigger);
    (spec.windows, spec.blackouts) = (body.windows, body.blackouts);
    spec::check_windows(&spec)?;
    let trigger = spec::resolve_trigger(&spec, None, after)?;
    let stored = StoredJob::from_spec(&spec, trigger, None);
    spec::check_fires(&stored, after)?;
    let schedule = Schedule::compile(&stored).map_err(|e| ApiError::new(ErrorCode::InvalidSchedule, e.to_string()))?;
    let mut next = Vec::with_capacity(count);
    let mut from = match stored.trigger {
        // One that is due at this very moment, such as IMMEDIATE, is still to come.
        StoredTrigger::Once { at_ms } => after.min(at_ms - 1),
        StoredTrigger::Cron { .. }
        | StoredTrigger::FixedRate { .. }
        | StoredTrigger::FixedDelay { .. }
        | StoredTrigger::Manual {} => after,
    };
    while next.len() < count
        && let Some(at) = schedule.next(from, Some(after))
    {
        next.push(Timestamp(at));
        from = at;
        if schedule.is_fixed_delay() {
            break;
        }
    }
    let upto = next.last().map_or(after, |last| last.ms());
    let removed = schedule.removed(after, upto).into_iter().take(limits::PREVIEW_REMOVED);
    let removed = removed.map(|removed| LedgerEntryView::from(&LedgerEntry::from(removed))).collect();
    let (description, hazards) = describe(&stored, after);
    Ok(Preview { trigger: stored.to_spec().trigger, next, removed, description, hazards })
}

fn describe(stored: &StoredJob, after: i64) -> (String, Vec<String>) {
    match &stored.trigger {
        StoredTrigger::Cron { expr, dialect, zone, gap, overlap } => {
            let Ok((compiled, dialect)) = cron::CronExpr::parse(expr, *dialect, 0) else {
                return (String::new(), Vec::new());
            };
            let text = format!("{} ({zone})", cron::describe(&compiled, dialect));
            let hazards = cron::CronSchedule::new(compiled, zone, *gap, *overlap)
                .map(|s| cron::hazards(&s, after))
                .unwrap_or_default();
            (text, hazards)
        }
        StoredTrigger::FixedRate { every_ms, anchor_ms } => {
            (format!("every {} s, counted from {}", every_ms / 1000, Timestamp(*anchor_ms)), Vec::new())
        }
        StoredTrigger::FixedDelay { every_ms } => {
            (format!("{} s after the last run has ended", every_ms / 1000), Vec::new())
        }
        StoredTrigger::Once { at_ms } => (format!("once, at {}", Timestamp(*at_ms)), Vec::new()),
        StoredTrigger::Manual {} => ("only when it is triggered by hand".to_owned(), Vec::new()),
    }
}

/// A key and the request that it came with. Of secrets only the names count: a digest of a short secret would tell it to
/// whoever reads the journal.
fn once(spec: &JobSpec, key: &str) -> CreateKey {
    let mut spec = spec.clone();
    spec.secret_params.values_mut().for_each(String::clear);
    let request = frame::encode(&spec);
    CreateKey { key: digest([spec.tenant_id.as_bytes(), &[0], key.as_bytes()]), print: digest([&request, &[], &[]]) }
}

fn digest(parts: [&[u8]; 3]) -> Digest {
    let whole: [u8; 32] = parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize().into();
    let mut digest = Digest([0; 16]);
    digest.0.copy_from_slice(&whole[..16]);
    digest
}

/// Says which one was not found.
pub(super) fn named(error: CallError, what: &str, id: impl std::fmt::Display) -> ApiError {
    if error.code() == ErrorCode::NotFound { no_such(what, id) } else { error.into() }
}

/// Largest page that the lists give.
pub(super) fn clamp_page(size: usize) -> usize {
    size.clamp(1, limits::PAGE_SIZE_MAX)
}
