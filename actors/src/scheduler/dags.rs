//! Calls about DAGs: they are made of the ids of jobs, and their runs are shown and changed node by node.

use super::{
    Scheduler, no_such,
    nodes::{graph_of, invalid},
    runs::run_view,
    unavailable,
};
use crate::{
    ask::ask,
    call_error::CallError,
    calls::{GraphAction, ShardCall},
};
use campanile_core::{graph::show::shown, job::Reply};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    graph::{ShortGraphSpec, StoredGraph, state::NodeState},
    ids::{JobId, RunId},
    job::{Action, JobSpec, JobView},
    stored::graph::GraphRecord,
    text::Text,
    view::{
        RunView,
        dag::{DagCreated, DagDrawing, DagRunView},
    },
};
use std::{collections::HashMap, sync::Arc};

impl Scheduler {
    /// The short form: jobs by their ids. `spec`: the job that the DAG becomes, without its action.
    pub async fn create_dag(
        &self,
        mut spec: JobSpec,
        graph: &ShortGraphSpec,
        idempotency_key: Option<String>,
    ) -> Answer<DagCreated> {
        let mut names: HashMap<JobId, String> = HashMap::new();
        for (at, id) in graph.nodes.iter().enumerate() {
            if names.contains_key(id) {
                continue;
            }
            let absent = || invalid(format!("nodes[{at}]: tenant '{}' has no job {id}", spec.tenant_id));
            let job = match self.job(*id).await {
                Ok(job) if job.spec.tenant_id == spec.tenant_id => job,
                Ok(_) => return Err(absent()),
                Err(error) if error.known() == ErrorCode::NotFound => return Err(absent()),
                Err(error) => return Err(error),
            };
            names.insert(*id, job.spec.name);
        }
        let long = graph.to_spec(|id| names.get(&id).cloned());
        let long = long.map_err(|id| invalid(format!("nodes: tenant '{}' has no job {id}", spec.tenant_id)))?;
        spec.action = Some(Action::Dag(long));
        let created = self.create_job(spec, idempotency_key).await.map_err(in_short_form)?;
        Ok(DagCreated { dag_id: graph.dag_id.clone(), job_id: created.job_id, status: created.status })
    }

    /// A run of a DAG with its nodes.
    pub async fn dag_nodes(&self, run: RunId, draw: Option<DagDrawing>) -> Answer<DagRunView> {
        let handles = self.handles()?;
        let view = self.run(run).await?;
        let call = ShardCall::GetGraph(run);
        let live: Option<Box<GraphRecord>> = ask(&handles.client, run.shard(handles.identity.shards), call).await?;
        let record = match live {
            Some(record) => *record,
            None => {
                let record = handles.views.run(run).await.map_err(|e| unavailable(&e))?;
                let record = record.ok_or_else(|| no_such("run", run))?;
                Arc::unwrap_or_clone(record.graph.ok_or_else(no_nodes)?)
            }
        };
        let graph = match &record.graph {
            Some(graph) => graph.clone(),
            None => self.current_graph(view.job_id, record.print).await?,
        };
        Ok(shown(&view, &record, &graph, draw)?)
    }

    /// The graph of a run whose record has none: that of the definition of now, if it is the same.
    async fn current_graph(&self, job: JobId, print: u64) -> Answer<Arc<StoredGraph>> {
        let job: Answer<JobView> = self.job(job).await;
        let graph = job.ok().and_then(|job| graph_of(&job.spec).map(StoredGraph::from));
        graph.filter(|graph| graph.print() == print).map(Arc::new).ok_or_else(|| {
            let why = "the DAG was edited or deleted since, and its graph was too large to be kept with the run";
            ApiError::new(ErrorCode::IllegalState, why)
        })
    }

    /// Runs nodes again; without names all that failed or were canceled.
    pub async fn retry_nodes(
        &self,
        run: RunId,
        nodes: Vec<String>,
        and_after: bool,
        reason: Option<String>,
    ) -> Answer<RunView> {
        let by = self.who();
        let action = if nodes.is_empty() {
            if and_after {
                return Err(invalid("andAfter: name the nodes after which all is to run again"));
            }
            GraphAction::RetryFailed { by, reason }
        } else {
            GraphAction::Retry { nodes, and_after, by, reason }
        };
        self.change_graph(run, action).await
    }

    /// Sets the state of a node.
    pub async fn mark_node(
        &self,
        run: RunId,
        node: String,
        state: NodeState,
        reason: Option<String>,
    ) -> Answer<RunView> {
        let by = self.who();
        self.change_graph(run, GraphAction::Mark { node, state, by, reason }).await
    }

    /// No further node of an open run starts; runs of nodes go on.
    pub async fn pause_dag_run(&self, run: RunId, reason: Option<String>) -> Answer<RunView> {
        let by = self.who();
        self.change_graph(run, GraphAction::Pause { by, reason }).await
    }

    pub async fn resume_dag_run(&self, run: RunId, reason: Option<String>) -> Answer<RunView> {
        let by = self.who();
        self.change_graph(run, GraphAction::Resume { by, reason }).await
    }

    /// Retries the node that a run is of, at its DAG run; what comes after it follows.
    pub(super) async fn retry_at_parent(&self, dag: RunId, place: u32, reason: Option<String>) -> Answer<RunView> {
        let by = self.who();
        let retried = self.change_graph(dag, GraphAction::RetryPlace { place, by, reason }).await;
        retried.map_err(|error| {
            if error.known() != ErrorCode::NotFound {
                return error;
            }
            let why = format!(
                "the run is of a node of DAG run {dag}, which cannot go on: its DAG was deleted, or its record is not kept any more"
            );
            ApiError::new(ErrorCode::HistoryGone, why)
        })
    }

    async fn change_graph(&self, run: RunId, action: GraphAction) -> Answer<RunView> {
        // What is not found below is a node, or the DAG itself.
        let job = self.run(run).await?.job_id;
        let handles = self.handles()?;
        let change = self.with_record(&handles, ShardCall::ChangeGraph { run, action });
        let shard = run.shard(handles.identity.shards);
        let changed: Result<Reply, CallError> = ask(&handles.client, shard, change).await;
        match changed {
            Ok(reply) => run_view(reply),
            Err(error) if error.code() == ErrorCode::NotFound && self.job(job).await.is_err() => {
                Err(ApiError::new(ErrorCode::NotFound, format!("the DAG of run {run} was deleted")))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn who(&self) -> Option<Text> {
        self.caller().and_then(|origin| origin.who.clone())
    }
}

fn no_nodes() -> ApiError {
    let why = "the run has no nodes: it is not a run of a DAG, or it ended before it began";
    ApiError::new(ErrorCode::IllegalState, why)
}

/// The short form has nodes and edges at its top.
fn in_short_form(mut error: ApiError) -> ApiError {
    if let Some(rest) = error.message.strip_prefix("action.").or_else(|| error.message.strip_prefix("action: ")) {
        error.message = rest.to_owned();
    }
    error
}
