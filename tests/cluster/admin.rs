//! What operators see of a cluster and do with it: members, shards, the plan, what happened; a node that is cordoned.

use crate::{
    is_ready, spread,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_client::{Client, ClientError};
use campanile_core::placement::cap;
use campanile_schema::{
    cluster::{ClusterEventKind, MemberState, ShardFilter},
    error::ErrorCode,
};
use std::collections::BTreeMap;

const NODES: [u64; 3] = [1, 2, 3];

/// By name: state, and shards that it owns.
async fn members(client: &Client) -> BTreeMap<String, (MemberState, u64)> {
    let members = client.cluster_members().await.unwrap();
    members.into_iter().map(|member| (member.name, (member.state, member.shards))).collect()
}

async fn sees(client: &Client, node: &str, state: MemberState) {
    eventually("it is seen", || async { (members(client).await.get(node)?.0 == state).then_some(()) }).await;
}

async fn happened(client: &Client, kind: ClusterEventKind, node: Option<&str>) {
    eventually(&format!("{kind:?} of {node:?} is told"), || async {
        let events = client.cluster_events().await.unwrap();
        events.iter().any(|event| event.kind == kind && event.node.as_deref() == node).then_some(())
    })
    .await;
}

async fn is_balanced(client: &Client) {
    eventually("nothing is to move", || async { client.cluster_plan().await.unwrap().balanced.then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_the_same_cluster_at_every_node() {
    let mut cluster = TestCluster::with_gossip();
    for node in NODES {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    for node in NODES {
        is_ready(&cluster, node).await;
        let client = cluster.client(node).await;
        is_balanced(&client).await;
        eventually("the rows are read", || async {
            let members = members(&client).await;
            let whole = members.values().map(|(_, shards)| *shards).sum::<u64>() == u64::from(SHARDS);
            (whole && members.len() == 3).then_some(())
        })
        .await;
        let members = client.cluster_members().await.unwrap();
        assert!(members.iter().all(|member| member.state == MemberState::Alive && member.session > 0), "{members:?}");
        let own = members.iter().filter(|member| member.is_self).map(|member| &*member.name);
        assert_eq!(own.collect::<Vec<_>>(), [format!("n{node}")]);
        let shards = client.cluster_shards(ShardFilter::default()).await.unwrap();
        assert_eq!(shards.len(), usize::from(SHARDS));
        let mut all = 0;
        for member in &members {
            let filter = ShardFilter { node: Some(member.name.clone()) };
            let its = client.cluster_shards(filter).await.unwrap();
            assert_eq!(its.len() as u64, member.shards);
            for shard in &its {
                assert_eq!((shard.node.as_ref(), shard.session), (Some(&member.name), Some(member.session)));
                assert!(shard.epoch > 0, "{shard:?}");
                assert!(!shard.served_here || member.is_self, "{shard:?}");
            }
            all += its.len();
        }
        assert_eq!(all, usize::from(SHARDS));
        let plan = client.cluster_plan().await.unwrap();
        assert_eq!((plan.cap, plan.moves.len()), (cap(usize::from(SHARDS), 1, 3) as u64, 0));
        for other in NODES {
            happened(&client, ClusterEventKind::NodeCame, Some(&format!("n{other}"))).await;
        }
        happened(&client, ClusterEventKind::SessionBegun, None).await;
        happened(&client, ClusterEventKind::ShardServed, None).await;
        let filter = ShardFilter { node: Some("n9".to_owned()) };
        let unknown = client.cluster_shards(filter).await.unwrap_err();
        assert!(matches!(&unknown, ClientError::Api(error) if error.known() == ErrorCode::NotFound), "{unknown}");
    }
    for node in [3, 2, 1] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cordoned_node_keeps_what_it_has_gets_nothing_new_and_is_ready_with_nothing_after_a_restart() {
    let mut cluster = TestCluster::with_gossip();
    for node in NODES {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let first = cluster.client(1).await;
    let had = cluster.owned()[&2];
    cluster.client(2).await.cluster_cordon("n2", Some("its disk is old")).await.unwrap();
    sees(&first, "n2", MemberState::Cordoned).await;
    happened(&first, ClusterEventKind::NodeCordoned, Some("n2")).await;
    cluster.stop(3).await;
    is_balanced(&first).await;
    eventually("the first has all the rest", || async {
        let owned = cluster.owned();
        (owned == BTreeMap::from([(1, usize::from(SHARDS) - had), (2, had)])).then_some(())
    })
    .await;
    happened(&first, ClusterEventKind::NodeGone, Some("n3")).await;
    is_ready(&cluster, 2).await;

    // It is still cordoned, and what it gave away does not come back: it knows, and keeps nobody waiting.
    cluster.restart(2).await;
    is_ready(&cluster, 2).await;
    sees(&first, "n2", MemberState::Cordoned).await;
    is_balanced(&first).await;
    assert_eq!(cluster.owned(), BTreeMap::from([(1, usize::from(SHARDS))]));
    assert!(cluster.scheduler(2).rows().unwrap().served.is_empty());
    let second = cluster.client(2).await;
    second.cluster_uncordon("n2", None).await.unwrap();
    spread(&cluster, 2).await;
    sees(&first, "n2", MemberState::Alive).await;
    happened(&first, ClusterEventKind::NodeUncordoned, Some("n2")).await;
    happened(&first, ClusterEventKind::ShardHandedOver, None).await;
    let unknown = first.cluster_cordon("n9", None).await.unwrap_err();
    assert!(unknown.to_string().contains("there are: n1, n2"), "{unknown}");
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
