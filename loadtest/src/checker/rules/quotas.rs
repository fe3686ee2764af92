//! A tenant never has more bodies running at once than its quota, counted from the executors' own files.
//!
//! Nor do far more of its runs begin than its rate allows. A run that waited for an executor starts later than its permit was given, and nodes divide
//! a rate among each other to within a second, so this is judged over a long stretch and with room: what it finds is a limit that each node has alone.
//!
//! Left aside at once: bodies that ran across a restart of the node (taken back above the limit if need be), and those whose lease was
//! lost or whose time was over (their permit went back; whether they still ran nobody could know).

use crate::checker::{Body, Findings, History, ViolationKind};
use campanile_schema::record::AttemptState;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// Length of a stretch, and what may begin in it above the rate, as a time of it, seconds.
const STRETCH_S: i64 = 20;
const ROOM_S: i64 = 10;

pub fn check(history: &History, found: &mut Findings<'_>) {
    let Some(meta) = &history.meta else { return };
    let mut of_tenant: HashMap<&str, Vec<&Body>> = HashMap::new();
    for body in history.bodies.values().flatten().filter(|body| !gave_back(history, body)) {
        if let Some(job) = history.jobs.get(&body.job) {
            of_tenant.entry(&job.spec.tenant_id).or_default().push(body);
        }
    }
    for (tenant, limit) in meta.quotas.iter().filter(|(_, limit)| **limit > 0) {
        let mut bodies = of_tenant.remove(tenant.as_str()).unwrap_or_default();
        bodies.sort_by_key(|b| b.start_us);
        at_once(history, tenant, *limit, &bodies, found);
    }
    for (tenant, rate) in meta.rates.iter().filter(|(_, rate)| **rate > 0.0) {
        a_second(history, tenant, *rate, found);
    }
}

/// The first stretch in which more began.
fn a_second(history: &History, tenant: &str, rate: f64, found: &mut Findings<'_>) {
    let is_tenants = |body: &&Body| history.jobs.get(&body.job).is_some_and(|job| job.spec.tenant_id == tenant);
    // Repeated bodies need no new permit of the rate.
    let first = |bodies: &'_ Vec<Body>| bodies.iter().min_by_key(|body| body.start_us).cloned();
    let mut bodies: Vec<Body> = history.bodies.values().filter_map(first).filter(|body| is_tenants(&body)).collect();
    bodies.sort_by_key(|body| body.start_us);
    let most = (rate * (STRETCH_S + ROOM_S) as f64) as usize;
    for stretch in bodies.windows(most + 1) {
        let (Some(one), Some(last)) = (stretch.first(), stretch.last()) else { return };
        if last.start_us - one.start_us < STRETCH_S * 1_000_000 {
            let text = format!(
                "{} runs of tenant '{tenant}', which may have {rate} a second, began within {STRETCH_S} s; run {} is the last of them",
                stretch.len(),
                last.run
            );
            return found.of_run(ViolationKind::RateExceeded, last.job, last.run, Some(last.start_us / 1000), text);
        }
    }
}

/// `bodies` in order of their starts.
fn at_once(history: &History, tenant: &str, limit: u32, bodies: &[&Body], found: &mut Findings<'_>) {
    let mut outages = history.outages.iter().peekable();
    // Ends of the bodies that run.
    let mut running: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
    for body in bodies {
        while outages.next_if(|outage| outage.from_us <= body.start_us).is_some() {
            running.clear();
        }
        while running.peek().is_some_and(|Reverse(end_us)| *end_us <= body.start_us) {
            running.pop();
        }
        let end_us = body.end.map_or_else(|| history.died_us(body.executor), |(at, _)| at);
        running.push(Reverse(end_us));
        if running.len() > limit as usize {
            let text = format!(
                "run {} of job {} started as body {} of tenant '{tenant}', which may have {limit}",
                body.run,
                body.job,
                running.len()
            );
            found.of_run(ViolationKind::QuotaExceeded, body.job, body.run, Some(body.start_us / 1000), text);
        }
    }
}

/// The node may have had its permit back before the body ended.
fn gave_back(history: &History, body: &Body) -> bool {
    let attempt = history.runs.get(&body.run).and_then(|run| run.attempt_of(body.token));
    attempt.is_some_and(|a| matches!(a.state, AttemptState::Lost | AttemptState::Timeout))
}
