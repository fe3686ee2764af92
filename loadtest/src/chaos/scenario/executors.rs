//! Executors that die, end themselves in the middle of a body, or stand still.

use super::{
    super::act::Act::{ExecutorEnds, FreezeExecutor, Kill, KillExecutor, Start, ThawExecutor, Wait},
    Scenario, USUAL, defect,
};
use crate::process::node::When;

pub const ALL: &[Scenario] = &[
    Scenario {
        name: "kill-executor",
        what: "kill -9 of an executor, then of a node",
        acts: &[KillExecutor, Wait(3_000), Kill(0), Wait(9_000), Start(0), Wait(5_000)],
        ..USUAL
    },
    Scenario {
        name: "freeze-executor",
        // Not much longer: its late results must meet attempts that run elsewhere.
        what: "SIGSTOP of an executor for 11.7 s, longer than its lease, then SIGCONT",
        acts: &[FreezeExecutor, Wait(11_700), ThawExecutor, Wait(5_000)],
        defect: defect::ACCEPTS_STALE,
        ..USUAL
    },
    Scenario {
        name: "executor-dies-before",
        what: "an executor ends itself in a body, before the effect",
        acts: &[ExecutorEnds(When::BeforeEffect, 40), Wait(13_000)],
        defect: defect::REUSES_TOKEN,
        ..USUAL
    },
    Scenario {
        name: "executor-dies-after",
        what: "an executor ends itself in a body, after the effect and before its result is handed in",
        acts: &[ExecutorEnds(When::AfterEffect, 40), Wait(13_000)],
        defect: defect::REUSES_TOKEN,
        ..USUAL
    },
];
