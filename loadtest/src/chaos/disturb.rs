//! Which disturbances an act explains: which shards it may keep from being served, and for how long. Only these are
//! excused (DISTURBED and EXECUTOR_UNHEARD in the record). Everything else that is missed, late or lost is a defect of
//! the node.
//!
//! Shards are identified by what the nodes themselves reported of ownership around the act. An act that takes a node
//! away explains the time until another node must have taken over (`Scenario::recovers`). An act that lasts (a slow
//! store) explains its whole time and that.

use super::act::{Act, At};
use crate::run_dir::{
    lines::{FaultEvent, FaultLine, now_us},
    record::Record,
};
use campanile_schema::cluster::ShardView;
use std::collections::{BTreeSet, HashMap};

/// Around an act, owners seen within this time before and after it count, microseconds: who owns what is asked once a second.
const AROUND_US: i64 = 3_000_000;
/// After a cut is healed an executor's connection needs this long until it is heard again, microseconds.
const HEARD_AGAIN_US: i64 = 3_000_000;

/// Owners of shards as nodes told them, over time.
#[derive(Debug, Default)]
pub struct Owners {
    seen: Vec<(i64, u16, String)>,
    /// A row names a session, and its node only while that lives.
    nodes: HashMap<u64, String>,
}

impl Owners {
    pub fn add(&mut self, t_us: i64, shards: &[ShardView]) {
        for shard in shards {
            if let (Some(session), Some(node)) = (shard.session, &shard.node) {
                self.nodes.insert(session, node.clone());
            }
            let node = shard.node.as_ref().or_else(|| self.nodes.get(&shard.session?)).cloned();
            self.seen.extend(node.map(|node| (t_us, shard.shard, node)));
        }
    }

    /// Shards that one of the nodes owned at some time from `from_us` to `to_us`.
    fn of(&self, nodes: &[usize], from_us: i64, to_us: i64) -> Vec<u16> {
        let named: Vec<String> = nodes.iter().map(|n| crate::test_cluster::TestCluster::name(*n)).collect();
        let time = from_us.saturating_sub(AROUND_US)..=to_us.saturating_add(AROUND_US);
        let hit = self.seen.iter().filter(|(t_us, _, node)| time.contains(t_us) && named.contains(node));
        hit.map(|(_, shard, _)| *shard).collect::<BTreeSet<u16>>().into_iter().collect()
    }
}

/// Whose shards an act may keep from being served.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AffectedShards {
    Nodes(Vec<usize>),
    Everybody,
}

/// A time that an act explains.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    affected: AffectedShards,
    from_us: i64,
    /// None: until it is undone.
    to_us: Option<i64>,
    what: String,
}

/// An executor that owners of shards do not hear.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SilentExecutor {
    executor: String,
    by: Vec<usize>,
    from_us: i64,
    to_us: Option<i64>,
}

/// How an act's disturbance ends.
enum DisturbanceEnd {
    /// Once others have taken over.
    TakenOver,
    /// Once it is undone, and what stood still has recovered.
    Undone,
}

/// What has been done so far. See the module's text.
pub struct Disturbances {
    /// Nodes of the cluster, servers of the store.
    nodes: usize,
    stores: u16,
    recovers_us: i64,
    spans: Vec<Span>,
    silent: Vec<SilentExecutor>,
    down: BTreeSet<usize>,
    stores_down: BTreeSet<String>,
}

impl Disturbances {
    pub fn new(nodes: usize, stores: u16, recovers_ms: i64) -> Self {
        Self {
            nodes,
            stores,
            recovers_us: recovers_ms.saturating_mul(1000),
            spans: Vec::new(),
            silent: Vec::new(),
            down: BTreeSet::new(),
            stores_down: BTreeSet::new(),
        }
    }

    fn begin(&mut self, act: Act, affected: AffectedShards, end: DisturbanceEnd, from_us: i64, to_us: i64) {
        let to_us = match end {
            DisturbanceEnd::TakenOver => Some(to_us + self.recovers_us),
            DisturbanceEnd::Undone => None,
        };
        self.spans.push(Span { affected, from_us, to_us, what: format!("{act:?}") });
    }

    /// What lasts until it is undone is undone now.
    fn undone(&mut self, now: i64, which: impl Fn(&Span) -> bool) {
        for span in self.spans.iter_mut().filter(|span| span.to_us.is_none() && which(span)) {
            span.to_us = Some(now + self.recovers_us);
        }
    }

    /// An act was carried out from `from_us` to `to_us`. `executors`: names of those that run, by their hosts.
    pub fn carried_out(&mut self, act: Act, executors: &[String], from_us: i64, to_us: i64) {
        match act {
            Act::Kill(n) => self.node_down(act, n, from_us, to_us),
            Act::DieAt(n, ..) => {
                self.begin(act, AffectedShards::Nodes(vec![n]), DisturbanceEnd::TakenOver, from_us, from_us);
                self.node_down(act, n, to_us, to_us);
            }
            Act::Freeze(n) | Act::Clock(n, ..=-1 | 1..) => {
                self.begin(act, AffectedShards::Nodes(vec![n]), DisturbanceEnd::TakenOver, from_us, to_us);
            }
            Act::Start(n) => self.nodes_up(&[n], to_us),
            Act::StartBoth(one, other) => self.nodes_up(&[one, other], to_us),
            Act::Flap(one, other, ..) | Act::Cut(one, other) => self.cut(act, one, other, executors, from_us, to_us),
            Act::CutOneWay(from, to) => self.cut(act, from, to, executors, from_us, to_us),
            Act::CutOff(who, but) => {
                for other in At::all().filter(|other| *other != who && !but.contains(other)) {
                    // A node without the store acts for nobody soon: whoever takes its shards hears the executors.
                    if !matches!((who, other), (At::Node(_), At::Executor(_))) {
                        self.cut(act, who, other, executors, from_us, to_us);
                    }
                }
            }
            Act::Heal => {
                self.undone(to_us, |span| span.what.starts_with("Lose("));
                for silent in self.silent.iter_mut().filter(|silent| silent.to_us.is_none()) {
                    silent.to_us = Some(to_us + HEARD_AGAIN_US);
                }
            }
            Act::Slow(0) => self.undone(to_us, |span| span.what.starts_with("Slow(")),
            Act::LoseLwts(0) => self.undone(to_us, |span| span.what.starts_with("LoseLwts(")),
            Act::Lose(_) | Act::Slow(_) | Act::LoseLwts(_) => {
                self.begin(act, AffectedShards::Everybody, DisturbanceEnd::Undone, from_us, to_us);
            }
            Act::Store(order) => self.store(act, order, from_us, to_us),
            // Orderly moves, executors and full disks keep no shard from being served.
            Act::Stop(_)
            | Act::StopBoth(..)
            | Act::Thaw(_)
            | Act::Clock(_, 0)
            | Act::Wait(_)
            | Act::KillExecutor
            | Act::FreezeExecutor
            | Act::ThawExecutor
            | Act::ExecutorEnds(..)
            | Act::FillDisk(_)
            | Act::FreeDisk(_)
            | Act::Refused(..)
            | Act::Release(..)
            | Act::Readable
            | Act::Unreadable(_)
            | Act::Runs(..)
            | Act::ApplySchema
            | Act::EarlierReads
            | Act::BackOrRefused(_) => {}
        }
    }

    fn node_down(&mut self, act: Act, n: usize, from_us: i64, to_us: i64) {
        self.begin(act, AffectedShards::Nodes(vec![n]), DisturbanceEnd::TakenOver, from_us, to_us);
        self.down.insert(n);
        if self.down.len() == self.nodes {
            // Nobody is left to take over until one is started.
            self.begin(act, AffectedShards::Everybody, DisturbanceEnd::Undone, from_us, to_us);
        }
    }

    fn nodes_up(&mut self, which: &[usize], to_us: i64) {
        let all_were_down = self.down.len() == self.nodes;
        which.iter().for_each(|n| {
            self.down.remove(n);
        });
        if all_were_down {
            self.undone(to_us, |span| span.what.starts_with("Kill(") || span.what.starts_with("DieAt("));
        }
    }

    fn cut(&mut self, act: Act, one: At, other: At, executors: &[String], from_us: i64, to_us: i64) {
        match (one, other) {
            (At::Node(n), At::Store(_)) | (At::Store(_), At::Node(n)) => {
                let affected = AffectedShards::Nodes(vec![usize::from(n)]);
                if !self.spans.iter().any(|span| span.from_us == from_us && span.affected == affected) {
                    self.begin(act, affected, DisturbanceEnd::TakenOver, from_us, to_us);
                }
            }
            (At::Node(n), At::Executor(e)) | (At::Executor(e), At::Node(n)) => {
                let Some(executor) = executors.get(usize::from(e)).cloned() else { return };
                let same = |silent: &&mut SilentExecutor| silent.executor == executor && silent.from_us == from_us;
                match self.silent.iter_mut().find(same) {
                    Some(silent) => silent.by.push(usize::from(n)),
                    None => {
                        self.silent.push(SilentExecutor { executor, by: vec![usize::from(n)], from_us, to_us: None })
                    }
                }
            }
            // Nodes that do not hear each other are served by the store, and neither executors nor servers need each other.
            (At::Node(_), At::Node(_))
            | (At::Store(_), At::Store(_) | At::Executor(_))
            | (At::Executor(_), At::Store(_) | At::Executor(_)) => {}
        }
    }

    fn store(&mut self, act: Act, order: &str, from_us: i64, to_us: i64) {
        let (what, server) = order.split_once(' ').unwrap_or((order, ""));
        let majority_was_up = self.majority_is_up();
        match what {
            "pause" | "kill" => self.stores_down.insert(server.to_owned()),
            _ => self.stores_down.remove(server),
        };
        match (majority_was_up, self.majority_is_up()) {
            (true, false) => self.begin(act, AffectedShards::Everybody, DisturbanceEnd::Undone, from_us, to_us),
            (false, true) => self.undone(to_us, |span| span.what.starts_with("Store(")),
            // One of three: requests that it had are made again elsewhere.
            (true, true) if what != "resume" => {
                self.begin(act, AffectedShards::Everybody, DisturbanceEnd::TakenOver, from_us, to_us)
            }
            (true, true) | (false, false) => {}
        }
    }

    fn majority_is_up(&self) -> bool {
        self.stores_down.len() * 2 < usize::from(self.stores)
    }

    /// Writes down what was explained.
    pub fn write(&self, owners: &Owners, faults: &Record) {
        let now = now_us();
        for span in &self.spans {
            let to_us = span.to_us.unwrap_or(now);
            let shards = match &span.affected {
                AffectedShards::Everybody => None,
                // Who owned them when it was done: later the shards are somebody else's, who is not disturbed.
                AffectedShards::Nodes(nodes) => Some(owners.of(nodes, span.from_us, span.from_us)),
            };
            faults.line(&FaultLine {
                t_us: span.from_us,
                until_us: Some(to_us),
                shards,
                ..FaultLine::now(FaultEvent::Disturbed, Some(span.what.clone()))
            });
        }
        for silent in &self.silent {
            let to_us = silent.to_us.unwrap_or(now);
            faults.line(&FaultLine {
                t_us: silent.from_us,
                until_us: Some(to_us),
                executor: Some(silent.executor.clone()),
                // Attempts that it had of shards which came to those nodes meanwhile, too.
                shards: Some(owners.of(&silent.by, silent.from_us, to_us)),
                ..FaultLine::now(FaultEvent::ExecutorUnheard, None)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn shard(shard: u16, node: Option<&str>, session: u64) -> ShardView {
        ShardView {
            shard,
            node: node.map(str::to_owned),
            session: Some(session),
            epoch: 1,
            served_here: false,
            spans: 1,
            snapshot_seq: None,
        }
    }

    fn lines(done: &Disturbances, owners: &Owners) -> Vec<FaultLine> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("faults.jsonl");
        let record = Record::open(&path, std::time::Duration::ZERO).unwrap();
        done.write(owners, &record);
        record.close().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Shards 0 and 1 are n1's, 2 and 3 n2's; from 20 s on all are n1's.
    fn owners() -> Owners {
        let mut owners = Owners::default();
        let of = |n: u16| if n < 2 { (Some("n1"), 7) } else { (Some("n2"), 8) };
        for t in 0..20 {
            let all: Vec<_> = (0..4).map(|n| shard(n, of(n).0, of(n).1)).collect();
            owners.add(t * S, &all);
        }
        for t in 20..60 {
            owners.add(t * S, &(0..4).map(|n| shard(n, Some("n1"), 7)).collect::<Vec<_>>());
        }
        owners
    }

    #[test]
    fn a_kill_explains_the_dead_nodes_shards_until_they_must_be_taken_over_and_no_others() {
        let mut done = Disturbances::new(3, 1, 8_000);
        done.carried_out(Act::Wait(9), &[], 9 * S, 10 * S);
        done.carried_out(Act::Kill(1), &[], 10 * S, 10 * S);
        done.carried_out(Act::Start(1), &[], 25 * S, 27 * S);
        let lines = lines(&done, &owners());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!((lines[0].t_us, lines[0].until_us), (10 * S, Some(18 * S)));
        assert_eq!(lines[0].shards.as_deref(), Some([2, 3].as_slice()));
    }

    #[test]
    fn a_row_whose_node_is_gone_is_still_that_nodes() {
        let mut owners = Owners::default();
        owners.add(0, &[shard(5, Some("n2"), 8)]);
        owners.add(9 * S, &[shard(5, None, 8), shard(6, None, 8), shard(7, None, 9)]);
        assert_eq!(owners.of(&[1], 10 * S, 10 * S), [5, 6]);
    }

    #[test]
    fn orderly_moves_executors_and_full_disks_explain_nothing() {
        let mut done = Disturbances::new(3, 1, 8_000);
        let nothing = [
            Act::Stop(0),
            Act::Start(0),
            Act::StopBoth(1, 2),
            Act::StartBoth(1, 2),
            Act::KillExecutor,
            Act::FillDisk(1),
            Act::Release(0, 1),
            Act::Cut(At::Node(0), At::Node(1)),
            Act::Clock(1, 0),
        ];
        for act in nothing {
            done.carried_out(act, &[], 10 * S, 11 * S);
        }
        assert_eq!(lines(&done, &owners()), []);
    }

    #[test]
    fn a_store_that_stands_still_explains_all_shards_until_it_is_back_and_one_of_three_a_moment() {
        let mut done = Disturbances::new(3, 1, 8_000);
        done.carried_out(Act::Store("pause 1"), &[], 10 * S, 10 * S);
        done.carried_out(Act::Store("resume 1"), &[], 40 * S, 40 * S);
        let one = lines(&done, &owners());
        assert_eq!((one.len(), one[0].until_us, one[0].shards.clone()), (1, Some(48 * S), None));
        let mut done = Disturbances::new(3, 3, 8_000);
        done.carried_out(Act::Store("pause 2"), &[], 10 * S, 10 * S);
        done.carried_out(Act::Store("pause 3"), &[], 11 * S, 11 * S);
        done.carried_out(Act::Store("resume 2"), &[], 30 * S, 30 * S);
        done.carried_out(Act::Store("resume 3"), &[], 31 * S, 31 * S);
        let until: Vec<_> = lines(&done, &owners()).iter().map(|line| line.until_us).collect();
        assert_eq!(until, [Some(18 * S), Some(38 * S)]);
    }

    #[test]
    fn nobody_takes_over_until_a_node_is_there_again() {
        let mut done = Disturbances::new(2, 1, 8_000);
        done.carried_out(Act::Kill(0), &[], 10 * S, 10 * S);
        done.carried_out(Act::Kill(1), &[], 10 * S, 10 * S);
        done.carried_out(Act::Start(0), &[], 28 * S, 30 * S);
        done.carried_out(Act::Start(1), &[], 30 * S, 32 * S);
        let all: Vec<_> = lines(&done, &owners()).into_iter().filter(|line| line.shards.is_none()).collect();
        assert_eq!((all.len(), all[0].until_us), (1, Some(38 * S)));
    }

    #[test]
    fn an_executor_that_is_cut_off_is_unheard_by_those_nodes_shards_until_the_cut_is_healed() {
        let names = ["executor-1".to_owned(), "executor-2".to_owned()];
        let mut done = Disturbances::new(3, 1, 8_000);
        done.carried_out(Act::Cut(At::Node(1), At::Executor(0)), &names, 5 * S, 5 * S);
        done.carried_out(Act::Heal, &names, 15 * S, 15 * S);
        let lines = lines(&done, &owners());
        assert_eq!((lines.len(), lines[0].event), (1, FaultEvent::ExecutorUnheard));
        assert_eq!(lines[0].executor.as_deref(), Some("executor-1"));
        assert_eq!((lines[0].t_us, lines[0].until_us), (5 * S, Some(18 * S)));
        assert_eq!(lines[0].shards.as_deref(), Some([2, 3].as_slice()));
    }

    #[test]
    fn nodes_that_own_nothing_explain_nothing() {
        let names = ["executor-1".to_owned(), "executor-2".to_owned()];
        let mut done = Disturbances::new(3, 1, 8_000);
        // With the store: whoever takes the node's shards hears the executors.
        done.carried_out(Act::CutOff(At::Node(1), &[]), &names, 5 * S, 5 * S);
        // n1 to n5 do not hear it; who owns nothing adds nothing.
        done.carried_out(Act::CutOff(At::Executor(1), &[At::Node(1)]), &names, 6 * S, 6 * S);
        done.carried_out(Act::Heal, &names, 9 * S, 9 * S);
        let lines = lines(&done, &owners());
        let silent: Vec<_> = lines.iter().filter(|line| line.event == FaultEvent::ExecutorUnheard).collect();
        assert_eq!(silent.len(), 1);
        assert_eq!(
            (silent[0].executor.as_deref(), silent[0].shards.as_deref()),
            (Some("executor-2"), Some([0, 1].as_slice()))
        );
    }

    #[test]
    fn a_node_without_the_store_is_taken_over_from_once() {
        let mut done = Disturbances::new(3, 1, 8_000);
        done.carried_out(Act::CutOff(At::Node(1), &[]), &[], 10 * S, 10 * S);
        let lines = lines(&done, &owners());
        assert_eq!((lines.len(), lines[0].shards.as_deref()), (1, Some([2, 3].as_slice())));
    }
}
