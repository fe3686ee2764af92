//! Brings each change of a pause to every shard. The home shard of a pause gives each change a version. The node that
//! serves the home shard makes sure that all other shards get the change: after the change itself, and again whenever
//! it has loaded the home shard, because nobody knows how far the earlier owner had come. A change that one shard has
//! therefore reaches all shards in the end, whichever nodes die. ADR 0025 has the reasons.

pub(crate) mod carry;

use crate::tenants::home_of;
pub use campanile_schema::peer::pauses::Pause;
use campanile_schema::{event::PauseScope, ids::ShardId};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// Whoever made a change asks all shards itself; only after this long they are asked again.
pub(crate) const CALLERS_TURN: Duration = Duration::from_secs(2);
/// Pauses in one message to a shard: with names as long as they may be it has some 50 KiB.
const PAUSES_A_MESSAGE: usize = 256;

/// A pause that some shards may not hold.
struct Owed {
    paused: bool,
    version: u64,
    home: ShardId,
    lacking: BTreeSet<ShardId>,
    not_before: Instant,
}

/// What a node knows of pauses.
#[derive(Default)]
pub struct Pauses {
    /// The newest that any shard here held.
    newest: Mutex<BTreeMap<PauseScope, u64>>,
    owed: Mutex<BTreeMap<PauseScope, Owed>>,
}

/// The shard that gives the versions of a pause.
pub(crate) fn pause_home(scope: &PauseScope, shards: u16) -> ShardId {
    match scope {
        PauseScope::System => ShardId(0),
        PauseScope::Tenant(tenant) => home_of(tenant, shards),
    }
}

impl Pauses {
    /// Whether no shard here has held a newer one. A shard that comes with an older one must not undo it for the whole node.
    pub(crate) fn is_newest(&self, scope: &PauseScope, version: u64) -> bool {
        let mut newest = self.newest.lock();
        let known = newest.entry(scope.clone()).or_default();
        *known = version.max(*known);
        *known == version
    }

    /// A home shard that is served here holds it, durably, and other shards are to.
    pub(crate) fn owe(&self, pause: Pause, shards: u16, after: Duration) {
        let Pause { scope, paused, version } = pause;
        let home = pause_home(&scope, shards);
        let lacking = (0..shards).map(ShardId).filter(|shard| *shard != home).collect();
        let not_before = Instant::now() + after;
        self.owed.lock().insert(scope, Owed { paused, version, home, lacking, not_before });
    }

    /// A shard is not served here any more: whoever takes it begins again.
    pub(crate) fn leave(&self, home: ShardId) {
        self.owed.lock().retain(|_, owed| owed.home != home);
    }

    /// What is to be sent now, by shard.
    fn due(&self, now: Instant) -> BTreeMap<ShardId, Vec<Pause>> {
        let mut due: BTreeMap<ShardId, Vec<Pause>> = BTreeMap::new();
        for (scope, owed) in self.owed.lock().iter().filter(|(_, owed)| owed.not_before <= now) {
            for shard in &owed.lacking {
                let some = due.entry(*shard).or_default();
                if some.len() < PAUSES_A_MESSAGE {
                    some.push(Pause { scope: scope.clone(), paused: owed.paused, version: owed.version });
                }
            }
        }
        due
    }

    /// A shard holds these, or newer ones.
    fn held(&self, shard: ShardId, pauses: &[Pause]) {
        let mut all = self.owed.lock();
        for pause in pauses {
            let Some(owed) = all.get_mut(&pause.scope).filter(|owed| owed.version == pause.version) else { continue };
            owed.lacking.remove(&shard);
            if owed.lacking.is_empty() {
                all.remove(&pause.scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{carry::ROUND, *};

    fn pause(tenant: &str, paused: bool, version: u64) -> Pause {
        Pause { scope: PauseScope::Tenant(tenant.to_owned()), paused, version }
    }

    #[test]
    fn a_pause_is_owed_until_every_shard_holds_it_or_a_newer_one_took_its_place() {
        let pauses = Pauses::default();
        let now = Instant::now();
        pauses.owe(pause("acme", true, 5), 4, Duration::ZERO);
        let due = pauses.due(now + ROUND);
        let home = pause_home(&pause("acme", true, 5).scope, 4);
        assert_eq!(due.len(), 3, "the home shard holds it");
        assert!(!due.contains_key(&home), "the home shard holds it");
        let (first, rest): (Vec<_>, Vec<_>) = due.into_iter().enumerate().partition(|(n, _)| *n == 0);
        let (_, (first, sent)) = &first[0];
        pauses.held(*first, sent);
        assert!(!pauses.due(now + ROUND).contains_key(first));
        // What was sent before the change says nothing of it.
        pauses.owe(pause("acme", false, 6), 4, Duration::ZERO);
        for (_, (shard, sent)) in rest {
            pauses.held(shard, &sent);
        }
        let due = pauses.due(now + ROUND);
        assert_eq!(due.len(), 3);
        for (shard, sent) in due {
            assert_eq!(sent, [pause("acme", false, 6)]);
            pauses.held(shard, &sent);
        }
        assert!(pauses.due(now + ROUND).is_empty());
        assert!(pauses.owed.lock().is_empty());
    }

    #[test]
    fn its_caller_asks_first_and_who_loses_the_home_shard_carries_it_no_more() {
        let pauses = Pauses::default();
        let now = Instant::now();
        pauses.owe(pause("acme", true, 5), 4, CALLERS_TURN);
        assert!(pauses.due(now).is_empty());
        assert_eq!(pauses.due(now + CALLERS_TURN + ROUND).len(), 3);
        pauses.leave(pause_home(&pause("acme", true, 5).scope, 4));
        assert!(pauses.due(now + CALLERS_TURN + ROUND).is_empty());
    }

    #[test]
    fn a_shard_that_comes_late_does_not_undo_a_newer_pause() {
        let (pauses, scope) = (Pauses::default(), PauseScope::System);
        assert!(pauses.is_newest(&scope, 5));
        assert!(pauses.is_newest(&scope, 7));
        assert!(!pauses.is_newest(&scope, 6));
        assert!(pauses.is_newest(&scope, 7));
    }
}
