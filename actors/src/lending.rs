//! The messages by which sessions of a cluster and the home shards of tenants keep a tenant's limits over all nodes:
//! how many jobs and runs a session has, how much of the limits it may use, and how much the others have.
//!
//! Permits to run are exact: they are lent as events of the home shard (`campanile_core::ownership::loans`). All other
//! numbers here are some hundred milliseconds old.

use campanile_schema::ids::SessionId;
pub use campanile_schema::peer::lending::{Counts, TenantReport, TenantShare};
use std::collections::BTreeMap;

/// A session says everything it knows of all tenants at least this often, ms.
pub const REPORT_MS: i64 = 1_000;
/// What a session said counts for so long, ms.
const REPORT_COUNTS_MS: i64 = 4 * REPORT_MS;

/// What a home shard has heard of its tenants. Soft: told again within a second when the shard moves.
#[derive(Debug, Default)]
pub struct SessionCounts {
    /// By tenant and session: what it said, and when (CLOCK_BOOTTIME ms).
    tenants: BTreeMap<String, BTreeMap<SessionId, (Counts, i64)>>,
}

impl SessionCounts {
    pub fn note(&mut self, tenant: &str, session: SessionId, counts: Counts, now_ms: i64) {
        self.tenants.entry(tenant.to_owned()).or_default().insert(session, (counts, now_ms));
    }

    /// Forgets what is too old.
    pub fn forget(&mut self, now_ms: i64) {
        self.tenants.retain(|_, sessions| {
            sessions.retain(|_, (_, at)| now_ms - *at <= REPORT_COUNTS_MS);
            !sessions.is_empty()
        });
    }

    pub fn tenants(&self) -> impl Iterator<Item = &String> {
        self.tenants.keys()
    }

    /// Of all sessions but one.
    pub fn total(&self, tenant: &str, but: Option<SessionId>) -> Counts {
        let sessions = self.tenants.get(tenant).into_iter().flatten();
        let others = sessions.filter(|(session, _)| Some(**session) != but);
        others.fold(Counts::default(), |sum, (_, (counts, _))| sum.plus(*counts))
    }

    /// How many of `limit` permits a session should use: as many as it wants if there are enough for all, else an equal part, and what
    /// others leave of theirs. What cannot be divided goes round: `turn` says whose turn it is.
    pub fn share(&self, tenant: &str, session: SessionId, limit: u32, turn: u64) -> u32 {
        let Some(sessions) = self.tenants.get(tenant) else { return limit };
        let mut wants: Vec<(SessionId, u64)> =
            sessions.iter().map(|(session, (counts, _))| (*session, counts.wanted)).filter(|want| want.1 > 0).collect();
        if wants.iter().map(|(_, want)| want).sum::<u64>() <= u64::from(limit) {
            return limit;
        }
        // In turn, so that the last permits are not always for the same ones; then from who wants least.
        let first = (turn % wants.len().max(1) as u64) as usize;
        wants.rotate_left(first);
        wants.sort_by_key(|(_, want)| *want);
        let (mut left, mut count) = (u64::from(limit), wants.len() as u64);
        for (of, want) in wants {
            let part = want.min(left.div_ceil(count));
            if of == session {
                return part as u32;
            }
            (left, count) = (left - part, count - 1);
        }
        0
    }

    /// A session's part of a rate: by what it has to run, of what all have.
    pub fn rate(&self, tenant: &str, session: SessionId, rate: f64) -> f64 {
        let weight = |counts: &Counts| 1.0 + counts.wanted as f64;
        let sessions = || self.tenants.get(tenant).into_iter().flatten();
        let all: f64 = sessions().map(|(_, (counts, _))| weight(counts)).sum();
        let own = sessions().find(|(of, _)| **of == session).map_or(1.0, |(_, (counts, _))| weight(counts));
        rate * own / all.max(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_counts(wants: &[u64]) -> SessionCounts {
        let mut known = SessionCounts::default();
        for (n, waiting) in wants.iter().enumerate() {
            known.note(
                "t",
                SessionId(n as u64),
                Counts { jobs: 2, waiting: *waiting, wanted: *waiting, ..Counts::default() },
                0,
            );
        }
        known
    }

    fn shares(wants: &[u64], limit: u32, turn: u64) -> Vec<u32> {
        (0..wants.len() as u64).map(|n| session_counts(wants).share("t", SessionId(n), limit, turn)).collect()
    }

    #[test]
    fn permits_are_divided_by_what_is_wanted_and_never_more_than_there_are() {
        assert_eq!(shares(&[3, 4, 0], 10, 0), [10, 10, 10], "enough for all");
        assert_eq!(shares(&[100, 2, 100], 12, 0), [5, 2, 5]);
        assert_eq!(shares(&[100, 100, 0], 4, 0), [2, 2, 0], "who wants nothing has no part");
        let mut had = [0; 3];
        for turn in 0..6 {
            let parts = shares(&[9, 9, 9], 1, turn);
            assert_eq!(parts.iter().sum::<u32>(), 1);
            (0..3).for_each(|n| had[n] += parts[n]);
        }
        assert_eq!(had, [2, 2, 2], "one permit goes round");
    }

    #[test]
    fn a_rate_is_divided_and_what_is_old_does_not_count() {
        let mut known = session_counts(&[9, 9, 19]);
        let parts: Vec<f64> = (0..3).map(|n| known.rate("t", SessionId(n), 80.0)).collect();
        assert_eq!(parts, [20.0, 20.0, 40.0]);
        let both = Counts { jobs: 4, waiting: 18, wanted: 18, ..Counts::default() };
        assert_eq!(known.total("t", Some(SessionId(2))), both);
        known.note("t", SessionId(0), Counts::default(), REPORT_COUNTS_MS);
        known.forget(REPORT_COUNTS_MS + 1);
        assert_eq!(known.rate("t", SessionId(0), 80.0), 80.0);
        assert_eq!(known.rate("another", SessionId(0), 80.0), 80.0);
    }
}
