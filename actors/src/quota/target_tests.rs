//! Quotas of targets beside those of their tenants, and the turns of low priorities.

use super::*;
use campanile_core::job::Need;
use campanile_schema::{
    ids::JobId,
    limits::STARTS_BY_PRIORITY,
    stored::{TargetTerms, target_key},
};

const TENANT: &str = "t";

fn run_at(run: u64, priority: u16, target: Option<&str>) -> Box<WaitingRun> {
    Box::new(WaitingRun {
        run: RunId(run),
        job: JobId(1),
        tenant: TENANT.into(),
        pool: "default".into(),
        priority,
        backfill: false,
        need: Need::Command,
        cpu: 0.0,
        memory_mb: 0,
        storage_mb: 0,
        since_ms: 0,
        target: target.map(Into::into),
        retry: false,
    })
}

fn of_target(concurrent: u32, rate: f64, terms: TargetTerms) -> TenantRecord {
    TenantRecord {
        tenant: target_key(TENANT, "db"),
        max_concurrent_runs: concurrent,
        max_triggers_per_sec: rate,
        target: Some(terms),
        ..TenantRecord::default()
    }
}

fn of_tenant(concurrent: u32) -> TenantRecord {
    TenantRecord { tenant: TENANT.to_owned(), max_concurrent_runs: concurrent, ..TenantRecord::default() }
}

fn open_quotas(limits: impl IntoIterator<Item = TenantRecord>) -> Quotas {
    let mut quotas = Quotas::new(Arc::default(), None);
    limits.into_iter().for_each(|limit| quotas.set(limit));
    quotas.tick();
    quotas
}

fn ids(granted: &[Box<WaitingRun>]) -> Vec<u64> {
    granted.iter().map(|waiting| waiting.run.0).collect()
}

fn why(quotas: &Quotas, run: u64) -> String {
    quotas.why(TENANT, RunId(run)).unwrap_or_default()
}

#[test]
fn a_run_that_waits_for_its_target_holds_nobody_up_and_no_permit() {
    let mut quotas = open_quotas([of_tenant(2), of_target(1, 0.0, TargetTerms::default())]);
    for run in 1..=3 {
        assert!(quotas.want(run_at(run, 0, Some("db"))).is_none());
    }
    assert!(quotas.want(run_at(4, 0, None)).is_none());
    assert_eq!(ids(&quotas.grant(0)), [1, 4], "the tenant has two permits, the target one");
    assert!(why(&quotas, 2).starts_with("TARGET_CONCURRENCY"), "{}", why(&quotas, 2));
    assert!(quotas.want(run_at(5, 0, None)).is_none());
    // Run 2 is the next of the target; its tenant has no permit for it.
    quotas.ended(TENANT, RunId(1), Verdict::Worked);
    assert_eq!(ids(&quotas.grant(0)), [2], "it keeps its place before run 5");
    assert!(why(&quotas, 5).starts_with("TENANT_CONCURRENCY"));
    quotas.ended(TENANT, RunId(4), Verdict::Worked);
    assert_eq!(ids(&quotas.grant(0)), [5]);
    quotas.dequeue(TENANT, RunId(3));
    quotas.ended(TENANT, RunId(2), Verdict::Worked);
    assert!(quotas.grant(0).is_empty(), "run 3 was given up");
    assert_eq!((quotas.parked.len(), quotas.uses.len()), (0, 0));
    let gauges = quotas.tenants.gauge(TENANT);
    assert_eq!(quotas.tenants.counts(&target_key(TENANT, "db")).running, 0);
    assert_eq!(gauges.running.load(Ordering::Relaxed), 1);
}

#[test]
fn neither_rate_nor_permits_of_a_target_are_saved_up_behind_a_pause() {
    let mut quotas = open_quotas([of_target(0, 2.0, TargetTerms::default())]);
    quotas.pause(TENANT, true);
    for run in 1..=9 {
        assert!(quotas.want(run_at(run, 0, Some("db"))).is_none());
    }
    for tick in 0..100 {
        quotas.tick();
        assert!(quotas.grant(1_000_000 + tick * 100).is_empty());
    }
    quotas.pause(TENANT, false);
    assert_eq!(ids(&quotas.grant(1_010_000)), [1, 2], "one second's worth");
    assert!(why(&quotas, 3).starts_with("TARGET_RATE"));
    quotas.tick();
    assert_eq!(ids(&quotas.grant(1_010_500)), [3]);
}

#[test]
fn a_permit_that_was_given_back_is_there_for_the_next_run() {
    let mut quotas = open_quotas([of_target(1, 0.0, TargetTerms::default())]);
    assert!(quotas.want(run_at(1, 0, Some("db"))).is_none());
    let granted = quotas.grant(0);
    granted.into_iter().for_each(|run| quotas.again(run));
    assert_eq!(quotas.uses.len(), 0);
    quotas.tick();
    assert_eq!(ids(&quotas.grant(0)), [1]);
    // Adopted after a restart, it is one more than the limit allows.
    quotas.adopt(TENANT, RunId(2), Some("db"));
    assert!(quotas.want(run_at(3, 0, Some("db"))).is_none());
    assert!(quotas.grant(0).is_empty());
    quotas.ended(TENANT, RunId(1), Verdict::Worked);
    assert!(quotas.grant(0).is_empty(), "a debt comes first");
    quotas.ended(TENANT, RunId(2), Verdict::Worked);
    assert_eq!(ids(&quotas.grant(0)), [3]);
}

#[test]
fn failures_open_the_breaker_and_the_first_attempt_afterwards_is_alone() {
    let terms = TargetTerms { min_attempts: 2, open_sec: 5, ..TargetTerms::default() };
    let mut quotas = open_quotas([of_target(0, 0.0, terms)]);
    for run in 1..=6 {
        assert!(quotas.want(run_at(run, 0, Some("db"))).is_none());
    }
    assert_eq!(quotas.grant(100_000).len(), 6);
    quotas.ended(TENANT, RunId(1), Verdict::Failed);
    quotas.ended(TENANT, RunId(2), Verdict::Failed);
    for run in 7..=9 {
        assert!(quotas.want(run_at(run, 0, Some("db"))).is_none());
    }
    assert!(quotas.want(run_at(10, 0, Some("other"))).is_none());
    assert_eq!(ids(&quotas.grant(100_000)), [10], "another target is not concerned");
    assert!(why(&quotas, 7).starts_with("TARGET_BREAKER_OPEN"));
    assert_eq!(quotas.tenants.counts(&target_key(TENANT, "db")).breaker, 2);
    quotas.tick();
    assert_eq!(ids(&quotas.grant(105_000)), [7]);
    assert!(why(&quotas, 8).starts_with("TARGET_RECOVERING"));
    quotas.ended(TENANT, RunId(3), Verdict::Failed);
    quotas.ended(TENANT, RunId(7), Verdict::Worked);
    assert_eq!(ids(&quotas.grant(105_100)), [8, 9], "what began before says nothing; what worked makes room for two");
}

#[test]
fn a_retry_without_a_budget_waits_and_first_attempts_go() {
    let terms = TargetTerms { retry_percent: 100, failure_percent: 0, ..TargetTerms::default() };
    let mut quotas = open_quotas([of_target(0, 0.0, terms)]);
    let retry = |run| Box::new(WaitingRun { retry: true, ..*run_at(run, 0, Some("db")) });
    for run in 1..=11 {
        assert!(quotas.want(retry(run)).is_none());
    }
    assert_eq!(quotas.grant(0).len(), 10, "the reserve");
    assert!(why(&quotas, 11).starts_with("TARGET_RETRY_BUDGET"));
    assert!(quotas.want(run_at(12, 0, Some("db"))).is_none());
    assert_eq!(ids(&quotas.grant(0)), [12]);
    quotas.tick();
    assert_eq!(ids(&quotas.grant(0)), [11], "the first attempt has paid for it");
}

/// Of 17 runs that get a permit at least one is the one that has waited longest; with a target or without one.
#[test]
fn a_low_priority_waits_and_not_for_ever() {
    for target in [None, Some("db")] {
        let mut quotas = open_quotas([of_tenant(1), of_target(1, 0.0, TargetTerms::default())]);
        assert!(quotas.want(run_at(1, 0, target)).is_none());
        let mut low = None;
        let mut running: Option<RunId> = None;
        for turn in 0..40 {
            // Two of a high priority wait all the time.
            assert!(quotas.want(run_at(100 + turn, 900, target)).is_none());
            if let Some(run) = running.take() {
                quotas.ended(TENANT, run, Verdict::Worked);
            }
            let granted = quotas.grant(turn as i64);
            assert_eq!(granted.len(), 1, "{target:?}");
            running = Some(granted[0].run);
            if granted[0].run == RunId(1) {
                low = Some(turn);
            }
            assert!(quotas.want(run_at(1_000 + turn, 900, target)).is_none());
        }
        let low = low.expect("it has its turn");
        assert!((1..=u64::from(STARTS_BY_PRIORITY)).contains(&low), "{target:?}: turn {low}");
    }
}

#[test]
fn a_backfill_has_no_turn_for_its_age() {
    let mut quotas = open_quotas([of_tenant(1)]);
    let back = Box::new(WaitingRun { backfill: true, ..*run_at(1, 1_000, None) });
    assert!(quotas.want(back).is_none());
    for turn in 0..40 {
        assert!(quotas.want(run_at(100 + turn, 0, None)).is_none());
        assert_eq!(ids(&quotas.grant(0)), [100 + turn]);
        assert!(quotas.grant_back(0, 8).is_empty());
        quotas.ended(TENANT, RunId(100 + turn), Verdict::Worked);
    }
    assert_eq!(ids(&quotas.grant_back(0, 8)), [1]);
}
