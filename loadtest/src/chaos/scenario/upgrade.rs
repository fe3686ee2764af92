//! Upgrades from a real earlier release, by its own program (`--old-bin`), and back.

use super::{
    super::act::Act::{ApplySchema, BackOrRefused, EarlierReads, Runs, Start, Stop, Wait},
    OF_RESTARTS, Scenario, USUAL,
};
use crate::test_cluster::Program::{Earlier, Present};

pub const ALL: &[Scenario] = &[Scenario {
    name: "release-upgrade",
    what: "nodes of an earlier release are stopped in order and started as this one, go back, and go forward again",
    acts: &[
        ApplySchema,
        Stop(0),
        Runs(0, Present),
        Start(0),
        Wait(3_000),
        EarlierReads,
        Stop(1),
        Runs(1, Present),
        Start(1),
        // Longer than a raise takes: the third node is of the earlier release, so nothing may be raised.
        Wait(15_000),
        EarlierReads,
        Stop(0),
        Runs(0, Earlier),
        Start(0),
        Wait(3_000),
        Stop(1),
        Runs(1, Earlier),
        Start(1),
        Wait(3_000),
        EarlierReads,
        Stop(2),
        Runs(2, Present),
        Start(2),
        Wait(3_000),
        Stop(0),
        Runs(0, Present),
        Start(0),
        Wait(3_000),
        EarlierReads,
        Stop(1),
        Runs(1, Present),
        Start(1),
        BackOrRefused(2),
        Wait(3_000),
    ],
    latest: OF_RESTARTS,
    ..USUAL
}];
