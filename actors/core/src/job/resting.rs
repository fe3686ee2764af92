//! A job without open runs, reduced to what a shard must know to start. A start reads millions of them, and most of a
//! definition is needed only when the job fires.

use super::state::HotState;
use campanile_schema::{
    frame::{self, DecodeError},
    ids::BackfillId,
};
use serde::{Deserialize, de::IgnoredAny};
use std::borrow::Cow;

/// What of a passive job is needed to find it and to wake it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting<'a> {
    pub tenant: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// As [`Job::wake_at`](super::Job::wake_at) says, at any time.
    pub wake_ms: Option<i64>,
    /// Its newest backfill, which has ended.
    pub backfill: Option<BackfillId>,
}

/// The fields of a [`StoredJob`](campanile_schema::stored::StoredJob) that are read.
#[derive(Deserialize)]
struct Heading<'a> {
    #[serde(rename = "n", borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "t", borrow, default = "default_tenant")]
    tenant: Cow<'a, str>,
    #[serde(rename = "sj", default)]
    jitter_sec: u32,
    /// Whether it names a calendar.
    #[serde(rename = "cl", default)]
    calendar: Option<IgnoredAny>,
}

fn default_tenant() -> Cow<'static, str> {
    "default".into()
}

impl<'a> Resting<'a> {
    /// From the bytes that [`Job::decode`](super::Job::decode) takes. None: the job has open runs, or its wake depends on more than this; read it whole.
    pub fn decode(def: &'a [u8], hot: &[u8]) -> Result<Option<Self>, DecodeError> {
        let hot: HotState = frame::decode("hot state", hot)?;
        let heading: Heading<'a> = frame::decode("definition", def)?;
        let backfills = hot.backfill.as_ref().is_some_and(|backfill| backfill.is_open());
        // The versions of a calendar may be newer than the next instant that is cached.
        let is_timed = hot.catch_up_ms.is_some() || heading.jitter_sec > 0 || heading.calendar.is_some();
        if !hot.runs.is_empty() || backfills || is_timed {
            return Ok(None);
        }
        let Heading { name, tenant, .. } = heading;
        let backfill = hot.backfill.as_ref().map(|backfill| backfill.id);
        Ok(Some(Self { tenant, name, backfill, wake_ms: hot.next_due_ms.filter(|_| hot.fires()) }))
    }
}
