//! On which days of a calendar the instants of a job count.

use super::upper_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// What the days of a calendar do with the instants of a job.
    CalendarRule {
        /// An instant counts on a day of the calendar, and on no other.
        OnlyOn = "ONLY_ON" = 0,
        /// An instant counts on every day that is not in the calendar.
        NotOn = "NOT_ON" = 1
    } default OnlyOn);

/// A calendar of the tenant that removes instants of the trigger: these make no run, and the ledger says `SKIPPED(CALENDAR)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobCalendar {
    /// Of a calendar of the job's tenant (`calendar.set`).
    pub name: String,
    #[serde(default)]
    pub rule: CalendarRule,
    /// The zone by whose clock a day begins and ends, an IANA name. Default: the zone of the trigger, or UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}
