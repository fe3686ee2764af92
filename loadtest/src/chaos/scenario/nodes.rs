//! Nodes that die, stop, stand still, come and go; wrong clocks, full disks.

use super::{
    super::act::Act::{
        Clock, DieAt, FillDisk, FreeDisk, Freeze, Kill, Readable, Refused, Release, Start, StartBoth, Stop, StopBoth,
        Thaw, Unreadable, Wait,
    },
    OF_RESTARTS, Scenario, USUAL, defect,
};

/// What this release is told of formats of the next one, by the store and by a node.
const NEWER: &str = "written in event format 3 / wire format 2; this release knows 2 / 1";

pub const ALL: &[Scenario] = &[
    Scenario {
        name: "kill-owner",
        what: "kill -9 of a node; it comes back later",
        acts: &[Kill(1), Wait(9_000), Start(1), Wait(4_000)],
        short: true,
        ..USUAL
    },
    Scenario {
        name: "kill-all",
        what: "kill -9 of all nodes at once, and a start of all",
        acts: &[Kill(0), Kill(1), Kill(2), Start(0), Start(1), Start(2), Wait(5_000)],
        defect: defect::ACKNOWLEDGES_EARLY,
        ..USUAL
    },
    Scenario {
        name: "rolling-restart",
        what: "each node is stopped in order and started again",
        acts: &[Stop(0), Start(0), Wait(2_000), Stop(1), Start(1), Wait(2_000), Stop(2), Start(2), Wait(2_000)],
        short: true,
        latest: OF_RESTARTS,
        ..USUAL
    },
    Scenario {
        name: "rolling-upgrade",
        what: "each node is stopped in order and started as a later release with formats of its own; the way back is refused in words",
        acts: &[
            Stop(0),
            Release(0, 1),
            Start(0),
            Wait(2_000),
            Readable,
            Stop(1),
            Release(1, 1),
            Start(1),
            // Longer than all would have to know them.
            Wait(15_000),
            Readable,
            Stop(2),
            Release(2, 1),
            Start(2),
            Unreadable(NEWER),
            Stop(2),
            Release(2, 0),
            Refused(2, NEWER),
            Release(2, 1),
            Start(2),
            Wait(2_000),
        ],
        latest: OF_RESTARTS,
        ..USUAL
    },
    Scenario {
        name: "two-die",
        what: "two nodes die 2 s apart; one comes back",
        acts: &[Kill(1), Wait(2_000), Kill(2), Wait(9_000), Start(1), Wait(4_000)],
        ..USUAL
    },
    Scenario {
        name: "freeze-owner",
        what: "SIGSTOP of a node past its lease, then SIGCONT",
        acts: &[Freeze(1), Wait(8_000), Thaw(1), Wait(5_000)],
        short: true,
        defect: defect::ACTS_ON,
        ..USUAL
    },
    Scenario {
        name: "kill-in-take-over",
        what: "a node dies while it takes over what another left",
        acts: &[Kill(1), Wait(3_200), Kill(2), Wait(9_000), Start(1), Start(2), Wait(5_000)],
        ..USUAL
    },
    Scenario {
        name: "kill-after-append",
        what: "a node dies when frames are durable and nothing that follows from them is done",
        acts: &[DieAt(1, "after_append", 60), Wait(9_000), Start(1), Wait(4_000)],
        defect: defect::ACKNOWLEDGES_EARLY,
        ..USUAL
    },
    Scenario {
        name: "kill-after-dispatch",
        what: "a node dies when assignments have left for an executor, before it hears of them",
        acts: &[DieAt(1, "after_dispatch", 40), Wait(9_000), Start(1), Wait(4_000)],
        defect: defect::ACKNOWLEDGES_EARLY,
        ..USUAL
    },
    Scenario {
        name: "two-join",
        what: "two nodes join three at once, and stay",
        acts: &[StartBoth(3, 4), Wait(10_000)],
        ..USUAL
    },
    Scenario {
        name: "two-leave",
        what: "two of five nodes are stopped at once",
        acts: &[StopBoth(3, 4), Wait(8_000)],
        nodes: 5,
        ..USUAL
    },
    Scenario {
        name: "clock-ahead",
        what: "the wall clock of a node is an hour ahead for 10 s",
        acts: &[Clock(1, 3_600_000), Wait(10_000), Clock(1, 0), Wait(5_000)],
        defect: defect::FIRES_EARLY,
        ..USUAL
    },
    Scenario {
        name: "clock-behind",
        what: "the wall clock of a node is 90 s behind for 10 s",
        acts: &[Clock(1, -90_000), Wait(10_000), Clock(1, 0), Wait(5_000)],
        defect: defect::FIRES_EARLY,
        ..USUAL
    },
    Scenario {
        name: "disk-full",
        what: "a node's disk is full: it goes on; killed, it is refused a start in words, and comes back when there is room",
        acts: &[
            FillDisk(1),
            Wait(8_000),
            Kill(1),
            Refused(1, "No space left"),
            Wait(3_000),
            FreeDisk(1),
            Start(1),
            Wait(5_000),
        ],
        ..USUAL
    },
];
