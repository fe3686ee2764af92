//! What chance does not reach: histories of their own.

use super::{Violation, ViolationKind};
use campanile_core::{
    dispatch::{Dispatch, Executor, Match, Seat},
    job::{Need, WaitingRun},
};
use campanile_schema::{
    ids::{ExecutorSession, JobId, RunId},
    kinds::{ActionKind, Kinds},
    limits::BINDS_IN_FLIGHT,
    rpc::executor::{Credit, Register},
};

/// An executor that takes whatever comes, and more runs than a node may have matched at once: each round fills the places that are free.
pub fn matches_under_way() -> Result<(), Violation> {
    let slots = 2 * BINDS_IN_FLIGHT as u32;
    let mut executor = Executor { register: Some(register(slots)), ..Executor::default() };
    executor.credit.give(Credit { slots, ..Credit::default() }, 0);
    let mut dispatch = Dispatch::default();
    for id in 1..=u64::from(slots) {
        dispatch.enqueue(Box::new(run(id)));
    }
    let mut under_way = 0;
    let mut matched: Vec<Match> = Vec::new();
    // What becomes durable between the rounds.
    for durable in [0, 10, BINDS_IN_FLIGHT] {
        for id in 1..=durable as u64 {
            under_way -= usize::from(dispatch.unbind(RunId(id)).is_some());
        }
        let left = executor.credit_left(0);
        dispatch.round(&mut [Seat { session: ExecutorSession(1), executor: &mut executor, left }], &mut matched, 0);
        under_way += matched.len();
        for (_, run) in matched.drain(..) {
            dispatch.bind(run);
        }
        if under_way != BINDS_IN_FLIGHT {
            let kind = if under_way > BINDS_IN_FLIGHT { ViolationKind::Extra } else { ViolationKind::Missing };
            return Err(Violation::of(kind, format!("{under_way} matches are under way")));
        }
    }
    Ok(())
}

/// Two tenants always have runs that wait, one's bodies take ten times as long as the other's. Gives the slots that each had over the last
/// two minutes of three, as parts of all.
pub fn shares_of_long_and_short_bodies() -> [f64; 2] {
    const TENANTS: [(&str, i64); 2] = [("long", 10_000), ("short", 1_000)];
    const SLOTS: u32 = 40;
    let mut executor = Executor { register: Some(register(SLOTS)), ..Executor::default() };
    let mut dispatch = Dispatch::default();
    let (mut last, mut busy_ms) = (0, [0.0; 2]);
    let mut waiting = [0; 2];
    let mut running: Vec<(i64, RunId, usize)> = Vec::new();
    let mut matched: Vec<Match> = Vec::new();
    for now_ms in (0..180_000).step_by(10) {
        for (tenant, (name, _)) in TENANTS.iter().enumerate() {
            while waiting[tenant] < 50 {
                last += 1;
                waiting[tenant] += 1;
                dispatch.enqueue(Box::new(WaitingRun { tenant: (*name).into(), ..run(last) }));
            }
        }
        for (_, run, _) in running.extract_if(.., |(ends_ms, _, _)| *ends_ms <= now_ms) {
            executor.release(run, None);
        }
        executor.credit.give(Credit { slots: SLOTS, ..Credit::default() }, now_ms);
        let left = executor.credit_left(now_ms);
        let seat = Seat { session: ExecutorSession(1), executor: &mut executor, left };
        dispatch.round(&mut [seat], &mut matched, now_ms);
        for (_, run) in matched.drain(..) {
            let tenant = TENANTS.iter().position(|(name, _)| *run.tenant == **name).unwrap();
            waiting[tenant] -= 1;
            running.push((now_ms + TENANTS[tenant].1, run.run, tenant));
        }
        if now_ms >= 60_000 {
            running.iter().for_each(|(_, _, tenant)| busy_ms[*tenant] += 10.0);
        }
    }
    busy_ms.map(|busy| busy / (120_000.0 * f64::from(SLOTS)))
}

fn register(slots: u32) -> Register {
    Register {
        executor_id: "large".to_owned(),
        session: ExecutorSession(1),
        pools: vec!["default".to_owned()],
        slots,
        handlers: Vec::new(),
        any_handler: false,
        kinds: Kinds::NONE.and(ActionKind::Command),
        labels: Default::default(),
        cpu: 0.0,
        memory_mb: 0,
        storage_mb: 0,
        stop_grace_sec: None,
    }
}

fn run(id: u64) -> WaitingRun {
    WaitingRun {
        run: RunId(id),
        job: JobId(id),
        tenant: "t".into(),
        pool: "default".into(),
        priority: 100,
        backfill: false,
        need: Need::Command,
        cpu: 0.1,
        memory_mb: 64,
        storage_mb: 0,
        since_ms: 0,
        target: None,
        retry: false,
    }
}
