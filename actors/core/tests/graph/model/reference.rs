//! What a run of a DAG must do, told a second time and as plainly as possible: no counters, no marks on edges, nothing kept that can be
//! found out by looking at every edge again, and verdicts by trying every way in which open parents can still end. It shares with the
//! code under test the words for states and rules, and nothing else.

use super::plan::{Condition, Plan};
use campanile_schema::{
    graph::state::{NodeRule, NodeState},
    record::RunState,
};

/// A node. Times are counted in changes, so that "before" can be asked.
#[derive(Clone, Debug)]
pub struct RefNode {
    pub state: NodeState,
    pub marked: bool,
    /// Kept from starting by a stop.
    pub held: bool,
    pub generation: u32,
    /// When it last stopped waiting.
    left: u64,
    /// When it last ended.
    ended: u64,
    /// The field `rows` of its result.
    rows: Option<i64>,
}

/// How a parent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Ok,
    Failed,
    Skipped,
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Wait,
    Run,
    UpstreamFailed,
    Skip,
}

/// A run of the plan's DAG.
#[derive(Clone)]
pub struct Reference {
    plan: Plan,
    pub nodes: Vec<RefNode>,
    pub canceled: bool,
    pub timed_out: bool,
    pub failed_fast: bool,
    pub paused: bool,
    pub finished: Option<RunState>,
    pub generation: u32,
    clock: u64,
    /// Something failed in this step.
    failure: bool,
    /// Topological order; among nodes that are free together it says which starts first.
    order: Vec<usize>,
}

/// How many parents count how: (ok, failed, skipped, open).
type Parents = [usize; 4];

/// Whether the rule holds for parents that stand so, if nothing more happened.
fn holds(rule: NodeRule, [ok, failed, skipped, open]: Parents) -> bool {
    match rule {
        NodeRule::AllSuccess => failed + skipped + open == 0,
        NodeRule::AllDone => open == 0,
        NodeRule::AnySuccess => ok > 0,
        NodeRule::AnyFailed => failed > 0,
        NodeRule::NoneFailed => open == 0 && failed == 0,
    }
}

/// Every way in which the parents can come to stand, this one included.
fn futures([ok, failed, skipped, open]: Parents) -> Vec<Parents> {
    let mut all = Vec::new();
    for succeed in 0..=open {
        for fail in 0..=open - succeed {
            for skip in 0..=open - succeed - fail {
                all.push([ok + succeed, failed + fail, skipped + skip, open - succeed - fail - skip]);
            }
        }
    }
    all
}

/// What a rule says about parents that stand so.
pub fn says(rule: NodeRule, parents: Parents) -> Says {
    let futures = futures(parents);
    if futures.iter().all(|future| holds(rule, *future)) {
        return Says::Run;
    }
    if futures.iter().any(|future| holds(rule, *future)) {
        return Says::Wait;
    }
    // It never runs. Failed beats skipped, so skipped is only said when nothing can fail any more.
    let [_, failed, _, open] = parents;
    match (failed, open) {
        (1.., _) => Says::UpstreamFailed,
        (0, 1..) => Says::Wait,
        (0, 0) => Says::Skip,
    }
}

impl Reference {
    pub fn new(plan: &Plan, order: Vec<usize>) -> Self {
        let node = RefNode {
            state: NodeState::Waiting,
            marked: false,
            held: false,
            generation: 0,
            left: 0,
            ended: 0,
            rows: None,
        };
        Self {
            nodes: vec![node; plan.rules.len()],
            plan: plan.clone(),
            canceled: false,
            timed_out: false,
            failed_fast: false,
            paused: false,
            finished: None,
            generation: 1,
            clock: 0,
            failure: false,
            order,
        }
    }

    fn counted(&self, edge: usize) -> Counted {
        let edge = &self.plan.edges[edge];
        let parent = &self.nodes[edge.from];
        match parent.state {
            NodeState::Waiting | NodeState::Starting | NodeState::Active => Counted::Open,
            NodeState::Failed | NodeState::Canceled | NodeState::UpstreamFailed => Counted::Failed,
            NodeState::Skipped => Counted::Skipped,
            NodeState::Success if parent.marked => Counted::Ok,
            NodeState::Success => match (edge.condition, parent.rows) {
                (None, _) => Counted::Ok,
                (Some(Condition::RowsPositive), Some(rows)) if rows > 0 => Counted::Ok,
                (Some(Condition::RowsPositive), Some(_)) => Counted::Skipped,
                (Some(Condition::RowsPositive), None) | (Some(Condition::AlwaysBroken), _) => Counted::Failed,
                (Some(Condition::Never), _) => Counted::Skipped,
            },
        }
    }

    fn edges_to(&self, node: usize) -> Vec<usize> {
        (0..self.plan.edges.len()).filter(|edge| self.plan.edges[*edge].to == node).collect()
    }

    pub fn says(&self, node: usize) -> Says {
        let mut parents = [0; 4];
        for edge in self.edges_to(node) {
            parents[self.counted(edge) as usize] += 1;
        }
        says(self.plan.rules[node], parents)
    }

    fn set(&mut self, node: usize, state: NodeState) {
        self.clock += 1;
        let slot = &mut self.nodes[node];
        if slot.state == NodeState::Waiting {
            slot.left = self.clock;
        }
        slot.state = state;
        slot.marked = false;
        slot.held = false;
        if state.is_final() {
            slot.ended = self.clock;
        }
    }

    fn stopped(&self) -> bool {
        self.canceled || self.timed_out || self.failed_fast
    }

    fn hold_all(&mut self) {
        for node in self.order.clone() {
            if self.nodes[node].state == NodeState::Waiting {
                self.set(node, NodeState::Canceled);
                self.nodes[node].held = true;
            }
        }
        self.failure = false;
    }

    /// Nodes whose runs may be open.
    pub fn running(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].state.has_run()).collect()
    }

    fn pass(&mut self) {
        loop {
            let waiting = |node: &usize| self.nodes[*node].state == NodeState::Waiting;
            let passed = self.order.iter().copied().filter(waiting).find_map(|node| match self.says(node) {
                Says::UpstreamFailed => Some((node, NodeState::UpstreamFailed)),
                Says::Skip => Some((node, NodeState::Skipped)),
                Says::Run | Says::Wait => None,
            });
            let Some((node, state)) = passed else { break };
            self.set(node, state);
        }
        if std::mem::take(&mut self.failure) && self.plan.fail_fast && !self.stopped() {
            self.failed_fast = true;
            self.hold_all();
        }
    }

    /// What follows by itself. Gives the nodes that start, and whether more could.
    pub fn go_on(&mut self, most: usize) -> (Vec<usize>, bool) {
        self.pass();
        let (mut started, mut looked) = (Vec::new(), 0);
        let wake = loop {
            let can = |node: &usize| self.nodes[*node].state == NodeState::Waiting && self.says(*node) == Says::Run;
            let Some(node) = self.order.iter().copied().find(can) else { break false };
            if self.paused || self.running().len() >= self.plan.max_parallel {
                break false;
            }
            if looked == most {
                break true;
            }
            looked += 1;
            let reads = self.plan.reads[node].map(|from| &self.nodes[from]);
            let missing = |from: &RefNode| from.state == NodeState::Success && !from.marked && from.rows.is_none();
            if reads.is_some_and(missing) {
                self.set(node, NodeState::Failed);
                self.failure = true;
                self.pass();
            } else {
                self.set(node, NodeState::Starting);
                self.nodes[node].generation += 1;
                started.push(node);
            }
        };
        if self.finished.is_none() && self.nodes.iter().all(|node| node.state.is_final()) {
            self.finished = Some(self.outcome());
            self.paused = false;
        }
        (started, wake)
    }

    fn outcome(&self) -> RunState {
        if self.canceled {
            return RunState::Canceled;
        }
        if self.timed_out {
            return RunState::Timeout;
        }
        let handled = |node: usize| {
            self.plan.edges.iter().filter(|edge| edge.from == node).any(|edge| {
                let behind = &self.nodes[edge.to];
                matches!(self.plan.rules[edge.to], NodeRule::AnyFailed | NodeRule::AllDone)
                    && behind.state == NodeState::Success
                    && behind.left > self.nodes[node].ended
            })
        };
        let unhandled = |node: &usize| self.nodes[*node].state.is_failure() && !handled(*node);
        if (0..self.nodes.len()).any(|node| unhandled(&node)) { RunState::Failed } else { RunState::Success }
    }

    /// The node's run says that it is there.
    pub fn taken(&mut self, node: usize, generation: u32) {
        if self.nodes[node].state == NodeState::Starting && generation >= self.nodes[node].generation {
            self.set(node, NodeState::Active);
            self.nodes[node].generation = generation;
        }
    }

    /// The node's run has ended. True: it counts.
    pub fn ended(&mut self, node: usize, generation: u32, state: NodeState, rows: Option<i64>) -> bool {
        if !self.nodes[node].state.has_run() || generation < self.nodes[node].generation {
            return false;
        }
        self.nodes[node].generation = generation;
        self.nodes[node].rows = rows.filter(|_| state == NodeState::Success && self.is_read(node));
        self.set(node, state);
        let behind = |edge: &usize| self.plan.edges[*edge].from == node;
        let broken = (0..self.plan.edges.len()).filter(behind).any(|edge| self.counted(edge) == Counted::Failed);
        self.failure |= state.is_failure() || broken;
        true
    }

    fn is_read(&self, node: usize) -> bool {
        let by_condition = self.plan.edges.iter().any(|edge| edge.from == node && edge.condition.is_some());
        by_condition || self.plan.reads.contains(&Some(node))
    }

    /// Gives the nodes whose runs are to be canceled.
    pub fn stop(&mut self, timeout: bool) -> Vec<usize> {
        let flag = if timeout { self.timed_out } else { self.canceled };
        if self.finished.is_some() || flag {
            return Vec::new();
        }
        let running = if self.stopped() { Vec::new() } else { self.running() };
        if timeout {
            self.timed_out = true;
        } else {
            self.canceled = true;
        }
        self.hold_all();
        running
    }

    /// False: refused.
    pub fn pause(&mut self) -> bool {
        let fits = self.finished.is_none() && !self.stopped();
        self.paused |= fits;
        fits
    }

    fn wait_again(&mut self, node: usize) {
        if self.nodes[node].state.is_final() {
            self.clock += 1;
            let slot = &mut self.nodes[node];
            (slot.state, slot.marked, slot.held, slot.rows) = (NodeState::Waiting, false, false, None);
        }
    }

    /// A run that was final goes on.
    fn reopen(&mut self) {
        if self.finished.take().is_some() {
            self.generation += 1;
            (self.canceled, self.timed_out, self.failed_fast) = (false, false, false);
            for node in 0..self.nodes.len() {
                if self.nodes[node].held {
                    self.wait_again(node);
                }
            }
        }
    }

    /// Whether the node's state came from its parents or from a stop.
    fn passed(&self, node: usize) -> bool {
        let slot = &self.nodes[node];
        let by_parents = matches!(slot.state, NodeState::UpstreamFailed | NodeState::Skipped);
        (by_parents || slot.held) && !slot.marked
    }

    fn behind(&self, nodes: &[usize], through: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut next = nodes.to_vec();
        while let Some(node) = next.pop() {
            for edge in self.plan.edges.iter().filter(|edge| edge.from == node) {
                if through(edge.to) && !nodes.contains(&edge.to) && !found.contains(&edge.to) {
                    found.push(edge.to);
                    next.push(edge.to);
                }
            }
        }
        found
    }

    /// False: refused.
    pub fn retry(&mut self, nodes: &[usize], and_after: bool) -> bool {
        let stopping = self.finished.is_none() && self.stopped();
        let ended = nodes.iter().all(|node| self.nodes[*node].state.is_final());
        let unfit = |node: &usize| self.passed(*node) && !self.nodes[*node].held && !and_after;
        if stopping || !ended || nodes.iter().any(unfit) {
            return false;
        }
        let behind = self.behind(nodes, |node| and_after || self.passed(node));
        if behind.iter().any(|node| self.nodes[*node].state.has_run()) {
            return false;
        }
        self.reopen();
        nodes.iter().chain(&behind).for_each(|node| self.wait_again(*node));
        true
    }

    /// False: refused.
    pub fn mark(&mut self, node: usize, state: NodeState) -> bool {
        let stopping = self.finished.is_none() && self.stopped();
        if stopping || self.nodes[node].state.has_run() {
            return false;
        }
        if self.nodes[node].state != state {
            let behind = self.behind(&[node], |node| self.passed(node));
            self.reopen();
            behind.iter().for_each(|node| self.wait_again(*node));
            self.wait_again(node);
            self.set(node, state);
            self.nodes[node].marked = true;
        }
        true
    }

    /// The node fails without a run.
    pub fn lost(&mut self, node: usize, generation: u32) {
        if self.nodes[node].state.has_run() && generation == self.nodes[node].generation {
            self.set(node, NodeState::Failed);
            self.failure = true;
        }
    }
}

/// How the nodes of a plan end when nobody interferes and each node's run ends as it says: by the parents alone, in no order of time.
pub fn ends_of(plan: &Plan, order: &[usize], run_ends: impl Fn(usize) -> (NodeState, Option<i64>)) -> Vec<NodeState> {
    let mut reference = Reference::new(plan, order.to_vec());
    for node in order {
        match reference.says(*node) {
            Says::Run => {
                let (state, rows) = run_ends(*node);
                reference.nodes[*node].rows = rows;
                reference.set(*node, state);
            }
            Says::UpstreamFailed => reference.set(*node, NodeState::UpstreamFailed),
            Says::Skip => reference.set(*node, NodeState::Skipped),
            Says::Wait => unreachable!("all parents have ended"),
        }
    }
    reference.nodes.iter().map(|node| node.state).collect()
}
