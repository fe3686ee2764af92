//! Backfills of the shard's jobs: which there are, and the pages of their past that the jobs are handed.
//!
//! A job decides everything (`actors/core/src/job/decide/backfill.rs`). The shard looks at a job with an open backfill after each of its
//! turns, and at all of them once a second, because a pause or a full queue ends without a turn of the job. It hands the job the next part
//! of a page, and has the next page read beside its turns (`actors/src/backfill`) when there is none. Pages are kept in memory only: after a
//! restart or a move the page behind the backfill's cursor is read again.
//!
//! A page is never handed to a backfill that stands elsewhere than where the page begins; the job refuses it.

use super::{Shard, append::not_found};
use crate::{
    backfill::{PastOf, ReadPage, read_page, shown},
    calls::Responder,
    messages::{Envelope, ReplyTo, ShardMsg},
};
use campanile_core::{
    backfill::{Past, Wish},
    job::{BackfillCommand, BackfillPage, Command, Context, Ids, Job, Reply},
};
use campanile_schema::{
    event::Event,
    ids::{BackfillId, JobId},
    job::JobStatus,
    limits::BACKFILL_STEPS,
    peer::shard::{BackfillAction, BackfillFacts},
    stored::{
        StoredJob,
        backfill::{BackfillChange, BackfillMode, BackfillState, StoredBackfill},
    },
    view::backfill::BackfillView,
};
use ractor::ActorRef;

/// How far a backfill has come. The same again: it could do nothing.
fn standing(job: &Job, id: BackfillId) -> Option<(i64, BackfillState, usize, usize)> {
    let backfill = job.backfill(id)?;
    let (open, stopping) = job.open_runs_of(id);
    Some((backfill.cursor_ms, backfill.state, open, stopping))
}

impl Shard {
    /// Keeps the look-ups in step with an event, which was applied to its job.
    pub(super) fn index_backfill(&mut self, event: &Event) {
        let Event::BackfillChanged { job, change, .. } = event else { return };
        match change {
            BackfillChange::Created { backfill } => self.backfills.found(*job, backfill.id, true),
            BackfillChange::Ended { .. } => self.backfills.ended(*job),
            BackfillChange::Moved { .. }
            | BackfillChange::Held { .. }
            | BackfillChange::Paused { .. }
            | BackfillChange::Resumed
            | BackfillChange::Canceling { .. } => {}
        }
    }

    /// Once a second.
    pub(super) fn look_after_backfills(&mut self) {
        self.backfills.due.extend(self.backfills.open.iter().copied());
    }

    /// Lets backfills go on whose jobs had a turn.
    pub(super) async fn feed_backfills(&mut self, myself: &ActorRef<ShardMsg>) {
        if self.stopping {
            return;
        }
        for job in std::mem::take(&mut self.backfills.due) {
            self.feed(myself, job).await;
        }
        // The turns that this has led to were looked at.
        self.backfills.due.clear();
    }

    async fn feed(&mut self, myself: &ActorRef<ShardMsg>, job: JobId) {
        for _ in 0..BACKFILL_STEPS {
            let Some(known) = self.materialize(job) else { return self.backfills.gone(job) };
            let Some(backfill) = known.open_backfill() else { return self.backfills.ended(job) };
            let (id, cursor_ms) = (backfill.id, backfill.cursor_ms);
            let command = if backfill.state == BackfillState::Canceling {
                BackfillCommand::Step { id }
            } else {
                let Ok(room) = known.backfill_room(&self.context_of(&known)) else { return };
                let Some(page) =
                    self.backfills.pages.get(&job).filter(|page| (page.id, page.after_ms) == (id, cursor_ms))
                else {
                    return self.read(myself, &known, backfill);
                };
                let page = page.part(room);
                match self.with_records(job, backfill.mode, page).await {
                    Some(page) => BackfillCommand::Page(page),
                    // The view does not answer: it is looked at again.
                    None => return,
                }
            };
            let command = Command::Backfill(Box::new(command));
            self.submit(myself, Envelope { job, command, reply: ReplyTo::Nobody });
            let Some(after) = self.materialize(job) else { return };
            if let (Some(page), Some(backfill)) = (self.backfills.pages.get_mut(&job), after.backfill(id)) {
                page.moved(backfill.cursor_ms);
                if page.upto_ms <= backfill.cursor_ms {
                    self.backfills.pages.remove(&job);
                }
            }
            if standing(&after, id) == standing(&known, id) {
                return;
            }
        }
        // Behind what waits in the mailbox.
        let _ = myself.cast(ShardMsg::BackfillGoesOn(job));
    }

    /// A page of runs that go on, with their records as they are now: somebody may have started one of them again.
    async fn with_records(&mut self, job: JobId, mode: BackfillMode, mut page: BackfillPage) -> Option<BackfillPage> {
        if mode != BackfillMode::Failed {
            return Some(page);
        }
        let runs: Vec<_> = self.backfills.pages.get(&job)?.starts.iter().map(|start| start.run).collect();
        for (start, run) in page.starts.iter_mut().zip(runs) {
            let Some(run) = run.filter(|run| !self.open_runs.contains_key(run)) else { continue };
            match self.record_of(run).await {
                Ok(record) => start.record = record.map(Box::new),
                Err(_) => return None,
            }
        }
        Some(page)
    }

    fn context_of(&self, job: &Job) -> Context {
        let gauge = self.deps.tenants.gauge(&job.def.tenant);
        Context {
            now_ms: self.now_ms(),
            ids: Ids::default(),
            epoch: self.epoch,
            pauses: self.state.pauses_since(&job.def.tenant, job.hot.cursor_ms),
            queue_full: gauge.queue_full(),
            queue_half: gauge.queue_half(),
            node_room: self.dags.room(),
            overloaded: self.deps.projector.is_full(),
            held: None,
            tzdb: self.deps.identity.tzdb,
            sampling: self.deps.identity.tracer.sampling(),
        }
    }

    /// Has the page behind its cursor read, beside the turns of the shard.
    fn read(&mut self, myself: &ActorRef<ShardMsg>, job: &Job, backfill: &StoredBackfill) {
        if !self.backfills.reading.insert(job.id) {
            return;
        }
        let of = PastOf {
            views: self.deps.views.clone(),
            job: job.id,
            past: Past { schedule: job.schedule.clone(), created_ms: job.hot.created_ms },
            wish: Wish { mode: backfill.mode, unknown_run: backfill.unknown_run, first: backfill.first },
        };
        let (shard, seq, job, myself) = (self.id, self.state.seq, job.id, myself.clone());
        let (id, after_ms, to_ms) = (backfill.id, backfill.cursor_ms, backfill.to_ms);
        let projector = self.deps.projector.clone();
        tokio::spawn(async move {
            projector.shows_all().await;
            let read = match shown(&*of.views, shard, seq).await {
                Ok(()) => read_page(&of, id, after_ms, to_ms).await,
                Err(error) => Err(error),
            };
            let page = read.map_err(|error| error.to_string());
            let _ = myself.cast(ShardMsg::BackfillRead { job, page: Box::new(page) });
        });
    }

    /// A page was read; or why not, and it is tried again within a second.
    pub(super) fn backfill_read(&mut self, job: JobId, page: Result<ReadPage, String>) {
        self.backfills.reading.remove(&job);
        match page {
            Ok(page) => {
                self.backfills.keep(job, page);
                self.backfills.due.insert(job);
            }
            Err(error) => {
                tracing::warn!(%job, %error, "the past of a job cannot be read for its backfill; it is tried again")
            }
        }
    }

    /// It had more to do than one turn may take.
    pub(super) fn backfill_goes_on(&mut self, job: JobId) {
        if self.backfills.open.contains(&job) {
            self.backfills.due.insert(job);
        }
    }

    pub(super) fn backfill_facts(&mut self, id: JobId, responder: Responder<Box<BackfillFacts>>) {
        let job = self.materialize(id).filter(|job| job.hot.status != JobStatus::Deleted);
        let seq = self.state.seq;
        let facts = |job: Job| BackfillFacts {
            definition: Box::new(StoredJob { secrets: None, ..(*job.def).clone() }),
            created_ms: job.hot.created_ms,
            cursor_ms: job.hot.cursor_ms,
            seq,
            first: job.hot.backfill.is_none(),
        };
        let answer = job.map(facts).map(Box::new).ok_or_else(|| not_found("job"));
        self.when_durable(move || responder.send(answer));
    }

    fn view_of(&self, job: JobId, id: Option<BackfillId>) -> Option<Box<BackfillView>> {
        let job = self.materialize(job)?;
        let backfill = job.hot.backfill.as_deref().filter(|backfill| id.is_none_or(|id| backfill.id == id))?;
        let waits = job.backfill_room(&self.context_of(&job)).err();
        Some(Box::new(job.backfill_view(backfill, waits)))
    }

    pub(super) fn get_backfill(&mut self, id: BackfillId, responder: Responder<Box<BackfillView>>) {
        let view = self.backfills.job(id).and_then(|job| self.view_of(job, Some(id)));
        let answer = view.ok_or_else(|| not_found("backfill"));
        self.when_durable(move || responder.send(answer));
    }

    pub(super) fn get_backfill_of_job(&mut self, job: JobId, responder: Responder<Box<BackfillView>>) {
        let answer = self.view_of(job, None).ok_or_else(|| not_found("backfill: the job never had one"));
        self.when_durable(move || responder.send(answer));
    }

    /// A person pauses, resumes or cancels one.
    pub(super) fn change_backfill(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        id: BackfillId,
        action: BackfillAction,
        responder: Responder<Reply>,
    ) {
        let Some(job) = self.backfills.job(id) else {
            return self.refuse(ReplyTo::Caller(responder), not_found("backfill"));
        };
        let command = match action {
            BackfillAction::Pause { reason } => BackfillCommand::Pause { id, reason },
            BackfillAction::Resume => BackfillCommand::Resume { id },
            BackfillAction::Cancel { reason } => BackfillCommand::Cancel { id, reason },
        };
        let command = Command::Backfill(Box::new(command));
        self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(responder) });
    }
}
