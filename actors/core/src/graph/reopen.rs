//! What a person does to a run of a DAG: retry a node, retry from a node, set a node's state, pause and resume the run. A run
//! that was final goes on with a retry or a state.
//!
//! A retry runs again what it names and, with `and_after`, all that comes after it. What else comes after it keeps its state if it ran,
//! and waits again if it passed (UPSTREAM_FAILED, SKIPPED, or kept from starting by a stop): its rule is asked anew. A run that was stopped
//! and goes on is not stopped any more.

use super::{
    clauses::{Clause, kept},
    node::GENERATIONS,
    step::{Turn, illegal},
};
use crate::reject::Rejection;
use campanile_schema::{
    error::ErrorCode,
    graph::{
        change::{GraphChange, GraphPause},
        state::NodeState,
    },
    text::Text,
};
use std::collections::{BTreeSet, VecDeque};

impl Turn<'_> {
    pub fn retry(
        &mut self,
        nodes: &[u32],
        and_after: bool,
        by: &Option<Text>,
        reason: &Option<String>,
    ) -> Result<(), Rejection> {
        self.check_open()?;
        let mut named = BTreeSet::new();
        for node in nodes {
            let id = self.id(*node)?;
            let (slot, state) = (*self.run.node(*node), self.state(*node));
            if !state.is_final() {
                return Err(illegal(format!("node '{id}' is {state}; only a node that has ended can be retried")));
            }
            let passed = matches!(state, NodeState::UpstreamFailed | NodeState::Skipped) && !slot.is_marked();
            if passed && !and_after {
                return Err(illegal(format!("node '{id}' is {state}: it did not run, so retry a node before it")));
            }
            if slot.generation() >= GENERATIONS {
                return Err(illegal(format!("node '{id}' was started {GENERATIONS} times")));
            }
            named.insert(*node);
        }
        if named.is_empty() {
            return Err(Rejection::new(ErrorCode::InvalidArgument, "name at least one node to retry"));
        }
        let all = and_after && kept(Clause::RetryFromTakesAll);
        let reset = self.and_what_follows(&named, all, true)?;
        self.go_on_with(reset, by, reason);
        Ok(())
    }

    pub fn mark(
        &mut self,
        node: u32,
        state: NodeState,
        by: &Option<Text>,
        reason: &Option<String>,
    ) -> Result<(), Rejection> {
        let id = self.id(node)?;
        if !matches!(state, NodeState::Success | NodeState::Skipped) {
            return Err(Rejection::new(ErrorCode::InvalidArgument, "a node can be marked SUCCESS or SKIPPED"));
        }
        self.check_open()?;
        let now = self.state(node);
        if now.has_run() && kept(Clause::MarkNeedsNoRun) {
            return Err(illegal(format!("node '{id}' is {now}: cancel its run, or wait until it has ended")));
        }
        if now == state {
            return Ok(());
        }
        let passed = self.and_what_follows(&BTreeSet::from([node]), false, false)?;
        if self.run.finished.is_some() || !passed.is_empty() {
            self.go_on_with(passed, by, reason);
        }
        self.record(GraphChange::Marked { node, state, by: by.clone(), reason: reason.clone() });
        if state == NodeState::Success && !kept(Clause::MarkTakesEdges) {
            self.end(node, self.run.node(node).generation(), state, None, None, None);
        }
        self.note(node);
        Ok(())
    }

    /// Paused twice is paused once, and the first one counts.
    pub fn pause(&mut self, pause: &GraphPause) -> Result<(), Rejection> {
        self.check_runs("paused")?;
        self.check_open()?;
        if self.run.paused.is_none() {
            self.record(GraphChange::Paused { pause: pause.clone() });
        }
        Ok(())
    }

    pub fn resume(&mut self, by: &Option<Text>, reason: &Option<String>) -> Result<(), Rejection> {
        self.check_runs("resumed")?;
        if self.run.paused.is_some() {
            self.record(GraphChange::Resumed { by: by.clone(), reason: reason.clone() });
        }
        Ok(())
    }

    fn check_runs(&self, what: &str) -> Result<(), Rejection> {
        match self.run.finished {
            Some(state) => Err(illegal(format!("the DAG run is {state}; only one that has not ended is {what}"))),
            None => Ok(()),
        }
    }

    fn id(&self, node: u32) -> Result<Text, Rejection> {
        let known = self.graph.nodes.get(node as usize).map(|known| known.id.clone());
        known.ok_or_else(|| Rejection::new(ErrorCode::NotFound, format!("the DAG has no node with the number {node}")))
    }

    /// A run that is being stopped takes no retry and no mark: it first ends.
    fn check_open(&self) -> Result<(), Rejection> {
        if self.run.finished.is_none() && self.run.is_stopped() {
            return Err(illegal("the DAG run is being stopped; wait until all of its nodes have ended"));
        }
        Ok(())
    }

    /// The nodes, if `them`, and of what comes after them what passed, or all of it. In the order of the graph.
    fn and_what_follows(&self, nodes: &BTreeSet<u32>, all: bool, them: bool) -> Result<Vec<u32>, Rejection> {
        let mut found: BTreeSet<u32> = BTreeSet::new();
        let mut next: VecDeque<u32> = nodes.iter().copied().collect();
        while let Some(node) = next.pop_front() {
            for child in self.graph.children(node) {
                let (child, state) = (child.node, self.state(child.node));
                if all && state.has_run() {
                    let id = &self.graph.node(child).id;
                    return Err(illegal(format!("node '{id}', which comes after it, is {state}: cancel it first")));
                }
                let passed = self.run.node(child).is_derived() && kept(Clause::RetryFreesWhatPassed);
                let follows = all || passed || (state.is_final() && !kept(Clause::RetryKeepsWhatRan));
                if follows && !nodes.contains(&child) && found.insert(child) {
                    next.push_back(child);
                }
            }
        }
        if them {
            found.extend(nodes);
        }
        let mut found: Vec<u32> = found.into_iter().filter(|node| self.state(*node).is_final()).collect();
        found.sort_by_key(|node| self.graph.position(*node));
        Ok(found)
    }

    fn go_on_with(&mut self, nodes: Vec<u32>, by: &Option<Text>, reason: &Option<String>) {
        let raised = self.run.finished.is_some() && kept(Clause::ReopenRaisesGeneration);
        let generation = self.run.generation + u32::from(raised);
        self.record(GraphChange::Reset { generation, nodes, by: by.clone(), reason: reason.clone() });
        // Whatever waits now may be unable to run: parents that are not retried have ended before.
        self.dirty.extend(self.graph.order());
    }
}
