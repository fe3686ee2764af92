//! A caller that records its requests and the answers, before and after each request, and repeats a request until it
//! knows the result. The checker cannot decide anything about a request without an answer.

mod bulk_operations;
mod verbs;

use crate::{
    limits::CREATE_BATCH,
    load::{bulk::Bulk, targets::Targets},
    run_dir::{
        lines::{CallEvent, CallerLine, Verb},
        record::Record,
    },
};
use campanile_client::{Client, ClientError};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
    job::JobSpec,
    payload::Payload,
    view::{Created, JobFilter, RunView, TriggerBody},
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Between two tries of one call.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// A call is tried so long before its caller gives up and leaves it open.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module's text. Cheap to clone.
#[derive(Clone)]
pub struct Caller {
    client: Client,
    /// None: all calls go through the client.
    targets: Option<Arc<Targets>>,
    /// None: jobs are created through the client too.
    bulk: Option<Bulk>,
    record: Arc<Record>,
    next: Arc<AtomicU64>,
}

/// What is known after a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome<T> {
    Done(T),
    Refused(ErrorCode),
    /// No answer for all our patience.
    Open,
}

/// What one error says of a call's effect.
fn effect(error: &ClientError) -> Result<ErrorCode, String> {
    match error {
        ClientError::Api(api) => effect_of(api),
        ClientError::Io { .. } => Err("CONNECTION_LOST".to_owned()),
        ClientError::Timeout { .. } => Err("NO_ANSWER".to_owned()),
        ClientError::Protocol(text) => Err(format!("PROTOCOL: {text}")),
    }
}

fn effect_of(api: &ApiError) -> Result<ErrorCode, String> {
    match api.known() {
        ErrorCode::Timeout | ErrorCode::Internal => Err(api.code.clone()),
        known => Ok(known),
    }
}

/// The node is there and says: later.
fn is_later(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Overloaded | ErrorCode::NotReady)
}

impl Caller {
    pub fn new(client: Client, record: Arc<Record>) -> Self {
        Self { client, targets: None, bulk: None, record, next: Arc::new(AtomicU64::new(1)) }
    }

    /// Each try of a call goes through a random node.
    pub fn through(client: Client, targets: Arc<Targets>, record: Arc<Record>) -> Self {
        Self { targets: Some(targets), ..Self::new(client, record) }
    }

    /// Jobs are created through HTTP, in batches.
    pub fn creating_by(self, bulk: Option<Bulk>) -> Self {
        Self { bulk, ..self }
    }

    /// One try of one create, for the node's own words: not written down.
    pub async fn create_once(&self, spec: JobSpec) -> Result<Created, ClientError> {
        let Some(bulk) = &self.bulk else { return self.client.job_create(spec).await };
        match bulk.create(vec![spec]).await?.pop() {
            Some(made) => Ok(made?),
            None => Err(ClientError::Protocol("no answer to a line".to_owned())),
        }
    }

    /// For what is not written down.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Calls that each node answered; empty where calls do not go through random ones.
    pub fn answered(&self) -> Vec<u64> {
        self.targets.as_ref().map_or_else(Vec::new, |targets| targets.answered())
    }

    /// One try of a call.
    async fn once<T, F>(&self, call: impl FnOnce(Client) -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let drawn = match &self.targets {
            Some(targets) => targets.draw().await.map(|(n, client)| (Some((targets, n)), client)),
            None => None,
        };
        // Nobody is up: the client waits for whoever comes first.
        let (target, client) = drawn.unwrap_or_else(|| (None, self.client.clone()));
        let answer = call(client).await;
        if let (Some((targets, n)), Ok(_) | Err(ClientError::Api(_))) = (target, &answer) {
            targets.note(n);
        }
        answer
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn note(&self, event: CallEvent, line: &CallerLine) {
        self.record.line(&CallerLine { event, t_us: crate::run_dir::lines::now_us(), ..line.clone() });
    }

    /// One call with all its tries. `later`: a refusal "not now" is tried again too.
    async fn ask<T, F>(
        &self,
        line: &CallerLine,
        later: bool,
        told: impl Fn(&T, CallerLine) -> CallerLine,
        call: impl Fn(Client) -> F,
    ) -> CallOutcome<T>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let deadline = Instant::now() + PATIENCE;
        let mut open = false;
        loop {
            self.note(CallEvent::Sent, line);
            let bare = CallerLine { spec: None, ..line.clone() };
            match self.once(&call).await {
                Ok(answer) => {
                    self.note(CallEvent::Ack, &told(&answer, bare));
                    return CallOutcome::Done(answer);
                }
                Err(error) => match effect(&error) {
                    Ok(code) if later && is_later(code) && Instant::now() < deadline => {}
                    Ok(code) => {
                        self.note(CallEvent::Refused, &CallerLine { code: Some(code.as_str().to_owned()), ..bare });
                        return if open { CallOutcome::Open } else { CallOutcome::Refused(code) };
                    }
                    Err(why) => {
                        open = true;
                        self.note(CallEvent::Unknown, &CallerLine { code: Some(why), ..bare });
                        if Instant::now() >= deadline {
                            return CallOutcome::Open;
                        }
                    }
                },
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    fn about(&self, verb: Verb, job: JobId) -> CallerLine {
        CallerLine { job: Some(job), ..CallerLine::new(CallEvent::Sent, self.number(), verb) }
    }

    pub async fn trigger(&self, job: JobId, key: String) -> CallOutcome<RunId> {
        self.trigger_with(job, key, None).await
    }

    /// With params that are laid over the job's.
    pub async fn trigger_with(&self, job: JobId, key: String, params: Option<Payload>) -> CallOutcome<RunId> {
        let line = CallerLine { key: Some(key.clone()), params: params.clone(), ..self.about(Verb::Trigger, job) };
        let body = TriggerBody { manual_run_id: Some(key), params, reason: None, callback: None };
        let asked = self.ask(
            &line,
            false,
            |run: &RunView, line| CallerLine { run: Some(run.run_id), ..line },
            |client| {
                let body = body.clone();
                async move { client.job_trigger(job, body).await }
            },
        );
        match asked.await {
            CallOutcome::Done(run) => CallOutcome::Done(run.run_id),
            CallOutcome::Refused(code) => CallOutcome::Refused(code),
            CallOutcome::Open => CallOutcome::Open,
        }
    }

    pub async fn pause(&self, job: JobId) -> CallOutcome<()> {
        let line = self.about(Verb::Pause, job);
        self.ask(&line, true, |(), line| line, |client| async move { client.job_pause(job, None).await.map(drop) })
            .await
    }

    pub async fn resume(&self, job: JobId) -> CallOutcome<()> {
        let line = self.about(Verb::Resume, job);
        self.ask(&line, true, |(), line| line, |client| async move { client.job_resume(job, None).await.map(drop) })
            .await
    }

    pub async fn delete(&self, job: JobId) -> CallOutcome<()> {
        let line = self.about(Verb::Delete, job);
        let known =
            self.ask(&line, true, |(), line| line, |client| async move { client.job_delete(job, None).await }).await;
        // A delete that got no answer was done when the job is not there any more.
        if known == CallOutcome::Open && self.gone(job).await {
            self.note(CallEvent::Ack, &line);
            return CallOutcome::Done(());
        }
        known
    }

    async fn gone(&self, job: JobId) -> bool {
        matches!(self.client.job_get(job).await, Err(ClientError::Api(api)) if api.known() == ErrorCode::NotFound)
    }

    /// Creates jobs in batches; the ids of those that are known to exist, at their specs' places.
    pub async fn create_many(&self, specs: &[JobSpec]) -> Vec<Option<JobId>> {
        let mut ids = Vec::with_capacity(specs.len());
        for batch in specs.chunks(CREATE_BATCH) {
            ids.extend(self.create_batch(batch).await);
        }
        ids
    }

    async fn create_batch(&self, specs: &[JobSpec]) -> Vec<Option<JobId>> {
        let deadline = Instant::now() + PATIENCE;
        let calls: Vec<u64> = specs.iter().map(|_| self.number()).collect();
        let line = |n: usize| CallerLine::new(CallEvent::Sent, calls[n], Verb::Create);
        let mut ids: Vec<Option<JobId>> = vec![None; specs.len()];
        let mut left: Vec<usize> = (0..specs.len()).collect();
        // Some try of these got no answer, so they may be there already.
        let mut open = false;
        while !left.is_empty() && Instant::now() < deadline {
            for n in &left {
                self.note(CallEvent::Sent, &CallerLine { spec: Some(specs[*n].clone()), ..line(*n) });
            }
            let batch: Vec<JobSpec> = left.iter().map(|n| specs[*n].clone()).collect();
            let made = match &self.bulk {
                Some(bulk) => bulk.create(batch).await,
                None => self.once(|client| async move { client.job_create_many(batch).await }).await,
            };
            match made {
                Ok(answers) => {
                    let mut later = Vec::new();
                    for (n, answer) in left.iter().copied().zip(answers) {
                        match self.created(&line(n), &specs[n], answer, open).await {
                            CallOutcome::Done(id) => ids[n] = Some(id),
                            CallOutcome::Open => {
                                open = true;
                                later.push(n);
                            }
                            CallOutcome::Refused(_) => {}
                        }
                    }
                    left = later;
                }
                Err(error) => {
                    let code = match effect(&error) {
                        Ok(code) if !is_later(code) => {
                            let code = Some(code.as_str().to_owned());
                            left.iter().for_each(|n| {
                                self.note(CallEvent::Refused, &CallerLine { code: code.clone(), ..line(*n) })
                            });
                            return ids;
                        }
                        Ok(code) => code.as_str().to_owned(),
                        Err(why) => {
                            open = true;
                            why
                        }
                    };
                    left.iter().for_each(|n| {
                        self.note(CallEvent::Unknown, &CallerLine { code: Some(code.clone()), ..line(*n) })
                    });
                }
            }
            if !left.is_empty() {
                sleep(RETRY_PAUSE).await;
            }
        }
        ids
    }

    /// One item's answer. A name that is taken after a try without an answer was taken by that try.
    async fn created(
        &self,
        line: &CallerLine,
        spec: &JobSpec,
        answer: Result<Created, ApiError>,
        open: bool,
    ) -> CallOutcome<JobId> {
        let id = match answer {
            Ok(created) => created.job_id,
            Err(api) => match effect_of(&api) {
                Ok(ErrorCode::DuplicateName) if open => match self.find(spec).await {
                    Some(id) => id,
                    None => return CallOutcome::Open,
                },
                Ok(code) if is_later(code) => return CallOutcome::Open,
                Ok(code) => {
                    self.note(CallEvent::Refused, &CallerLine { code: Some(api.code.clone()), ..line.clone() });
                    return CallOutcome::Refused(code);
                }
                Err(why) => {
                    self.note(CallEvent::Unknown, &CallerLine { code: Some(why), ..line.clone() });
                    return CallOutcome::Open;
                }
            },
        };
        self.note(CallEvent::Ack, &CallerLine { job: Some(id), ..line.clone() });
        CallOutcome::Done(id)
    }

    async fn find(&self, spec: &JobSpec) -> Option<JobId> {
        let filter = JobFilter {
            tenant_id: Some(spec.tenant_id.clone()),
            text: Some(spec.name.clone()),
            ..JobFilter::default()
        };
        let page = self.client.job_list(filter).await.ok()?;
        page.items.into_iter().find(|job| job.spec.name == spec.name).map(|job| job.job_id)
    }
}
