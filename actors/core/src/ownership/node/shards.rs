//! The statements about a shard's row (claims, hand-overs, publications) and the meaning of their answers.
//!
//! Only one statement for a shard is under way at a time. Its answer is `Done`, the row that is stored, or unknown;
//! after an unknown answer the row is read. A row therefore decides every case. A row that still has the expected
//! version says only that the statement was not applied *yet*.

use super::{Output, Ownership, Phase, Purpose, Transition};
use crate::ownership::{
    claim,
    rows::{SessionState, ShardRow, SnapshotPointer},
    rules::{Rule, kept},
    store::{Statement, StoreAnswer},
    trim::needed_spans,
};
use campanile_schema::ids::{SessionId, ShardId};

impl Ownership {
    /// Sends the claim of a shard that is held as claiming or reclaiming; false if it cannot be claimed now.
    pub(super) fn send_claim(&mut self, shard: ShardId, again: bool) -> bool {
        let (me, nonce) = (self.id(), self.session.nonce());
        let Some(hold) = self.holds.get(&shard) else { return false };
        let from = self.lanes[usize::from(hold.lane)].next();
        let keep = hold.phase == Phase::Reclaiming;
        let sealed = |session, lane| self.end_of(session, lane);
        let Some(row) = claim::claim(&hold.row, me, nonce, hold.lane, from, keep, sealed) else { return false };
        self.claims += 1;
        self.took(if again { Transition::ClaimRepeated } else { Transition::ClaimSent });
        self.try_row(shard, row);
        true
    }

    /// Sends the next version of a shard's row.
    fn try_row(&mut self, shard: ShardId, row: ShardRow) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        hold.trying = Some(row.clone());
        let expected = hold.row.version;
        self.ask(Purpose::Row(shard), Statement::PutShard { shard, expected, row });
    }

    pub(super) fn row_answered(&mut self, now_ms: u64, shard: ShardId, answer: &StoreAnswer) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        let Some(tried) = hold.trying.clone() else { return };
        let stands = match answer {
            StoreAnswer::Done => tried.clone(),
            StoreAnswer::Shard(row) => row.clone(),
            StoreAnswer::Unknown | StoreAnswer::Session(_) | StoreAnswer::Shards(_) | StoreAnswer::Lane(_) => {
                if hold.phase == Phase::Claiming && !kept(Rule::ClaimReadBack) {
                    self.claimed(shard, tried);
                    return;
                }
                hold.unknown = true;
                self.ask(Purpose::Row(shard), Statement::ReadShard { shard });
                return;
            }
        };
        let unknown = std::mem::take(&mut hold.unknown);
        hold.trying = None;
        match hold.phase {
            Phase::Claiming => self.claim_stands(now_ms, shard, &tried, stands, unknown),
            Phase::Releasing { successor } => self.release_stands(shard, successor, stands, unknown),
            Phase::Reclaiming => self.reclaim_stands(shard, &tried, stands),
            Phase::Serving | Phase::Stopping { .. } => self.publication_stands(shard, &tried, stands, unknown),
            Phase::Loading | Phase::Checking { .. } => {}
        }
    }

    fn claim_stands(&mut self, now_ms: u64, shard: ShardId, tried: &ShardRow, stands: ShardRow, unknown: bool) {
        let Some(hold) = self.holds.get(&shard) else { return };
        if stands.is_claimed_by(self.id()) && stands.epoch == tried.epoch {
            if unknown {
                self.took(Transition::ClaimReadBack);
            }
            self.claimed(shard, stands);
        } else if stands.version == hold.row.version && kept(Rule::ClaimPursued) && self.send_claim(shard, true) {
            // On its way again: the first one may still be applied, or this one.
        } else {
            self.holds.remove(&shard);
            self.took(Transition::ClaimLost);
            self.next_reconcile_ms = now_ms;
        }
    }

    fn claimed(&mut self, shard: ShardId, row: ShardRow) {
        self.took(Transition::Claimed);
        let me = self.settings.session;
        self.note_owner(shard, me);
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        (hold.trying, hold.phase) = (None, Phase::Loading);
        // Where claims do not wait for the seal, a span of another session may be open.
        let spans = row.spans.iter().filter(|span| span.to.is_some() || span.session != me).cloned().collect();
        let (epoch, snapshot) = (row.epoch, row.snapshot);
        hold.row = row;
        self.out.push(Output::Load { shard, epoch, spans, snapshot });
    }

    /// Begins to give a shard away.
    pub(super) fn hand_over(&mut self, shard: ShardId, successor: SessionId) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        hold.phase = Phase::Stopping { successor, stopped: false };
        self.took(Transition::DrainBegan);
        self.out.push(Output::Stop { shard });
    }

    /// A shard makes no decision any more: it answered [`Output::Stop`].
    pub fn stopped(&mut self, now_ms: u64, shard: ShardId) {
        if let Some(hold) = self.holds.get_mut(&shard)
            && let Phase::Stopping { stopped, .. } = &mut hold.phase
        {
            *stopped = true;
        }
        self.settle(now_ms);
    }

    /// A snapshot with all frames up to `seq` is written. Its pointer is published when they are acknowledged.
    pub fn snapshot_written(&mut self, now_ms: u64, shard: ShardId, number: u64, seq: u64) {
        if let Some(hold) = self.holds.get_mut(&shard) {
            hold.snapshot = Some(SnapshotPointer { epoch: hold.epoch(), number, seq });
        }
        self.settle(now_ms);
    }

    /// The views hold all frames of a shard up to `seq`, and their position is stored.
    pub fn projected(&mut self, shard: ShardId, seq: u64) {
        let known = self.projected.entry(shard).or_default();
        *known = seq.max(*known);
    }

    pub(super) fn settle_shards(&mut self) {
        // Each input comes here, and hardly ever has any shard something to do.
        let waiting = self.holds.iter().filter(|(_, hold)| hold.trying.is_none() && hold.waits_for_rows());
        let shards: Vec<ShardId> = waiting.map(|(shard, _)| *shard).collect();
        for shard in shards {
            let Some(hold) = self.holds.get(&shard) else { continue };
            let acknowledged = self.acknowledged[usize::from(hold.lane)];
            match hold.phase {
                Phase::Serving => self.publish(shard),
                Phase::Stopping { successor, stopped: true } if hold.last_row() <= acknowledged => {
                    self.check(shard, successor);
                }
                Phase::Stopping { .. }
                | Phase::Claiming
                | Phase::Loading
                | Phase::Checking { .. }
                | Phase::Releasing { .. }
                | Phase::Reclaiming => {}
            }
        }
    }

    fn check(&mut self, shard: ShardId, successor: SessionId) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        hold.phase = Phase::Checking { successor };
        self.ask(Purpose::Successor(shard), Statement::ReadSession { session: successor });
    }

    pub(super) fn successor_answered(&mut self, shard: ShardId, answer: &StoreAnswer) {
        let (me, nonce) = (self.id(), self.session.nonce());
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        let Phase::Checking { successor } = hold.phase else { return };
        match answer {
            StoreAnswer::Session(Some(row)) if row.state == SessionState::Active => {
                hold.phase = Phase::Releasing { successor };
                let upto = self.acknowledged[usize::from(hold.lane)];
                let row = claim::release(&hold.row, me, nonce, successor, upto);
                self.try_row(shard, row);
            }
            StoreAnswer::Session(_) => {
                self.took(Transition::SuccessorRefused);
                self.go_on(shard, false);
            }
            StoreAnswer::Unknown
            | StoreAnswer::Done
            | StoreAnswer::Shard(_)
            | StoreAnswer::Shards(_)
            | StoreAnswer::Lane(_) => {
                self.check(shard, successor);
            }
        }
    }

    /// The shard is not released after all. A release that may still come is made void first.
    fn go_on(&mut self, shard: ShardId, release_may_come: bool) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        if release_may_come && kept(Rule::ResumeRaisesVersion) {
            hold.phase = Phase::Reclaiming;
            self.took(Transition::ReleaseVoided);
            self.send_claim(shard, false);
        } else {
            hold.phase = Phase::Serving;
            let epoch = hold.epoch();
            self.out.push(Output::Serve { shard, epoch });
        }
    }

    fn release_stands(&mut self, shard: ShardId, to: SessionId, stands: ShardRow, unknown: bool) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        if stands.owner == hold.row.owner && stands.epoch == hold.row.epoch {
            // A publication that came late voids the release; the same version does not.
            let may_come = unknown && stands.version == hold.row.version;
            hold.row = stands;
            self.go_on(shard, may_come);
            return;
        }
        if unknown {
            self.took(Transition::ReleaseReadBack);
        }
        self.released(shard, to);
    }

    fn released(&mut self, shard: ShardId, successor: SessionId) {
        self.holds.remove(&shard);
        self.note_owner(shard, successor);
        if self.session.is_draining() && self.holds.is_empty() {
            // Whether anything is left is in the rows.
            self.next_reconcile_ms = 0;
        }
        self.took(Transition::Released);
        self.out.push(Output::Released { shard, successor });
    }

    fn reclaim_stands(&mut self, shard: ShardId, tried: &ShardRow, stands: ShardRow) {
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        if stands.owner == tried.owner && stands.epoch == tried.epoch {
            let epoch = stands.epoch;
            (hold.row, hold.phase) = (stands, Phase::Serving);
            self.took(Transition::Reclaimed);
            self.out.push(Output::Serve { shard, epoch });
        } else if stands.owner == tried.owner && stands.epoch < tried.epoch {
            hold.row = stands;
            self.send_claim(shard, true);
        } else {
            // The release came after all, or its successor has gone on from there.
            let successor = stands.owner.unwrap_or_default();
            self.took(Transition::ReleaseReadBack);
            self.released(shard, successor);
        }
    }

    /// Publishes a snapshot whose frames are acknowledged, and drops spans that are not needed.
    fn publish(&mut self, shard: ShardId) {
        let nonce = self.session.nonce();
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        let lane = &self.lanes[usize::from(hold.lane)];
        // Durable is not enough: a row that became durable after the seal does not count.
        let acknowledged = self.acknowledged[usize::from(hold.lane)];
        let counts = if kept(Rule::SnapshotWhenAcknowledged) { acknowledged } else { lane.durable() };
        let frame = hold.frame_of(counts);
        let newer = |new: &SnapshotPointer| hold.row.snapshot.is_none_or(|old| old.seq < new.seq);
        let ready = |new: &SnapshotPointer| new.seq <= frame || !kept(Rule::SnapshotWhenDurable);
        if !hold.snapshot.as_ref().is_some_and(ready) {
            return;
        }
        let Some(snapshot) = hold.snapshot.take().filter(newer) else { return };
        let projected = self.projected.get(&shard).copied().unwrap_or(0);
        let needed = needed_spans(&hold.row.spans, &hold.ends, &hold.marks, lane.next(), snapshot.seq, projected);
        let row = claim::publish(&hold.row, nonce, Some(snapshot), needed);
        self.try_row(shard, row);
    }

    fn publication_stands(&mut self, shard: ShardId, tried: &ShardRow, stands: ShardRow, unknown: bool) {
        let me = self.id();
        let Some(hold) = self.holds.get_mut(&shard) else { return };
        if unknown {
            self.out.push(Output::Took(Transition::PublicationUnknown));
        }
        if stands.owner != Some(me) || stands.epoch != hold.row.epoch {
            self.holds.remove(&shard);
            self.out.push(Output::Lost { shard });
            return;
        }
        if stands.nonce == tried.nonce {
            self.out.push(Output::Took(Transition::Published));
        }
        if stands.spans != hold.row.spans {
            self.out.push(Output::Took(Transition::SpanTrimmed));
        }
        let open = stands.spans.iter().find(|span| span.session == me && span.to.is_none());
        if let Some(from) = open.map(|span| span.from) {
            hold.forget_marks(from);
        }
        hold.row = stands;
    }
}
