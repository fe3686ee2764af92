//! Deadlines of the job's runs, and of its instants that made none: they begin to count, and are missed.

use super::{super::state::OpenRun, Draft, message};
use crate::{
    deadline::{
        self,
        rules::{Rule, kept},
    },
    hooks::DueHook,
    outbox::{MessageDraft, body, sending::To},
};
use campanile_schema::{
    event::{Event, LedgerEntry},
    ids::RunId,
    limits::DEADLINES_PER_WAKE,
    record::{FailedHook, HookFailure, RunRecord, Source},
    stored::{
        deadline::{DeadlineChange, MissedDeadline, OwedDeadline, RunDeadline, StoredDeadline},
        outbox::{DropReason, MessageKind},
    },
};

fn emit(draft: &mut Draft<'_>, change: DeadlineChange) {
    let (job, at_ms) = (draft.job.id, draft.ctx.now_ms);
    draft.emit(Event::DeadlineChanged { job, change, at_ms });
}

/// A run was made for an instant of the schedule.
pub(super) fn of_instant(draft: &mut Draft<'_>, run: RunId, instant_ms: i64) {
    let Some(deadline) = draft.job.def.deadline() else { return };
    if let Some(until_ms) = deadline::of_instant(deadline, instant_ms) {
        emit(draft, DeadlineChange::Set { run, deadline: RunDeadline::Until(until_ms) });
    }
}

/// A run was made that no instant of the schedule asks for.
pub(super) fn of_other(draft: &mut Draft<'_>, run: RunId) {
    if !kept(Rule::OfInstants) {
        of_instant(draft, run, draft.ctx.now_ms);
    }
}

/// The run of a node was made, or goes on. `own`: what the node says. `scheduled`: of a DAG run that a schedule made.
pub(super) fn of_node(
    draft: &mut Draft<'_>,
    run: RunId,
    own: Option<&StoredDeadline>,
    (scheduled, generation): (bool, u32),
) {
    let own = own.filter(|_| kept(Rule::NodeGoesFirst));
    if let Some(StoredDeadline::Start { within_sec }) = own {
        return emit(draft, DeadlineChange::Set { run, deadline: RunDeadline::FromStart(*within_sec) });
    }
    let counts = (scheduled || !kept(Rule::OfInstants)) && (generation == 1 || !kept(Rule::FirstGeneration));
    let instant_ms = draft.job.run(run).and_then(|open| open.record.logical_ms).filter(|_| counts);
    let until_ms = instant_ms.and_then(|at| deadline::of_instant(own.or(draft.job.def.deadline())?, at));
    if let Some(until_ms) = until_ms {
        emit(draft, DeadlineChange::Set { run, deadline: RunDeadline::Until(until_ms) });
    }
}

/// An attempt of a run has started, or a run of a DAG has begun.
pub(super) fn at_start(draft: &mut Draft<'_>, run: RunId) {
    let Some(open) = draft.job.run(run) else { return };
    let generation = open.record.generation;
    let attempts = open.record.attempts.iter().filter(|attempt| attempt.generation == generation).count();
    if attempts > 1 && kept(Rule::FirstAttempt) {
        return;
    }
    let own = if attempts > 1 { None } else { open.deadline };
    if let Some(deadline) = deadline::from_start(&draft.job.def, own, draft.ctx.now_ms) {
        emit(draft, DeadlineChange::Set { run, deadline });
    }
}

/// Instants made no run. A job that owes an older one goes on with that.
pub(super) fn of_unstarted(draft: &mut Draft<'_>, entries: &[LedgerEntry]) {
    let Some(deadline) = draft.job.def.deadline() else { return };
    if draft.job.hot.owed.is_some() && kept(Rule::OldestIsOwed) {
        return;
    }
    if let Some(owed) = deadline::of_unstarted(deadline, entries) {
        emit(draft, DeadlineChange::Owed(owed));
    }
}

/// Time has passed.
pub(super) fn wake(draft: &mut Draft<'_>) {
    let now = draft.ctx.now_ms;
    let until = |open: &OpenRun| match open.deadline {
        Some(RunDeadline::Until(until_ms)) if until_ms <= now => Some((open.id(), until_ms)),
        Some(RunDeadline::Until(_) | RunDeadline::FromStart(_)) | None => None,
    };
    let passed: Vec<(RunId, i64)> = draft.job.hot.runs.iter().filter_map(until).take(DEADLINES_PER_WAKE).collect();
    for (run, until_ms) in passed {
        if is_excused(draft, run) {
            emit(draft, DeadlineChange::Excused { run });
        } else {
            missed_by(draft, run, until_ms);
        }
    }
    if let Some(owed) = draft.job.hot.owed.filter(|owed| owed.until_ms <= now) {
        missed_unstarted(draft, owed);
    }
}

/// A pause keeps it from running, and somebody wants that: of the job, the tenant or the system, or of this run of a DAG.
fn is_excused(draft: &Draft<'_>, run: RunId) -> bool {
    let runs = |open: &OpenRun| open.has_body() || open.graph;
    let paused = draft.job.holds_runs() || draft.paused().is_some();
    let held = paused && !draft.job.run(run).is_some_and(runs);
    let is_paused_dag = draft.job.graphs.get(&run).is_some_and(|open| open.run.paused().is_some());
    (held || is_paused_dag) && kept(Rule::PauseExcuses)
}

fn missed_by(draft: &mut Draft<'_>, run: RunId, until_ms: i64) {
    let Some(open) = draft.job.run(run) else { return };
    let record = RunRecord::clone(&open.record);
    let facts = MissedDeadline {
        job: draft.job.id,
        instant_ms: record.logical_ms,
        until_ms,
        state: Some(record.state),
        reason: None,
        of_instant: record.source == Source::Schedule && record.generation == 1,
    };
    let silent = message::is_silent(draft, &record);
    emit(draft, DeadlineChange::Missed { run: Some(run), until_ms });
    if silent {
        return;
    }
    let def = draft.job.def.clone();
    for due in deadline::hooks(&def, Some(&record)) {
        if due.budget.is_none() {
            dropped(draft, &record, &due);
        }
        let (created_ms, marked) = (record.created_ms, record.marked);
        let to = Sender { run, created_ms, marked, generation: record.generation, depth: record.depth };
        send(draft, &to, &due, facts.clone());
    }
}

fn missed_unstarted(draft: &mut Draft<'_>, owed: OwedDeadline) {
    let OwedDeadline { instant_ms, until_ms, reason } = owed;
    let facts = MissedDeadline {
        job: draft.job.id,
        instant_ms: Some(instant_ms),
        until_ms,
        state: None,
        reason: Some(reason),
        of_instant: true,
    };
    emit(draft, DeadlineChange::Missed { run: None, until_ms });
    let def = draft.job.def.clone();
    // There is no run: the job stands for it.
    let to = Sender { run: RunId(draft.job.id.0), created_ms: instant_ms, marked: false, generation: 1, depth: 0 };
    for due in deadline::hooks(&def, None) {
        send(draft, &to, &due, facts.clone());
    }
}

/// What sends the hooks.
struct Sender {
    run: RunId,
    created_ms: i64,
    marked: bool,
    generation: u32,
    depth: u32,
}

fn send(draft: &mut Draft<'_>, from: &Sender, due: &DueHook<'_>, facts: MissedDeadline) {
    draft.sends.push(MessageDraft {
        kind: MessageKind::Deadline,
        tenant: draft.job.def.tenant.clone(),
        run: from.run,
        run_created_ms: from.created_ms,
        run_marked: from.marked,
        generation: from.generation,
        index: due.number,
        to: To::Job(due.hook.job.clone()),
        params: (!due.hook.params.is_empty()).then(|| due.hook.params.clone()),
        depth: from.depth,
        body_bytes: body::DEADLINE_BYTES,
        budget: Some(due.budget.unwrap_or(0)),
        dropped: due.budget.is_none().then_some(DropReason::Budget),
        deadline: Some(facts.into()),
    });
}

/// The run tells of a hook for which nothing of its budget is left.
fn dropped(draft: &mut Draft<'_>, record: &RunRecord, due: &DueHook<'_>) {
    let failed = FailedHook {
        generation: record.generation,
        index: due.number,
        job: due.hook.job.clone(),
        state: HookFailure::Dropped,
        reason: Some(DropReason::Budget.as_str().into()),
        at_ms: draft.ctx.now_ms,
    };
    draft.emit(Event::HookFailed { job: draft.job.id, run: record.run, failed, record: None });
}

/// A run ends. It has missed its deadline if that has passed and nobody has looked since; the record is told.
pub(super) fn at_end(draft: &mut Draft<'_>, record: &mut RunRecord) {
    let until = draft.job.run(record.run).and_then(|open| open.deadline);
    let Some(RunDeadline::Until(until_ms)) = until else { return };
    if until_ms > draft.ctx.now_ms && kept(Rule::EndSettles) {
        return;
    }
    if is_excused(draft, record.run) {
        return emit(draft, DeadlineChange::Excused { run: record.run });
    }
    missed_by(draft, record.run, until_ms);
    if let Some(open) = draft.job.run(record.run) {
        record.failed_hooks.clone_from(&open.record.failed_hooks);
    }
    record.timing.get_or_insert_default().missed_ms = Some(until_ms);
}
