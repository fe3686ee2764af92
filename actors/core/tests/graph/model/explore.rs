//! Plays plans: a run of a DAG from its begin to its end, with people and mishaps in between.

use super::{
    checks::Violation,
    plan::Plan,
    reference::ends_of,
    world::{Tally, World},
};
use campanile_core::graph::step::GraphCommand;
use campanile_schema::graph::{change::GraphPause, state::NodeState};

/// Things that happen in one play at most; then all is delivered and every run ends.
const STEPS: usize = 160;
/// Deliveries after that in which a run must have ended.
const PATIENCE: usize = 20_000;

/// What came of a play.
pub struct Played {
    pub violation: Option<Violation>,
    pub tally: Tally,
    pub story: Vec<String>,
}

pub fn play(plan: &Plan) -> Played {
    let mut world = World::new(plan);
    let violation = run(&mut world).err();
    Played { violation, tally: world.tally, story: world.story }
}

fn run(world: &mut World) -> Result<(), Violation> {
    world.step(&GraphCommand::Wake)?;
    for _ in 0..STEPS {
        if world.plan.undisturbed && world.run.state().is_final() {
            break;
        }
        happen(world)?;
    }
    calm(world)?;
    if world.plan.undisturbed && !world.plan.fail_fast && world.plan.reads.iter().all(Option::is_none) {
        in_any_order(world)?;
    }
    world.tally.count(world.run.state().as_str());
    Ok(())
}

/// One thing happens.
fn happen(world: &mut World) -> Result<(), Violation> {
    let number = world.random.below(100);
    if world.plan.undisturbed || number < 80 {
        let (ended, double) = (world.random.percent(35) && world.end_one(), world.random.percent(15));
        if !ended && !world.messages.is_empty() {
            let at = world.random.below(world.messages.len());
            return world.deliver(at, double);
        }
        return Ok(());
    }
    let nodes = world.plan.rules.len();
    let node = world.random.below(nodes) as u32;
    let by = Some("ada".into());
    match number {
        80..=82 => {
            world.restart();
            Ok(())
        }
        83 => world.step(&GraphCommand::Cancel),
        84 => world.step(&GraphCommand::Timeout),
        85..=88 => {
            let mut nodes = vec![node];
            if world.random.percent(30) {
                nodes.push(world.random.below(world.plan.rules.len()) as u32);
            }
            nodes.dedup();
            let and_after = world.random.percent(30);
            if world.run.state().is_final() {
                world.tally.count("retry of a final run");
            }
            world.step(&GraphCommand::Retry { nodes, and_after, by, reason: None })
        }
        89..=92 => {
            let state = if world.random.percent(60) { NodeState::Success } else { NodeState::Skipped };
            world.step(&GraphCommand::Mark { node, state, by, reason: Some("by hand".to_owned()) })
        }
        93 => world.give_up(node),
        96 => {
            world.tally.count("pause");
            world.step(&GraphCommand::Pause(GraphPause { at_ms: 7, by, reason: None }))
        }
        97 => world.step(&GraphCommand::Resume { by, reason: None }),
        94..=95 => {
            world.run_ahead(node);
            Ok(())
        }
        _ => {
            world.end_one();
            Ok(())
        }
    }
}

/// Nothing more goes wrong: messages arrive, runs end, and so must the DAG run.
fn calm(world: &mut World) -> Result<(), Violation> {
    world.restart();
    // One that nobody resumes would wait for ever, as it must.
    world.step(&GraphCommand::Resume { by: None, reason: None })?;
    for _ in 0..PATIENCE {
        if world.run.state().is_final() {
            return Ok(());
        }
        if !world.messages.is_empty() {
            let at = world.random.below(world.messages.len());
            world.deliver(at, false)?;
        } else if !world.end_one() {
            // Those who wait ask again.
            world.restart();
            if world.messages.is_empty() {
                break;
            }
        }
    }
    Err(Violation::NeverEnds)
}

/// Without people and mishaps the ends of the nodes follow from how their runs end, whatever came when.
fn in_any_order(world: &World) -> Result<(), Violation> {
    let order: Vec<usize> = world.graph.order().iter().map(|node| *node as usize).collect();
    let ends = ends_of(&world.plan, &order, |node| {
        let (state, rows) = world.lot(node as u32, 1);
        (World::end_of(state), rows)
    });
    let now: Vec<NodeState> = world.run.nodes().iter().map(|node| node.state()).collect();
    if now != ends {
        return Err(Violation::OrderMatters(format!("{now:?} and by the parents {ends:?}")));
    }
    Ok(())
}
