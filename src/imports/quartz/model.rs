//! Jobs and triggers as Quartz has them.

use crate::{Place, text};
use campanile_schema::time::Timestamp;
use std::collections::BTreeMap;

/// A group and a name; with the scheduler, of which a dump may have several.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub scheduler: String,
    pub group: String,
    pub name: String,
}

impl Key {
    pub fn shown(&self) -> String {
        text::shown(&format!("{}.{}", self.group, self.name))
    }
}

#[derive(Clone, Debug, Default)]
pub struct QuartzJob {
    pub key: Key,
    pub class: String,
    pub description: String,
    pub data: BTreeMap<String, String>,
    /// Why its data is not here.
    pub data_lost: Option<String>,
    /// `@DisallowConcurrentExecution`; None: the file does not say.
    pub one_at_a_time: Option<bool>,
    pub recovers: bool,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub struct QuartzTrigger {
    pub key: Key,
    pub job: Key,
    pub kind: Kind,
    pub misfire: Misfire,
    pub data: BTreeMap<String, String>,
    pub data_lost: Option<String>,
    pub priority: Option<i64>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// Name of a calendar whose times are left out.
    pub calendar: Option<String>,
    pub state: State,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Cron {
        expr: String,
        zone: Option<String>,
    },
    Simple {
        /// Fires after the first; -1: without end.
        repeats: i64,
        interval_ms: i64,
    },
    Interval {
        count: i64,
        unit: String,
    },
    /// It cannot be expressed; the reason.
    Other(String),
}

/// Of an instant that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfire {
    Smart,
    /// All of them fire.
    Ignore,
    /// One fires at once.
    Fire,
    Skip,
    /// It is not known.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Active,
    Paused,
    /// It never fires again.
    Complete,
    Error,
}

impl Misfire {
    /// The names of the XML schema.
    pub fn of_name(name: &str) -> Self {
        match name.strip_prefix("MISFIRE_INSTRUCTION_").unwrap_or(name) {
            "" | "SMART_POLICY" => Self::Smart,
            "IGNORE_MISFIRE_POLICY" => Self::Ignore,
            "FIRE_ONCE_NOW"
            | "FIRE_NOW"
            | "RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT"
            | "RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT" => Self::Fire,
            "DO_NOTHING" | "RESCHEDULE_NEXT_WITH_REMAINING_COUNT" | "RESCHEDULE_NEXT_WITH_EXISTING_COUNT" => Self::Skip,
            _ => Self::Unknown,
        }
    }

    /// The numbers of the tables.
    pub fn of_number(number: i64, is_simple: bool) -> Self {
        match (number, is_simple) {
            (-1, _) => Self::Ignore,
            (0, _) => Self::Smart,
            (1, _) | (2 | 3, true) => Self::Fire,
            (2, false) | (4 | 5, true) => Self::Skip,
            _ => Self::Unknown,
        }
    }
}

/// All of a file.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub jobs: Vec<QuartzJob>,
    pub triggers: Vec<QuartzTrigger>,
}
