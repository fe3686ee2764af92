//! The state of a shard besides its jobs: its counter, tenants, pauses, and the position of its log. Pure; only events
//! change it.

use crate::{
    bulk::{self, Bulks},
    calendar::book::{self, StoredCalendars},
    ownership::loans::Loans,
};
use campanile_schema::{
    event::{Event, PauseScope, SkipReason},
    ids::{Digest, JobId, SLOTS},
    limits::CREATE_KEY_MS,
    stored::{TenantRecord, backfill::BackfillChange, bulk::BulkChange},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pauses of one scope that are remembered, so that what was due in them and waits for its turn since does not fire.
const PAUSES_KEPT: usize = 16;

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
    /// The newest pauses of a scope, oldest first: from when to when this shard held each. Those that an earlier release wrote are missing.
    #[serde(rename = "pt", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pause_times: BTreeMap<PauseScope, Vec<PauseTimes>>,
    /// Creates that came with a caller's key, by the digest of tenant and key.
    #[serde(rename = "k", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub creates: BTreeMap<Digest, KeptCreate>,
    /// By tenant whose home this shard is: what its quota lends to sessions of a cluster.
    #[serde(rename = "l", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loans: BTreeMap<String, Loans>,
    /// Bulk operations whose home this shard is: open ones, and the newest that ended.
    #[serde(rename = "b", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bulks: Bulks,
    /// Versions of the calendars of all tenants.
    #[serde(rename = "cl", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calendars: StoredCalendars,
    /// Event format of the snapshot that this is the header of: who does not know it must not read the rest. Left out: the first one.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub format: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u32) -> bool {
    *n == 0
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

/// A pause of the tenant or the system. What was due in it does not fire, and what was due before it or after it does, whenever
/// that is decided: jitter, an outage or the moment that a decision takes may put it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Instants after this one are due in the pause; `i64::MIN`: nobody knows when it began.
    pub from_ms: i64,
    /// The last instant that is; None: it lasts.
    pub to_ms: Option<i64>,
    pub reason: SkipReason,
}

impl Pause {
    pub fn holds(&self, due_ms: i64) -> bool {
        self.from_ms < due_ms && self.to_ms.is_none_or(|to_ms| due_ms <= to_ms)
    }
}

/// The reason of the first pause that lasts.
pub fn lasting(pauses: &[Pause]) -> Option<SkipReason> {
    pauses.iter().find(|pause| pause.to_ms.is_none()).map(|pause| pause.reason)
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
            Event::BackfillChanged { change: BackfillChange::Created { backfill }, .. } => backfill.id.0 / SLOTS,
            Event::BulkChanged { change } => {
                bulk::apply(&mut self.bulks, change);
                match change {
                    BulkChange::Created { bulk } => bulk.id.0 / SLOTS,
                    BulkChange::Begun { .. }
                    | BulkChange::Done { .. }
                    | BulkChange::Aborted { .. }
                    | BulkChange::Deleting { .. }
                    | BulkChange::Undone { .. }
                    | BulkChange::Forgotten { .. } => 0,
                }
            }
            Event::CalendarSet { tenant, name, calendar } => {
                book::keep(&mut self.calendars, tenant, name, calendar);
                0
            }
            Event::Outbox { .. }
            | Event::HookFailed { .. }
            | Event::Audited { .. }
            | Event::JobReplaced { .. }
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
            | Event::RunPrioritized { .. }
            | Event::RunEnded { .. }
            | Event::RunReopened { .. }
            | Event::DeadLetterDiscarded { .. }
            | Event::GraphChanged { .. }
            | Event::BackfillChanged { .. } => 0,
        };
        self.counter = self.counter.max(used);
    }

    fn time_pause(&mut self, scope: &PauseScope, paused: bool, at_ms: Option<i64>) {
        match (paused, at_ms) {
            (true, Some(from_ms)) => {
                let times = self.pause_times.entry(scope.clone()).or_default();
                if times.len() >= PAUSES_KEPT {
                    times.remove(0);
                }
                times.push(PauseTimes { from_ms, to_ms: None });
            }
            (false, Some(at_ms)) => {
                if let Some(times) = self.pause_times.get_mut(scope).and_then(|times| times.last_mut()) {
                    times.to_ms.get_or_insert(at_ms);
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

    /// Pauses of the system, then of the tenant, that last or were not over at `undecided_ms`: what is due after that may be due in them.
    pub fn pauses_since(&self, tenant: &str, undecided_ms: i64) -> Vec<Pause> {
        let mut found = Vec::new();
        if self.pauses.is_empty() {
            return found;
        }
        let mut add = |scope: &PauseScope, reason| {
            let Some((lasts, _)) = self.pauses.get(scope) else { return };
            let times = self.pause_times.get(scope).map_or(&[][..], Vec::as_slice);
            let known = times.iter().map(|times| Pause { from_ms: times.from_ms, to_ms: times.to_ms, reason });
            found.extend(known.filter(|pause| pause.to_ms.is_none_or(|to_ms| to_ms > undecided_ms)));
            if *lasts && times.last().is_none_or(|newest| newest.to_ms.is_some()) {
                found.push(Pause { from_ms: i64::MIN, to_ms: None, reason });
            }
        };
        add(&PauseScope::System, SkipReason::SystemPaused);
        add(&PauseScope::Tenant(tenant.to_owned()), SkipReason::TenantPaused);
        found
    }

    /// Why nothing of a tenant starts.
    pub fn paused(&self, tenant: &str) -> Option<SkipReason> {
        lasting(&self.pauses_since(tenant, i64::MAX))
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
            let pauses = shard.pauses_since("acme", 0);
            assert_eq!(shard.paused("acme").is_some(), pauses.iter().any(|pause| pause.to_ms.is_none()));
            assert_eq!(shard.pauses_since("globex", 0), []);
            pauses.iter().map(|pause| (pause.from_ms, pause.to_ms)).collect::<Vec<_>>()
        };
        assert_eq!(set(true, 1, Some(100)), [(100, None)]);
        assert_eq!(set(true, 2, Some(150)), [(100, None)], "it began before");
        assert_eq!(set(false, 3, Some(200)), [(100, Some(200))]);
        assert_eq!(set(false, 4, Some(300)), [(100, Some(200))], "it was over");
        assert_eq!(set(true, 2, Some(400)), [(100, Some(200))], "an older change is none");
        assert_eq!(set(true, 5, Some(500)), [(100, Some(200)), (500, None)]);
        for n in 6..6 + 2 * PAUSES_KEPT as u64 {
            set(n % 2 == 1, n, Some(100 * n as i64));
        }
        let kept = set(false, 90, Some(9_000));
        assert_eq!((kept.len(), kept.last()), (PAUSES_KEPT, Some(&(3_700, Some(9_000)))), "only the newest");
        assert_eq!(set(true, 91, None), [(i64::MIN, None)], "all that is not yet decided is due in it");
        assert_eq!(set(false, 92, Some(9_900)), [], "nobody knows when it began");
        let mut shard = ShardState::default();
        for (paused, version) in [(true, 1), (false, 2)] {
            shard.apply(&Event::PauseSet {
                scope: PauseScope::System,
                paused,
                version,
                at_ms: Some(100 * version as i64),
            });
        }
        assert_eq!(shard.pauses_since("acme", 199).len(), 1);
        assert_eq!(shard.pauses_since("acme", 200), [], "all that was due in it is decided");
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
        assert!(resume > pause);
        assert!(home.paused("acme").is_none());
        // The two come to another shard in the wrong order.
        set(&mut other, false, resume);
        set(&mut other, true, pause);
        assert_eq!(other, home);
        assert_eq!(home.next_pause(&scope, 20_000_000), 20_000_000, "as near to the time as it can be");
        assert_eq!(ShardState::default().next_pause(&scope, -5), 1, "above nothing at all");
    }
}
