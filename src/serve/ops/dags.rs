//! DAGs: the short form that makes one of jobs that exist, the nodes of a run, and what a person does with them.

use super::{Answer, Operations, access, check_key, invalid};
use campanile_schema::{
    job::{JobSpec, Trigger},
    limits::GRAPH_NODES,
    operations::{DagCreate, DagMark, DagNodes, DagPause, DagResume, DagRetry, Handle},
    rpc::calls::{DagCall, RunCall},
    view::{
        ReasonBody, RunView,
        dag::{DagCreated, DagMarkBody, DagNodesBody, DagRetryBody, DagRunView},
    },
};
use campanile_security::auth::Caller;

/// The same key with the same DAG again answers with the job that was made; with another DAG it is refused.
impl Handle<DagCreate> for Operations {
    fn check(request: &DagCall) -> Answer<()> {
        check_key("Idempotency-Key", request.field.as_deref())
    }

    async fn handle(&self, caller: &Caller, request: DagCall) -> Answer<DagCreated> {
        let DagCall { field: idempotency_key, body: graph } = request;
        if graph.nodes.len() > GRAPH_NODES {
            // Before each of them is looked up.
            return Err(invalid(format!("nodes: a DAG has at most {GRAPH_NODES}; this one has {}", graph.nodes.len())));
        }
        let trigger = graph.trigger.clone().unwrap_or(Trigger::Manual {});
        let mut spec = JobSpec::new(&graph.tenant_id, &graph.dag_id, trigger);
        access::settle_spec(caller, &mut spec)?;
        self.scheduler.create_dag(spec, &graph, idempotency_key).await
    }
}

/// The nodes of a run with their states and their places in a layout.
impl Handle<DagNodes> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<DagNodesBody>) -> Answer<DagRunView> {
        let (run, body) = request.parts()?;
        self.scheduler.dag_nodes(run, body.draw).await
    }
}

/// A run that had ended goes on; what did not run because of the node follows.
impl Handle<DagRetry> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<DagRetryBody>) -> Answer<RunView> {
        let (run, DagRetryBody { nodes, and_after, reason }) = request.parts()?;
        self.scheduler.retry_nodes(run, nodes, and_after, reason).await
    }
}

/// A node without an open run gets a state by hand; a run that had ended goes on.
impl Handle<DagMark> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<DagMarkBody>) -> Answer<RunView> {
        let (run, DagMarkBody { node, state, reason }) = request.parts()?;
        self.scheduler.mark_node(run, node, state, reason).await
    }
}

impl Handle<DagPause> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ReasonBody>) -> Answer<RunView> {
        let (run, ReasonBody { reason }) = request.parts()?;
        self.scheduler.pause_dag_run(run, reason).await
    }
}

impl Handle<DagResume> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ReasonBody>) -> Answer<RunView> {
        let (run, ReasonBody { reason }) = request.parts()?;
        self.scheduler.resume_dag_run(run, reason).await
    }
}
