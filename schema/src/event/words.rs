//! Words of the fire ledger and of attempts that are told to stop. Stored forms have their numbers.

use crate::job::upper_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// Outcome of due instants in the fire ledger.
    Outcome { Fired = "FIRED" = 0,
        /// More than 1 s after the instant.
        FiredLate = "FIRED_LATE" = 1,
        /// Carried by the run named in the entry.
        Coalesced = "COALESCED" = 2, Skipped = "SKIPPED" = 3, Missed = "MISSED" = 4, DstSkipped = "DST_SKIPPED" = 5 } default Fired);

upper_enum!(/// Why instants were skipped or missed.
    SkipReason { Paused = "PAUSED" = 0, TenantPaused = "TENANT_PAUSED" = 1, SystemPaused = "SYSTEM_PAUSED" = 2,
        /// FORBID and a run was active.
        RunActive = "RUN_ACTIVE" = 3,
        /// QUEUE_ONE and one was waiting already.
        OneQueued = "ONE_QUEUED" = 4, QueueFull = "QUEUE_FULL" = 5,
        /// Older than the misfire threshold under SKIP.
        Misfire = "MISFIRE" = 6,
        /// Beyond `maxCatchUp`.
        CatchUpCap = "CATCH_UP_CAP" = 7,
        Quarantined = "QUARANTINED" = 8,
        /// Outside of the windows of the job.
        Window = "WINDOW" = 9,
        /// Due when the job was deleted.
        Deleted = "DELETED" = 10,
        /// Still waiting to be caught up when the schedule was edited.
        Edited = "EDITED" = 11,
        /// Between a backup and its restore: where the backup was made they may have fired.
        Restored = "RESTORED" = 12,
        /// In a blackout of the job.
        Blackout = "BLACKOUT" = 13,
        /// On a day that the calendar of the job excludes.
        Calendar = "CALENDAR" = 14,
        /// No version of the calendar of the job says anything of the day, and the schedule was edited or the job deleted meanwhile.
        NoCalendar = "NO_CALENDAR" = 15 } default Paused);

upper_enum!(/// Why a running attempt was told to stop.
    StopReason { Cancel = "CANCEL" = 0, Timeout = "TIMEOUT" = 1, Replace = "REPLACE" = 2 } default Cancel);
