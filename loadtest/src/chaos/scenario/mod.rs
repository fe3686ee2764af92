//! The scenarios: what goes wrong in each, and when. They are data; `run_scenario.rs` carries them out under load. Nodes are
//! counted from 0.

mod executors;
mod load_shapes;
mod network;
mod nodes;
mod store;
mod upgrade;

use super::act::Act;

/// Load beside the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadShape {
    /// Many jobs, all due at one moment soon after the first act.
    Herd,
    /// Pauses, resumes and deletes of jobs that are due each second, all the time.
    Racing,
    /// A tenant that triggers and creates without restraint.
    Hostile,
    /// Tenants that always want more than they may: bodies at once, and runs a second.
    Limited,
}

/// Switched on in every node, to see the scenario turn red: a value of `CAMPANILE_FAULT`.
mod defect {
    /// A node acts although its lease has run out.
    pub const ACTS_ON: &str = "mutation:ignore_deadline";
    /// Frames count before the store has them.
    pub const ACKNOWLEDGES_EARLY: &str = "mutation:ack_before_sync";
    /// Whoever takes a shard misses the last frame of its journal.
    pub const FORGETS_TAIL: &str = "mutation:forget_tail";
    pub const FORGETS_PAUSE: &str = "mutation:forget_pause";
    pub const FIRES_EARLY: &str = "mutation:fire_early";
    pub const ACCEPTS_STALE: &str = "mutation:accept_stale";
    pub const REUSES_TOKEN: &str = "mutation:reuse_token";
    pub const FIRES_TWICE: &str = "mutation:double_fire";
    pub const FORGETS_OUTCOME: &str = "mutation:forget_outcome";
    /// A tenant gets one permit more than it may have, and every node lends as if it were alone.
    pub const LENDS_TOO_MUCH: &str = "mutation:quota_plus_one;mutation:limits_alone";
    /// A node whose lease has run out for a moment gives its session up.
    pub const GIVES_UP: &str = "mutation:leave_at_deadline";
    /// An LWT that was not answered is taken for applied.
    pub const TRUSTS_UNKNOWN: &str = "rule:ClaimReadBack;rule:HeartbeatReadBack;mutation:lost_ack";
}

/// Milliseconds: where nothing else runs (`--quiet-machine`), and where other work takes the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub quiet_ms: i64,
    pub busy_ms: i64,
}

impl Bound {
    pub fn on(self, quiet_machine: bool) -> i64 {
        if quiet_machine { self.quiet_ms } else { self.busy_ms }
    }
}

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub what: &'static str,
    pub acts: &'static [Act],
    /// In the short form too.
    pub short: bool,
    /// Up before the first act; further ones come by an act.
    pub nodes: usize,
    /// Servers of the store; three keep each row three times.
    pub stores: u16,
    pub load_shape: Option<LoadShape>,
    /// No node may lose its session.
    pub keeps_sessions: bool,
    /// A node that is gone must have been taken over from within this time, and a store that stood still used again: until then the
    /// act explains what is late or missed in the shards that it touched.
    pub recovers: Bound,
    /// No body may begin later than this after its instant where nothing that was done explains it, and after the end of what does.
    pub latest: Bound,
    /// See [`defect`].
    pub defect: &'static str,
}

const USUAL: Scenario = Scenario {
    name: "",
    what: "",
    acts: &[],
    short: false,
    nodes: 3,
    stores: 1,
    load_shape: None,
    keeps_sessions: false,
    recovers: Bound { quiet_ms: 8_000, busy_ms: 15_000 },
    latest: Bound { quiet_ms: 2_500, busy_ms: 10_000 },
    defect: defect::FORGETS_TAIL,
};

/// Lateness of restarts in order.
const OF_RESTARTS: Bound = Bound { quiet_ms: 1_000, busy_ms: 10_000 };
/// Of very many jobs that are due at one moment.
const OF_A_HERD: Bound = Bound { quiet_ms: 15_000, busy_ms: 60_000 };

impl Scenario {
    /// In the order in which they run: those with one server of the store first.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        let of = |stores: u16| {
            [nodes::ALL, store::ALL, network::ALL, executors::ALL, load_shapes::ALL]
                .into_iter()
                .flatten()
                .filter(move |scenario| scenario.stores == stores)
        };
        of(1).chain(of(3))
    }

    /// Scenarios that begin with the program of an earlier release. `make chaos` and `make proof` leave them out, because
    /// they have only the program of one commit. `make upgrade-from` runs them.
    pub fn with_earlier() -> impl Iterator<Item = &'static Self> {
        upgrade::ALL.iter()
    }

    /// All scenarios that `--only` can name.
    pub fn known() -> impl Iterator<Item = &'static Self> {
        Self::all().chain(Self::with_earlier())
    }

    pub fn find(name: &str) -> Option<&'static Self> {
        Self::known().find(|scenario| scenario.name == name)
    }

    /// About how long it takes, milliseconds.
    pub fn lasts_ms(&self) -> u64 {
        self.acts.iter().map(|act| act.lasts_ms()).sum()
    }

    /// All nodes begin with the program of an earlier release.
    pub fn needs_earlier(&self) -> bool {
        self.has(|act| matches!(act, Act::Runs(..)))
    }

    /// It needs what only namespaces give.
    pub fn needs_world(&self) -> bool {
        self.acts.iter().any(|act| act.needs_world())
    }

    pub fn has(&self, wanted: impl Fn(&Act) -> bool) -> bool {
        self.acts.iter().any(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::act::{At, NODES},
        *,
    };
    use crate::test_cluster::Program;

    fn count(scenario: &Scenario, wanted: fn(&Act) -> bool) -> usize {
        scenario.acts.iter().filter(|act| wanted(act)).count()
    }

    #[test]
    fn names_are_unique_and_every_scenario_ends_whole() {
        for scenario in Scenario::known() {
            let name = scenario.name;
            assert_eq!(Scenario::known().filter(|other| other.name == name).count(), 1, "{name}");
            let frozen = count(scenario, |act| matches!(act, Act::Freeze(_) | Act::FreezeExecutor));
            assert_eq!(frozen, count(scenario, |act| matches!(act, Act::Thaw(_) | Act::ThawExecutor)), "{name}");
            let cuts = scenario
                .acts
                .iter()
                .rposition(|act| matches!(act, Act::Cut(..) | Act::CutOff(..) | Act::CutOneWay(..) | Act::Lose(_)));
            let healed = scenario.acts.iter().rposition(|act| *act == Act::Heal);
            assert!(cuts <= healed, "{name} leaves the network cut");
            let last = |wanted: fn(&Act) -> bool| scenario.acts.iter().rfind(|act| wanted(act));
            let is_null = |act: Option<&Act>| {
                matches!(act, None | Some(Act::Clock(_, 0) | Act::Slow(0) | Act::LoseLwts(0) | Act::FreeDisk(_)))
            };
            assert!(is_null(last(|act| matches!(act, Act::Clock(..)))), "{name} leaves a clock wrong");
            assert!(is_null(last(|act| matches!(act, Act::Slow(_)))), "{name} leaves the store slow");
            assert!(is_null(last(|act| matches!(act, Act::LoseLwts(_)))), "{name} leaves answers lost");
            assert!(
                is_null(last(|act| matches!(act, Act::FillDisk(_) | Act::FreeDisk(_)))),
                "{name} leaves a full disk"
            );
            let later = |n: usize| {
                let of = |act: &&Act| matches!(act, Act::Release(of, _) if *of == n);
                scenario.acts.iter().rfind(of).is_some_and(|act| matches!(act, Act::Release(_, 1..)))
            };
            let releases: Vec<bool> = (0..scenario.nodes).map(later).collect();
            assert!(releases.iter().all(|later| *later == releases[0]), "{name} leaves nodes of two releases");
            let present = |n: usize| {
                let of = |act: &&Act| matches!(act, Act::Runs(of, _) | Act::BackOrRefused(of) if *of == n);
                !matches!(scenario.acts.iter().rfind(of), Some(Act::Runs(_, Program::Earlier)))
            };
            let upgraded = |n: usize| scenario.has(|act| matches!(act, Act::Runs(of, _) if *of == n));
            assert!(
                (0..scenario.nodes).all(|n| present(n) && (upgraded(n) || !scenario.needs_earlier())),
                "{name} leaves nodes of the earlier program"
            );
            assert!(scenario.nodes <= usize::from(NODES), "{name}");
            assert!([1, 3].contains(&scenario.stores), "{name}");
            let within = |bound: Bound| 0 < bound.quiet_ms && bound.quiet_ms <= bound.busy_ms;
            assert!(within(scenario.recovers), "{name}");
            assert!(within(scenario.latest), "{name}");
            assert!(!scenario.defect.is_empty(), "{name}");
            assert!(!scenario.what.is_empty(), "{name}");
        }
        assert!(Scenario::all().filter(|scenario| scenario.short).count() >= 6);
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        let mut numbers: Vec<u8> = At::all().map(At::number).collect();
        numbers.sort_unstable();
        let hosts = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), hosts);
    }
}
