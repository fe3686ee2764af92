//! Decides the commands of a job, one file for each group of commands. Each works on a [`Draft`]: it emits events and
//! applies them to a copy of the job at once, so that the next step sees them, and it collects effects.

mod attempt;
mod backfill;
mod bulk;
mod change;
mod deadline;
mod doubtful;
mod due;
mod finish;
mod graph;
mod lane;
mod message;
#[cfg(feature = "faults")]
mod mutations;
mod node;
mod priority;
mod reopen;
mod restore;
mod stop;
mod trigger;

pub use backfill::{check as check_backfill, too_many as too_many_instants};
pub use trigger::same_request;

use super::{
    Decision,
    apply::{apply, created},
    claim::{self, Claimant},
    command::{Command, Context},
    effect::{Effect, Reply},
    pending::waiting,
    state::Job,
};
#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{channels, hooks, outbox::MessageDraft, reject::Rejection, shard::Pause};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, Interval, SkipReason},
    ids::{JobId, RunId, Token, make_id},
    limits::OPEN_RUNS_PER_JOB,
    record::RunRecord,
    stored::StoredJob,
    text::Text,
};
use std::sync::Arc;

/// A decision in the making: `job` already has the emitted events applied.
pub(crate) struct Draft<'a> {
    pub job: Job,
    pub ctx: &'a Context,
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    pub sends: Vec<MessageDraft>,
    next_id: u64,
}

impl<'a> Draft<'a> {
    fn new(job: &Job, ctx: &'a Context) -> Self {
        // Nearly every decision has one event and one effect, and a vector that grows by itself begins with room for four.
        let (events, effects) = (Vec::with_capacity(1), Vec::with_capacity(1));
        Self { job: job.clone(), ctx, events, effects, sends: Vec::new(), next_id: ctx.ids.first }
    }
    pub fn emit(&mut self, event: Event) {
        apply(&mut self.job, &event);
        self.events.push(event);
    }
    pub fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    /// Why nothing of the job starts though it would.
    pub fn paused(&self) -> Option<SkipReason> {
        #[cfg(feature = "faults")]
        if faults::active(Mutation::ForgetPause) {
            return None;
        }
        if channels::heeds_tenant(&self.job.def) {
            return self.ctx.paused();
        }
        let lasts = |pause: &&Pause| pause.to_ms.is_none() && pause.reason != SkipReason::TenantPaused;
        self.ctx.pauses.iter().find(lasts).map(|pause| pause.reason)
    }
    /// As many runs of the tenant wait as may.
    pub fn queue_full(&self) -> bool {
        self.ctx.queue_full && channels::heeds_queue(&self.job.def)
    }
    /// One that lasts and is said to begin later was begun while a clock was wrong, and nobody knows when.
    fn pauses(&self) -> impl Iterator<Item = Pause> {
        let (now, heeds_tenant) = (self.ctx.now_ms, channels::heeds_tenant(&self.job.def));
        let heeded = move |pause: &&Pause| heeds_tenant || pause.reason != SkipReason::TenantPaused;
        self.ctx.pauses.iter().filter(heeded).map(move |pause| match pause {
            Pause { from_ms, to_ms: None, reason } if *from_ms > now => {
                Pause { from_ms: i64::MIN, to_ms: None, reason: *reason }
            }
            known => *known,
        })
    }
    /// The pause in which an instant is due.
    pub fn pause_of(&self, due_ms: i64) -> Option<Pause> {
        #[cfg(feature = "faults")]
        if faults::active(Mutation::ForgetPause) {
            return None;
        }
        self.pauses().find(|pause| pause.holds(due_ms))
    }
    /// The last moment up to now that is not in a pause which began after an instant that is due: instants up to it share its fate.
    pub fn until_pause(&self, due_ms: i64) -> i64 {
        let began = self.pauses().map(|pause| pause.from_ms).filter(|from_ms| *from_ms >= due_ms);
        began.min().map_or(self.ctx.now_ms, |from_ms| from_ms.min(self.ctx.now_ms))
    }
    pub fn ids_left(&self) -> u64 {
        (self.ctx.ids.first + self.ctx.ids.count).saturating_sub(self.next_id)
    }
    fn counter(&mut self) -> u64 {
        assert!(self.ids_left() > 0, "a decision used more ids than its command asked for");
        self.next_id += 1;
        self.next_id - 1
    }
    pub fn new_run_id(&mut self) -> RunId {
        let counter = self.counter();
        RunId(make_id(counter, self.job.id.slot()))
    }
    /// Rises over all attempts of the shard, epochs included.
    pub fn new_token(&mut self) -> Token {
        #[cfg(feature = "faults")]
        if faults::active(Mutation::ReuseToken) {
            let used = self.job.hot.runs.iter().flat_map(|r| &r.record.attempts).map(|a| a.token).max();
            if let Some(token) = used {
                return token;
            }
        }
        Token(self.counter())
    }
    /// `(cursor, to]` under the version in force.
    pub fn interval(&self, to_ms: i64) -> Interval {
        Interval { from_ms: self.job.hot.cursor_ms, to_ms, version: self.job.hot.version, tzdb: self.ctx.tzdb.into() }
    }
    /// Asks for a permit and an executor for a run that is QUEUED now. While the job is paused nothing asks: resuming it does.
    /// A run of a DAG needs neither: it begins.
    pub fn enqueue(&mut self, run: RunId) {
        if self.job.holds_runs() {
            return;
        }
        if self.job.is_dag() {
            return graph::begin(self, run);
        }
        if let Some(open) = self.job.run(run) {
            let waiting = waiting(&self.job, open, self.ctx.now_ms);
            self.effect(Effect::Enqueue(waiting));
        }
    }
    /// Ends an open run of a DAG as a cancel does.
    pub fn stop_graph(&mut self, run: RunId) {
        graph::stop(self, run);
    }
    /// Time has passed for the open runs of a DAG.
    pub fn wake_graphs(&mut self) {
        graph::wake(self);
    }
    /// The opposite: a QUEUED run does not wait for a permit and an executor any more.
    pub fn dequeue(&mut self, run: RunId, tenant: Text, pool: Text) {
        if !self.job.holds_runs() {
            self.effect(Effect::Dequeue { run, tenant, pool });
        }
    }
    fn finish(self, reply: Reply) -> (Decision, Job) {
        (Decision { events: self.events, effects: self.effects, reply, sends: self.sends }, self.job)
    }
    /// The record of a run that this decision ended.
    fn ended(&self, run: RunId) -> Option<RunRecord> {
        self.events.iter().find_map(|e| match e {
            Event::RunEnded { record, .. } if record.run == run => Some(RunRecord::clone(record)),
            _ => None,
        })
    }
    fn run_reply(&self, run: RunId) -> Reply {
        self.job.run(run).map_or(Reply::Done, |open| Reply::Run(Box::new(self.job.run_view(open))))
    }
}

/// A job takes no more runs.
fn queue_full() -> Rejection {
    let why = format!(
        "the job has {OPEN_RUNS_PER_JOB} open runs, as many as one job may have; try again when some have ended"
    );
    Rejection::new(ErrorCode::JobQueueFull, why)
}

/// Creates a job. Names and sizes were checked (`crate::spec`), the name is free (the shard's index).
pub fn decide_create(job: JobId, spec: StoredJob, ctx: &Context) -> (Job, Decision) {
    let event = Event::JobCreated { job, spec: Arc::new(spec), at_ms: ctx.now_ms };
    let Event::JobCreated { spec, at_ms, .. } = &event else { unreachable!("made above") };
    let new = created(job, spec.clone(), *at_ms);
    (new, Decision { events: vec![event], ..Decision::default() })
}

/// Decides a command. Pure: the same job, command and context give the same decision.
pub fn decide(job: &Job, command: &Command, ctx: &Context) -> Result<Decision, Rejection> {
    decide_next(job, command, ctx).map(|(decision, _)| decision)
}

/// Like [`decide`], and the job with the decision's events applied, so that the owner need not apply them again.
pub fn decide_next(job: &Job, command: &Command, ctx: &Context) -> Result<(Decision, Job), Rejection> {
    match command {
        Command::Claimed { by, claim } if claim.claimed_run().is_some_and(|run| claim::owns(job, run, by)) => {
            decide_said(job, claim, Some(by), ctx)
        }
        // One answer for an attempt of another credential and for one that never was.
        Command::Claimed { .. } => Ok(Draft::new(job, ctx).finish(Reply::Stale)),
        command => decide_said(job, command, None, ctx),
    }
}

/// `by`: the executor whose word the command is, already checked; None: the node's own.
fn decide_said(
    job: &Job,
    command: &Command,
    by: Option<&Claimant>,
    ctx: &Context,
) -> Result<(Decision, Job), Rejection> {
    let mut draft = Draft::new(job, ctx);
    let reply = match command {
        Command::Wake => {
            due::wake(&mut draft);
            Reply::Done
        }
        Command::Replace { version, spec } => change::replace(&mut draft, *version, spec)?,
        Command::Pause { reason } => change::pause(&mut draft, reason.clone(), None)?,
        Command::Resume => change::resume(&mut draft, None)?,
        Command::Delete => change::delete(&mut draft)?,
        Command::Quarantine { reason } => change::quarantine(&mut draft, reason.clone()),
        Command::Trigger { key, params, reason, by, sealed } => {
            let reply = trigger::trigger(&mut draft, key, params, reason, (by, sealed))?;
            #[cfg(feature = "faults")]
            if faults::strikes(Mutation::LostAck, ctx.now_ms) {
                draft = Draft::new(job, ctx);
            }
            reply
        }
        Command::Take(taken) => message::take(&mut draft, taken)?,
        Command::StartNode(asked) => node::start(&mut draft, asked)?,
        Command::CancelNode(asked) => node::cancel(&mut draft, asked)?,
        Command::Graph { run, step } => graph::step(&mut draft, *run, step)?,
        Command::ChangeGraph { run, record, action } => {
            if record.as_ref().is_some_and(|record| record.compensated) {
                hooks::ask_if_undone(*run, false)?;
            }
            graph::change(&mut draft, *run, record.as_deref(), action)?
        }
        Command::Backfill(command) => backfill::carry_out(&mut draft, command)?,
        Command::Bulk(command) => bulk::carry_out(&mut draft, command)?,
        Command::Start { run, executor, session, credential, credit_stamp_ms } => {
            attempt::start(&mut draft, *run, executor, (*session, credential.as_ref()), *credit_stamp_ms)?
        }
        // Taken apart by the caller.
        Command::Claimed { .. } => Reply::Stale,
        Command::Finish(ended) => finish::finish(&mut draft, ended),
        Command::Suspect { run, token } => attempt::suspect(&mut draft, *run, *token),
        Command::Heard { run, token, session } => {
            attempt::heard(&mut draft, *run, *token, *session, by.map(|by| &by.credential))
        }
        Command::Lost { run, token } => finish::lost(&mut draft, *run, *token),
        Command::Cancel { run, .. } => stop::cancel(&mut draft, *run)?,
        Command::Confirm { run, decision, reason } => reopen::confirm(&mut draft, *run, *decision, reason.as_deref())?,
        Command::Reopen { record, redrive, reason, force } => {
            reopen::reopen(&mut draft, record, *redrive, *force, reason)?
        }
        Command::Prioritize { run, priority } => priority::change(&mut draft, *run, *priority)?,
        Command::Discard { record } => reopen::discard(&mut draft, record)?,
        Command::Restored { skip } => restore::restored(&mut draft, *skip)?,
    };
    Ok(draft.finish(reply))
}
