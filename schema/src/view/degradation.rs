//! How a node spares itself while it cannot keep up.

use crate::job::upper_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// What a node does without, while its read model is behind. Each level includes those before it.
    DegradationLevel {
        Normal = "NORMAL" = 0,
        /// Backfills and replays start no runs.
        BackfillsStop = "BACKFILLS_STOP" = 1,
        /// Runs of jobs with a priority below 100 do not start.
        LowPriorityWaits = "LOW_PRIORITY_WAITS" = 2,
        /// The read model is written in larger pieces: lists and history lag by more.
        ReadModelStretched = "READ_MODEL_STRETCHED" = 3,
        /// Triggers of callers are refused with `503_DISPATCHER_OVERLOADED`. Schedules fire.
        TriggersRefused = "TRIGGERS_REFUSED" = 4
    } default Normal);

/// Nothing is to be told.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
pub(super) fn is_normal(level: &DegradationLevel) -> bool {
    *level == DegradationLevel::Normal
}
