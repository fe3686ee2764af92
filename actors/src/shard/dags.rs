//! Runs of DAGs in the shard: those whose jobs are bytes now, the messages between them and the jobs of their nodes, and what is asked
//! about them. The jobs decide (`actors/core/src/job/decide/{graph, node}.rs`); `outbox` and `taking` carry the messages.
//!
//! A START or CANCEL for which the outbox has no room is not lost: the state of the run says that it is owed, and the shard looks once a
//! second. The same look finds what a restore of another shard has lost: ten minutes after a shard was loaded, its DAG runs ask for the
//! nodes whose end has not come.

use super::{
    Shard,
    append::not_found,
    graphs::{is_of_node, node_end},
};
use crate::{
    calls::Responder,
    journal::Waiter,
    messages::{Envelope, ReplyTo, ShardMsg},
};
use campanile_core::{
    graph::{compile::Graph, run::GraphRun, step::GraphCommand},
    job::{Command, Decision, Job, Reply, dag::owed},
    outbox::{MessageDraft, Sending, body, bounds::Full},
};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    frame::encode,
    graph::state::NodeFailure,
    ids::{JobId, RunId},
    limits,
    payload::Payload,
    peer::{
        outbox::{EndBody, RunFacts, Said},
        shard::GraphAction,
    },
    stored::{
        graph::GraphRecord,
        outbox::{Failure, Message, MessageId, MessageKind, OutboxEvent},
    },
};
use hashbrown::HashSet;
use ractor::ActorRef;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// Run, node, generation and kind of a message.
type MessageOf = (RunId, u32, u32, MessageKind);

impl Shard {
    /// Keeps the counts in step with an event, which was applied to its job.
    pub(super) fn count_dags(&mut self, event: &Event) {
        if let Event::RunCreated { dag: Some(_), .. } = event {
            self.dags.children += 1;
        }
        if let Event::RunReopened { record, .. } = event {
            self.dags.children += usize::from(record.dag.is_some());
        }
        if let Event::RunEnded { record, .. } = event {
            self.dags.children = self.dags.children.saturating_sub(usize::from(record.dag.is_some()));
            self.dags.nodes -= self.dags.open.remove(&record.run).unwrap_or(0);
        }
        if let Event::GraphChanged { job, run, .. } = event
            && !self.dags.open.contains_key(run)
            && let Some(live) = self.jobs.get(job).and_then(|slot| slot.live.as_ref())
            && let Some(open) = live.job.graphs.get(run)
        {
            let nodes = open.run.nodes().len();
            self.dags.opened(*run, nodes);
        }
    }

    /// A message of a decision found no room in the outbox.
    pub(super) fn no_room(&mut self, decision: &Decision, wanted: &MessageDraft, full: Full) {
        let job = decision.events.iter().find_map(Event::job).or_else(|| self.open_runs.get(&wanted.run).copied());
        tracing::debug!(run = %wanted.run, ?full, "a message of a DAG waits for room");
        self.dags.unsent.extend(job);
    }

    /// Once a second.
    pub(super) fn look_after_dags(&mut self, myself: &ActorRef<ShardMsg>) {
        let now_ms = self.deps.time.boot_ms();
        let asks = self.dags.ask_at_ms.is_some_and(|at| at <= now_ms);
        if self.stopping || (!asks && self.dags.unsent.is_empty()) {
            return;
        }
        let mut jobs: BTreeMap<JobId, bool> =
            std::mem::take(&mut self.dags.unsent).into_iter().map(|job| (job, false)).collect();
        if asks {
            self.dags.ask_at_ms = None;
            let open = self.dags.open.keys().filter_map(|run| self.open_runs.get(run));
            jobs.extend(open.map(|job| (*job, true)));
        }
        let held = self.post.owed.outbox.owed().map(|of| (of.run, of.index, of.generation, of.kind)).collect();
        for (job, ask) in jobs {
            if !self.owe(myself, job, ask, &held) {
                self.dags.unsent.insert(job);
                // What was not asked for is asked for later, with all else.
                self.dags.ask_at_ms = self.dags.ask_at_ms.or(ask.then_some(now_ms + limits::GRAPH_ASK_MS));
            }
        }
    }

    /// Sends what the runs of a job owe and the outbox does not hold; false: there was no room for all of it.
    fn owe(&mut self, myself: &ActorRef<ShardMsg>, job: JobId, ask: bool, held: &HashSet<MessageOf>) -> bool {
        let Some(known) = self.materialize(job) else { return true };
        let is_held = |of: &MessageDraft| held.contains(&(of.run, of.index, of.generation, of.kind));
        let owed: Vec<MessageDraft> = owed(&known, ask).into_iter().filter(|wanted| !is_held(wanted)).collect();
        for some in owed.chunks(limits::GRAPH_ASKS) {
            let mut sending = Sending::new(&self.post.owed.outbox, self.now_ms());
            let sent = some.iter().all(|wanted| sending.send(wanted.clone()).is_ok());
            let events: Vec<Event> = sending.events.into_iter().map(|change| Event::Outbox { change }).collect();
            if !events.is_empty() {
                self.append_for(myself, Waiter::Nobody, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
            }
            if !sent {
                return false;
            }
        }
        true
    }

    /// The body of a message as it travels. None: nobody needs it any more.
    pub(super) fn body_of(&self, message: &Message) -> Option<Vec<u8>> {
        let record = self.post.owed.record(message);
        match message.kind {
            MessageKind::Hook | MessageKind::Compensation => {
                let record = record.map(|record| &**record);
                Some(body::hook(message, record, record.and_then(|record| self.below(record))))
            }
            MessageKind::Deadline => message.deadline.as_deref().map(|missed| body::deadline(message, missed)),
            MessageKind::End => body::end(record?).map(|end| encode(&end)),
            MessageKind::Start | MessageKind::Cancel => {
                let job = self.materialize(*self.open_runs.get(&message.run)?)?;
                let (open, dag) = (job.graphs.get(&message.run)?, &job.run(message.run)?.record);
                let node = open.run.nodes().get(message.index as usize)?;
                let of_dag = (&**dag, open.run.nodes().len());
                // Another message is on its way for a later generation, or the node has ended.
                if node.generation() != message.generation || !node.state().has_run() {
                    return None;
                }
                if message.kind == MessageKind::Cancel {
                    return Some(body::node(message, Payload::default(), (None, None), of_dag, self.below(dag)));
                }
                let start = open.start_body(dag, message.index).ok()?;
                Some(body::node(message, start.params, (start.timeout_sec, start.deadline), of_dag, self.below(dag)))
            }
        }
    }

    /// What the job of a node has said to a START or a CANCEL, before it is settled.
    pub(super) fn heard_of_nodes(&mut self, myself: &ActorRef<ShardMsg>, said: &[(MessageId, Said)]) {
        for (id, said) in said {
            let Some(message) = self.post.owed.outbox.get(*id).cloned() else { continue };
            if !is_of_node(message.kind) {
                continue;
            }
            let node = message.index;
            match said {
                // Only what belongs to the message counts: the key names run and node.
                Said::Ended(end) => self.step(myself, message.run, GraphCommand::End(node_end(end, node))),
                Said::Settled { run: Some(facts) } => {
                    let RunFacts { run, generation, .. } = *facts;
                    self.step(myself, message.run, GraphCommand::Taken { node, generation, run });
                }
                Said::Settled { run: None } | Said::Refused(_) | Said::Later(_) | Said::Broken => {}
            }
        }
    }

    /// A message to a node was given up, and that is recorded.
    pub(super) fn lost_node(&mut self, myself: &ActorRef<ShardMsg>, message: &Message, failure: Failure) {
        let why = match failure {
            Failure::Refused(_) => NodeFailure::Refused,
            Failure::Undelivered => NodeFailure::Undelivered,
        };
        let (node, generation) = (message.index, message.generation);
        self.step(myself, message.run, GraphCommand::Lost { node, generation, why });
    }

    /// The message to a node that a change gives up.
    pub(super) fn given_up_node(&self, change: &OutboxEvent) -> Option<(Arc<Message>, Failure)> {
        let OutboxEvent::Failed { id, why, .. } = change else { return None };
        let message = self.post.owed.outbox.get(*id)?;
        is_of_node(message.kind).then(|| (message.clone(), *why))
    }

    fn step(&mut self, myself: &ActorRef<ShardMsg>, run: RunId, step: GraphCommand) {
        if let Some(job) = self.open_runs.get(&run).copied() {
            let command = Command::Graph { run, step: Box::new(step) };
            self.submit(myself, Envelope { job, command, reply: ReplyTo::Nobody });
        }
    }

    /// The run of a node has ended, says its shard. Answered when that is durable here.
    pub(super) fn take_end(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        tenant: &str,
        end: &EndBody,
        said: oneshot::Sender<Said>,
    ) {
        let job = self.open_runs.get(&end.dag).copied();
        let is_its = |job: &JobId| self.materialize(*job).is_some_and(|job| job.def.tenant == *tenant);
        let Some(job) = job.filter(is_its) else {
            // The DAG run has ended, and with it all that could wait for this.
            return self.when_durable(move || {
                let _ = said.send(Said::Settled { run: None });
            });
        };
        let command = Command::Graph { run: end.dag, step: Box::new(GraphCommand::End(node_end(end, end.node))) };
        let (to, answer) = oneshot::channel();
        self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(Responder::new(to)) });
        tokio::spawn(async move {
            let said_now = match answer.await {
                Ok(Ok(_)) => Said::Settled { run: None },
                Ok(Err(error)) if error.code() == ErrorCode::Internal => Said::Broken,
                Ok(Err(_)) => Said::Later(limits::DELIVER_LATER_MS),
                Err(_) => return,
            };
            let _ = said.send(said_now);
        });
    }

    /// A person changes a run of a DAG.
    pub(super) async fn change_graph(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        run: RunId,
        action: GraphAction,
        responder: Responder<Reply>,
    ) {
        let action = Box::new(action);
        if let Some(job) = self.open_runs.get(&run).copied() {
            let command = Command::ChangeGraph { run, record: None, action };
            return self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(responder) });
        }
        match self.record_of(run).await {
            Ok(Some(record)) => {
                let job = record.job;
                let command = Command::ChangeGraph { run, record: Some(Box::new(record)), action };
                self.submit(myself, Envelope { job, command, reply: ReplyTo::Caller(responder) });
            }
            Ok(None) => self.refuse(ReplyTo::Caller(responder), not_found("run")),
            Err(error) => self.refuse(ReplyTo::Caller(responder), error),
        }
    }

    /// The nodes of a run; None: it is not open here, and its record has them.
    pub(super) fn get_graph(&mut self, run: RunId, responder: Responder<Option<Box<GraphRecord>>>) {
        let job = self.open_runs.get(&run).copied().and_then(|job| self.materialize(job));
        let record = job.and_then(|job| shown(&job, run));
        let record = record.or_else(|| self.recent.get(&run).and_then(|(_, record)| record.graph.as_deref().cloned()));
        self.when_durable(move || responder.send(Ok(record.map(Box::new))));
    }
}

/// Of a run that has not begun, all nodes wait.
fn shown(job: &Job, run: RunId) -> Option<GraphRecord> {
    if let Some(open) = job.graphs.get(&run) {
        return Some(open.record(true));
    }
    let (graph, open) = (job.def.graph()?, job.run(run)?);
    let compiled = Graph::compile(graph).ok()?;
    let state = GraphRun::new(Arc::new(compiled), open.record.logical_ms).to_stored();
    Some(GraphRecord { version: job.hot.version, print: graph.print(), graph: Some(graph.clone()), state })
}
