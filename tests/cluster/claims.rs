//! What binds each call of an executor. A foreign credential tries every call with the right run, attempt and fencing token: on
//! the owner of the shard, through another node, after a take-over, and on a node that has just been started again.

use crate::{SHARDS, spread, support::eventually, test_cluster::TestCluster};
use campanile_actors::{messages::ToExecutor, scheduler::Scheduler};
use campanile_core::job::Claimant;
use campanile_schema::{
    error::ErrorCode,
    ids::{ExecutorSession, JobId, RunId, Token},
    job::{JobSpec, Trigger},
    kinds::Kinds,
    record::{AttemptState, RunState},
    rpc::executor::{Assignment, Credit, Ended, Finish, FinishOutcome, Held, Register},
    view::TriggerBody,
};
use std::sync::Arc;
use tokio::sync::mpsc;

fn claimant(session: u64, credential: &str) -> Arc<Claimant> {
    Arc::new(Claimant { session: ExecutorSession(session), credential: credential.into(), pools: None })
}

async fn register(node: &Scheduler, by: &Arc<Claimant>) -> Result<mpsc::Receiver<ToExecutor>, ErrorCode> {
    let (outbox, inbox) = mpsc::channel(64);
    let register = Register {
        executor_id: by.credential.to_string(),
        session: by.session,
        pools: vec!["default".to_owned()],
        slots: 4,
        handlers: Vec::new(),
        any_handler: true,
        kinds: Kinds::NONE,
        labels: Default::default(),
        cpu: 0.0,
        memory_mb: 0,
        storage_mb: 0,
        stop_grace_sec: None,
    };
    node.executor_register(register, by.clone(), outbox).await.map(|_| inbox).map_err(|error| error.known())
}

/// An attempt, as whoever saw its assignment knows it.
struct Attempt {
    run: RunId,
    job: JobId,
    token: Token,
    attempt: u32,
}

impl Attempt {
    fn of(a: &Assignment) -> Self {
        Self { run: a.run, job: a.job, token: a.token, attempt: a.attempt }
    }

    async fn finish(&self, node: &Scheduler, by: &Arc<Claimant>) -> FinishOutcome {
        let ended = Ended {
            run: self.run,
            job: self.job,
            token: self.token,
            state: AttemptState::Success,
            error_code: None,
            error_message: None,
            result: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        eventually("an owner takes or refuses the result", || async {
            let finish = Finish { items: vec![ended.clone()], credit: None };
            let outcome = node.executor_finish(by, finish).await.unwrap().outcomes[0];
            (outcome != FinishOutcome::Again).then_some(outcome)
        })
        .await
    }

    async fn may_log(&self, node: &Scheduler, by: &Arc<Claimant>) -> bool {
        eventually("the owner says who may log", || async {
            node.executor_holds(by, self.run, self.token, self.attempt).await.ok()
        })
        .await
    }

    /// Whether it must stop what it announces.
    async fn announce(&self, node: &Scheduler, by: &Arc<Claimant>) -> bool {
        let held = Held { run: self.run, job: self.job, token: self.token };
        node.executor_announce(by.session, vec![held]).await.unwrap().stop == [held]
    }

    /// Every call by a credential that does not hold it, at a node that owns its shard (or does not).
    async fn withstands(&self, node: &Scheduler, owner: bool, place: &str) {
        let foreign = claimant(900, "red");
        let _inbox = register(node, &foreign).await.unwrap();
        let same_number = claimant(1, "red");
        assert_eq!(register(node, &same_number).await.err(), Some(ErrorCode::Forbidden), "register, {place}");
        for by in [&foreign, &same_number] {
            assert_eq!(self.finish(node, by).await, FinishOutcome::Stale, "finish, {place}");
            assert!(!self.may_log(node, by).await, "log, {place}");
        }
        // A node that does not own the shard says nothing about it, and does nothing.
        assert_eq!(self.announce(node, &foreign).await, owner, "announce, {place}");
        // A list without it says that it is not held: by somebody who does not hold it.
        assert!(node.executor_announce(foreign.session, Vec::new()).await.is_ok());
        node.executor_disconnected(foreign.session);
        let run = eventually("its run is found", || async { node.run(self.run).await.ok() }).await;
        assert_eq!((run.state, run.attempts.len()), (RunState::Running, 1), "{place}");
        assert_eq!(run.attempts[0].executor_id, "blue", "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_of_an_executor_is_bound_to_its_credential_wherever_it_is_made() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    assert!(cluster.owned().values().all(|shards| *shards < usize::from(SHARDS)));
    let job = of_node(&cluster, 1).await;
    let own = claimant(1, "blue");
    let mut inbox = register(cluster.scheduler(1), &own).await.unwrap();
    let _other = register(cluster.scheduler(2), &own).await.unwrap();
    cluster.scheduler(1).executor_credit(own.session, Credit { stamp_ms: 1, slots: 1, ..Credit::default() });
    cluster.scheduler(1).trigger(job, TriggerBody::default()).await.unwrap();
    let attempt = loop {
        if let ToExecutor::Assign(items) = inbox.recv().await.unwrap() {
            break Attempt::of(&items[0]);
        }
    };

    attempt.withstands(cluster.scheduler(1), true, "on the owner").await;
    attempt.withstands(cluster.scheduler(2), false, "through another node").await;
    for node in [1, 2] {
        assert!(attempt.may_log(cluster.scheduler(node), &own).await, "its own executor may");
    }
    assert!(!attempt.announce(cluster.scheduler(1), &own).await);

    cluster.stop(1).await;
    taken_over(&cluster, 2, job).await;
    cluster.scheduler(2).executor_heartbeat(own.session);
    attempt.withstands(cluster.scheduler(2), true, "after a take-over").await;
    assert!(!attempt.announce(cluster.scheduler(2), &own).await, "its own executor keeps it");

    // Nothing but what is stored is left of who holds it.
    cluster.stop(2).await;
    cluster.start(3).await;
    taken_over(&cluster, 3, job).await;
    known(cluster.scheduler(3), own.session).await;
    attempt.withstands(cluster.scheduler(3), true, "after a restart").await;
    // A rotated token of the same name, on a new connection and as a new session: it goes on.
    let _inbox = register(cluster.scheduler(3), &own).await.unwrap();
    let rotated = claimant(77, "blue");
    let _again = register(cluster.scheduler(3), &rotated).await.unwrap();
    assert!(!attempt.announce(cluster.scheduler(3), &rotated).await);
    assert!(attempt.may_log(cluster.scheduler(3), &rotated).await);
    assert_eq!(attempt.finish(cluster.scheduler(3), &rotated).await, FinishOutcome::Durable);
    assert_eq!(cluster.scheduler(3).run(attempt.run).await.unwrap().state, RunState::Success);
    cluster.stop(3).await;
}

async fn of_node(cluster: &TestCluster, node: u64) -> JobId {
    for n in 0.. {
        let spec = JobSpec::new("default", &format!("job-{n}"), Trigger::Manual {});
        let job = cluster.scheduler(node).create_job(spec, None).await.unwrap().job_id;
        if cluster.owner_of(job) == Some(node) {
            return job;
        }
    }
    unreachable!("some name is of a shard of each node")
}

async fn taken_over(cluster: &TestCluster, node: u64, job: JobId) {
    eventually("its shard is taken over", || async {
        let here = cluster.owner_of(job) == Some(node) && cluster.scheduler(node).job(job).await.is_ok();
        here.then_some(())
    })
    .await;
}

/// The node has read of whom the attempt is.
async fn known(node: &Scheduler, session: ExecutorSession) {
    eventually("the session is known", || async {
        node.executors().await.ok()?.iter().any(|executor| executor.session == session.0).then_some(())
    })
    .await;
}
