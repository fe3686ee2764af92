//! Whether a session has served, once, all shards that it is to have. Until then its node is not ready, and operators
//! who stop one node after the other wait for it. A node that cannot get shards, because it is cordoned, halted or
//! drained, does not wait for them.

use campanile_core::placement::Standing;
use campanile_schema::ids::ShardId;
use parking_lot::RwLock;

/// See the module's text. Once at rest a session stays ready: shards that move later are served by somebody.
#[derive(Debug)]
pub struct Settling {
    state: RwLock<State>,
}

#[derive(Debug)]
enum State {
    /// The rows were not read yet, or the members do not know of the session.
    Unknown,
    OnTheirWay(Vec<ShardId>),
    AtRest,
}

impl Settling {
    /// For a node alone: what it starts with is all.
    pub fn at_rest() -> Self {
        Self { state: RwLock::new(State::AtRest) }
    }

    pub fn begun() -> Self {
        Self { state: RwLock::new(State::Unknown) }
    }

    /// What placement gives to the session's node, as it stands.
    pub fn learn(&self, standing: Standing, given: impl Iterator<Item = ShardId>, serves: impl Fn(ShardId) -> bool) {
        let mut state = self.state.write();
        if matches!(*state, State::AtRest) {
            return;
        }
        let wanted: Vec<ShardId> = match standing {
            Standing::Open => given.collect(),
            // They say so themselves; nothing that they do not have comes to them.
            Standing::Cordoned | Standing::Draining | Standing::Halted => Vec::new(),
        };
        // A node that starts with a wrong clock begins when it is right.
        let rests = standing != Standing::Halted && wanted.iter().all(|shard| serves(*shard));
        *state = if rests { State::AtRest } else { State::OnTheirWay(wanted) };
    }

    /// Why the node is not ready.
    pub fn reason(&self, serves: impl Fn(ShardId) -> bool) -> Option<String> {
        match &*self.state.read() {
            State::AtRest => None,
            State::Unknown => Some("the session has begun: what it is to serve is not known yet".to_owned()),
            State::OnTheirWay(wanted) => {
                let served = wanted.iter().filter(|shard| serves(**shard)).count();
                (served < wanted.len())
                    .then(|| format!("shards are on their way: {served} of {} are served here", wanted.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_ready_when_it_first_serves_all_that_it_is_given() {
        let settling = Settling::begun();
        let given = |count: u16| (0..count).map(ShardId);
        assert!(settling.reason(|_| true).unwrap().contains("not known yet"));
        settling.learn(Standing::Open, given(86), |shard| shard.0 < 12);
        let reason = settling.reason(|shard| shard.0 < 12).unwrap();
        assert_eq!(reason, "shards are on their way: 12 of 86 are served here");
        assert_eq!(settling.reason(|_| true), None, "at once, and not when placement is looked at again");
        settling.learn(Standing::Open, given(40), |shard| shard.0 < 40);
        settling.learn(Standing::Open, given(90), |_| false);
        assert_eq!(settling.reason(|_| false), None, "later moves are nothing to wait for");
    }

    #[test]
    fn who_cannot_have_any_does_not_wait_for_them() {
        for standing in [Standing::Cordoned, Standing::Draining] {
            let settling = Settling::begun();
            settling.learn(standing, (0..9).map(ShardId), |_| false);
            assert_eq!(settling.reason(|_| false), None, "{standing:?}");
        }
        // That its clock is wrong is another reason; when it is right, shards come.
        let settling = Settling::begun();
        settling.learn(Standing::Halted, (0..9).map(ShardId), |_| false);
        assert_eq!(settling.reason(|_| false), None);
        settling.learn(Standing::Open, (0..9).map(ShardId), |_| false);
        assert!(settling.reason(|_| false).is_some());
    }
}
