//! What shards do all the time: values, runs, snapshots, projections.

use super::{
    shard::Change,
    world::{Event, LANES, MS, SHARDS, World},
};
use campanile_schema::ids::ShardId;

impl World {
    /// One thing that a shard does by itself or for a caller.
    pub fn work(&mut self) {
        let pause_us = self.random.within(10 * MS, 40 * MS);
        self.after(pause_us, Event::Work);
        let shard = ShardId(self.random.below(u64::from(SHARDS)) as u16);
        let first = self.random.below(self.nodes.len() as u64) as usize;
        let nodes = (0..self.nodes.len()).map(|n| (n + first) % self.nodes.len());
        let serving = |node: &usize| {
            let this = &self.nodes[*node];
            this.paused_until_us <= self.now_us && this.memory.get(&shard).is_some_and(|(_, m)| m.serving)
        };
        let Some(node) = nodes.into_iter().find(serving) else { return };
        let state = &self.nodes[node].memory[&shard].1.state;
        let run = state.open.first().copied();
        self.numbers += 1;
        let number = self.numbers * u64::from(SHARDS) + u64::from(shard.0);
        match self.random.below(10) {
            0..=2 => {
                let mut rows = vec![(shard, vec![Change::Value(number)])];
                let other = ShardId((shard.0 + LANES) % SHARDS);
                let both = self.nodes[node].memory.get(&other).is_some_and(|(_, m)| m.serving);
                if both && self.random.percent(40) {
                    rows.push((other, vec![Change::Value(number + 1), Change::Value(number + 2)]));
                }
                self.write(node, &rows);
            }
            3..=5 if self.nodes[node].borrowed.may_start(shard) => {
                if self.write(node, &[(shard, vec![Change::Started(number)])]) {
                    self.nodes[node].borrowed.started(shard);
                }
            }
            6 => {
                if let Some(run) = run {
                    self.write(node, &[(shard, vec![Change::Ended(run)])]);
                }
            }
            7..=8 => self.snapshot(node, shard),
            _ => self.project(node, shard),
        }
    }

    /// Writes a snapshot of what is in memory, which need not be durable.
    fn snapshot(&mut self, node: usize, shard: ShardId) {
        let Some(session) = self.nodes[node].session() else { return };
        let Some((epoch, memory)) = self.nodes[node].memory.get(&shard) else { return };
        let (epoch, seq, state) = (*epoch, memory.seq, memory.state.clone());
        self.numbers += 1;
        let number = self.numbers;
        self.snapshots.insert(number, state);
        let delay_us = self.random.within(MS, 30 * MS);
        self.after(delay_us, Event::Snapshot { session, shard, epoch, number, seq });
    }

    fn project(&mut self, node: usize, shard: ShardId) {
        let Some(session) = self.nodes[node].session() else { return };
        if self.now_us < self.projection_stalled_until_us {
            return;
        }
        let seq = self.nodes[node].memory[&shard].1.acknowledged;
        let delay_us = self.random.within(MS, 60 * MS);
        self.after(delay_us, Event::Projected { session, shard, seq });
    }
}
