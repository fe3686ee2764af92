//! The quota of the model's only tenant: the shell around loans, on the quota's shard and on the sessions that borrow.

use super::{
    shard::{Change, QUOTA},
    world::{Message, World},
};
use campanile_schema::loan::Request;

impl World {
    /// A node sends its request to whoever serves the quota, now and then.
    pub fn ask_quota(&mut self, node: usize) {
        if !self.random.percent(50) || self.nodes[node].memory.is_empty() {
            return;
        }
        let used = self.nodes[node].borrowed.used();
        let want = used + self.random.below(4) as u32;
        let Some(request) = self.nodes[node].borrowed.request(want).cloned() else { return };
        let quota = (0..self.nodes.len()).find(|node| self.nodes[*node].memory.contains_key(&QUOTA));
        if let Some(to) = quota.and_then(|node| self.nodes[node].session()) {
            self.post(to, Message::Request(request));
        }
    }

    pub fn message(&mut self, node: usize, message: Message) {
        match message {
            Message::Released(shard) => {
                self.nodes[node].with(|own| own.peer_released(shard));
                self.outputs(node);
            }
            Message::Level(level) => self.nodes[node].borrowed.level(level),
            Message::Request(request) => self.decide(node, &request),
        }
    }

    fn decide(&mut self, node: usize, request: &Request) {
        if !self.acts(node, QUOTA) {
            return;
        }
        let Some((_, memory)) = self.nodes[node].memory.get(&QUOTA).filter(|(_, memory)| memory.serving) else {
            return;
        };
        let events = memory.state.loans.decide(request);
        if !events.is_empty() {
            let changes = events.into_iter().map(Change::Loan).collect();
            if !self.write(node, &[(QUOTA, changes)]) {
                return;
            }
            self.table.moves_of_permits += 1;
        }
        // An answer without events rests on what was decided before: it waits too.
        if let Some((_, memory)) = self.nodes[node].memory.get_mut(&QUOTA) {
            let level = memory.state.loans.level(request.session);
            memory.replies.push((memory.seq, request.session, level));
        }
        self.reply(node);
    }

    /// Sends the answers whose frames are acknowledged.
    pub fn reply(&mut self, node: usize) {
        let Some((_, memory)) = self.nodes[node].memory.get_mut(&QUOTA) else { return };
        let done = memory.acknowledged;
        let ready: Vec<_> = memory.replies.extract_if(.., |(seq, ..)| *seq <= done).collect();
        for (_, session, level) in ready {
            self.post(session, Message::Level(level));
        }
    }

    /// The quota's owner has read all rows: sessions that are over may be freed.
    pub fn free_permits(&mut self, node: usize) {
        if !self.acts(node, QUOTA) {
            return;
        }
        let this = &self.nodes[node];
        let Some((_, memory)) = this.memory.get(&QUOTA).filter(|(_, memory)| memory.serving) else { return };
        let Some(own) = this.own() else { return };
        let (rows, over) = own.rows();
        let events = memory.state.loans.free(&over, rows);
        if !events.is_empty() {
            let changes = events.into_iter().map(Change::Loan).collect();
            self.write(node, &[(QUOTA, changes)]);
        }
    }
}
