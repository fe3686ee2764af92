//! A tenant's quota lends permits to sessions, as levels: how many a session has, not how many more. The quota lives in a shard;
//! what it decides are events of that shard, so its next owner knows every loan.
//!
//! A level changes by one request of its session at a time, made at the version that the session knows: repeated, doubled and
//! late requests change nothing, and the level at the next version is the answer.

use super::{
    rows::ShardRow,
    rules::{Rule, kept},
};
use campanile_schema::{
    ids::{Epoch, SessionId, ShardId},
    loan::{Level, LoanEvent, Request, Wish},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All loans of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loans {
    /// Kept with the tenant.
    #[serde(skip)]
    pub limit: u32,
    #[serde(rename = "l", default)]
    levels: BTreeMap<SessionId, Level>,
    /// By shard: who counted its runs last.
    #[serde(rename = "c", default)]
    counted: BTreeMap<ShardId, (Epoch, SessionId)>,
}

impl Loans {
    pub fn new(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }

    pub fn apply(&mut self, event: LoanEvent) {
        match event {
            LoanEvent::Set { session, level } => {
                self.levels.insert(session, level);
            }
            LoanEvent::Counted { shard, epoch, session } => {
                self.counted.insert(shard, (epoch, session));
            }
            LoanEvent::Freed { session } => {
                self.levels.remove(&session);
            }
        }
    }

    pub fn level(&self, session: SessionId) -> Level {
        self.levels.get(&session).copied().unwrap_or_default()
    }

    pub fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.levels.keys().copied()
    }

    /// Shards whose open runs these sessions, their owners, have not counted yet: each is to be told that there is something to count.
    pub fn uncounted<'a>(
        &self,
        rows: &'a [(ShardId, ShardRow)],
    ) -> impl Iterator<Item = (ShardId, SessionId)> + use<'a, '_> {
        rows.iter().filter_map(|(shard, row)| {
            let owner = row.owner?;
            let counted = self.counted.get(shard).is_some_and(|(epoch, by)| *epoch >= row.epoch && *by == owner);
            (!counted).then_some((*shard, owner))
        })
    }

    /// Permits lent in all; above the limit while re-adopted runs are counted twice.
    pub fn lent(&self) -> u32 {
        self.levels.values().map(|level| level.permits).sum()
    }

    /// Decides a request. No events: it was decided before, and the level that stands is the answer.
    pub fn decide(&self, request: &Request) -> Vec<LoanEvent> {
        let Request { session, version, ref wish } = *request;
        let level = self.level(session);
        if level.version != version {
            return Vec::new();
        }
        let newest = |shard: &ShardId| self.counted.get(shard).map_or(Epoch(0), |(epoch, _)| *epoch);
        let mut events = Vec::new();
        let permits = match wish {
            Wish::Hold { permits } => {
                let free = self.limit.saturating_sub(self.lent());
                (*permits).min(level.permits + free)
            }
            Wish::Adopted { shards } => {
                let unknown = shards.iter().filter(|(shard, epoch, _)| newest(shard) < *epoch);
                unknown.fold(level.permits, |permits, &(shard, epoch, runs)| {
                    events.push(LoanEvent::Counted { shard, epoch, session });
                    permits + runs
                })
            }
            Wish::HandedOver { shard, epoch, runs } if newest(shard) > *epoch => level.permits.saturating_sub(*runs),
            Wish::HandedOver { .. } => level.permits,
        };
        events.push(LoanEvent::Set { session, level: Level { version: version + 1, permits } });
        events
    }

    /// Frees the permits of sessions that are over. `rows`: every shard's row, read after all of `over` were known to be over.
    /// Such a session keeps its permits until every shard has an owner other than it that has counted the shard's open runs.
    pub fn free(&self, over: &[SessionId], rows: &[(ShardId, ShardRow)]) -> Vec<LoanEvent> {
        let counted = |session: SessionId, shard: &ShardId, row: &ShardRow| {
            let by_taker = |(epoch, by): &(Epoch, SessionId)| *epoch >= row.epoch && *by != session;
            row.owner != Some(session) && self.counted.get(shard).is_some_and(by_taker)
        };
        let all = |session: &SessionId| {
            !kept(Rule::FreeAfterReports) || rows.iter().all(|(shard, row)| counted(*session, shard, row))
        };
        let lent = over.iter().filter(|session| self.levels.contains_key(session));
        lent.filter(|session| all(session)).map(|session| LoanEvent::Freed { session: *session }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId(1);
    const TWO: SessionId = SessionId(2);
    const X: ShardId = ShardId(5);

    fn adopted(shard: ShardId, epoch: Epoch, runs: u32) -> Wish {
        Wish::Adopted { shards: vec![(shard, epoch, runs)] }
    }

    fn ask(loans: &mut Loans, session: SessionId, wish: Wish) -> u32 {
        let request = Request { session, version: loans.level(session).version, wish };
        for event in loans.decide(&request) {
            loans.apply(event);
        }
        assert_eq!(loans.decide(&request), [], "a doubled request changes nothing");
        loans.level(session).permits
    }

    #[test]
    fn permits_are_lent_up_to_the_limit() {
        let mut loans = Loans::new(5);
        assert_eq!(ask(&mut loans, ONE, Wish::Hold { permits: 4 }), 4);
        assert_eq!(ask(&mut loans, TWO, Wish::Hold { permits: 4 }), 1);
        assert_eq!(ask(&mut loans, ONE, Wish::Hold { permits: 2 }), 2);
        assert_eq!(ask(&mut loans, TWO, Wish::Hold { permits: 4 }), 3);
    }

    #[test]
    fn runs_that_are_adopted_are_counted_above_the_limit_once() {
        let mut loans = Loans::new(5);
        ask(&mut loans, ONE, Wish::Hold { permits: 5 });
        assert_eq!(ask(&mut loans, TWO, adopted(X, Epoch(2), 3)), 3);
        assert_eq!(ask(&mut loans, TWO, adopted(X, Epoch(2), 3)), 3);
        assert_eq!(ask(&mut loans, TWO, Wish::Hold { permits: 4 }), 3, "a debt stops admission");
        let gone = |epoch, owner| ShardRow { epoch: Epoch(epoch), owner: Some(owner), ..ShardRow::default() };
        assert_eq!(loans.free(&[ONE], &[(X, gone(1, ONE))]), [], "not claimed");
        assert_eq!(loans.free(&[ONE], &[(X, gone(3, TWO))]), [], "its newest taker has not counted");
        assert_eq!(loans.free(&[ONE], &[(X, gone(2, TWO))]), [LoanEvent::Freed { session: ONE }]);
    }

    #[test]
    fn permits_of_a_shard_that_was_handed_over_move_when_its_next_owner_has_counted() {
        let mut loans = Loans::new(5);
        ask(&mut loans, ONE, Wish::Hold { permits: 5 });
        ask(&mut loans, ONE, adopted(X, Epoch(1), 0));
        let over = Wish::HandedOver { shard: X, epoch: Epoch(1), runs: 2 };
        assert_eq!(ask(&mut loans, ONE, over.clone()), 5);
        ask(&mut loans, TWO, adopted(X, Epoch(2), 2));
        assert_eq!(ask(&mut loans, ONE, over), 3);
        assert_eq!(loans.lent(), 5);
    }
}
