//! The effects that must happen outside once a decision is durable, and the answer to the caller.

use crate::dispatch::target::Verdict;
use campanile_schema::{
    ids::{ExecutorSession, JobId, RunId, Token},
    kinds::ActionKind,
    record::RunRecord,
    rpc::executor::Held,
    stored::{Sealed, StoredAction, StoredJob},
    text::Text,
};
use campanile_schema::{
    rpc::executor::Assignment,
    view::{RunView, backfill::BackfillView},
};
use serde::{Deserialize, Serialize};

/// What a run needs of an executor.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    Handler(Text),
    Command,
    Http,
}

impl Need {
    pub fn of(job: &StoredJob) -> Self {
        match &job.action {
            None => Self::Handler(job.name.clone()),
            Some(StoredAction::Handler { name }) => Self::Handler(name.clone()),
            Some(StoredAction::Command { .. }) => Self::Command,
            // Only the executors of the node's own pool are asked for a channel.
            Some(StoredAction::Http { .. } | StoredAction::Webhook { .. }) => Self::Http,
            // Its runs never wait for an executor.
            Some(StoredAction::Dag(_)) => Self::Handler(job.name.clone()),
        }
    }

    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Handler(_) => ActionKind::Handler,
            Self::Command => ActionKind::Command,
            Self::Http => ActionKind::Http,
        }
    }
}

/// A run that wants a permit and an executor.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingRun {
    pub run: RunId,
    pub job: JobId,
    pub tenant: Text,
    pub pool: Text,
    pub priority: u16,
    /// Backfill lane: after all live runs.
    pub backfill: bool,
    pub need: Need,
    pub cpu: f64,
    pub memory_mb: u64,
    pub storage_mb: u64,
    pub since_ms: i64,
    /// The downstream that its body calls.
    pub target: Option<Text>,
    /// An attempt of it has failed before.
    pub retry: bool,
}

/// An assignment with its way to the executor; secrets are opened by the shell when it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Assign {
    pub session: ExecutorSession,
    pub assignment: Box<Assignment>,
    pub secrets: Option<Sealed>,
    /// When the attempt was decided.
    pub decided_ms: i64,
}

/// Something to do outside. `pending` can rebuild all of them but `Ended`, `Stop` and `Forget` of attempts that are gone.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask for a permit and an executor.
    Enqueue(Box<WaitingRun>),
    /// It no longer waits (canceled while queued).
    Dequeue { run: RunId, tenant: Text, pool: Text },
    /// Send it to the executor it was bound to.
    Assign(Assign),
    /// The body ended or is given up: permit and slot are free.
    Ended {
        run: RunId,
        token: Token,
        session: Option<ExecutorSession>,
        tenant: Text,
        /// What it says about the run's target.
        verdict: Verdict,
    },
    /// Tell the executor to stop the body.
    Stop { session: ExecutorSession, held: Held },
    /// Tell the executor that an operator says the body has ended: its slot is free.
    Forget { session: ExecutorSession, held: Held },
    /// After a restart: an attempt of before; its lease starts anew. Also when an attempt is another session's now: `moved_from`
    /// is the session that had it.
    Watch {
        session: ExecutorSession,
        /// None: an earlier release started the attempt.
        credential: Option<Text>,
        held: Held,
        tenant: Text,
        pool: Text,
        executor: Text,
        moved_from: Option<ExecutorSession>,
        target: Option<Text>,
    },
}

/// The answer to a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    #[default]
    Done,
    /// The command did nothing because it was done before.
    Unchanged,
    Run(Box<RunView>),
    /// A final run, as ended by the command.
    Final(Box<RunRecord>),
    /// A backfill as the command has left it.
    Backfill(Box<BackfillView>),
    /// The result of an attempt came too late or from a replaced attempt.
    Stale,
}
