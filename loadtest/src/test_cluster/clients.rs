//! Clients of a cluster: one of each node, and callers that go through all of them.

use super::TestCluster;
use crate::{
    load::{caller::Caller, targets::Targets},
    run_dir::record::Record,
};
use campanile_client::{Client, ClientOptions, Retry};
use campanile_schema::view::ExecutorView;
use std::{error::Error, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// Until every node is ready and every executor known to it.
const READY: Duration = Duration::from_secs(60);

impl TestCluster {
    /// A caller whose calls go through random nodes, those that start later too. What it does not write down goes through the first that is up.
    pub async fn caller(&self, call: Duration, record: Arc<Record>, seed: u64) -> Result<Caller, Box<dyn Error>> {
        let options = |n| ClientOptions::new(vec![self.rpc_of(n)], self.token.clone()).timeout(call);
        // The caller tries again itself, through another one.
        let nodes = (0..self.len()).map(|n| options(n).retry(Retry::NEVER)).collect();
        let targets = Arc::new(Targets::new(self.node_starts.clone(), nodes, seed));
        let all = (0..self.len()).map(|n| self.rpc_of(n)).collect();
        let any = ClientOptions::new(all, self.token.clone()).timeout(call).retry(Retry::LOST);
        Ok(Caller::through(Client::connect_with(any).await?, targets, record))
    }

    /// A client of each node that is up.
    pub async fn connect_each(&self, call: Duration) -> Result<Vec<Client>, Box<dyn Error>> {
        let mut clients = Vec::new();
        for n in (0..self.len()).filter(|n| self.is_up(*n)) {
            let options = ClientOptions::new(vec![self.rpc_of(n)], self.token.clone()).timeout(call).retry(Retry::LOST);
            let deadline = Instant::now() + READY;
            loop {
                match Client::connect_with(options.clone()).await {
                    Ok(client) => break clients.push(client),
                    Err(error) if Instant::now() > deadline => return Err(error.into()),
                    Err(_) => sleep(Duration::from_millis(100)).await,
                }
            }
        }
        Ok(clients)
    }
}

/// Each of the nodes says so, and knows so many executors.
pub async fn ready(nodes: &[Client], executors: usize) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + READY;
    for node in nodes {
        loop {
            let name = node.welcome().node;
            let known = node.executor_list().await.map(|list| {
                let of_node = |one: &&ExecutorView| one.nodes.iter().any(|at| at.node == name);
                list.items.iter().filter(of_node).count()
            });
            let ready = node.system_info().await.map(|info| info.ready);
            match (known, ready) {
                (Ok(known), Ok(true)) if known >= executors => break,
                (known, ready) if Instant::now() > deadline => {
                    return Err(format!("a node is not ready: executors {known:?}, ready {ready:?}").into());
                }
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }
    Ok(())
}
