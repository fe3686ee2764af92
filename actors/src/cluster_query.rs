//! Lists of the whole cluster: what is asked of each node, and how the answers become one list.

pub use campanile_schema::peer::cluster_query::{ClusterQuery, NodeAnswer};
use campanile_schema::{
    error::Answer,
    view::{ExecutorAtNode, ExecutorState, ExecutorView, Gathered, MissingNode, NodeFacts, NodeView, PoolView},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Longest wait for a node's answer. Less than a second: so long many who ask wait for theirs.
pub const ANSWER: Duration = Duration::from_millis(800);

/// What nodes said, by their names.
pub type NodeAnswers = Vec<(String, Answer<NodeAnswer>)>;

/// Those that came, and the nodes without one.
fn parted(answers: NodeAnswers) -> (Vec<(String, NodeAnswer)>, Vec<MissingNode>) {
    let (mut came, mut missing) = (Vec::new(), Vec::new());
    for (node, answer) in answers {
        match answer {
            Ok(said) => came.push((node, said)),
            Err(error) => missing.push(MissingNode { node, reason: error.message }),
        }
    }
    came.sort_by(|a, b| a.0.cmp(&b.0));
    missing.sort_by(|a, b| a.node.cmp(&b.node));
    (came, missing)
}

/// An executor that is connected to several nodes is one.
pub(crate) fn executors(answers: NodeAnswers) -> Gathered<ExecutorView> {
    let (came, missing) = parted(answers);
    let mut all: BTreeMap<(String, u64), ExecutorView> = BTreeMap::new();
    for (node, said) in came {
        for seen in said.executors {
            let here = ExecutorAtNode {
                node: node.clone(),
                state: seen.state,
                running: seen.running,
                credit: seen.credit,
                last_heartbeat_at: seen.last_heartbeat_at,
            };
            match all.get_mut(&(seen.executor_id.clone(), seen.session)) {
                None => {
                    all.insert((seen.executor_id.clone(), seen.session), ExecutorView { nodes: vec![here], ..seen });
                }
                Some(one) => {
                    // A node that has not been told yet who it is knows it by what it runs.
                    if one.pools.is_empty() {
                        (one.pools, one.labels) = (seen.pools, seen.labels);
                    }
                    one.slots = one.slots.max(seen.slots);
                    one.running += seen.running;
                    one.credit += seen.credit;
                    one.last_heartbeat_at = one.last_heartbeat_at.max(seen.last_heartbeat_at);
                    if weight(seen.state) > weight(one.state) {
                        one.state = seen.state;
                    }
                    one.nodes.push(here);
                }
            }
        }
    }
    Gathered { items: all.into_values().collect(), missing }
}

/// Which of two states is the executor's, when nodes see different ones: one that drains drains everywhere, and one that a node
/// hears is not lost.
fn weight(state: ExecutorState) -> u8 {
    match state {
        ExecutorState::Draining => 3,
        ExecutorState::Ready => 2,
        ExecutorState::SuspectedLost => 1,
        ExecutorState::Disconnected => 0,
    }
}

pub(crate) fn pools(answers: NodeAnswers) -> Gathered<PoolView> {
    let (came, missing) = parted(answers);
    let mut all: BTreeMap<String, PoolView> = BTreeMap::new();
    let mut sessions: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (_, said) in came {
        for seen in said.pools {
            match all.get_mut(&seen.name) {
                None => {
                    all.insert(seen.name.clone(), seen);
                }
                Some(one) => {
                    one.credit += seen.credit;
                    one.running += seen.running;
                    one.waiting += seen.waiting;
                }
            }
        }
        for (session, pools, connected) in said.sessions {
            for pool in pools.into_iter().filter(|_| connected) {
                sessions.entry(pool).or_default().insert(session);
            }
        }
    }
    for (name, pool) in &mut all {
        pool.executors = sessions.get(name).map_or(0, BTreeSet::len) as u32;
    }
    Gathered { items: all.into_values().collect(), missing }
}

/// Facts of the asked node, with numbers of all.
pub(crate) fn node(own: NodeView, answers: NodeAnswers) -> NodeView {
    let (came, missing) = parted(answers);
    let mut whole = NodeView { jobs: 0, open_runs: 0, missing, ..own };
    let mut sessions = BTreeSet::new();
    for (node, said) in came {
        sessions.extend(said.sessions.iter().map(|(session, ..)| *session));
        let Some(facts) = said.node else { continue };
        whole.jobs += facts.jobs;
        whole.open_runs += facts.open_runs;
        whole.nodes.push(NodeFacts {
            node,
            version: facts.version,
            epoch: facts.epoch,
            ready: facts.ready,
            not_ready_reasons: facts.not_ready_reasons,
            jobs: facts.jobs,
            open_runs: facts.open_runs,
            executors: facts.executors,
            now: facts.now,
        });
    }
    whole.executors = sessions.len() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::{
        error::{ApiError, ErrorCode},
        time::Timestamp,
    };

    fn executor(session: u64, state: ExecutorState, credit: u32, heard: i64) -> ExecutorView {
        ExecutorView {
            executor_id: format!("x{session}"),
            session,
            pools: vec!["default".to_owned()],
            slots: 8,
            running: 1,
            credit,
            state,
            labels: BTreeMap::new(),
            last_heartbeat_at: Timestamp(heard),
            nodes: Vec::new(),
        }
    }
    fn pool(waiting: u64) -> PoolView {
        PoolView { name: "default".to_owned(), executors: 2, credit: 3, running: 1, waiting }
    }
    fn silent() -> (String, Answer<NodeAnswer>) {
        ("n3".to_owned(), Err(ApiError::new(ErrorCode::NotReady, "no answer")))
    }

    #[test]
    fn an_executor_of_several_nodes_is_one_and_a_silent_node_is_named() {
        let said = |executors| Ok(NodeAnswer { executors, ..NodeAnswer::default() });
        let answers = vec![
            ("n2".to_owned(), said(vec![executor(1, ExecutorState::Ready, 2, 20)])),
            silent(),
            (
                "n1".to_owned(),
                said(vec![executor(1, ExecutorState::Disconnected, 0, 10), executor(2, ExecutorState::Draining, 0, 5)]),
            ),
        ];
        let Gathered { items, missing } = executors(answers);
        assert_eq!(missing, [MissingNode { node: "n3".to_owned(), reason: "no answer".to_owned() }]);
        assert_eq!(items.len(), 2);
        let one = &items[0];
        assert_eq!((one.session, one.state, one.slots, one.running, one.credit), (1, ExecutorState::Ready, 8, 2, 2));
        assert_eq!(one.last_heartbeat_at, Timestamp(20));
        let nodes: Vec<_> = one.nodes.iter().map(|at| (at.node.as_str(), at.state.as_str(), at.credit)).collect();
        assert_eq!(nodes, [("n1", "DISCONNECTED", 0), ("n2", "READY", 2)]);
        assert_eq!(items[1].nodes.len(), 1);
    }

    #[test]
    fn pools_are_summed_and_their_executors_counted_once() {
        let said = |executors, waiting| {
            Ok(NodeAnswer { executors, pools: vec![pool(waiting)], ..NodeAnswer::default() }.counted())
        };
        let both = || vec![executor(1, ExecutorState::Ready, 2, 0), executor(2, ExecutorState::Ready, 1, 0)];
        let gone = executor(3, ExecutorState::Disconnected, 0, 0);
        let answers = vec![
            ("n1".to_owned(), said(both(), 4)),
            ("n2".to_owned(), said([both(), vec![gone]].concat(), 5)),
            silent(),
        ];
        let Gathered { items, missing } = pools(answers);
        let [one] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!((one.executors, one.credit, one.running, one.waiting), (2, 6, 2, 9));
        assert_eq!(missing.len(), 1);
    }
}
