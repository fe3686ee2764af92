//! Deadlines: until when a run has to end, as callers write them.

use crate::{
    job::{Action, JobSpec, upper_enum},
    stored::deadline::StoredDeadline,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// What `withinSec` counts from.
    DeadlineOf {
        /// The instant that the run stands for.
        Due = "DUE" = 0,
        /// The start of its first attempt.
        Start = "START" = 1,
    } default Due);

/// Until when a run has to end: either `by`, or `withinSec`. A run that has not ended then goes on, and hooks of `onDeadline` are started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deadline {
    /// A time of day, `HH:MM` or `HH:MM:SS`: the first one after the instant that the run stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Zone of `by`; UTC unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_sec: Option<u64>,
    /// What `withinSec` counts from; DUE unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<DeadlineOf>,
}

impl Deadline {
    /// So many seconds after the instant that the run stands for, or after its start.
    pub fn within(within_sec: u64, of: DeadlineOf) -> Self {
        Self { within_sec: Some(within_sec), of: Some(of), ..Self::default() }
    }

    /// A time of day in a zone.
    pub fn by(time: impl Into<String>, timezone: impl Into<String>) -> Self {
        Self { by: Some(time.into()), timezone: Some(timezone.into()), ..Self::default() }
    }

    /// In its stored form. The error says what is wrong, behind the name of its field (`.by: ...`). Whether there is such a zone is not looked at.
    pub fn stored(&self) -> Result<StoredDeadline, String> {
        match (&self.by, self.within_sec) {
            (Some(by), None) if self.of.is_none() => {
                let zone = self.timezone.as_deref().unwrap_or("UTC").into();
                Ok(StoredDeadline::By { second: second_of_day(by)?, zone })
            }
            (Some(_), None) => {
                Err(".of: it belongs to withinSec; leave it out, or give withinSec instead of by".into())
            }
            (None, Some(_)) if self.timezone.is_some() => {
                Err(".timezone: it belongs to by; leave it out, or give by instead of withinSec".into())
            }
            (None, Some(within_sec)) => Ok(match self.of.unwrap_or_default() {
                DeadlineOf::Due => StoredDeadline::Due { within_sec },
                DeadlineOf::Start => StoredDeadline::Start { within_sec },
            }),
            (Some(_), Some(_)) | (None, None) => Err(": give exactly one of by and withinSec".into()),
        }
    }
}

/// Of `HH:MM` or `HH:MM:SS`.
fn second_of_day(by: &str) -> Result<u32, String> {
    let wrong =
        || format!(".by: '{}' is not a time of day; write it as 04:00 or 04:00:30", crate::shape::shortened(by));
    let mut parts = by.split(':');
    let mut part = |most: u32| {
        let digits = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()));
        Some(digits?.parse::<u32>().ok().filter(|value| *value <= most))
    };
    let (hour, minute) = (part(23).flatten().ok_or_else(wrong)?, part(59).flatten().ok_or_else(wrong)?);
    let second = if by.len() > 5 { part(59).flatten().ok_or_else(wrong)? } else { 0 };
    if parts.next().is_some() { Err(wrong()) } else { Ok(hour * 3_600 + minute * 60 + second) }
}

impl JobSpec {
    /// Whether it has a deadline or a least duration, or a node of it has one, which event format 2 brought.
    pub fn has_timing(&self) -> bool {
        let of_node = match &self.action {
            Some(Action::Dag(graph)) => graph.nodes.iter().any(|node| node.deadline.is_some()),
            Some(Action::Handler { .. } | Action::Command { .. } | Action::Http { .. } | Action::Webhook { .. })
            | None => false,
        };
        self.deadline.is_some() || self.min_duration_sec.is_some() || of_node
    }
}

impl From<&StoredDeadline> for Deadline {
    fn from(stored: &StoredDeadline) -> Self {
        match stored {
            StoredDeadline::By { second, zone } => {
                let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
                let seconds = if second > 0 { format!(":{second:02}") } else { String::new() };
                Self::by(format!("{hour:02}:{minute:02}{seconds}"), zone.to_string())
            }
            StoredDeadline::Due { within_sec } => Self::within(*within_sec, DeadlineOf::Due),
            StoredDeadline::Start { within_sec } => Self::within(*within_sec, DeadlineOf::Start),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_deadline_is_read_back_with_its_defaults_filled_in() {
        for (given, read) in [
            (r#"{"by":"04:00"}"#, r#"{"by":"04:00","timezone":"UTC"}"#),
            (r#"{"by":"23:59:58","timezone":"Europe/Berlin"}"#, r#"{"by":"23:59:58","timezone":"Europe/Berlin"}"#),
            (r#"{"withinSec":900}"#, r#"{"withinSec":900,"of":"DUE"}"#),
            (r#"{"withinSec":900,"of":"start"}"#, r#"{"withinSec":900,"of":"START"}"#),
        ] {
            let stored = serde_json::from_str::<Deadline>(given).unwrap().stored().unwrap();
            assert_eq!(serde_json::to_string(&Deadline::from(&stored)).unwrap(), read);
        }
    }

    #[test]
    fn what_is_no_deadline_is_refused_with_its_field() {
        for (given, why) in [
            ("{}", "exactly one of by and withinSec"),
            (r#"{"by":"04:00","withinSec":1}"#, "exactly one of by and withinSec"),
            (r#"{"by":"04:00","of":"DUE"}"#, "of: it belongs to withinSec"),
            (r#"{"withinSec":1,"timezone":"UTC"}"#, "timezone: it belongs to by"),
            (r#"{"by":"4:00"}"#, "by: '4:00' is not a time of day"),
            (r#"{"by":"24:00"}"#, "is not a time of day"),
            (r#"{"by":"04:00:"}"#, "is not a time of day"),
            (r#"{"by":"04:00:00:00"}"#, "is not a time of day"),
        ] {
            let refused = serde_json::from_str::<Deadline>(given).unwrap().stored().unwrap_err();
            assert!(refused.contains(why), "{given}: {refused}");
        }
    }
}
