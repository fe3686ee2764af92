//! Stored forms of definitions: short names, defaults left out, so that three million of them stay small.

mod action;
pub mod archive;
pub mod audit;
pub mod backfill;
pub mod bulk;
pub mod clock;
pub mod deadline;
pub mod directory;
pub mod graph;
pub mod hooks;
pub mod journal;
mod limits;
pub mod outbox;
pub mod rows;
pub mod snapshot;
mod targets;

pub use action::StoredAction;
pub use hooks::{OtherHooks, StoredHook};
pub use limits::StoredLimits;
pub use targets::{TargetTerms, target_key, target_of};

use deadline::{StoredDeadline, StoredTiming};

use crate::{
    deadline::Deadline,
    graph::StoredGraph,
    job::{
        Action, Backoff, ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, OnLostContact, Overlap, Resources,
        RetryPolicy, Trigger,
    },
    payload::Payload,
    record::code,
    text::{Labels, Text},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Secret params sealed with a key of the node's key file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// Names, in clear, so that they can be listed masked.
    #[serde(rename = "n")]
    pub names: Vec<String>,
    #[serde(rename = "k")]
    pub key_id: String,
    /// 24 bytes, XChaCha20-Poly1305.
    #[serde(rename = "o", with = "serde_bytes")]
    pub nonce: Vec<u8>,
    /// Sealed JSON object of the secret params.
    #[serde(rename = "c", with = "serde_bytes")]
    pub ciphertext: Vec<u8>,
}

impl Sealed {
    /// Stands for "as they are" in a replace whose caller gave the secrets back masked. Never stored.
    pub fn keep(names: Vec<String>) -> Self {
        Self { names, key_id: String::new(), nonce: Vec::new(), ciphertext: Vec::new() }
    }
    pub fn is_keep(&self) -> bool {
        self.key_id.is_empty()
    }
}

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
    /// Most jobs have none, and pay for none. Event format 2.
    #[serde(rename = "tm", default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<StoredTiming>>,
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

/// Checked before.
fn timing(spec: &JobSpec) -> Option<Box<StoredTiming>> {
    let deadline = spec.deadline.as_ref().and_then(|deadline| deadline.stored().ok());
    let timing = StoredTiming { deadline, min_duration_sec: spec.min_duration_sec };
    (timing != StoredTiming::default()).then(|| Box::new(timing))
}

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
            timing: timing(spec),
        }
    }

    /// Back to the callers' form; secrets are masked.
    pub fn to_spec(&self) -> JobSpec {
        let (start_at, end_at) = (ts(self.start_ms), ts(self.end_ms));
        let (misfire_policy, misfire_threshold_sec, max_catch_up) =
            (self.misfire, self.misfire_threshold_sec, self.max_catch_up);
        let jitter_sec = self.jitter_sec;
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
            deadline: self.deadline().map(Deadline::from),
            min_duration_sec: self.min_duration_sec(),
        }
    }

    pub fn deadline(&self) -> Option<&StoredDeadline> {
        self.timing.as_deref()?.deadline.as_ref()
    }

    /// An attempt that succeeds in less is suspicious.
    pub fn min_duration_sec(&self) -> Option<u64> {
        self.timing.as_deref()?.min_duration_sec
    }

    /// It tells somebody: nodes run it in a pool of their own.
    pub fn is_channel(&self) -> bool {
        match &self.action {
            Some(StoredAction::Webhook { .. }) => true,
            Some(
                StoredAction::Handler { .. }
                | StoredAction::Command { .. }
                | StoredAction::Http { .. }
                | StoredAction::Dag(_),
            )
            | None => false,
        }
    }

    /// The graph of a DAG; None: the job runs bodies.
    pub fn graph(&self) -> Option<&Arc<StoredGraph>> {
        match &self.action {
            Some(StoredAction::Dag(graph)) => Some(graph),
            Some(
                StoredAction::Handler { .. }
                | StoredAction::Command { .. }
                | StoredAction::Http { .. }
                | StoredAction::Webhook { .. },
            )
            | None => None,
        }
    }

    /// The action with its default filled in.
    pub fn resolved_action(&self) -> Action {
        self.action.clone().map_or_else(|| Action::Handler { name: self.name.to_string() }, Action::from)
    }
}

/// What a secret param reads back as.
pub const MASK: &str = "***";
