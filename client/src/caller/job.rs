//! Builders for jobs: what is left out has the scheduler's default, and what does not go together cannot be written.

use campanile_schema::{
    job::{
        Action, Backoff, Blackout, CommandLimits, ConcurrencyPolicy, Dialect, Gap, Hook, JobCalendar, JobSpec,
        MisfirePolicy, OnLostContact, Overlap, Resources, Trigger, Window,
    },
    payload::Payload,
    time::{Moment, Timestamp},
};
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

/// A job to be: `Job::cron("daily_billing", "0 0 2 * * ?").handler("bill").label("team", "pay")`. Everywhere a spec is asked for, it
/// can be given.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Job {
    spec: JobSpec,
}

/// Seconds, at least one: the scheduler counts in whole seconds.
fn seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}

impl Job {
    /// `name`: 1 to 128 letters, digits, `. _ - /`; unique within the tenant.
    pub fn new(name: &str, trigger: impl Into<Trigger>) -> Self {
        Self { spec: JobSpec::new("default", name, trigger.into()) }
    }
    /// See [`Cron`] for the zone and more: `Job::new(name, Cron::new(expr).timezone("Europe/Berlin"))`.
    pub fn cron(name: &str, expr: &str) -> Self {
        Self::new(name, Cron::new(expr))
    }
    /// Each `every` (whole seconds), whatever its runs take.
    pub fn every(name: &str, every: Duration) -> Self {
        Self::new(name, Every::new(every))
    }
    /// `delay` (whole seconds) after the run before has ended.
    pub fn after_each(name: &str, delay: Duration) -> Self {
        Self::new(name, AfterEach::new(delay))
    }
    /// Once, at this instant.
    pub fn at(name: &str, at: Timestamp) -> Self {
        Self::new(name, Once::at(at))
    }
    /// Once, so long from when it is created, whole milliseconds.
    pub fn after(name: &str, delay: Duration) -> Self {
        Self::new(name, Once::after(delay))
    }
    /// Only when it is triggered.
    pub fn manual(name: &str) -> Self {
        Self::new(name, Trigger::Manual {})
    }

    /// Whose it is; a tenant's own token needs not say so.
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.spec.tenant_id = tenant.to_owned();
        self
    }
    /// Runs the handler that executors registered under this name; unless told, the one named like the job.
    pub fn handler(mut self, name: &str) -> Self {
        self.spec.action = Some(Action::Handler { name: name.to_owned() });
        self
    }
    /// Runs a program with its arguments, without a shell, on an executor that takes commands.
    pub fn command<S: Into<String>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.spec.action = Some(Action::Command {
            command: command.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            stdin: None,
            output_cap_kb: campanile_schema::limits::OUTPUT_CAP_KB,
            limits: CommandLimits::default(),
            nice: 0,
        });
        self
    }
    /// Any other action.
    pub fn action(mut self, action: Action) -> Self {
        self.spec.action = Some(action);
        self
    }
    /// What its handler gets. Fails when it is not JSON (a map with keys that are not text).
    pub fn params(mut self, params: &impl Serialize) -> Result<Self, serde_json::Error> {
        self.spec.params = Payload(serde_json::to_string(params)?);
        Ok(self)
    }
    /// Stored sealed and masked when read; the node needs a key for it.
    pub fn secret(mut self, name: &str, value: &str) -> Self {
        self.spec.secret_params.insert(name.to_owned(), value.to_owned());
        self
    }
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.spec.labels.insert(key.to_owned(), value.to_owned());
        self
    }
    /// The pool whose executors run it.
    pub fn pool(mut self, pool: &str) -> Self {
        self.spec.executor_selector = pool.to_owned();
        self
    }
    /// 0 to 1000, higher first.
    pub fn priority(mut self, priority: u16) -> Self {
        self.spec.priority = priority;
        self
    }
    /// What becomes of an instant that comes while a run is active.
    pub fn concurrency(mut self, policy: ConcurrencyPolicy) -> Self {
        self.spec.concurrency_policy = policy;
        self
    }
    /// Of each attempt, whole seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout_sec = seconds(timeout);
        self
    }
    /// The first try counts.
    pub fn attempts(mut self, most: u32) -> Self {
        self.spec.retry_policy.max_attempts = most;
        self
    }
    /// No attempt begins later than so long after the first one, whole seconds.
    pub fn max_elapsed(mut self, time: Duration) -> Self {
        self.spec.retry_policy.max_elapsed_sec = Some(seconds(time));
        self
    }
    /// Of all attempts of a run together, with the waits between them, whole seconds.
    pub fn max_runtime(mut self, time: Duration) -> Self {
        self.spec.max_runtime_sec = Some(seconds(time));
        self
    }
    /// Between attempts: `first`, then twice as long each time, at most `longest`.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        let policy = &mut self.spec.retry_policy;
        policy.backoff = Backoff::Exponential;
        (policy.base_delay_sec, policy.max_delay_sec) = (first.as_secs_f64(), longest.as_secs_f64());
        self
    }
    /// A body whose executor was lost may have run: a person is asked before it runs again.
    pub fn not_idempotent(mut self) -> Self {
        self.spec.idempotent = false;
        self
    }
    /// What an executor that hears from no node does with a running body.
    pub fn on_lost_contact(mut self, then: OnLostContact) -> Self {
        self.spec.on_lost_contact = then;
        self
    }
    /// Runs that end badly are only in the history.
    pub fn without_dead_letters(mut self) -> Self {
        self.spec.dead_letter = false;
        self
    }
    /// A job of the same tenant that is started when a run ends FAILED or TIMEOUT and is not tried again.
    /// Each call adds one; at most four of each kind.
    pub fn on_failure(mut self, job: impl Into<String>) -> Self {
        self.spec.hooks.on_failure.push(Hook::new(job));
        self
    }
    /// A job of the same tenant that is started when a run ends SUCCESS.
    pub fn on_success(mut self, job: impl Into<String>) -> Self {
        self.spec.hooks.on_success.push(Hook::new(job));
        self
    }
    /// A job of the same tenant that is started when a run ends TIMEOUT, besides those of `on_failure`.
    pub fn on_timeout(mut self, job: impl Into<String>) -> Self {
        self.spec.hooks.on_timeout.push(Hook::new(job));
        self
    }
    /// A job of the same tenant that is started when a run becomes a dead letter, besides those of `on_failure`.
    pub fn on_dead_letter(mut self, job: impl Into<String>) -> Self {
        self.spec.hooks.on_dead_letter.push(Hook::new(job));
        self
    }
    /// A job of the same tenant that undoes what a run did that fails for good. It is started once for a run, and the run is started
    /// again only with force.
    pub fn compensation(mut self, job: impl Into<String>) -> Self {
        self.spec.hooks.on_failure.push(Hook { compensation: true, ..Hook::new(job) });
        self
    }
    /// The name that people read, in any language.
    pub fn display_name(mut self, text: impl Into<String>) -> Self {
        self.spec.display_name = Some(text.into());
        self
    }
    /// What the job is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.spec.description = Some(text.into());
        self
    }
    /// Who answers for the job: a person, a team, an address.
    pub fn owner(mut self, text: impl Into<String>) -> Self {
        self.spec.owner = Some(text.into());
        self
    }
    /// The named system that its bodies call: `target_set` says how it is spared.
    pub fn target(mut self, name: impl Into<String>) -> Self {
        self.spec.target = Some(name.into());
        self
    }
    /// A text for people or programs, by its key.
    pub fn annotation(mut self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.spec.annotations.insert(key.into(), text.into());
        self
    }
    /// A piece of every week in which instants count, or with [`WindowEffect::Deny`](campanile_schema::job::WindowEffect) do not.
    pub fn window(mut self, window: Window) -> Self {
        self.spec.windows.push(window);
        self
    }
    /// A stretch of time in which no instant counts.
    pub fn blackout(mut self, blackout: Blackout) -> Self {
        self.spec.blackouts.push(blackout);
        self
    }
    /// Days on which instants count, by a calendar of the tenant.
    pub fn calendar(mut self, calendar: JobCalendar) -> Self {
        self.spec.calendar = Some(calendar);
        self
    }
    /// What one run takes of its executor.
    pub fn resources(mut self, resources: Resources) -> Self {
        self.spec.resources = resources;
        self
    }
}

impl From<Job> for JobSpec {
    fn from(job: Job) -> Self {
        job.spec
    }
}

/// Makes a builder of one kind of trigger, with the setters that it has.
macro_rules! trigger {
    ($(#[$doc:meta])* $name:ident of $variant:ident { $($(#[$fdoc:meta])* $setter:ident($field:ident: $type:ty) = $into:expr),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[must_use]
        pub struct $name(Trigger);
        impl $name {
            $($(#[$fdoc])*
            pub fn $setter(mut self, value: $type) -> Self {
                fn set<T>(field: &mut T, value: $type, into: impl FnOnce($type) -> T) {
                    *field = into(value);
                }
                // It was made as this variant and is never another.
                if let Trigger::$variant { $field, .. } = &mut self.0 {
                    set($field, value, $into);
                }
                self
            })*
        }
        impl From<$name> for Trigger {
            fn from(built: $name) -> Self {
                built.0
            }
        }
    };
}

/// Seconds that fit; more than that is refused by the node.
fn short(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

trigger!(/// A cron expression, in UTC unless told.
Cron of Cron {
    /// A name of the time zone database, such as `Europe/Berlin`.
    timezone(timezone: &str) = str::to_owned,
    /// How to read it, where the text alone leaves that open.
    dialect(dialect: Dialect) = |dialect| dialect,
    /// An instant that daylight saving removes.
    gap(gap: Gap) = |gap| gap,
    /// An instant that daylight saving repeats.
    overlap(overlap: Overlap) = |overlap| overlap,
    start_at(start_at: Timestamp) = Some,
    end_at(end_at: Timestamp) = Some,
    /// Each fire is late by up to this, whole seconds.
    jitter(jitter_sec: Duration) = short,
    misfire(misfire_policy: MisfirePolicy) = |policy| policy,
    /// Instants older than this count as missed, whole seconds.
    misfire_threshold(misfire_threshold_sec: Duration) = short,
    /// Instants that `FIRE_ALL_MISSED` makes up for at most.
    max_catch_up(max_catch_up: u32) = |most| most,
});

impl Cron {
    /// Five fields, or six with seconds first.
    pub fn new(expr: &str) -> Self {
        Self(Trigger::cron(expr))
    }
}

trigger!(/// Each so often, whatever the runs take.
Every of FixedRate {
    /// Due at this instant plus any number of periods.
    anchor_at(anchor_at: Timestamp) = Some,
    start_at(start_at: Timestamp) = Some,
    end_at(end_at: Timestamp) = Some,
    /// Each fire is late by up to this, whole seconds.
    jitter(jitter_sec: Duration) = short,
    misfire(misfire_policy: MisfirePolicy) = |policy| policy,
    /// Instants older than this count as missed, whole seconds.
    misfire_threshold(misfire_threshold_sec: Duration) = short,
    /// Instants that `FIRE_ALL_MISSED` makes up for at most.
    max_catch_up(max_catch_up: u32) = |most| most,
});

impl Every {
    pub fn new(every: Duration) -> Self {
        Self(Trigger::fixed_rate(seconds(every)))
    }
}

trigger!(/// So long after the run before has ended.
AfterEach of FixedDelay {
    start_at(start_at: Timestamp) = Some,
    end_at(end_at: Timestamp) = Some,
    misfire(misfire_policy: MisfirePolicy) = |policy| policy,
    /// Instants older than this count as missed, whole seconds.
    misfire_threshold(misfire_threshold_sec: Duration) = short,
});

impl AfterEach {
    pub fn new(delay: Duration) -> Self {
        Self(Trigger::fixed_delay(seconds(delay)))
    }
}

trigger!(/// Once.
Once of Once {
    misfire(misfire_policy: MisfirePolicy) = |policy| policy,
    /// Later than this it counts as missed, whole seconds.
    misfire_threshold(misfire_threshold_sec: Duration) = short,
});

impl Once {
    pub fn at(at: Timestamp) -> Self {
        Self(Trigger::once_at(at))
    }
    /// At a local time such as `2026-01-15 10:00:00` of a time zone. The node resolves it: a time that the clocks skip is
    /// the first instant after the gap, and of a time that comes twice it is the first. Fails for a text that is no
    /// time; one with an offset is an instant.
    pub fn at_local(at: &str, timezone: &str) -> Result<Self, String> {
        Ok(match at.parse()? {
            Moment::Instant(at) => Self::at(at),
            Moment::Local(at) => Self(Trigger::once_at_local(at, timezone)),
        })
    }
    /// Whole milliseconds, counted from when the node takes the job.
    pub fn after(delay: Duration) -> Self {
        Self(Trigger::once_after_ms(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)))
    }
    /// As soon as the node has stored the job.
    pub fn immediately() -> Self {
        Self::after(Duration::ZERO)
    }
}
