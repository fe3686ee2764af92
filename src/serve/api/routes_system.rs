//! Routes of tenants, executors, pools, the node and the system.

use super::{
    archive,
    route::{Call, Route},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    view::{ExecutorView, Gathered, NodeView, PoolView, ReasonBody, Spread, TenantBody, TenantView},
};
use schemars::JsonSchema;
use serde::Serialize;

type Answer<T> = Result<T, ApiError>;

/// A list that has one page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Items<T> {
    pub items: Vec<T>,
}

const BAD_BODY: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::NotFound,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/tenants", "tenant.list", "Tenants with their limits and use").plain(tenants),
        Route::get("/api/v1/tenants/{tenantId}", "tenant.get", "A tenant").plain(tenant).errors(&[ErrorCode::NotFound]),
        Route::put("/api/v1/tenants/{tenantId}", "tenant.set", "Set a tenant's limits (0 = none)")
            .body(set_tenant)
            .errors(BAD_BODY),
        Route::delete(
            "/api/v1/tenants/{tenantId}",
            "tenant.delete",
            "Forget the limits and the pause of a tenant without jobs and open runs; its history stays",
        )
        .query(delete_tenant)
        .status(204)
        .errors(&[ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::IllegalState]),
        Route::post("/api/v1/tenants/{tenantId}/pause", "tenant.pause", "Stop firing and starting for a tenant")
            .spread(pause_tenant)
            .errors(BAD_BODY),
        Route::post("/api/v1/tenants/{tenantId}/resume", "tenant.resume", "Undo a tenant's pause")
            .spread(resume_tenant)
            .errors(BAD_BODY),
        Route::post("/api/v1/system/pause", "system.pause", "Stop firing and starting everywhere")
            .spread(pause_system)
            .errors(BAD_BODY),
        Route::post("/api/v1/system/resume", "system.resume", "Undo the system's pause")
            .spread(resume_system)
            .errors(BAD_BODY),
        Route::post(
            "/api/v1/cluster/clock/accept",
            "clock.accept",
            "Fire again after a jump of the clock: it is right",
        )
        .optional_body(accept_clock)
        .status(204)
        .errors(BAD_BODY),
        Route::get(
            "/api/v1/cluster/backup",
            "store.backup",
            "An archive of everything on this node, sent while it is made",
        )
        .bytes(archive::MEDIA, archive::backup)
        .errors(&[ErrorCode::IllegalState]),
        Route::get(
            "/api/v1/cluster/history",
            "store.history",
            "Runs that ended on closed days, with attempts and logs, oldest first: days of history, sent while they are read",
        )
        .bytes_of(archive::MEDIA, archive::history)
        .errors(&[ErrorCode::InvalidArgument, ErrorCode::IllegalState]),
        Route::get("/api/v1/executors", "executor.list", "Executors that are connected, of all nodes").plain(executors),
        Route::get("/api/v1/pools", "pool.list", "Pools with their executors and waiting runs, of all nodes").plain(pools),
        Route::get("/api/v1/cluster/node", "system.info", "Facts of this node, with numbers of all nodes").plain(node),
    ]
}

async fn tenants(call: Call) -> Answer<Items<TenantView>> {
    call.ops.tenant_list(&call.caller).await.map(|items| Items { items })
}
async fn tenant(call: Call) -> Answer<TenantView> {
    call.ops.tenant_get(&call.caller, call.tenant()).await
}
async fn set_tenant(call: Call, body: TenantBody) -> Answer<TenantView> {
    call.ops.tenant_set(&call.caller, call.tenant(), body).await
}
async fn delete_tenant(call: Call, body: ReasonBody) -> Answer<()> {
    call.ops.tenant_delete(&call.caller, call.tenant(), body).await
}
async fn pause_tenant(call: Call, body: ReasonBody) -> Answer<Spread> {
    call.ops.tenant_pause(&call.caller, call.tenant(), body).await
}
async fn resume_tenant(call: Call, body: ReasonBody) -> Answer<Spread> {
    call.ops.tenant_resume(&call.caller, call.tenant(), body).await
}
async fn pause_system(call: Call, body: ReasonBody) -> Answer<Spread> {
    call.ops.system_pause(&call.caller, body).await
}
async fn resume_system(call: Call, body: ReasonBody) -> Answer<Spread> {
    call.ops.system_resume(&call.caller, body).await
}
async fn accept_clock(call: Call, body: ReasonBody) -> Answer<()> {
    call.ops.clock_accept(&call.caller, body).await
}
async fn executors(call: Call) -> Answer<Gathered<ExecutorView>> {
    call.ops.executor_list(&call.caller).await
}
async fn pools(call: Call) -> Answer<Gathered<PoolView>> {
    call.ops.pool_list(&call.caller).await
}
async fn node(call: Call) -> Answer<NodeView> {
    call.ops.system_info(&call.caller).await
}
