//! Stored forms of definitions: short names, defaults left out, so that three million of them stay small.

pub mod archive;
pub mod audit;
pub mod backfill;
pub mod bulk;
mod calendars;
pub mod clock;
pub mod directory;
pub mod graph;
pub mod hooks;
pub mod journal;
mod limits;
pub mod outbox;
pub mod rows;
mod sealed;
pub mod snapshot;
mod targets;
pub mod windows;

pub use calendars::{CalendarRecord, CalendarRules, CalendarVersion, MinusRules, StoredJobCalendar};
pub use hooks::{OtherHooks, StoredHook};
pub use limits::StoredLimits;
pub use sealed::Sealed;
pub use targets::{TargetTerms, target_key, target_of};
pub use windows::{StoredBlackout, StoredWindow, StoredWindows};

use crate::{
    graph::StoredGraph,
    job::{
        Action, Backoff, ConcurrencyPolicy, Dialect, Gap, HttpMethod, JobSpec, MisfirePolicy, OnLostContact, Overlap,
        Resources, RetryPolicy, Trigger,
    },
    payload::Payload,
    record::code,
    text::{Labels, Text},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// Limits of a tenant. 0 = no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantRecord {
    #[serde(rename = "t")]
    pub tenant: String,
    /// Runs that hold an executor at once.
    #[serde(rename = "c", default)]
    pub max_concurrent_runs: u32,
    /// Runs started per second, and the burst above it.
    #[serde(rename = "r", default)]
    pub max_triggers_per_sec: f64,
    #[serde(rename = "j", default)]
    pub max_jobs: u64,
    /// Runs that wait for a permit or an executor at once.
    #[serde(rename = "q", default)]
    pub max_queued_runs: u32,
    #[serde(rename = "v", default)]
    pub version: u64,
    /// Of a target, whose limits are kept like those of a tenant. `tenant` is its key then ([`target_key`]). Event format 2.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetTerms>,
}

/// Schedule of a stored job, resolved: ONCE has its instant, FIXED_RATE its anchor, CRON its dialect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredTrigger {
    #[serde(rename = "c")]
    Cron {
        #[serde(rename = "x")]
        expr: Text,
        #[serde(rename = "d", with = "code")]
        dialect: Dialect,
        #[serde(rename = "z")]
        zone: Text,
        #[serde(rename = "g", with = "code", default, skip_serializing_if = "is_default")]
        gap: Gap,
        #[serde(rename = "o", with = "code", default, skip_serializing_if = "is_default")]
        overlap: Overlap,
    },
    #[serde(rename = "r")]
    FixedRate {
        #[serde(rename = "e")]
        every_ms: i64,
        #[serde(rename = "a")]
        anchor_ms: i64,
    },
    #[serde(rename = "d")]
    FixedDelay {
        #[serde(rename = "e")]
        every_ms: i64,
    },
    #[serde(rename = "o")]
    Once {
        #[serde(rename = "a")]
        at_ms: i64,
    },
    #[serde(rename = "m")]
    Manual {},
}

/// Default of `misfireThresholdSec`.
const MISFIRE_THRESHOLD_SEC: u32 = 60;
/// Default of `maxCatchUp`.
const MAX_CATCH_UP: u32 = 1000;

/// A definition as the journal and the snapshots hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredJob {
    #[serde(rename = "n")]
    pub name: Text,
    #[serde(rename = "t", default = "default_text", skip_serializing_if = "is_default_text")]
    pub tenant: Text,
    #[serde(rename = "s")]
    pub trigger: StoredTrigger,
    #[serde(rename = "sa", default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    #[serde(rename = "sz", default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    #[serde(rename = "sj", default, skip_serializing_if = "is_default")]
    pub jitter_sec: u32,
    #[serde(rename = "mp", with = "code", default, skip_serializing_if = "is_default")]
    pub misfire: MisfirePolicy,
    #[serde(rename = "mt", default = "default_threshold", skip_serializing_if = "is_default_threshold")]
    pub misfire_threshold_sec: u32,
    #[serde(rename = "mc", default = "default_catch_up", skip_serializing_if = "is_default_catch_up")]
    pub max_catch_up: u32,
    #[serde(rename = "cp", with = "code", default, skip_serializing_if = "is_default")]
    pub concurrency: ConcurrencyPolicy,
    #[serde(rename = "ra", default = "default_attempts", skip_serializing_if = "is_default_attempts")]
    pub max_attempts: u32,
    #[serde(rename = "rb", with = "code", default, skip_serializing_if = "is_default")]
    pub backoff: Backoff,
    #[serde(rename = "rd", default = "default_base", skip_serializing_if = "is_default_base")]
    pub base_delay_ms: u64,
    #[serde(rename = "rm", default = "default_max_delay", skip_serializing_if = "is_default_max_delay")]
    pub max_delay_ms: u64,
    /// Thousandths.
    #[serde(rename = "rj", default = "default_jitter", skip_serializing_if = "is_default_jitter")]
    pub retry_jitter_milli: u32,
    #[serde(rename = "to", default = "default_timeout", skip_serializing_if = "is_default_timeout")]
    pub timeout_sec: u64,
    #[serde(rename = "ni", default, skip_serializing_if = "is_default")]
    pub not_idempotent: bool,
    #[serde(rename = "lc", with = "code", default, skip_serializing_if = "is_default")]
    pub on_lost_contact: OnLostContact,
    #[serde(rename = "nd", default, skip_serializing_if = "is_default")]
    pub no_dead_letter: bool,
    #[serde(rename = "p", default = "default_text", skip_serializing_if = "is_default_text")]
    pub pool: Text,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub action: Option<StoredAction>,
    #[serde(rename = "pa", default, skip_serializing_if = "Payload::is_empty")]
    pub params: Payload,
    #[serde(rename = "se", default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Sealed>,
    #[serde(rename = "l", default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(rename = "pr", default = "default_priority", skip_serializing_if = "is_default_priority")]
    pub priority: u16,
    #[serde(rename = "rs", default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<(f64, u64, u64)>,
    /// Event format 2.
    #[serde(rename = "hf", default, skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<StoredHook>,
    #[serde(rename = "hk", default, skip_serializing_if = "Option::is_none")]
    pub other_hooks: Option<Box<OtherHooks>>,
    /// Texts for people. Event format 2.
    #[serde(rename = "dn", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<Text>,
    #[serde(rename = "ds", default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text>,
    #[serde(rename = "ow", default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Text>,
    #[serde(rename = "an", default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    /// From the first attempt of a generation: no attempt begins later.
    #[serde(rename = "re", default, skip_serializing_if = "Option::is_none")]
    pub max_elapsed_sec: Option<u64>,
    /// ... and no body runs longer.
    #[serde(rename = "rt", default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_sec: Option<u64>,
    /// The named downstream that bodies call. Event format 2.
    #[serde(rename = "tg", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Text>,
    /// Event format 2.
    #[serde(rename = "wi", default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Box<StoredWindows>>,
    /// Event format 2.
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<Box<StoredJobCalendar>>,
}

/// Action of a stored job; None in [`StoredJob`] = the handler named like the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredAction {
    #[serde(rename = "h")]
    Handler {
        #[serde(rename = "n")]
        name: Text,
    },
    #[serde(rename = "c")]
    Command {
        #[serde(rename = "c")]
        command: Vec<String>,
        #[serde(rename = "e", default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        stdin: Option<String>,
        #[serde(rename = "o")]
        output_cap_kb: u32,
        #[serde(rename = "l", default, skip_serializing_if = "is_default")]
        limits: StoredLimits,
        #[serde(rename = "n", default, skip_serializing_if = "is_default")]
        nice: u8,
    },
    #[serde(rename = "u")]
    Http {
        #[serde(rename = "m", with = "code")]
        method: HttpMethod,
        #[serde(rename = "u")]
        url: String,
        #[serde(rename = "h", default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        body: Option<Payload>,
        #[serde(rename = "e")]
        expect_status: (u16, u16),
        #[serde(rename = "t")]
        timeout_sec: u32,
        #[serde(rename = "r", default, skip_serializing_if = "is_default")]
        max_redirects: u8,
    },
    /// Event format 2.
    #[serde(rename = "g")]
    Dag(Arc<StoredGraph>),
}

impl From<Action> for StoredAction {
    fn from(action: Action) -> Self {
        match action {
            Action::Handler { name } => Self::Handler { name: name.into() },
            Action::Command { command, env, cwd, stdin, output_cap_kb, limits, nice } => {
                Self::Command { command, env, cwd, stdin, output_cap_kb, limits: limits.into(), nice }
            }
            Action::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects } => {
                Self::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects }
            }
            Action::Dag(spec) => Self::Dag(Arc::new(StoredGraph::from(&spec))),
        }
    }
}
impl From<StoredAction> for Action {
    fn from(action: StoredAction) -> Self {
        match action {
            StoredAction::Handler { name } => Self::Handler { name: name.into() },
            StoredAction::Command { command, env, cwd, stdin, output_cap_kb, limits, nice } => {
                Self::Command { command, env, cwd, stdin, output_cap_kb, limits: limits.into(), nice }
            }
            StoredAction::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects } => {
                Self::Http { method, url, headers, body, expect_status, timeout_sec, max_redirects }
            }
            StoredAction::Dag(graph) => Self::Dag(graph.to_spec()),
        }
    }
}

fn is_default<T: Default + PartialEq>(v: &T) -> bool {
    *v == T::default()
}
macro_rules! stored_default {
    ($make:ident, $is:ident, $type:ty, $value:expr) => {
        fn $make() -> $type {
            $value
        }
        #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
        fn $is(v: &$type) -> bool {
            *v == $make()
        }
    };
}
stored_default!(default_text, is_default_text, Text, Text::new_static("default"));
stored_default!(default_threshold, is_default_threshold, u32, MISFIRE_THRESHOLD_SEC);
stored_default!(default_catch_up, is_default_catch_up, u32, MAX_CATCH_UP);
stored_default!(default_attempts, is_default_attempts, u32, 3);
stored_default!(default_base, is_default_base, u64, 10_000);
stored_default!(default_max_delay, is_default_max_delay, u64, 3_600_000);
stored_default!(default_jitter, is_default_jitter, u32, 200);
stored_default!(default_timeout, is_default_timeout, u64, 3600);
stored_default!(default_priority, is_default_priority, u16, 100);

fn ts(ms: Option<i64>) -> Option<Timestamp> {
    ms.map(Timestamp)
}

impl StoredJob {
    /// Takes a validated spec with its trigger already resolved (see `campanile_core::spec`).
    pub fn from_spec(spec: &JobSpec, trigger: StoredTrigger, secrets: Option<Sealed>) -> Self {
        let (start, end, jitter, misfire, threshold, cap) = match &spec.trigger {
            Trigger::Cron {
                start_at, end_at, jitter_sec, misfire_policy, misfire_threshold_sec, max_catch_up, ..
            }
            | Trigger::FixedRate {
                start_at,
                end_at,
                jitter_sec,
                misfire_policy,
                misfire_threshold_sec,
                max_catch_up,
                ..
            } => (*start_at, *end_at, *jitter_sec, *misfire_policy, *misfire_threshold_sec, *max_catch_up),
            Trigger::FixedDelay { start_at, end_at, misfire_policy, misfire_threshold_sec, .. } => {
                (*start_at, *end_at, 0, *misfire_policy, *misfire_threshold_sec, MAX_CATCH_UP)
            }
            Trigger::Once { misfire_policy, misfire_threshold_sec, .. } => {
                (None, None, 0, *misfire_policy, *misfire_threshold_sec, MAX_CATCH_UP)
            }
            Trigger::Manual {} => (None, None, 0, MisfirePolicy::default(), MISFIRE_THRESHOLD_SEC, MAX_CATCH_UP),
        };
        // An empty text is as good as none.
        let given = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(Text::from);
        let (retry, resources) = (&spec.retry_policy, &spec.resources);
        Self {
            name: spec.name.as_str().into(),
            tenant: spec.tenant_id.as_str().into(),
            trigger,
            start_ms: start.map(Timestamp::ms),
            end_ms: end.map(Timestamp::ms),
            jitter_sec: jitter,
            misfire,
            misfire_threshold_sec: threshold,
            max_catch_up: cap,
            concurrency: spec.concurrency_policy,
            max_attempts: retry.max_attempts,
            backoff: retry.backoff,
            base_delay_ms: (retry.base_delay_sec * 1000.0).round() as u64,
            max_delay_ms: (retry.max_delay_sec * 1000.0).round() as u64,
            retry_jitter_milli: (retry.jitter * 1000.0).round() as u32,
            timeout_sec: spec.timeout_sec,
            not_idempotent: !spec.idempotent,
            on_lost_contact: spec.on_lost_contact,
            no_dead_letter: !spec.dead_letter,
            pool: spec.executor_selector.as_str().into(),
            action: spec.action.clone().map(StoredAction::from),
            params: spec.params.clone(),
            secrets,
            labels: Labels::from(&spec.labels),
            priority: spec.priority,
            resources: (*resources != Resources::default()).then_some((
                resources.cpu,
                resources.memory_mb,
                resources.storage_mb,
            )),
            on_failure: hooks::stored(&spec.hooks.on_failure),
            other_hooks: OtherHooks::of(&spec.hooks),
            display_name: given(&spec.display_name),
            description: given(&spec.description),
            owner: given(&spec.owner),
            annotations: Labels::from(&spec.annotations),
            max_elapsed_sec: retry.max_elapsed_sec,
            max_runtime_sec: spec.max_runtime_sec,
            target: given(&spec.target),
            windows: StoredWindows::of(spec),
            calendar: StoredJobCalendar::of(spec),
        }
    }

    /// Back to the callers' form; secrets are masked.
    pub fn to_spec(&self) -> JobSpec {
        let (start_at, end_at) = (ts(self.start_ms), ts(self.end_ms));
        let (misfire_policy, misfire_threshold_sec, max_catch_up) =
            (self.misfire, self.misfire_threshold_sec, self.max_catch_up);
        let jitter_sec = self.jitter_sec;
        let (windows, blackouts) = self.windows.as_ref().map(|windows| windows.to_spec()).unwrap_or_default();
        let trigger = match &self.trigger {
            StoredTrigger::Cron { expr, dialect, zone, gap, overlap } => Trigger::Cron {
                expr: expr.to_string(),
                dialect: *dialect,
                timezone: zone.to_string(),
                gap: *gap,
                overlap: *overlap,
                start_at,
                end_at,
                jitter_sec,
                misfire_policy,
                misfire_threshold_sec,
                max_catch_up,
            },
            StoredTrigger::FixedRate { every_ms, anchor_ms } => Trigger::FixedRate {
                every_sec: (*every_ms / 1000) as u64,
                anchor_at: Some(Timestamp(*anchor_ms)),
                start_at,
                end_at,
                jitter_sec,
                misfire_policy,
                misfire_threshold_sec,
                max_catch_up,
            },
            StoredTrigger::FixedDelay { every_ms } => Trigger::FixedDelay {
                every_sec: (*every_ms / 1000) as u64,
                start_at,
                end_at,
                misfire_policy,
                misfire_threshold_sec,
            },
            StoredTrigger::Once { at_ms } => {
                let at = Some(Timestamp(*at_ms).into());
                Trigger::Once {
                    at,
                    delay_sec: None,
                    delay_ms: None,
                    timezone: None,
                    misfire_policy,
                    misfire_threshold_sec,
                }
            }
            StoredTrigger::Manual {} => Trigger::Manual {},
        };
        JobSpec {
            name: self.name.to_string(),
            tenant_id: self.tenant.to_string(),
            trigger,
            concurrency_policy: self.concurrency,
            retry_policy: RetryPolicy {
                max_attempts: self.max_attempts,
                backoff: self.backoff,
                base_delay_sec: self.base_delay_ms as f64 / 1000.0,
                max_delay_sec: self.max_delay_ms as f64 / 1000.0,
                jitter: f64::from(self.retry_jitter_milli) / 1000.0,
                max_elapsed_sec: self.max_elapsed_sec,
            },
            timeout_sec: self.timeout_sec,
            max_runtime_sec: self.max_runtime_sec,
            idempotent: !self.not_idempotent,
            on_lost_contact: self.on_lost_contact,
            dead_letter: !self.no_dead_letter,
            executor_selector: self.pool.to_string(),
            action: Some(self.resolved_action()),
            params: self.params.clone(),
            secret_params: self
                .secrets
                .iter()
                .flat_map(|s| s.names.iter())
                .map(|name| (name.clone(), MASK.to_owned()))
                .collect(),
            labels: self.labels.to_map(),
            priority: self.priority,
            resources: self.resources.map_or_else(Resources::default, |(cpu, memory_mb, storage_mb)| Resources {
                cpu,
                memory_mb,
                storage_mb,
            }),
            hooks: self.hooks(),
            display_name: self.display_name.as_ref().map(ToString::to_string),
            description: self.description.as_ref().map(ToString::to_string),
            owner: self.owner.as_ref().map(ToString::to_string),
            annotations: self.annotations.to_map(),
            target: self.target.as_ref().map(ToString::to_string),
            windows,
            blackouts,
            calendar: self.calendar.as_ref().map(|calendar| calendar.to_spec()),
        }
    }

    /// The graph of a DAG; None: the job runs bodies.
    pub fn graph(&self) -> Option<&Arc<StoredGraph>> {
        match &self.action {
            Some(StoredAction::Dag(graph)) => Some(graph),
            Some(StoredAction::Handler { .. } | StoredAction::Command { .. } | StoredAction::Http { .. }) | None => {
                None
            }
        }
    }

    /// The action with its default filled in.
    pub fn resolved_action(&self) -> Action {
        self.action.clone().map_or_else(|| Action::Handler { name: self.name.to_string() }, Action::from)
    }
}

/// What a secret param reads back as.
pub const MASK: &str = "***";
