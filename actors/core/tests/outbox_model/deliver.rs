//! How messages travel in the model: they leave, arrive, are looked up, and get their turn, each in a step of its own.

use super::{
    checks::{ViolationKind, effect},
    shard::{Change, Phase, Reply, Run},
    world::{Arrived, MAILBOX, PLACES, POISON, Packet, World},
};
use campanile_core::outbox::{
    LookUp, Take, parcel,
    receiver::{JobFacts, ShardFacts, take, takes},
    rules::{Rule, kept},
};
use campanile_schema::{
    ids::{Epoch, RunId, ShardId, make_id},
    limits::DELIVER_BYTES,
    peer::outbox::{Deliver, Delivered, Parcel, RunFacts, Said},
    record::{RunState, Source},
    stored::outbox::{MessageId, MessageKind},
};
use std::collections::BTreeMap;

/// What the bodies of the model hold.
struct Body {
    effect: String,
    sender: RunId,
    parent: Option<RunId>,
}

impl Body {
    fn of(parcel: &Parcel) -> Self {
        let text = String::from_utf8(parcel.body.clone()).unwrap();
        let mut fields = text.split('|');
        let effect = fields.next().unwrap().to_owned();
        let sender = fields.next().unwrap().parse().unwrap();
        Self { effect, sender, parent: fields.next().and_then(|id| id.parse().ok()) }
    }
}

impl World {
    /// Sends what is due of a shard.
    pub fn send(&mut self, shard: u16) {
        let (at, now) = (usize::from(shard), self.now());
        let Some(node) = self.live[at].as_ref().map(|live| live.node) else { return };
        let of_node = self.live.iter().flatten().filter(|live| live.node == node);
        let under_way: usize = of_node.map(|live| live.courier.under_way()).sum();
        let Some(live) = &mut self.live[at] else { return };
        let batches = live.courier.next(&live.state.outbox, now, PLACES.saturating_sub(under_way));
        let restored_ms = live.state.outbox.head().restored_ms;
        for batch in batches {
            let Some(live) = &mut self.live[at] else { return };
            let to = batch.to.0;
            if live.asked.iter().any(|(other, ..)| *other == to) {
                self.judge.violated(ViolationKind::Bounds, format!("two Delivers from shard {shard} to {to}"));
            }
            live.asked.push((to, batch.number, now.boot_ms));
            let messages: Vec<_> = batch.ids.iter().filter_map(|id| live.state.outbox.get(*id).cloned()).collect();
            let bytes: usize = messages.iter().map(|message| message.bytes as usize).sum();
            if bytes > DELIVER_BYTES && messages.len() > 1 {
                self.judge.violated(ViolationKind::Bounds, format!("a Deliver has {bytes} bytes"));
            }
            let mut parcels = Vec::new();
            for message in messages {
                let effect = effect(&self.path(shard, message.run), &message);
                *self.tries.entry(effect.clone()).or_default() += 1;
                self.judge.goes(&effect, &message, restored_ms, now.wall_ms);
                self.note(|| format!("shard {shard} sends {effect} to shard {to} ({:?})", message.id));
                let parent = message.parent.map_or(String::new(), |parent| parent.to_string());
                parcels.push(parcel(&message, format!("{effect}|{}|{parent}", message.run).into_bytes()));
            }
            let deliver = Deliver { from: ShardId(shard), to: ShardId(to), at_ms: now.wall_ms, parcels };
            self.network.push(Packet::Deliver { number: batch.number, deliver });
        }
        let of_node = self.live.iter().flatten().filter(|live| live.node == node);
        if of_node.map(|live| live.courier.under_way()).sum::<usize>() > PLACES {
            self.judge.violated(ViolationKind::Bounds, format!("node {node} has too many Delivers under way"));
        }
    }

    /// A packet reaches whoever owns its shard now.
    pub fn arrive(&mut self, packet: Packet) {
        let now = self.now();
        match packet {
            Packet::Answer { reply } => {
                let Some(live) = &mut self.live[usize::from(reply.from)] else { return };
                let number = reply.number;
                live.asked.retain(|(to, asked, _)| (*to, *asked) != (reply.said_by, number));
                live.courier.answered(ShardId(reply.said_by), number, &reply.said, now);
            }
            Packet::Deliver { number, deliver } => {
                let to = deliver.to.0;
                let Some(node) = self.live.get(usize::from(to)).and_then(|live| live.as_ref()).map(|live| live.node)
                else {
                    return;
                };
                let waiting = self.arrived[node].iter().filter(|arrived| arrived.deliver.to.0 == to).count();
                match takes(&deliver, waiting, MAILBOX, now.wall_ms) {
                    Ok(()) => {
                        self.arrived[node].push(Arrived { number, deliver, looked_up: BTreeMap::new() });
                        if waiting + 1 > MAILBOX / 2 {
                            self.judge
                                .violated(ViolationKind::Bounds, format!("shard {to} has too many Delivers waiting"));
                        }
                    }
                    Err(ms) => {
                        let said = Delivered::Later(ms);
                        let reply = Reply { from: deliver.from.0, number, said_by: to, said };
                        self.network.push(Packet::Answer { reply });
                    }
                }
            }
        }
    }

    /// A node asks the view for the keys of a `Deliver`, beside the turns of its shard.
    pub fn look_up(&mut self, node: usize, n: usize) {
        let now = self.now();
        let Some(arrived) = self.arrived[node].get(n) else { return };
        let at = usize::from(arrived.deliver.to.0);
        let Some(live) = self.live.get(at).and_then(|live| live.as_ref()).filter(|live| live.node == node) else {
            return;
        };
        let epoch: Epoch = live.epoch;
        let mut looked_up = BTreeMap::new();
        for parcel in &arrived.deliver.parcels {
            let Some(name) = &parcel.job else { continue };
            let Some(job) = live.state.job(&parcel.tenant, name) else { continue };
            let key = (job.id, parcel.key.clone());
            let found = self.store.keys.get(&key).map(|row| (row.run, row.source));
            looked_up.insert(key, LookUp { epoch, boot_ms: now.boot_ms, found });
        }
        self.arrived[node][n].looked_up = looked_up;
    }

    /// The shard decides on a `Deliver`. One whose keys are not all known stays.
    pub fn turn(&mut self, node: usize, n: usize) {
        let Some(arrived) = self.arrived[node].get(n).cloned() else { return };
        let at = usize::from(arrived.deliver.to.0);
        let Some(live) = self.live.get(at).and_then(|live| live.as_ref()).filter(|live| live.node == node) else {
            return;
        };
        let mut answers: Vec<(MessageId, Said, bool)> = Vec::new();
        let mut state = live.state.clone();
        let mut changes = Vec::new();
        let mut made: BTreeMap<String, RunId> = BTreeMap::new();
        for parcel in &arrived.deliver.parcels {
            let mut parcel = parcel.clone();
            if self.old[node] && parcel.kind == MessageKind::Compensation.code() {
                parcel.kind = 200;
            }
            let body = Body::of(&parcel);
            let kind = MessageKind::from_code(parcel.kind);
            if kind == Some(MessageKind::End) {
                let change = Change::NodeEnded { run: body.parent.unwrap(), effect: body.effect };
                state.apply(&change);
                changes.push(change);
                answers.push((parcel.id, Said::Settled { run: None }, kept(Rule::AnswerWhenDurable)));
                continue;
            }
            if body.effect.ends_with(&format!(".{POISON}")) {
                answers.push((parcel.id, Said::Broken, true));
                continue;
            }
            let job = parcel.job.as_deref().and_then(|name| state.job(&parcel.tenant, name)).cloned();
            let facts = job.as_ref().map(|job| JobFacts {
                tenant: job.tenant.as_str().into(),
                created_ms: job.created_ms,
                not_idempotent: job.not_idempotent,
            });
            let known = match &job {
                Some(job) => {
                    let looked_up = arrived.looked_up.get(&(job.id, parcel.key.clone())).copied();
                    live.keys.find(job.id, &parcel.key, looked_up, self.now_ms)
                }
                None => campanile_core::outbox::memory::KeyState::Absent,
            };
            let shard = ShardFacts {
                children: state.children(),
                usage: state.outbox.usage(),
                bounds: state.outbox.bounds(),
                queue_full: false,
            };
            let taken = take(&parcel, facts.as_ref(), known, shard);
            match taken {
                Take::LookUp => return,
                Take::Make { confirm } if !made.contains_key(&parcel.key) => {
                    let job = job.unwrap();
                    let run = Run {
                        id: RunId(make_id(state.counter + 1, job.id.slot())),
                        job: job.id,
                        tenant: job.tenant.clone(),
                        key: Some(parcel.key.clone()),
                        source: kind.and_then(campanile_core::outbox::keys::source).unwrap_or(Source::Event),
                        generation: 1,
                        phase: if confirm { Phase::Confirm } else { Phase::Open },
                        created_ms: self.now_ms,
                        marked: parcel.marked,
                        depth: parcel.depth,
                        path: body.effect.clone(),
                        parent: (kind == Some(MessageKind::Start)).then_some(body.sender),
                        nodes: Vec::new(),
                        shown: false,
                        compensated: false,
                        not_idempotent: job.not_idempotent,
                        confirmed_as_ended: false,
                    };
                    made.insert(parcel.key.clone(), run.id);
                    let fact = RunFacts { run: run.id, generation: 1, state: RunState::Queued };
                    let change = Change::RunMade(Box::new(run));
                    state.apply(&change);
                    changes.push(change);
                    answers.push((parcel.id, Said::Settled { run: Some(fact) }, kept(Rule::AnswerWhenDurable)));
                }
                Take::Make { .. } => answers.push((parcel.id, Said::Settled { run: None }, true)),
                Take::Found(run) => {
                    let fact = RunFacts { run, generation: 1, state: RunState::Queued };
                    answers.push((parcel.id, Said::Settled { run: Some(fact) }, kept(Rule::RepeatWaitsToo)));
                }
                Take::Refuse(why) => answers.push((parcel.id, Said::Refused(why), kept(Rule::RefuseWhenDurable))),
                Take::Later(ms) => answers.push((parcel.id, Said::Later(ms), true)),
            }
        }
        self.arrived[node].remove(n);
        self.note(|| format!("shard {at} decides on a Deliver of shard {}: {answers:?}", arrived.deliver.from.0));
        if !changes.is_empty() {
            self.decide(at as u16, changes);
        }
        self.answer(&arrived, answers);
    }

    /// Answers wait for the newest frame of the shard: what they say may rest on it. With a broken rule some do not.
    fn answer(&mut self, arrived: &Arrived, answers: Vec<(MessageId, Said, bool)>) {
        let to = arrived.deliver.to.0;
        let (waiting, at_once): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, _, waits)| *waits);
        let reply = |answers: Vec<(MessageId, Said, bool)>| {
            let each = answers.into_iter().map(|(id, said, _)| (id, said)).collect();
            Reply { from: arrived.deliver.from.0, number: arrived.number, said_by: to, said: Delivered::Each(each) }
        };
        if !at_once.is_empty() {
            self.network.push(Packet::Answer { reply: reply(at_once) });
        }
        if waiting.is_empty() {
            return;
        }
        let reply = reply(waiting);
        let Some(live) = &mut self.live[usize::from(to)] else { return };
        match live.pending.back_mut() {
            Some(frame) => frame.replies.push(reply),
            None => self.network.push(Packet::Answer { reply }),
        }
    }
}
