//! The kills of a run: when, where, and for how long the node stays down. The plan follows from the seed; the moment at which a
//! kill hits does not.

use crate::{
    process::{
        fleet::Fleet,
        node::{Node, Started},
    },
    random::Random,
    run_dir::lines::now_us,
};
use std::{collections::BTreeMap, error::Error, fmt, time::Duration};
use tokio::{task::block_in_place, time::sleep};

/// A kill from outside comes so long after the node is ready, milliseconds.
const GAP_MS: (u64, u64) = (1_000, 5_000);
/// What a restart takes in the plan, milliseconds.
const RESTART_MS: u64 = 1_500;

/// An executor stands still for so long, milliseconds: its lease, and then some time in which its runs go elsewhere.
pub const FROZEN_MS: u64 = campanile_schema::limits::LEASE_MS.unsigned_abs() + 2_000;

/// A place in the node where it can end itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    name: &'static str,
    /// It is passed so often at most before the process ends.
    times: u64,
    /// When it is expected to be reached, milliseconds; flushes and snapshots are rare.
    expected_ms: u64,
    /// After this it is killed from outside, milliseconds.
    patience_ms: u64,
}

/// Some hundred batches a second are appended under any load; a busy machine with little load must come to the last one in time.
const AFTER_APPEND: Point = Point { name: "after_append", times: 1_000, expected_ms: 4_000, patience_ms: 30_000 };
/// Only where the node acknowledges too early: what it told is not yet written here.
const BEFORE_APPEND: Point = Point { name: "before_append", times: 100, expected_ms: 4_000, patience_ms: 15_000 };
const SEGMENT_ROLL: Point = Point { name: "segment_roll", times: 1, expected_ms: 15_000, patience_ms: 40_000 };
const VIEW_FLUSH: Point = Point { name: "view_flush", times: 1, expected_ms: 20_000, patience_ms: 40_000 };
const SNAPSHOT: Point = Point { name: "snapshot", times: 8, expected_ms: 50_000, patience_ms: 110_000 };

/// In turn; None = from outside at a random moment.
const TURNS: [Option<Point>; 10] = [
    None,
    Some(AFTER_APPEND),
    Some(SEGMENT_ROLL),
    None,
    Some(VIEW_FLUSH),
    None,
    Some(AFTER_APPEND),
    Some(VIEW_FLUSH),
    None,
    Some(SNAPSHOT),
];

/// One kill and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    point: Option<(Point, u64)>,
    gap_ms: u64,
    down_ms: u64,
}

impl Kill {
    /// What it takes in the plan, milliseconds.
    pub fn expected_ms(&self) -> u64 {
        self.point.map_or(self.gap_ms, |(point, _)| point.expected_ms) + self.down_ms + RESTART_MS
    }
}

/// The plan: every third time the node stays down for a while, at most `down_ms`.
pub fn schedule(kills: u32, fail_points: bool, down_ms: u64, seed: u64) -> Vec<Kill> {
    let mut random = Random::new(seed ^ 0x6b69_6c6c);
    (0..kills as usize)
        .map(|n| Kill {
            point: TURNS[n % TURNS.len()].filter(|_| fail_points).map(|point| (point, 1 + random.below(point.times))),
            gap_ms: random.between(GAP_MS.0, GAP_MS.1),
            down_ms: if n % 3 == 1 { random.between(500, down_ms.max(501)) } else { 0 },
        })
        .collect()
}

/// The same plan with every kill just before an append. A kill -9 leaves what write(2) took, so that only a death at this place
/// shows a node that acknowledges before it has written.
pub fn before_append(mut kills: Vec<Kill>, seed: u64) -> Vec<Kill> {
    let mut random = Random::new(seed);
    for kill in &mut kills {
        kill.point = Some((BEFORE_APPEND, 1 + random.below(BEFORE_APPEND.times)));
    }
    kills
}

/// What stays the same over all kills.
pub struct Round<'a> {
    pub mutation: Option<&'a str>,
    pub executor_kills: u32,
    pub slots: u32,
    pub fail_percent: u32,
}

/// Carries the plan out. A fail point is set when the node is started, so each kill is prepared by the restart before it.
/// The last node.
pub async fn carry_out(
    kills: &[Kill],
    round: &Round<'_>,
    fleet: &mut Fleet,
    node: Node,
) -> Result<(Node, Points), Box<dyn Error>> {
    let mut points = Points::default();
    let mut executors_killed = 0;
    let mut started = Started::Ready(node);
    for (n, kill) in kills.iter().enumerate() {
        let name = format!("kill {} of {}", n + 1, kills.len());
        // The first node was started without a fail point.
        let point = kill.point.filter(|_| n > 0);
        if let Some((point, _)) = point {
            points.0.entry(point.name).or_default().0 += 1;
        }
        match (point, started) {
            (Some((point, _)), Started::AtPoint(status)) => {
                points.0.entry(point.name).or_default().1 += 1;
                println!("{name}: at {} while it started, {status}", point.name);
            }
            (Some((point, _)), Started::Ready(mut node)) => {
                match block_in_place(|| node.wait_for_abort(Duration::from_millis(point.patience_ms)))? {
                    Some(status) => {
                        points.0.entry(point.name).or_default().1 += 1;
                        println!("{name}: at {}, {status}", point.name);
                    }
                    None => {
                        block_in_place(|| node.kill9("its fail point was not reached"))?;
                        println!("{name}: {} was not reached; killed from outside", point.name);
                    }
                }
            }
            (None, Started::Ready(mut node)) => {
                sleep(Duration::from_millis(kill.gap_ms)).await;
                if !node.is_alive() {
                    return Err(format!("the node ended by itself before {name}; see node.log").into());
                }
                block_in_place(|| node.kill9("random moment"))?;
                println!("{name}: at a random moment");
            }
            (None, Started::AtPoint(status)) => {
                return Err(format!("the node ended by itself before {name}, {status}; see node.log").into());
            }
        }
        sleep(Duration::from_millis(kill.down_ms)).await;
        let point = kills.get(n + 1).and_then(|next| next.point);
        let fault: Vec<String> = point
            .map(|(point, times)| format!("point:{}=kill:{times}", point.name))
            .into_iter()
            .chain(round.mutation.map(str::to_owned))
            .collect();
        let before = now_us();
        started = fleet.begin_node((!fault.is_empty()).then(|| fault.join(";")))?;
        println!("    stayed down {} ms, started again within {} ms", kill.down_ms, (now_us() - before) / 1000);
        if let Started::Ready(node) = &started {
            let due = (n as u32 + 1) * round.executor_kills / (kills.len() as u32).max(1);
            while executors_killed < due {
                executors_killed += 1;
                kill_executor(executors_killed, round, fleet, node)?;
            }
        }
    }
    match started {
        Started::Ready(node) => Ok((node, points)),
        Started::AtPoint(status) => Err(format!("the last node ended by itself, {status}; see node.log").into()),
    }
}

/// Fail points by name: how often one was set, and how often the node came to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points(BTreeMap<&'static str, (u32, u32)>);

impl Points {
    /// Those that were set and that no node ever came to: nothing is known of a death there.
    pub fn never_reached(&self) -> Vec<&'static str> {
        self.0.iter().filter(|(_, (_, reached))| *reached == 0).map(|(name, _)| *name).collect()
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (set, reached) = self.0.values().fold((0, 0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        write!(f, "fail points reached: {reached} of {set}")?;
        self.0.iter().try_for_each(|(name, (set, reached))| write!(f, "; {name} {reached} of {set}"))
    }
}

/// Executors die evenly between the node's kills: whenever another share of them is over.
fn kill_executor(nth: u32, round: &Round<'_>, fleet: &mut Fleet, node: &Node) -> Result<(), Box<dyn Error>> {
    let victim = format!("executor-{nth}");
    fleet.kill_executor(&victim)?;
    fleet.start_executor(node, "default", round.slots, round.fail_percent, 1)?;
    println!("    kill -9 of {victim}, and a new executor");
    Ok(())
}

/// An executor stands still for longer than its lease, so that it is taken for lost, and then hands in what it has.
pub async fn freeze_executor(fleet: &Fleet) -> Result<(), Box<dyn Error>> {
    let name = fleet.freeze_executor(true)?;
    println!("{name} stands still for {} ms", FROZEN_MS);
    sleep(Duration::from_millis(FROZEN_MS)).await;
    fleet.freeze_executor(false)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_was_set_and_never_reached_is_told() {
        let points = Points([("snapshot", (2, 0)), ("after_append", (3, 1))].into());
        assert_eq!(points.never_reached(), ["snapshot"]);
        assert_eq!(points.to_string(), "fail points reached: 1 of 5; after_append 1 of 3; snapshot 0 of 2");
        assert!(Points::default().never_reached().is_empty());
    }

    #[test]
    fn the_plan_follows_from_the_seed_and_reaches_every_point() {
        let plan = schedule(20, true, 4_000, 1);
        assert_eq!(plan, schedule(20, true, 4_000, 1));
        assert_ne!(plan, schedule(20, true, 4_000, 2));
        for point in [AFTER_APPEND, SEGMENT_ROLL, VIEW_FLUSH, SNAPSHOT] {
            assert!(plan.iter().any(|kill| kill.point.is_some_and(|(p, _)| p == point)));
        }
        assert!(plan.iter().any(|kill| kill.down_ms > 0));
        assert!(plan.iter().any(|kill| kill.down_ms == 0));
        assert!(schedule(20, false, 0, 1).iter().all(|kill| kill.point.is_none()));
    }
}
