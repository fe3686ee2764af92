//! Starts of nodes: how many at once, and what the job of a node is sent.

use super::{
    clauses::{Clause, kept},
    node::GENERATIONS,
    run::GraphRun,
    step::{GraphEffect, Turn},
    template::Reference,
};
use campanile_schema::{
    graph::{
        change::GraphChange,
        state::{NodeFailure, NodeState},
    },
    limits,
    payload::Payload,
    stored::deadline::StoredDeadline,
    text::Text,
    time::Timestamp,
};
use serde_json::Value;

/// What the job of a node needs to make its run, besides the key and the generation.
#[derive(Clone, Debug, PartialEq)]
pub struct StartBody {
    pub job: Text,
    pub generation: u32,
    /// Those of the DAG run with those of the node over them, templates filled in. The job lays them over its own.
    pub params: Payload,
    /// Seconds per attempt; the job's own when there is none.
    pub timeout_sec: Option<u64>,
    /// Until when its run has to end; what the job says when there is none.
    pub deadline: Option<StoredDeadline>,
    /// Instant that the DAG run stands for, ms.
    pub logical_ms: Option<i64>,
    /// Paths of the result fields that the end of the run must bring, each as its names joined by dots.
    pub fields: Vec<String>,
}

impl GraphRun {
    /// The body of a node's start, built when the message is sent, so that it need not be stored. `dag_params`: those of the DAG run.
    pub fn start_body(&self, node: u32, dag_params: &Payload) -> Result<StartBody, NodeFailure> {
        let of = self.graph.node(node);
        Ok(StartBody {
            job: of.job.clone(),
            generation: self.node(node).generation(),
            params: dag_params.laid_over(Some(&self.params(node)?)),
            timeout_sec: of.timeout_sec,
            deadline: of.deadline.clone(),
            logical_ms: self.logical_ms,
            fields: of.fields.iter().map(super::fields::FieldPath::text).collect(),
        })
    }

    /// The node's own params, filled in.
    fn params(&self, node: u32) -> Result<Payload, NodeFailure> {
        let params = self.graph.node(node).params.render(&|reference| self.value(reference))?;
        if params.len() > limits::PARAMS_BYTES { Err(NodeFailure::ParamsTooLarge) } else { Ok(params) }
    }

    /// A node that did not succeed by a run of its own has no result, so all of its fields are null. One that did must have the field.
    fn value(&self, reference: &Reference) -> Result<Value, NodeFailure> {
        let (id, field) = match reference {
            Reference::LogicalTime => return Ok(self.logical_ms.map(|ms| Timestamp(ms).to_string()).into()),
            Reference::Result { node, field } => (node, field),
        };
        let Some(node) = self.graph.find(id) else { return Err(NodeFailure::ResultMissing) };
        let value = self.results.get(&node).and_then(|result| field.find(&result.to_value()).cloned());
        let must = self.node(node).state() == NodeState::Success && !self.node(node).is_marked();
        match value {
            Some(value) => Ok(value),
            None if must && kept(Clause::TemplateNeedsValue) => Err(NodeFailure::ResultMissing),
            None => Ok(Value::Null),
        }
    }
}

impl Turn<'_> {
    /// Starts nodes that may, the first in the order of the graph first, within `maxParallel` and the limit of one decision. A node
    /// whose params cannot be filled in fails instead.
    pub(super) fn start(&mut self) {
        let (mut started, mut looked) = (Vec::new(), 0);
        while let Some(place) = self.run.ready.first() {
            let full = self.run.running >= self.graph.max_parallel && kept(Clause::MaxParallel);
            let paused = self.run.paused.is_some() && kept(Clause::PauseHoldsStarts);
            if full || paused || self.run.finished.is_some() {
                break;
            }
            if looked == limits::GRAPH_STARTS && kept(Clause::StartsPerDecision) {
                self.decision.wake = kept(Clause::WakeForTheRest);
                break;
            }
            looked += 1;
            let node = self.graph.order()[place as usize];
            let generation = self.run.node(node).generation();
            // The body is built again when it is sent; until then nothing that it reads changes, as all of it has ended.
            match self.run.params(node) {
                Ok(_) if generation < GENERATIONS => {
                    self.run.apply(&GraphChange::Started { nodes: vec![node] });
                    started.push(node);
                    let generation = self.run.node(node).generation();
                    self.decision.effects.push(GraphEffect::Start { node, generation });
                }
                outcome => {
                    self.keep_started(&mut started);
                    let failure = outcome.err().unwrap_or(NodeFailure::Undelivered);
                    self.end(node, generation, NodeState::Failed, Some(failure), None, None);
                    self.pass();
                }
            }
        }
        self.keep_started(&mut started);
    }

    /// Writes down what was started, before whatever follows it.
    fn keep_started(&mut self, started: &mut Vec<u32>) {
        if !started.is_empty() {
            self.decision.changes.push(GraphChange::Started { nodes: std::mem::take(started) });
        }
    }
}
