//! DAGs and the jobs of their nodes together: jobs that decide, messages between them that are doubled, reordered and repeated, and
//! crashes that leave nothing but what is stored.

use crate::dag_world::{DAG, FLAW, Flaw, World, graph};
use campanile_core::{
    graph::clauses::{Clause, break_rule},
    job::{Command, Context, Ids, OpenRun, Reply, decide_next},
};
use campanile_schema::{
    error::ErrorCode,
    graph::{GraphSpec, NodeSpec, StoredGraph, state::NodeState},
    ids::Epoch,
    job::ConcurrencyPolicy,
    peer::shard::GraphAction,
    record::{RunState, Source},
    stored::{
        StoredAction, StoredJob,
        deadline::{StoredDeadline, StoredTiming},
    },
};
use std::{panic::catch_unwind, sync::Arc};

const SEEDS: u64 = 300;

fn retry(node: &str) -> GraphAction {
    GraphAction::Retry { nodes: vec![node.to_owned()], and_after: false, by: None, reason: None }
}

/// A diamond: A, then B and C, then D.
fn diamond() -> GraphSpec {
    graph(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], &["a", "b", "c", "d"])
}

fn in_order(seed: u64) {
    let mut world = World::new(&diamond(), seed);
    let run = world.trigger();
    world.settle();
    assert_eq!(world.state(run), RunState::Success, "seed {seed}");
    let body = |name: &str| {
        assert_eq!(world.count(name), 1, "seed {seed}: {name}");
        world.bodies[name][0]
    };
    let (a, b, c, d) = (body("a"), body("b"), body("c"), body("d"));
    assert!(a.1 < b.0 && a.1 < c.0 && b.1 < d.0 && c.1 < d.0, "seed {seed}: {a:?} {b:?} {c:?} {d:?}");
    let of_d = world.newest.values().find(|record| record.job == world.jobs["d"].id).unwrap();
    assert_eq!((of_d.source, of_d.dag), (Source::Dag, Some((run.0, 3))));
    assert_eq!(of_d.logical_ms, world.newest[&run].logical_ms, "the instant of the DAG run");
}

#[test]
fn each_node_runs_once_behind_its_parents_whatever_is_doubled_lost_or_reordered() {
    (0..SEEDS).for_each(in_order);
}

fn goes_on(seed: u64) {
    let mut world = World::new(&diamond(), seed);
    world.failing.insert("b".to_owned());
    let run = world.trigger();
    world.settle();
    use NodeState::{Failed, Success, UpstreamFailed};
    assert_eq!(world.state(run), RunState::Failed, "seed {seed}");
    assert_eq!(world.nodes(run), [Success, Failed, Success, UpstreamFailed]);
    assert_eq!(["a", "b", "c", "d"].map(|name| world.count(name)), [1, 1, 1, 0]);
    world.failing.clear();
    let passed = world.change(run, retry("d")).unwrap_err();
    assert!(passed.message.contains("retry a node before it"), "{}", passed.message);
    world.change(run, retry("b")).unwrap();
    // Some were long on their way, and had been sent again.
    world.messages.extend(world.told.clone());
    world.settle();
    assert_eq!((world.state(run), world.newest[&run].generation), (RunState::Success, 2), "seed {seed}");
    assert_eq!(["a", "b", "c", "d"].map(|name| world.count(name)), [1, 2, 1, 1], "seed {seed}");
    let of_b = world.newest.values().find(|record| record.job == world.jobs["b"].id).unwrap();
    assert_eq!((of_b.generation, of_b.state), (2, RunState::Success), "the same run, opened again");
}

#[test]
fn a_retry_goes_on_where_the_run_stopped() {
    (0..SEEDS).for_each(goes_on);
}

fn ends_all(seed: u64) {
    let mut world = World::new(&diamond(), seed);
    let run = world.trigger();
    for _ in 0..seed % 12 {
        if !world.messages.is_empty() {
            world.deliver();
        }
        if let Some(name) = world.with(RunState::Queued).first().cloned() {
            world.work(&name);
        }
    }
    if world.state(run).is_final() {
        return;
    }
    world.decide(DAG, &Command::Cancel { run, reason: None }).unwrap();
    world.settle();
    assert_eq!(world.state(run), RunState::Canceled, "seed {seed}");
    assert!(world.nodes(run).iter().all(|state| state.is_final()), "seed {seed}");
    assert!(world.jobs.values().all(|job| job.hot.runs.is_empty()), "seed {seed}: nothing is left behind");
}

#[test]
fn a_cancel_ends_every_node_even_one_whose_start_is_still_on_its_way() {
    (0..SEEDS).for_each(ends_all);
}

#[test]
fn what_is_wrong_is_seen() {
    let seen = || {
        (0..SEEDS).any(|seed| [in_order, goes_on, ends_all].iter().any(|story| catch_unwind(|| story(seed)).is_err()))
    };
    for flaw in [Flaw::KeyUnknown, Flaw::OwedUnsent, Flaw::RecordLost] {
        FLAW.set(Some(flaw));
        assert!(seen(), "{flaw:?} is not seen");
        FLAW.set(None);
    }
    let clauses = [
        Clause::StaleEndIgnored,
        Clause::OpenUntilChildrenEnd,
        Clause::RetryRaisesGeneration,
        Clause::RetryFreesWhatPassed,
        Clause::PendingStarts,
    ];
    let unseen = clauses.into_iter().filter(|clause| {
        break_rule(Some(*clause));
        let is_seen = seen();
        break_rule(None);
        !is_seen
    });
    let unseen: Vec<Clause> = unseen.collect();
    assert!(unseen.is_empty(), "{unseen:?} are not seen");
}

#[test]
fn runs_of_nodes_wait_for_each_other_and_replace_stops_none_of_them() {
    let spec = GraphSpec::new((0..3).map(|n| NodeSpec::new(&format!("n{n}"), "one")).collect(), Vec::new());
    for policy in [ConcurrencyPolicy::Forbid, ConcurrencyPolicy::QueueOne, ConcurrencyPolicy::Replace] {
        let mut world = World::new(&spec, 5);
        let mut def = (*world.jobs["one"].def).clone();
        def.concurrency = policy;
        world.jobs.get_mut("one").unwrap().def = Arc::new(def);
        let run = world.trigger();
        while !world.messages.is_empty() {
            let message = world.messages.remove(0);
            world.deliver_to_node(&message);
        }
        let states: Vec<RunState> = world.jobs["one"].hot.runs.iter().map(OpenRun::state).collect();
        assert_eq!(states, [RunState::Queued, RunState::Pending, RunState::Pending], "{policy}");
        let own = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
        let told = world.decide("one", &own);
        match policy {
            ConcurrencyPolicy::Forbid => assert_eq!(told.unwrap_err().code, ErrorCode::RunActive),
            // Those that wait are not the one that may wait, and those that run are not replaced.
            _ => assert!(matches!(told.unwrap(), Reply::Run(view) if view.state == RunState::Pending), "{policy}"),
        }
        world.settle();
        assert_eq!(world.state(run), RunState::Success, "{policy}");
    }
}

#[test]
fn a_run_ends_at_its_timeout_and_begins_when_the_shard_has_room_for_its_nodes() {
    let mut spec = diamond();
    spec.timeout_sec = Some(60);
    let mut world = World::new(&spec, 1);
    let run = world.trigger();
    let job = &world.jobs[DAG];
    assert_eq!(job.wake_for_runs(world.now_ms), Some(world.now_ms + 60_000));
    assert!(!job.run(run).unwrap().has_body(), "it has no attempt");
    world.now_ms += 60_000;
    world.decide(DAG, &Command::Wake).unwrap();
    world.settle();
    assert_eq!(world.state(run), RunState::Timeout);
    // Without room it waits, and asks again.
    let full = Context {
        now_ms: world.now_ms,
        ids: Ids { first: 500, count: 2 },
        epoch: Epoch(1),
        pauses: Vec::new(),
        queue_full: false,
        queue_half: false,
        node_room: 3,
        overloaded: false,
        held: None,
        tzdb: "2026b",
        sampling: None,
    };
    let trigger = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
    let (decision, waiting) = decide_next(&world.jobs[DAG], &trigger, &full).unwrap();
    let Reply::Run(view) = decision.reply else { panic!() };
    assert_eq!(view.state, RunState::Pending);
    assert!(view.wait_reason.unwrap().starts_with("NO_NODE_ROOM"));
    assert_eq!(waiting.wake_for_runs(full.now_ms), Some(full.now_ms + 1_000));
    let room = Context { node_room: 4, ..full };
    let (_, begun) = decide_next(&waiting, &Command::Wake, &room).unwrap();
    assert_eq!(begun.run(view.run_id).unwrap().state(), RunState::Running);
}

#[test]
fn a_run_that_a_person_has_paused_misses_no_deadline() {
    for paused in [false, true] {
        let mut world = World::new(&diamond(), 11);
        let timing = StoredTiming { deadline: Some(StoredDeadline::Start { within_sec: 60 }), min_duration_sec: None };
        let def = StoredJob { timing: Some(Box::new(timing)), ..(*world.jobs[DAG].def).clone() };
        world.jobs.get_mut(DAG).unwrap().def = Arc::new(def);
        let run = world.trigger();
        let change = |world: &mut World, action| {
            world.decide(DAG, &Command::ChangeGraph { run, record: None, action: Box::new(action) }).unwrap();
        };
        if paused {
            change(&mut world, GraphAction::Pause { by: None, reason: None });
        }
        world.now_ms += 61_000;
        world.decide(DAG, &Command::Wake).unwrap();
        if paused {
            change(&mut world, GraphAction::Resume { by: None, reason: None });
        }
        world.settle();
        assert_eq!(world.state(run), RunState::Success);
        let missed = world.newest[&run].timing.as_ref().and_then(|timing| timing.missed_ms);
        assert_eq!(missed.is_none(), paused, "{missed:?}");
    }
}

#[test]
fn an_edit_leaves_open_runs_their_graph_and_a_retry_has_that_of_its_run() {
    let mut world = World::new(&diamond(), 3);
    world.failing.insert("b".to_owned());
    let run = world.trigger();
    let mut edited = (*world.jobs[DAG].def).clone();
    edited.action = Some(StoredAction::Dag(Arc::new(StoredGraph::from(&graph(&[], &["a"])))));
    world.decide(DAG, &Command::Replace { version: 1, spec: Box::new(edited.clone()) }).unwrap();
    world.settle();
    assert_eq!((world.state(run), world.nodes(run).len()), (RunState::Failed, 4));
    world.failing.clear();
    world.change(run, retry("b")).unwrap();
    world.settle();
    assert_eq!((world.state(run), world.count("d")), (RunState::Success, 1));
    let next = world.trigger();
    world.settle();
    assert_eq!((world.state(next), world.nodes(next).len()), (RunState::Success, 1));
    edited.action = None;
    let refused = world.decide(DAG, &Command::Replace { version: 2, spec: Box::new(edited) }).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgument);
}
