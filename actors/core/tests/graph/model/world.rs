//! A DAG run, the jobs of its nodes, and the messages between them, which are doubled, reordered, lost and sent again. After every step
//! the run is compared with the reference, and with itself as replay makes it.

use super::{
    checks::{self, Violation},
    plan::Plan,
    random::Random,
    reference::Reference,
};
use campanile_core::graph::{
    compile::Graph,
    run::GraphRun,
    step::{EndState, GraphCommand, GraphDecision, GraphEffect, NodeEnd},
};
use campanile_schema::{
    graph::state::{NodeFailure, NodeState},
    ids::RunId,
    payload::Payload,
};
use std::{collections::BTreeMap, sync::Arc};

/// A run of a node, where its job is.
#[derive(Clone, Debug)]
pub struct Child {
    pub generation: u32,
    /// None: open.
    pub ended: Option<EndState>,
    pub rows: Option<i64>,
}

/// On its way.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Start {
        node: u32,
        generation: u32,
    },
    Cancel {
        node: u32,
        generation: u32,
    },
    /// The answer to a start: the run is there and open.
    Taken {
        node: u32,
        generation: u32,
    },
    End {
        node: u32,
        generation: u32,
        state: EndState,
        rows: Option<i64>,
    },
}

/// How often what happened, so that a model in which nothing does is seen.
#[derive(Clone, Debug, Default)]
pub struct Tally(pub BTreeMap<&'static str, u64>);

impl Tally {
    pub fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

pub struct World {
    pub plan: Plan,
    pub graph: Arc<Graph>,
    pub run: GraphRun,
    /// What replay makes of the changes.
    pub replayed: GraphRun,
    pub reference: Reference,
    pub children: BTreeMap<u32, Child>,
    pub messages: Vec<Message>,
    pub random: Random,
    pub tally: Tally,
    /// A node was given up though its run may be open.
    pub gave_up: bool,
    pub story: Vec<String>,
}

fn end_state(state: EndState) -> NodeState {
    match state {
        EndState::Success => NodeState::Success,
        EndState::Failed | EndState::Timeout => NodeState::Failed,
        EndState::Canceled => NodeState::Canceled,
    }
}

/// The name of a node's run: the same for all generations.
fn run_of(node: u32) -> RunId {
    RunId(1_000 + u64::from(node))
}

impl World {
    pub fn new(plan: &Plan) -> Self {
        let graph = plan.graph();
        let run = GraphRun::new(Arc::clone(&graph), Some(0));
        let order = graph.order().iter().map(|node| *node as usize).collect();
        Self {
            replayed: run.clone(),
            run,
            reference: Reference::new(plan, order),
            graph,
            children: BTreeMap::new(),
            messages: Vec::new(),
            random: Random::new(plan.seed ^ 0xface),
            tally: Tally::default(),
            gave_up: false,
            story: Vec::new(),
            plan: plan.clone(),
        }
    }

    /// How a node's run ends in a generation: from the seed alone, so that no order of messages changes it.
    pub fn lot(&self, node: u32, generation: u32) -> (EndState, Option<i64>) {
        let mut random = Random::new(self.plan.seed ^ u64::from(node) << 40 ^ u64::from(generation) << 20);
        let state = match random.percent(self.plan.failures) {
            false => EndState::Success,
            true => *random.pick(&[EndState::Failed, EndState::Failed, EndState::Timeout, EndState::Canceled]),
        };
        let rows = (!random.percent(12)).then(|| random.below(3) as i64);
        (state, rows)
    }

    /// A step of the run, and of the reference, which must agree.
    pub fn step(&mut self, command: &GraphCommand) -> Result<(), Violation> {
        let before = self.run.clone();
        self.story.push(format!("{command:?}"));
        let decided = self.run.step(command);
        let expected = checks::expect(&mut self.reference, command, &self.graph);
        let decision = match (decided, expected) {
            (Err(refused), None) => {
                self.story.push(format!("  refused: {}", refused.message));
                self.tally.count("refused");
                return if self.run == before { Ok(()) } else { Err(Violation::RefusedYetChanged) };
            }
            (Ok(decision), Some(expected)) => {
                self.story.push(format!("  {:?} {:?}", decision.changes, decision.effects));
                checks::effects(&decision, &expected)?;
                decision
            }
            (Err(_), Some(_)) => return Err(Violation::Refused),
            (Ok(_), None) => return Err(Violation::NotRefused),
        };
        for change in &decision.changes {
            self.replayed.apply(change);
        }
        checks::states(&self.run, &self.reference)?;
        if self.run != self.replayed {
            return Err(Violation::ReplayDiffers);
        }
        if GraphRun::from_stored(self.run.graph().clone(), &self.run.to_stored()) != self.run {
            return Err(Violation::StoredDiffers);
        }
        checks::bounds(&self.run, &decision)?;
        self.follow(decision)
    }

    fn follow(&mut self, decision: GraphDecision) -> Result<(), Violation> {
        for effect in &decision.effects {
            self.messages.push(match *effect {
                GraphEffect::Start { node, generation } => Message::Start { node, generation },
                GraphEffect::Cancel { node, generation } => Message::Cancel { node, generation },
            });
        }
        if self.run.state().is_final() && !self.gave_up {
            let open = self.children.values().any(|child| child.ended.is_none());
            if open {
                return Err(Violation::FinalWithOpenChild);
            }
        }
        if decision.wake { self.step(&GraphCommand::Wake) } else { Ok(()) }
    }

    /// Delivers a message, which may stay and be delivered again.
    pub fn deliver(&mut self, at: usize, stays: bool) -> Result<(), Violation> {
        let message = if stays { self.messages[at].clone() } else { self.messages.swap_remove(at) };
        self.tally.count(if stays { "doubled" } else { "delivered" });
        self.story.push(format!("{}{message:?}", if stays { "again " } else { "" }));
        match message {
            Message::Start { node, generation } => self.start(node, generation),
            Message::Cancel { node, generation } => self.cancel(node, generation),
            Message::Taken { node, generation } => {
                return self.step(&GraphCommand::Taken { node, generation, run: run_of(node) });
            }
            Message::End { node, generation, state, rows } => {
                let result = rows.map(|rows| Payload(format!(r#"{{"rows":{rows},"more":"{rows}"}}"#)));
                let own = self.run.node(node);
                if generation < own.generation() {
                    self.tally.count("late generation");
                }
                let end = NodeEnd { node, generation, run: run_of(node), state, result };
                return self.step(&GraphCommand::End(end));
            }
        }
        Ok(())
    }

    /// The job of a node is asked for a run.
    fn start(&mut self, node: u32, generation: u32) {
        let fresh = Child { generation, ended: None, rows: None };
        let child = self.children.entry(node).or_insert_with(|| fresh.clone());
        if child.ended.is_some() && child.generation < generation {
            *child = fresh;
        }
        let answer = match child.ended {
            None => Message::Taken { node, generation: child.generation },
            Some(state) => Message::End { node, generation: child.generation, state, rows: child.rows },
        };
        self.messages.push(answer);
    }

    /// It is asked to cancel the run, which it makes if it is not there.
    fn cancel(&mut self, node: u32, generation: u32) {
        let canceled = Child { generation, ended: Some(EndState::Canceled), rows: None };
        let child = self.children.entry(node).or_insert_with(|| canceled.clone());
        match child.ended {
            None if child.generation <= generation => child.ended = Some(EndState::Canceled),
            None => return,
            Some(_) if child.generation < generation => *child = canceled,
            Some(_) => {}
        }
        let (generation, rows) = (child.generation, child.rows);
        let state = child.ended.unwrap_or(EndState::Canceled);
        self.messages.push(Message::End { node, generation, state, rows });
    }

    /// One of the open runs ends by itself. False: there is none.
    pub fn end_one(&mut self) -> bool {
        let open: Vec<u32> = self.children.iter().filter(|(_, c)| c.ended.is_none()).map(|(node, _)| *node).collect();
        if open.is_empty() {
            return false;
        }
        let node = *self.random.pick(&open);
        let generation = self.children[&node].generation;
        let (state, rows) = self.lot(node, generation);
        let child = Child { generation, ended: Some(state), rows };
        self.children.insert(node, child);
        self.messages.push(Message::End { node, generation, state, rows });
        true
    }

    /// All that was on its way to or from the run is lost, and sent again by those who owe it.
    pub fn restart(&mut self) {
        self.tally.count("restart");
        self.story.push("restart".to_owned());
        self.messages.clear();
        self.run = self.replayed.clone();
        for effect in self.run.pending() {
            self.messages.push(match effect {
                GraphEffect::Start { node, generation } => Message::Start { node, generation },
                GraphEffect::Cancel { node, generation } => Message::Cancel { node, generation },
            });
        }
        for (node, child) in &self.children {
            if let Child { generation, ended: Some(state), rows } = *child {
                self.messages.push(Message::End { node: *node, generation, state, rows });
            }
        }
        // Who waits for an end asks after the run.
        for (node, slot) in (0..).zip(self.run.nodes()) {
            if slot.state() == NodeState::Active && !self.run.is_stopped() {
                self.messages.push(Message::Start { node, generation: slot.generation() });
            }
        }
    }

    /// The run gives up waiting for a node.
    pub fn give_up(&mut self, node: u32) -> Result<(), Violation> {
        let generation = self.run.node(node).generation();
        self.gave_up |= self.run.node(node).state().has_run();
        self.step(&GraphCommand::Lost { node, generation, why: NodeFailure::Undelivered })
    }

    /// A child that is ahead of the run: its job was restored later than its DAG, or was asked by a newer one.
    pub fn run_ahead(&mut self, node: u32) {
        if let Some(child) = self.children.get_mut(&node)
            && child.ended.is_none()
        {
            child.generation += 1;
        }
    }

    /// What a node's end means for the reference.
    pub fn end_of(state: EndState) -> NodeState {
        end_state(state)
    }
}
