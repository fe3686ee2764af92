//! The nodes of a DAG that is made: their jobs are looked up in their shards.

use super::Scheduler;
use crate::{ask::ask, call_error::CallError, calls::ShardCall, handles::SessionHandles};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    graph::GraphSpec,
    ids::{shard_of_slot, slot_of},
    job::{Action, JobSpec, JobView},
};
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// Jobs of nodes that are looked up side by side.
const LOOK_UPS: usize = 32;

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidArgument, message)
}

pub(super) fn graph_of(spec: &JobSpec) -> Option<&GraphSpec> {
    match &spec.action {
        Some(Action::Dag(graph)) => Some(graph),
        Some(Action::Handler { .. } | Action::Command { .. } | Action::Http { .. } | Action::Webhook { .. }) | None => {
            None
        }
    }
}

impl Scheduler {
    /// The jobs of a DAG's nodes are there, and none is a DAG. Whoever deletes one later has the node refused.
    pub(super) async fn check_nodes(&self, spec: &JobSpec) -> Answer<()> {
        let Some(graph) = graph_of(spec) else { return Ok(()) };
        let handles = self.handles()?;
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, node) in graph.nodes.iter().enumerate() {
            places.entry(&node.job).or_insert(at);
        }
        let names: Vec<(&str, usize)> = places.into_iter().collect();
        for some in names.chunks(LOOK_UPS) {
            let mut asked = JoinSet::new();
            for (name, at) in some {
                let (handles, tenant, name, at) = (handles.clone(), spec.tenant_id.clone(), (*name).to_owned(), *at);
                asked.spawn(async move { check_node(&handles, tenant, name, at).await });
            }
            while let Some(checked) = asked.join_next().await {
                checked.map_err(|_| CallError::Unanswered)??;
            }
        }
        Ok(())
    }
}

async fn check_node(handles: &SessionHandles, tenant: String, name: String, at: usize) -> Answer<()> {
    let shard = shard_of_slot(slot_of(&tenant, &name), handles.identity.shards);
    let call = ShardCall::GetJobByName { tenant: tenant.clone(), name: name.clone() };
    let job = match ask::<Box<JobView>>(&handles.client, shard, call).await {
        Ok(job) => job,
        Err(error) if error.code() == ErrorCode::NotFound => {
            let why =
                format!("action.nodes[{at}].job: tenant '{tenant}' has no job '{name}'; create it before the DAG");
            return Err(invalid(why));
        }
        Err(error) => return Err(error.into()),
    };
    if graph_of(&job.spec).is_some() {
        let why = format!(
            "action.nodes[{at}].job: '{name}' is a DAG, and a DAG cannot be a node; write its nodes into this DAG"
        );
        return Err(invalid(why));
    }
    Ok(())
}
