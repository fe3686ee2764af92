//! What the fire ledger says of a stretch of a job's schedule.

use super::{Outcome, SkipReason};
use crate::{ids::RunId, record::code, text::Text};
use serde::{Deserialize, Serialize};

/// Instants with one outcome. `first..=last` in ms; `count` instants, all with this outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerEntry {
    #[serde(rename = "f")]
    pub first_ms: i64,
    #[serde(rename = "l")]
    pub last_ms: i64,
    #[serde(rename = "n")]
    pub count: u64,
    #[serde(rename = "o", with = "code")]
    pub outcome: Outcome,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none", with = "opt_reason")]
    pub reason: Option<SkipReason>,
    /// The run that carries coalesced instants.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

pub(crate) mod opt_reason {
    use super::SkipReason;
    use serde::{Deserialize, Deserializer, Serializer, de};
    #[allow(clippy::ref_option)] // serde's signature
    pub fn serialize<S: Serializer>(v: &Option<SkipReason>, s: S) -> Result<S::Ok, S::Error> {
        match v {
            Some(r) => s.serialize_u8(r.code()),
            None => s.serialize_none(),
        }
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<SkipReason>, D::Error> {
        Option::<u8>::deserialize(d)?
            .map(|n| SkipReason::from_code(n).ok_or_else(|| de::Error::custom(format!("unknown reason {n}"))))
            .transpose()
    }
}

/// The interval `(from, to]` of a job's schedule that an event closes, and the versions in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    #[serde(rename = "f")]
    pub from_ms: i64,
    #[serde(rename = "t")]
    pub to_ms: i64,
    /// The job's version.
    #[serde(rename = "v")]
    pub version: u64,
    /// The tzdb version, e.g. `2026b`.
    #[serde(rename = "z")]
    pub tzdb: Text,
}
