//! What matching costs by itself, one thread: `cargo run --release -p campanile-core --example bench_dispatch`.
//!
//! Per line the best of five rounds, in nanoseconds for one run that is queued, matched, bound and ended. Target: the choice among 2,000
//! executors takes at most 20 us.
#![allow(clippy::unwrap_used)]

use campanile_core::{
    dispatch::{Dispatch, Executor, Match, Seat},
    job::{Need, WaitingRun},
};
use campanile_schema::{
    ids::{ExecutorSession, JobId, RunId},
    kinds::{ActionKind, Kinds},
    rpc::executor::{Credit, Register},
    text::Text,
};
use hashbrown::HashMap;
use std::{collections::BTreeMap, time::Instant};

const ROUNDS: u32 = 5;
/// Runs that come together, as under load.
const BATCH: u64 = 200;
const BATCHES: u64 = 50;

/// The pool's map of sessions.
type Fleet = HashMap<ExecutorSession, Executor>;

fn fleet(executors: u64, handlers: usize) -> Fleet {
    let register = |id: u64| Register {
        executor_id: format!("x{id}"),
        session: ExecutorSession(id),
        pools: vec!["default".to_owned()],
        slots: 256,
        handlers: (0..handlers).map(|n| format!("handler_{n}")).collect(),
        any_handler: false,
        kinds: Kinds::NONE.and(ActionKind::Command),
        labels: BTreeMap::new(),
        cpu: 0.0,
        memory_mb: 0,
        storage_mb: 0,
        stop_grace_sec: None,
    };
    let of = |id| Executor { register: Some(register(id)), ..Executor::default() };
    (0..executors).map(|id| (ExecutorSession(id), of(id))).collect()
}

fn run(id: u64, tenants: &[Text], need: &Need) -> Box<WaitingRun> {
    Box::new(WaitingRun {
        run: RunId(id),
        job: JobId(id),
        tenant: tenants[id as usize % tenants.len()].clone(),
        pool: "default".into(),
        priority: 100,
        backfill: false,
        need: need.clone(),
        cpu: 0.1,
        memory_mb: 64,
        storage_mb: 0,
        since_ms: 0,
        target: None,
        retry: false,
    })
}

/// Nanoseconds for one run.
fn measured(mut fleet: Fleet, tenants: u64, need: &Need) -> f64 {
    let tenants: Vec<Text> = (0..tenants).map(|n| format!("tenant_{n}").into()).collect();
    let (mut dispatch, mut matched) = (Dispatch::default(), Vec::<Match>::new());
    let mut id = 0;
    let mut round = |_| {
        let mut nanos = 0;
        for _ in 0..BATCHES {
            let runs: Vec<_> = (0..BATCH).map(|n| run(id + n, &tenants, need)).collect();
            id += BATCH;
            let start = Instant::now();
            runs.into_iter().for_each(|run| dispatch.enqueue(run));
            for executor in fleet.values_mut() {
                executor.credit.give(Credit { slots: 256, ..Credit::default() }, 0);
            }
            let mut seats: Vec<Seat<'_>> = fleet
                .iter_mut()
                .map(|(session, executor)| Seat { session: *session, left: executor.credit_left(0), executor })
                .collect();
            dispatch.round(&mut seats, &mut matched, 0);
            assert_eq!(matched.len() as u64, BATCH);
            for (session, run) in matched.drain(..) {
                let id = run.run;
                dispatch.bind(run);
                dispatch.unbind(id);
                fleet.get_mut(&session).unwrap().release(id, None);
            }
            nanos += start.elapsed().as_nanos();
        }
        nanos as f64 / (BATCHES * BATCH) as f64
    };
    (0..ROUNDS).map(&mut round).fold(f64::MAX, f64::min)
}

fn main() {
    let line = |what: &str, nanos: f64| println!("{what:<60} {nanos:>9.0} ns");
    line("commands, 1 executor, 1 tenant", measured(fleet(1, 0), 1, &Need::Command));
    line("commands, 8 executors, 1 tenant", measured(fleet(8, 0), 1, &Need::Command));
    line("commands, 8 executors, 50 tenants", measured(fleet(8, 0), 50, &Need::Command));
    line("commands, 2,000 executors, 50 tenants", measured(fleet(2_000, 0), 50, &Need::Command));
    let last = Need::Handler("handler_19".into());
    line("one handler of 20, 8 executors, 50 tenants", measured(fleet(8, 20), 50, &last));
    line("one handler of 20, 2,000 executors, 50 tenants", measured(fleet(2_000, 20), 50, &last));
}
