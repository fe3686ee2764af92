//! Makes the values that the tasks of one session share, and gives each kind of actor the ones that it needs.

use crate::{
    ask::ShardClient,
    bulk::OpenBulks,
    calendars::OwedCalendars,
    changes::Changes,
    handles::SessionHandles,
    health::Health,
    identity::Identity,
    journal::JournalHandle,
    owner::{InUse, Settling},
    pauses::Pauses,
    pool::PoolDeps,
    projector::ProjectorHandle,
    shard::ShardDeps,
    shard_map::{Membership, ShardMap},
    waiting_results::WaitingResults,
};
use campanile_ports::{Secrets, Snapshots, Views, log_once::LogOnce};
use std::{sync::Arc, time::Duration};

/// Between two lines about hooks that were not started.
const HOOKS_TOLD_EVERY: Duration = Duration::from_mins(1);

/// What a session begins with.
pub struct WiringParts {
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

/// See the module's text.
pub struct Wiring {
    pub handles: Arc<SessionHandles>,
    pub pauses: Arc<Pauses>,
    pub bulks: Arc<OpenBulks>,
    pub calendars: Arc<OwedCalendars>,
    pub shard_deps: Arc<ShardDeps>,
}

impl Wiring {
    pub fn new(parts: WiringParts) -> Self {
        let WiringParts { identity, journal, projector, views, snapshots, secrets, in_use, membership } = parts;
        // Two starts are never at the same microsecond, so none takes another's log for its own.
        let changes = Changes::new(identity.time.now_us().cast_unsigned());
        let settling = if membership.is_some() { Settling::begun() } else { Settling::at_rest() };
        let shards = Arc::new(ShardMap::new(identity.session, identity.shards, membership));
        let health = Arc::new(Health::new(settling));
        let ended = health.ended.clone();
        let (bulks, calendars) = (Arc::<OpenBulks>::default(), Arc::<OwedCalendars>::default());
        let (pauses, time) = (Arc::<Pauses>::default(), identity.time.clone());
        let client =
            ShardClient { shards: shards.clone(), journal: journal.clone(), projector: projector.clone(), ended };
        let handles = SessionHandles {
            identity: Arc::new(identity),
            client: Arc::new(client),
            pool: Arc::default(),
            waiting_results: Arc::new(WaitingResults::new(shards.clone())),
            shards,
            tenants: Arc::default(),
            changes,
            health,
            in_use: in_use.clone(),
            views: views.clone(),
            secrets,
        };
        let shard_deps = ShardDeps {
            identity: handles.identity.clone(),
            time,
            shards: handles.shards.clone(),
            client: handles.client.clone(),
            pool: handles.pool.clone(),
            waiting_results: handles.waiting_results.clone(),
            tenants: handles.tenants.clone(),
            pauses: pauses.clone(),
            bulks: bulks.clone(),
            calendars: calendars.clone(),
            changes: handles.changes.clone(),
            journal,
            projector,
            views,
            snapshots,
            in_use,
            snapshot_failures: LogOnce::new("snapshots cannot be written; it is tried again"),
            deliveries: Arc::default(),
            hook_failures: LogOnce::new("hooks were not started ('campanile outbox list' shows them)")
                .every(HOOKS_TOLD_EVERY),
            ended: handles.health.ended.clone(),
        };
        Self { handles: Arc::new(handles), pauses, bulks, calendars, shard_deps: Arc::new(shard_deps) }
    }

    pub fn pool_deps(&self) -> PoolDeps {
        let SessionHandles { identity, shards, client, tenants, waiting_results, secrets, .. } = &*self.handles;
        PoolDeps {
            identity: identity.clone(),
            time: identity.time.clone(),
            shards: shards.clone(),
            client: client.clone(),
            tenants: tenants.clone(),
            waiting_results: waiting_results.clone(),
            secrets: secrets.clone(),
        }
    }
}
