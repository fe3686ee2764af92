//! Hooks of a stored definition. Those of `onFailure` are in a list of their own, where earlier releases put them.

use super::StoredJob;
use crate::{
    hooks::{Hook, HookKind, Hooks},
    payload::Payload,
    text::Text,
};
use serde::{Deserialize, Serialize};

/// A job that is started when a run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredHook {
    #[serde(rename = "n")]
    pub job: Text,
    #[serde(rename = "p", default, skip_serializing_if = "Payload::is_empty")]
    pub params: Payload,
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub compensation: bool,
}

/// Hooks of a job besides those of `onFailure`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherHooks {
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub on_success: Vec<StoredHook>,
    #[serde(rename = "t", default, skip_serializing_if = "Vec::is_empty")]
    pub on_timeout: Vec<StoredHook>,
    #[serde(rename = "d", default, skip_serializing_if = "Vec::is_empty")]
    pub on_dead_letter: Vec<StoredHook>,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub on_deadline: Vec<StoredHook>,
}

pub(super) fn stored(hooks: &[Hook]) -> Vec<StoredHook> {
    let stored = |Hook { job, params, compensation }: &Hook| StoredHook {
        job: job.as_str().into(),
        params: params.clone(),
        compensation: *compensation,
    };
    hooks.iter().map(stored).collect()
}

fn given(hooks: &[StoredHook]) -> Vec<Hook> {
    let given = |StoredHook { job, params, compensation }: &StoredHook| Hook {
        job: job.to_string(),
        params: params.clone(),
        compensation: *compensation,
    };
    hooks.iter().map(given).collect()
}

impl OtherHooks {
    /// Most jobs have none, and pay for none.
    pub(super) fn of(hooks: &Hooks) -> Option<Box<Self>> {
        let Hooks { on_failure: _, on_success, on_timeout, on_dead_letter, on_deadline } = hooks;
        let others = Self {
            on_success: stored(on_success),
            on_timeout: stored(on_timeout),
            on_dead_letter: stored(on_dead_letter),
            on_deadline: stored(on_deadline),
        };
        (others != Self::default()).then(|| Box::new(others))
    }
}

impl StoredJob {
    pub fn hooks_of(&self, kind: HookKind) -> &[StoredHook] {
        let others = self.other_hooks.as_deref();
        match kind {
            HookKind::Failure => &self.on_failure,
            HookKind::Success => others.map_or(&[], |hooks| &hooks.on_success),
            HookKind::Timeout => others.map_or(&[], |hooks| &hooks.on_timeout),
            HookKind::DeadLetter => others.map_or(&[], |hooks| &hooks.on_dead_letter),
            HookKind::Deadline => others.map_or(&[], |hooks| &hooks.on_deadline),
        }
    }

    /// As callers write them.
    pub fn hooks(&self) -> Hooks {
        let of = |kind| given(self.hooks_of(kind));
        Hooks {
            on_failure: of(HookKind::Failure),
            on_success: of(HookKind::Success),
            on_timeout: of(HookKind::Timeout),
            on_dead_letter: of(HookKind::DeadLetter),
            on_deadline: of(HookKind::Deadline),
        }
    }
}
