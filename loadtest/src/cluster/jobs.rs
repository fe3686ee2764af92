//! The jobs of a cluster's bench: FIXED_RATE, their instants spread over every millisecond, without an end: each is due as soon as it is
//! created, so that nobody has to guess how long creating takes. The load goes on until the nodes are ended.

use super::Size;
use crate::{
    limits::{CREATE_BATCH, CREATES_IN_FLIGHT},
    load::caller::Caller,
    run_dir::lines::now_us,
    workload::{CATCHES_UP, rate_at},
};
use campanile_schema::{
    ids::JobId,
    job::{ConcurrencyPolicy, JobSpec},
};
use std::ops::Range;
use tokio::task::JoinSet;

/// Begins each job's name: executors count by it.
pub const GROUP: &str = "load";

/// All jobs of a run, each told from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    count: u64,
    tenants: u64,
    every_s: u64,
    /// A past instant of job 0, milliseconds since 1970 UTC.
    base_ms: i64,
}

impl Jobs {
    /// As near to the rate as periods of whole seconds allow.
    pub fn new(size: &Size, now_ms: i64) -> Result<Self, String> {
        let every_s = (size.jobs as f64 / size.rate).round() as u64;
        if every_s == 0 {
            return Err(format!(
                "{} jobs that are due once a second at the most give no {} triggers/s: name more --jobs",
                size.jobs, size.rate
            ));
        }
        let base_ms = (now_ms.div_euclid(1000) - every_s as i64) * 1000;
        Ok(Self { count: size.jobs, tenants: size.tenants.max(1), every_s, base_ms })
    }

    pub fn tenants(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.tenants).map(|n| format!("tenant-{n}"))
    }

    /// Of all jobs, instants a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.every_s as f64
    }

    fn offset_ms(&self, n: u64) -> u64 {
        (u128::from(n) * u128::from(self.every_s * 1000) / u128::from(self.count)) as u64
    }

    pub fn spec(&self, n: u64) -> JobSpec {
        let trigger = rate_at((None, None), self.every_s, self.base_ms + self.offset_ms(n) as i64, CATCHES_UP);
        let mut spec = JobSpec::new(&format!("tenant-{}", n % self.tenants), &format!("{GROUP}/{n:07}"), trigger);
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        spec
    }

    /// Instants due in whole seconds since 1970 UTC, when all jobs are there.
    pub fn due_in(&self, seconds: Range<i64>) -> u64 {
        let begin_s = seconds.start - self.base_ms / 1000;
        let length_s = (seconds.end - seconds.start).max(0).unsigned_abs();
        let whole = length_s / self.every_s * self.count;
        let from_s = begin_s.rem_euclid(self.every_s as i64).unsigned_abs();
        let part_s = length_s % self.every_s;
        // Jobs whose offset lies below a second of the period.
        let below = |second: u64| (u128::from(second * self.count)).div_ceil(u128::from(self.every_s)) as u64;
        let until_s = from_s + part_s;
        let part = if until_s <= self.every_s {
            below(until_s) - below(from_s)
        } else {
            self.count - below(from_s) + below(until_s - self.every_s)
        };
        whole + part
    }
}

/// Creates all of them; their ids in no order, and how long it took, milliseconds.
pub async fn create(jobs: Jobs, caller: &Caller) -> Result<(Vec<JobId>, i64), String> {
    let (begin, mut told) = (now_us(), now_us());
    let (mut ids, mut next) = (Vec::new(), 0);
    let mut batches = JoinSet::new();
    while next < jobs.count || !batches.is_empty() {
        while next < jobs.count && batches.len() < CREATES_IN_FLIGHT {
            let upto = (next + CREATE_BATCH as u64).min(jobs.count);
            let specs: Vec<JobSpec> = (next..upto).map(|n| jobs.spec(n)).collect();
            let caller = caller.clone();
            next = upto;
            batches.spawn(async move { caller.create_many(&specs).await });
        }
        if let Some(batch) = batches.join_next().await {
            ids.extend(batch.map_err(|error| error.to_string())?.into_iter().flatten());
        }
        if now_us() - told > 10_000_000 {
            told = now_us();
            println!("    {} of {} jobs created", ids.len(), jobs.count);
        }
    }
    if ids.len() as u64 == jobs.count {
        return Ok((ids, (now_us() - begin) / 1000));
    }
    Err(format!("only {} of {} jobs were created; see the nodes' logs", ids.len(), jobs.count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_schema::job::Trigger;

    #[test]
    fn instants_of_whole_seconds_are_those_of_the_specs() {
        for (count, rate) in [(10, 10.0), (7, 2.0), (1_000, 300.0), (100, 33.0)] {
            let jobs = Jobs::new(&Size { jobs: count, rate, tenants: 3 }, 1_700_000_123_456).unwrap();
            let begin_s = 1_700_000_130;
            for seconds in [begin_s..begin_s, begin_s..begin_s + 1, begin_s + 2..begin_s + 9, begin_s..begin_s + 61] {
                let mut expected = 0;
                for n in 0..count {
                    let Trigger::FixedRate { every_sec, anchor_at, .. } = jobs.spec(n).trigger else {
                        panic!("FIXED_RATE")
                    };
                    let (anchor, every) = (anchor_at.unwrap().0, every_sec as i64 * 1000);
                    let upto = |s: i64| (s * 1000 - 1 - anchor).div_euclid(every);
                    expected += upto(seconds.end) - upto(seconds.start);
                }
                assert_eq!(
                    jobs.due_in(seconds.clone()),
                    expected.unsigned_abs(),
                    "{count} jobs at {rate}, {seconds:?}"
                );
            }
        }
    }

    #[test]
    fn tenants_share_the_jobs_and_a_rate_needs_enough_of_them() {
        let jobs = Jobs::new(&Size { jobs: 9, rate: 3.0, tenants: 3 }, 0).unwrap();
        let of = |tenant: &str| (0..9).filter(|n| jobs.spec(*n).tenant_id == tenant).count();
        assert_eq!(jobs.tenants().map(|tenant| of(&tenant)).collect::<Vec<_>>(), [3, 3, 3]);
        assert!((jobs.rate() - 3.0).abs() < 1e-9);
        assert!(Jobs::new(&Size { jobs: 10, rate: 100.0, tenants: 1 }, 0).unwrap_err().contains("more --jobs"));
    }
}
