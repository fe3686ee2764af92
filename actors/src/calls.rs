//! The calls to a shard and its answers. They are the same whether the caller is on this node or on another one.

use crate::{
    call_error::CallError,
    changes::{Copied, LogPlace},
    cluster_query::{ClusterQuery, NodeAnswers},
    lending::{TenantReport, TenantShare},
    pauses::Pause,
};
use campanile_core::job::{Claimant, Command, Reply};
pub use campanile_schema::peer::shard::{
    BackfillAction, BackfillFacts, CreateKey, FinalAction, GraphAction, OutboxAction, TenantFacts, TenantUse,
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    event::PauseScope,
    ids::{BackfillId, JobId, RunId, SessionId, ShardId, Token},
    job::JobView,
    peer::{
        bulk::{BulkAnswer, BulkCall},
        calendars::CalendarCall,
        outbox::{Deliver, Delivered},
        runs::{LoadPart, LoadQuery, OpenRunsPart, RunFilter, RunPlace},
    },
    rpc::executor::{Ended, FinishOutcome},
    stored::{CalendarRecord, Sealed, StoredJob, TenantRecord, audit::AuditRecord, graph::GraphRecord},
    view::{Created, JobFilter, RunView, backfill::BackfillView, outbox::OutboxMessageView},
};
use serde::{Deserialize, Serialize};
use std::{marker::PhantomData, pin::Pin, sync::Arc};
use tokio::sync::oneshot;

/// See the module's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ShardCall {
    Create {
        spec: Box<StoredJob>,
        once: Option<CreateKey>,
    },
    /// What a create with this key made; None = nothing yet.
    Created(CreateKey),
    /// To the key's shard: the key belongs to this request from now on.
    KeepCreate(CreateKey),
    /// Each with its place in the caller's list.
    CreateMany(Vec<(usize, StoredJob)>),
    Command {
        job: JobId,
        command: Command,
    },
    /// A manual trigger: the key is looked up first.
    Trigger {
        job: JobId,
        command: Command,
    },
    /// Retry, redrive, discard: the record is looked up first.
    OnFinal {
        run: RunId,
        action: FinalAction,
    },
    /// Results of attempts that came to a node of an earlier release, which does not say from whom.
    Finish(Vec<Ended>),
    /// Results of attempts that came to a node that is not their owner.
    FinishBy {
        by: Arc<Claimant>,
        items: Vec<Ended>,
    },
    /// Whether an executor holds this attempt, so that what it logs is kept.
    Holds {
        by: Arc<Claimant>,
        run: RunId,
        token: Token,
        attempt: u32,
    },
    SetTenant(TenantRecord),
    /// To the home shard of a pause, which says its version: from the answer on this is the newest change.
    ChangePause {
        scope: PauseScope,
        paused: bool,
    },
    /// To every shard: how a pause stands. One that is older than what it holds changes nothing.
    SetPause {
        scope: PauseScope,
        paused: bool,
        version: u64,
    },
    /// [`Self::SetPause`] for many pauses.
    HoldPauses(Vec<Pause>),
    /// To every shard: forget a tenant's limits and pause.
    DeleteTenant(String),
    /// How many jobs and open runs of a tenant the shard has.
    TenantUse(String),
    GetJob(JobId),
    GetJobByName {
        tenant: String,
        name: String,
    },
    /// None: not here (any more); the view may have it.
    GetRun(RunId),
    OpenRuns(JobId),
    TenantOfJob(JobId),
    /// A job's secret params, sealed; None: it has none.
    GetSealed(JobId),
    GetTenant(String),
    /// Names of the tenants whose home the shard is.
    Tenants,
    /// To the home shard of tenants: what a session has of them, and what it wants.
    Borrow {
        session: SessionId,
        reports: Vec<TenantReport>,
    },
    /// To a session, by one of its shards: this tenant has limits.
    Remind(TenantRecord),
    /// Why a run of the shard waits for a permit or an executor; None: it does not.
    WhyWaiting {
        run: RunId,
        tenant: String,
        pool: String,
    },
    ListJobs {
        filter: Arc<JobFilter>,
        after: u64,
        limit: usize,
    },
    /// Messages of another shard's jobs. They do not count in the mailbox: they are put off when it is half full.
    Deliver(Box<Deliver>),
    /// Messages of its jobs that wait or were given up: of a tenant, of runs after this one and its generation.
    ListOutbox {
        tenant: Option<String>,
        after: Option<(RunId, u32)>,
        limit: usize,
    },
    /// For a person: of a run whose messages were given up.
    ChangeOutbox {
        run: RunId,
        action: OutboxAction,
    },
    /// A change, and who asks for it: the record goes into the frame of the change. Sent only where event format 2 is written.
    Audited {
        record: Box<AuditRecord>,
        call: Box<ShardCall>,
    },
    /// Records of what no frame of this shard tells.
    Audit(Vec<AuditRecord>),
    /// For a person: a retry or a mark in a run of a DAG.
    ChangeGraph {
        run: RunId,
        action: GraphAction,
    },
    /// The nodes of a run of a DAG. None: it is not here (any more); its record in the view has them.
    GetGraph(RunId),
    /// Its open runs that fit, newest first, behind a place: at most so many.
    ListRuns {
        filter: Arc<RunFilter>,
        after: Option<RunPlace>,
        limit: usize,
    },
    /// How many instants of its jobs behind this one are due in each of the next minutes.
    DueLoad {
        query: Arc<LoadQuery>,
        after: Option<JobId>,
    },
    /// What is to be known of a job before a stretch of its past is looked at.
    BackfillFacts(JobId),
    GetBackfill(BackfillId),
    /// The newest one of a job.
    GetBackfillOfJob(JobId),
    /// For a person: a pause, its end, or a cancel.
    ChangeBackfill {
        id: BackfillId,
        action: BackfillAction,
    },
    /// About bulk operations: to the home shard of one, or to a shard with its items. Format 2.
    Bulk(Box<BulkCall>),
    /// About calendars. Format 2.
    Calendar(CalendarCall),
}

impl ShardCall {
    /// Whether it is refused when queues are full, and counts in the shard's mailbox until the shard takes it. That does not hold for reads
    /// and for calls that must never be refused.
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::KeepCreate(_)
            | Self::CreateMany(_)
            | Self::Command { .. }
            | Self::Trigger { .. }
            | Self::OnFinal { .. }
            | Self::SetTenant(_)
            | Self::ChangeOutbox { .. }
            | Self::ChangeGraph { .. }
            | Self::ChangeBackfill { .. } => true,
            Self::Bulk(call) => is_counted_bulk(call),
            Self::Calendar(call) => is_counted_calendar(call),
            Self::Audited { call, .. } => call.is_counted(),
            Self::Created(_)
            | Self::ChangePause { .. }
            | Self::SetPause { .. }
            | Self::HoldPauses(_)
            | Self::DeleteTenant(_)
            | Self::TenantUse(_)
            | Self::GetJob(_)
            | Self::GetJobByName { .. }
            | Self::GetRun(_)
            | Self::OpenRuns(_)
            | Self::TenantOfJob(_)
            | Self::GetSealed(_)
            | Self::GetTenant(_)
            | Self::Tenants
            | Self::Borrow { .. }
            | Self::Remind(_)
            | Self::WhyWaiting { .. }
            | Self::Finish(_)
            | Self::FinishBy { .. }
            | Self::Holds { .. }
            | Self::ListJobs { .. }
            | Self::Deliver(_)
            | Self::ListOutbox { .. }
            | Self::GetGraph(_)
            | Self::ListRuns { .. }
            | Self::DueLoad { .. }
            | Self::BackfillFacts(_)
            | Self::GetBackfill(_)
            | Self::GetBackfillOfJob(_)
            | Self::Audit(_) => false,
        }
    }
}

/// What a driver reports must not be refused: the page that it is of has been done.
fn is_counted_bulk(call: &BulkCall) -> bool {
    match call {
        BulkCall::Create(_)
        | BulkCall::Undo { .. }
        | BulkCall::Begin { .. }
        | BulkCall::Look(_)
        | BulkCall::Work(_) => true,
        BulkCall::Get(_)
        | BulkCall::List { .. }
        | BulkCall::Abort { .. }
        | BulkCall::Report { .. }
        | BulkCall::Proceed { .. } => false,
    }
}

/// What the home shard has made must reach the others.
fn is_counted_calendar(call: &CalendarCall) -> bool {
    match call {
        CalendarCall::Set(_) => true,
        CalendarCall::Hold(_) | CalendarCall::Get { .. } => false,
    }
}

impl ShardCall {
    /// Whether a caller wants a run now.
    pub fn is_trigger(&self) -> bool {
        match self {
            Self::Audited { call, .. } => call.is_trigger(),
            call => matches!(call, Self::Trigger { .. }),
        }
    }

    /// Whether a node may have carried the call out and died before it answered. Results of attempts are sent again in any case.
    fn changes(&self) -> bool {
        let of_all = |call: &Self| {
            matches!(
                call,
                Self::ChangePause { .. }
                    | Self::SetPause { .. }
                    | Self::HoldPauses(_)
                    | Self::Calendar(CalendarCall::Hold(_))
                    | Self::DeleteTenant(_)
            )
        };
        match self {
            Self::Audited { call, .. } => call.changes(),
            call => call.is_counted() || of_all(call),
        }
    }

    /// The error that the caller gets. Only a call that certainly had no effect is reported as refused.
    pub(crate) fn told(&self, error: CallError) -> CallError {
        if self.changes() && error == CallError::Unanswered { CallError::OutcomeUnknown } else { error }
    }
}

macro_rules! answers {
    ($($name:ident($type:ty)),+ $(,)?) => {
        /// What a shard answers.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum ShardAnswer { $($name($type)),+ }
        $(
            impl From<$type> for ShardAnswer {
                fn from(value: $type) -> Self { Self::$name(value) }
            }
            impl TryFrom<ShardAnswer> for $type {
                type Error = CallError;
                fn try_from(answer: ShardAnswer) -> Result<Self, CallError> {
                    match answer {
                        ShardAnswer::$name(value) => Ok(value),
                        other => {
                            let what = format!("a shard gave an answer to another question: {other:?}");
                            Err(ApiError::new(ErrorCode::Internal, what).into())
                        }
                    }
                }
            }
        )+
    };
}

answers! {
    Done(()),
    Created(Created),
    CreatedBefore(Option<Created>),
    CreatedMany(Vec<(usize, Answer<Created>)>),
    Reply(Reply),
    Job(Box<JobView>),
    Jobs(Vec<JobView>),
    Run(Option<Box<RunView>>),
    Runs(Vec<RunView>),
    Name(String),
    Tenant(TenantFacts),
    TenantUse(TenantUse),
    Names(Vec<String>),
    Terms(Vec<TenantShare>),
    Why(Option<String>),
    Sealed(Option<Sealed>),
    Finished(Vec<FinishOutcome>),
    Version(u64),
    Holds(bool),
    Delivered(Delivered),
    Messages(Vec<OutboxMessageView>),
    Graph(Option<Box<GraphRecord>>),
    OpenRuns(OpenRunsPart),
    Load(LoadPart),
    BackfillFacts(Box<BackfillFacts>),
    Backfill(Box<BackfillView>),
    Bulk(Box<BulkAnswer>),
    Calendars(Vec<CalendarRecord>),
}

/// Sends an answer of one kind to the caller.
#[derive(Debug)]
pub struct Responder<T> {
    to: oneshot::Sender<Result<ShardAnswer, CallError>>,
    kind: PhantomData<fn(T)>,
}

impl<T: Into<ShardAnswer>> Responder<T> {
    pub fn new(to: oneshot::Sender<Result<ShardAnswer, CallError>>) -> Self {
        Self { to, kind: PhantomData }
    }

    /// A caller that went away needs no answer.
    pub fn send(self, answer: Answer<T>) {
        self.send_call(answer.map_err(CallError::Refused));
    }

    /// [`Self::send`] of a call that may not have reached its end.
    pub fn send_call(self, answer: Result<T, CallError>) {
        let _ = self.to.send(answer.map(Into::into));
    }
}

/// The other nodes.
pub trait Peers: Send + Sync + 'static {
    /// Asks the node of a session that should own the shard. Its answer, or why it was not asked or did not
    /// answer: [`CallError::NotServed`] if nothing was done, [`CallError::Unanswered`] if nobody knows.
    fn ask(
        &self,
        owner: SessionId,
        shard: ShardId,
        call: ShardCall,
    ) -> Pin<Box<dyn Future<Output = Result<ShardAnswer, CallError>> + Send + '_>>;
    /// The sessions of all other nodes that are there.
    fn others(&self) -> Vec<SessionId>;
    /// What became durable on another node since a place in its log; None = from now on.
    fn changes(
        &self,
        of: SessionId,
        since: Option<LogPlace>,
    ) -> Pin<Box<dyn Future<Output = Result<Copied, CallError>> + Send + '_>>;
    /// What all other nodes say, side by side; none takes longer than [`crate::cluster_query::ANSWER`]. Each with its name.
    fn query(&self, what: ClusterQuery) -> Pin<Box<dyn Future<Output = NodeAnswers> + Send + '_>>;
    /// A shard was given to this session.
    fn tell_released(&self, shard: ShardId, successor: SessionId);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_an_answer_is_not_told_as_refused() {
        let (job, change) = (JobId(1), ShardCall::Command { job: JobId(1), command: Command::Resume });
        assert_eq!(change.told(CallError::Unanswered).code(), ErrorCode::Timeout);
        let audited = ShardCall::Audited { record: Box::default(), call: Box::new(change.clone()) };
        assert_eq!(audited.told(CallError::Unanswered).code(), ErrorCode::Timeout);
        assert!(audited.is_counted(), "it is refused when the change is");
        assert_eq!(change.told(CallError::NotServed).code(), ErrorCode::NotReady, "nobody took it");
        assert_eq!(
            ShardCall::GetJob(job).told(CallError::Unanswered).code(),
            ErrorCode::NotReady,
            "a read changes nothing"
        );
    }
}
