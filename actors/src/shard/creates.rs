//! Creates jobs, and keeps the keys of create calls: the same key with the same request makes one job, however often it
//! is sent.
//!
//! A request is known by the digest of its key and the digest of its content. Two shards store it: the shard of the
//! key, so that a key means one request whatever the job's name is; and the shard of the job, in the frame that creates
//! it, so that a repetition finds the job, even when it was edited or deleted since.

use super::{Shard, Slot};
use crate::{
    calls::{CreateKey, Responder},
    messages::{ReplyTo, ShardMsg},
};
use campanile_core::{
    job::{Context, Ids, Reply, decide_create},
    shard::KeptCreate,
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    event::Event,
    frame::encode,
    ids::{JobId, make_id, slot_of},
    job::{JobStatus, JobView},
    limits::CREATE_KEYS_PER_SHARD,
    stored::StoredJob,
    view::Created,
};
use ractor::ActorRef;
use std::sync::atomic::Ordering;

impl Shard {
    pub(super) fn create(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        spec: StoredJob,
        once: Option<CreateKey>,
        responder: Responder<Created>,
    ) {
        let answer = self.create_one(myself, spec, once);
        self.when_durable(move || {
            responder.send(answer);
        });
    }

    pub(super) fn create_many(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        specs: Vec<(usize, StoredJob)>,
        responder: Responder<Vec<(usize, Answer<Created>)>>,
    ) {
        let made: Vec<_> =
            specs.into_iter().map(|(index, spec)| (index, self.create_one(myself, spec, None))).collect();
        self.when_durable(move || {
            responder.send(Ok(made));
        });
    }

    /// What a create with this key made.
    pub(super) fn created_before(&mut self, once: CreateKey, responder: Responder<Option<Created>>) {
        let answer = self.made_by(once);
        self.when_durable(move || {
            responder.send(answer);
        });
    }

    /// The key belongs to this request, for as long as keys are kept.
    pub(super) fn keep_create(&mut self, myself: &ActorRef<ShardMsg>, once: CreateKey, responder: Responder<()>) {
        let answer = match self.kept(once) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => self.room_for_a_key().map(|()| {
                let event = Event::CreateKept { key: once.key, print: once.print, job: None, at_ms: self.now_ms() };
                self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
            }),
            Err(error) => Err(error),
        };
        self.when_durable(move || {
            responder.send(answer);
        });
    }

    /// What is kept of the key. Error: it belongs to another request.
    fn kept(&self, once: CreateKey) -> Answer<Option<KeptCreate>> {
        match self.state.create(once.key, self.now_ms()) {
            Some(kept) if kept.print != once.print => Err(ApiError::new(
                ErrorCode::IdempotencyKeyReused,
                "this Idempotency-Key came with another body before; a new request needs a new key",
            )),
            other => Ok(other),
        }
    }

    fn made_by(&self, once: CreateKey) -> Answer<Option<Created>> {
        let Some(id) = self.kept(once)?.and_then(|kept| kept.job) else { return Ok(None) };
        let gone = Created { job_id: id, status: JobStatus::Deleted, next_fire_at: None };
        Ok(Some(self.materialize(id).map_or(gone, |job| created(&job.view()))))
    }

    fn room_for_a_key(&mut self) -> Answer<()> {
        if self.state.creates.len() >= CREATE_KEYS_PER_SHARD {
            let now = self.now_ms();
            self.state.forget_creates(now);
        }
        if self.state.creates.len() < CREATE_KEYS_PER_SHARD {
            return Ok(());
        }
        let error = "as many keys of creates are kept as there may be; create without a key, or try again when older ones have expired";
        Err(ApiError::new(ErrorCode::Overloaded, error).retry_after(60.0))
    }

    fn create_one(&mut self, myself: &ActorRef<ShardMsg>, spec: StoredJob, once: Option<CreateKey>) -> Answer<Created> {
        if let Some(once) = once {
            if let Some(made) = self.made_by(once)? {
                return Ok(made);
            }
            self.room_for_a_key()?;
        }
        self.admits()?;
        if let Some(id) = self.find_name(&spec.tenant, &spec.name) {
            return Err(ApiError::new(
                ErrorCode::DuplicateName,
                format!(
                    "tenant '{}' has a job named '{}' (id {id}); choose another name or replace that job",
                    spec.tenant, spec.name
                ),
            )
            .with_detail(serde_json::json!({ "jobId": id.0 })));
        }
        let gauge = self.deps.tenants.gauge(&spec.tenant);
        if !gauge.count_job() {
            return Err(ApiError::new(
                ErrorCode::TenantQuota,
                format!(
                    "tenant '{}' has as many jobs as its quota allows ({})",
                    spec.tenant,
                    gauge.jobs.load(Ordering::Relaxed)
                ),
            ));
        }
        self.state.counter += 1;
        let id = JobId(make_id(self.state.counter, slot_of(&spec.tenant, &spec.name)));
        let context = Context {
            now_ms: self.now_ms(),
            ids: Ids::default(),
            epoch: self.epoch,
            pauses: Vec::new(),
            queue_full: false,
            queue_half: false,
            node_room: 0,
            overloaded: false,
            held: None,
            tzdb: self.deps.identity.tzdb,
            sampling: None,
        };
        let (mut job, decision) = decide_create(id, spec, &context);
        if job.def.calendar.is_some() {
            job.take_calendars(&self.calendars.book);
            job.refresh_next_due();
        }
        let mut events = decision.events;
        events.extend(once.map(|CreateKey { key, print }| Event::CreateKept {
            key,
            print,
            job: Some(id),
            at_ms: context.now_ms,
        }));
        self.jobs.insert(id, Slot::new(encode(&*job.def), job.encode_hot()));
        // The counter rises, so it is the highest.
        self.order.push(id);
        self.append(myself, events, decision.effects, ReplyTo::Nobody, Ok(Reply::Done));
        self.schedule(id, job.wake_at(context.now_ms));
        Ok(created(&job.view()))
    }
}

fn created(view: &JobView) -> Created {
    Created { job_id: view.job_id, status: view.status, next_fire_at: view.next_fire_at }
}
