//! The audit trail of a cluster: any node takes a change, the owner of its shard records it, and every node lists it. Nodes of a release
//! before write nothing that they cannot read.

use crate::{
    spread,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_actors::scheduler::Scheduler;
use campanile_ports::{AuditQuery, Leases};
use campanile_schema::{
    audit::AuditView,
    format::Formats,
    job::{JobSpec, Trigger},
    stored::audit::{AuditRecord, CallOrigin},
};

/// A scheduler that works for a caller of that name.
fn audited(cluster: &TestCluster, node: u64, operation: &'static str, who: &str) -> Scheduler {
    cluster.scheduler(node).audited(AuditRecord {
        origin: CallOrigin {
            who: Some(who.into()),
            address: Some("192.0.2.7".into()),
            request: Some("r-1".into()),
            trace: None,
        },
        operation: operation.into(),
        count: 1,
        ..AuditRecord::default()
    })
}

async fn listed(cluster: &TestCluster, node: u64, operation: &str) -> Vec<AuditView> {
    let query = AuditQuery { operation: Some(operation.to_owned()), ..AuditQuery::all() };
    cluster.scheduler(node).audit(query, None, 1_000).await.unwrap().items
}

async fn creates(cluster: &TestCluster, node: u64, who: &str, jobs: usize) {
    for n in 0..jobs {
        let spec = JobSpec::new("acme", &format!("{who}-{n}"), Trigger::Manual {});
        let scheduler = audited(cluster, node, "job.create", who);
        let create = || async { scheduler.create_job(spec.clone(), Some(format!("{who}-{n}"))).await.ok() };
        eventually("it is created", create).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_node_is_asked_the_change_is_recorded_once_and_every_node_lists_it() {
    const JOBS: usize = 2 * SHARDS as usize;
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    creates(&cluster, 1, "olga", JOBS).await;
    // Rows of a shard of the other node come with its next projection.
    for node in [1, 2] {
        let found = eventually("all of them are listed", || async {
            Some(listed(&cluster, node, "job.create").await).filter(|found| found.len() >= JOBS)
        })
        .await;
        assert_eq!(found.len(), JOBS);
        for record in found {
            assert_eq!(record.who.as_deref(), Some("olga"));
            assert_eq!(record.request_id.as_deref(), Some("r-1"));
            assert_eq!(record.tenant_id.as_deref(), Some("acme"));
        }
    }
    for node in [1, 2] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_the_first_format_records_nothing_until_all_nodes_can_read_it() {
    const EARLIER: Formats = Formats { event: 1, wire: 1 };
    let mut cluster = TestCluster::of_formats(EARLIER);
    cluster.start_later(1, EARLIER).await;
    spread(&cluster, 1).await;
    creates(&cluster, 1, "early", 4).await;
    let home = AuditRecord { operation: "cluster.cordon".into(), ..AuditRecord::default() };
    assert_eq!(cluster.scheduler(1).keep_audit(vec![home.clone()]).await, [], "it is not tried again and again");
    assert_eq!(listed(&cluster, 1, "job.create").await, []);
    cluster.replace(1, Formats::OURS).await.unwrap();
    spread(&cluster, 1).await;
    eventually("the second format is written", || async {
        (cluster.end().formats().await.unwrap() == Formats::OURS).then_some(())
    })
    .await;
    // The node reads the row a moment after it was raised.
    eventually("a change is recorded", || async {
        let made = cluster.scheduler(1).keep_audit(vec![home.clone()]).await;
        (made.is_empty() && !listed(&cluster, 1, "cluster.cordon").await.is_empty()).then_some(())
    })
    .await;
    creates(&cluster, 1, "late", 4).await;
    let found = eventually("they are listed", || async {
        Some(listed(&cluster, 1, "job.create").await).filter(|found| found.len() >= 4)
    })
    .await;
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|record| record.who.as_deref() == Some("late")), "{found:?}");
    cluster.stop(1).await;
}
