//! What the rules found, and the verdict: green only when nothing was found.

use super::{History, Usage, story};
use crate::{limits::VIOLATIONS_KEPT, run_dir::lines::FaultEvent, workload::dags::graph_of};
use campanile_schema::record::Source;
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// What was broken. The text of a kind is the promise, told as what happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum ViolationKind { $($(#[$doc])* $name),+ }
        impl ViolationKind {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// One sentence for people.
            pub fn text(self) -> &'static str { match self { $(Self::$name => $text),+ } }
        }
    };
}

kinds! {
    ExportIncomplete = "the history is not complete, so nothing is proven",
    LogDamaged = "a line of the run directory cannot be read",
    NotCheckable = "the oracle cannot follow a schedule of the workload",
    CreateLost = "an acknowledged create is not there",
    TriggerLost = "an acknowledged trigger has no run",
    TriggerDoubled = "one caller's key made two runs",
    TriggerRefusedYetRun = "a refused trigger has a run",
    TriggerUnasked = "a manual run whose key nobody sent",
    OutcomeMissing = "a due instant has no outcome",
    OutcomeDoubled = "a due instant has two outcomes",
    OutcomeUndue = "an outcome for an instant that was not due",
    LedgerNotJoined = "the ledger's pages or entries do not join",
    OutcomeUnjustified = "an outcome that the job's policy or the facts do not allow",
    RunMissing = "a fired instant names no run that exists",
    RunDoubled = "two runs for one due instant",
    RunWithoutInstant = "a scheduled run that the ledger does not know",
    RunNotEnded = "a run neither ended nor says why",
    AcceptedTwice = "two accepted outcomes in one generation of a run",
    AttemptsExceeded = "more failed attempts than maxAttempts in one generation",
    StartUnknown = "a body started without an attempt in the run's record",
    StartEarly = "a body started before its instant was due",
    StartedWhilePaused = "a body started for an instant after an acknowledged pause",
    StartedAfterDelete = "a body started for an instant after an acknowledged delete",
    SuccessWithoutStart = "an attempt succeeded that no executor started",
    ResultChanged = "an attempt's recorded outcome is not the one its body had",
    TokenReused = "one token was started twice",
    TokenNotHigher = "a run was started again with a token that is not higher",
    DoubleStartUnexplained = "a run was started again although its earlier attempt had not ended",
    LostWithoutCause = "a run was started again as lost although its executor lived and was heard",
    NotIdempotentAgain = "a run that is not idempotent was started again without a person's word",
    BodiesOverlap = "two bodies of one job ran at once against its concurrency policy",
    QuotaExceeded = "more bodies of a tenant ran at once than its quota has",
    RateExceeded = "far more runs of a tenant began than its rate allows",
    StaleAccepted = "a result was accepted under a token that a later attempt had superseded",
    SkippedYetRan = "a body ran for an instant that the ledger says did not fire",
    BodyOfNobody = "a body of a job that no caller created",
    StartedLate = "a body started late, and nothing held it back",
    CreatedAtUntrue = "a run was not made when the node says",
    EndedWithoutCause = "a run or an attempt ended, and nobody wrote down a cause",
    AttemptEndInvented = "an attempt timed out before its time was over, or was canceled by nobody",
    RetryMissing = "a run failed for good with attempts left",
    BackoffNotKept = "a run was tried again sooner or later than its policy says",
    DeadLetterWrong = "a run that failed for good is no dead letter, or another is one",
    OrderBroken = "runs of one job did not begin in their order",
    ParamsWrong = "a body got other params or secrets than its job and caller gave",
    PayloadChanged = "the history shows another result or error than the body handed in",
    DelaySilent = "a job with a fixed delay fell silent",
    QueueNotFull = "an instant was skipped for a full queue that was not full",
    ConfirmationUndue = "a person was asked about a job that is idempotent",
    StartedAfterCancel = "a body started after an acknowledged cancel of its run",
    ReopenLost = "an acknowledged retry or redrive is not there",
    ReopenUnasked = "a generation of a run that nobody asked for",
    HookMissing = "a run failed for good, and its hook was not started",
    HookDoubled = "a hook was started twice for one end of a run",
    HookUnasked = "a run of a hook that no run explains",
    CompensationDoubled = "what a run did was undone twice",
    DagOrderBroken = "a node of a DAG began before those that it depends on had ended",
    DagNodeUndue = "a node of a DAG ran that its edges keep from running, or that no DAG has",
    DagNodeDoubled = "a node of a DAG has two runs",
    DagLeftBehind = "a DAG ended without one of its nodes, or its nodes ended without it",
    DagStateWrong = "a DAG or one of its nodes did not end as the runs of its nodes say",
    BackfillMissing = "a backfill did not run an instant that was missing",
    BackfillDoubled = "backfills ran an instant twice",
    BackfillUnasked = "a run of a backfill that nobody asked for",
    BackfillTooMany = "more bodies of a backfill ran at once than was asked for",
    NeverUsed = "callers never did something that they are there for, so nothing is shown of it",
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}: {}", self.text())
    }
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    pub kind: ViolationKind,
    pub job: Option<u64>,
    pub run: Option<u64>,
    /// The due instant or moment that it is about, milliseconds since 1970 UTC.
    pub at_ms: Option<i64>,
    pub text: String,
}

/// How much was looked at: a green verdict over nothing is worth nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub jobs: u64,
    pub jobs_deleted: u64,
    /// Deleted jobs whose ledger the API no longer shows; their outcomes are not judged, their starts are.
    pub ledgers_gone: u64,
    pub due_instants: u64,
    /// By outcome, in instants.
    pub outcomes: BTreeMap<String, u64>,
    /// By state.
    pub runs: BTreeMap<String, u64>,
    pub triggers_acknowledged: u64,
    pub creates_acknowledged: u64,
    pub calls_unknown: u64,
    /// Runs of DAGs, and runs of their nodes.
    pub dag_runs: u64,
    pub dag_nodes: u64,
    pub bodies_started: u64,
    pub bodies_without_end: u64,
    /// Bodies that were a second or later start of their run and had a good reason.
    pub restarts_explained: u64,
    pub node_kills: u64,
    pub executor_kills: u64,
    /// Longest time from a kill to the node's being ready again, milliseconds.
    pub longest_outage_ms: i64,
    pub torn_lines: u64,
    pub used: Usage,
}

impl Counts {
    fn of(history: &History) -> Self {
        let kills = |event| history.faults.iter().filter(|f| f.event == event).count() as u64;
        let triggers = history.jobs.values().flat_map(|j| &j.triggers);
        let is_dag = |run: &&super::Run| history.jobs.get(&run.job_id).is_some_and(|job| graph_of(&job.spec).is_some());
        let outages = history.outages.iter().map(|o| o.to_us.saturating_sub(o.from_us) / 1000);
        let mut counts = Self {
            jobs: history.jobs.len() as u64,
            jobs_deleted: history.jobs.values().filter(|j| j.deleted.is_some()).count() as u64,
            creates_acknowledged: history.jobs.len() as u64,
            triggers_acknowledged: triggers.filter(|t| t.ack_us.is_some()).count() as u64,
            calls_unknown: history.calls_unknown,
            dag_runs: history.runs.values().filter(is_dag).count() as u64,
            dag_nodes: history.runs.values().filter(|run| run.source == Source::Dag).count() as u64,
            bodies_started: history.bodies.values().map(|b| b.len() as u64).sum(),
            bodies_without_end: history.bodies.values().flatten().filter(|b| b.end.is_none()).count() as u64,
            node_kills: kills(FaultEvent::NodeKilled),
            executor_kills: kills(FaultEvent::ExecutorKilled),
            longest_outage_ms: outages.max().unwrap_or(0),
            torn_lines: history.torn_lines,
            used: Usage::of(history),
            ..Self::default()
        };
        for run in history.runs.values() {
            *counts.runs.entry(run.state.to_string()).or_default() += 1;
        }
        counts
    }
}

/// Collects violations; bounded per kind.
pub struct Findings<'a> {
    history: &'a History,
    kept: BTreeMap<ViolationKind, Vec<Violation>>,
    totals: BTreeMap<ViolationKind, u64>,
    pub counts: Counts,
}

impl<'a> Findings<'a> {
    pub fn new(history: &'a History) -> Self {
        Self { history, kept: BTreeMap::new(), totals: BTreeMap::new(), counts: Counts::of(history) }
    }

    pub fn add(&mut self, violation: Violation) {
        *self.totals.entry(violation.kind).or_default() += 1;
        let kept = self.kept.entry(violation.kind).or_default();
        if kept.len() < VIOLATIONS_KEPT {
            kept.push(violation);
        }
    }

    /// About a job and, where known, its instant.
    pub fn of_job(&mut self, kind: ViolationKind, job: u64, at_ms: Option<i64>, text: impl Into<String>) {
        self.add(Violation { kind, job: Some(job), run: None, at_ms, text: text.into() });
    }

    /// About a run.
    pub fn of_run(&mut self, kind: ViolationKind, job: u64, run: u64, at_ms: Option<i64>, text: impl Into<String>) {
        self.add(Violation { kind, job: Some(job), run: Some(run), at_ms, text: text.into() });
    }

    /// About the history as a whole.
    pub fn of_all(&mut self, kind: ViolationKind, text: impl Into<String>) {
        self.add(Violation { kind, job: None, run: None, at_ms: None, text: text.into() });
    }

    pub fn into_verdict(self) -> Verdict {
        let history = self.history;
        let found = self
            .kept
            .into_iter()
            .map(|(kind, violations)| {
                let (example, story) = violations
                    .iter()
                    .map(|v| (v.clone(), story::tell(history, v)))
                    .min_by_key(|(_, story)| story.len())
                    .unwrap_or_else(|| {
                        (Violation { kind, job: None, run: None, at_ms: None, text: String::new() }, Vec::new())
                    });
                ViolationGroup {
                    kind,
                    count: self.totals.get(&kind).copied().unwrap_or(0),
                    promise: kind.text(),
                    example,
                    story,
                    kept: violations,
                }
            })
            .collect::<Vec<_>>();
        Verdict { green: found.is_empty(), counts: self.counts, found }
    }
}

/// All violations of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ViolationGroup {
    pub kind: ViolationKind,
    pub count: u64,
    pub promise: &'static str,
    /// The one with the shortest story.
    pub example: Violation,
    pub story: Vec<String>,
    /// The first of them, at most [`VIOLATIONS_KEPT`].
    #[serde(skip)]
    pub kept: Vec<Violation>,
}

/// Green, or what was broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub green: bool,
    pub counts: Counts,
    pub found: Vec<ViolationGroup>,
}

impl Verdict {
    pub fn has(&self, kind: ViolationKind) -> bool {
        self.found.iter().any(|f| f.kind == kind)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        writeln!(
            f,
            "jobs {} (deleted {}, ledgers gone {}), due instants {}",
            c.jobs, c.jobs_deleted, c.ledgers_gone, c.due_instants
        )?;
        writeln!(f, "outcomes {:?}", c.outcomes)?;
        writeln!(
            f,
            "runs {:?}, bodies {} (no end seen {}), restarts with a reason {}",
            c.runs, c.bodies_started, c.bodies_without_end, c.restarts_explained
        )?;
        if c.dag_runs > 0 {
            writeln!(f, "DAGs: runs {}, runs of nodes {}", c.dag_runs, c.dag_nodes)?;
        }
        writeln!(
            f,
            "acknowledged: creates {}, triggers {}; calls without an answer {}",
            c.creates_acknowledged, c.triggers_acknowledged, c.calls_unknown
        )?;
        writeln!(
            f,
            "kills: node {} (longest outage {} ms), executors {}; torn lines {}",
            c.node_kills, c.longest_outage_ms, c.executor_kills, c.torn_lines
        )?;
        writeln!(f, "{}", c.used)?;
        for found in &self.found {
            writeln!(f, "\nRED {} x {}", found.count, found.kind)?;
            writeln!(f, "  {}", found.example.text)?;
            for line in &found.story {
                writeln!(f, "    {line}")?;
            }
        }
        write!(f, "\nVERDICT: {}", if self.green { "green" } else { "RED" })
    }
}
