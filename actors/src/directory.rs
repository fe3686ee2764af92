//! Where everybody is: the shards that are served here, the pool, the journal and the projector.

use crate::{
    ask::ShardClient,
    changes::Changes,
    ends::Ends,
    health::Health,
    identity::Identity,
    journal::JournalHandle,
    owner::{InUse, Settling},
    pauses::Pauses,
    pool::PoolDeps,
    pool_handle::PoolHandle,
    projector::ProjectorHandle,
    shard::ShardDeps,
    shard_map::{Membership, ShardMap},
    tenants::Tenants,
};
use campanile_ports::{Secrets, Snapshots, Views, log_once::LogOnce};
use std::sync::Arc;

/// What a directory is made of.
pub struct DirectoryParts {
    pub identity: Identity,
    pub journal: JournalHandle,
    pub projector: ProjectorHandle,
    pub views: Arc<dyn Views>,
    pub snapshots: Arc<dyn Snapshots>,
    pub secrets: Arc<dyn Secrets>,
    /// Formats that are written.
    pub in_use: Arc<InUse>,
    /// None: the node is alone on its own directory.
    pub membership: Option<Membership>,
}

/// See the module's text. One per session (a restart in place makes a new one).
pub struct Directory {
    pub identity: Arc<Identity>,
    pub journal: JournalHandle,
    pub projector: ProjectorHandle,
    pub views: Arc<dyn Views>,
    pub snapshots: Arc<dyn Snapshots>,
    pub secrets: Arc<dyn Secrets>,
    pub in_use: Arc<InUse>,
    pub shards: Arc<ShardMap>,
    pub client: Arc<ShardClient>,
    pub pool: Arc<PoolHandle>,
    pub ends: Arc<Ends>,
    pub tenants: Arc<Tenants>,
    pub pauses: Arc<Pauses>,
    /// For those who watch.
    pub changes: Arc<Changes>,
    pub health: Arc<Health>,
}

impl Directory {
    pub fn new(parts: DirectoryParts) -> Arc<Self> {
        let DirectoryParts { identity, journal, projector, views, snapshots, .. } = parts;
        let shards = Arc::new(ShardMap::new(identity.session, identity.shards, parts.membership));
        // Two starts are never at the same microsecond, so none takes another's log for its own.
        let changes = Changes::new(identity.time.now_us().cast_unsigned());
        let settling = if shards.is_alone() { Settling::at_rest() } else { Settling::begun() };
        let health = Arc::new(Health::new(settling));
        let client = Arc::new(ShardClient {
            shards: shards.clone(),
            journal: journal.clone(),
            projector: projector.clone(),
            ended: health.ended.clone(),
        });
        Arc::new(Self {
            identity: Arc::new(identity),
            journal,
            projector,
            views,
            snapshots,
            secrets: parts.secrets,
            in_use: parts.in_use,
            pool: Arc::default(),
            ends: Arc::new(Ends::new(shards.clone())),
            shards,
            client,
            tenants: Arc::default(),
            pauses: Arc::default(),
            changes,
            health,
        })
    }

    pub fn pool_deps(&self) -> PoolDeps {
        PoolDeps {
            identity: self.identity.clone(),
            time: self.identity.time.clone(),
            shards: self.shards.clone(),
            client: self.client.clone(),
            tenants: self.tenants.clone(),
            ends: self.ends.clone(),
            secrets: self.secrets.clone(),
        }
    }

    pub fn shard_deps(&self) -> Arc<ShardDeps> {
        Arc::new(ShardDeps {
            identity: self.identity.clone(),
            time: self.identity.time.clone(),
            shards: self.shards.clone(),
            client: self.client.clone(),
            pool: self.pool.clone(),
            ends: self.ends.clone(),
            tenants: self.tenants.clone(),
            pauses: self.pauses.clone(),
            changes: self.changes.clone(),
            journal: self.journal.clone(),
            projector: self.projector.clone(),
            views: self.views.clone(),
            snapshots: self.snapshots.clone(),
            in_use: self.in_use.clone(),
            snapshot_failures: LogOnce::new("snapshots cannot be written; it is tried again"),
            ended: self.health.ended.clone(),
        })
    }

    /// Ends every actor of this session; nothing more is decided.
    pub fn stop_actors(&self) {
        self.health.ended.tell();
        for shard in self.shards.actors() {
            shard.stop(None);
        }
        self.pool.stop();
    }
}
