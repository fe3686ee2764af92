//! The cluster: its nodes, shards, moves and what happened; for operators, at any node.

use super::{Answer, Operations};
use campanile_cluster::admin::{ClusterAdmin, alone};
use campanile_schema::{
    cluster::{ClusterEventView, MemberView, PlanView, ShardFilter, ShardView},
    limits::CLUSTER_EVENTS,
    operations::{ClusterCordon, ClusterEvents, ClusterMembers, ClusterPlan, ClusterShards, ClusterUncordon, Handle},
    rpc::calls::{Listed, NoBody, NodeCall},
    view::ReasonBody,
};
use campanile_security::auth::Caller;

impl Operations {
    fn admin(&self) -> Answer<&ClusterAdmin> {
        self.cluster.as_deref().ok_or_else(alone)
    }
}

impl Handle<ClusterMembers> for Operations {
    async fn handle(&self, _: &Caller, NoBody {}: NoBody) -> Answer<Listed<MemberView>> {
        self.admin()?.members(&self.scheduler).map(|items| Listed { items })
    }
}

impl Handle<ClusterShards> for Operations {
    async fn handle(&self, _: &Caller, filter: ShardFilter) -> Answer<Listed<ShardView>> {
        self.admin()?.shards(&self.scheduler, filter.node.as_deref()).map(|items| Listed { items })
    }
}

impl Handle<ClusterPlan> for Operations {
    async fn handle(&self, _: &Caller, NoBody {}: NoBody) -> Answer<PlanView> {
        self.admin()?.plan(&self.scheduler)
    }
}

impl Handle<ClusterEvents> for Operations {
    async fn handle(&self, _: &Caller, NoBody {}: NoBody) -> Answer<Listed<ClusterEventView>> {
        Ok(Listed { items: self.admin()?.events(CLUSTER_EVENTS) })
    }
}

/// The node keeps its shards and gets nothing new.
impl Handle<ClusterCordon> for Operations {
    async fn handle(&self, _: &Caller, request: NodeCall<ReasonBody>) -> Answer<NoBody> {
        let (node, _) = request.parts()?;
        self.admin()?.cordon(&node, true).await.map(|()| NoBody {})
    }
}

impl Handle<ClusterUncordon> for Operations {
    async fn handle(&self, _: &Caller, request: NodeCall<ReasonBody>) -> Answer<NoBody> {
        let (node, _) = request.parts()?;
        self.admin()?.cordon(&node, false).await.map(|()| NoBody {})
    }
}
