//! Compares all shard rows with what this session holds: which shards to claim, which to hand over, which rows to
//! delete.

use super::{Hold, Output, Ownership, Phase, Purpose, Transition};
use crate::ownership::{
    rows::{ShardRow, lane_of},
    rules::{Rule, kept},
    store::{Statement, Ticket},
    trim::deletable,
};
use campanile_schema::ids::{SessionId, ShardId};

impl Ownership {
    pub(super) fn reconcile_tick(&mut self, now_ms: u64) {
        if now_ms < self.next_reconcile_ms || self.reading_rows {
            return;
        }
        self.next_reconcile_ms = now_ms + self.reconcile_ms();
        self.reading_rows = true;
        let (claims, quiet) = (self.claims, self.quiet());
        self.ask(Purpose::Rows { claims, quiet }, Statement::ReadShards);
    }

    pub(super) fn reconcile_ms(&self) -> u64 {
        if self.hints.moving { self.settings.reconcile_ms / 4 } else { self.settings.reconcile_ms }
    }

    /// No shard row is being changed here: what is read is all that this session has to do with.
    fn quiet(&self) -> bool {
        self.holds.values().all(|hold| hold.trying.is_none())
    }

    /// `unchanged`: since the read was sent, nothing was claimed here, and nothing was on its way.
    pub(super) fn rows_answered(
        &mut self,
        now_ms: u64,
        ticket: Ticket,
        rows: Vec<(ShardId, ShardRow)>,
        unchanged: bool,
    ) {
        (self.rows, self.rows_ticket) = (rows, ticket);
        let mut owners: Vec<SessionId> = self.owners().collect();
        owners.sort_unstable();
        owners.dedup();
        for owner in owners {
            if self.hints.members.contains(&owner) || kept(Rule::Reconcile) {
                self.look_at(owner);
            }
        }
        for (shard, row) in self.rows.clone() {
            self.reconcile(now_ms, shard, &row);
        }
        self.delete_rows(unchanged && self.quiet() || !kept(Rule::DeleteWhenQuiet));
        self.drop_sessions(now_ms);
        self.end_when_empty(unchanged);
        self.out.push(Output::RowsRead);
    }

    fn reconcile(&mut self, now_ms: u64, shard: ShardId, row: &ShardRow) {
        let me = self.id();
        if row.owner == Some(me) {
            if kept(Rule::OwnName) {
                self.own_name(now_ms, shard, row);
            }
        } else {
            self.take(now_ms, shard, row);
        }
    }

    /// Claims a shard that nobody owns any more, if it should be here.
    pub(super) fn take(&mut self, now_ms: u64, shard: ShardId, row: &ShardRow) {
        let me = self.id();
        if self.hints.wanted.get(&shard) != Some(&me) || self.holds.contains_key(&shard) {
            return;
        }
        let free = match row.owner {
            Some(owner) if owner == me => false,
            Some(owner) => {
                let unsealed = !kept(Rule::ClaimAfterSeal) && self.seals.contains_key(&owner);
                self.ended.contains_key(&owner) || unsealed
            }
            None => true,
        };
        if free {
            self.claim(now_ms, shard, row);
        }
    }

    /// Gives a shard away that is served here, if another member should have it. By hints that know that it is here: older ones would send
    /// it back.
    pub(super) fn begin_move(&mut self, shard: ShardId) {
        let me = self.id();
        let successor = self.hints.wanted.get(&shard).copied();
        let successor = successor.filter(|to| *to != me && self.hints.members.contains(to));
        let serving = self.holds.get(&shard).is_some_and(|hold| hold.phase == Phase::Serving);
        if let Some(successor) = successor.filter(|_| serving) {
            self.hand_over(shard, successor);
        }
    }

    /// What is known of a row before it is read again: who owns it.
    pub(super) fn note_owner(&mut self, shard: ShardId, owner: SessionId) {
        if let Some((_, row)) = self.rows.iter_mut().find(|(known, _)| *known == shard) {
            row.owner = Some(owner);
        }
    }

    /// A row in the own name that is not served: a hand-over whose message was lost, or a claim whose answer was.
    pub(super) fn own_name(&mut self, now_ms: u64, shard: ShardId, row: &ShardRow) {
        if row.owner == Some(self.id()) && !self.holds.contains_key(&shard) && self.may_act(now_ms) {
            self.took(Transition::OwnNameClaimed);
            self.claim(now_ms, shard, row);
        }
    }

    fn claim(&mut self, now_ms: u64, shard: ShardId, row: &ShardRow) {
        if !self.may_act(now_ms) || self.session.is_ending() {
            return;
        }
        let lane = lane_of(shard, self.settings.lanes);
        let hold = Hold::claiming(row.clone(), lane);
        self.holds.insert(shard, hold);
        if !self.send_claim(shard, false) {
            self.holds.remove(&shard);
        }
    }

    /// Journal rows that no span names: the own ones, and those of sessions that are over.
    fn delete_rows(&mut self, unchanged: bool) {
        let me = self.id();
        for lane in 0..self.settings.lanes {
            let end = if kept(Rule::DeleteBelowStated) {
                self.session.stated()[usize::from(lane)]
            } else {
                self.lanes[usize::from(lane)].durable()
            };
            let upto = deletable(&self.rows, me, lane, end);
            let deleted = &mut self.deleted[usize::from(lane)];
            if unchanged && upto > *deleted {
                *deleted = upto;
                self.took(Transition::RowsDeleted);
                self.ask(Purpose::Deletion, Statement::DeleteRows { session: me, lane, upto });
            }
        }
    }

    /// Removes sessions that are over and that no shard row names any more, with all of their journal.
    fn drop_sessions(&mut self, now_ms: u64) {
        let keep_ms = if kept(Rule::KeepEndedRows) { self.settings.keep_ended_ms } else { 0 };
        let unnamed = self.ended.iter().filter(|(session, ended)| {
            let old = ended.known < self.rows_ticket && now_ms >= ended.known_ms + keep_ms;
            old && !self.rows.iter().any(|(_, row)| row.names(**session))
        });
        let gone: Vec<_> = unnamed.filter_map(|(session, ended)| Some((*session, ended.version?))).collect();
        for (session, expected) in gone {
            for lane in 0..self.settings.lanes {
                self.ask(Purpose::Deletion, Statement::DeleteRows { session, lane, upto: u64::MAX });
            }
            self.took(Transition::SessionDropped);
            self.ask(Purpose::Deletion, Statement::DropSession { session, expected });
            if let Some(ended) = self.ended.get_mut(&session) {
                ended.version = None;
            }
        }
    }

    /// A draining session that owns nothing, in memory and in the rows, ends with its next heartbeat.
    fn end_when_empty(&mut self, unchanged: bool) {
        let me = Some(self.id());
        let empty = self.holds.is_empty() && self.rows.iter().all(|(_, row)| row.owner != me);
        if unchanged && empty && self.session.is_draining() {
            self.session.end();
            self.next_beat_ms = 0;
        }
    }
}
