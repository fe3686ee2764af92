//! A run directory in memory, indexed by job and run. Files are read in `load`, callers' lines joined in `calls`.

use crate::run_dir::lines::{ExecutorEvent, ExecutorLine, FaultEvent, FaultLine, LedgerLine, Meta, Verb};
use campanile_schema::{
    event::SkipReason,
    job::JobSpec,
    payload::Payload,
    record::{AttemptState, RunState, Source},
    stored::backfill::BackfillMode,
    time::Timestamp,
    view::{ConfirmDecision, LedgerView, dag::DagRunView},
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// The last part of an id is its slot, which tells its shard.
const SLOTS: u64 = 4096;

/// A pause as its caller saw it; an end that was never sent or acknowledged is None.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    pub sent_us: i64,
    pub ack_us: Option<i64>,
    pub resume_sent_us: Option<i64>,
    pub resume_ack_us: Option<i64>,
}

impl Pause {
    pub(super) fn begun(sent_us: i64, ack_us: Option<i64>) -> Self {
        Self { sent_us, ack_us, resume_sent_us: None, resume_ack_us: None }
    }

    /// When it was certainly over; the end of time when nobody knows.
    pub fn over_us(&self) -> i64 {
        self.resume_ack_us.unwrap_or(i64::MAX / 2)
    }
}

/// A definition of a job, from a create or an edit.
#[derive(Clone, Debug)]
pub struct Version {
    pub spec: JobSpec,
    pub sent_us: i64,
    /// None: nobody knows whether it was done.
    pub ack_us: Option<i64>,
}

/// A call about a run that was not refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptedCall {
    pub run: u64,
    pub sent_us: i64,
    pub ack_us: Option<i64>,
}

/// A person's decision about a run that waited for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confirmed {
    pub asked: AcceptedCall,
    pub decision: ConfirmDecision,
}

/// A run that was started again by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reopened {
    pub asked: AcceptedCall,
    /// The generation that the answer named.
    pub generation: Option<u32>,
    /// So many tries of the call may have been done: one that got no answer is done again when the run has failed once more.
    pub at_most: u32,
}

/// A backfill as its caller asked for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AskedBackfill {
    pub id: Option<u64>,
    pub mode: BackfillMode,
    /// First and last instant, both included.
    pub from_ms: i64,
    pub to_ms: i64,
    pub parallelism: i64,
    pub unknown_run: bool,
    pub sent_us: i64,
    pub ack_us: Option<i64>,
    /// Somebody asked for its cancel.
    pub canceled_us: Option<i64>,
}

/// A manual trigger as its caller saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    pub key: String,
    /// What was asked to be laid over the job's params.
    pub params: Option<Payload>,
    pub sent_us: i64,
    pub ack_us: Option<i64>,
    pub run: Option<u64>,
    /// Refused, and no try of it went without an answer.
    pub refused: Option<String>,
}

/// A job that a caller created.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: u64,
    /// As it was created.
    pub spec: JobSpec,
    /// The create, and each edit that was not refused, in order.
    pub versions: Vec<Version>,
    pub create_sent_us: i64,
    pub create_ack_us: i64,
    pub pauses: Vec<Pause>,
    /// Pauses of its tenant and of the system, with the reason that instants get.
    pub pauses_above: Vec<(Pause, SkipReason)>,
    /// Sent, acknowledged.
    pub deleted: Option<(i64, Option<i64>)>,
    pub triggers: Vec<Trigger>,
    pub confirmed: Vec<Confirmed>,
    pub canceled: Vec<AcceptedCall>,
    pub discarded: Vec<AcceptedCall>,
    /// Retries and redrives.
    pub reopened: Vec<Reopened>,
    pub backfills: Vec<AskedBackfill>,
    pub ledger: Vec<LedgerView>,
    pub ledger_error: Option<String>,
}

impl Job {
    /// Definitions that may have been in force at some moment from `from_us` to `to_us`.
    pub fn in_force(&self, from_us: i64, to_us: i64) -> impl Iterator<Item = &JobSpec> {
        self.versions.iter().enumerate().filter_map(move |(n, version)| {
            // A later one that was acknowledged has taken its place.
            let replaced_us = self.versions.iter().skip(n + 1).find_map(|later| later.ack_us).unwrap_or(i64::MAX);
            (version.sent_us <= to_us && from_us <= replaced_us).then_some(&version.spec)
        })
    }

    /// Pauses of the job, its tenant and the system.
    pub fn all_pauses(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.iter().chain(self.pauses_above.iter().map(|(pause, _)| pause))
    }
}

/// What the checker needs of a `RunView`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub run_id: u64,
    pub job_id: u64,
    pub state: RunState,
    pub source: Source,
    pub logical_time: Option<Timestamp>,
    pub key: Option<String>,
    pub generation: u32,
    pub attempt_count: u32,
    pub next_retry_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub wait_reason: Option<String>,
    #[serde(default)]
    pub dead_letter: bool,
    #[serde(default)]
    pub result: Option<Payload>,
    #[serde(default)]
    pub reason: Option<String>,
    pub attempts: Vec<Attempt>,
    #[serde(default)]
    pub backfill_id: Option<u64>,
    /// Of the run of a DAG's node: the run of the DAG, and the node's place in the DAG.
    #[serde(default)]
    pub dag_run_id: Option<u64>,
    #[serde(default)]
    pub dag_node: Option<u32>,
}

/// What the checker needs of an `AttemptView`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub attempt: u32,
    pub generation: u32,
    pub token: u64,
    pub state: AttemptState,
    pub executor_id: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    #[serde(default)]
    pub error_code: Option<String>,
    #[serde(default)]
    pub permanent: bool,
}

impl Run {
    /// It is in the lane of backfills: the policies of its job do not see it beside live runs, but where one run is allowed.
    pub fn is_back(&self) -> bool {
        matches!(self.source, Source::Backfill | Source::Replay)
    }

    pub fn attempt_of(&self, token: u64) -> Option<&Attempt> {
        self.attempts.iter().find(|a| a.token == token)
    }
}

/// A body that an executor started.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Index into [`History::executors`].
    pub executor: usize,
    pub start_us: i64,
    pub end: Option<(i64, AttemptState)>,
    pub run: u64,
    pub job: u64,
    pub token: u64,
    pub attempt: u32,
    pub generation: u32,
    pub epoch: u64,
    pub logical: Option<i64>,
    pub params: Option<Payload>,
    pub secrets: BTreeMap<String, String>,
    pub result: Option<Payload>,
    pub error: Option<String>,
    pub permanent: bool,
}

/// An executor process.
#[derive(Clone, Debug, PartialEq)]
pub struct Executor {
    /// Its file's name without `.jsonl`.
    pub name: String,
    pub killed_us: Option<i64>,
    /// Times in which it stood still: from, to.
    pub frozen_us: Vec<(i64, i64)>,
    /// Times in which owners of shards could not hear it.
    pub unheard: Vec<Disturbance>,
}

/// A time in which the node was down, or up and not yet answering.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    pub from_us: i64,
    pub to_us: i64,
    /// It came back from a backup that was made when the outage began: what it was told since, before it went down, is forgotten.
    pub restored: bool,
}

impl Outage {
    pub fn holds(&self, t_us: i64) -> bool {
        (self.from_us..=self.to_us).contains(&t_us)
    }
}

/// A time in which something that was done to a cluster explains what becomes of some of its shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    pub from_us: i64,
    pub to_us: i64,
    /// None: all.
    pub shards: Option<Vec<u16>>,
}

impl Disturbance {
    fn of(fault: &FaultLine) -> Self {
        Self { from_us: fault.t_us, to_us: fault.until_us.unwrap_or(fault.t_us), shards: fault.shards.clone() }
    }

    /// It is about this shard. None: nobody knows which shard it is, so only what is about all of them counts.
    pub fn is_about(&self, shard: Option<u16>) -> bool {
        self.shards.as_ref().is_none_or(|shards| shard.is_some_and(|shard| shards.contains(&shard)))
    }
}

/// All that is known of a run of the scheduler.
#[derive(Debug, Default)]
pub struct History {
    pub meta: Option<Meta>,
    pub jobs: HashMap<u64, Job>,
    pub runs: HashMap<u64, Run>,
    /// Run ids of each job, in order of their ids.
    pub runs_of: HashMap<u64, Vec<u64>>,
    /// Runs of the nodes of each DAG run, by the node's place in the DAG; of one node in order of their ids.
    pub nodes_of: HashMap<u64, BTreeMap<u32, Vec<u64>>>,
    /// Runs of DAGs with their nodes, as the API shows them.
    pub dags: HashMap<u64, DagRunView>,
    /// Bodies of each run, in order of their starts.
    pub bodies: HashMap<u64, Vec<Body>>,
    pub executors: Vec<Executor>,
    pub faults: Vec<FaultLine>,
    pub outages: Vec<Outage>,
    pub disturbances: Vec<Disturbance>,
    /// Creates that were acknowledged without a job id, and lines that cannot be read: file, line, why.
    pub damaged: Vec<String>,
    pub calls_unknown: u64,
    pub calls_acknowledged: BTreeMap<Verb, u64>,
    /// When creates were sent of which nobody knows whether they were done.
    pub open_creates: Vec<i64>,
    pub tenant_pauses: HashMap<String, Vec<Pause>>,
    pub system_pauses: Vec<Pause>,
    pub torn_lines: u64,
    /// Ids that `runs.jsonl` holds more than once.
    pub runs_repeated: Vec<u64>,
}

impl History {
    /// The lines of one executor process, in the order of its file.
    pub fn add_executor(&mut self, name: &str, lines: Vec<ExecutorLine>) {
        let executor = self.executors.len();
        self.executors.push(Executor {
            name: name.to_owned(),
            killed_us: None,
            frozen_us: Vec::new(),
            unheard: Vec::new(),
        });
        for line in lines {
            match line.event {
                ExecutorEvent::Up | ExecutorEvent::Refused => {}
                ExecutorEvent::Start => self.bodies.entry(line.run).or_default().push(Body {
                    executor,
                    start_us: line.t_us,
                    end: None,
                    run: line.run,
                    job: line.job,
                    token: line.token,
                    attempt: line.attempt,
                    generation: line.generation,
                    epoch: line.epoch,
                    logical: line.logical,
                    params: line.params,
                    secrets: line.secrets,
                    result: None,
                    error: None,
                    permanent: false,
                }),
                ExecutorEvent::End => {
                    let body = self.bodies.get_mut(&line.run).and_then(|b| {
                        b.iter_mut().rev().find(|b| b.executor == executor && b.token == line.token && b.end.is_none())
                    });
                    match (body, line.outcome) {
                        (Some(body), Some(outcome)) => {
                            body.end = Some((line.t_us, outcome));
                            (body.result, body.error, body.permanent) = (line.result, line.error, line.permanent);
                        }
                        (None, _) | (_, None) => {
                            self.damaged.push(format!(
                                "{name}: an end of run {} token {} without its start or outcome",
                                line.run, line.token
                            ));
                        }
                    }
                }
            }
        }
    }

    pub fn add_run(&mut self, run: Run) {
        self.runs_of.entry(run.job_id).or_default().push(run.run_id);
        if let (Some(dag), Some(node)) = (run.dag_run_id, run.dag_node) {
            self.nodes_of.entry(dag).or_default().entry(node).or_default().push(run.run_id);
        }
        if let Some(before) = self.runs.insert(run.run_id, run) {
            self.runs_repeated.push(before.run_id);
        }
    }

    pub fn add_ledger(&mut self, line: LedgerLine) {
        // Jobs whose create got no answer may exist; nothing was promised about them.
        if let Some(job) = self.jobs.get_mut(&line.job.0) {
            job.ledger.extend(line.page);
            job.ledger_error = line.error.or(job.ledger_error.take());
        }
    }

    /// Orders and derives what the rules look up; call once, after everything was added.
    pub fn finish(&mut self) {
        self.bodies.values_mut().for_each(|bodies| bodies.sort_by_key(|b| b.start_us));
        self.runs_of.values_mut().for_each(|runs| runs.sort_unstable());
        self.nodes_of.values_mut().flat_map(BTreeMap::values_mut).for_each(|runs| {
            runs.sort_unstable();
            runs.dedup();
        });
        self.faults.sort_by_key(|f| f.t_us);
        let (mut down_since, mut restored) = (None, false);
        for fault in &self.faults {
            match fault.event {
                FaultEvent::NodeKilled => down_since = Some(down_since.unwrap_or(fault.t_us)),
                FaultEvent::NodeReady => {
                    if let Some(from_us) = down_since.take() {
                        self.outages.push(Outage { from_us, to_us: fault.t_us, restored });
                    }
                    restored = false;
                }
                FaultEvent::ExecutorKilled | FaultEvent::ExecutorFrozen | FaultEvent::ExecutorThawed => {
                    let named = self.executors.iter_mut().find(|e| Some(e.name.as_str()) == fault.executor.as_deref());
                    let Some(executor) = named else { continue };
                    match (fault.event, executor.frozen_us.last_mut()) {
                        (FaultEvent::ExecutorFrozen, _) => executor.frozen_us.push((fault.t_us, i64::MAX)),
                        (FaultEvent::ExecutorThawed, Some(frozen)) => frozen.1 = fault.t_us,
                        (FaultEvent::ExecutorThawed, None) => {}
                        (_, _) => executor.killed_us = Some(fault.t_us),
                    }
                }
                FaultEvent::NodeRestored => restored = true,
                FaultEvent::Disturbed => self.disturbances.push(Disturbance::of(fault)),
                FaultEvent::ExecutorUnheard => {
                    let named = self.executors.iter_mut().find(|e| Some(e.name.as_str()) == fault.executor.as_deref());
                    if let Some(executor) = named {
                        executor.unheard.push(Disturbance::of(fault));
                    }
                }
                FaultEvent::NodeStarted | FaultEvent::ExecutorStarted => {}
            }
        }
        if let Some(from_us) = down_since {
            self.outages.push(Outage { from_us, to_us: i64::MAX, restored });
        }
        for job in self.jobs.values_mut() {
            let tenant = self.tenant_pauses.get(&job.spec.tenant_id).map(Vec::as_slice).unwrap_or_default();
            job.pauses_above = tenant.iter().map(|pause| (*pause, SkipReason::TenantPaused)).collect();
            job.pauses_above.extend(self.system_pauses.iter().map(|pause| (*pause, SkipReason::SystemPaused)));
        }
    }

    /// The shard of a job, where the history tells how many there are.
    pub fn shard_of(&self, job: u64) -> Option<u16> {
        let shards = self.meta.as_ref()?.shards.filter(|shards| *shards > 0)?;
        u16::try_from(job % SLOTS % u64::from(shards)).ok()
    }

    /// Something was done to the cluster before; what it was may be a clock that was set wrong.
    pub fn clocks_may_differ(&self, at_us: i64) -> bool {
        self.disturbances.iter().any(|d| d.from_us <= at_us)
    }

    /// The executor process that the record names for an attempt.
    pub fn executor_of(&self, attempt: &Attempt) -> Option<&Executor> {
        self.executors.iter().find(|executor| executor.name == attempt.executor_id)
    }

    /// The moment an executor stopped living; `i64::MAX` when it was never killed.
    pub fn died_us(&self, executor: usize) -> i64 {
        self.executors.get(executor).and_then(|e| e.killed_us).unwrap_or(i64::MAX)
    }
}
