//! The jobs of a run: what kinds, how often due, under which policies. All schedules are ones that the oracle can follow, and all
//! end by themselves at the end of the run, so that the load drains without a call.

pub mod dags;
pub mod worked;

use crate::random::Random;
use campanile_schema::{
    job::{Backoff, ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, RetryPolicy, Trigger},
    payload::Payload,
    time::Timestamp,
};

/// What a run asks for.
#[derive(Clone, Debug)]
pub struct Plan {
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    pub rate: f64,
    /// First and last possible instant, milliseconds since 1970 UTC.
    pub start_ms: i64,
    pub end_ms: i64,
    pub pool: String,
    pub tenant: String,
    /// Begins each job's name.
    pub prefix: String,
    pub seed: u64,
}

const POLICIES: [ConcurrencyPolicy; 10] = [
    ConcurrencyPolicy::Allow,
    ConcurrencyPolicy::Allow,
    ConcurrencyPolicy::Allow,
    ConcurrencyPolicy::Allow,
    ConcurrencyPolicy::Forbid,
    ConcurrencyPolicy::Forbid,
    ConcurrencyPolicy::Forbid,
    ConcurrencyPolicy::Forbid,
    ConcurrencyPolicy::QueueOne,
    ConcurrencyPolicy::Replace,
];
const MISFIRES: [MisfirePolicy; 3] = [MisfirePolicy::Skip, MisfirePolicy::FireOnceNow, MisfirePolicy::FireAllMissed];
/// Below most outages, around them, and above all.
const THRESHOLDS: [u32; 4] = [1, 2, 5, 60];
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York"];

/// Shares of the mixed plan, percent of the jobs. The rest is FIXED_RATE.
const MANUAL: u64 = 4;
const ONCE: u64 = 6;
const FIXED_DELAY: u64 = 2;
const CRON: u64 = 8;
/// A body that takes so long is long, milliseconds.
const LONG_MS: u64 = 1_000;
/// Seconds between runs of FIXED_DELAY jobs.
const DELAY_SEC: u64 = 5;

/// A mixed plan: cron of seconds and minutes in several zones, FIXED_RATE with anchors spread over the milliseconds, ONCE,
/// FIXED_DELAY and MANUAL, under all policies.
pub fn mixed(plan: &Plan) -> Vec<JobSpec> {
    let mut random = Random::new(plan.seed);
    let share = |percent: u64| (plan.jobs * percent / 100) as f64;
    let seconds = ((plan.end_ms - plan.start_ms) as f64 / 1000.0).max(1.0);
    let others = share(CRON) * cron_rate() + share(ONCE) / seconds + share(FIXED_DELAY) / DELAY_SEC as f64;
    let rate_jobs = share(100 - MANUAL - ONCE - FIXED_DELAY - CRON);
    let every_sec = ((rate_jobs / (plan.rate - others).max(1.0)) as u64).max(1);
    (0..plan.jobs)
        .map(|n| {
            let kind = n * 100 / plan.jobs.max(1);
            let trigger = if kind < MANUAL {
                Trigger::Manual {}
            } else if kind < MANUAL + ONCE {
                once(plan, &mut random)
            } else if kind < MANUAL + ONCE + FIXED_DELAY {
                fixed_delay(plan, &mut random)
            } else if kind < MANUAL + ONCE + FIXED_DELAY + CRON {
                cron(plan, &mut random)
            } else {
                let anchor = plan.start_ms + random.below(every_sec * 1000) as i64;
                fixed_rate(plan, every_sec, anchor, &mut random)
            };
            let mut spec = spec(plan, n, trigger);
            vary(&mut spec, &mut random);
            spec
        })
        .collect()
}

/// Only FIXED_RATE jobs without a body to speak of, their instants spread evenly over every millisecond: what `bench` measures.
pub fn even(plan: &Plan) -> Vec<JobSpec> {
    let every_sec = ((plan.jobs as f64 / plan.rate).round() as u64).max(1);
    (0..plan.jobs)
        .map(|n| {
            let anchor = plan.start_ms + (n * every_sec * 1000 / plan.jobs.max(1)) as i64;
            let mut spec = spec(plan, n, rate_at(window(plan), every_sec, anchor, CATCHES_UP));
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            spec
        })
        .collect()
}

/// Gives a job patience with planned moves of its shard: what is due meanwhile is late, and not missed, for so long, seconds.
pub fn patient(spec: &mut JobSpec, patience_sec: u32) {
    match &mut spec.trigger {
        Trigger::Cron { misfire_threshold_sec, .. }
        | Trigger::FixedRate { misfire_threshold_sec, .. }
        | Trigger::FixedDelay { misfire_threshold_sec, .. }
        | Trigger::Once { misfire_threshold_sec, .. } => {
            *misfire_threshold_sec = patience_sec.max(*misfire_threshold_sec);
        }
        Trigger::Manual {} => {}
    }
}

/// Tenant of the jobs that [`watched`] puts under a quota, and how many of their bodies may run at once.
pub const TIGHT: (&str, u32) = ("tight", 4);

/// Few jobs that make policies decide all the time: a tenant that is near its quota always and over it after each outage, and jobs
/// whose bodies last longer than their period under each policy that allows one body at once.
pub fn watched(plan: &Plan) -> Vec<JobSpec> {
    // Jobs, their period in seconds, their bodies in milliseconds: 3 of the quota's 4 on average.
    const QUOTA: (u64, u64, u64) = (50, 5, 300);
    const BUSY: (u64, u64, u64) = (12, 1, 1_700);
    const ONE_AT_ONCE: [ConcurrencyPolicy; 3] =
        [ConcurrencyPolicy::Forbid, ConcurrencyPolicy::QueueOne, ConcurrencyPolicy::Replace];
    let mut random = Random::new(plan.seed ^ 0x7761_7463);
    let mut jobs = |plan: &Plan, (count, every_sec, body_ms): (u64, u64, u64), policies: &[ConcurrencyPolicy]| {
        (0..count)
            .zip(policies.iter().copied().cycle())
            .map(|(n, policy)| {
                let anchor = plan.start_ms + random.below(every_sec * 1000) as i64;
                let misfires = (*random.one_of(&[MisfirePolicy::Skip, MisfirePolicy::FireOnceNow]), 2);
                let mut spec = spec(plan, n, rate_at(window(plan), every_sec, anchor, misfires));
                spec.concurrency_policy = policy;
                spec.params = Payload(format!("{{\"bodyMs\":{body_ms}}}"));
                spec
            })
            .collect::<Vec<_>>()
    };
    let tight = Plan { tenant: TIGHT.0.to_owned(), prefix: format!("{}-tight", plan.prefix), ..plan.clone() };
    let busy = Plan { prefix: format!("{}-busy", plan.prefix), ..plan.clone() };
    let mut all = jobs(&tight, QUOTA, &[ConcurrencyPolicy::Allow]);
    all.extend(jobs(&busy, BUSY, &ONE_AT_ONCE));
    all
}

/// Tenant whose runs a second are limited, and to how many.
pub const METERED: (&str, f64) = ("metered", 10.0);

/// Jobs of two tenants that want more than they may all the time: [`TIGHT`] a fifth more bodies at once, and [`METERED`] twice its rate. What waits is
/// worked off after the end.
pub fn limited(plan: &Plan) -> Vec<JobSpec> {
    // Jobs, their period in seconds, their bodies in milliseconds.
    const AT_ONCE: (u64, u64, u64) = (60, 5, 400);
    const A_SECOND: (u64, u64, u64) = (100, 5, 0);
    let mut random = Random::new(plan.seed ^ 0x6c69_6d69);
    let mut all = Vec::new();
    for (tenant, (count, every_sec, body_ms)) in [(TIGHT.0, AT_ONCE), (METERED.0, A_SECOND)] {
        let plan = Plan { tenant: tenant.to_owned(), prefix: format!("{}-{tenant}", plan.prefix), ..plan.clone() };
        for n in 0..count {
            let anchor = plan.start_ms + random.below(every_sec * 1000) as i64;
            let mut spec = spec(&plan, n, rate_at(window(&plan), every_sec, anchor, (MisfirePolicy::FireOnceNow, 5)));
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            spec.params = Payload(format!("{{\"bodyMs\":{body_ms}}}"));
            all.push(spec);
        }
    }
    all
}

/// One ONCE job for each instant, the instants spread evenly over the window: `bench --once`.
pub fn even_once(plan: &Plan) -> Vec<JobSpec> {
    let window_us = (plan.end_ms - plan.start_ms + 1).unsigned_abs() * 1000;
    (0..plan.jobs)
        .map(|n| {
            let at = plan.start_ms + (n * window_us / plan.jobs.max(1) / 1000) as i64;
            let trigger = Trigger::Once {
                at: Some(Timestamp(at).into()),
                delay_sec: None,
                delay_ms: None,
                timezone: None,
                misfire_policy: MisfirePolicy::FireOnceNow,
                misfire_threshold_sec: 60,
            };
            let mut spec = spec(plan, n, trigger);
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            spec
        })
        .collect()
}

/// One FIXED_RATE job of the caller's choice, for what is created while the run is on.
pub fn extra(plan: &Plan, n: u64, every_sec: u64, random: &mut Random) -> JobSpec {
    let anchor = plan.start_ms + random.below(every_sec * 1000) as i64;
    let mut spec = spec(plan, n, fixed_rate(plan, every_sec, anchor, random));
    vary(&mut spec, random);
    spec
}

/// Numbers have one width, so that no name is a part of another.
fn spec(plan: &Plan, n: u64, trigger: Trigger) -> JobSpec {
    let mut spec = JobSpec::new(&plan.tenant, &format!("{}/{n:07}", plan.prefix), trigger);
    spec.executor_selector.clone_from(&plan.pool);
    spec.timeout_sec = 60;
    spec.retry_policy = RetryPolicy {
        max_attempts: 3,
        backoff: Backoff::Fixed,
        base_delay_sec: 0.5,
        max_delay_sec: 5.0,
        jitter: 0.2,
        max_elapsed_sec: None,
    };
    spec
}

/// One run after the other through a backlog of long bodies would outlast the run.
fn catch_up_at_once(trigger: &mut Trigger) {
    match trigger {
        Trigger::Cron { misfire_policy, .. } | Trigger::FixedRate { misfire_policy, .. }
            if *misfire_policy == MisfirePolicy::FireAllMissed =>
        {
            *misfire_policy = MisfirePolicy::FireOnceNow;
        }
        Trigger::Cron { .. }
        | Trigger::FixedRate { .. }
        | Trigger::FixedDelay { .. }
        | Trigger::Once { .. }
        | Trigger::Manual {} => {}
    }
}

fn vary(spec: &mut JobSpec, random: &mut Random) {
    spec.concurrency_policy = *random.one_of(&POLICIES);
    spec.idempotent = !random.percent(1);
    spec.priority = *random.one_of(&[50, 100, 500]);
    let body_ms = match random.below(100) {
        // Longer than many periods, so that concurrency policies have something to decide, and longer than a restart.
        0 => random.between(LONG_MS, 6_000),
        1..=10 => random.between(5, 200),
        _ => 0,
    };
    if body_ms >= LONG_MS && spec.concurrency_policy != ConcurrencyPolicy::Allow {
        catch_up_at_once(&mut spec.trigger);
    }
    if body_ms > 0 {
        spec.params = Payload(format!("{{\"bodyMs\":{body_ms}}}"));
    }
}

/// When a schedule begins and ends.
pub type Window = (Option<Timestamp>, Option<Timestamp>);

/// Each instant fires, however late: what loads have whose every instant is counted.
pub const CATCHES_UP: (MisfirePolicy, u32) = (MisfirePolicy::FireAllMissed, 60);

fn window(plan: &Plan) -> Window {
    (Some(Timestamp(plan.start_ms)), Some(Timestamp(plan.end_ms)))
}

/// Instants that a job catches up at once, count.
const MAX_CATCH_UP: u32 = 1000;

/// FIXED_RATE with its anchor in milliseconds since 1970 UTC; the misfire policy and its threshold, seconds.
pub fn rate_at(
    (start_at, end_at): Window,
    every_sec: u64,
    anchor: i64,
    (misfire_policy, misfire_threshold_sec): (MisfirePolicy, u32),
) -> Trigger {
    Trigger::FixedRate {
        every_sec,
        anchor_at: Some(Timestamp(anchor)),
        start_at,
        end_at,
        jitter_sec: 0,
        misfire_policy,
        misfire_threshold_sec,
        max_catch_up: MAX_CATCH_UP,
    }
}

/// CRON; the misfire policy and its threshold, seconds.
pub fn cron_at(
    (start_at, end_at): Window,
    expr: String,
    dialect: Dialect,
    zone: &str,
    (misfire_policy, misfire_threshold_sec): (MisfirePolicy, u32),
) -> Trigger {
    Trigger::Cron {
        expr,
        dialect,
        timezone: zone.to_owned(),
        gap: Gap::Shift,
        overlap: Overlap::First,
        start_at,
        end_at,
        jitter_sec: 0,
        misfire_policy,
        misfire_threshold_sec,
        max_catch_up: MAX_CATCH_UP,
    }
}

fn fixed_rate(plan: &Plan, every_sec: u64, anchor: i64, random: &mut Random) -> Trigger {
    rate_at(window(plan), every_sec, anchor, (*random.one_of(&MISFIRES), *random.one_of(&THRESHOLDS)))
}

fn fixed_delay(plan: &Plan, random: &mut Random) -> Trigger {
    let (start_at, end_at) = window(plan);
    Trigger::FixedDelay {
        every_sec: DELAY_SEC,
        start_at,
        end_at,
        misfire_policy: *random.one_of(&MISFIRES),
        misfire_threshold_sec: 60,
    }
}

fn once(plan: &Plan, random: &mut Random) -> Trigger {
    let at = plan.start_ms + random.below((plan.end_ms - plan.start_ms).unsigned_abs().max(1)) as i64;
    Trigger::Once {
        at: Some(Timestamp(at).into()),
        delay_sec: None,
        delay_ms: None,
        timezone: None,
        misfire_policy: *random.one_of(&[MisfirePolicy::Skip, MisfirePolicy::FireOnceNow]),
        misfire_threshold_sec: *random.one_of(&THRESHOLDS),
    }
}

/// (Expression, weight, instants per second); seconds of `S` are drawn.
const EXPRESSIONS: [(&str, u64, f64); 6] = [
    ("* * * * * *", 10, 1.0),
    ("*/5 * * * * *", 30, 0.2),
    ("*/10 * * * * *", 25, 0.1),
    ("S * * * * *", 20, 1.0 / 60.0),
    ("S,S * * * * *", 10, 2.0 / 60.0),
    ("* * * * *", 5, 1.0 / 60.0),
];

/// Instants per second of one cron job, on average.
fn cron_rate() -> f64 {
    EXPRESSIONS.iter().map(|(_, weight, rate)| *weight as f64 / 100.0 * rate).sum()
}

fn cron(plan: &Plan, random: &mut Random) -> Trigger {
    let mut draw = random.below(100);
    let chosen = EXPRESSIONS.iter().find(|(_, weight, _)| {
        let hit = draw < *weight;
        draw = draw.saturating_sub(*weight);
        hit
    });
    let mut expr = chosen.map_or("* * * * *", |(text, _, _)| *text).to_owned();
    // A schedule without an instant in its window is refused.
    let is_short = plan.end_ms - plan.start_ms <= 60_000;
    if is_short && (expr.contains('S') || expr == "* * * * *") {
        expr = "*/10 * * * * *".to_owned();
    }
    // Two draws in different halves of the minute, in order.
    for half in [0, 30] {
        if expr.contains('S') {
            expr = expr.replacen('S', &(half + random.below(30)).to_string(), 1);
        }
    }
    let zone = *random.one_of(&ZONES);
    let misfire = (*random.one_of(&MISFIRES), *random.one_of(&THRESHOLDS));
    cron_at(window(plan), expr, Dialect::Auto, zone, misfire)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::checker::Oracle;

    /// 2026-02-02T02:40:00Z.
    const T0: i64 = 1_770_000_000_000;

    fn plan(jobs: u64, rate: f64) -> Plan {
        let text = |t: &str| t.to_owned();
        Plan {
            jobs,
            rate,
            start_ms: T0,
            end_ms: T0 + 60_000,
            pool: text("p"),
            tenant: text("default"),
            prefix: text("m"),
            seed: 1,
        }
    }

    fn instants(specs: &[JobSpec]) -> Vec<i64> {
        let mut oracle = Oracle::new(T0 - 1, T0 + 60_000);
        specs.iter().filter_map(|s| oracle.due(s, T0 - 1, T0 + 60_000).unwrap()).flatten().collect()
    }

    #[test]
    fn a_mixed_plan_is_checkable_and_due_about_as_often_as_asked() {
        let specs = mixed(&plan(20_000, 2_000.0));
        assert_eq!(specs.len(), 20_000);
        let rate = instants(&specs).len() as f64 / 60.0;
        assert!((1_900.0..2_300.0).contains(&rate), "{rate} instants per second");
        for policy in ConcurrencyPolicy::ALL {
            assert!(specs.iter().any(|s| s.concurrency_policy == *policy));
        }
        assert_eq!(specs, mixed(&plan(20_000, 2_000.0)), "the seed decides");
    }

    #[test]
    fn an_even_plan_fills_every_millisecond_alike() {
        let mut all = instants(&even(&plan(10_000, 2_000.0)));
        all.sort_unstable();
        // Both ends of the window belong to it.
        assert!((120_000..=120_002).contains(&all.len()), "{}", all.len());
        let mut in_ms = [0_u32; 1000];
        all.iter().filter(|t| **t < T0 + 60_000).for_each(|t| in_ms[(t - T0) as usize % 1000] += 1);
        assert!(in_ms.iter().all(|n| *n == 120), "{:?}", in_ms.iter().max());
    }

    #[test]
    fn an_even_once_plan_has_each_instant_of_the_window_once() {
        let end_ms = T0 + 59_999;
        let all = instants(&even_once(&Plan { end_ms, ..plan(120_000, 2_000.0) }));
        assert_eq!((all.len(), all.iter().min(), all.iter().max()), (120_000, Some(&T0), Some(&end_ms)));
        let mut in_ms = [0_u32; 1000];
        all.iter().for_each(|t| in_ms[(t - T0) as usize % 1000] += 1);
        assert!(in_ms.iter().all(|n| *n == 120), "{:?}", in_ms.iter().max());
    }
}
