//! What a job of the test is, and when it is due by arithmetic that shares nothing with the core.

use crate::random::Random;
use campanile_schema::{
    job::{ConcurrencyPolicy, Dialect, Gap, JobSpec, MisfirePolicy, Overlap, RetryPolicy, Trigger},
    payload::Payload,
    time::Timestamp,
};

/// When a job is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    EverySecond,
    Rate { every_sec: u64, anchor_ms: i64 },
    Delay { every_sec: u64 },
    Once { at_ms: i64 },
    ByHand,
}

/// One version of a job.
#[derive(Clone, Debug)]
pub struct Plan {
    pub when: When,
    misfire: MisfirePolicy,
    threshold_sec: u32,
    concurrency: ConcurrencyPolicy,
    attempts: u32,
    timeout_sec: u64,
    idempotent: bool,
    /// Told apart from every other version of every job by this.
    pub mark: u64,
}

impl Plan {
    pub fn draw(random: &mut Random, now_ms: i64) -> Self {
        let when = match random.below(12) {
            0..=2 => When::EverySecond,
            3..=4 => {
                When::Rate { every_sec: random.between(1, 7), anchor_ms: now_ms - 5_000 + random.below(9_000) as i64 }
            }
            5 => When::Delay { every_sec: random.between(1, 4) },
            6 => When::Once { at_ms: now_ms + random.between(100, 6_000) as i64 },
            _ => When::ByHand,
        };
        Self {
            when,
            misfire: *random.pick(MisfirePolicy::ALL).expect("not empty"),
            threshold_sec: random.between(1, 6) as u32,
            concurrency: *random.pick(ConcurrencyPolicy::ALL).expect("not empty"),
            attempts: random.between(1, 3) as u32,
            timeout_sec: if random.one_in(4) { random.between(2, 8) } else { 3_600 },
            idempotent: !random.one_in(5),
            mark: random.below(1 << 40),
        }
    }

    pub fn spec(&self, tenant: &str, name: &str) -> JobSpec {
        let (misfire_policy, misfire_threshold_sec) = (self.misfire, self.threshold_sec);
        let (start_at, end_at, jitter_sec, max_catch_up) = (None, None, 0, 6);
        let trigger = match self.when {
            When::EverySecond => Trigger::Cron {
                expr: "* * * * * *".to_owned(),
                dialect: Dialect::Unix,
                timezone: "UTC".to_owned(),
                gap: Gap::default(),
                overlap: Overlap::default(),
                start_at,
                end_at,
                jitter_sec,
                misfire_policy,
                misfire_threshold_sec,
                max_catch_up,
            },
            When::Rate { every_sec, anchor_ms } => Trigger::FixedRate {
                every_sec,
                anchor_at: Some(Timestamp(anchor_ms)),
                start_at,
                end_at,
                jitter_sec,
                misfire_policy,
                misfire_threshold_sec,
                max_catch_up,
            },
            When::Delay { every_sec } => {
                Trigger::FixedDelay { every_sec, start_at, end_at, misfire_policy, misfire_threshold_sec }
            }
            When::Once { at_ms } => Trigger::Once {
                at: Some(Timestamp(at_ms).into()),
                delay_sec: None,
                delay_ms: None,
                timezone: None,
                misfire_policy,
                misfire_threshold_sec,
            },
            When::ByHand => Trigger::Manual {},
        };
        let mut spec = JobSpec::new(tenant, name, trigger);
        spec.concurrency_policy = self.concurrency;
        spec.retry_policy = RetryPolicy {
            max_attempts: self.attempts,
            base_delay_sec: 0.5,
            max_delay_sec: 2.0,
            ..RetryPolicy::default()
        };
        spec.timeout_sec = self.timeout_sec;
        spec.idempotent = self.idempotent;
        spec.params = Payload(format!("{{\"mark\":{}}}", self.mark));
        spec
    }

    /// Where the ledger of a job that is created with this plan begins.
    pub fn ledger_from(&self, created_ms: i64) -> i64 {
        match self.when {
            When::Once { at_ms } => created_ms.min(at_ms - 1),
            When::EverySecond | When::Rate { .. } | When::Delay { .. } | When::ByHand => created_ms,
        }
    }

    /// Due instants in `(after, until]`; None when they depend on when runs ended.
    pub fn instants(&self, after: i64, until: i64) -> Option<Vec<i64>> {
        let multiples = |every: i64, anchor: i64| -> Vec<i64> {
            let first = (after - anchor).div_euclid(every) + 1;
            let last = (until - anchor).div_euclid(every);
            (first.max(0)..=last).map(|n| anchor + n * every).collect()
        };
        match self.when {
            When::EverySecond => Some(multiples(1_000, 0)),
            When::Rate { every_sec, anchor_ms } => Some(multiples(every_sec as i64 * 1_000, anchor_ms)),
            When::Delay { .. } => None,
            When::Once { at_ms } => Some(Vec::from_iter((after < at_ms && at_ms <= until).then_some(at_ms))),
            When::ByHand => Some(Vec::new()),
        }
    }
}
