//! A job as callers write and read it (HTTP, RPC, CLI, manifests): one meaning everywhere, defaults filled in here.
//!
//! Source of the shape: the API design. Unknown fields are refused by name.

mod calendar;
mod needs;
mod retry;
mod trigger_words;
mod windows;

pub use crate::hooks::{Hook, Hooks};
use crate::{
    graph::GraphSpec,
    ids::JobId,
    payload::Payload,
    time::{Moment, Timestamp},
};
pub use calendar::{CalendarRule, JobCalendar};
use jiff::civil;
pub use needs::{CommandLimits, Resources};
pub use retry::RetryPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
pub use windows::{Blackout, DAY_MINUTES, DayMinute, Weekday, Window, WindowEffect};

/// Makes an UPPER_SNAKE enum that is read in any case.
macro_rules! upper_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal = $code:literal),+ $(,)? } default $default:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }
        impl Default for $name { fn default() -> Self { Self::$default } }
        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            pub fn as_str(self) -> &'static str { match self { $(Self::$variant => $text),+ } }
            /// Stable number used in stored forms.
            pub fn code(self) -> u8 { match self { $(Self::$variant => $code),+ } }
            pub fn from_code(code: u8) -> Option<Self> { match code { $($code => Some(Self::$variant),)+ _ => None } }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }
        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                $(if $crate::job::same_word(text, $text) { return Ok(Self::$variant); })+
                Err(format!("'{text}' is not one of {}", [$($text),+].join(", ")))
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use upper_enum;

/// `FIRE_ONCE_NOW`, `fire_once_now`, `FireOnceNow` and `fire-once-now` are one word.
pub(crate) fn same_word(given: &str, known: &str) -> bool {
    let letters = |text: &str| {
        text.bytes().filter(|b| !matches!(b, b'_' | b'-')).map(|b| b.to_ascii_uppercase()).collect::<Vec<_>>()
    };
    given.len() <= known.len() + 8 && letters(given) == letters(known)
}

upper_enum!(/// Which reading of a cron expression. The resolved one is stored and shown.
    Dialect { Auto = "AUTO" = 0, Unix = "UNIX" = 1, Quartz = "QUARTZ" = 2 } default Auto);
upper_enum!(/// What a fixed-time schedule does with an instant that daylight saving removes.
    Gap { Shift = "SHIFT" = 0, Skip = "SKIP" = 1 } default Shift);
upper_enum!(/// What a fixed-time schedule does with an instant that daylight saving repeats.
    Overlap { First = "FIRST" = 0, Second = "SECOND" = 1, Both = "BOTH" = 2 } default First);
upper_enum!(/// What happens to instants that are older than the threshold when they can be decided.
    MisfirePolicy { Skip = "SKIP" = 0, FireOnceNow = "FIRE_ONCE_NOW" = 1, FireAllMissed = "FIRE_ALL_MISSED" = 2 } default FireOnceNow);
upper_enum!(/// What happens when an instant is due while a run of the job is active.
    ConcurrencyPolicy { Allow = "ALLOW" = 0, Forbid = "FORBID" = 1, Replace = "REPLACE" = 2, QueueOne = "QUEUE_ONE" = 3 } default Forbid);
upper_enum!(/// How the delay between attempts grows.
    Backoff { Fixed = "FIXED" = 0, Exponential = "EXPONENTIAL" = 1 } default Exponential);
upper_enum!(/// What an executor that hears from no owner does with a running body.
    OnLostContact { Continue = "CONTINUE" = 0, Stop = "STOP" = 1 } default Continue);
upper_enum!(/// State of a job.
    JobStatus { Enabled = "ENABLED" = 0, Paused = "PAUSED" = 1, Deleted = "DELETED" = 2 } default Enabled);

upper_enum!(/// Method of an HTTP action.
    HttpMethod { Get = "GET" = 0, Head = "HEAD" = 1, Post = "POST" = 2, Put = "PUT" = 3, Patch = "PATCH" = 4, Delete = "DELETE" = 5 } default Post);

/// A whole job with defaults. What `POST /jobs` and `job.create` take.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobSpec {
    /// 1..128 of letters, digits, `. _ - /`; unique per tenant; immutable.
    pub name: String,
    #[serde(default = "default_tenant")]
    pub tenant_id: String,
    pub trigger: Trigger,
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    #[serde(default)]
    pub retry_policy: RetryPolicy,
    /// Per attempt, from its start. Seconds.
    #[serde(default = "default_timeout")]
    pub timeout_sec: u64,
    /// Over all attempts of a generation, from the start of the first one, with the waits between them. Seconds. Then a body is told
    /// to stop, as by a timeout, and there is no further attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_sec: Option<u64>,
    #[serde(default = "yes")]
    pub idempotent: bool,
    #[serde(default)]
    pub on_lost_contact: OnLostContact,
    #[serde(default = "yes")]
    pub dead_letter: bool,
    /// The pool's name.
    #[serde(default = "default_pool")]
    pub executor_selector: String,
    /// Default: the handler named like the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    #[serde(default)]
    pub params: Payload,
    /// Sealed before anything is stored; read back as `"***"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_params: BTreeMap<String, String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// 0..1000, higher first.
    #[serde(default = "default_priority")]
    pub priority: u16,
    #[serde(default)]
    pub resources: Resources,
    /// Jobs that are started when a run of this one ends.
    #[serde(default, skip_serializing_if = "Hooks::is_empty")]
    pub hooks: Hooks,
    /// The name that people read, in any language. At most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the job is for. At most 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who answers for the job: a person, a team, an address. At most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Texts for people and programs: at most 64, each of at most 4 KiB.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The named system that its bodies call: it has a breaker, a budget of retries, and limits of its own (`target.set`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Pieces of every week in which instants of the trigger count, or do not. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Stretches of time in which no instant of the trigger counts. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<Blackout>,
    /// Days on which instants of the trigger count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<JobCalendar>,
}

crate::redacted_debug!(JobSpec {
    name, tenant_id, trigger, concurrency_policy, retry_policy, timeout_sec, max_runtime_sec, idempotent, on_lost_contact,
    dead_letter, executor_selector, action, params, labels, priority, resources, hooks, display_name, description, owner,
    annotations, target, windows, blackouts, calendar,
} hides { secret_params });

fn default_tenant() -> String {
    "default".to_owned()
}
fn default_pool() -> String {
    "default".to_owned()
}
fn default_timeout() -> u64 {
    3600
}
fn default_priority() -> u16 {
    100
}
fn yes() -> bool {
    true
}

/// When a job is due. The types `DELAY` and `IMMEDIATE` are other words for ONCE, and read back as ONCE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    // The derived readers and writers are called by those of `trigger_words`, which know the other words.
    remote = "Self",
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[schemars(rename = "Trigger", transform = trigger_words::describe)]
pub enum Trigger {
    #[serde(alias = "cron", alias = "Cron")]
    Cron {
        expr: String,
        #[serde(default)]
        dialect: Dialect,
        #[serde(default = "utc")]
        timezone: String,
        #[serde(default)]
        gap: Gap,
        #[serde(default)]
        overlap: Overlap,
        #[serde(default)]
        start_at: Option<Timestamp>,
        #[serde(default)]
        end_at: Option<Timestamp>,
        #[serde(default)]
        jitter_sec: u32,
        #[serde(default)]
        misfire_policy: MisfirePolicy,
        #[serde(default = "default_misfire_threshold")]
        misfire_threshold_sec: u32,
        #[serde(default = "default_max_catch_up")]
        max_catch_up: u32,
    },
    /// Due at anchor + n x every.
    #[serde(alias = "fixed_rate", alias = "Fixed_Rate")]
    FixedRate {
        every_sec: u64,
        #[serde(default)]
        anchor_at: Option<Timestamp>,
        #[serde(default)]
        start_at: Option<Timestamp>,
        #[serde(default)]
        end_at: Option<Timestamp>,
        #[serde(default)]
        jitter_sec: u32,
        #[serde(default)]
        misfire_policy: MisfirePolicy,
        #[serde(default = "default_misfire_threshold")]
        misfire_threshold_sec: u32,
        #[serde(default = "default_max_catch_up")]
        max_catch_up: u32,
    },
    /// Due `everySec` after the last run became final.
    #[serde(alias = "fixed_delay", alias = "Fixed_Delay")]
    FixedDelay {
        every_sec: u64,
        #[serde(default)]
        start_at: Option<Timestamp>,
        #[serde(default)]
        end_at: Option<Timestamp>,
        #[serde(default)]
        misfire_policy: MisfirePolicy,
        #[serde(default = "default_misfire_threshold")]
        misfire_threshold_sec: u32,
    },
    /// Exactly one of `at`, `delaySec` and `delayMs`.
    #[serde(alias = "once", alias = "Once")]
    Once {
        /// An instant, or a local time of `timezone`. It is read back as an instant.
        #[serde(default)]
        at: Option<Moment>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_sec: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// Of `at`, an IANA name. Needed if `at` has no offset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
        #[serde(default)]
        misfire_policy: MisfirePolicy,
        #[serde(default = "default_misfire_threshold")]
        misfire_threshold_sec: u32,
    },
    #[serde(alias = "manual", alias = "Manual")]
    Manual {},
}

impl Trigger {
    /// A cron expression in UTC, with every default.
    pub fn cron(expr: &str) -> Self {
        Self::Cron {
            expr: expr.to_owned(),
            dialect: Dialect::default(),
            timezone: utc(),
            gap: Gap::default(),
            overlap: Overlap::default(),
            start_at: None,
            end_at: None,
            jitter_sec: 0,
            misfire_policy: MisfirePolicy::default(),
            misfire_threshold_sec: default_misfire_threshold(),
            max_catch_up: default_max_catch_up(),
        }
    }

    /// Each so many seconds, with every default.
    pub fn fixed_rate(every_sec: u64) -> Self {
        Self::FixedRate {
            every_sec,
            anchor_at: None,
            start_at: None,
            end_at: None,
            jitter_sec: 0,
            misfire_policy: MisfirePolicy::default(),
            misfire_threshold_sec: default_misfire_threshold(),
            max_catch_up: default_max_catch_up(),
        }
    }

    /// So many seconds after each run, with every default.
    pub fn fixed_delay(every_sec: u64) -> Self {
        Self::FixedDelay {
            every_sec,
            start_at: None,
            end_at: None,
            misfire_policy: MisfirePolicy::default(),
            misfire_threshold_sec: default_misfire_threshold(),
        }
    }

    /// Once, at an instant, with every default.
    pub fn once_at(at: Timestamp) -> Self {
        Self::once(Some(at.into()), None, None)
    }

    /// Once, at a local time of a time zone, with every default.
    pub fn once_at_local(at: civil::DateTime, timezone: &str) -> Self {
        Self::once(Some(Moment::Local(at)), Some(timezone.to_owned()), None)
    }

    /// Once, so long after it is stored, with every default.
    pub fn once_after_ms(delay_ms: u64) -> Self {
        Self::once(None, None, Some(delay_ms))
    }

    /// A delay of whole seconds is written as such, which earlier releases read too.
    fn once(at: Option<Moment>, timezone: Option<String>, delay_ms: Option<u64>) -> Self {
        let delay_sec = delay_ms.filter(|ms| ms % 1000 == 0).map(|ms| ms / 1000);
        Self::Once {
            at,
            delay_sec,
            delay_ms: delay_ms.filter(|_| delay_sec.is_none()),
            timezone,
            misfire_policy: MisfirePolicy::default(),
            misfire_threshold_sec: default_misfire_threshold(),
        }
    }
}

fn utc() -> String {
    "UTC".to_owned()
}
fn default_misfire_threshold() -> u32 {
    60
}
fn default_max_catch_up() -> u32 {
    1000
}

/// What an attempt does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Action {
    /// Calls the function that an executor registered under this name.
    #[serde(alias = "handler", alias = "Handler")]
    Handler { name: String },
    /// Starts a process on the executor's machine.
    #[serde(alias = "command", alias = "Command")]
    Command {
        command: Vec<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        #[serde(default)]
        cwd: Option<String>,
        #[serde(default)]
        stdin: Option<String>,
        #[serde(default = "default_output_cap")]
        output_cap_kb: u32,
        #[serde(default, skip_serializing_if = "CommandLimits::is_none")]
        limits: CommandLimits,
        /// How much others go before it in the use of CPU, 0..=19.
        #[serde(default, skip_serializing_if = "is_zero")]
        nice: u8,
    },
    /// Sends a request from the executor's machine. Path and query of `url`, values of `headers` and strings in `body` may hold
    /// `{{name}}`: facts of the attempt.
    #[serde(alias = "http", alias = "Http")]
    Http {
        #[serde(default)]
        method: HttpMethod,
        url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// A string is sent as it is, any other value as JSON.
        #[serde(default)]
        body: Option<Payload>,
        /// Status from and to, both included, that is a success.
        #[serde(default = "default_expect_status")]
        expect_status: (u16, u16),
        /// From the connection to the end of the answer; seconds.
        #[serde(default = "default_http_timeout")]
        timeout_sec: u32,
        #[serde(default)]
        max_redirects: u8,
    },
    /// Runs other jobs of the tenant in the order that the edges say. It has no attempt and needs no executor.
    #[serde(alias = "dag", alias = "Dag")]
    Dag(GraphSpec),
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(nice: &u8) -> bool {
    *nice == 0
}
fn default_output_cap() -> u32 {
    256
}
fn default_expect_status() -> (u16, u16) {
    (200, 299)
}
fn default_http_timeout() -> u32 {
    30
}

impl JobSpec {
    /// A spec with every default, for builders and tests.
    pub fn new(tenant: &str, name: &str, trigger: Trigger) -> Self {
        Self {
            name: name.to_owned(),
            tenant_id: tenant.to_owned(),
            trigger,
            concurrency_policy: ConcurrencyPolicy::default(),
            retry_policy: RetryPolicy::default(),
            timeout_sec: default_timeout(),
            max_runtime_sec: None,
            idempotent: true,
            on_lost_contact: OnLostContact::default(),
            dead_letter: true,
            executor_selector: default_pool(),
            action: None,
            params: Payload::default(),
            secret_params: BTreeMap::new(),
            labels: BTreeMap::new(),
            priority: default_priority(),
            resources: Resources::default(),
            hooks: Hooks::default(),
            display_name: None,
            description: None,
            owner: None,
            annotations: BTreeMap::new(),
            target: None,
            windows: Vec::new(),
            blackouts: Vec::new(),
            calendar: None,
        }
    }

    /// Whether windows or blackouts remove some of its instants, which event format 2 brought.
    pub fn has_windows(&self) -> bool {
        !self.windows.is_empty() || !self.blackouts.is_empty()
    }

    /// Whether it has texts for people, which event format 2 brought.
    pub fn has_texts(&self) -> bool {
        let texts = [&self.display_name, &self.description, &self.owner];
        texts.iter().any(|text| text.is_some()) || !self.annotations.is_empty()
    }

    /// Whether all its attempts together are bounded in time, which the releases of event format 1 do not know.
    pub fn has_time_limit(&self) -> bool {
        self.max_runtime_sec.is_some() || self.retry_policy.max_elapsed_sec.is_some()
    }

    /// The action with its default filled in.
    pub fn resolved_action(&self) -> Action {
        self.action.clone().unwrap_or_else(|| Action::Handler { name: self.name.clone() })
    }
}

/// A job as read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    pub job_id: JobId,
    pub status: JobStatus,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub next_fire_at: Option<Timestamp>,
    pub last_run_at: Option<Timestamp>,
    pub last_run_state: Option<crate::record::RunState>,
    pub run_count: u64,
    /// Set when the job was put aside because its actor failed again and again; resume clears it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quarantine_reason: Option<String>,
    #[serde(flatten)]
    pub spec: JobSpec,
}
