//! Story 1 in a cluster: at two in the night A -> B -> C begins, B fails for good, C does not start, and somebody is told. In the morning
//! B is repaired and retried, C follows, and A does not run again. At every turn of it the node is cut off that owns what matters then,
//! as if it had died, and comes back later. `tests/node/dag/story_01.rs` has it on one node.

use crate::{
    spread,
    support::{self, eventually},
    test_cluster::{SHARDS, TestCluster},
};
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec, state::NodeState},
    ids::{JobId, RunId, shard_of_slot, slot_of},
    job::{Action, Hook, JobSpec, Trigger},
    payload::Payload,
    record::{RunState, Source},
    view::RunView,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::Semaphore;

/// What the bodies do, and which have begun.
struct Night {
    began: Mutex<BTreeMap<String, usize>>,
    repaired: AtomicBool,
    /// Bodies of `a` and `c` end when it lets them.
    gate: Semaphore,
}

impl Night {
    fn began(&self, job: &str) -> usize {
        self.began.lock().get(job).copied().unwrap_or(0)
    }
    async fn body(&self, job: &str) -> Result<Option<Payload>, JobError> {
        *self.began.lock().entry(job.to_owned()).or_default() += 1;
        match job.split('-').next() {
            Some("a" | "c") => self.gate.acquire().await.unwrap().forget(),
            Some("b") if !self.repaired.load(Ordering::SeqCst) => return Err(JobError::message("no luck")),
            _ => {}
        }
        Ok(None)
    }
}

fn executor(cluster: &TestCluster, night: &Arc<Night>) -> ExecutorHandle {
    let night = night.clone();
    Executor::builder([1, 2, 3].map(|node| cluster.rpc(node)).join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(move |context: Context, _: Payload| {
            let night = night.clone();
            async move { night.body(context.job_name()).await }
        })
        .build()
        .unwrap()
        .start()
}

/// A name that begins so, of a job that this node owns.
fn name_on(cluster: &TestCluster, start: &str, node: u64) -> String {
    let is_there =
        |name: &String| cluster.owner_of_shard(shard_of_slot(slot_of("default", name), SHARDS)) == Some(node);
    (0..).map(|n| format!("{start}-{n}")).find(is_there).unwrap()
}

/// Fires once today, in a moment: two in the night.
fn at_two() -> Trigger {
    let soon = SystemTime::now() + Duration::from_secs(5);
    let second = soon.duration_since(UNIX_EPOCH).unwrap().as_secs() % 86_400;
    let expr = format!("{} {} {} * * *", second % 60, second / 60 % 60, second / 3_600);
    serde_json::from_value(serde_json::json!({"type": "CRON", "expr": expr, "dialect": "UNIX"})).unwrap()
}

async fn created(
    cluster: &TestCluster,
    name: &str,
    trigger: impl Fn() -> Trigger,
    change: impl Fn(&mut JobSpec),
) -> JobId {
    let create = || async {
        let mut spec = JobSpec::new("default", name, trigger());
        change(&mut spec);
        cluster.scheduler(1).create_job(spec, None).await.ok()
    };
    eventually("it is created", create).await.job_id
}

async fn runs(cluster: &TestCluster, job: JobId) -> Option<Vec<RunView>> {
    Some(cluster.scheduler(1).job_runs(job, None, 1000).await.ok()?.items)
}

async fn until(cluster: &TestCluster, run: RunId, state: RunState) -> RunView {
    let look = || async { cluster.scheduler(1).run(run).await.ok().filter(|view| view.state == state) };
    eventually(&format!("the run is {state}"), look).await
}

/// A node dies; others have its shards when this ends.
async fn dies(cluster: &TestCluster, node: u64) {
    cluster.cut_off(node);
    eventually("the others own everything", || async {
        let owned = cluster.owned();
        (!owned.contains_key(&node) && owned.values().sum::<usize>() == usize::from(SHARDS)).then_some(())
    })
    .await;
}

async fn comes_back(cluster: &TestCluster, node: u64) {
    cluster.reconnect(node);
    spread(cluster, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn story_01_b_fails_at_night_and_in_the_morning_it_is_repaired_and_c_follows() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let night = Arc::new(Night { began: Mutex::default(), repaired: AtomicBool::new(false), gate: Semaphore::new(0) });
    let executor = executor(&cluster, &night);
    let names =
        [("a", 1), ("b", 3), ("c", 2), ("tell", 3), ("nightly", 2)].map(|(name, node)| name_on(&cluster, name, node));
    let [a, b, c, tell, nightly] = &names;
    let by_hand = || Trigger::Manual {};
    let tries = |spec: &mut JobSpec| {
        (spec.retry_policy.max_attempts, spec.retry_policy.base_delay_sec) = (2, 0.1);
    };
    let mut jobs = Vec::new();
    for name in [a, b, c, tell] {
        jobs.push(created(&cluster, name, by_hand, tries).await);
    }
    let dag = created(&cluster, nightly, at_two, |spec| {
        let nodes = vec![NodeSpec::new("A", a), NodeSpec::new("B", b), NodeSpec::new("C", c)];
        let edges = vec![EdgeSpec::new("A", "B"), EdgeSpec::new("B", "C")];
        spec.action = Some(Action::Dag(GraphSpec::new(nodes, edges)));
        spec.hooks.on_failure = vec![Hook::new(tell.clone())];
    })
    .await;

    // At two. A ends while nobody owns the DAG.
    eventually("A runs", || async { (night.began(a) > 0).then_some(()) }).await;
    let run = eventually("the run", || async { runs(&cluster, dag).await?.pop() }).await;
    cluster.cut_off(2);
    night.gate.add_permits(1);
    dies(&cluster, 2).await;
    let failed = until(&cluster, run.run_id, RunState::Failed).await;
    assert_eq!((failed.source, failed.generation), (Source::Schedule, 1));
    comes_back(&cluster, 2).await;
    let told = eventually("somebody is told", || async {
        runs(&cluster, jobs[3]).await?.pop().filter(|told| told.state == RunState::Success)
    })
    .await;
    assert_eq!(told.reason, Some(format!("onFailure of run {}, generation 1", run.run_id)));
    assert_eq!((night.began(b), night.began(c)), (2, 0));

    // In the morning.
    night.repaired.store(true, Ordering::SeqCst);
    let of_b = eventually("the run of B", || async { runs(&cluster, jobs[1]).await?.pop() }).await;
    eventually("it is retried", || async {
        let _ = cluster.scheduler(1).retry_run(of_b.run_id, false, Some("the disk has room again".to_owned())).await;
        // Asked again, it says that the node has not ended.
        cluster.scheduler(1).run(run.run_id).await.ok().filter(|view| view.generation == 2).map(drop)
    })
    .await;
    dies(&cluster, 3).await;
    eventually("C runs", || async { (night.began(c) > 0).then_some(()) }).await;
    comes_back(&cluster, 3).await;
    dies(&cluster, 2).await;
    night.gate.add_permits(1);
    let done = until(&cluster, run.run_id, RunState::Success).await;
    comes_back(&cluster, 2).await;
    assert_eq!(done.generation, 2);
    let view = cluster.scheduler(2).dag_nodes(run.run_id, None).await.unwrap();
    assert!(view.nodes.iter().all(|node| node.state == NodeState::Success), "{view:?}");
    assert_eq!([a, b, c, tell].map(|name| night.began(name)), [1, 3, 1, 1]);
    for (job, generation) in jobs.iter().zip([1, 2, 1, 1]) {
        let runs = runs(&cluster, *job).await.unwrap();
        assert_eq!(runs.iter().map(|run| run.generation).collect::<Vec<_>>(), [generation]);
    }
    executor.drain(Duration::from_secs(2)).await;
    for node in [3, 2, 1] {
        cluster.stop(node).await;
    }
}
