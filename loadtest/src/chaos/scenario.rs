//! What goes wrong in each scenario, and when. All of it is read here; `one.rs` carries it out under load.

/// Something that is done to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// kill -9.
    Kill(usize),
    /// Start, and wait until it listens.
    Start(usize),
    /// As an operator stops it; waits until it is gone.
    Stop(usize),
    /// SIGSTOP.
    Freeze(usize),
    /// SIGCONT.
    Thaw(usize),
    /// Nothing, milliseconds.
    Wait(u64),
    /// To the store's script.
    Store(&'static str),
    KillExecutor,
}

use Act::{Freeze, Kill, KillExecutor, Start, Stop, Store, Thaw, Wait};

/// See the module's text. Nodes are counted from 0.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub what: &'static str,
    pub acts: &'static [Act],
    /// In the short form too.
    pub short: bool,
    /// From when take-over is measured: the first act of this kind.
    pub takes_over: bool,
}

/// In the order in which they run.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "kill-owner",
        what: "kill -9 of a node; it comes back later",
        acts: &[Kill(1), Wait(9_000), Start(1), Wait(4_000)],
        short: true,
        takes_over: true,
    },
    Scenario {
        name: "kill-all",
        what: "kill -9 of all nodes at once, and a start of all",
        acts: &[Kill(0), Kill(1), Kill(2), Start(0), Start(1), Start(2), Wait(5_000)],
        short: true,
        takes_over: false,
    },
    Scenario {
        name: "rolling-restart",
        what: "each node is stopped in order and started again",
        acts: &[Stop(0), Start(0), Wait(2_000), Stop(1), Start(1), Wait(2_000), Stop(2), Start(2), Wait(2_000)],
        short: true,
        takes_over: false,
    },
    Scenario {
        name: "two-die",
        what: "two nodes die 2 s apart; one comes back",
        acts: &[Kill(1), Wait(2_000), Kill(2), Wait(9_000), Start(1), Wait(4_000)],
        short: false,
        takes_over: true,
    },
    Scenario {
        name: "freeze-owner",
        what: "SIGSTOP of a node past its lease, then SIGCONT",
        acts: &[Freeze(1), Wait(8_000), Thaw(1), Wait(5_000)],
        short: true,
        takes_over: true,
    },
    Scenario {
        name: "kill-executor",
        what: "kill -9 of an executor, then of a node",
        acts: &[KillExecutor, Wait(3_000), Kill(0), Wait(9_000), Start(0), Wait(5_000)],
        short: false,
        takes_over: false,
    },
    Scenario {
        name: "store-stall",
        what: "the store stalls for 2 s: nobody is fenced",
        acts: &[Store("pause 1"), Wait(2_000), Store("resume 1"), Wait(5_000)],
        short: true,
        takes_over: false,
    },
    Scenario {
        name: "store-stall-long",
        what: "the store stalls for 15 s: all nodes stop at their deadline, and go on by themselves",
        acts: &[Store("pause 1"), Wait(15_000), Store("resume 1"), Wait(8_000)],
        short: false,
        takes_over: false,
    },
    Scenario {
        name: "store-killed",
        what: "kill -9 of the store, and a start of it",
        acts: &[Store("kill 1"), Wait(1_000), Store("start 1"), Wait(12_000)],
        short: true,
        takes_over: false,
    },
    Scenario {
        name: "kill-in-take-over",
        what: "a node dies while it takes over what another left",
        acts: &[Kill(1), Wait(3_200), Kill(2), Wait(9_000), Start(1), Start(2), Wait(5_000)],
        short: false,
        takes_over: true,
    },
];

impl Scenario {
    /// About how long it takes, milliseconds.
    pub fn lasts_ms(&self) -> i64 {
        let act = |act: &Act| match act {
            Act::Wait(ms) => *ms as i64,
            Act::Start(_) => 2_500,
            Act::Stop(_) => 8_000,
            Act::Store(_) => 1_000,
            Act::Kill(_) | Act::Freeze(_) | Act::Thaw(_) | Act::KillExecutor => 100,
        };
        self.acts.iter().map(act).sum()
    }

    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|scenario| scenario.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_frozen_node_thaws() {
        for scenario in ALL {
            assert_eq!(ALL.iter().filter(|other| other.name == scenario.name).count(), 1, "{}", scenario.name);
            let count = |wanted: fn(&Act) -> bool| scenario.acts.iter().filter(|act| wanted(act)).count();
            assert_eq!(
                count(|act| matches!(act, Act::Freeze(_))),
                count(|act| matches!(act, Act::Thaw(_))),
                "{}",
                scenario.name
            );
        }
        assert!(ALL.iter().filter(|scenario| scenario.short).count() >= 6);
    }
}
