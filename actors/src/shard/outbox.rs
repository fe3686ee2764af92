//! Messages of the shard's jobs to other jobs: what is owed, and which travel now (ADR 0028). `taking` has those that arrive.
//!
//! Decisions name what they send; [`Shard::post`] numbers it and puts it into their frame. When that is durable, a message is ready
//! to travel. At the end of a turn messages for one shard become a batch, which waits outside for a place of the node's window; the
//! bodies are built when it has one, so what waits costs no more than its numbers.

use super::Shard;
use crate::{
    ask::ask,
    calls::ShardCall,
    delivery_window::DeliveryPlace,
    journal::Waiter,
    messages::{Departing, ReplyTo, ShardMsg},
    shard_map::ShardPlace,
};
use campanile_core::{
    job::{Decision, Reply, apply},
    outbox::{Batch, Now, Sending, bounds::is_hook, parcel},
};
use campanile_schema::{
    event::Event,
    ids::{RunId, SessionId, ShardId},
    limits,
    peer::outbox::{Deliver, Delivered, Said},
    record::{FailedHook, HookFailure},
    stored::outbox::{DropReason, Failure, GiveUp, Message, MessageKind, OutboxEvent},
};
use ractor::ActorRef;
use std::{sync::Arc, time::Duration};

/// A batch for a shard that nobody serves is put off after so many looks, [`LOOK_AGAIN`] apart.
const LOOKS: u32 = 50;
/// Number of no `Deliver`: they count from 1.
const SETTLED_HERE: u64 = 0;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Shard {
    pub(super) fn both_clocks(&self) -> Now {
        Now { wall_ms: self.now_ms(), boot_ms: self.deps.time.boot_ms() }
    }

    /// What a decision sends, as events of its frame.
    pub(super) fn post(&mut self, decision: &mut Decision) {
        if decision.sends.is_empty() {
            return;
        }
        let mut sending = Sending::new(&self.post.owed.outbox, self.now_ms());
        let mut unsent = None;
        for wanted in std::mem::take(&mut decision.sends) {
            // Hooks always become an event, and an END has its room. What a DAG sends to its nodes follows from its state.
            if let Err(full) = sending.send(wanted.clone()) {
                unsent = Some((wanted, full));
            }
        }
        let sent = sending.events;
        if let Some((wanted, full)) = unsent {
            self.no_room(decision, &wanted, full);
        }
        for change in &sent {
            if let OutboxEvent::Dropped { message, why } = change {
                let failed = failed_hook(message, GiveUp::Dropped(*why), message.at_ms);
                let ends = |event: &Event| matches!(event, Event::RunEnded { record, .. } if record.run == message.run);
                // The core has told the run of a hook that is over its budget.
                let untold = message.kind == MessageKind::Deadline && *why == DropReason::OutboxFull;
                if untold && !decision.events.iter().any(ends) {
                    decision.events.extend(failed.and_then(|failed| self.tell_open_run(message.run, failed)));
                } else {
                    end_with(&mut decision.events, message, failed);
                }
            }
        }
        decision.events.extend(sent.into_iter().map(|change| Event::Outbox { change }));
    }

    /// Events were applied to the shard, as part of frame `seq`.
    pub(super) fn posted(&mut self, events: &[Event], seq: u64) {
        if !self.post.owed.has_records() && !events.iter().any(|event| matches!(event, Event::Outbox { .. })) {
            return;
        }
        self.count(events);
        self.post.owed.apply(events);
        for event in events {
            let Event::Outbox { change } = event else { continue };
            self.post.courier.applied(change);
            if let OutboxEvent::Sent(message) = change {
                self.post.undurable.push_back((seq, message.id));
            }
        }
    }

    /// What became of hooks, before it is applied: then they are gone.
    fn count(&self, events: &[Event]) {
        for event in events {
            let Event::Outbox { change } = event else { continue };
            match change {
                OutboxEvent::Settled { ids } => {
                    ids.iter().filter_map(|id| self.post.owed.outbox.get(*id)).for_each(|of| told(of, "started"));
                }
                OutboxEvent::Failed { id, why, .. } => {
                    if let Some(message) = self.post.owed.outbox.get(*id).filter(|of| is_hook(of.kind)) {
                        told(message, if *why == Failure::Undelivered { "undelivered" } else { "refused" });
                        self.deps.hook_failures.failed(&format_args!("run {}: {why:?}", message.run));
                    }
                }
                OutboxEvent::Dropped { message, why } => {
                    told(message, "dropped");
                    self.deps.hook_failures.failed(&format_args!("run {}: {why:?}", message.run));
                }
                OutboxEvent::Sent(_) | OutboxEvent::Restored { .. } | OutboxEvent::Cleared { .. } => {}
            }
        }
    }

    /// Everything up to `seq` is durable: its messages may travel.
    pub(super) fn posted_durably(&mut self, seq: u64) {
        if self.post.undurable.is_empty() {
            return;
        }
        let now = self.both_clocks();
        while self.post.undurable.front().is_some_and(|(of, _)| *of <= seq) {
            let Some((_, id)) = self.post.undurable.pop_front() else { break };
            if let Some(message) = self.post.owed.outbox.get(id) {
                self.post.courier.durable(message, self.deps.identity.shards, now);
                self.post.due = true;
            }
        }
    }

    /// Once a second.
    pub(super) fn look_after_post(&mut self) {
        let now = self.deps.time.boot_ms();
        self.post.keys.forget(now);
        self.post.due |= self.post.courier.wake_at().is_some_and(|at| at <= now);
    }

    /// At the end of a turn: settles, gives up and sends what is due.
    pub(super) fn carry_post(&mut self, myself: &ActorRef<ShardMsg>) {
        if self.stopping || !std::mem::take(&mut self.post.due) {
            return;
        }
        let now = self.both_clocks();
        let changes = self.post.courier.events(&self.post.owed.outbox, now);
        #[cfg(feature = "faults")]
        if !changes.is_empty() {
            campanile_ports::faults::point("outbox_settle");
        }
        // Each by itself: with the record of its run it is as large as an end.
        for change in changes {
            let (told, lost) = (self.tell_run(&change), self.given_up_node(&change));
            let events = told.into_iter().chain([Event::Outbox { change }]).collect();
            self.append_for(myself, Waiter::Nobody, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
            if let Some((message, failure)) = lost {
                self.lost_node(myself, &message, failure);
            }
        }
        let batches = self.post.courier.next(&self.post.owed.outbox, now, usize::MAX);
        // Those that are given up for their age.
        self.post.due = self.post.courier.wake_at() == Some(i64::MIN);
        for batch in batches {
            self.wait_for_place(myself, batch);
        }
    }

    /// A hook is given up: the record of its run says so. The run may be open again by now, or have ended once more.
    fn tell_run(&mut self, change: &OutboxEvent) -> Option<Event> {
        let OutboxEvent::Failed { id, why, at_ms } = change else { return None };
        let message = self.post.owed.outbox.get(*id)?.clone();
        let failed = failed_hook(&message, GiveUp::Failed(*why), *at_ms)?;
        let run = message.run;
        if self.open_runs.contains_key(&run) {
            return self.tell_open_run(run, failed);
        }
        let mut record = self.post.owed.newest(&message)?.clone();
        Arc::make_mut(&mut record).add_failed_hook(failed.clone());
        Some(Event::HookFailed { job: record.job, run, failed, record: Some(record) })
    }

    /// The record of an open run says that a hook of it was not started.
    fn tell_open_run(&mut self, run: RunId, failed: FailedHook) -> Option<Event> {
        let job = self.open_runs.get(&run).copied()?;
        let event = Event::HookFailed { job, run, failed, record: None };
        if !self.activate(job) {
            return None;
        }
        // As its own decision would.
        apply::apply(&mut self.jobs.get_mut(&job)?.live.as_mut()?.job, &event);
        Some(event)
    }

    /// A batch of a shard that is served somewhere comes back with a place. Of a shard that is on its way it waits without one.
    fn wait_for_place(&self, myself: &ActorRef<ShardMsg>, batch: Batch) {
        let (deps, myself) = (self.deps.clone(), myself.clone());
        tokio::spawn(async move {
            let mut looks = 0;
            let node: Option<SessionId> = loop {
                match deps.shards.place(batch.to) {
                    ShardPlace::Here => break None,
                    ShardPlace::Elsewhere { owner, .. } => break Some(owner),
                    ShardPlace::TakenOver | ShardPlace::Nowhere => looks += 1,
                }
                if looks > LOOKS {
                    let answer = ShardMsg::Delivered { to: batch.to, number: batch.number, answer: None };
                    let _ = myself.cast(answer);
                    return;
                }
                if deps.ended.comes_within(LOOK_AGAIN).await {
                    return;
                }
            };
            let place = deps.deliveries.enter(node).await;
            let _ = myself.cast(ShardMsg::Depart(Box::new(Departing { batch, place })));
        });
    }

    /// A batch has a place: it is built and sent.
    pub(super) fn depart(&mut self, myself: &ActorRef<ShardMsg>, Departing { batch, place }: Departing) {
        let Batch { to, number, ids } = batch;
        if self.stopping {
            return self.post.courier.unanswered(to, number, self.both_clocks());
        }
        let (mut parcels, mut moot) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            // Else it was settled meanwhile by the answer to an earlier one.
            let Some(message) = self.post.owed.outbox.get(id) else { continue };
            match self.body_of(message) {
                Some(body) => parcels.push(parcel(message, body)),
                None => moot.push((id, Said::Settled { run: None })),
            }
        }
        if parcels.is_empty() {
            return self.delivered(myself, to, number, Some(Delivered::Each(moot)));
        }
        if !moot.is_empty() {
            // As if its receiver had said so; what counts in the batch comes with the answer to the rest.
            self.post.courier.answered(to, SETTLED_HERE, &Delivered::Each(moot), self.both_clocks());
        }
        let deliver = Deliver { from: self.id, to, at_ms: self.now_ms(), parcels };
        self.send_deliver(myself, deliver, number, place);
    }

    fn send_deliver(&self, myself: &ActorRef<ShardMsg>, deliver: Deliver, number: u64, place: DeliveryPlace) {
        let (client, myself, to) = (self.deps.client.clone(), myself.clone(), deliver.to);
        #[cfg(feature = "faults")]
        campanile_ports::faults::point("outbox_send");
        tokio::spawn(async move {
            let call = ask::<Delivered>(&client, to, ShardCall::Deliver(Box::new(deliver)));
            let answer = tokio::time::timeout(Duration::from_millis(limits::DELIVER_ANSWER_MS), call).await;
            drop(place);
            let answer = answer.ok().and_then(Result::ok);
            let _ = myself.cast(ShardMsg::Delivered { to, number, answer });
        });
    }

    /// A shard has answered a `Deliver`, or has not.
    pub(super) fn delivered(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        to: ShardId,
        number: u64,
        answer: Option<Delivered>,
    ) {
        let now = self.both_clocks();
        // Before it is settled: what becomes of a node stands in front of that in the journal.
        if let Some(Delivered::Each(said)) = &answer
            && !self.stopping
        {
            self.heard_of_nodes(myself, said);
        }
        match answer {
            // A shard that stops can keep nothing of it: it comes again.
            Some(answer) if !self.stopping => self.post.courier.answered(to, number, &answer, now),
            Some(_) | None => self.post.courier.unanswered(to, number, now),
        }
        self.post.due = true;
    }
}

/// What the record of a run says of its hook that was given up; None: the message is none.
fn failed_hook(message: &Message, why: GiveUp, at_ms: i64) -> Option<FailedHook> {
    if !is_hook(message.kind) {
        return None;
    }
    let (state, reason) = match why {
        GiveUp::Failed(Failure::Undelivered) => (HookFailure::Undelivered, None),
        GiveUp::Failed(Failure::Refused(refusal)) => (HookFailure::Refused, Some(refusal.as_str().into())),
        GiveUp::Dropped(why) => (HookFailure::Dropped, Some(why.as_str().into())),
    };
    let (generation, index) = (message.generation, message.index);
    Some(FailedHook { generation, index, job: message.job.clone()?, state, reason, at_ms })
}

/// The end that causes a message says that it was dropped.
fn end_with(events: &mut [Event], message: &Message, failed: Option<FailedHook>) {
    let Some(failed) = failed else { return };
    for event in events {
        if let Event::RunEnded { record, .. } = event
            && (record.run, record.generation) == (message.run, message.generation)
        {
            Arc::make_mut(record).add_failed_hook(failed.clone());
        }
    }
}

/// Counts what became of a hook.
fn told(message: &Message, outcome: &'static str) {
    if is_hook(message.kind) {
        metrics::counter!("campanile_hooks_total", "outcome" => outcome).increment(1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::{
        record::RunRecord,
        stored::outbox::{DropReason, Refusal},
    };
    use serde_json::json;

    #[test]
    fn the_end_of_a_run_tells_that_its_hook_was_dropped() {
        // As they are stored.
        let record = json!({"r": 4_097, "j": 9, "t": "acme", "s": 7, "o": 1, "c": 1, "e": 2});
        let record: RunRecord = serde_json::from_value(record).unwrap();
        let message = json!({"i": 1, "f": 1, "t": 2, "k": 3, "n": "acme", "r": 4_097, "j": "refund", "b": 10, "a": 2});
        let message: Message = serde_json::from_value(message).unwrap();
        let mut events = [Event::RunEnded { job: record.job, record: Arc::new(record) }];
        let dropped = |message: &Message| failed_hook(message, GiveUp::Dropped(DropReason::OutboxFull), 7);
        let of_another = Message { generation: 2, ..message.clone() };
        end_with(&mut events, &of_another, dropped(&of_another));
        end_with(&mut events, &message, dropped(&message));
        let [Event::RunEnded { record, .. }] = &events else { panic!("{events:?}") };
        let [told] = record.failed_hooks.as_slice() else { panic!("{record:?}") };
        assert_eq!((told.generation, told.index, &*told.job, told.at_ms), (1, 0, "refund", 7));
        assert_eq!((told.state, told.reason.as_deref()), (HookFailure::Dropped, Some("OUTBOX_FULL")));
        let refused = failed_hook(&message, GiveUp::Failed(Failure::Refused(Refusal::Depth)), 7).unwrap();
        assert_eq!((refused.state, refused.reason.as_deref()), (HookFailure::Refused, Some("DEPTH")));
    }
}
