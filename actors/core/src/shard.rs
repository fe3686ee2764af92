//! What a shard holds besides its jobs: its counter, tenants, pauses, and where its log stands. Pure; changed by events only.

use crate::ownership::loans::Loans;
use campanile_schema::{
    event::{Event, PauseScope, SkipReason},
    ids::{Digest, JobId, SLOTS},
    limits::CREATE_KEY_MS,
    stored::TenantRecord,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// State of a shard itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardState {
    /// Highest counter used in an id or a token.
    #[serde(rename = "c", default)]
    pub counter: u64,
    /// Seq of the last frame applied.
    #[serde(rename = "q", default)]
    pub seq: u64,
    /// Hybrid clock after the last event, microseconds.
    #[serde(rename = "h", default)]
    pub hlc: u64,
    /// Zone database in force for the cached next instants.
    #[serde(rename = "z", default)]
    pub tzdb: String,
    #[serde(rename = "t", default)]
    pub tenants: BTreeMap<String, TenantRecord>,
    /// Scope -> (paused, version).
    #[serde(rename = "p", default)]
    pub pauses: BTreeMap<PauseScope, (bool, u64)>,
    /// The newest pause of a scope: from when to when this shard held it. Missing where an earlier release wrote the change.
    #[serde(rename = "pt", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pause_times: BTreeMap<PauseScope, PauseTimes>,
    /// Creates that came with a caller's key, by the digest of tenant and key.
    #[serde(rename = "k", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub creates: BTreeMap<Digest, KeptCreate>,
    /// By tenant whose home this shard is: what its quota lends to sessions of a cluster.
    #[serde(rename = "l", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loans: BTreeMap<String, Loans>,
}

/// Milliseconds by the clock that instants are decided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseTimes {
    #[serde(rename = "f")]
    pub from_ms: i64,
    /// None: it lasts.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<i64>,
}

/// A pause of the tenant or the system that is over. Instants that were due in it do not fire, although they are decided later:
/// their jitter, or the moment that a decision takes, has put that off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseOver {
    /// Instants after this one were due in the pause,
    pub from_ms: i64,
    /// up to this one.
    pub to_ms: i64,
    pub reason: SkipReason,
}

/// What is kept of a create with a caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCreate {
    /// Of the request.
    #[serde(rename = "p")]
    pub print: Digest,
    /// What it made; None in the shard that only keeps the key.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(rename = "a")]
    pub at_ms: i64,
}

impl ShardState {
    /// Applies an event's part that belongs to the shard (ids used, tenants, pauses).
    pub fn apply(&mut self, event: &Event) {
        let used = match event {
            Event::JobCreated { job, .. } => job.0 / SLOTS,
            Event::RunCreated { run, .. } => run.0 / SLOTS,
            Event::AttemptStarted { token, .. } => token.0,
            Event::TenantSet { tenant } => {
                self.tenants.insert(tenant.tenant.clone(), tenant.clone());
                0
            }
            Event::TenantDeleted { tenant } => {
                self.tenants.remove(tenant);
                0
            }
            Event::PauseSet { scope, paused, version, at_ms } => {
                let entry = self.pauses.entry(scope.clone()).or_default();
                if *version > entry.1 {
                    let was_paused = std::mem::replace(entry, (*paused, *version)).0;
                    if was_paused != *paused {
                        self.time_pause(scope, *paused, *at_ms);
                    }
                }
                0
            }
            Event::Lent { tenant, changes } => {
                let loans = self.loans.entry(tenant.clone()).or_default();
                changes.iter().for_each(|change| loans.apply(*change));
                0
            }
            Event::CreateKept { key, print, job, at_ms } => {
                self.creates.insert(*key, KeptCreate { print: *print, job: *job, at_ms: *at_ms });
                0
            }
            Event::JobReplaced { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobDeleted { .. }
            | Event::JobQuarantined { .. }
            | Event::CursorMoved { .. }
            | Event::RunReleased { .. }
            | Event::RetryDue { .. }
            | Event::AttemptSuspected { .. }
            | Event::AttemptHeard { .. }
            | Event::AttemptStopping { .. }
            | Event::AttemptEnded { .. }
            | Event::RunConfirmed { .. }
            | Event::RunEnded { .. }
            | Event::RunReopened { .. }
            | Event::DeadLetterDiscarded { .. } => 0,
        };
        self.counter = self.counter.max(used);
    }

    fn time_pause(&mut self, scope: &PauseScope, paused: bool, at_ms: Option<i64>) {
        match (paused, at_ms) {
            (true, Some(from_ms)) => {
                self.pause_times.insert(scope.clone(), PauseTimes { from_ms, to_ms: None });
            }
            (false, Some(at_ms)) => {
                if let Some(times) = self.pause_times.get_mut(scope) {
                    times.to_ms = Some(at_ms);
                }
            }
            // Nobody knows from when to when.
            (_, None) => {
                self.pause_times.remove(scope);
            }
        }
    }

    /// What is known of a create's key, unless it is too old to count.
    pub fn create(&self, key: Digest, now_ms: i64) -> Option<KeptCreate> {
        self.creates.get(&key).copied().filter(|kept| now_ms - kept.at_ms < CREATE_KEY_MS)
    }

    /// Drops keys of creates that do not count any more.
    pub fn forget_creates(&mut self, now_ms: i64) {
        self.creates.retain(|_, kept| now_ms - kept.at_ms < CREATE_KEY_MS);
    }

    /// Hybrid time of a frame's first event; the frame takes `events` microseconds.
    pub fn next_hlc(&self, wall_us: i64) -> u64 {
        (wall_us.max(0) as u64).max(self.hlc + 1)
    }

    /// Version of a pause's next change, in the shard that gives them: above all before it, also when the clock was set back or the last
    /// change was made by a node whose clock is ahead.
    pub fn next_pause(&self, scope: &PauseScope, wall_us: i64) -> u64 {
        let held = self.pauses.get(scope).map_or(0, |pause| pause.1);
        (wall_us.max(0) as u64).max(held + 1)
    }

    /// The newest pauses of the system and of a tenant that are over.
    pub fn pauses_over(&self, tenant: &str) -> [Option<PauseOver>; 2] {
        if self.pause_times.is_empty() {
            return [None; 2];
        }
        let over = |scope: &PauseScope, reason| {
            let times = self.pause_times.get(scope)?;
            Some(PauseOver { from_ms: times.from_ms, to_ms: times.to_ms?, reason })
        };
        let of_tenant = PauseScope::Tenant(tenant.to_owned());
        [over(&PauseScope::System, SkipReason::SystemPaused), over(&of_tenant, SkipReason::TenantPaused)]
    }

    /// Why instants of a tenant do not fire.
    pub fn paused(&self, tenant: &str) -> Option<SkipReason> {
        if self.pauses.is_empty() {
            return None;
        }
        if self.pauses.get(&PauseScope::System).is_some_and(|p| p.0) {
            return Some(SkipReason::SystemPaused);
        }
        let scope = PauseScope::Tenant(tenant.to_owned());
        self.pauses.get(&scope).is_some_and(|p| p.0).then_some(SkipReason::TenantPaused)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::frame::{decode, encode};

    #[test]
    fn the_times_of_a_pause_are_kept_until_the_next_one() {
        let scope = PauseScope::Tenant("acme".to_owned());
        let mut shard = ShardState::default();
        let mut set = |paused, version, at_ms| {
            shard.apply(&Event::PauseSet { scope: scope.clone(), paused, version, at_ms });
            let shard: ShardState = decode("shard", &encode(&shard)).unwrap();
            shard.pauses_over("acme")[1].map(|over| (over.from_ms, over.to_ms))
        };
        assert_eq!(set(true, 1, Some(100)), None, "it lasts");
        assert_eq!(set(true, 2, Some(150)), None, "it began before");
        assert_eq!(set(false, 3, Some(200)), Some((100, 200)));
        assert_eq!(set(false, 4, Some(300)), Some((100, 200)), "it was over");
        assert_eq!(set(true, 2, Some(400)), Some((100, 200)), "an older change is none");
        assert_eq!(set(true, 5, None), None);
        assert_eq!(set(false, 6, Some(500)), None, "nobody knows when it began");
    }

    #[test]
    fn keys_of_creates_survive_their_bytes_and_expire() {
        let (key, print) = (Digest([1; 16]), Digest([2; 16]));
        let mut shard = ShardState::default();
        shard.apply(&Event::CreateKept { key, print, job: None, at_ms: 1_000 });
        assert_eq!(shard.create(key, 1_000).unwrap().job, None);
        shard.apply(&Event::CreateKept { key, print, job: Some(JobId(4_097)), at_ms: 1_000 });
        let read: ShardState = decode("shard state", &encode(&shard)).unwrap();
        assert_eq!(read, shard);
        let kept = KeptCreate { print, job: Some(JobId(4_097)), at_ms: 1_000 };
        assert_eq!(read.create(key, 1_000 + CREATE_KEY_MS - 1), Some(kept));
        assert_eq!(read.create(key, 1_000 + CREATE_KEY_MS), None);
        assert_eq!(read.create(Digest([3; 16]), 1_000), None);
        shard.forget_creates(1_000 + CREATE_KEY_MS);
        assert!(shard.creates.is_empty());
        let before: ShardState = decode("shard state", &encode(&ShardState::default())).unwrap();
        assert!(before.creates.is_empty(), "a state without keys is as it was before there were any");
    }
    /// Two nodes whose clocks differ by a second ask for changes half a second apart.
    #[test]
    fn of_two_changes_the_later_one_counts_whichever_clock_is_ahead() {
        let scope = PauseScope::Tenant("acme".to_owned());
        let (ahead_us, behind_us) = (10_000_000, 9_500_000);
        let set = |shard: &mut ShardState, paused, version| {
            shard.apply(&Event::PauseSet { scope: scope.clone(), paused, version, at_ms: None });
        };
        let (mut home, mut other) = (ShardState::default(), ShardState::default());
        let pause = home.next_pause(&scope, ahead_us);
        set(&mut home, true, pause);
        // The home shard moves to the other node.
        let resume = home.next_pause(&scope, behind_us);
        set(&mut home, false, resume);
        assert!(resume > pause && home.paused("acme").is_none());
        // The two come to another shard in the wrong order.
        set(&mut other, false, resume);
        set(&mut other, true, pause);
        assert_eq!(other, home);
        assert_eq!(home.next_pause(&scope, 20_000_000), 20_000_000, "as near to the time as it can be");
        assert_eq!(ShardState::default().next_pause(&scope, -5), 1, "above nothing at all");
    }
}
