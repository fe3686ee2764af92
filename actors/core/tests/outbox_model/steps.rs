//! What jobs do in the model: runs begin, end, fail, are asked about and reopened; DAG runs start their nodes; jobs come and go.

use super::{
    checks::{ViolationKind, effect},
    shard::{Change, JobRow, Phase, Run},
    world::{KeyRow, NAMES, POISON, TENANTS, World},
};
use campanile_core::outbox::{
    MessageDraft, Sending, keys,
    rules::{Rule, kept},
    sending::To,
};
use campanile_schema::{
    ids::{JobId, RunId, SLOTS, make_id, slot_of},
    record::Source,
    stored::outbox::{Message, MessageKind, OutboxEvent},
};

/// Bytes of the bodies of the model: three of the large ones do not fit into one `Deliver`.
const SMALL: usize = 100;
const LARGE: usize = 100 << 10;

impl World {
    fn some_job(&mut self) -> Option<(u16, JobRow)> {
        let tenant = TENANTS[self.random.below(TENANTS.len() as u64) as usize];
        let name = NAMES[self.random.below(NAMES.len() as u64) as usize];
        self.job(tenant, name)
    }
    pub fn job(&self, tenant: &str, name: &str) -> Option<(u16, JobRow)> {
        let shard = self.shard_of(slot_of(tenant, name));
        let live = self.live[usize::from(shard)].as_ref()?;
        Some((shard, live.state.job(tenant, name)?.clone()))
    }

    /// A caller starts a run, with a key of its own or not; or a DAG run.
    pub fn trigger(&mut self, tenant: &str, name: &str, key: Option<String>, nodes: usize) -> Option<RunId> {
        let (shard, job) = self.job(tenant, name)?;
        if key.as_deref().is_some_and(keys::is_reserved) {
            return None;
        }
        let live = self.live[usize::from(shard)].as_ref()?;
        let id = RunId(make_id(live.state.counter + 1, job.id.slot()));
        let run = Run {
            id,
            job: job.id,
            tenant: job.tenant.clone(),
            key,
            source: Source::Manual,
            generation: 1,
            phase: Phase::Open,
            created_ms: self.now_ms,
            marked: false,
            depth: 0,
            path: format!("{tenant}:{id}"),
            parent: None,
            nodes: vec![(false, false); nodes],
            shown: false,
            compensated: false,
            not_idempotent: job.not_idempotent,
            confirmed_as_ended: false,
        };
        self.note(|| format!("run {id} of {tenant}/{name}, {nodes} nodes"));
        self.decide(shard, vec![Change::RunMade(Box::new(run))]);
        Some(id)
    }
    pub fn trigger_some(&mut self) {
        if let Some((_, job)) = self.some_job() {
            let nodes = if self.random.percent(30) { self.random.within(1, 4) as usize } else { 0 };
            self.trigger(&job.tenant, &job.name, None, nodes);
        }
    }

    pub fn runs(&self, of: impl Fn(&Run) -> bool) -> Vec<(u16, RunId)> {
        let live = self.live.iter().enumerate().filter_map(|(n, live)| Some((n as u16, live.as_ref()?)));
        live.flat_map(|(n, live)| {
            live.state.runs.values().filter(|run| of(run)).map(move |run| (n, run.id)).collect::<Vec<_>>()
        })
        .collect()
    }

    /// The body of a run ends: well or not.
    pub fn end(&mut self, shard: u16, run: RunId, ok: bool) {
        let Some(live) = &self.live[usize::from(shard)] else { return };
        let Some(run) = live.state.runs.get(&run).filter(|run| run.phase == Phase::Open).cloned() else { return };
        if run.nodes.iter().any(|(_, ended)| !ended) {
            return;
        }
        // A body begins when its run is durable.
        let durable = self.store.disks[usize::from(shard)].runs.get(&run.id);
        if durable.is_none_or(|durable| durable.phase != Phase::Open || durable.generation != run.generation) {
            return;
        }
        let mut changes = vec![Change::RunEnded { run: run.id, ok, at_ms: self.now_ms }];
        let mut sending = Sending::new(&live.state.outbox, self.now_ms);
        let wanted = |kind, index, to: To, body_bytes| MessageDraft {
            kind,
            tenant: run.tenant.as_str().into(),
            run: run.id,
            run_created_ms: run.created_ms,
            run_marked: run.marked,
            generation: run.generation,
            index,
            to,
            params: None,
            depth: run.depth,
            body_bytes,
            budget: None,
            dropped: None,
            deadline: None,
        };
        let mut sent = Vec::new();
        if let Some(parent) = run.parent {
            sent.push(wanted(MessageKind::End, 0, To::Parent(parent), SMALL));
        }
        // Hooks of hooks end somewhere.
        if !ok && run.depth < 3 {
            let name = |n: u64| To::Job(NAMES[((run.id.0 + n) % NAMES.len() as u64) as usize].into());
            sent.push(wanted(MessageKind::Hook, 0, name(1), if run.id.0 % 2 == 0 { LARGE } else { SMALL }));
            if !run.compensated || !kept(Rule::CompensationOnce) {
                sent.push(wanted(MessageKind::Compensation, 1, name(2), SMALL));
            }
            if run.id.0 / SLOTS % 8 == 5 {
                sent.push(wanted(MessageKind::Hook, POISON, name(3), SMALL));
            }
        }
        for wanted in sent {
            let named = effect(&run.path, &probe(&wanted));
            changes.push(Change::Decides(named.clone()));
            if sending.send(wanted).is_err() {
                self.judge.violated(ViolationKind::Lost, format!("{named} found no room"));
            }
        }
        changes.extend(sending.events.into_iter().map(Change::Out));
        self.note(|| format!("{} ({}) ends, {ok}", run.path, run.id));
        self.decide(shard, changes);
    }

    /// A DAG run starts nodes, as far as there is room.
    pub fn advance(&mut self, shard: u16, run: RunId) {
        let Some(live) = &self.live[usize::from(shard)] else { return };
        let Some(run) = live.state.runs.get(&run).filter(|run| run.phase == Phase::Open).cloned() else { return };
        let mut sending = Sending::new(&live.state.outbox, self.now_ms);
        let mut changes = Vec::new();
        for node in (0u32..).zip(&run.nodes).filter(|(_, (started, _))| !started).map(|(n, _)| n) {
            let name = NAMES[((run.id.0 + u64::from(node)) % NAMES.len() as u64) as usize];
            let wanted = MessageDraft {
                kind: MessageKind::Start,
                tenant: run.tenant.as_str().into(),
                run: run.id,
                run_created_ms: run.created_ms,
                run_marked: run.marked,
                generation: 1,
                index: node,
                to: To::Job(name.into()),
                params: None,
                depth: run.depth,
                body_bytes: SMALL,
                budget: None,
                dropped: None,
                deadline: None,
            };
            let named = effect(&run.path, &probe(&wanted));
            if sending.send(wanted).is_err() {
                break;
            }
            changes.push(Change::Decides(named));
            changes.push(Change::NodeStarted { run: run.id, node });
        }
        changes.extend(sending.events.into_iter().map(Change::Out));
        if !changes.is_empty() {
            self.decide(shard, changes);
        }
    }

    /// A person answers for a run: it ends if its body has run, else it starts.
    pub fn confirm(&mut self, shard: u16, run: RunId) {
        let Some(live) = &self.live[usize::from(shard)] else { return };
        let Some(run) = live.state.runs.get(&run).filter(|run| run.phase == Phase::Confirm).cloned() else { return };
        let has_run = self.judge.has_run(&run.path);
        let change = if !has_run {
            Change::Confirmed(run.id)
        } else {
            Change::RunEnded { run: run.id, ok: true, at_ms: self.now_ms }
        };
        let mut changes = vec![change];
        if let (true, Some(parent)) = (has_run, run.parent) {
            let mut sending = Sending::new(&live.state.outbox, self.now_ms);
            let wanted = MessageDraft {
                kind: MessageKind::End,
                tenant: run.tenant.as_str().into(),
                run: run.id,
                run_created_ms: run.created_ms,
                run_marked: run.marked,
                generation: run.generation,
                index: 0,
                to: To::Parent(parent),
                params: None,
                depth: run.depth,
                body_bytes: SMALL,
                budget: None,
                dropped: None,
                deadline: None,
            };
            changes.push(Change::Decides(effect(&run.path, &probe(&wanted))));
            let sent = sending.send(wanted);
            changes.extend(sending.events.into_iter().map(Change::Out));
            if sent.is_err() {
                self.judge.violated(ViolationKind::Lost, "an END found no room");
            }
        }
        self.decide(shard, changes);
    }

    /// A failed run is retried by a person: the next generation.
    pub fn reopen(&mut self, shard: u16, run: RunId) {
        let Some(live) = &self.live[usize::from(shard)] else { return };
        let failed = |run: &&Run| matches!(run.phase, Phase::Ended { ok: false, .. }) && run.parent.is_none();
        if live.state.runs.get(&run).filter(failed).is_some() {
            self.decide(shard, vec![Change::Reopened(run)]);
        }
    }

    /// A job is deleted; or one that is not there is created.
    pub fn delete(&mut self, tenant: &str, name: &str) {
        if let Some((shard, job)) = self.job(tenant, name) {
            self.decide(shard, vec![Change::JobGone(job)]);
        }
    }
    pub fn create(&mut self, tenant: &str, name: &str) {
        let slot = slot_of(tenant, name);
        let shard = self.shard_of(slot);
        let Some(live) = &self.live[usize::from(shard)] else { return };
        if live.state.job(tenant, name).is_some() {
            return;
        }
        let not_idempotent = NAMES.iter().position(|known| *known == name).is_some_and(|n| n % 2 == 0);
        let job = JobRow {
            id: JobId(make_id(live.state.counter + 1, slot)),
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            created_ms: self.now_ms,
            not_idempotent,
        };
        self.decide(shard, vec![Change::JobMade(job)]);
    }

    /// The read model shows what is durable of a shard.
    pub fn project(&mut self, shard: u16) {
        let at = usize::from(shard);
        let disk = &mut self.store.disks[at];
        for run in disk.runs.values_mut() {
            run.shown = true;
            let ended_ms = if let Phase::Ended { at_ms, .. } = run.phase { Some(at_ms) } else { None };
            if let Some(key) = &run.key {
                let row = KeyRow { run: run.id, source: run.source, ended_ms };
                // The first run of a key keeps it.
                self.store.keys.entry((run.job, key.clone())).or_insert_with(|| row.clone()).ended_ms = ended_ms;
            }
            if let Some(live) = &mut self.live[at] {
                if let Some(same) = live.state.runs.get_mut(&run.id) {
                    same.shown = true;
                }
                if let (Some(key), Some(_)) = (&run.key, ended_ms) {
                    live.keys.shown(run.job, key, self.now_ms);
                }
            }
        }
        if let Some(live) = &mut self.live[at] {
            live.keys.forget(self.now_ms);
        }
    }

    /// Retention removes what ended long ago; key rows of messages stay for as long as they must.
    pub fn retain(&mut self) {
        let (now, retention) = (self.now_ms, self.retention_ms);
        let restored = self.store.restored_ms;
        self.store.keys.retain(|(_, key), row| {
            let Some(ended_ms) = row.ended_ms else { return true };
            let is_ours = key.contains(keys::RESERVED);
            let until = if is_ours { keys::keep_until(ended_ms, restored) } else { ended_ms };
            now < until.max(ended_ms + retention)
        });
    }
}

/// As much of a message as its effect's name needs.
fn probe(wanted: &MessageDraft) -> Message {
    let mut outbox = campanile_core::outbox::Outbox::new(1, campanile_core::outbox::Bounds::default());
    let mut sending = Sending::new(&outbox, 0);
    let _ = sending.send(wanted.clone());
    let event = sending.events.remove(0);
    outbox.apply(&event);
    match event {
        OutboxEvent::Sent(message) | OutboxEvent::Dropped { message, .. } => message,
        OutboxEvent::Settled { .. }
        | OutboxEvent::Failed { .. }
        | OutboxEvent::Restored { .. }
        | OutboxEvent::Cleared { .. } => unreachable!(),
    }
}
