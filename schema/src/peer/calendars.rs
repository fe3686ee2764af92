//! Calendars on their way between shards.

use crate::{
    stored::{CalendarRecord, CalendarRules},
    text::Text,
};
use serde::{Deserialize, Serialize};

/// A call to a shard about calendars. Each is answered with the records that it is about. Format 2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CalendarCall {
    /// To the home shard of the tenant: the next version.
    #[serde(rename = "s")]
    Set(Box<CalendarChange>),
    /// To every other shard: versions that the home shard made. Those that the shard holds change nothing.
    #[serde(rename = "h")]
    Hold(Vec<CalendarRecord>),
    /// To the home shard: the calendars of a tenant, or one of them, also deleted ones.
    #[serde(rename = "g")]
    Get {
        #[serde(rename = "t")]
        tenant: Text,
        #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
        name: Option<Text>,
    },
}

/// What the next version of a calendar is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarChange {
    #[serde(rename = "t")]
    pub tenant: Text,
    #[serde(rename = "n")]
    pub name: Text,
    /// None: it is deleted.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<CalendarRules>,
    /// From when on it decides, ms. None: as soon as it may.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    /// The version that the caller has seen: with another one the change is refused.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}
