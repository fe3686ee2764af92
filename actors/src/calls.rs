//! What is asked of a shard, and what it answers: the same whether who asks is on this node or on another one.

use crate::{
    changes::mirror,
    directory::{Directory, Place},
    lending::{Counts, Report, Terms},
    messages::{Answer, ShardMsg},
    pauses::Pause,
    survey::{Answers, Survey},
};
use campanile_core::job::{Claimant, Command, Reply};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::PauseScope,
    ids::{Digest, JobId, RunId, SessionId, ShardId, Token},
    job::JobView,
    peer::outbox::{Deliver, Delivered},
    rpc::executor::{Ended, FinishOutcome},
    stored::{Sealed, StoredJob, TenantRecord},
    view::{Created, JobFilter, RunView},
};
use serde::{Deserialize, Serialize};
use std::{
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::oneshot;

/// Marks [`nowhere`].
const NOWHERE: &str = "takeOver";
/// Marks [`gone`].
const UNANSWERED: &str = "unanswered";
/// Marks [`older`].
const OLDER: &str = "olderRelease";
/// How long a call waits for a shard that is on its way from one node to another: longer than a hand-over, and than a take-over of some
/// 100,000 jobs. With a million on two cores a take-over was up to 8 s (docs/performance.md): the caller is told 503 then, and nothing was done.
const TAKE_OVER: Duration = Duration::from_secs(5);
/// Between two looks for its owner.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A create that comes with a caller's key.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Once {
    /// Of tenant and key.
    pub key: Digest,
    /// Of the request.
    pub print: Digest,
}

/// What to do with a run that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FinalAction {
    Reopen { redrive: bool, reason: Option<String> },
    Discard,
}

/// See the module's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ShardCall {
    Create {
        spec: Box<StoredJob>,
        once: Option<Once>,
    },
    /// What a create with this key made; None = nothing yet.
    Created(Once),
    /// To the key's shard: the key belongs to this request from now on.
    KeepCreate(Once),
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
    /// The same of many.
    HoldPauses(Vec<Pause>),
    /// To every shard: what is held of a tenant's limits and pause goes.
    DeleteTenant(String),
    /// How much of a tenant the shard has.
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
        reports: Vec<Report>,
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
}

/// What the home shard of a tenant knows of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantFacts {
    pub limits: Option<TenantRecord>,
    pub paused: bool,
    /// Of all sessions of a cluster; None: the node is alone.
    pub counts: Option<Counts>,
    /// Not only the whole system.
    #[serde(default)]
    pub paused_itself: bool,
}

/// What a shard has of a tenant.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TenantUse {
    /// Not deleted.
    pub jobs: u64,
    /// Also of deleted jobs.
    pub open_runs: u64,
}

impl ShardCall {
    /// Whether it is refused when queues are full, and counts in the shard's mailbox until it is taken. Reads, and what must never
    /// be refused, are not.
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::KeepCreate(_)
            | Self::CreateMany(_)
            | Self::Command { .. }
            | Self::Trigger { .. }
            | Self::OnFinal { .. }
            | Self::SetTenant(_) => true,
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
            | Self::Deliver(_) => false,
        }
    }
}

impl ShardCall {
    /// Whether somebody may have carried it out who did not live to tell. Results of attempts are announced again in any case.
    fn changes(&self) -> bool {
        let of_all = |call: &Self| {
            matches!(
                call,
                Self::ChangePause { .. } | Self::SetPause { .. } | Self::HoldPauses(_) | Self::DeleteTenant(_)
            )
        };
        self.is_counted() || of_all(self)
    }

    /// What its caller is told for an error: only what certainly was not done may be called so.
    fn told(&self, error: ApiError) -> ApiError {
        if self.changes() && is_marked(&error, UNANSWERED) { unknown() } else { error }
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
                type Error = ApiError;
                fn try_from(answer: ShardAnswer) -> Answer<Self> {
                    match answer {
                        ShardAnswer::$name(value) => Ok(value),
                        other => Err(ApiError::new(ErrorCode::Internal, format!("a shard gave an answer to another question: {other:?}"))),
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
    Terms(Vec<Terms>),
    Why(Option<String>),
    Sealed(Option<Sealed>),
    Finished(Vec<FinishOutcome>),
    Version(u64),
    Holds(bool),
    Delivered(Delivered),
}

/// Where an answer of one kind goes.
#[derive(Debug)]
pub struct Port<T> {
    to: oneshot::Sender<Answer<ShardAnswer>>,
    kind: PhantomData<fn(T)>,
}

impl<T: Into<ShardAnswer>> Port<T> {
    pub fn new(to: oneshot::Sender<Answer<ShardAnswer>>) -> Self {
        Self { to, kind: PhantomData }
    }

    /// A caller that went away needs no answer.
    pub fn send(self, answer: Answer<T>) {
        let _ = self.to.send(answer.map(Into::into));
    }
}

/// The other nodes.
pub trait Peers: Send + Sync + 'static {
    /// Asks the node of a session that should own the shard. Its answer, or why it was not asked or did not answer: [`nowhere`] if
    /// nothing was done, [`gone`] if nobody knows.
    fn ask(
        &self,
        owner: SessionId,
        shard: ShardId,
        call: ShardCall,
    ) -> Pin<Box<dyn Future<Output = Answer<ShardAnswer>> + Send + '_>>;
    /// The sessions of all other nodes that are there.
    fn others(&self) -> Vec<SessionId>;
    /// What became durable on another node since a place in its log; None = from now on.
    fn changes(
        &self,
        of: SessionId,
        since: Option<mirror::Place>,
    ) -> Pin<Box<dyn Future<Output = Answer<mirror::Copied>> + Send + '_>>;
    /// What all other nodes say, side by side; none takes longer than [`crate::survey::ANSWER`]. Each with its name.
    fn survey(&self, what: Survey) -> Pin<Box<dyn Future<Output = Answers> + Send + '_>>;
    /// A shard was given to this session.
    fn tell_released(&self, shard: ShardId, successor: SessionId);
}

/// Asks a shard, wherever it is, and waits.
pub(crate) async fn ask<T>(directory: &Directory, shard: ShardId, call: ShardCall) -> Answer<T>
where
    T: TryFrom<ShardAnswer, Error = ApiError>,
{
    let until = tokio::time::Instant::now() + TAKE_OVER;
    loop {
        let answer = match directory.place(shard) {
            // It may begin to leave before it has answered.
            Place::Here if directory.membership.is_some() => ask_here(directory, shard, call.clone()).await,
            Place::Here => return ask_here(directory, shard, call).await.and_then(T::try_from),
            Place::Elsewhere { owner, peers } => peers.ask(owner, shard, call.clone()).await,
            Place::TakenOver => Err(nowhere()),
            Place::Nowhere => return Err(gone()),
        };
        match answer {
            Err(error) if is_marked(&error, NOWHERE) && tokio::time::Instant::now() < until => {
                if directory.ended.comes_within(LOOK_AGAIN).await {
                    // Nobody tells this session of owners any more: another one may know where the shard is.
                    return Err(error);
                }
            }
            Err(error) if is_marked(&error, NOWHERE) && !directory.may_act() => return Err(without_lease()),
            answer => return answer.map_err(|error| call.told(error)).and_then(T::try_from),
        }
    }
}

/// Asks a shard of this node: what came from elsewhere is not sent on.
pub async fn ask_here(directory: &Directory, shard: ShardId, call: ShardCall) -> Answer<ShardAnswer> {
    let counted = call.is_counted();
    if counted && directory.overloaded(shard) {
        metrics::counter!("campanile_overloaded_total").increment(1);
        return Err(overloaded());
    }
    if counted {
        directory.mailbox[usize::from(shard.0)].fetch_add(1, Ordering::Relaxed);
    }
    let (port, answer) = oneshot::channel();
    directory.to_shard(shard, ShardMsg::Call(call, port));
    directory.ended.or_answer(answer).await.unwrap_or_else(|| Err(gone()))
}

/// A shard is full, or what is behind it.
pub(crate) fn overloaded() -> ApiError {
    ApiError::new(ErrorCode::Overloaded, "the node's queues are full; try again later").retry_after(1.0)
}

/// The shard went away before it answered: what was asked may or may not have been done.
pub fn gone() -> ApiError {
    ApiError::new(ErrorCode::NotReady, "the node is restarting its session; read before you ask again")
        .with_detail(serde_json::json!({ UNANSWERED: true }))
        .retry_after(1.0)
}

/// In a cluster what was durable counts for whoever takes the shard, also when the node that wrote it could not say so.
pub(crate) fn unknown() -> ApiError {
    let what = "the shard went away before it answered: the call may or may not have been carried out";
    ApiError::new(ErrorCode::Timeout, what).retry_after(1.0)
}

/// Nobody serves the shard; nothing was done.
pub fn nowhere() -> ApiError {
    ApiError::new(ErrorCode::NotReady, "nobody serves this shard at the moment; it is being taken over")
        .with_detail(serde_json::json!({ NOWHERE: true }))
        .retry_after(1.0)
}

/// [`nowhere`], and the node knows why.
fn without_lease() -> ApiError {
    ApiError {
        message: "the cluster's store does not answer: without a lease the node decides nothing".into(),
        ..nowhere()
    }
}

/// The other node does not know what it was asked; nothing was done.
pub fn older() -> ApiError {
    ApiError::new(ErrorCode::IllegalState, "the other node does not know this call: it is of an older release")
        .with_detail(serde_json::json!({ OLDER: true }))
}

/// Whether it is the answer of [`older`].
pub(crate) fn is_older(error: &ApiError) -> bool {
    is_marked(error, OLDER)
}

fn is_marked(error: &ApiError, mark: &str) -> bool {
    error.detail.as_ref().is_some_and(|detail| detail.get(mark).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_an_answer_is_not_told_as_refused() {
        let (job, change) = (JobId(1), ShardCall::Command { job: JobId(1), command: Command::Resume });
        assert_eq!(change.told(gone()).known(), ErrorCode::Timeout);
        assert_eq!(change.told(nowhere()).known(), ErrorCode::NotReady, "nobody took it");
        assert_eq!(ShardCall::GetJob(job).told(gone()).known(), ErrorCode::NotReady, "a read changes nothing");
    }
}
