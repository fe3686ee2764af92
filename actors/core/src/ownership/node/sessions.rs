//! The own session and those of others: heartbeats, watching, fencing, sealing.

use super::{EndedSession, Output, Ownership, Purpose, Transition};
use crate::ownership::{
    rows::SessionRow,
    rules::{Rule, kept},
    seal::{Seal, Sealing},
    session::Beat,
    store::{Statement, StoreAnswer, Ticket},
    watch::WatchVerdict,
};
use campanile_schema::ids::SessionId;
use std::collections::btree_map::Entry;

impl Ownership {
    pub(super) fn sessions_tick(&mut self, now_ms: u64) {
        if now_ms >= self.next_beat_ms && !self.beating {
            if self.session.is_stillborn(now_ms) {
                self.took(Transition::Stillborn);
                self.session.give_up();
                return;
            }
            self.next_beat_ms = now_ms + self.settings.beat_ms;
            self.beating = true;
            let durable = self.lanes.iter().map(|lane| lane.durable()).collect();
            let beat = self.session.beat(now_ms, durable);
            self.ask(Purpose::Beat, beat);
        }
        if now_ms >= self.next_watch_ms {
            self.next_watch_ms = now_ms + self.settings.watch_ms;
            for session in self.watched() {
                self.look_at(session);
            }
        }
    }

    pub(super) fn beat_answered(&mut self, now_ms: u64, answer: &StoreAnswer, read: bool) {
        if read && *answer == StoreAnswer::Unknown {
            self.ask(Purpose::BeatRead, self.session.read());
            return;
        }
        match self.session.answered(answer) {
            Beat::Unknown => {
                self.ask(Purpose::BeatRead, self.session.read());
                return;
            }
            Beat::Counted => self.took(Transition::HeartbeatCounted),
            Beat::ReadBack => self.took(Transition::HeartbeatReadBack),
            Beat::Missed => {
                // Nothing was gained: at once again.
                self.next_beat_ms = now_ms;
                self.took(Transition::HeartbeatMissed);
            }
            Beat::Over => {
                let by_itself = self.session.is_ending();
                self.took(if by_itself { Transition::Ended } else { Transition::FoundFenced });
            }
        }
        self.beating = false;
    }

    /// Sessions to watch: hinted ones, and owners that are no live member's current session.
    fn watched(&self) -> Vec<SessionId> {
        let strange = self.owners().filter(|owner| !self.hints.members.contains(owner) && kept(Rule::Reconcile));
        let predecessor = self.settings.predecessor;
        let mut watched: Vec<_> =
            self.hints.watch.union(&self.hints.borrowers).copied().chain(strange).chain(predecessor).collect();
        watched.sort_unstable();
        watched.dedup();
        watched.retain(|session| *session != self.id() && !self.ended.contains_key(session));
        watched
    }

    /// Other sessions that own a shard.
    pub(super) fn owners(&self) -> impl Iterator<Item = SessionId> {
        let me = self.id();
        self.rows.iter().filter_map(|(_, row)| row.owner).filter(move |owner| *owner != me)
    }

    /// Reads a session's row, unless that is going on.
    pub(super) fn look_at(&mut self, session: SessionId) {
        let sealing = self.seals.contains_key(&session);
        if !sealing && !self.ended.contains_key(&session) && self.watch_reads.insert(session) {
            let had_row = self.hints.borrowers.contains(&session) || self.owners().any(|owner| owner == session);
            self.ask(Purpose::Watch { session, had_row }, Statement::ReadSession { session });
        }
    }

    pub(super) fn watch_answered(&mut self, now_ms: u64, session: SessionId, had_row: bool, answer: &StoreAnswer) {
        self.watch_reads.remove(&session);
        let StoreAnswer::Session(found) = answer else {
            if let Some(watch) = self.watches.get_mut(&session) {
                watch.failed();
            }
            return;
        };
        match found {
            Some(row) => self.session_stands(now_ms, session, row),
            // It was removed when nothing named it, and a claim of it that came late named it again. It cannot act.
            // A session of which nothing was known may not have inserted its row yet.
            None if (had_row || !kept(Rule::AbsenceAfterPresence)) && kept(Rule::SessionWithoutRowIsOver) => {
                self.took(Transition::WithoutRow);
                self.is_ended(now_ms, session, Vec::new(), None);
            }
            None => {}
        }
    }

    /// This row of another session stands in the store.
    fn session_stands(&mut self, now_ms: u64, session: SessionId, row: &SessionRow) {
        let own_lease_ms = self.settings.lease_ms;
        match self.watches.entry(session).or_default().replied(now_ms, row, own_lease_ms) {
            WatchVerdict::Wait => {}
            WatchVerdict::Silent => {
                let nonce = self.session.nonce();
                let fence = self.watches.get(&session).and_then(|watch| watch.fence(session, nonce));
                if let Some(fence) = fence {
                    self.watch_reads.insert(session);
                    let gone = self.settings.predecessor == Some(session);
                    self.took(if gone { Transition::PredecessorFenced } else { Transition::FenceSent });
                    self.ask(Purpose::Fence(session), fence);
                }
            }
            WatchVerdict::Over => self.found_over(now_ms, session, row),
        }
    }

    pub(super) fn fence_answered(&mut self, now_ms: u64, session: SessionId, answer: &StoreAnswer) {
        self.watch_reads.remove(&session);
        match answer {
            StoreAnswer::Done => {
                self.took(Transition::Fenced);
                self.look_at(session);
            }
            StoreAnswer::Session(Some(row)) => {
                self.took(Transition::FenceLost);
                self.session_stands(now_ms, session, row);
            }
            // The next read tells.
            StoreAnswer::Session(None)
            | StoreAnswer::Unknown
            | StoreAnswer::Shard(_)
            | StoreAnswer::Shards(_)
            | StoreAnswer::Lane(_) => {}
        }
    }

    /// A session is over; where its lanes end may have to be found out.
    fn found_over(&mut self, now_ms: u64, session: SessionId, row: &SessionRow) {
        self.watches.remove(&session);
        if let Some(sealed) = &row.sealed {
            self.took(Transition::SealFound);
            self.is_ended(now_ms, session, sealed.clone(), Some(row.version));
        } else if let Entry::Vacant(seal) = self.seals.entry(session) {
            seal.insert(Seal::new(session, row.clone()));
            self.seal_on(session);
            if !kept(Rule::ClaimAfterSeal) {
                self.next_reconcile_ms = now_ms;
            }
        }
    }

    fn seal_on(&mut self, session: SessionId) {
        let nonce = self.session.nonce();
        let Some(seal) = self.seals.get_mut(&session) else { return };
        if seal.rewriting().is_some() {
            self.out.push(Output::Took(Transition::WindowRewritten));
        }
        let statement = seal.statement(nonce);
        self.ask(Purpose::Seal(session), statement);
    }

    pub(super) fn seal_answered(&mut self, now_ms: u64, session: SessionId, answer: &StoreAnswer) {
        let Some(seal) = self.seals.get_mut(&session) else { return };
        match seal.answered(answer) {
            Sealing::On => self.seal_on(session),
            Sealing::Sealed { positions, version, ours } => {
                self.took(if ours { Transition::Sealed } else { Transition::SealFound });
                self.is_ended(now_ms, session, positions, Some(version));
            }
            Sealing::Gone => self.is_ended(now_ms, session, Vec::new(), None),
        }
    }

    fn is_ended(&mut self, now_ms: u64, session: SessionId, sealed: Vec<u64>, version: Option<u64>) {
        self.seals.remove(&session);
        self.watches.remove(&session);
        let known = Ticket(self.tickets);
        self.ended.insert(session, EndedSession { sealed, version, known, known_ms: now_ms });
        // Its shards wait.
        self.next_reconcile_ms = now_ms;
    }

    /// Where a lane of a session that is over ends.
    pub(super) fn end_of(&self, session: SessionId, lane: u16) -> Option<u64> {
        let ended = self.ended.get(&session)?;
        Some(ended.sealed.get(usize::from(lane)).copied().unwrap_or(0))
    }
}
