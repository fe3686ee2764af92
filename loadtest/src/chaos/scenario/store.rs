//! A store that stalls, dies, is slow, or does not answer.

use super::{
    super::act::Act::{Heal, LoseLwts, Slow, Store, Wait},
    super::act::{
        Act::Cut,
        At::{Node, Store as Server},
    },
    Scenario, USUAL, defect,
};

pub const ALL: &[Scenario] = &[
    Scenario {
        name: "store-stall",
        what: "the store stalls for 3 s: nobody is fenced",
        acts: &[Store("pause 1"), Wait(3_000), Store("resume 1"), Wait(5_000)],
        short: true,
        keeps_sessions: true,
        defect: defect::GIVES_UP,
        ..USUAL
    },
    Scenario {
        name: "store-stall-long",
        what: "the store stalls for 30 s: all nodes stop at their deadline, and go on by themselves",
        acts: &[Store("pause 1"), Wait(30_000), Store("resume 1"), Wait(10_000)],
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
    Scenario {
        name: "store-killed",
        what: "kill -9 of the store, and a start of it",
        acts: &[Store("kill 1"), Wait(1_000), Store("start 1"), Wait(12_000)],
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
    Scenario {
        name: "store-slow",
        what: "every request to the store takes 500 ms longer, for 15 s",
        acts: &[Slow(500), Wait(15_000), Slow(0), Wait(5_000)],
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
    Scenario {
        name: "lwt-unknown",
        what: "for 15 s each fifth LWT is applied and its answer lost",
        acts: &[LoseLwts(20), Wait(15_000), LoseLwts(0), Wait(5_000)],
        short: true,
        defect: defect::TRUSTS_UNKNOWN,
        ..USUAL
    },
    Scenario {
        name: "store3-one-killed",
        what: "three servers: kill -9 of one, and a start of it",
        acts: &[Store("kill 2"), Wait(8_000), Store("start 2"), Wait(8_000)],
        stores: 3,
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
    Scenario {
        name: "store3-two-paused",
        what: "three servers: two stand still for 8 s, so that LWTs time out and nobody knows",
        acts: &[Store("pause 2"), Store("pause 3"), Wait(8_000), Store("resume 2"), Store("resume 3"), Wait(10_000)],
        stores: 3,
        // None takes over meanwhile, for nobody can write: a node that acts on without its lease would not show.
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
    Scenario {
        name: "store3-stall",
        what: "three servers: all of them stall for 3 s: nobody is fenced",
        acts: &[
            Store("pause 1"),
            Store("pause 2"),
            Store("pause 3"),
            Wait(3_000),
            Store("resume 1"),
            Store("resume 2"),
            Store("resume 3"),
            Wait(5_000),
        ],
        stores: 3,
        keeps_sessions: true,
        defect: defect::GIVES_UP,
        ..USUAL
    },
    Scenario {
        name: "store3-lwt-unknown",
        what: "three servers: for 15 s each fifth LWT is applied and its answer lost, whichever server was asked",
        acts: &[LoseLwts(20), Wait(15_000), LoseLwts(0), Wait(5_000)],
        stores: 3,
        defect: defect::TRUSTS_UNKNOWN,
        ..USUAL
    },
    Scenario {
        name: "store3-cut-replicas",
        what: "three servers: a node reaches only one of them for 8 s",
        acts: &[Cut(Node(1), Server(2)), Cut(Node(1), Server(3)), Wait(8_000), Heal, Wait(6_000)],
        stores: 3,
        // The node keeps its lease through the server that it reaches: one that acts on without it would not show.
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
];
