//! Messages that may change something in a shard.

use super::{Shard, Slot, append::not_found};
use crate::{
    call_error::CallError,
    calls::{FinalAction, Responder, ShardAnswer, ShardCall},
    messages::{AttemptResult, Bind, Envelope, FinishBatch, ReplyTo, ShardMsg},
    pauses::Pause,
};
use campanile_core::job::{Claimant, Command, Reply, claim};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId, Token},
    record::{AttemptState, RunRecord},
    rpc::executor::{Ended, FinishOutcome, Held},
};
use ractor::ActorRef;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Jobs that are due at once and whose bytes are fetched together: few enough to stay in the cache until their turn.
const FETCHED_TOGETHER: usize = 32;

fn envelope(job: JobId, command: Command, reply: ReplyTo) -> Envelope {
    Envelope { job, command, reply }
}

impl Shard {
    /// Something is asked, from this node or another one.
    pub(super) async fn answer(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        call: ShardCall,
        responder: oneshot::Sender<Result<ShardAnswer, CallError>>,
    ) {
        if call.is_counted() {
            self.taken();
        }
        if self.stopping {
            let _ = responder.send(Err(CallError::NotServed));
            return;
        }
        let call = match call {
            ShardCall::Audited { record, call } => {
                self.begin_auditing(*record, &call);
                *call
            }
            call => call,
        };
        self.answer_call(myself, call, responder).await;
        self.auditing = None;
    }

    async fn answer_call(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        call: ShardCall,
        responder: oneshot::Sender<Result<ShardAnswer, CallError>>,
    ) {
        let command = |job, command, responder| envelope(job, command, ReplyTo::Caller(Responder::new(responder)));
        match call {
            ShardCall::Create { spec, once } => self.create(myself, *spec, once, Responder::new(responder)),
            ShardCall::Created(once) => self.created_before(once, Responder::new(responder)),
            ShardCall::KeepCreate(once) => self.keep_create(myself, once, Responder::new(responder)),
            ShardCall::CreateMany(specs) => self.create_many(myself, specs, Responder::new(responder)),
            ShardCall::Command { job, command: what } => self.submit(myself, command(job, what, responder)),
            ShardCall::Trigger { job, command: what } => self.trigger(myself, command(job, what, responder)).await,
            ShardCall::OnFinal { run, action } => self.on_final(myself, run, action, Responder::new(responder)).await,
            ShardCall::Finish(items) => self.finish_for(myself, None, items, Responder::new(responder)),
            ShardCall::FinishBy { by, items } => self.finish_for(myself, Some(&by), items, Responder::new(responder)),
            ShardCall::Holds { by, run, token, attempt } => {
                let held = self.holds(run, token, attempt, &by);
                Responder::new(responder).send(Ok(held));
            }
            ShardCall::SetTenant(tenant) => self.set_tenant(myself, tenant, Responder::new(responder)),
            ShardCall::ChangePause { scope, paused } => {
                self.change_pause(myself, scope, paused, Responder::new(responder))
            }
            ShardCall::SetPause { scope, paused, version } => {
                self.hold_pauses(myself, vec![Pause { scope, paused, version }], Responder::new(responder));
            }
            ShardCall::HoldPauses(pauses) => self.hold_pauses(myself, pauses, Responder::new(responder)),
            ShardCall::DeleteTenant(tenant) => self.delete_tenant(myself, tenant, Responder::new(responder)),
            ShardCall::TenantUse(tenant) => self.tenant_use(&tenant, Responder::new(responder)),
            ShardCall::GetJob(job) => self.get_job(job, Responder::new(responder)),
            ShardCall::GetJobByName { tenant, name } => self.get_job_by_name(&tenant, &name, Responder::new(responder)),
            ShardCall::GetRun(run) => self.get_run(run, Responder::new(responder)),
            ShardCall::OpenRuns(job) => self.get_open_runs(job, Responder::new(responder)),
            ShardCall::TenantOfJob(job) => self.get_tenant_of_job(job, Responder::new(responder)),
            ShardCall::GetSealed(job) => self.get_sealed(job, Responder::new(responder)),
            ShardCall::GetTenant(tenant) => self.get_tenant(&tenant, Responder::new(responder)),
            ShardCall::Tenants => self.tenant_names(Responder::new(responder)),
            ShardCall::Borrow { session, reports } => self.lend(myself, session, reports, Responder::new(responder)),
            ShardCall::Remind(limits) => self.reminded(limits, Responder::new(responder)),
            ShardCall::WhyWaiting { run, tenant, pool } => {
                self.why_waiting(run, tenant, pool, Responder::new(responder))
            }
            ShardCall::ListOutbox { tenant, after, limit } => {
                self.list_outbox(tenant.as_deref(), after, limit, Responder::new(responder));
            }
            ShardCall::ChangeOutbox { run, action } => {
                self.change_outbox(myself, run, action, Responder::new(responder));
            }
            ShardCall::ChangeGraph { run, action } => {
                self.change_graph(myself, run, action, Responder::new(responder)).await;
            }
            ShardCall::GetGraph(run) => self.get_graph(run, Responder::new(responder)),
            ShardCall::BackfillFacts(job) => self.backfill_facts(job, Responder::new(responder)),
            ShardCall::GetBackfill(id) => self.get_backfill(id, Responder::new(responder)),
            ShardCall::GetBackfillOfJob(job) => self.get_backfill_of_job(job, Responder::new(responder)),
            ShardCall::ChangeBackfill { id, action } => {
                self.change_backfill(myself, id, action, Responder::new(responder));
            }
            ShardCall::Bulk(call) => self.bulk(myself, *call, Responder::new(responder)),
            ShardCall::Calendar(call) => self.calendar(myself, call, Responder::new(responder)),
            ShardCall::Deliver(deliver) => self.deliver(myself, *deliver, Responder::new(responder)),
            ShardCall::ListJobs { filter, after, limit } => {
                self.list_jobs(&filter, after, limit, Responder::new(responder))
            }
            ShardCall::ListRuns { filter, after, limit } => {
                self.list_runs(&filter, after, limit, Responder::new(responder));
            }
            ShardCall::DueLoad { query, after } => self.due_load(&query, after, Responder::new(responder)),
            ShardCall::Audit(records) => self.keep_audit(myself, records, Responder::new(responder)),
            // A node sends no such thing.
            ShardCall::Audited { .. } => {
                let _ = responder.send(Err(CallError::UnknownCall));
            }
        }
    }

    /// Wakes the jobs whose time has come.
    pub(super) fn tick(&mut self, myself: &ActorRef<ShardMsg>) {
        if self.stopping {
            // The wheel keeps what is due for the case that it stays.
            return;
        }
        let now = self.now_ms();
        self.refresh_for_calendars(now);
        let mut due = Vec::new();
        self.take_postponed(&mut due);
        self.wheel.advance(now, |job| due.push(job));
        for some in due.chunks(FETCHED_TOGETHER) {
            self.fetch(some.iter());
            let moment = self.moment();
            for id in some.iter().copied() {
                let Some(slot) = self.jobs.get_mut(&id) else { continue };
                if slot.wake_ms > now {
                    // A stale entry; the one that counts is still in the wheel.
                    continue;
                }
                slot.wake_ms = i64::MAX;
                self.submit_at(myself, envelope(id, Command::Wake, ReplyTo::Nobody), moment);
            }
        }
    }

    /// Looks at the bytes of jobs that are about to be read. With many jobs none of them is in the processor's cache, and each wait for memory is
    /// as long as a part of a decision: here the processor waits for all of them at once, later for one after the other.
    fn fetch<'a>(&self, jobs: impl Iterator<Item = &'a JobId> + Clone) {
        const LINE: usize = 64;
        let slots = || jobs.clone().filter_map(|id| self.jobs.get(id));
        let byte = |bytes: &[u8], line: usize| i64::from(bytes.get(line * LINE).copied().unwrap_or_default());
        let mut seen = slots().fold(0, |seen, slot| seen ^ slot.wake_ms);
        for slot in slots() {
            seen ^= match &slot.live {
                None => (0..4).fold(byte(&slot.hot, 0), |seen, line| seen ^ byte(&slot.def, line)),
                Some(live) => live.used_ms ^ live.job.hot.cursor_ms,
            };
        }
        let record = |slot: &Slot| Some(slot.live.as_ref()?.job.hot.runs.first()?.record.created_ms);
        seen = slots().filter_map(record).fold(seen, |seen, created_ms| seen ^ created_ms);
        std::hint::black_box(seen);
    }

    pub(super) fn start_bound(&mut self, myself: &ActorRef<ShardMsg>, binds: Vec<Bind>) {
        for some in binds.chunks(FETCHED_TOGETHER) {
            self.fetch(some.iter().map(|bind| &bind.job));
            let moment = self.moment();
            for bind in some {
                let command = Command::Start {
                    run: bind.run,
                    executor: bind.executor.clone(),
                    session: bind.session,
                    credential: bind.credential.clone(),
                    credit_stamp_ms: bind.credit_stamp_ms,
                };
                let reply = ReplyTo::Pool { run: bind.run, session: bind.session };
                self.submit_at(myself, envelope(bind.job, command, reply), moment);
            }
        }
    }

    /// Results that another node has passed on.
    fn finish_for(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        by: Option<&Arc<Claimant>>,
        items: Vec<Ended>,
        responder: Responder<Vec<FinishOutcome>>,
    ) {
        let (done, outcomes) = oneshot::channel();
        let batch = FinishBatch::new(items.len(), done);
        let result = |(index, ended)| AttemptResult { ended, by: by.cloned(), batch: batch.clone(), index };
        self.finish(myself, items.into_iter().enumerate().map(result).collect());
        drop(batch);
        tokio::spawn(async move { responder.send_call(outcomes.await.map_err(|_| CallError::Unanswered)) });
    }

    fn holds(&mut self, run: RunId, token: Token, attempt: u32, by: &Claimant) -> bool {
        let job = self.open_runs.get(&run).copied().and_then(|job| self.materialize(job));
        job.is_some_and(|job| claim::holds(&job, run, token, attempt, by))
    }

    pub(super) fn finish(&mut self, myself: &ActorRef<ShardMsg>, results: Vec<AttemptResult>) {
        let mut results = results.into_iter();
        while !results.as_slice().is_empty() {
            let some = results.as_slice().iter().take(FETCHED_TOGETHER);
            self.fetch(some.map(|result| &result.ended.job));
            let moment = self.moment();
            for AttemptResult { ended, by, batch, index } in results.by_ref().take(FETCHED_TOGETHER) {
                let job = ended.job;
                if !self.jobs.contains_key(&job) {
                    self.behind_durable(move || batch.set(index, FinishOutcome::Stale));
                    continue;
                }
                let reply = ReplyTo::Finish(batch, index);
                let said = Command::Finish(Box::new(ended));
                let command = match by {
                    Some(by) => Command::Claimed { by, claim: Box::new(said) },
                    None => said,
                };
                self.submit_at(myself, envelope(job, command, reply), moment);
            }
        }
    }

    pub(super) fn not_started(&mut self, myself: &ActorRef<ShardMsg>, held: Vec<Held>, why: &str) {
        for held in held {
            let ended = Ended {
                run: held.run,
                job: held.job,
                token: held.token,
                state: AttemptState::NotStarted,
                error_code: Some(why.to_owned()),
                error_message: None,
                result: None,
                cpu_ms: None,
                max_rss_kb: None,
                permanent: false,
            };
            self.submit(myself, envelope(held.job, Command::Finish(Box::new(ended)), ReplyTo::Nobody));
        }
    }

    pub(super) fn suspect(&mut self, myself: &ActorRef<ShardMsg>, held: Vec<Held>) {
        for h in held {
            self.submit(myself, envelope(h.job, Command::Suspect { run: h.run, token: h.token }, ReplyTo::Nobody));
        }
    }

    pub(super) fn lost(&mut self, myself: &ActorRef<ShardMsg>, held: Vec<Held>) {
        for h in held {
            self.submit(myself, envelope(h.job, Command::Lost { run: h.run, token: h.token }, ReplyTo::Nobody));
        }
    }

    /// Executors say what they hold. `responder` wants to know what they must stop.
    pub(super) fn executor_holds(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        held: Vec<Held>,
        by: Arc<Claimant>,
        responder: Option<oneshot::Sender<Vec<Held>>>,
    ) {
        let known: Vec<Held> = held.iter().copied().filter(|h| self.jobs.contains_key(&h.job)).collect();
        let mut stale: Vec<Held> = held.iter().copied().filter(|h| !self.jobs.contains_key(&h.job)).collect();
        let heard = |h: &Held| Command::Claimed {
            by: by.clone(),
            claim: Box::new(Command::Heard { run: h.run, token: h.token, session: by.session }),
        };
        let Some(responder) = responder else {
            for h in known {
                self.submit(myself, envelope(h.job, heard(&h), ReplyTo::Nobody));
            }
            return;
        };
        if known.is_empty() {
            let _ = responder.send(stale);
            return;
        }
        let mut answers = Vec::with_capacity(known.len());
        for h in known {
            let (sender, receiver) = oneshot::channel();
            self.submit(myself, envelope(h.job, heard(&h), ReplyTo::Caller(Responder::new(sender))));
            answers.push((h, receiver));
        }
        tokio::spawn(async move {
            for (held, receiver) in answers {
                if let Ok(Ok(ShardAnswer::Reply(Reply::Stale))) = receiver.await {
                    stale.push(held);
                }
            }
            let _ = responder.send(stale);
        });
    }

    /// A manual trigger. The key of a run that has ended is in memory or in the view; of one that is open, in the job.
    pub(super) async fn trigger(&mut self, myself: &ActorRef<ShardMsg>, envelope: Envelope) {
        let known = if let Command::Trigger { key: Some(key), .. } = &envelope.command {
            self.run_of_key(envelope.job, key).await
        } else {
            Ok(None)
        };
        match known {
            Ok(Some(run)) => self.answer_run(run, envelope).await,
            Ok(None) => match self.admits() {
                Ok(()) => self.submit(myself, envelope),
                Err(error) => self.refuse(envelope.reply, error),
            },
            Err(error) => self.refuse(envelope.reply, error),
        }
    }

    /// Retry, redrive, discard: the record of an ended run comes from memory or from the view.
    pub(super) async fn on_final(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        run: RunId,
        action: FinalAction,
        responder: Responder<Reply>,
    ) {
        if let Some(job) = self.open_runs.get(&run).copied() {
            let state = self.materialize(job).and_then(|j| j.run(run).map(|r| r.state()));
            let state = state.map_or("active", |s| s.as_str());
            let error = ApiError::new(
                ErrorCode::IllegalState,
                format!("the run is {state}; only a run that has ended can be started again or put away"),
            );
            return self.refuse(ReplyTo::Caller(responder), error);
        }
        match self.record_of(run).await {
            Ok(Some(record)) => {
                let job = record.job;
                let record = Box::new(record);
                let command = match action {
                    FinalAction::Reopen { redrive, reason, force } => {
                        Command::Reopen { record, redrive, reason, force }
                    }
                    FinalAction::ReopenOnce { generation, .. } if record.generation != generation => {
                        let why = format!("the run has ended in generation {} since", record.generation);
                        return self.refuse(ReplyTo::Caller(responder), ApiError::new(ErrorCode::IllegalState, why));
                    }
                    FinalAction::ReopenOnce { redrive, reason, .. } => {
                        Command::Reopen { record, redrive, reason, force: false }
                    }
                    FinalAction::Discard => Command::Discard { record },
                };
                self.submit(myself, envelope(job, command, ReplyTo::Caller(responder)));
            }
            Ok(None) => self.refuse(ReplyTo::Caller(responder), not_found("run")),
            Err(error) => self.refuse(ReplyTo::Caller(responder), error),
        }
    }

    /// The record of a run that has ended, from memory or from the view.
    pub(super) async fn record_of(&mut self, run: RunId) -> Result<Option<RunRecord>, ApiError> {
        match self.recent.get(&run).cloned() {
            Some((_, record)) => Ok(Some(Arc::unwrap_or_clone(record))),
            None => {
                let unavailable = |error| ApiError::new(ErrorCode::NotReady, format!("{error}")).retry_after(1.0);
                self.deps.views.run(run).await.map_err(unavailable)
            }
        }
    }

    pub(super) fn watch(&mut self, run: RunId, responder: oneshot::Sender<()>) {
        if self.open_runs.contains_key(&run) {
            self.watchers.entry(run).or_default().push(responder);
        } else {
            let _ = responder.send(());
        }
    }
}
