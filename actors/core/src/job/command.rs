//! The commands of a job.

use super::{backfill_command::BackfillCommand, bulk_command::BulkCommand, claim::Claimant, held::HeldTimes};
use crate::{
    graph::step::GraphCommand,
    shard::{self, Pause},
};
use campanile_schema::{
    event::SkipReason,
    ids::{Epoch, ExecutorSession, RunId, Token},
    payload::Payload,
    peer::shard::GraphAction,
    record::{RunRecord, Source},
    rpc::executor::Ended,
    stored::{Sealed, StoredJob, audit::CallOrigin, deadline::StoredDeadline},
    text::Text,
    trace::{self, Sampling, TraceContext},
    view::ConfirmDecision,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Ids reserved for one decision: `first .. first + count` of the shard's counter. Unused ones stay gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    pub first: u64,
    pub count: u64,
}

/// All that a decision may know besides the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Guarded wall clock, ms.
    pub now_ms: i64,
    pub ids: Ids,
    pub epoch: Epoch,
    /// Pauses of the system and of the tenant that may hold an instant which is not yet decided.
    pub pauses: Vec<Pause>,
    /// As many runs of the tenant wait as may.
    pub queue_full: bool,
    /// As many runs of the tenant wait as DAGs and hooks may add to: half of what callers may.
    pub queue_half: bool,
    /// Nodes that open DAG runs of the shard may still have.
    pub node_room: usize,
    /// What is behind the decisions cannot keep up: due instants wait undecided, and callers are refused.
    pub overloaded: bool,
    /// When they waited for that. None: never.
    pub held: Option<Arc<HeldTimes>>,
    /// Version of the zone database.
    pub tzdb: &'static str,
    /// Which runs of schedules begin a trace. None: nothing is traced.
    pub sampling: Option<Sampling>,
}

impl Context {
    /// For how long the node itself has held back an instant that was due then, ms.
    pub(super) fn held_since(&self, due_ms: i64) -> i64 {
        self.held.as_ref().map_or(0, |held| held.within(due_ms, self.now_ms))
    }

    /// The tenant or the system is paused.
    pub fn paused(&self) -> Option<SkipReason> {
        shard::lasting(&self.pauses)
    }

    /// The origin of a run that nobody called for, if it begins a trace.
    pub(super) fn origin(&self, run: RunId) -> Option<Arc<CallOrigin>> {
        let trace = self.sampling?.begin(run)?;
        Some(Arc::new(CallOrigin::in_trace(trace)))
    }
}

/// A run that a message makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    pub key: String,
    pub source: Source,
    pub params: Payload,
    pub reason: String,
    pub depth: u32,
    /// It waits for a person: it may have run before a restore.
    pub confirm: bool,
    pub marked: bool,
    /// The span of the run that sent the message.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept::deserialize")]
    pub trace: Option<TraceContext>,
    /// Runs of hooks to which it may lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// Secret params of this run alone, of a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Arc<Sealed>>,
}

/// What a run of a DAG asks of the job of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeAsked {
    pub key: String,
    /// The DAG run, and the place of the node.
    pub dag: RunId,
    pub node: u32,
    /// Of the node's run.
    pub generation: u32,
    pub params: Payload,
    pub timeout_sec: Option<u64>,
    pub logical_ms: Option<i64>,
    pub depth: u32,
    /// It waits for a person: it may have run before a restore.
    pub confirm: bool,
    pub marked: bool,
    /// The DAG run is in the lane of backfills.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    /// The run of the key, when it has ended.
    pub record: Option<Box<RunRecord>>,
    /// The span of the DAG run.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept::deserialize")]
    pub trace: Option<TraceContext>,
    /// Runs of hooks to which it may lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// Until when the run has to end, instead of what the job says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<StoredDeadline>,
    /// A schedule made the DAG run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
}

/// A command to a job that exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Time passed: due instants, retries, timeouts.
    Wake,
    Replace {
        version: u64,
        spec: Box<StoredJob>,
    },
    Pause {
        reason: Option<String>,
    },
    Resume,
    Delete,
    Quarantine {
        reason: String,
    },
    Trigger {
        key: Option<String>,
        params: Option<Payload>,
        reason: Option<String>,
        /// Who calls; the run tells it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<CallOrigin>>,
        /// Who is told when the run has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<Arc<Sealed>>,
    },
    /// A message of another job makes a run. The shard has looked its key up.
    Take(Box<Taken>),
    /// A DAG run starts the run of a node: makes it, or opens it again when it ended in an earlier generation.
    StartNode(Box<NodeAsked>),
    /// A DAG run ends the run of a node, or has it made as ended.
    CancelNode(Box<NodeAsked>),
    /// An open run of a DAG goes on.
    Graph {
        run: RunId,
        step: Box<GraphCommand>,
    },
    /// A person changes a run of a DAG. `record`: it has ended.
    ChangeGraph {
        run: RunId,
        record: Option<Box<RunRecord>>,
        action: Box<GraphAction>,
    },
    /// About a backfill of the job.
    Backfill(Box<BackfillCommand>),
    /// A bulk operation pauses, resumes or deletes it.
    Bulk(Box<BulkCommand>),
    /// The pool has bound the run to an executor.
    Start {
        run: RunId,
        executor: Text,
        session: ExecutorSession,
        /// Whose session it is; the attempt belongs to this credential.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credential: Option<Text>,
        credit_stamp_ms: u64,
    },
    /// An executor says something of an attempt: [`Self::Finish`] or [`Self::Heard`]. It counts only when the attempt is its own.
    Claimed {
        by: Arc<Claimant>,
        claim: Box<Command>,
    },
    /// How an attempt ended. By itself this is the node's own word; an executor's comes as [`Self::Claimed`].
    Finish(Box<Ended>),
    /// The executor is silent.
    Suspect {
        run: RunId,
        token: Token,
    },
    /// It is heard again, or announced the attempt after a restart of the node.
    Heard {
        run: RunId,
        token: Token,
        session: ExecutorSession,
    },
    /// Its lease ended, or it announced that it does not hold the attempt.
    Lost {
        run: RunId,
        token: Token,
    },
    Cancel {
        run: RunId,
        reason: Option<String>,
    },
    Confirm {
        run: RunId,
        decision: ConfirmDecision,
        reason: Option<String>,
    },
    /// A final run again; the record comes from memory or from the view.
    Reopen {
        record: Box<RunRecord>,
        redrive: bool,
        reason: Option<String>,
        /// Also if it was compensated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    Discard {
        record: Box<RunRecord>,
    },
    /// A person gives a run that waits a priority of its own.
    Prioritize {
        run: RunId,
        priority: u16,
    },
    /// The job was restored from a backup; `skip`: instants since then are closed as skipped.
    Restored {
        skip: bool,
    },
}

impl Command {
    /// Ids that the decision may need.
    pub fn ids_wanted(&self) -> u64 {
        use campanile_schema::limits::{BACKFILL_STARTS, IDS_PER_COMMAND, OPEN_RUNS_PER_JOB, RUNS_PER_WAKE};
        match self {
            Self::Wake | Self::Replace { .. } | Self::Pause { .. } | Self::Bulk(_) => RUNS_PER_WAKE,
            Self::Backfill(command) => match **command {
                BackfillCommand::Page(_) => BACKFILL_STARTS as u64,
                BackfillCommand::Create(_) => 1,
                BackfillCommand::Step { .. }
                | BackfillCommand::Pause { .. }
                | BackfillCommand::Resume { .. }
                | BackfillCommand::Cancel { .. } => 0,
            },
            Self::Trigger { .. } | Self::Take(_) | Self::StartNode(_) | Self::CancelNode(_) | Self::Start { .. } => {
                IDS_PER_COMMAND
            }
            Self::Restored { .. } => OPEN_RUNS_PER_JOB as u64,
            Self::Claimed { claim, .. } => claim.ids_wanted(),
            Self::Resume
            | Self::Delete
            | Self::Quarantine { .. }
            | Self::Finish(_)
            | Self::Suspect { .. }
            | Self::Heard { .. }
            | Self::Lost { .. }
            | Self::Cancel { .. }
            | Self::Confirm { .. }
            | Self::Prioritize { .. }
            | Self::Reopen { .. }
            | Self::Discard { .. }
            | Self::Graph { .. }
            | Self::ChangeGraph { .. } => 0,
        }
    }

    /// The run that an executor's word is about; None: executors cannot say this.
    pub(super) fn claimed_run(&self) -> Option<RunId> {
        match self {
            Self::Finish(ended) => Some(ended.run),
            Self::Heard { run, .. } => Some(*run),
            Self::Wake
            | Self::Replace { .. }
            | Self::Pause { .. }
            | Self::Resume
            | Self::Delete
            | Self::Quarantine { .. }
            | Self::Trigger { .. }
            | Self::Take(_)
            | Self::StartNode(_)
            | Self::CancelNode(_)
            | Self::Graph { .. }
            | Self::ChangeGraph { .. }
            | Self::Backfill(_)
            | Self::Bulk(_)
            | Self::Start { .. }
            | Self::Claimed { .. }
            | Self::Suspect { .. }
            | Self::Lost { .. }
            | Self::Cancel { .. }
            | Self::Confirm { .. }
            | Self::Prioritize { .. }
            | Self::Reopen { .. }
            | Self::Discard { .. }
            | Self::Restored { .. } => None,
        }
    }
}
