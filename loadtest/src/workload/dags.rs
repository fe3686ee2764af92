//! DAGs of a run: small graphs with every rule, with conditions on results, with params that read results, and with nodes that fail or are
//! tried again. Their nodes' jobs are nobody else's.

use super::{Plan, Random, rate_at, spec, window};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec, state::NodeRule},
    job::{Action, Backoff, ConcurrencyPolicy, Hook, JobSpec, MisfirePolicy, RetryPolicy, Trigger},
    payload::Payload,
};
use std::collections::BTreeSet;

/// Nodes of a DAG, count.
const NODES: (u64, u64) = (3, 11);
/// Parents of a node that has any, count.
const PARENTS: (u64, u64) = (1, 4);
/// A body's result has a number below this, and conditions ask whether it is above one of these.
const ROWS: u64 = 10;
const ABOVE: (u64, u64) = (2, 7);
/// Period of the DAGs that are due by themselves, seconds; every third is.
const EVERY_SEC: u64 = 4;
const SCHEDULED: u64 = 3;
const OF_SCHEDULED: [ConcurrencyPolicy; 3] =
    [ConcurrencyPolicy::Allow, ConcurrencyPolicy::Forbid, ConcurrencyPolicy::QueueOne];
/// Bodies of the nodes that take long, milliseconds: longer than some nodes beside them.
const LONG_MS: (u64, u64) = (100, 700);

/// DAGs with the jobs that they name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DagJobs {
    /// Jobs of nodes and of hooks, which must be there before the DAGs are created.
    pub parts: Vec<JobSpec>,
    pub dags: Vec<JobSpec>,
}

impl DagJobs {
    /// DAGs that somebody triggers.
    pub fn is_by_hand(spec: &JobSpec) -> bool {
        matches!(spec.trigger, Trigger::Manual {})
    }
}

/// So many DAGs; what they are follows from the seed.
pub fn dags(plan: &Plan, count: u64) -> DagJobs {
    let mut random = Random::new(plan.seed ^ 0x6461_6773);
    let mut jobs = DagJobs::default();
    if count == 0 {
        return jobs;
    }
    let named = |what: &str| Plan { prefix: format!("{}-{what}", plan.prefix), ..plan.clone() };
    let (of_nodes, of_hooks, of_dags) = (named("dagnode"), named("daghook"), named("dag"));
    let [undoes, tells] = [0, 1].map(|n| JobSpec { params: bodies(5), ..by_hand(&of_hooks, n) });
    let hooks = |spec: &mut JobSpec| {
        spec.hooks.on_failure =
            vec![Hook { compensation: true, ..Hook::new(undoes.name.clone()) }, Hook::new(tells.name.clone())];
        spec.hooks.on_success = vec![Hook::new(tells.name.clone())];
    };
    for n in 0..count {
        let nodes = random.between(NODES.0, NODES.1);
        let first = jobs.parts.len() as u64;
        for place in 0..nodes {
            let mut part = node_job(&of_nodes, first + place, &mut random);
            // The failures of some nodes are undone, whatever becomes of their DAG.
            if random.percent(20) {
                hooks(&mut part);
            }
            jobs.parts.push(part);
        }
        let names: Vec<String> = jobs.parts.iter().skip(first as usize).map(|part| part.name.clone()).collect();
        let mut dag = JobSpec::new(&of_dags.tenant, &format!("{}/{n:07}", of_dags.prefix), trigger(plan, n));
        dag.action = Some(Action::Dag(graph(&names, &mut random)));
        dag.concurrency_policy =
            if DagJobs::is_by_hand(&dag) { ConcurrencyPolicy::Allow } else { *random.one_of(&OF_SCHEDULED) };
        if n % 2 == 0 {
            hooks(&mut dag);
        }
        jobs.dags.push(dag);
    }
    jobs.parts.extend([undoes, tells]);
    jobs
}

fn trigger(plan: &Plan, n: u64) -> Trigger {
    if n % SCHEDULED == SCHEDULED - 1 {
        let anchor = plan.start_ms + (n * 317 % (EVERY_SEC * 1000)) as i64;
        rate_at(window(plan), EVERY_SEC, anchor, (MisfirePolicy::FireOnceNow, 5))
    } else {
        Trigger::Manual {}
    }
}

fn by_hand(plan: &Plan, n: u64) -> JobSpec {
    JobSpec { concurrency_policy: ConcurrencyPolicy::Allow, ..spec(plan, n, Trigger::Manual {}) }
}

fn bodies(body_ms: u64) -> Payload {
    Payload(format!("{{\"bodyMs\":{body_ms}}}"))
}

/// Some take long, some fail for good now and then, some fail and are tried again.
fn node_job(plan: &Plan, n: u64, random: &mut Random) -> JobSpec {
    let (body_ms, fail_percent, attempts) = match random.below(10) {
        0..=3 => (random.between(0, 30), 0, 1),
        4..=5 => (random.between(LONG_MS.0, LONG_MS.1), 0, 2),
        6..=7 => (random.between(0, 100), 35, 1),
        _ => (random.between(0, 50), 40, 3),
    };
    let params = format!("{{\"bodyMs\":{body_ms},\"failPercent\":{fail_percent},\"rows\":{ROWS}}}");
    let retry_policy = RetryPolicy {
        max_attempts: attempts,
        backoff: Backoff::Fixed,
        base_delay_sec: 0.2,
        max_delay_sec: 1.0,
        jitter: 0.2,
        max_elapsed_sec: None,
    };
    JobSpec { params: Payload(params), retry_policy, ..by_hand(plan, n) }
}

fn graph(jobs: &[String], random: &mut Random) -> GraphSpec {
    let id = |place: u64| format!("n{place}");
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for (place, job) in (0..).zip(jobs) {
        let mut node = NodeSpec::new(&id(place), job);
        let mut parents = BTreeSet::new();
        if place > 0 && !random.percent(10) {
            for _ in 0..random.between(PARENTS.0, PARENTS.1) {
                parents.insert(random.below(place));
            }
        }
        if let Some(first) = parents.first() {
            node.rule = rule(random);
            // Nodes with other rules may start before the one that they would read has ended.
            let waits = !matches!(node.rule, NodeRule::AnySuccess | NodeRule::AnyFailed);
            if waits && random.percent(30) {
                node.params = Payload(format!("{{\"from\":\"{{{{nodes.{}.result.rows}}}}\"}}", id(*first)));
            }
        }
        for parent in parents {
            let when = random.percent(25).then(|| format!("parent.result.rows > {}", random.between(ABOVE.0, ABOVE.1)));
            edges.push(EdgeSpec { when, ..EdgeSpec::new(&id(parent), &id(place)) });
        }
        nodes.push(node);
    }
    let mut graph = GraphSpec::new(nodes, edges);
    graph.fail_fast = random.percent(10);
    if random.percent(30) {
        graph.max_parallel = 2;
    }
    graph
}

/// The graph of a job; None: it is no DAG.
pub fn graph_of(spec: &JobSpec) -> Option<&GraphSpec> {
    match &spec.action {
        Some(Action::Dag(graph)) => Some(graph),
        Some(_) | None => None,
    }
}

fn rule(random: &mut Random) -> NodeRule {
    match random.below(20) {
        0..=9 => NodeRule::AllSuccess,
        10..=13 => NodeRule::AllDone,
        14..=15 => NodeRule::AnySuccess,
        16..=17 => NodeRule::AnyFailed,
        _ => NodeRule::NoneFailed,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn plan() -> Plan {
        Plan {
            jobs: 0,
            rate: 1.0,
            start_ms: 1_770_000_000_000,
            end_ms: 1_770_000_060_000,
            pool: "default".to_owned(),
            tenant: "default".to_owned(),
            prefix: "t".to_owned(),
            seed: 1,
        }
    }

    fn graphs(jobs: &DagJobs) -> Vec<&GraphSpec> {
        jobs.dags.iter().map(|spec| graph_of(spec).unwrap()).collect()
    }

    #[test]
    fn the_dags_follow_from_the_seed_and_have_every_rule_condition_and_template() {
        let jobs = dags(&plan(), 12);
        assert_eq!(jobs, dags(&plan(), 12));
        assert_ne!(jobs, dags(&Plan { seed: 2, ..plan() }, 12));
        let graphs = graphs(&jobs);
        assert!(graphs.iter().all(|graph| (3..=10).contains(&graph.nodes.len())));
        for rule in NodeRule::ALL {
            assert!(graphs.iter().any(|graph| graph.nodes.iter().any(|node| node.rule == *rule)), "{rule:?}");
        }
        assert!(graphs.iter().any(|graph| graph.edges.iter().any(|edge| edge.when.is_some())));
        assert!(graphs.iter().any(|graph| graph.nodes.iter().any(|node| !node.params.is_empty())));
        assert!(graphs.iter().any(|graph| graph.max_parallel == 2));
        let by_hand = jobs.dags.iter().filter(|spec| DagJobs::is_by_hand(spec)).count();
        assert_eq!((by_hand, jobs.dags.len()), (8, 12));
    }

    #[test]
    fn a_node_names_a_job_that_is_no_other_nodes_and_comes_behind_its_parents() {
        let jobs = dags(&plan(), 12);
        let names: Vec<&str> = jobs.parts.iter().map(|part| part.name.as_str()).collect();
        let mut named = BTreeSet::new();
        for graph in graphs(&jobs) {
            let place = |id: &str| graph.nodes.iter().position(|node| node.id == id).unwrap();
            for node in &graph.nodes {
                assert!(names.contains(&node.job.as_str()) && named.insert(node.job.clone()), "{}", node.job);
                let is_root = graph.edges.iter().all(|edge| edge.to != node.id);
                // These rules are refused for a node that nothing comes before.
                assert!(!is_root || node.rule == NodeRule::AllSuccess);
            }
            assert!(graph.edges.iter().all(|edge| place(&edge.from) < place(&edge.to)));
        }
        assert_eq!(dags(&plan(), 0), DagJobs::default());
    }
}
