//! Lists, explanations and the history of definitions in a cluster: whichever node is asked, the answer is about all shards.

use crate::{
    spread,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_actors::scheduler::{RunQuery, Scheduler};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, RunId},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    peer::runs::RunFilter,
    record::RunState,
    view::TriggerBody,
};
use std::collections::{BTreeMap, BTreeSet};

async fn created(scheduler: &Scheduler, spec: JobSpec) -> JobId {
    let name = spec.name.clone();
    let create = || async { scheduler.create_job(spec.clone(), Some(name.clone())).await.ok() };
    eventually("it is created", create).await.job_id
}

fn query(states: &[RunState]) -> RunQuery {
    let states = states.iter().map(|state| state.code()).collect();
    RunQuery { filter: RunFilter { states, ..RunFilter::default() } }
}

async fn listed(scheduler: &Scheduler, query: &RunQuery) -> Vec<RunId> {
    let (mut all, mut token) = (Vec::new(), None);
    loop {
        let page = scheduler.run_list(query, token, 5).await.unwrap();
        assert!(page.items.len() <= 5);
        all.extend(page.items.iter().map(|run| run.run_id));
        token = page.next_page_token;
        if token.is_none() {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_lists_and_explains_the_runs_and_versions_of_all_shards() {
    const JOBS: usize = 2 * SHARDS as usize;
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let one = cluster.scheduler(1);
    let mut runs = BTreeMap::new();
    for n in 0..JOBS {
        let spec = JobSpec::new("acme", &format!("job-{n}"), Trigger::Manual {});
        let spec = JobSpec { concurrency_policy: ConcurrencyPolicy::Allow, ..spec };
        let job = created(one, spec).await;
        let trigger = TriggerBody { manual_run_id: Some("once".to_owned()), ..TriggerBody::default() };
        let made = eventually("it is triggered", || async { one.trigger(job, trigger.clone()).await.ok() }).await;
        runs.insert(made.run_id, job);
    }
    // Two of them ended: canceled runs are listed by job only.
    for run in runs.keys().take(2) {
        eventually("it is canceled", || async { one.cancel_run(*run, None).await.ok() }).await;
    }
    let open: BTreeSet<RunId> = runs.keys().skip(2).copied().collect();
    let canceled = *runs.values().next().unwrap();
    for node in [1, 2] {
        let scheduler = cluster.scheduler(node);
        let found = listed(scheduler, &query(&[RunState::Queued])).await;
        assert_eq!((found.len(), found.iter().copied().collect::<BTreeSet<_>>()), (open.len(), open.clone()));
        for run in open.iter().take(4) {
            let view = scheduler.explain_run(*run).await.unwrap();
            assert!(view.reasons.iter().any(|reason| reason.code == "NO_EXECUTOR"), "{view:?}");
        }
        let refused = scheduler.run_list(&query(&[RunState::Canceled]), None, 5).await.unwrap_err();
        assert_eq!(refused.known(), ErrorCode::InvalidArgument);
        assert!(refused.message.contains("give jobId"), "{}", refused.message);
        assert_eq!(listed(scheduler, &query(&[RunState::Failed, RunState::Timeout])).await, []);
        // Rows of a shard of the other node come with its next projection.
        let of_canceled = query(&[RunState::Canceled]);
        let of_job = RunQuery { filter: RunFilter { job: Some(canceled), ..of_canceled.filter } };
        eventually("the canceled run is in the history", || async {
            (listed(scheduler, &of_job).await.len() == 1).then_some(())
        })
        .await;
        eventually("the version is there", || async {
            let page = scheduler.job_versions(canceled, None, None, 9).await.unwrap();
            (page.items.len() == 1 && page.items[0].version == 1).then_some(())
        })
        .await;
        assert_eq!(scheduler.load(Some("acme".to_owned()), 60).await.unwrap().jobs, 0, "no job has a schedule");
    }
    for node in [1, 2] {
        cluster.stop(node).await;
    }
}
