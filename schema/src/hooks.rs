//! Hooks: jobs that are started when a run of another one ends, as callers write them.

use crate::payload::Payload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a hook is started. The number is stored, in the numbers of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum HookKind {
    /// The run has ended FAILED or TIMEOUT and is not tried again.
    Failure = 0,
    /// It has ended SUCCESS.
    Success = 1,
    /// It has ended TIMEOUT and is not tried again. Beside [`Self::Failure`].
    Timeout = 2,
    /// It is a dead letter. Beside [`Self::Failure`].
    DeadLetter = 3,
    /// It has not ended when its deadline passed, or has never begun.
    Deadline = 4,
}

impl HookKind {
    pub const ALL: [Self; 5] = [Self::Failure, Self::Success, Self::Timeout, Self::DeadLetter, Self::Deadline];

    /// Its field of [`Hooks`].
    pub fn field(self) -> &'static str {
        match self {
            Self::Failure => "onFailure",
            Self::Success => "onSuccess",
            Self::Timeout => "onTimeout",
            Self::DeadLetter => "onDeadLetter",
            Self::Deadline => "onDeadline",
        }
    }

    /// The number of a hook among those of its job: part of its key. `place`: among those of this kind.
    pub fn number(self, place: u32) -> u32 {
        ((self as u32) << 8) | place
    }

    /// The kind of the hook that has a number. None: a later release has more kinds.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number >> 8)
    }
}

/// Jobs that are started when a run ends; at most four of each kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hooks {
    /// When a run ends FAILED or TIMEOUT and is not tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<Hook>,
    /// When a run ends SUCCESS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_success: Vec<Hook>,
    /// When a run ends TIMEOUT and is not tried again; besides those of `onFailure`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_timeout: Vec<Hook>,
    /// When a run becomes a dead letter; besides those of `onFailure`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_dead_letter: Vec<Hook>,
    /// When a run misses the job's `deadline`: it has not ended, or never began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_deadline: Vec<Hook>,
}

impl Hooks {
    pub fn is_empty(&self) -> bool {
        HookKind::ALL.iter().all(|kind| self.of(*kind).is_empty())
    }

    pub fn of(&self, kind: HookKind) -> &[Hook] {
        match kind {
            HookKind::Failure => &self.on_failure,
            HookKind::Success => &self.on_success,
            HookKind::Timeout => &self.on_timeout,
            HookKind::DeadLetter => &self.on_dead_letter,
            HookKind::Deadline => &self.on_deadline,
        }
    }
}

/// A job that is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hook {
    /// Name of a job of the same tenant.
    pub job: String,
    /// Laid over that job's params, with `run`, which tells of the run that ended.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub params: Payload,
    /// It undoes what the run did: it is started once for the run, however often the run fails, and the run is started again only with
    /// `force`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensation: bool,
}

impl Hook {
    /// Starts the job with its own params.
    pub fn new(job: impl Into<String>) -> Self {
        Self { job: job.into(), params: Payload::default(), compensation: false }
    }
}

/// The number of a callback, which is no hook of the job: who triggered the run has asked for it.
pub const CALLBACK: u32 = 5 << 8;

/// How people call the hook of a number.
pub fn name_of(number: u32) -> &'static str {
    if number == CALLBACK { "callback" } else { HookKind::of(number).map_or("hook", HookKind::field) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_hook_tells_its_kind_and_those_of_on_failure_are_as_they_were() {
        for kind in HookKind::ALL {
            assert_eq!(HookKind::of(kind.number(0)), Some(kind));
            assert_eq!(HookKind::of(kind.number(3)), Some(kind));
        }
        assert_eq!(HookKind::Failure.number(2), 2);
        assert_eq!(HookKind::of(9 << 8), None);
    }
}
