//! The types of requests and answers, in the form that RPC has. HTTP has the same fields in path, headers, query and
//! body, and combines them here.

use super::{
    forms,
    subject::{About, Parts, Subject},
};
use crate::{
    apply::{AppliedView, ApplyBody, PlanView},
    audit::{AuditBody, AuditView},
    cluster::{ClusterEventView, MemberView, PlanView as ClusterPlan, ShardFilter, ShardView},
    error::ApiError,
    graph::ShortGraphSpec,
    job::{JobSpec, JobView},
    rpc::{
        calls::{Call, CallField, Items, Listed, NoBody, OfCalendar, OfTarget, OfTenant},
        hello::ItemResult,
    },
    view::{
        ConfirmBody, Created, DeadLetterView, ExecutorView, FindBody, Gathered, JobFilter, LedgerBody, LedgerView,
        LogBody, LogView, NodeView, Page, PageBody, PoolView, Preview, PreviewBody, PriorityBody, ReasonBody,
        ReplaceBody, RetryBody, RunGetBody, RunView, Spread, TenantBody, TenantPageBody, TenantView, TriggerBody,
        backfill::{BackfillBody, BackfillView, ReplayBody},
        bulk::{BulkBody, BulkView},
        calendars::{CalendarBody, CalendarPreviewBody, CalendarPreviewView, CalendarView},
        dag::{DagCreated, DagMarkBody, DagNodesBody, DagRetryBody, DagRunView},
        explain::{ExplainBody, ExplainView},
        outbox::OutboxMessageView,
        runs::{
            CausesBody, CausesView, DeadLettersBody, LoadBody, LoadView, RunListBody, StatisticsBody, StatisticsView,
        },
        targets::{TargetBody, TargetView},
        versions::{RollbackBody, VersionView, VersionsBody},
    },
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// What an operation takes.
pub trait Request: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// What HTTP has in its query or body.
    type Body: Body;
    /// What every request of this kind is about.
    const SUBJECT: Subject;
    fn of<P: Parts>(parts: &P, body: Self::Body) -> Result<Self, ApiError>;
    fn about(&self) -> About<'_>;
    /// Why the caller does it.
    fn reason(&self) -> Option<&str>;
    /// The tenant that a list or a search is narrowed to.
    fn named_tenant(&mut self) -> Option<&mut Option<String>>;
}

/// A request, or what of it does not stand in a path.
pub trait Body: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// Whether it may name a tenant to narrow to.
    const NAMED: bool = false;
    fn reason(&self) -> Option<&str> {
        None
    }
    fn named_tenant(&mut self) -> Option<&mut Option<String>> {
        None
    }
}

impl<B: Body> Request for B {
    type Body = B;
    const SUBJECT: Subject = if B::NAMED { Subject::Named } else { Subject::Nothing };
    fn of<P: Parts>(_: &P, body: B) -> Result<Self, ApiError> {
        Ok(body)
    }
    fn about(&self) -> About<'_> {
        if B::NAMED { About::Named } else { About::Nothing }
    }
    fn reason(&self) -> Option<&str> {
        Body::reason(self)
    }
    fn named_tenant(&mut self) -> Option<&mut Option<String>> {
        Body::named_tenant(self)
    }
}

impl<F: CallField + 'static, B: Body> Request for Call<F, B> {
    type Body = B;
    const SUBJECT: Subject = F::SUBJECT;
    fn of<P: Parts>(parts: &P, body: B) -> Result<Self, ApiError> {
        Ok(Self { field: F::of_path(parts)?, body })
    }
    fn about(&self) -> About<'_> {
        self.field.as_ref().map_or(About::Nothing, F::about)
    }
    fn reason(&self) -> Option<&str> {
        self.body.reason()
    }
    fn named_tenant(&mut self) -> Option<&mut Option<String>> {
        self.body.named_tenant()
    }
}

/// A target has two names: its tenant's and its own.
impl<B: Body> Request for Call<OfTenant, Call<OfTarget, B>> {
    type Body = B;
    const SUBJECT: Subject = Subject::Target;
    fn of<P: Parts>(parts: &P, body: B) -> Result<Self, ApiError> {
        Ok(Self { field: Some(parts.tenant()), body: Call { field: Some(parts.target()), body } })
    }
    fn about(&self) -> About<'_> {
        match (&self.field, &self.body.field) {
            (Some(tenant), Some(target)) => About::Target { tenant, target },
            (None, _) | (_, None) => About::Nothing,
        }
    }
    fn reason(&self) -> Option<&str> {
        self.body.body.reason()
    }
    fn named_tenant(&mut self) -> Option<&mut Option<String>> {
        None
    }
}

/// A calendar has two names: its tenant's and its own.
impl<B: Body> Request for Call<OfTenant, Call<OfCalendar, B>> {
    type Body = B;
    const SUBJECT: Subject = Subject::Calendar;
    fn of<P: Parts>(parts: &P, body: B) -> Result<Self, ApiError> {
        Ok(Self { field: Some(parts.tenant()), body: Call { field: Some(parts.calendar()), body } })
    }
    fn about(&self) -> About<'_> {
        match (&self.field, &self.body.field) {
            (Some(tenant), Some(calendar)) => About::Calendar { tenant, calendar },
            (None, _) | (_, None) => About::Nothing,
        }
    }
    fn reason(&self) -> Option<&str> {
        self.body.body.reason()
    }
    fn named_tenant(&mut self) -> Option<&mut Option<String>> {
        None
    }
}

macro_rules! bodies {
    ($($plain:ty),+; reason $($reasoned:ty),+; narrowed $($narrowed:ty),+ $(,)?) => {
        $(impl Body for $plain {})+
        $(impl Body for $reasoned {
            fn reason(&self) -> Option<&str> {
                self.reason.as_deref()
            }
        })+
        $(impl Body for $narrowed {
            const NAMED: bool = true;
            fn named_tenant(&mut self) -> Option<&mut Option<String>> {
                Some(&mut self.tenant_id)
            }
        })+
    };
}
bodies!(
    NoBody, JobSpec, Items<JobSpec>, ApplyBody, ReplaceBody, PageBody, LedgerBody, LogBody, PreviewBody, RunGetBody,
    ShardFilter, ShortGraphSpec, DagNodesBody, TenantBody, TargetBody, ExplainBody, StatisticsBody, VersionsBody,
    CalendarPreviewBody;
    reason ReasonBody, RetryBody, TriggerBody, ConfirmBody, PriorityBody, DagRetryBody, DagMarkBody, RollbackBody, BackfillBody, ReplayBody,
    CalendarBody;
    narrowed AuditBody, CausesBody, DeadLettersBody, FindBody, JobFilter, LoadBody, RunListBody, TenantPageBody,
);

/// What HTTP has in the query or the body of an operation. Nearly always the body itself; where HTTP differs on purpose, the
/// type is in [`forms`].
pub trait Form<B>: DeserializeOwned + JsonSchema + Send + 'static {
    fn body(self) -> Result<B, ApiError>;
}

impl<B: Body> Form<B> for B {
    fn body(self) -> Result<B, ApiError> {
        Ok(self)
    }
}
impl Form<FindBody> for forms::JobFindQuery {
    fn body(self) -> Result<FindBody, ApiError> {
        Ok(FindBody { name: self.name, tenant_id: self.tenant_id })
    }
}
impl Form<RunGetBody> for forms::RunGetQuery {
    fn body(self) -> Result<RunGetBody, ApiError> {
        Ok(RunGetBody { wait_ms: self.wait_sec.map(|seconds| seconds.saturating_mul(1000)) })
    }
}

/// What an operation gives.
pub trait OperationAnswer: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// Whose it is.
    fn tenant(&self) -> Option<&str> {
        None
    }
    /// How many things were changed, for the audit trail.
    fn changes(&self) -> u64 {
        1
    }
    /// Whether the change is kept, and something of it is still to be done.
    fn is_outstanding(&self) -> bool {
        false
    }
}

macro_rules! answers {
    ($($answer:ty),+ $(,)?) => { $(impl OperationAnswer for $answer {})+ };
}
answers!(
    NoBody,
    Created,
    DagCreated,
    Listed<ItemResult<Created>>,
    PlanView,
    Page<AuditView>,
    Page<BulkView>,
    Page<JobView>,
    Page<RunView>,
    LedgerView,
    LogView,
    Page<DeadLetterView>,
    Page<OutboxMessageView>,
    Preview,
    TenantView,
    Listed<TenantView>,
    TargetView,
    Listed<TargetView>,
    Listed<CalendarView>,
    CalendarPreviewView,
    NodeView,
    Gathered<ExecutorView>,
    Gathered<PoolView>,
    Listed<MemberView>,
    Listed<ShardView>,
    ClusterPlan,
    Listed<ClusterEventView>,
    Page<VersionView>,
    StatisticsView,
    CausesView,
    LoadView,
);
impl OperationAnswer for AppliedView {
    fn changes(&self) -> u64 {
        self.created + self.changed + self.deleted
    }
}
impl OperationAnswer for JobView {
    fn tenant(&self) -> Option<&str> {
        Some(&self.spec.tenant_id)
    }
}
impl OperationAnswer for RunView {
    fn tenant(&self) -> Option<&str> {
        Some(&self.tenant_id)
    }
}
impl OperationAnswer for ExplainView {
    fn tenant(&self) -> Option<&str> {
        Some(&self.tenant_id)
    }
}
impl OperationAnswer for DagRunView {
    fn tenant(&self) -> Option<&str> {
        Some(&self.tenant_id)
    }
}
impl OperationAnswer for BackfillView {
    fn tenant(&self) -> Option<&str> {
        Some(&self.tenant_id)
    }
    /// A dry run has nothing to carry on.
    fn is_outstanding(&self) -> bool {
        self.backfill_id.is_some()
    }
}
/// It may name a tenant, and has a reason.
impl Body for BulkBody {
    const NAMED: bool = true;
    fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
    fn named_tenant(&mut self) -> Option<&mut Option<String>> {
        Some(&mut self.tenant_id)
    }
}
impl OperationAnswer for BulkView {
    /// One of all tenants is none's: only operators see it.
    fn tenant(&self) -> Option<&str> {
        Some(self.tenant_id.as_deref().unwrap_or_default())
    }
    /// A dry run has nothing to carry on.
    fn is_outstanding(&self) -> bool {
        self.bulk_id.is_some()
    }
}
impl OperationAnswer for CalendarView {
    fn is_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }
}
impl OperationAnswer for Spread {
    fn is_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }
}
