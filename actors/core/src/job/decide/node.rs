//! The receiving side of a DAG: the run of a node is made, opened again, or ended. Each is done once for each generation, however often
//! it is asked for.
//!
//! | the run of the key | START in generation g | CANCEL in generation g |
//! |---|---|---|
//! | is not there | is made | is made, and ends CANCELED |
//! | is open | stays | is stopped, if it is not of a later generation |
//! | has ended before g | goes on as g | ends CANCELED in g |
//! | has ended in g or later | stays | stays |

use super::{
    super::{command::NodeAsked, effect::Reply},
    Draft, deadline,
    doubtful::doubt,
    finish, lane, queue_full, stop,
};
use crate::reject::Rejection;
use campanile_schema::{
    error::ErrorCode,
    event::{Event, StopReason},
    ids::{BackfillId, RunId},
    job::JobStatus,
    limits::{NODE_RUNS_PER_JOB, OPEN_RUNS_PER_JOB},
    record::{RunRecord, RunState, Source},
    stored::audit::CallOrigin,
};
use std::sync::Arc;

pub(super) fn start(draft: &mut Draft<'_>, asked: &NodeAsked) -> Result<Reply, Rejection> {
    if let Some(open) = open_of(draft, asked) {
        return Ok(draft.run_reply(open));
    }
    if let Some(known) = done(draft, asked)? {
        return Ok(known);
    }
    room(draft)?;
    let held = draft.job.holds_newcomer(asked.back);
    let run = match &asked.record {
        Some(record) => again(draft, asked, record, held),
        None => made(draft, asked, held),
    };
    deadline::of_node(draft, run, asked.deadline.as_ref(), (asked.scheduled, asked.generation));
    if asked.confirm {
        doubt(draft, run, if held { RunState::Pending } else { RunState::Queued });
    } else if !held {
        if !asked.back {
            lane::give_way(draft);
        }
        draft.enqueue(run);
    }
    Ok(draft.run_reply(run))
}

pub(super) fn cancel(draft: &mut Draft<'_>, asked: &NodeAsked) -> Result<Reply, Rejection> {
    if let Some(run) = open_of(draft, asked) {
        if draft.job.run(run).is_some_and(|open| open.record.generation <= asked.generation) {
            stop::stop(draft, run, StopReason::Cancel);
        }
        return Ok(reply(draft, run));
    }
    if let Some(known) = done(draft, asked)? {
        return Ok(known);
    }
    let run = match &asked.record {
        Some(record) => again(draft, asked, record, true),
        None => made(draft, asked, true),
    };
    if let Some(open) = draft.job.run(run) {
        let record = RunRecord::clone(&open.record);
        finish::close(draft, record, RunState::Canceled, false);
    }
    Ok(reply(draft, run))
}

fn reply(draft: &Draft<'_>, run: RunId) -> Reply {
    draft.ended(run).map_or_else(|| draft.run_reply(run), |record| Reply::Final(Box::new(record)))
}

/// The open run of the key.
fn open_of(draft: &Draft<'_>, asked: &NodeAsked) -> Option<RunId> {
    let is_it = |record: &RunRecord| record.source == Source::Dag && record.key.as_deref() == Some(&*asked.key);
    draft.job.hot.runs.iter().find(|open| is_it(&open.record)).map(|open| open.id())
}

/// The run of the key, when it has ended in this generation or a later one.
fn done(draft: &Draft<'_>, asked: &NodeAsked) -> Result<Option<Reply>, Rejection> {
    if draft.job.hot.status == JobStatus::Deleted {
        return Err(Rejection::new(ErrorCode::NotFound, "the job was deleted"));
    }
    let ended = asked.record.as_ref().filter(|record| record.generation >= asked.generation);
    Ok(ended.map(|record| Reply::Final(record.clone())))
}

fn room(draft: &Draft<'_>) -> Result<(), Rejection> {
    let runs = &draft.job.hot.runs;
    let of_nodes = runs.iter().filter(|open| open.record.dag.is_some()).count();
    let full = runs.len() >= OPEN_RUNS_PER_JOB || of_nodes >= NODE_RUNS_PER_JOB;
    if full || draft.ctx.overloaded || draft.ctx.queue_half { Err(queue_full()) } else { Ok(()) }
}

fn made(draft: &mut Draft<'_>, asked: &NodeAsked, held: bool) -> RunId {
    let run = draft.new_run_id();
    draft.emit(Event::RunCreated {
        job: draft.job.id,
        run,
        source: Source::Dag,
        logical_ms: asked.logical_ms,
        key: Some(asked.key.clone()),
        params: (!asked.params.is_empty()).then(|| asked.params.clone()),
        reason: None,
        by: asked.trace.map(|trace| CallOrigin::in_trace(trace).into()),
        held,
        at_ms: draft.ctx.now_ms,
        interval: None,
        late: false,
        dag: Some((asked.dag.0, asked.node)),
        depth: asked.depth,
        marked: asked.marked,
        timeout_sec: asked.timeout_sec,
        backfill: lane(asked),
        budget: asked.budget,
        sealed: None,
    });
    run
}

/// It counts for no backfill: the run of its DAG does.
fn lane(asked: &NodeAsked) -> Option<BackfillId> {
    asked.back.then_some(BackfillId(0))
}

/// The run as the generation that is asked for. What was read of its parents' results may have changed.
fn again(draft: &mut Draft<'_>, asked: &NodeAsked, record: &RunRecord, held: bool) -> RunId {
    let mut record = record.clone();
    record.generation = asked.generation;
    record.state = if held { RunState::Pending } else { RunState::Queued };
    record.dead_letter = false;
    record.ended_ms = None;
    record.result = None;
    record.params = (!asked.params.is_empty()).then(|| asked.params.clone());
    record.timeout_sec = asked.timeout_sec;
    record.dag = Some((asked.dag.0, asked.node));
    record.backfill = lane(asked);
    let run = record.run;
    draft.emit(Event::RunReopened { job: draft.job.id, record: Arc::new(record), at_ms: draft.ctx.now_ms });
    run
}
