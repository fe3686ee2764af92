//! What is known of a run while it goes on, and what the report is made of.

use super::{
    calls::Calls,
    create::Created,
    measure::Measure,
    watch::{Answers, Metrics},
};
use crate::{
    process::proc_stat::Usage,
    report::{Happened, Second},
};
use std::collections::BTreeMap;

/// What was used so far, of everything.
#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    pub at_us: i64,
    pub node: Option<Usage>,
    pub executors: Usage,
    pub harness: Usage,
    pub machine_us: Option<u64>,
    pub disk: Option<u64>,
    pub metrics: Metrics,
}

/// Everything that is known of a run.
pub(super) struct RunObservations {
    pub created: Created,
    pub measure: Measure,
    /// By second from the start; what executors told is filled in at the end.
    pub seconds: BTreeMap<i64, Second>,
    pub happened: Vec<Happened>,
    pub calls: Calls,
    pub up: Answers,
    pub at_start: Used,
    pub at_end: Used,
    /// Instants before this second were asked for.
    pub until_s: i64,
    pub drain_s: Option<f64>,
    pub runs_left: Option<u64>,
    pub ceiling: Option<f64>,
    /// Phases that began with a restart of the node, how it was ended, and its memory at the phase's end, MB.
    pub restarts: Vec<(String, &'static str, Option<f64>)>,
}
