//! Operations on tenants, nodes and the cluster, and the audit trail.

use super::super::{
    Audit, CallEffect, Handle, Http, LeastRole, Operation, Request, Row, Tenant, Visit, Weight,
    entries::{form, key_field, operations},
    refusals::{
        ALONE, BAD_BODY, BAD_CALENDAR, BAD_CALENDAR_PREVIEW, BAD_CALENDAR_SET, BAD_CORDON, BAD_LIST, BAD_TARGET,
        BAD_TARGET_SET,
    },
};
use crate::{
    audit::{AuditBody, AuditView},
    cluster::{ClusterEventView, MemberView, PlanView as ClusterPlanView, ShardFilter, ShardView},
    error::ErrorCode as E,
    rpc::calls::{CalendarCall, Listed, NoBody, NodeCall, TargetCall, TenantCall},
    view::{
        ExecutorView, Gathered, NodeView, Page, PoolView, ReasonBody, Spread, TenantBody, TenantView,
        calendars::{CalendarBody, CalendarPreviewBody, CalendarPreviewView, CalendarView},
        targets::{TargetBody, TargetView},
    },
};

operations! {
    AdministrationHandlers;

    /// Tenants with their limits and use.
    TenantList = "tenant.list": NoBody => Listed<TenantView> {
        cli: Ok("tenant list"), http: Ok(Http::get("/api/v1/tenants")),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// A tenant.
    TenantGet = "tenant.get": TenantCall<NoBody> => TenantView {
        cli: Ok("tenant get"), http: Ok(Http::get("/api/v1/tenants/{tenantId}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::NotFound],
    }

    /// Set a tenant's limits (0 = none).
    TenantSet = "tenant.set": TenantCall<TenantBody> => TenantView {
        cli: Ok("tenant set"), http: Ok(Http::put("/api/v1/tenants/{tenantId}")),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Forget the limits and the pause of a tenant without jobs and open runs; its history stays.
    TenantDelete = "tenant.delete": TenantCall<ReasonBody> => NoBody {
        cli: Ok("tenant delete"), http: Ok(Http::delete("/api/v1/tenants/{tenantId}").nothing()),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: &[E::InvalidArgument, E::NotFound, E::IllegalState],
    }

    /// The targets of a tenant that have settings.
    TargetList = "target.list": TenantCall<NoBody> => Listed<TargetView> {
        cli: Ok("target list"), http: Ok(Http::get("/api/v1/tenants/{tenantId}/targets")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// A target of a tenant, with the state of its breaker.
    TargetGet = "target.get": TargetCall<NoBody> => TargetView {
        cli: Ok("target get"), http: Ok(Http::get("/api/v1/tenants/{tenantId}/targets/{target}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: BAD_TARGET,
    }

    /// Set all settings of a target: how many runs may call it, how often, how many retries, and when to stop.
    TargetSet = "target.set": TargetCall<TargetBody> => TargetView {
        cli: Ok("target set"), http: Ok(Http::put("/api/v1/tenants/{tenantId}/targets/{target}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_TARGET_SET,
    }

    /// Forget the settings of a target; jobs that name it have the default ones.
    TargetDelete = "target.delete": TargetCall<ReasonBody> => NoBody {
        cli: Ok("target delete"), http: Ok(Http::delete("/api/v1/tenants/{tenantId}/targets/{target}").nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_TARGET,
    }

    /// The calendars of a tenant.
    CalendarList = "calendar.list": TenantCall<NoBody> => Listed<CalendarView> {
        cli: Ok("calendar list"), http: Ok(Http::get("/api/v1/tenants/{tenantId}/calendars")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// A calendar of a tenant, with its versions.
    CalendarGet = "calendar.get": CalendarCall<NoBody> => CalendarView {
        cli: Ok("calendar get"), http: Ok(Http::get("/api/v1/tenants/{tenantId}/calendars/{calendar}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: BAD_CALENDAR,
    }

    /// Set all days of a calendar, as its next version. It decides instants from at least 60 s later on.
    CalendarSet = "calendar.set": CalendarCall<CalendarBody> => CalendarView {
        cli: Ok("calendar set"), http: Ok(Http::put("/api/v1/tenants/{tenantId}/calendars/{calendar}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_CALENDAR_SET,
    }

    /// Delete a calendar, 60 s later; jobs that name it wait from then on.
    CalendarDelete = "calendar.delete": CalendarCall<ReasonBody> => NoBody {
        cli: Ok("calendar delete"), http: Ok(Http::delete("/api/v1/tenants/{tenantId}/calendars/{calendar}").nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_CALENDAR,
    }

    /// The days that a calendar has or would have, and the next instants of jobs that a new version would change.
    CalendarPreview = "calendar.preview": CalendarCall<CalendarPreviewBody> => CalendarPreviewView {
        cli: Ok("calendar preview"), http: Ok(Http::post("/api/v1/tenants/{tenantId}/calendars/{calendar}/preview")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_CALENDAR_PREVIEW,
    }

    /// Stop firing and starting for a tenant.
    TenantPause = "tenant.pause": TenantCall<ReasonBody> => Spread {
        cli: Ok("tenant pause"), http: Ok(Http::post("/api/v1/tenants/{tenantId}/pause").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Undo a tenant's pause.
    TenantResume = "tenant.resume": TenantCall<ReasonBody> => Spread {
        cli: Ok("tenant resume"), http: Ok(Http::post("/api/v1/tenants/{tenantId}/resume").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Stop firing and starting everywhere.
    SystemPause = "system.pause": ReasonBody => Spread {
        cli: Ok("system pause"), http: Ok(Http::post("/api/v1/system/pause").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Undo the system's pause.
    SystemResume = "system.resume": ReasonBody => Spread {
        cli: Ok("system resume"), http: Ok(Http::post("/api/v1/system/resume").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Fire again after a jump of the clock: it is right.
    ClockAccept = "clock.accept": ReasonBody => NoBody {
        cli: Ok("system accept-clock"), http: Ok(Http::post("/api/v1/cluster/clock/accept").optional_body().nothing()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// The audit trail, newest first: who changed what and why, and who was refused.
    AuditList = "audit.list": AuditBody => Page<AuditView> {
        cli: Ok("audit list"), http: Ok(Http::get("/api/v1/audit")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Executors that are connected, of all nodes.
    ExecutorList = "executor.list": NoBody => Gathered<ExecutorView> {
        cli: Ok("system executors"), http: Ok(Http::get("/api/v1/executors")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// Pools with their executors and waiting runs, of all nodes.
    PoolList = "pool.list": NoBody => Gathered<PoolView> {
        cli: Ok("system pools"), http: Ok(Http::get("/api/v1/pools")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// Facts of this node, with numbers of all nodes.
    SystemInfo = "system.info": NoBody => NodeView {
        cli: Ok("system info"), http: Ok(Http::get("/api/v1/cluster/node")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[],
    }

    /// Living nodes of the cluster, as this one sees them.
    ClusterMembers = "cluster.members": NoBody => Listed<MemberView> {
        cli: Ok("cluster members"), http: Ok(Http::get("/api/v1/cluster/members")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: ALONE,
    }

    /// Who owns each shard.
    ClusterShards = "cluster.shards": ShardFilter => Listed<ShardView> {
        cli: Ok("cluster shards"), http: Ok(Http::get("/api/v1/cluster/shards")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::IllegalState, E::InvalidArgument, E::NotFound],
    }

    /// Shards that are to move, and why.
    ClusterPlan = "cluster.plan": NoBody => ClusterPlanView {
        cli: Ok("cluster plan"), http: Ok(Http::get("/api/v1/cluster/plan")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: ALONE,
    }

    /// What this node saw happen, the newest first.
    ClusterEvents = "cluster.events": NoBody => Listed<ClusterEventView> {
        cli: Ok("cluster events"), http: Ok(Http::get("/api/v1/cluster/events")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: ALONE,
    }

    /// Give a node nothing new; it keeps what it has.
    ClusterCordon = "cluster.cordon": NodeCall<ReasonBody> => NoBody {
        cli: Ok("cluster cordon"), http: Ok(Http::post("/api/v1/cluster/members/{node}/cordon").optional_body().nothing()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_CORDON,
    }

    /// Undo a node's cordon.
    ClusterUncordon = "cluster.uncordon": NodeCall<ReasonBody> => NoBody {
        cli: Ok("cluster uncordon"), http: Ok(Http::post("/api/v1/cluster/members/{node}/uncordon").optional_body().nothing()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_CORDON,
    }
}
