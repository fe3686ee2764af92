//! Shards that move while much is asked of them.

use super::{
    super::act::Act::{Kill, Start, Stop, Wait},
    LoadShape, OF_A_HERD, Scenario, USUAL, defect,
};

pub const ALL: &[Scenario] = &[
    Scenario {
        name: "herd-in-take-over",
        what: "very many jobs are due at one moment, while a dead node's shards are taken over",
        acts: &[Kill(1), Wait(25_000), Start(1), Wait(4_000)],
        load_shape: Some(LoadShape::Herd),
        latest: OF_A_HERD,
        ..USUAL
    },
    Scenario {
        name: "pause-in-move",
        what: "pauses, resumes and deletes race the fires of their jobs, while two nodes are restarted in order",
        acts: &[Stop(0), Start(0), Wait(2_000), Stop(1), Start(1), Wait(4_000)],
        load_shape: Some(LoadShape::Racing),
        defect: defect::FORGETS_PAUSE,
        ..USUAL
    },
    Scenario {
        name: "hostile-in-move",
        what: "a tenant triggers and creates without restraint, while two nodes are restarted in order",
        acts: &[Stop(0), Start(0), Wait(2_000), Stop(1), Start(1), Wait(4_000)],
        load_shape: Some(LoadShape::Hostile),
        ..USUAL
    },
    Scenario {
        name: "limits-in-move",
        what: "tenants want more bodies at once and more runs a second than they may, while a node is restarted and another one is killed",
        acts: &[Stop(0), Start(0), Wait(2_000), Kill(1), Wait(9_000), Start(1), Wait(4_000)],
        load_shape: Some(LoadShape::Limited),
        defect: defect::LENDS_TOO_MUCH,
        ..USUAL
    },
];
