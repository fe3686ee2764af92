//! A backfill of a job: it begins, starts runs page by page, pauses, is canceled, and ends with its last run.

use super::{
    super::{
        backfill_command::{BackfillAsked, BackfillCommand, BackfillPage, BackfillStart},
        effect::Reply,
        state::OpenRun,
    },
    Draft, graph,
    lane::{emit, end_if_over},
    reopen, stop,
    trigger::may_start,
};
use crate::{
    backfill::rules::{Rule, kept},
    outbox::keys,
    reject::Rejection,
    schedule::Schedule,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, StopReason},
    ids::{BackfillId, RunId, make_id},
    limits::{BACKFILL_EARLIEST_MS, BACKFILL_INSTANTS, BACKFILL_PARALLEL_MAX, BACKFILL_STARTS, BACKFILL_STOPS},
    peer::shard::GraphAction,
    record::{RunRecord, RunState, Source},
    stored::{
        StoredJob, StoredTrigger,
        backfill::{BackfillChange, BackfillCounts, BackfillMode, BackfillState, PassedInstants, StoredBackfill},
    },
    text::Text,
    time::Timestamp,
};

pub(super) fn carry_out(draft: &mut Draft<'_>, command: &BackfillCommand) -> Result<Reply, Rejection> {
    match command {
        BackfillCommand::Create(asked) => create(draft, asked),
        BackfillCommand::Page(page) => Ok(go_on(draft, page)),
        BackfillCommand::Step { id } => Ok(step(draft, *id)),
        BackfillCommand::Pause { id, reason } => pause(draft, *id, reason.clone()),
        BackfillCommand::Resume { id } => resume(draft, *id),
        BackfillCommand::Cancel { id, reason } => cancel(draft, *id, reason.clone()),
    }
}

/// Whether these instants can be a backfill of the job. Says what to do where they cannot.
pub fn check(
    def: &StoredJob,
    schedule: &Schedule,
    (from_ms, to_ms): (i64, i64),
    parallelism: u32,
    now_ms: i64,
) -> Result<(), Rejection> {
    let invalid = |why: String| Err(Rejection::new(ErrorCode::InvalidArgument, why));
    let why = match def.trigger {
        StoredTrigger::Cron { .. } | StoredTrigger::FixedRate { .. } => None,
        StoredTrigger::FixedDelay { .. } => Some("its instants follow from the ends of its runs"),
        StoredTrigger::Once { .. } => Some("it has one instant"),
        StoredTrigger::Manual {} => Some("it is only triggered by hand"),
    };
    if let Some(why) = why {
        let why = format!("the job has no instants that a backfill could run: {why}; trigger it by hand");
        return Err(Rejection::new(ErrorCode::NoInstants, why));
    }
    if from_ms > to_ms {
        let (from, to) = (Timestamp(from_ms), Timestamp(to_ms));
        return invalid(format!("from: {from} lies after 'to' ({to}); write the earlier instant as 'from'"));
    }
    if from_ms < BACKFILL_EARLIEST_MS {
        return invalid("from: it lies before 1970; begin at 1970-01-01T00:00:00Z or later".to_owned());
    }
    if from_ms > now_ms {
        let why = "lies in the future; a backfill runs instants of the past, and the schedule runs those that come";
        return invalid(format!("from: {} {why}", Timestamp(from_ms)));
    }
    if !(1..=BACKFILL_PARALLEL_MAX).contains(&parallelism) {
        return invalid(format!("parallelism: {parallelism} runs at once; give 1 to {BACKFILL_PARALLEL_MAX}"));
    }
    let last_ms = to_ms.min(now_ms);
    if schedule.count(from_ms - 1, last_ms, None) > BACKFILL_INSTANTS {
        return Err(too_many(schedule, from_ms, last_ms));
    }
    Ok(())
}

/// Names the largest `to` that would do.
pub fn too_many(schedule: &Schedule, from_ms: i64, to_ms: i64) -> Rejection {
    let (mut low, mut high) = (from_ms, to_ms);
    while low < high {
        let middle = low + (high - low + 1) / 2;
        if schedule.count(from_ms - 1, middle, None) > BACKFILL_INSTANTS {
            high = middle - 1;
        } else {
            low = middle;
        }
    }
    let why = format!(
        "the interval holds more than {BACKFILL_INSTANTS} instants; the largest 'to' with this 'from' is {}",
        Timestamp(low)
    );
    Rejection::new(ErrorCode::TooManyInstants, why)
}

fn create(draft: &mut Draft<'_>, asked: &BackfillAsked) -> Result<Reply, Rejection> {
    may_start(draft)?;
    let (from_ms, asked_to) = (asked.from_ms, asked.to_ms);
    check(&draft.job.def, &draft.job.schedule, (from_ms, asked_to), asked.parallelism, draft.ctx.now_ms)?;
    let open = draft.job.open_backfill().map(|backfill| backfill.id);
    // Its instants could be those of runs that have not ended.
    let ending = draft.job.hot.runs.iter().find_map(|run| run.record.backfill.filter(|id| id.0 != 0));
    if let Some(id) = open.or(ending).filter(|_| kept(Rule::OneOfAJob)) {
        let why = format!("backfill {id} of the job has not ended; wait for it or cancel it");
        return Err(Rejection::new(ErrorCode::BackfillActive, why));
    }
    let cut_ms = if kept(Rule::CutAtCursor) { draft.job.hot.cursor_ms } else { i64::MAX };
    let id = BackfillId(make_id(draft.counter(), draft.job.id.slot()));
    let backfill = StoredBackfill {
        id,
        state: BackfillState::Running,
        mode: asked.mode,
        from_ms,
        // An interval that ends before it begins has no instants.
        to_ms: asked_to.min(cut_ms).max(from_ms - 1),
        cursor_ms: from_ms - 1,
        parallelism: asked.parallelism,
        unknown_run: asked.unknown_run,
        first: draft.job.hot.backfill.is_none(),
        hooks: asked.hooks,
        plan: asked.plan,
        counts: BackfillCounts::default(),
        created_ms: draft.ctx.now_ms,
        ended_ms: None,
        reason: asked.reason.clone(),
        by: asked.by.clone(),
        why: None,
    };
    emit(draft, BackfillChange::Created { backfill: Box::new(backfill) });
    end_if_over(draft);
    Ok(seen(draft, id))
}

/// The backfill as it is now.
fn seen(draft: &Draft<'_>, id: BackfillId) -> Reply {
    let job = &draft.job;
    let Some(backfill) = job.backfill(id) else { return Reply::Unchanged };
    Reply::Backfill(Box::new(job.backfill_view(backfill, job.backfill_room(draft.ctx).err())))
}

/// Starts what a page says, as far as there is room. The rest is handed in again.
fn go_on(draft: &mut Draft<'_>, page: &BackfillPage) -> Reply {
    let Some(backfill) = draft.job.backfill(page.id).filter(|backfill| backfill.is_open()) else {
        return Reply::Unchanged;
    };
    if page.after_ms != backfill.cursor_ms && kept(Rule::PageFollows) {
        return Reply::Unchanged;
    }
    let (mut upto_ms, mut passed) = (page.after_ms, PassedInstants::default());
    let mut all = true;
    for start in page.starts.iter().take(BACKFILL_STARTS) {
        if draft.ids_left() == 0 || draft.job.backfill_room(draft.ctx).is_err() {
            all = false;
            break;
        }
        passed.add(start.before);
        passed.add(begin(draft, page.id, start));
        upto_ms = start.at_ms;
    }
    if all && page.starts.len() <= BACKFILL_STARTS && may_pass(draft, page.id) {
        passed.add(page.tail);
        upto_ms = page.upto_ms;
    }
    if upto_ms > page.after_ms {
        emit(draft, BackfillChange::Moved { upto_ms, passed });
        end_if_over(draft);
        return Reply::Done;
    }
    Reply::Unchanged
}

/// Whether it goes on over instants that make no run.
fn may_pass(draft: &Draft<'_>, id: BackfillId) -> bool {
    draft.job.backfill(id).is_some_and(|backfill| backfill.state == BackfillState::Running || !kept(Rule::PauseHolds))
}

/// Makes the run of an instant, or opens it again.
fn begin(draft: &mut Draft<'_>, id: BackfillId, start: &BackfillStart) -> PassedInstants {
    let existing = PassedInstants { existing: 1, ..PassedInstants::default() };
    let Some(backfill) = draft.job.backfill(id) else { return existing };
    let (mode, reason) = (backfill.mode, backfill.reason.as_ref().map(ToString::to_string));
    if mode == BackfillMode::Failed && kept(Rule::FailedGoesOn) {
        if start.record.as_ref().is_some_and(|record| record.compensated) {
            // What it did is undone, or will be: only a person may start it again.
            return PassedInstants { gone: 1, ..PassedInstants::default() };
        }
        // Without a record it is open, or its record went meanwhile.
        let goes_on = start.record.as_ref().is_some_and(|record| again(draft, id, record, reason));
        return if goes_on { PassedInstants::default() } else { existing };
    }
    let key = match mode {
        BackfillMode::Missing | BackfillMode::Failed if kept(Rule::KeyOfInstant) => keys::backfill(start.at_ms),
        BackfillMode::Missing | BackfillMode::Failed | BackfillMode::All | BackfillMode::Replay => {
            keys::of_backfill(id, start.at_ms)
        }
    };
    let has_key = |open: &OpenRun| open.record.key.as_deref() == Some(&*key);
    if draft.job.hot.runs.iter().any(has_key) && kept(Rule::ExistingIsPassed) {
        return existing;
    }
    let source = if mode == BackfillMode::Replay { Source::Replay } else { Source::Backfill };
    let run = draft.new_run_id();
    draft.emit(Event::RunCreated {
        job: draft.job.id,
        run,
        source,
        logical_ms: Some(start.at_ms),
        key: Some(key),
        params: start.params.clone().filter(|_| kept(Rule::ReplayHasParams)),
        reason,
        by: None,
        held: draft.job.is_dag(),
        at_ms: draft.ctx.now_ms,
        interval: None,
        late: false,
        dag: None,
        depth: 0,
        marked: false,
        timeout_sec: None,
        backfill: Some(id),
        budget: None,
        sealed: None,
    });
    draft.enqueue(run);
    PassedInstants::default()
}

/// A run that failed goes on as its next generation; false: it has not failed, or is open.
fn again(draft: &mut Draft<'_>, id: BackfillId, record: &RunRecord, reason: Option<String>) -> bool {
    let failed = matches!(record.state, RunState::Failed | RunState::Timeout);
    if !failed || draft.job.run(record.run).is_some() {
        return false;
    }
    let mut record = record.clone();
    record.backfill = Some(id);
    if record.graph.is_some() {
        let retry = GraphAction::RetryFailed { by: None, reason };
        return graph::change_counted(draft, record.run, Some(&record), &retry).is_ok();
    }
    reopen::open_again(draft, record, &reason);
    true
}

/// A cancel goes on: some more of its runs are stopped.
fn step(draft: &mut Draft<'_>, id: BackfillId) -> Reply {
    let canceling = draft.job.backfill(id).is_some_and(|backfill| backfill.state == BackfillState::Canceling);
    if !canceling {
        return Reply::Unchanged;
    }
    let told = draft.events.len();
    stop_some(draft, id);
    end_if_over(draft);
    if draft.events.len() > told { Reply::Done } else { Reply::Unchanged }
}

/// Those without a body end at once, those with one are told to stop.
fn stop_some(draft: &mut Draft<'_>, id: BackfillId) {
    if !kept(Rule::CancelEndsAll) {
        return;
    }
    // A run of a DAG is open until its children have ended.
    let is_told = |open: &OpenRun| match draft.job.graphs.get(&open.id()) {
        Some(graph) => graph.run.is_stopped(),
        None => open.stop_reason() == Some(StopReason::Cancel),
    };
    let to_stop = |open: &&OpenRun| !is_told(open);
    let runs: Vec<RunId> =
        draft.job.runs_of_backfill(id).filter(to_stop).map(OpenRun::id).take(BACKFILL_STOPS).collect();
    for run in runs {
        stop::stop(draft, run, StopReason::Cancel);
    }
}

/// The backfill of this id, in a state that a person may change.
fn changeable<'d>(draft: &'d Draft<'_>, id: BackfillId) -> Result<&'d StoredBackfill, Rejection> {
    let gone = || Rejection::new(ErrorCode::NotFound, format!("no backfill {id}: a job keeps its newest one"));
    let backfill = draft.job.backfill(id).ok_or_else(gone)?;
    match backfill.state {
        BackfillState::Running | BackfillState::Paused => Ok(backfill),
        BackfillState::Canceling | BackfillState::Canceled | BackfillState::Done => {
            let why = format!("the backfill is {}; create another one", backfill.state);
            Err(Rejection::new(ErrorCode::IllegalState, why))
        }
    }
}

fn pause(draft: &mut Draft<'_>, id: BackfillId, why: Option<Text>) -> Result<Reply, Rejection> {
    if changeable(draft, id)?.state == BackfillState::Running {
        emit(draft, BackfillChange::Paused { why });
    }
    Ok(seen(draft, id))
}

fn resume(draft: &mut Draft<'_>, id: BackfillId) -> Result<Reply, Rejection> {
    if changeable(draft, id)?.state == BackfillState::Paused {
        emit(draft, BackfillChange::Resumed);
    }
    Ok(seen(draft, id))
}

fn cancel(draft: &mut Draft<'_>, id: BackfillId, why: Option<Text>) -> Result<Reply, Rejection> {
    let canceling = draft
        .job
        .backfill(id)
        .is_some_and(|backfill| matches!(backfill.state, BackfillState::Canceling | BackfillState::Canceled));
    // Asked for twice it is done once.
    if !canceling {
        changeable(draft, id)?;
        emit(draft, BackfillChange::Canceling { why });
        stop_some(draft, id);
        end_if_over(draft);
    }
    Ok(seen(draft, id))
}
