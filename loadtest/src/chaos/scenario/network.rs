//! Cuts of the network, whole and half, and frames that get lost. The harness reaches every node all the time.

use super::{
    super::act::{
        Act::{Cut, CutOff, CutOneWay, Flap, Heal, Lose, Wait},
        At::{Executor, Node, Store},
    },
    Scenario, USUAL, defect,
};

pub const ALL: &[Scenario] = &[
    Scenario {
        name: "cut-store",
        what: "a node is cut from the store for 10 s, and from nobody else",
        acts: &[Cut(Node(1), Store(1)), Wait(10_000), Heal, Wait(6_000)],
        short: false,
        defect: defect::ACTS_ON,
        ..USUAL
    },
    Scenario {
        name: "cut-peers",
        what: "a node is cut from the other nodes for 12 s, and not from the store",
        acts: &[Cut(Node(1), Node(0)), Cut(Node(1), Node(2)), Wait(12_000), Heal, Wait(6_000)],
        short: false,
        defect: defect::FIRES_TWICE,
        ..USUAL
    },
    Scenario {
        name: "cut-executor",
        what: "a node is cut from one of two executors for 15 s, longer than its lease",
        acts: &[Cut(Node(1), Executor(0)), Wait(15_000), Heal, Wait(6_000)],
        defect: defect::REUSES_TOKEN,
        ..USUAL
    },
    Scenario {
        name: "cut-one-way",
        what: "the store's answers do not reach a node for 10 s; its requests arrive",
        acts: &[CutOneWay(Store(1), Node(1)), Wait(10_000), Heal, Wait(6_000)],
        defect: defect::ACTS_ON,
        ..USUAL
    },
    Scenario {
        name: "split",
        what: "a node and an executor on one side, the others and the store on the other, for 10 s",
        acts: &[CutOff(Node(2), &[Executor(1)]), CutOff(Executor(1), &[Node(2)]), Wait(10_000), Heal, Wait(6_000)],
        short: true,
        defect: defect::ACTS_ON,
        ..USUAL
    },
    Scenario {
        name: "split-majority-alone",
        what: "two nodes of three are cut from the store, the third node and each executor but one, for 10 s",
        acts: &[
            CutOff(Node(1), &[Node(2), Executor(1)]),
            CutOff(Node(2), &[Node(1), Executor(1)]),
            Wait(10_000),
            Heal,
            Wait(6_000),
        ],
        defect: defect::ACTS_ON,
        ..USUAL
    },
    Scenario {
        name: "flapping",
        what: "a node's link to the store is cut for 1.5 s, eight times in a row",
        acts: &[Flap(Node(1), Store(1), 8, 1_500), Heal, Wait(6_000)],
        defect: defect::FORGETS_TAIL,
        ..USUAL
    },
    Scenario {
        name: "loss",
        what: "each tenth frame of the whole network is lost for 15 s",
        acts: &[Lose(10), Wait(15_000), Heal, Wait(6_000)],
        defect: defect::FORGETS_OUTCOME,
        ..USUAL
    },
];
