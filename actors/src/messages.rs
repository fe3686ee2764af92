//! The messages of the actors, in one file. In the order of a trigger: [`ShardMsg::Tick`] or [`ShardMsg::Call`],
//! [`PoolMsg::Effects`], [`ShardMsg::StartAttempts`], [`ToExecutor::Assign`], [`ShardMsg::Finish`], [`ToProject`].

use crate::{
    backfill::ReadPage,
    call_error::CallError,
    calls::{Responder, ShardAnswer, ShardCall},
    delivery_window::DeliveryPlace,
    lending::TenantShare,
};
use campanile_core::{
    job::{Claimant, Command, Effect, Reply},
    outbox::{Batch, LookUp},
};
use campanile_ports::Position;
use campanile_schema::{
    error::{Answer, ErrorCode},
    frame::Frame,
    ids::{Epoch, ExecutorSession, JobId, RunId, ShardId},
    peer::outbox::{Deliver, Delivered},
    record::{RunRecord, Source},
    rpc::executor::{Assignment, Credit, Ended, FinishOutcome, Held, Hint, Register, Registered},
    stored::TenantRecord,
    text::Text,
    view::{ExecutorView, PoolView},
};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{mpsc, oneshot};

/// One command on its way to a job.
#[derive(Debug)]
pub struct Envelope {
    pub job: JobId,
    pub command: Command,
    pub reply: ReplyTo,
}

/// Where the outcome of a command is sent.
#[derive(Debug, Default)]
pub enum ReplyTo {
    #[default]
    Nobody,
    Caller(Responder<Reply>),
    /// One of a batch of finishes.
    Finish(Arc<FinishBatch>, usize),
    /// The pool bound the run. It gets the slot back when the job refuses.
    Pool {
        run: RunId,
        session: ExecutorSession,
    },
}

/// The result of an attempt, as its executor reports it, and where the outcome is sent.
pub struct AttemptResult {
    pub ended: Ended,
    /// The executor that reports it. None: a node of an earlier release has passed it on and does not say.
    pub by: Option<Arc<Claimant>>,
    pub batch: Arc<FinishBatch>,
    /// Its place in the batch.
    pub index: usize,
}

/// Collects the outcomes of one `executor.finish`; answered when the last is in.
#[derive(Debug)]
pub struct FinishBatch {
    outcomes: Mutex<Vec<FinishOutcome>>,
    left: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<Vec<FinishOutcome>>>>,
}

impl FinishBatch {
    pub fn new(count: usize, done: oneshot::Sender<Vec<FinishOutcome>>) -> Arc<Self> {
        Arc::new(Self {
            outcomes: Mutex::new(vec![FinishOutcome::Again; count]),
            left: AtomicUsize::new(count),
            done: Mutex::new(Some(done)),
        })
    }
    pub fn set(&self, index: usize, outcome: FinishOutcome) {
        self.outcomes.lock()[index] = outcome;
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(done) = self.done.lock().take()
        {
            // The connection may be gone; the executor sends it again.
            let _ = done.send(std::mem::take(&mut self.outcomes.lock()));
        }
    }
}

impl ReplyTo {
    pub fn answer(self, result: Result<Reply, CallError>) {
        match self {
            Self::Nobody | Self::Pool { .. } => {}
            Self::Caller(responder) => {
                responder.send_call(result);
            }
            Self::Finish(batch, index) => batch.set(
                index,
                match result {
                    Ok(Reply::Stale) => FinishOutcome::Stale,
                    Ok(Reply::Done | Reply::Unchanged | Reply::Run(_) | Reply::Final(_) | Reply::Backfill(_)) => {
                        FinishOutcome::Durable
                    }
                    Err(error) if error.code() == ErrorCode::NotFound => FinishOutcome::Stale,
                    Err(_) => FinishOutcome::Again,
                },
            ),
        }
    }
}

/// A run bound to an executor by the pool.
#[derive(Clone, Debug)]
pub struct Bind {
    pub run: RunId,
    pub job: JobId,
    pub session: ExecutorSession,
    pub executor: Text,
    pub credential: Option<Text>,
    pub credit_stamp_ms: u64,
}

/// To a shard.
pub enum ShardMsg {
    /// From the node's tick: jobs in the wheel may be due. With the results of attempts since the last tick.
    Tick(Vec<AttemptResult>),
    /// Once a second: passivate, snapshot.
    Housekeep,
    /// A call of a caller, from this node or another one.
    Call(ShardCall, oneshot::Sender<Result<ShardAnswer, CallError>>),
    /// From the pool: start attempts of these runs.
    StartAttempts(Vec<Bind>),
    /// Results of attempts that do not wait for the next tick.
    Finish(Vec<AttemptResult>),
    /// The executor refused or could not be reached: the attempt did not start.
    NotStarted(Vec<Held>, &'static str),
    /// The executor of these attempts has been silent for 5 s.
    Suspect(Vec<Held>),
    /// The executor holds these attempts; answered with those that it must stop.
    ExecutorHolds(Vec<Held>, Arc<Claimant>, Option<oneshot::Sender<Vec<Held>>>),
    /// The lease of the executor has ended, or it does not hold these attempts any more.
    Lost(Vec<Held>),
    /// From the journal: everything up to `seq` is durable.
    Durable {
        seq: u64,
        position: Position,
    },
    /// From the projector: the view shows everything up to `seq`.
    Projected {
        seq: u64,
    },
    Snapshotted {
        number: u64,
        seq: u64,
        position: Position,
        definitions: Vec<campanile_ports::PartRef>,
        ok: bool,
    },
    ReportFacts(oneshot::Sender<ShardFacts>),
    /// Drain: snapshot now if needed and answer when published.
    Flush(oneshot::Sender<()>),
    /// A batch of messages to another shard has a place.
    Depart(Box<Departing>),
    /// What a shard has said to a `Deliver`; None: there was no answer in time.
    Delivered {
        to: ShardId,
        number: u64,
        answer: Option<Delivered>,
    },
    /// A `Deliver` that arrived, with what the view says of its keys.
    LookedUp(Box<LookedUp>),
    /// The view did not say.
    NotLookedUp,
    /// A page of the past of a job was read for its backfill; or why not.
    BackfillRead {
        job: JobId,
        page: Box<Result<ReadPage, String>>,
    },
    /// A job's backfill has more to do than one turn may take.
    BackfillGoesOn(JobId),
    /// Answered when this run has ended; at once if it is not open. A `run.get` that waits sends it.
    Watch(RunId, oneshot::Sender<()>),
    /// The shard is given to another node: it decides nothing from now on. Answered when everything that it decided is durable.
    Stop(oneshot::Sender<()>),
    /// The shard stays on this node after all, or was just taken by it, at this epoch.
    Serve(Epoch),
}

/// Messages to another shard that may leave now.
pub struct Departing {
    pub batch: Batch,
    pub place: DeliveryPlace,
}

/// A `Deliver` that arrived, with what the view says of the keys of its messages.
pub struct LookedUp {
    pub deliver: Deliver,
    /// By the message's place. None: there was no such job.
    pub keys: Vec<Option<KeyLookUp>>,
    /// Of runs of DAGs' nodes that the view shows.
    pub records: Vec<Option<Arc<RunRecord>>>,
    pub responder: Responder<Delivered>,
}

/// What the view says of the key of a message to this job: the run and its source.
pub type KeyLookUp = (JobId, LookUp<(RunId, Source)>);

/// What the node wants to know of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardFacts {
    pub shard: ShardId,
    pub jobs: u64,
    pub open_runs: u64,
    pub active: u64,
    pub wheel: u64,
    /// Journal rows after this are still needed; None = nothing is.
    pub needs_after: Option<Position>,
    /// For so long a snapshot has been owed, ms; 0 = there is nothing new.
    pub snapshot_owed_ms: i64,
    /// Messages that are not settled, and messages that were given up and are shown.
    pub messages: u64,
    pub given_up: u64,
    /// Backfills that have not ended.
    pub backfills: u64,
    /// When the shard was last restored from a backup, ms.
    pub restored_ms: Option<i64>,
}

// Implemented by hand, and never serializable: ractor would mirror an actor with a serializable message on every peer.
impl ractor::Message for ShardMsg {}
impl ractor::Message for PoolMsg {}

/// To the node's pool actor, in whose task the quota actors have their turns.
pub enum PoolMsg {
    /// Effects of decisions, in their order: requests for permits and executors, assignments to send, attempts that ended.
    Effects(Vec<Effect>),
    /// From itself, while others that are ready have their turn; then `Settle`.
    Gather,
    /// From itself: grant permits, match what waits to executors with credit, send what is to be sent.
    Settle,
    /// The job refused a bound run.
    Unbind {
        run: RunId,
        session: ExecutorSession,
        /// Its tenant or the whole system is paused: it waits for a permit again.
        paused: bool,
    },
    SetQuota(TenantRecord),
    PauseTenant(String, bool),
    /// The shard was taken over, at this epoch: executors are to say what they hold of it.
    ShardServed(ShardId, Epoch),
    /// The shard is not served here any more: its runs are another node's.
    ShardGone(ShardId),
    /// What a home shard says of its tenants' limits.
    Shares(ShardId, Result<Vec<TenantShare>, CallError>),
    /// Answered when the runs that came with the shard are counted, so that it may be handed over.
    Settled(ShardId, oneshot::Sender<()>),
    /// Rate permits may have come.
    QuotaTick,
    /// Refused when the session is another credential's.
    Register(Box<Register>, Arc<Claimant>, mpsc::Sender<ToExecutor>, oneshot::Sender<Answer<()>>),
    Credit(ExecutorSession, Credit),
    Heartbeat(ExecutorSession),
    /// The complete list of what the executor holds; answered with what it must stop.
    Announce(ExecutorSession, Vec<Held>, oneshot::Sender<Vec<Held>>),
    /// Attempts that the executor announced and must stop.
    NotHeld(ExecutorSession, Vec<Held>),
    Drain(ExecutorSession),
    Disconnected(ExecutorSession),
    /// The node may decide nothing for the moment: executors are to work for other nodes.
    LeaseLost,
    Tick,
    WhyWaiting {
        run: RunId,
        tenant: String,
        pool: String,
        port: oneshot::Sender<Option<String>>,
    },
    Executors(oneshot::Sender<Vec<ExecutorView>>),
    Pools(oneshot::Sender<Vec<PoolView>>),
}

/// What a node sends to an executor without being asked.
#[derive(Debug)]
pub enum ToExecutor {
    Assign(Vec<Box<Assignment>>),
    Stop(Vec<Held>),
    /// An operator said that these bodies have ended.
    Forget(Vec<Held>),
    /// Shards that the node has taken over.
    Epochs(Registered),
    /// Runs wait here that it could take; or none does.
    Hint(Hint),
}

/// To the projector: a durable batch of the journal, whole, and its place. Batches come in the order of the log.
#[derive(Debug)]
pub struct ToProject {
    /// Each with the shard that made it.
    pub frames: Vec<(Arc<Frame>, ractor::ActorRef<ShardMsg>)>,
    pub position: Position,
}
