//! Runs and attempts from the events alone.
//!
//! | rule | what is checked |
//! |---|---|
//! | table | every event is a step that the table allows from the run's state |
//! | one outcome | a run ends at most once in a generation; what ends an attempt carries the token of the one that runs |
//! | tokens | rise with every attempt of the shard |
//! | numbers | attempts of a run count 1, 2, 3 ... over all generations; generations rise by one |
//! | budget | a run goes on by itself only below `maxAttempts` of its generation; NOT_STARTED does not count; it fails with attempts left only when its executor called the failure permanent |
//! | time | a run goes on by itself only if its next attempt begins within `maxElapsedSec` and `maxRuntimeSec` of the generation's first one; when it fails with attempts left, or while it waits, one of them is over |
//! | backoff | a retry waits base (x 2^(n-1), at most max) times 1 ± jitter and is queued no earlier |
//! | not idempotent | after LOST always, after FAILED or TIMEOUT while attempts are left, a person is asked |
//! | dead letter | exactly beside FAILED and TIMEOUT, unless switched off |
//! | record | the final record tells the attempts as they were |

use super::{sim::Step, steps::step_of};
use campanile_core::job::table::run_after;
use campanile_schema::{
    event::{Event, Next, StopReason},
    ids::{RunId, Token},
    job::Backoff,
    limits::{ATTEMPTS_KEPT, UNCOUNTED_ATTEMPTS},
    record::{AttemptState, RunRecord, RunState},
    stored::StoredJob,
};
use std::collections::{BTreeMap, BTreeSet};

struct Run {
    state: RunState,
    generation: u32,
    attempt: u32,
    /// The attempt whose body may run.
    token: Option<Token>,
    stopping: Option<StopReason>,
    /// Ended attempts that count.
    tried: u32,
    /// Ended attempts that do not count, because of their executor.
    uncounted: u32,
    /// NOT_STARTED in a row.
    refused: u32,
    retry_at_ms: Option<i64>,
    /// Begins of the attempts of this generation that were not refused.
    begun: Vec<i64>,
    /// A person had it run again.
    rerun_ms: Option<i64>,
    /// Numbers, tokens and states of all attempts.
    attempts: Vec<(u32, Token, AttemptState)>,
}

#[derive(Default)]
struct Attempts {
    def: Option<StoredJob>,
    runs: BTreeMap<RunId, Run>,
    ended: BTreeSet<(RunId, u32)>,
    highest: Option<Token>,
    deleted: bool,
}

/// Checks a whole history.
pub fn check(steps: &[Step]) -> Result<(), String> {
    let mut attempts = Attempts::default();
    for step in steps {
        for event in &step.events {
            attempts.judge(step.now_ms, event).map_err(|why| format!("at {}: {why}: {event:?}", step.now_ms))?;
        }
    }
    Ok(())
}

fn must(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

impl Attempts {
    fn judge(&mut self, now_ms: i64, event: &Event) -> Result<(), String> {
        if let Event::JobCreated { spec, .. } | Event::JobReplaced { spec, .. } = event {
            self.def = Some(StoredJob::clone(spec));
        }
        if let Event::JobDeleted { .. } = event {
            let left = self.runs.values().filter(|r| r.state != RunState::Canceled && !r.state.is_final());
            must(left.into_iter().all(|r| r.stopping == Some(StopReason::Cancel)), "a run is left alone")?;
            self.deleted = true;
        }
        if let Event::RunCreated { run, held, .. } = event {
            must(!self.deleted, "a run of a deleted job")?;
            let run = self.runs.insert(*run, Run::new(*held));
            return must(run.is_none(), "a run id was used twice");
        }
        let Some((id, step)) = step_of(event) else { return Ok(()) };
        let def = self.def.clone().ok_or("no definition")?;
        let run = self.runs.get_mut(&id).ok_or("no such run")?;
        let after = run_after(run.state, step).ok_or_else(|| format!("{step:?} is illegal in {}", run.state))?;
        match event {
            Event::AttemptStarted { attempt, token, .. } => {
                must(*attempt == run.attempt + 1, "attempts are not numbered one by one")?;
                must(self.highest < Some(*token), "the token does not rise")?;
                self.highest = Some(*token);
                (run.attempt, run.token, run.stopping) = (*attempt, Some(*token), None);
                run.attempts.push((*attempt, *token, AttemptState::Running));
                run.begun.push(now_ms);
            }
            Event::AttemptStopping { why, .. } => {
                must(run.stopping != Some(StopReason::Cancel), "told to stop after a cancel")?;
                run.stopping = Some(*why);
            }
            Event::AttemptEnded { token, state, error_code, next, at_ms, uncounted, .. } => {
                must(run.token == Some(*token), "the token is not the running attempt's")?;
                must(!matches!(state, AttemptState::Running | AttemptState::Success), "it goes on after that")?;
                let stopped = matches!(run.stopping, Some(StopReason::Cancel | StopReason::Replace));
                must(!stopped, "it goes on though it was stopped")?;
                let free = run.is_free(&def, *state, error_code.as_deref());
                must(*uncounted == free, "counted, or not counted, without reason")?;
                must(!free || *next == Next::Requeue, "it does not go on at once")?;
                let is_at_once = *next == Next::Requeue && *state != AttemptState::NotStarted;
                must(!is_at_once || run.is_in_time(&def, *at_ms), "it goes on though its time is over")?;
                run.ended(*token, *state, free);
                if !free {
                    run.goes_on(&def, *state, next, *at_ms)?;
                }
            }
            Event::RetryDue { at_ms, .. } => {
                must(run.retry_at_ms.is_some_and(|due| *at_ms >= due), "retried too early")?;
                run.retry_at_ms = None;
            }
            Event::RunConfirmed { at_ms, .. } => run.rerun_ms = Some(*at_ms),
            Event::RunEnded { record, .. } => {
                must(self.ended.insert((id, run.generation)), "a second outcome of one generation")?;
                run.ends(&def, record, now_ms)?;
            }
            Event::RunReopened { record, .. } => {
                must(record.generation == run.generation + 1, "the generation does not rise by one")?;
                must(!record.dead_letter && record.ended_ms.is_none() && record.result.is_none(), "a final record")?;
                (run.generation, run.tried, run.uncounted, run.refused) = (record.generation, 0, 0, 0);
                run.state = record.state;
                (run.begun, run.rerun_ms) = (Vec::new(), None);
                return must(matches!(record.state, RunState::Queued | RunState::Pending), "active again");
            }
            _ => {}
        }
        run.state = after;
        Ok(())
    }
}

impl Run {
    fn new(held: bool) -> Self {
        Self {
            state: if held { RunState::Pending } else { RunState::Queued },
            generation: 1,
            attempt: 0,
            token: None,
            stopping: None,
            tried: 0,
            uncounted: 0,
            refused: 0,
            retry_at_ms: None,
            begun: Vec::new(),
            rerun_ms: None,
            attempts: Vec::new(),
        }
    }

    /// It ended by its executor's shutdown or loss, and not too often.
    fn is_free(&self, def: &StoredJob, state: AttemptState, code: Option<&str>) -> bool {
        let shutdown = state == AttemptState::Failed && matches!(code, Some("EXECUTOR_SHUTDOWN" | "LOST_CONTACT"));
        (state == AttemptState::Lost || shutdown) && !def.not_idempotent && self.uncounted < UNCOUNTED_ATTEMPTS
    }

    /// Whether an attempt that begins then may begin.
    fn is_in_time(&self, def: &StoredJob, begins_ms: i64) -> bool {
        let from = self.rerun_ms.or(self.begun.first().copied());
        let is_within = |limit: &u64| from.is_none_or(|from| begins_ms <= from + *limit as i64 * 1000);
        [def.max_elapsed_sec, def.max_runtime_sec].iter().flatten().all(is_within)
    }

    fn ended(&mut self, token: Token, state: AttemptState, free: bool) {
        self.token = None;
        self.refused = if state == AttemptState::NotStarted { self.refused + 1 } else { 0 };
        if state == AttemptState::NotStarted {
            self.begun.pop();
        }
        self.tried += u32::from(state != AttemptState::NotStarted && !free);
        self.uncounted += u32::from(free);
        if let Some(attempt) = self.attempts.iter_mut().find(|a| a.1 == token) {
            attempt.2 = state;
        }
    }

    fn goes_on(&mut self, def: &StoredJob, state: AttemptState, next: &Next, at_ms: i64) -> Result<(), String> {
        let refused = state == AttemptState::NotStarted;
        let left = self.tried < def.max_attempts;
        match next {
            Next::Requeue => {
                must(refused || (state == AttemptState::Lost && left), "queued again without reason")?;
                must(refused || !def.not_idempotent, "run again without a person")
            }
            Next::Confirm => {
                must(!refused && def.not_idempotent, "a person is asked in vain")?;
                must(left || state == AttemptState::Lost, "asked beyond the budget")
            }
            Next::RetryAt(due) => {
                self.retry_at_ms = Some(*due);
                if refused {
                    return must(self.refused > 3 && *due == at_ms + 1_000, "refused again and again, or not");
                }
                must(self.is_in_time(def, *due), "retried though its time is over by then")?;
                must(left && !def.not_idempotent && state != AttemptState::Lost, "retried without reason")?;
                let (least, most) = backoff(def, self.tried);
                must((least..=most).contains(&(due - at_ms)), &format!("waits {} of {least}..={most}", due - at_ms))
            }
        }
    }

    fn ends(&mut self, def: &StoredJob, record: &RunRecord, now_ms: i64) -> Result<(), String> {
        must(record.generation == self.generation && record.ended_ms == Some(now_ms), "another generation or time")?;
        let failed = matches!(record.state, RunState::Failed | RunState::Timeout);
        must(record.dead_letter == (failed && !def.no_dead_letter), "dead letter or not")?;
        if let Some(token) = self.token {
            let last = record.attempts.last().ok_or("no attempt")?;
            must(last.token == token && last.ended_ms.is_some(), "the running attempt has not ended")?;
            must(last.state != AttemptState::Running, "the running attempt has not ended")?;
            let free = self.is_free(def, last.state, last.error_code.as_deref());
            must(!failed || !free || !self.is_in_time(def, now_ms), "ended by its executor alone")?;
            self.ended(token, last.state, false);
            let asked = def.not_idempotent && last.state == AttemptState::Lost;
            let waits =
                if def.not_idempotent || last.state == AttemptState::Lost { 0 } else { backoff(def, self.tried).1 };
            let spent = self.tried >= def.max_attempts
                || last.permanent && last.state == AttemptState::Failed
                || !self.is_in_time(def, now_ms + waits);
            must(!failed || (spent && !asked), "failed for good with attempts left")?;
            let stopped = matches!(self.stopping, Some(StopReason::Cancel | StopReason::Replace));
            must((record.state == RunState::Canceled) == (stopped && last.state != AttemptState::Success), "canceled")?;
            must((record.state == RunState::Success) == (last.state == AttemptState::Success), "success")?;
        } else if record.state == RunState::Timeout {
            must(!self.is_in_time(def, now_ms), "timed out while it waited, and in time")?;
        }
        let kept = self.attempts.len().min(ATTEMPTS_KEPT);
        let told: Vec<_> = record.attempts.iter().map(|a| (a.attempt, a.token, a.state)).collect();
        must(told == self.attempts[self.attempts.len() - kept..], "the record tells other attempts")?;
        (self.stopping, self.retry_at_ms) = (None, None);
        Ok(())
    }
}

/// Least and most that the attempt after the `tried`-th waits, ms.
fn backoff(def: &StoredJob, tried: u32) -> (i64, i64) {
    let doubled = match def.backoff {
        Backoff::Fixed => 0,
        Backoff::Exponential => tried - 1,
    };
    let base = (def.base_delay_ms as f64 * 2f64.powi(doubled as i32)).min(def.max_delay_ms as f64);
    let spread = base * f64::from(def.retry_jitter_milli) / 1000.0;
    ((base - spread).floor() as i64, (base + spread).ceil() as i64)
}
