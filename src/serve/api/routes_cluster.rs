//! Routes of the cluster: its nodes, shards, moves, and what happened.

use super::{
    route::{Call, Route},
    routes_system::Items,
};
use campanile_schema::{
    cluster::{ClusterEventView, MemberView, PlanView, ShardFilter, ShardView},
    error::{ApiError, ErrorCode},
    view::ReasonBody,
};

type Answer<T> = Result<T, ApiError>;

/// The node is alone: there is no cluster.
const ALONE: &[ErrorCode] = &[ErrorCode::IllegalState];

/// What a bad body gets, and [`ALONE`].
const CORDON: &[ErrorCode] = &[
    ErrorCode::IllegalState,
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::NotFound,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/cluster/members", "cluster.members", "Living nodes of the cluster, as this one sees them")
            .plain(members)
            .errors(ALONE),
        Route::get("/api/v1/cluster/shards", "cluster.shards", "Who owns each shard").query(shards).errors(&[
            ErrorCode::IllegalState,
            ErrorCode::InvalidArgument,
            ErrorCode::NotFound,
        ]),
        Route::get("/api/v1/cluster/plan", "cluster.plan", "Shards that are to move, and why")
            .plain(plan)
            .errors(ALONE),
        Route::get("/api/v1/cluster/events", "cluster.events", "What this node saw happen, the newest first")
            .plain(events)
            .errors(ALONE),
        Route::post(
            "/api/v1/cluster/members/{node}/cordon",
            "cluster.cordon",
            "Give a node nothing new; it keeps what it has",
        )
        .optional_body(cordon)
        .status(204)
        .errors(CORDON),
        Route::post("/api/v1/cluster/members/{node}/uncordon", "cluster.uncordon", "Undo a node's cordon")
            .optional_body(uncordon)
            .status(204)
            .errors(CORDON),
    ]
}

async fn members(call: Call) -> Answer<Items<MemberView>> {
    call.ops.cluster_members(&call.caller).await.map(|items| Items { items })
}
async fn shards(call: Call, filter: ShardFilter) -> Answer<Items<ShardView>> {
    call.ops.cluster_shards(&call.caller, filter).await.map(|items| Items { items })
}
async fn plan(call: Call) -> Answer<PlanView> {
    call.ops.cluster_plan(&call.caller).await
}
async fn events(call: Call) -> Answer<Items<ClusterEventView>> {
    call.ops.cluster_events(&call.caller).await.map(|items| Items { items })
}
async fn cordon(call: Call, body: ReasonBody) -> Answer<()> {
    call.ops.cluster_cordon(&call.caller, call.node(), true, body).await
}
async fn uncordon(call: Call, body: ReasonBody) -> Answer<()> {
    call.ops.cluster_cordon(&call.caller, call.node(), false, body).await
}
