//! Calls about all nodes of the cluster at once.

use super::Scheduler;
use crate::cluster_query::{self, ClusterQuery, NodeAnswer, NodeAnswers};
use campanile_schema::{
    error::Answer,
    view::{ExecutorView, Gathered, NodeView, PoolView},
};

impl Scheduler {
    /// What this node has to say to others.
    pub async fn answer_query(&self, what: ClusterQuery) -> Answer<NodeAnswer> {
        let none = NodeAnswer::default();
        Ok(match what {
            ClusterQuery::Node => {
                NodeAnswer { node: Some(self.node().await?), executors: self.executors().await?, ..none }.counted()
            }
            ClusterQuery::Executors => NodeAnswer { executors: self.executors().await?, ..none },
            ClusterQuery::Pools => {
                NodeAnswer { pools: self.pools().await?, executors: self.executors().await?, ..none }.counted()
            }
        })
    }

    /// What every node says, this one first; None: it is alone.
    async fn query_all(&self, what: ClusterQuery) -> Answer<Option<NodeAnswers>> {
        let handles = self.handles()?;
        let Some(membership) = handles.shards.membership() else { return Ok(None) };
        let (own, others) = tokio::join!(self.answer_query(what), membership.peers.query(what));
        let mut all = vec![(handles.identity.node.to_string(), Ok(own?))];
        all.extend(others);
        Ok(Some(all))
    }

    /// Executors of all nodes.
    pub async fn all_executors(&self) -> Answer<Gathered<ExecutorView>> {
        match self.query_all(ClusterQuery::Executors).await? {
            Some(answers) => Ok(cluster_query::executors(answers)),
            None => Ok(Gathered { items: self.executors().await?, missing: Vec::new() }),
        }
    }

    /// Pools of all nodes.
    pub async fn all_pools(&self) -> Answer<Gathered<PoolView>> {
        match self.query_all(ClusterQuery::Pools).await? {
            Some(answers) => Ok(cluster_query::pools(answers)),
            None => Ok(Gathered { items: self.pools().await?, missing: Vec::new() }),
        }
    }

    /// Facts of this node, with numbers of all.
    pub async fn whole_node(&self) -> Answer<NodeView> {
        match self.query_all(ClusterQuery::Node).await? {
            Some(answers) => {
                let own = answers.first().and_then(|(_, said)| said.as_ref().ok()?.node.clone());
                match own {
                    Some(own) => Ok(cluster_query::node(own, answers)),
                    None => self.node().await,
                }
            }
            None => self.node().await,
        }
    }
}
