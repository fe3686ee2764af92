//! The protocol of sessions and claims over the shared store, in virtual time, with one LWT lost in each way at each place: not applied,
//! applied, and applied much later, when its session has long gone on or is over.
#![allow(clippy::unwrap_used)]

use super::{
    shared::{SharedEnd, SharedMemory},
    weather::{Lost, StatementKind},
};
use crate::samples::wait;
use campanile_core::ownership::{Hints, Output, Ownership, Settings, replay::SpanEnd, store::StoreAnswer};
use campanile_ports::Leases;
use campanile_schema::ids::{SessionId, ShardId};
use std::{collections::BTreeSet, sync::Arc};

const SHARDS: u16 = 4;
const LEASE_MS: u64 = 1_000;
const STEP_MS: u64 = 10;
/// Far above what any step of the story takes.
const PATIENCE_MS: u64 = 20_000;

/// A node: its session and its way to the store.
struct Node {
    id: SessionId,
    end: SharedEnd,
    protocol: Ownership,
}

impl Node {
    fn start(store: &Arc<SharedMemory>, now_ms: u64) -> Self {
        let end = store.end();
        let id = wait(end.next_session()).unwrap();
        let settings = Settings {
            session: id,
            lease_ms: LEASE_MS,
            beat_ms: 200,
            watch_ms: 100,
            reconcile_ms: 300,
            keep_ended_ms: 86_400_000,
            window: 4,
            lanes: 1,
            predecessor: None,
        };
        Self { id, end, protocol: Ownership::new(settings, now_ms) }
    }

    /// Does what the protocol says until it says nothing more.
    fn turn(&mut self, now_ms: u64) {
        self.protocol.tick(now_ms);
        loop {
            let outputs = self.protocol.outputs();
            if outputs.is_empty() {
                return;
            }
            for output in outputs {
                match output {
                    Output::Store { ticket, statement } => {
                        let answer = self.end.execute(self.id, statement);
                        let answer = wait(Box::pin(async move { Ok(answer.await) })).unwrap();
                        self.protocol.answered(now_ms, ticket, answer);
                    }
                    Output::Load { shard, epoch, spans, .. } => {
                        let ends = spans.into_iter().map(|span| SpanEnd { span, last: None }).collect();
                        self.protocol.loaded(shard, epoch, 0, ends);
                    }
                    Output::Stop { shard } => self.protocol.stopped(now_ms, shard),
                    Output::Acknowledge { .. }
                    | Output::Serve { .. }
                    | Output::Released { .. }
                    | Output::Lost { .. }
                    | Output::RowsRead
                    | Output::Took(_)
                    | Output::Over => {}
                }
            }
        }
    }

    /// The shards that it acts for.
    fn acts_for(&self, now_ms: u64) -> BTreeSet<ShardId> {
        let shards = (0..SHARDS).map(ShardId);
        shards.filter(|shard| self.protocol.may_act(now_ms) && self.protocol.serves(*shard)).collect()
    }
}

/// Two nodes and the time.
struct World {
    store: Arc<SharedMemory>,
    nodes: Vec<Node>,
    now_ms: u64,
    case: String,
}

impl World {
    fn start_node(&mut self) {
        self.nodes.push(Node::start(&self.store, self.now_ms));
    }

    /// Membership and placement: those that live share the shards evenly, those of before are watched.
    fn hint(&mut self, live: &[usize]) {
        let members: Vec<SessionId> = live.iter().map(|node| self.nodes[*node].id).collect();
        let wanted = (0..SHARDS).map(|shard| (ShardId(shard), members[usize::from(shard) % members.len()]));
        let hints = Hints {
            members: members.iter().copied().collect(),
            watch: self.nodes.iter().map(|node| node.id).collect(),
            wanted: wanted.collect(),
            ..Hints::default()
        };
        for node in live {
            self.nodes[*node].protocol.hint(self.now_ms, hints.clone());
        }
    }

    /// Lets these nodes live until each acts for so many shards; never two of them for one.
    fn until(&mut self, live: &[usize], shards: &[usize]) {
        let until_ms = self.now_ms + PATIENCE_MS;
        loop {
            self.now_ms += STEP_MS;
            self.hint(live);
            for node in live {
                self.nodes[*node].turn(self.now_ms);
                self.nobody_acts_beside_another();
            }
            let acting: Vec<usize> = live.iter().map(|node| self.nodes[*node].acts_for(self.now_ms).len()).collect();
            if acting == shards {
                return;
            }
            assert!(self.now_ms < until_ms, "{}: {acting:?} instead of {shards:?}", self.case);
        }
    }

    fn nobody_acts_beside_another(&self) {
        let mut acted_for = BTreeSet::new();
        for node in &self.nodes {
            for shard in node.acts_for(self.now_ms) {
                assert!(acted_for.insert(shard), "{}: two owners of {shard} at {}", self.case, self.now_ms);
            }
        }
    }
}

#[test]
fn shards_are_owned_once_and_again_whichever_lwt_is_lost_in_whichever_way() {
    let mut came_late = 0;
    for how in [Lost::NotApplied, Lost::Applied, Lost::Late] {
        for nth in 0..16 {
            // Where in the story: a node alone, a node that joins it, or the one that takes over.
            for phase in 0..3 {
                let case = format!("{how:?}, LWT {nth} of phase {phase}");
                let store = SharedMemory::new(SHARDS);
                let mut world = World { store, nodes: Vec::new(), now_ms: 1_000, case };
                let lose = |world: &World, now: usize, node: usize| {
                    if now == phase {
                        world.nodes[node].end.weather().lose(StatementKind::Lwt, nth, how);
                    }
                };
                world.start_node();
                lose(&world, 0, 0);
                world.until(&[0], &[4]);
                world.start_node();
                lose(&world, 1, 0);
                lose(&world, 1, 1);
                world.until(&[0, 1], &[2, 2]);
                lose(&world, 2, 1);
                // The first one stands still, for good: the other takes it for gone when its lease is over.
                world.until(&[1], &[4]);
                let owners = world.store.owners();
                for (statement, answer) in world.store.deliver_late() {
                    assert_ne!(answer, StoreAnswer::Done, "{}: {statement:?}", world.case);
                    came_late += 1;
                }
                assert_eq!(world.store.owners(), owners);
                world.now_ms += LEASE_MS / 2;
                world.until(&[1], &[4]);
            }
        }
    }
    assert!(came_late > 20, "{came_late}");
}
