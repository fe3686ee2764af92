//! What a job is: definition (rarely changed, stored apart) and hot state (the bytes that a passive job keeps).

#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{calendar::book::CalendarBook, graph::compile::Graph, job::graphs::Graphs, retry, schedule::Schedule};
use campanile_schema::{
    event::StopReason,
    frame::{self, DecodeError},
    graph::state::StopCause,
    ids::{ExecutorSession, JobId, RunId, Token},
    job::{ConcurrencyPolicy, JobStatus, JobView, MisfirePolicy},
    limits::{CATCH_UP_RUNS_PER_SEC, GRAPH_ROOM_MS, RUNS_PER_WAKE},
    record::{AttemptRecord, AttemptState, RunRecord, RunState, code},
    stored::{StoredJob, backfill::StoredBackfill, bulk::BulkMark},
    text::Text,
    time::Timestamp,
    view::{RunView, StoppingView},
    wait::WaitCode,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Error code of an attempt that stands for what may have happened after the backup that the store was restored from.
pub(super) const RESTORED: &str = "RESTORED";

/// A run that is not final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenRun {
    #[serde(rename = "d")]
    pub record: Arc<RunRecord>,
    /// Executor session of the running attempt.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<ExecutorSession>,
    /// Credential that the running attempt was started for; None: an earlier release started it.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Text>,
    /// End of RETRY_WAIT.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<i64>,
    /// Set when the executor was told to stop the body: the code of a [`StopReason`].
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<u8>,
    /// When it was told so first.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub stopping_since_ms: Option<i64>,
    /// Ended attempts of this generation that count against `maxAttempts`. Not counted from the record, which keeps the
    /// newest attempts only.
    #[serde(rename = "t", default, skip_serializing_if = "is_zero_u32")]
    pub tried: u32,
    /// Ended attempts of this generation that do not count because their executor shut down or was lost.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero_u32")]
    pub uncounted: u32,
    /// What `maxElapsedSec` and `maxRuntimeSec` count from, where the record does not tell: it keeps the newest attempts
    /// only, and a person may have given the run the whole time anew.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub time_from_ms: Option<i64>,
    /// A run of a DAG that has begun: it has no attempts, and [`Job::graphs`] has its nodes.
    #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
    pub graph: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero_u32(n: &u32) -> bool {
    *n == 0
}

impl OpenRun {
    /// A run that no executor has.
    pub(crate) fn waiting(record: impl Into<Arc<RunRecord>>) -> Self {
        let mut record = record.into();
        if record.graph.is_some() {
            // The job has the nodes of an open run.
            Arc::make_mut(&mut record).graph = None;
        }
        Self {
            record,
            session: None,
            credential: None,
            retry_at_ms: None,
            stopping: None,
            stopping_since_ms: None,
            tried: 0,
            uncounted: 0,
            time_from_ms: None,
            graph: false,
        }
    }
    /// To change it. Whoever shares it, as the job before a decision does, keeps what it has.
    pub(crate) fn record_mut(&mut self) -> &mut RunRecord {
        Arc::make_mut(&mut self.record)
    }
    pub fn id(&self) -> RunId {
        self.record.run
    }
    pub fn state(&self) -> RunState {
        self.record.state
    }
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stopping.and_then(StopReason::from_code)
    }
    /// A body may be running somewhere.
    pub fn has_body(&self) -> bool {
        matches!(self.record.state, RunState::Running | RunState::SuspectedLost) && !self.graph
    }
    /// The attempt whose body may be running.
    pub fn attempt(&self) -> Option<&AttemptRecord> {
        self.record.attempts.last().filter(|a| a.state == AttemptState::Running)
    }
    pub fn token(&self) -> Option<Token> {
        self.attempt().map(|a| a.token)
    }
    /// Attempts of this generation that count against `maxAttempts`, the running one included.
    pub fn counted_attempts(&self) -> u32 {
        self.tried + u32::from(self.attempt().is_some())
    }
}

/// What a passive job keeps in memory, encoded (~40-200 B).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotState {
    #[serde(rename = "s", with = "code")]
    pub status: JobStatus,
    #[serde(rename = "v")]
    pub version: u64,
    #[serde(rename = "a")]
    pub created_ms: i64,
    #[serde(rename = "u")]
    pub updated_ms: i64,
    /// Every instant up to here has an outcome.
    #[serde(rename = "c")]
    pub cursor_ms: i64,
    /// First instant after the cursor (cached; see [`Job::refresh_next_due`]).
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub next_due_ms: Option<i64>,
    /// What FIXED_DELAY counts from: end of the last run, or when an instant was last decided without one (creation,
    /// edit, resume, skip). Never before the cursor.
    #[serde(rename = "b")]
    pub delay_base_ms: i64,
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub run_count: u64,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub last_run_ms: Option<i64>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<u8>,
    /// Earliest instant at which FIRE_ALL_MISSED starts more runs.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub catch_up_ms: Option<i64>,
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<OpenRun>,
    /// The newest one. Format 2.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Arc<StoredBackfill>>,
    /// The bulk operation that paused or resumed it last, unless somebody else did it since. Format 2.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<BulkMark>,
}

impl HotState {
    /// Whether its instants start runs.
    pub fn fires(&self) -> bool {
        #[cfg(feature = "faults")]
        if faults::active(Mutation::ForgetPause) && self.status == JobStatus::Paused {
            return true;
        }
        self.status == JobStatus::Enabled && self.quarantine.is_none()
    }

    /// Whether its runs that have no body stay where they are: the job is paused, by a caller or by its quarantine. Bodies go on.
    pub fn holds_runs(&self) -> bool {
        #[cfg(feature = "faults")]
        if faults::active(Mutation::ForgetPause) {
            return false;
        }
        self.status == JobStatus::Paused || self.quarantine.is_some()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How long after an attempt's timeout the node steps in when the executor has not ended it itself, ms.
pub const TIMEOUT_GRACE_MS: i64 = 1_000;

/// After a wake that started runs of FIRE_ALL_MISSED the next ones wait this long, ms.
pub(crate) const CATCH_UP_PACE_MS: i64 = RUNS_PER_WAKE as i64 * 1000 / CATCH_UP_RUNS_PER_SEC;

/// A whole job in memory.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub def: Arc<StoredJob>,
    pub schedule: Schedule,
    /// Those of its shard. Kept in memory only; None until [`Job::take_calendars`].
    pub(crate) calendars: Option<Arc<CalendarBook>>,
    pub hot: HotState,
    /// Open runs of a DAG. Their shard keeps them beside the bytes of the job.
    pub graphs: Graphs,
    /// The graph of this version of the definition, once a decision has compiled it. Kept in memory only.
    pub(crate) compiled: Option<(u64, Arc<Graph>)>,
}

impl Job {
    pub fn new(id: JobId, def: Arc<StoredJob>, hot: HotState) -> Self {
        let schedule = Schedule::compile(&def).unwrap_or_else(|_| Schedule::never());
        Self { id, def, schedule, calendars: None, hot, graphs: Graphs::new(), compiled: None }
    }

    /// Looks its calendar up, now and after each change of its definition. The caller refreshes the cached next instant where it was computed
    /// with other versions.
    pub fn take_calendars(&mut self, book: &Arc<CalendarBook>) {
        self.calendars = Some(book.clone());
        self.schedule.find_calendar(&self.def, book);
    }

    /// From the bytes of a passive job and its stored definition.
    pub fn decode(id: JobId, def: &[u8], hot: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self::new(id, Arc::new(frame::decode("definition", def)?), frame::decode("hot state", hot)?))
    }

    pub fn encode_hot(&self) -> Vec<u8> {
        frame::encode(&self.hot)
    }
    /// [`Self::encode_hot`] over the bytes of an older state.
    pub fn encode_hot_over(&self, bytes: &mut Box<[u8]>) {
        frame::encode_over(bytes, &self.hot);
    }

    pub fn run(&self, run: RunId) -> Option<&OpenRun> {
        self.hot.runs.iter().find(|r| r.id() == run)
    }
    pub fn run_mut(&mut self, run: RunId) -> Option<&mut OpenRun> {
        self.hot.runs.iter_mut().find(|r| r.id() == run)
    }
    pub fn is_active(&self) -> bool {
        !self.hot.runs.is_empty()
    }
    pub fn fires(&self) -> bool {
        self.hot.fires()
    }

    /// See [`HotState::holds_runs`].
    pub fn holds_runs(&self) -> bool {
        self.hot.holds_runs()
    }

    pub(crate) fn delay_base(&self) -> Option<i64> {
        (!self.schedule.is_fixed_delay() || self.hot.runs.is_empty()).then_some(self.hot.delay_base_ms)
    }

    /// Recomputes the cached next instant; after the cursor, the definition or the zone database changed.
    pub fn refresh_next_due(&mut self) {
        self.hot.next_due_ms = self.schedule.next(self.hot.cursor_ms, self.delay_base());
    }

    /// Instant + its jitter: when it is really due. Before the next instant, so that the order is kept, and within its window.
    pub fn due_with_jitter(&self, at_ms: i64) -> i64 {
        #[cfg(feature = "faults")]
        if faults::active(Mutation::FireEarly) {
            return at_ms - 3_000;
        }
        #[cfg(feature = "faults")]
        if faults::strikes(Mutation::FireLate, at_ms) {
            return at_ms + 8_000;
        }
        if self.def.jitter_sec == 0 {
            return at_ms;
        }
        let most_ms = at_ms + i64::from(self.def.jitter_sec) * 1000;
        let until_ms = self.schedule.next(at_ms, None).map_or(most_ms, |next| next.min(most_ms));
        let room_ms = self.schedule.closing(at_ms, until_ms) - at_ms;
        at_ms + retry::instant_jitter_ms(self.def.jitter_sec, self.id.0, at_ms, room_ms)
    }

    /// FIRE_ALL_MISSED in order: the backlog waits until the active run is final.
    pub(crate) fn backlog_waits(&self, now_ms: i64) -> bool {
        self.def.misfire == MisfirePolicy::FireAllMissed
            && self.def.concurrency != ConcurrencyPolicy::Allow
            && self.is_busy()
            && self.hot.next_due_ms.is_some_and(|due| self.is_misfire(due, now_ms))
    }

    /// Whether an instant is decided later than the misfire threshold allows.
    pub fn is_misfire(&self, at_ms: i64, now_ms: i64) -> bool {
        now_ms - self.due_with_jitter(at_ms) > i64::from(self.def.misfire_threshold_sec) * 1000
    }

    /// When FIRE_ALL_MISSED may go on with misfires; other instants do not wait. A pace that lies further ahead was set
    /// before the clock was put back: it is over.
    pub(crate) fn pace_until(&self, now_ms: i64) -> Option<i64> {
        let pace = self.hot.catch_up_ms.filter(|at| *at > now_ms && *at <= now_ms + CATCH_UP_PACE_MS)?;
        self.hot.next_due_ms.is_some_and(|due| self.is_misfire(due, now_ms)).then_some(pace)
    }

    /// When the job wants to be woken; None = not by time.
    pub fn wake_at(&self, now_ms: i64) -> Option<i64> {
        [self.wake_for_instants(now_ms), self.wake_for_runs(now_ms)].into_iter().flatten().min()
    }

    /// When an instant is to be decided.
    pub fn wake_for_instants(&self, now_ms: i64) -> Option<i64> {
        let due = self.hot.next_due_ms.filter(|_| self.fires() && !self.backlog_waits(now_ms))?;
        Some(self.due_with_jitter(due).max(self.pace_until(now_ms).unwrap_or(i64::MIN)))
    }

    /// When a retry or the end of an attempt's time is due, or a DAG run goes on by itself.
    pub fn wake_for_runs(&self, now_ms: i64) -> Option<i64> {
        let mut wake: Option<i64> = None;
        let mut at = |t: i64| wake = Some(wake.map_or(t, |w| w.min(t)));
        for run in &self.hot.runs {
            if let Some(retry) = run.retry_at_ms {
                at(retry);
            }
            if let (true, None, Some(attempt)) = (run.has_body(), run.stopping, run.attempt()) {
                at(self.attempt_deadline(run, attempt));
            }
            if let Some(limit) = self.limit_of_waiting(run) {
                at(limit.last_start_ms + 1);
            }
        }
        for open in self.graphs.values() {
            if open.run.wants_wake() {
                at(now_ms);
            }
            if let Some(deadline) = open.deadline_ms().filter(|_| !open.run.is_stopped_by(StopCause::Timeout)) {
                at(deadline);
            }
        }
        if self.awaits_room() {
            at(now_ms + GRAPH_ROOM_MS);
        }
        wake
    }

    pub fn view(&self) -> JobView {
        JobView {
            job_id: self.id,
            status: self.hot.status,
            version: self.hot.version,
            created_at: Timestamp(self.hot.created_ms),
            updated_at: Timestamp(self.hot.updated_ms),
            next_fire_at: self.hot.next_due_ms.filter(|_| self.fires()).map(Timestamp),
            last_run_at: self.hot.last_run_ms.map(Timestamp),
            last_run_state: self.hot.last_state.and_then(RunState::from_code),
            run_count: self.hot.run_count,
            quarantine_reason: self.hot.quarantine.clone(),
            spec: self.def.to_spec(),
        }
    }

    pub(super) fn held_because(&self) -> String {
        match &self.hot.quarantine {
            Some(why) => {
                let sentence = format!("the job is in quarantine ({why}); its runs start after it is resumed");
                WaitCode::JobQuarantined.because(sentence)
            }
            None => WaitCode::JobPaused.because("the job is paused; its runs start after it is resumed"),
        }
    }

    /// A live run as callers see it; the reason to wait that the job itself knows.
    pub fn run_view(&self, open: &OpenRun) -> RunView {
        let mut view = RunView::from(&*open.record);
        view.stopping = open
            .stop_reason()
            .filter(|_| open.has_body())
            .map(|reason| StoppingView { reason, since: open.stopping_since_ms.map(Timestamp) });
        view.next_retry_at = open.retry_at_ms.map(Timestamp);
        view.wait_reason = match open.state() {
            RunState::Pending if self.is_dag() && self.holds_runs() => Some(self.held_because()),
            RunState::Pending if self.awaits_room() => {
                let sentence = "the shard has as many nodes of open DAG runs as it may; the run begins when some have ended";
                Some(WaitCode::NoNodeRoom.because(sentence))
            }
            RunState::Pending => {
                let sentence = format!("{} holds it until the active run has ended", self.def.concurrency);
                Some(WaitCode::HeldByConcurrencyPolicy.because(sentence))
            }
            RunState::Queued | RunState::RetryWait if self.holds_runs() => Some(self.held_because()),
            // The quota and the pool know.
            RunState::Queued => None,
            RunState::RetryWait => {
                Some(WaitCode::WaitingForRetry.because("the next attempt starts at nextRetryAt"))
            }
            RunState::NeedsConfirmation => {
                let last = open.record.attempts.last().and_then(|attempt| attempt.error_code.as_deref());
                Some(WaitCode::NeedsConfirmation.because(if last == Some(RESTORED) {
                    "the job is not idempotent and the run may have run after the backup that was restored; confirm it"
                } else {
                    "the job is not idempotent and its executor was lost or failed; confirm the run"
                }))
            }
            RunState::SuspectedLost => {
                Some(WaitCode::SuspectedLost.because("its executor is silent; it is taken back when the lease ends"))
            }
            RunState::Running if self.graphs.get(&open.id()).is_some_and(|graph| graph.run.paused().is_some() && !graph.run.is_stopped()) => {
                let sentence = "the DAG run is paused; no further node of it starts until it is resumed";
                Some(WaitCode::DagPaused.because(sentence))
            }
            RunState::Running => view.stopping.as_ref().map(|stopping| {
                WaitCode::Stopping.because(format!(
                    "its body was told to stop ({}) and has not ended; when you know that it has, confirm the run as ENDED",
                    stopping.reason
                ))
            }),
            RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => None,
        };
        view
    }
}
