//! Calls about all nodes of the cluster at once.

use super::Scheduler;
use crate::survey::{self, Answers, Survey, Surveyed};
use campanile_schema::{
    error::Answer,
    view::{ExecutorView, Gathered, NodeView, PoolView},
};

impl Scheduler {
    /// What this node has to say to others.
    pub async fn survey(&self, what: Survey) -> Answer<Surveyed> {
        let none = Surveyed::default();
        Ok(match what {
            Survey::Node => {
                Surveyed { node: Some(self.node().await?), executors: self.executors().await?, ..none }.counted()
            }
            Survey::Executors => Surveyed { executors: self.executors().await?, ..none },
            Survey::Pools => {
                Surveyed { pools: self.pools().await?, executors: self.executors().await?, ..none }.counted()
            }
        })
    }

    /// What every node says, this one first; None: it is alone.
    async fn survey_all(&self, what: Survey) -> Answer<Option<Answers>> {
        let directory = self.directory()?;
        let Some(membership) = &directory.membership else { return Ok(None) };
        let (own, others) = tokio::join!(self.survey(what), membership.peers.survey(what));
        let mut all = vec![(directory.node.to_string(), Ok(own?))];
        all.extend(others);
        Ok(Some(all))
    }

    /// Executors of all nodes.
    pub async fn all_executors(&self) -> Answer<Gathered<ExecutorView>> {
        match self.survey_all(Survey::Executors).await? {
            Some(answers) => Ok(survey::executors(answers)),
            None => Ok(Gathered { items: self.executors().await?, missing: Vec::new() }),
        }
    }

    /// Pools of all nodes.
    pub async fn all_pools(&self) -> Answer<Gathered<PoolView>> {
        match self.survey_all(Survey::Pools).await? {
            Some(answers) => Ok(survey::pools(answers)),
            None => Ok(Gathered { items: self.pools().await?, missing: Vec::new() }),
        }
    }

    /// Facts of this node, with numbers of all.
    pub async fn whole_node(&self) -> Answer<NodeView> {
        match self.survey_all(Survey::Node).await? {
            Some(answers) => {
                let own = answers.first().and_then(|(_, said)| said.as_ref().ok()?.node.clone());
                match own {
                    Some(own) => Ok(survey::node(own, answers)),
                    None => self.node().await,
                }
            }
            None => self.node().await,
        }
    }
}
