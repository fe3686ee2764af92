//! What strikes nodes and store, and what members see of each other.

use super::{
    shard::QUOTA,
    table::Fault,
    world::{Event, MS, SHARDS, Weather, World},
};
use campanile_core::ownership::Hints;
use campanile_schema::ids::{SessionId, ShardId};

/// A drain ends after so long, whatever is left: with every node draining, there is nobody to hand over to.
const DRAIN_US: u64 = 2_500 * MS;

impl World {
    /// One fault, and when the next one comes.
    pub fn strike(&mut self) {
        let longest_ms = if self.plan.weather() == Weather::Storm { 300 } else { 900 };
        let pause_us = self.random.within(50 * MS, longest_ms * MS);
        self.after(pause_us, Event::Fault);
        let Some(mut chance) = self.chance() else { return };
        let node = chance.below(self.nodes.len() as u64) as usize;
        let lease_us = self.nodes[node].lease_ms * MS;
        let number = self.faults;
        let fog = self.plan.weather() == Weather::Fog && chance.percent(30);
        match if fog { 75 } else { chance.below(100) } {
            0..=14 => self.pause(node, chance.within(20 * MS, lease_us / 2), Fault::ShortPause),
            15..=39 => self.pause(node, chance.within(lease_us, 4 * lease_us), Fault::LongPause),
            40..=57 => self.crash(node, chance.within(10 * MS, 3_000 * MS), chance.percent(40)),
            58..=61 => {
                self.fault(Fault::CrashOfAll);
                for node in 0..self.nodes.len() {
                    self.crash(node, chance.within(10 * MS, 2_000 * MS), chance.percent(20));
                }
            }
            62..=69 => {
                self.fault(Fault::StoreStalled);
                self.tell(|_| "the store stalls".to_owned());
                self.stalled_until_us = self.now_us + chance.within(100 * MS, 1_700 * MS);
            }
            70..=83 => {
                let others = self.nodes.iter().filter(|node| node.session().is_some()).count() > 1;
                if others && self.nodes[node].session().is_some() && !self.nodes[node].draining {
                    self.fault(Fault::Drain);
                    self.nodes[node].draining = true;
                    self.nodes[node].drained_by_us = self.now_us + DRAIN_US;
                    self.nodes[node].with(|own| own.drain());
                    self.tell(|world| {
                        format!("{} drains", world.name(world.nodes[node].session().unwrap_or_default()))
                    });
                }
            }
            84..=88 => {
                if self.nodes[node].session().is_some() && self.nodes[node].paused_until_us <= self.now_us {
                    self.fault(Fault::GiveUp);
                    let now_ms = self.local_ms(node);
                    self.nodes[node].with(|own| own.give_up(now_ms));
                    self.outputs(node);
                }
            }
            _ => {
                self.fault(Fault::ProjectionStalled);
                self.projection_stalled_until_us = self.now_us + chance.within(500 * MS, 4_000 * MS);
            }
        }
        self.tell(|_| format!("(fault {number})"));
    }

    fn stop(&mut self, node: usize, length_us: u64, fault: Fault) {
        if self.nodes[node].session().is_some() && self.nodes[node].paused_until_us <= self.now_us {
            self.fault(fault);
            self.nodes[node].paused_until_us = self.now_us + length_us;
            self.tell(|world| {
                let session = world.nodes[node].session().unwrap_or_default();
                format!("{} stops for {} ms", world.name(session), length_us / MS)
            });
        }
    }

    /// A process may stop when it has just begun: its first statements are on their way.
    pub fn newborn(&mut self, node: usize) {
        let often = if self.plan.weather() == Weather::BadLwts { 25 } else { 5 };
        if let Some(mut chance) = self.chance()
            && chance.percent(often)
        {
            self.after(
                chance.within(2 * MS, 60 * MS),
                Event::Pause { node, length_us: chance.within(500 * MS, 7_000 * MS) },
            );
        }
    }

    pub fn pause(&mut self, node: usize, length_us: u64, fault: Fault) {
        if self.calm {
            return;
        }
        self.stop(node, length_us, fault);
    }

    fn crash(&mut self, node: usize, away_us: u64, knowing: bool) {
        let Some(session) = self.nodes[node].session() else { return };
        self.fault(Fault::Crash);
        self.fault(if knowing { Fault::RestartKnowing } else { Fault::RestartAfresh });
        self.tell(|world| format!("{} crashes", world.name(session)));
        self.nodes[node].forget();
        self.nodes[node].paused_until_us = 0;
        self.after(away_us, Event::Start { node, knowing });
    }

    pub fn become_calm(&mut self) {
        self.tell(|_| "the faults stop".to_owned());
        self.calm = true;
        self.stalled_until_us = self.stalled_until_us.min(self.now_us);
        self.projection_stalled_until_us = 0;
        for node in &mut self.nodes {
            node.paused_until_us = 0;
        }
    }

    /// What a node sees of the others, and who it thinks should own what.
    pub fn hints(&mut self, node: usize) -> Hints {
        let mut seen: Vec<(usize, SessionId)> = Vec::new();
        let mistakes = if self.plan.weather() == Weather::Fog { 20 } else { 5 };
        for other in 0..self.nodes.len() {
            let gone = self.nodes[other].paused_until_us > self.now_us;
            let mut session = self.nodes[other].session().filter(|_| !gone && !self.nodes[other].draining);
            if other != node && self.chance().is_some_and(|mut chance| chance.percent(mistakes)) {
                self.fault(Fault::WrongHints);
                session = if session.is_some() { None } else { self.nodes[other].last };
            }
            seen.extend(session.map(|session| (other, session)));
        }
        let score =
            |shard: u16, node: usize| (u64::from(shard) * 31 + node as u64 * 17 + 5).wrapping_mul(0x9e37_79b9) >> 7;
        let wanted = (0..SHARDS).filter_map(|shard| {
            let first = seen.iter().max_by_key(|(node, _)| score(shard, *node) % 101)?;
            Some((ShardId(shard), first.1))
        });
        let known = &mut self.nodes[node].known;
        known.extend(seen.iter().map(|(_, session)| *session));
        let watch = known.clone();
        let quota = self.nodes[node].memory.get(&QUOTA);
        let borrowers = quota.into_iter().flat_map(|(_, memory)| memory.state.loans.sessions()).collect();
        let members = seen.iter().map(|(_, session)| *session).collect();
        Hints { members, watch, borrowers, wanted: wanted.collect(), moving: false }
    }
}
