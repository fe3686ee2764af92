//! The values of the running session. Only the scheduler, and the code that starts and ends the session, has all of
//! them. Every other task of the session gets the ones that it needs.

use crate::{
    ask::ShardClient, changes::Changes, health::Health, identity::Identity, owner::InUse, pool_handle::PoolHandle,
    shard_map::ShardMap, tenants::TenantGauges, waiting_results::WaitingResults,
};
use campanile_ports::{Secrets, Views};
use std::sync::Arc;

/// See the module's text. One per session (a restart in place makes a new one).
pub struct SessionHandles {
    pub identity: Arc<Identity>,
    pub shards: Arc<ShardMap>,
    pub client: Arc<ShardClient>,
    pub pool: Arc<PoolHandle>,
    pub waiting_results: Arc<WaitingResults>,
    pub tenants: Arc<TenantGauges>,
    /// For those who watch.
    pub changes: Arc<Changes>,
    pub health: Arc<Health>,
    /// Formats that are written.
    pub in_use: Arc<InUse>,
    pub views: Arc<dyn Views>,
    pub secrets: Arc<dyn Secrets>,
}

impl SessionHandles {
    /// Ends every actor of this session; nothing more is decided.
    pub(crate) fn stop_actors(&self) {
        self.health.ended.tell();
        for shard in self.shards.actors() {
            shard.stop(None);
        }
        self.pool.stop();
    }
}
