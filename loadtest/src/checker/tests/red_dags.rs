//! DAGs that keep every promise, and seeded defects in them: order, edges, keys, what is left behind, and how they end.

use super::{
    only, red,
    world::{T0, World},
};
use crate::{
    checker::{Verdict, ViolationKind},
    run_dir::lines::{CallerLine, Verb},
};
use campanile_schema::{
    graph::{
        EdgeSpec, GraphSpec, NodeSpec,
        state::{NodeRule, NodeState},
    },
    ids::{JobId, RunId},
    job::{Action, ConcurrencyPolicy, Hook, Trigger},
    payload::Payload,
    record::{AttemptState, RunState, Source},
    time::Timestamp,
    view::dag::{DagNodeView, DagRunView},
};

const DAG: u64 = 30;
/// Jobs of the nodes, in their order.
const NODES: [u64; 5] = [31, 32, 33, 34, 35];
const UNDO: u64 = 36;
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const E: usize = 4;

/// `a` before `b` and `c`; `d` when both have ended in any way; `e` when `b` has failed. `c` runs only for more than four rows of `a`.
fn graph() -> GraphSpec {
    let node = |id: &str, place: usize, rule: NodeRule| NodeSpec {
        rule,
        ..NodeSpec::new(id, &format!("job-{}", NODES[place]))
    };
    let nodes = vec![
        node("a", A, NodeRule::AllSuccess),
        NodeSpec {
            params: Payload(r#"{"from":"{{nodes.a.result.rows}}"}"#.into()),
            ..node("b", B, NodeRule::AllSuccess)
        },
        node("c", C, NodeRule::AllSuccess),
        node("d", D, NodeRule::AllDone),
        node("e", E, NodeRule::AnyFailed),
    ];
    let edge = EdgeSpec::new;
    let when = Some("parent.result.rows > 4".to_owned());
    let edges =
        vec![edge("a", "b"), EdgeSpec { when, ..edge("a", "c") }, edge("b", "d"), edge("c", "d"), edge("b", "e")];
    GraphSpec::new(nodes, edges)
}

struct Story {
    world: World,
    dag: u64,
    runs: [Option<u64>; 5],
}

impl Story {
    fn run(&self, place: usize) -> u64 {
        self.runs[place].unwrap()
    }

    /// What the API shows of the DAG run.
    fn node(&mut self, place: usize) -> &mut DagNodeView {
        &mut self.world.dags[0].nodes[place]
    }

    /// Moves the bodies of a node, and what the node says of them.
    fn shift(&mut self, place: usize, by_ms: i64) {
        let run = self.run(place);
        self.world.lines_of(run).for_each(|line| line.t_us += by_ms * 1000);
        let view = self.world.run_mut(run);
        view.created_at.0 += by_ms;
        view.ended_at.iter_mut().for_each(|at| at.0 += by_ms);
        for attempt in &mut view.attempts {
            attempt.started_at.0 += by_ms;
            attempt.ended_at.iter_mut().for_each(|at| at.0 += by_ms);
        }
    }

    /// A node's run that was not there before.
    fn add(&mut self, place: usize, at: i64, took: i64, state: AttemptState) -> u64 {
        let run = add(&mut self.world, self.dag, place, at, took, state);
        self.runs[place] = Some(run);
        run
    }

    fn end(&mut self, state: RunState) {
        let dag = self.dag;
        self.world.run_mut(dag).state = state;
        self.world.dags[0].state = state;
    }

    fn verdict(&self) -> Verdict {
        self.world.verdict()
    }
}

fn add(world: &mut World, dag: u64, place: usize, at: i64, took: i64, state: AttemptState) -> u64 {
    let run = world.run(NODES[place], Source::Dag, None, at);
    world.attempt(run, place % 2, 1, at + 1, took, state);
    let view = world.run_mut(run);
    (view.dag_run_id, view.dag_node) = (Some(RunId(dag)), Some(place as u32));
    if state == AttemptState::Failed {
        (view.state, view.dead_letter) = (RunState::Failed, true);
    }
    run
}

/// A body that succeeds with so many rows.
fn rows(world: &mut World, run: u64, rows: i64) {
    let result = Some(Payload(format!("{{\"rows\":{rows}}}")));
    world.lines_of(run).filter(|line| line.outcome.is_some()).for_each(|line| line.result.clone_from(&result));
    world.run_mut(run).result = result;
}

/// `a` has 9 rows and takes 100 ms, `b` and `c` run beside each other, `d` after both. Nothing fails, so `e` is passed.
fn story() -> Story {
    let mut w = World::new();
    for job in NODES {
        w.job(job, Trigger::Manual {}, ConcurrencyPolicy::Allow, |spec| spec.retry_policy.max_attempts = 1);
    }
    w.job(UNDO, Trigger::Manual {}, ConcurrencyPolicy::Allow, |_| {});
    w.job(DAG, Trigger::Manual {}, ConcurrencyPolicy::Allow, |spec| {
        spec.action = Some(Action::Dag(graph()));
        spec.hooks.on_failure =
            vec![Hook { compensation: true, ..Hook::new(format!("job-{UNDO}")) }, Hook::new(format!("job-{UNDO}"))];
    });
    let dag = w.trigger(DAG, "nightly", 10_000);
    // Nobody has a body for the DAG itself.
    w.executors.iter_mut().for_each(|(_, lines)| lines.retain(|line| line.run != dag));
    let mut story = Story { world: w, dag, runs: [None; 5] };
    for (place, at, took) in [(A, 10_010, 100), (B, 10_120, 50), (C, 10_121, 200), (D, 10_330, 10)] {
        story.add(place, at, took, AttemptState::Success);
    }
    let (a, b) = (story.run(A), story.run(B));
    rows(&mut story.world, a, 9);
    let from = Some(Payload(r#"{"from":9}"#.into()));
    story.world.lines_of(b).filter(|line| line.outcome.is_none()).for_each(|line| line.params.clone_from(&from));
    let view = story.world.run_mut(dag);
    (view.attempts, view.attempt_count, view.ended_at) = (Vec::new(), 0, Some(Timestamp(T0 + 10_350)));
    let passed = [None, None, None, None, Some(NodeState::Skipped)];
    story.world.dags = vec![shown(dag, story.runs, passed)];
    story
}

fn shown(dag: u64, runs: [Option<u64>; 5], passed: [Option<NodeState>; 5]) -> DagRunView {
    let nodes = graph().nodes.into_iter().enumerate().map(|(place, node)| DagNodeView {
        id: node.id,
        job: node.job,
        rule: node.rule,
        state: passed[place].unwrap_or(NodeState::Success),
        marked: false,
        run_id: runs[place].map(RunId),
        generation: u32::from(runs[place].is_some()),
        failure: None,
        error: None,
        layer: 0,
        row: 0,
        x: 0,
        y: 0,
    });
    DagRunView {
        run_id: RunId(dag),
        job_id: JobId(DAG),
        tenant_id: "default".to_owned(),
        state: RunState::Success,
        generation: 1,
        version: 1,
        nodes: nodes.collect(),
        edges: Vec::new(),
        width: 0,
        height: 0,
        drawing: None,
        paused: None,
    }
}

/// `b` has failed: `d` has waited for it, and `e` ran because of it.
fn failed() -> Story {
    let mut story = story();
    let b = story.run(B);
    story.world.lines_of(b).filter_map(|line| line.outcome.as_mut()).for_each(|of| *of = AttemptState::Failed);
    let view = story.world.run_mut(b);
    (view.state, view.dead_letter) = (RunState::Failed, true);
    view.attempts[0].state = AttemptState::Failed;
    story.add(E, 10_180, 10, AttemptState::Success);
    let (e, shown) = (story.run(E), story.node(B));
    shown.state = NodeState::Failed;
    let shown = story.node(E);
    (shown.state, shown.run_id) = (NodeState::Success, Some(RunId(e)));
    story
}

fn green(story: &Story) {
    let verdict = story.verdict();
    assert!(verdict.green, "{verdict}");
}

#[test]
fn a_dag_that_keeps_its_order_is_green() {
    green(&story());
    green(&failed());
    assert_eq!((story().verdict().counts.dag_runs, story().verdict().counts.dag_nodes), (1, 4));
}

#[test]
fn a_node_waits_for_the_bodies_of_all_that_it_depends_on() {
    // `d` has begun when `c` had not ended.
    let mut early = story();
    early.shift(D, -100);
    only(&early.verdict(), ViolationKind::DagOrderBroken);
    // `e` needs only that `b` has failed, while `c` still runs.
    let mut story = failed();
    story.shift(E, -20);
    red(&story.verdict(), ViolationKind::DagOrderBroken);
}

#[test]
fn a_node_that_its_edges_keep_from_running_has_no_body() {
    // Four rows are not more than four: `c` is passed, and `d` waits for both all the same.
    let mut few = story();
    let (a, b) = (few.run(A), few.run(B));
    rows(&mut few.world, a, 4);
    let from = Some(Payload(r#"{"from":4}"#.into()));
    few.world.lines_of(b).filter(|line| line.outcome.is_none()).for_each(|line| line.params.clone_from(&from));
    red(&few.verdict(), ViolationKind::DagNodeUndue);
    // Without its run it is as it must be.
    let c = few.run(C);
    few.world.runs.retain(|run| run.run_id.0 != c);
    few.world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|line| line.run != c));
    let shown = few.node(C);
    (shown.state, shown.run_id) = (NodeState::Skipped, None);
    green(&few);
    // Nothing has failed, so `e` must not run.
    let mut undue = story();
    undue.add(E, 10_340, 2, AttemptState::Success);
    red(&undue.verdict(), ViolationKind::DagNodeUndue);
}

#[test]
fn a_run_of_a_node_belongs_to_a_node_of_a_dag() {
    let mut nowhere = story();
    let d = nowhere.run(D);
    nowhere.world.run_mut(d).dag_node = Some(C as u32);
    red(&nowhere.verdict(), ViolationKind::DagNodeUndue);
    let mut stranger = story();
    let run = stranger.world.run(NODES[D], Source::Dag, None, 30_000);
    stranger.world.attempt(run, 0, 1, 30_001, 5, AttemptState::Success);
    only(&stranger.verdict(), ViolationKind::DagNodeUndue);
}

#[test]
fn a_node_has_one_run() {
    let mut doubled = story();
    let dag = doubled.dag;
    add(&mut doubled.world, dag, A, 10_011, 90, AttemptState::Success);
    red(&doubled.verdict(), ViolationKind::DagNodeDoubled);
}

#[test]
fn nothing_is_left_behind() {
    // A node that was to run has no run.
    let mut forgotten = story();
    let d = forgotten.run(D);
    forgotten.world.runs.retain(|run| run.run_id.0 != d);
    forgotten.world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|line| line.run != d));
    red(&forgotten.verdict(), ViolationKind::DagLeftBehind);
    // The DAG ended before a body of its nodes began.
    let mut before = story();
    let dag = before.dag;
    before.world.run_mut(dag).ended_at = Some(Timestamp(T0 + 10_325));
    only(&before.verdict(), ViolationKind::DagLeftBehind);
    // It goes on though all of its nodes have ended.
    let mut open = story();
    let view = open.world.run_mut(dag);
    (view.state, view.ended_at) = (RunState::Running, None);
    red(&open.verdict(), ViolationKind::DagLeftBehind);
}

#[test]
fn a_dag_ends_as_its_nodes_say() {
    // The failure of `b` is handled by `d`, which waited for it.
    let mut handled = failed();
    handled.end(RunState::Failed);
    red(&handled.verdict(), ViolationKind::DagStateWrong);
    // Nobody handles a failure of `d`, and nobody canceled anything.
    let mut unhandled = story();
    let d = unhandled.run(D);
    unhandled.world.lines_of(d).filter_map(|line| line.outcome.as_mut()).for_each(|of| *of = AttemptState::Failed);
    let view = unhandled.world.run_mut(d);
    (view.state, view.dead_letter) = (RunState::Failed, true);
    view.attempts[0].state = AttemptState::Failed;
    unhandled.node(D).state = NodeState::Failed;
    only(&unhandled.verdict(), ViolationKind::DagStateWrong);
    unhandled.end(RunState::Canceled);
    red(&unhandled.verdict(), ViolationKind::EndedWithoutCause);
    unhandled.end(RunState::Failed);
    // Now its two hooks are missing.
    only(&unhandled.verdict(), ViolationKind::HookMissing);
}

#[test]
fn a_dag_that_was_canceled_is_canceled() {
    let mut canceled = story();
    let (dag, run) = (canceled.dag, Some(RunId(canceled.dag)));
    canceled.world.ask(Verb::Cancel, DAG, 10_200);
    let of_call = |line: &&mut CallerLine| line.verb == Verb::Cancel;
    canceled.world.caller.iter_mut().filter(of_call).for_each(|line| line.run = run);
    red(&canceled.verdict(), ViolationKind::DagStateWrong);
    canceled.world.run_mut(dag).state = RunState::Canceled;
    green(&canceled);
}

#[test]
fn what_the_api_shows_of_nodes_is_what_became_of_their_runs() {
    let mut state = story();
    state.node(E).state = NodeState::UpstreamFailed;
    only(&state.verdict(), ViolationKind::DagStateWrong);
    let mut run = story();
    let other = run.runs[A].map(RunId);
    run.node(B).run_id = other;
    only(&run.verdict(), ViolationKind::DagStateWrong);
    let mut none = story();
    none.world.dags.clear();
    only(&none.verdict(), ViolationKind::DagStateWrong);
}

#[test]
fn a_node_gets_what_it_reads_of_another_ones_result() {
    let mut wrong = story();
    let b = wrong.run(B);
    let from = Some(Payload(r#"{"from":8}"#.into()));
    wrong.world.lines_of(b).filter(|line| line.outcome.is_none()).for_each(|line| line.params.clone_from(&from));
    only(&wrong.verdict(), ViolationKind::ParamsWrong);
}

/// A DAG that has failed, with the hook that tells and the one that undoes.
fn undone() -> Story {
    let mut story = story();
    let d = story.run(D);
    story.world.lines_of(d).filter_map(|line| line.outcome.as_mut()).for_each(|of| *of = AttemptState::Failed);
    let view = story.world.run_mut(d);
    (view.state, view.dead_letter) = (RunState::Failed, true);
    view.attempts[0].state = AttemptState::Failed;
    story.node(D).state = NodeState::Failed;
    story.end(RunState::Failed);
    for source in [Source::Event, Source::Compensation] {
        hook(&mut story, source, 1);
    }
    story
}

fn hook(story: &mut Story, source: Source, generation: u32) {
    let run = story.world.run(UNDO, source, Some(10_360), 10_360);
    story.world.run_mut(run).reason = Some(format!("onFailure of run {}, generation {generation}", story.dag));
    story.world.attempt(run, 0, 1, 10_362, 5, AttemptState::Success);
}

#[test]
fn a_run_is_undone_once() {
    let mut story = undone();
    green(&story);
    hook(&mut story, Source::Compensation, 1);
    only(&story.verdict(), ViolationKind::CompensationDoubled);
    let mut doubled = undone();
    hook(&mut doubled, Source::Event, 1);
    only(&doubled.verdict(), ViolationKind::HookDoubled);
    // A run that undoes what nobody asks to be undone.
    let mut unasked = undone();
    let run = unasked.world.run(UNDO, Source::Compensation, Some(10_360), 10_360);
    unasked.world.run_mut(run).reason = Some(format!("onFailure of run {}, generation 1", unasked.run(A)));
    unasked.world.attempt(run, 0, 1, 10_362, 5, AttemptState::Success);
    only(&unasked.verdict(), ViolationKind::HookUnasked);
}

#[test]
fn a_hook_for_success_is_not_started_by_a_failure() {
    let mut story = undone();
    let run = story.world.run(UNDO, Source::Event, Some(10_360), 10_360);
    story.world.run_mut(run).reason = Some(format!("onSuccess of run {}, generation 1", story.dag));
    story.world.attempt(run, 0, 1, 10_362, 5, AttemptState::Success);
    only(&story.verdict(), ViolationKind::HookUnasked);
}

/// A DAG that failed by `d`, went on, and succeeded.
fn reopened() -> Story {
    let mut story = undone();
    let (dag, d) = (story.dag, story.run(D));
    story.world.ask(Verb::Retry, DAG, 11_990);
    let of_call = |line: &&mut CallerLine| line.verb == Verb::Retry;
    let told = (Some(RunId(dag)), Some(2));
    story.world.caller.iter_mut().filter(of_call).for_each(|line| (line.run, line.generation) = told);
    story.world.attempt(d, 0, 2, 12_001, 10, AttemptState::Success);
    story.world.lines_of(d).filter(|line| line.token == 2).for_each(|line| line.generation = 2);
    let view = story.world.run_mut(d);
    (view.state, view.dead_letter, view.generation) = (RunState::Success, false, 2);
    view.attempts[1].generation = 2;
    let view = story.world.run_mut(dag);
    (view.generation, view.ended_at) = (2, Some(Timestamp(T0 + 12_030)));
    story.end(RunState::Success);
    story.node(D).state = NodeState::Success;
    story
}

#[test]
fn a_dag_that_failed_goes_on_when_a_person_asks_for_it() {
    green(&reopened());
    let mut unasked = reopened();
    unasked.world.caller.retain(|line| line.verb != Verb::Retry);
    red(&unasked.verdict(), ViolationKind::ReopenUnasked);
    // All of its nodes have succeeded in the end.
    let mut wrong = reopened();
    wrong.end(RunState::Failed);
    red(&wrong.verdict(), ViolationKind::DagStateWrong);
    // A node that had failed behind another failure, and is passed this time.
    let mut passed = reopened();
    let e = passed.add(E, 10_180, 10, AttemptState::Failed);
    let b = passed.run(B);
    let view = passed.world.run_mut(b);
    view.attempts[0].state = AttemptState::Failed;
    passed.world.lines_of(b).filter_map(|line| line.outcome.as_mut()).for_each(|of| *of = AttemptState::Failed);
    passed.world.attempt(b, 0, 2, 11_995, 3, AttemptState::Success);
    passed.world.lines_of(b).filter(|line| line.token == 2).for_each(|line| line.generation = 2);
    let from = Some(Payload(r#"{"from":9}"#.into()));
    passed.world.lines_of(b).filter(|line| line.outcome.is_none()).for_each(|line| line.params.clone_from(&from));
    let view = passed.world.run_mut(b);
    (view.generation, view.attempts[1].generation) = (2, 2);
    assert!(e > b, "it is the run of `e`");
    green(&passed);
}
