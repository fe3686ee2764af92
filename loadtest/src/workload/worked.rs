//! The few jobs that operators change during a run (`people.rs`). Each has one role, so that every verb of the API
//! meets jobs for which it means something.

use super::{Plan, Random, rate_at, spec, window};
use campanile_schema::{
    ids::JobId,
    job::{Backoff, ConcurrencyPolicy, Hook, JobSpec, MisfirePolicy, RetryPolicy, Trigger},
    payload::Payload,
    time::Timestamp,
};

/// What a job is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its runs are triggered and canceled, before and while their bodies run.
    Canceled,
    /// Its attempts fail until none is left: its runs are retried, or come back from the dead letters, or are taken off them.
    Fails,
    /// Its bodies last longer than its time-out.
    TimesOut,
    /// It is not idempotent: after the loss of an executor its runs wait for a person.
    NotIdempotent,
    /// It has secrets, and triggers lay params over its own.
    Secret,
    /// Its specification is replaced again and again, its anchor too.
    Edited,
    /// Its starts are spread over some seconds.
    Jittered,
    /// It is due once, some time after it was created.
    Delayed,
    /// Of a tenant that is paused and resumed.
    Paced,
    /// It is paused and resumed itself.
    Paused,
    /// It is deleted in the middle of its schedule.
    Deleted,
}

/// Each role, and how many jobs have it.
const ROLES: [(Role, u64); 11] = [
    (Role::Canceled, 6),
    (Role::Fails, 6),
    (Role::TimesOut, 3),
    // Many and long, so that whichever executor dies holds one.
    (Role::NotIdempotent, 24),
    (Role::Secret, 4),
    (Role::Edited, 8),
    (Role::Jittered, 6),
    (Role::Delayed, 6),
    (Role::Paced, 10),
    (Role::Paused, 6),
    (Role::Deleted, 6),
];

/// Tenant of the jobs of [`Role::Paced`].
pub const PACED: &str = "paced";
/// In the names of the jobs that [`backfilled`] makes.
pub const BACKFILLED: &str = "backfilled";
/// In the names of the jobs that [`bulked`] makes, and the label of those that are paused together.
pub const BULKED: &str = "bulked";
/// Jobs that one bulk operation pauses and resumes: two pages and a part of one. Beside them some whose runs fail.
const PAUSED_TOGETHER: u64 = 150;
const FAILING: u64 = 3;
/// Name of the secret of jobs that have one.
pub const SECRET: &str = "loadtestKey";

/// Period of scheduled ones, seconds; how far starts are spread; how many seconds after its creation a job with a delay is due.
const EVERY_SEC: u64 = 2;
const JITTER_SEC: u32 = 2;
const DELAY_SEC: (u64, u64) = (5, 25);
/// How long before the load the schedules of jobs begin whose past is run, milliseconds.
const PAST_MS: i64 = 120_000;
/// Bodies, milliseconds.
const CANCELED_MS: u64 = 1_200;
const TOO_LONG_MS: u64 = 4_000;
const NOT_IDEMPOTENT_MS: u64 = 5_000;

pub fn worked(plan: &Plan) -> Vec<(Role, JobSpec)> {
    let mut random = Random::new(plan.seed ^ 0x776f_726b);
    let plan = Plan { prefix: format!("{}-worked", plan.prefix), ..plan.clone() };
    let roles = ROLES.into_iter().flat_map(|(role, count)| (0..count).map(move |_| role));
    (0_u64..).zip(roles).map(|(n, role)| (role, of_role(&plan, n, role, &mut random))).collect()
}

/// A job that the failures of [`Role::Fails`] start as their hook; nobody triggers it.
pub fn hooked(plan: &Plan, worked: &mut [(Role, JobSpec)]) -> JobSpec {
    let plan = Plan { prefix: format!("{}-hooked", plan.prefix), ..plan.clone() };
    let hooked = JobSpec { concurrency_policy: ConcurrencyPolicy::Allow, ..spec(&plan, 0, Trigger::Manual {}) };
    for (_, spec) in worked.iter_mut().filter(|(role, _)| *role == Role::Fails) {
        spec.hooks.on_failure = vec![Hook::new(hooked.name.clone())];
    }
    hooked
}

/// Jobs whose past is run as backfills. Their instants before their creation are missing, and so are those of each outage: an instant
/// that nobody decided within a second is skipped.
pub fn backfilled(plan: &Plan) -> Vec<JobSpec> {
    let plan = Plan { prefix: format!("{}-{BACKFILLED}", plan.prefix), ..plan.clone() };
    let policies = [ConcurrencyPolicy::Allow, ConcurrencyPolicy::Forbid, ConcurrencyPolicy::QueueOne];
    let job = |(n, concurrency_policy)| {
        let window = (None, Some(Timestamp(plan.end_ms)));
        // An anchor in the future would be the first instant.
        let trigger = rate_at(window, EVERY_SEC, plan.start_ms - PAST_MS, (MisfirePolicy::Skip, 1));
        JobSpec { concurrency_policy, params: Payload("{\"bodyMs\":5}".to_owned()), ..spec(&plan, n, trigger) }
    };
    (0_u64..).zip(policies.into_iter().cycle().take(6)).map(job).collect()
}

/// Jobs that are paused and resumed by bulk operations, and behind them jobs whose failed runs are retried by such.
pub fn bulked(plan: &Plan) -> (Vec<JobSpec>, Vec<JobSpec>) {
    let plan = Plan { prefix: format!("{}-{BULKED}", plan.prefix), ..plan.clone() };
    let mut random = Random::new(plan.seed ^ 0x6275_6c6b);
    let together = (0..PAUSED_TOGETHER).map(|n| {
        let mut job = scheduled(&plan, n, 0, &mut random);
        job.labels.insert(BULKED.to_owned(), "yes".to_owned());
        job
    });
    let together = together.collect();
    let failing = Plan { prefix: format!("{}-failing", plan.prefix), ..plan };
    let failing = (0..FAILING).map(|n| of_role(&failing, n, Role::Fails, &mut random));
    (together, failing.collect())
}

/// The jobs with the ids that they got.
pub fn with_ids(worked: Vec<(Role, JobSpec)>, ids: &[JobId]) -> Vec<(Role, JobId, JobSpec)> {
    worked.into_iter().zip(ids).map(|((role, spec), id)| (role, *id, spec)).collect()
}

fn of_role(plan: &Plan, n: u64, role: Role, random: &mut Random) -> JobSpec {
    let by_hand = |params: String| {
        let mut job = spec(plan, n, Trigger::Manual {});
        job.params = Payload(params);
        job.concurrency_policy = ConcurrencyPolicy::Allow;
        job
    };
    match role {
        Role::Canceled => by_hand(format!("{{\"bodyMs\":{CANCELED_MS}}}")),
        Role::Fails => JobSpec { retry_policy: short_retries(2), ..by_hand("{\"failPercent\":100}".to_owned()) },
        Role::TimesOut => JobSpec {
            timeout_sec: 1,
            retry_policy: short_retries(1),
            ..by_hand(format!("{{\"bodyMs\":{TOO_LONG_MS}}}"))
        },
        Role::NotIdempotent => {
            JobSpec { idempotent: false, ..by_hand(format!("{{\"bodyMs\":{NOT_IDEMPOTENT_MS},\"failPercent\":0}}")) }
        }
        Role::Secret => {
            let mut job = by_hand("{\"bodyMs\":5,\"kept\":\"as it was\"}".to_owned());
            let value = format!("s3cret/{}%\"{n}", random.below(1_000_000));
            job.secret_params.insert(SECRET.to_owned(), value);
            job
        }
        Role::Edited | Role::Paused | Role::Deleted => scheduled(plan, n, 0, random),
        Role::Jittered => scheduled(plan, n, JITTER_SEC, random),
        Role::Delayed => {
            let trigger = Trigger::Once {
                at: None,
                delay_sec: Some(random.between(DELAY_SEC.0, DELAY_SEC.1)),
                delay_ms: None,
                timezone: None,
                misfire_policy: MisfirePolicy::FireOnceNow,
                misfire_threshold_sec: 60,
            };
            JobSpec { concurrency_policy: ConcurrencyPolicy::Allow, ..spec(plan, n, trigger) }
        }
        Role::Paced => {
            let plan = Plan { tenant: PACED.to_owned(), ..plan.clone() };
            scheduled(&plan, n, 0, random)
        }
    }
}

fn scheduled(plan: &Plan, n: u64, jitter_sec: u32, random: &mut Random) -> JobSpec {
    let anchor = plan.start_ms + random.below(EVERY_SEC * 1000) as i64;
    let mut trigger = rate_at(window(plan), EVERY_SEC, anchor, (MisfirePolicy::FireOnceNow, 60));
    if let Trigger::FixedRate { jitter_sec: spread, .. } = &mut trigger {
        *spread = jitter_sec;
    }
    let mut job = spec(plan, n, trigger);
    job.concurrency_policy = ConcurrencyPolicy::Allow;
    job.params = Payload("{\"bodyMs\":5}".to_owned());
    job
}

fn short_retries(max_attempts: u32) -> RetryPolicy {
    RetryPolicy {
        max_attempts,
        backoff: Backoff::Exponential,
        base_delay_sec: 0.3,
        max_delay_sec: 2.0,
        jitter: 0.2,
        max_elapsed_sec: None,
    }
}

/// What an edit makes of a job: another body, another priority, and every second time another anchor.
pub fn edited(spec: &JobSpec, random: &mut Random) -> JobSpec {
    let mut new = spec.clone();
    new.params = Payload(format!("{{\"bodyMs\":{}}}", random.between(0, 40)));
    new.priority = *random.one_of(&[50, 100, 500]);
    if random.percent(50)
        && let Trigger::FixedRate { anchor_at: Some(anchor), every_sec, .. } = &mut new.trigger
    {
        anchor.0 += random.below(*every_sec * 1000) as i64;
    }
    new
}
