//! The cluster: its nodes, shards, moves and what happened; for operators, at any node.

use super::{Answer, Operations, access, audit, check_reason};
use campanile_cluster::admin::{ClusterAdmin, alone};
use campanile_schema::{
    cluster::{ClusterEventView, MemberView, PlanView, ShardFilter, ShardView},
    limits::CLUSTER_EVENTS,
    view::ReasonBody,
};
use campanile_security::auth::Caller;

impl Operations {
    fn admin(&self, caller: &Caller) -> Answer<&ClusterAdmin> {
        access::operator(caller)?;
        self.cluster.as_deref().ok_or_else(alone)
    }

    pub async fn cluster_members(&self, caller: &Caller) -> Answer<Vec<MemberView>> {
        self.admin(caller)?.members(&self.scheduler)
    }

    pub async fn cluster_shards(&self, caller: &Caller, filter: ShardFilter) -> Answer<Vec<ShardView>> {
        self.admin(caller)?.shards(&self.scheduler, filter.node.as_deref())
    }

    pub async fn cluster_plan(&self, caller: &Caller) -> Answer<PlanView> {
        self.admin(caller)?.plan(&self.scheduler)
    }

    pub async fn cluster_events(&self, caller: &Caller) -> Answer<Vec<ClusterEventView>> {
        Ok(self.admin(caller)?.events(CLUSTER_EVENTS))
    }

    /// The node keeps its shards and gets nothing new, or does again.
    pub async fn cluster_cordon(&self, caller: &Caller, node: &str, cordoned: bool, body: ReasonBody) -> Answer<()> {
        let admin = self.admin(caller)?;
        check_reason(body.reason.as_deref())?;
        let done = admin.cordon(node, cordoned).await;
        let operation = if cordoned { "cluster.cordon" } else { "cluster.uncordon" };
        audit(caller, operation, &node, body.reason.as_deref(), &done);
        done
    }
}
