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
    let register = Register {
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
    };
    let mut executor = Executor { register: Some(register), ..Executor::default() };
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
        dispatch.round(&mut [Seat { session: ExecutorSession(1), executor: &mut executor, left }], &mut matched);
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
    }
}
