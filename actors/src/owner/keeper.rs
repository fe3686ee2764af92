//! Carries out what the protocol decides about shards: it loads them, serves them, stops them and gives them up. It is
//! one task of a session. It also gives the protocol its hints, whenever the rows were read or the members changed.

use super::{
    OwnerHandle,
    ahead::Ahead,
    formats::Raising,
    hints::{ClusterMember, Planner},
    load::{LoadRequest, Loaded, LoadedShard, Loader},
};
use crate::{
    cluster_events::ClusterEventLog,
    health::Health,
    messages::{PoolMsg, ShardMsg},
    shard::{ShardActor, ShardDeps, ShardStart},
    shared_store::SharedStore,
};
use campanile_core::ownership::Output;
use campanile_ports::{StoreError, log_once::LogOnce};
use campanile_schema::{
    cluster::ClusterEventKind,
    format::Formats,
    ids::{Epoch, ShardId},
};
use ractor::Actor;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot, watch};

/// Claims are answered at about the same time; shards of a lane that are loaded together read its rows once.
const GATHER: Duration = Duration::from_millis(10);
/// What a dead node owned is waited for longer while claims are under way: a lane may hold a minute of frames, and a store that is busy answers one
/// claim after the other.
const GATHER_LEFT: Duration = Duration::from_millis(500);
/// Before a load that failed is tried again.
const LOAD_AGAIN: Duration = Duration::from_millis(300);

/// What the keeper works with.
pub struct ShardKeeperParts {
    pub deps: Arc<ShardDeps>,
    pub health: Arc<Health>,
    pub owner: OwnerHandle,
    pub store: SharedStore,
    pub orders: mpsc::UnboundedReceiver<Output>,
    pub members: watch::Receiver<Arc<Vec<ClusterMember>>>,
    pub cluster_events: Arc<ClusterEventLog>,
    /// What this build knows.
    pub reads: Formats,
    /// See [`Raising`].
    pub formats_settle: Duration,
    /// Told once when the session is over.
    pub failures: mpsc::UnboundedSender<StoreError>,
}

/// See the module's text.
pub struct ShardKeeper {
    /// Of the shards that it starts.
    deps: Arc<ShardDeps>,
    health: Arc<Health>,
    owner: OwnerHandle,
    loader: Loader,
    ahead: Ahead,
    orders: mpsc::UnboundedReceiver<Output>,
    members: watch::Receiver<Arc<Vec<ClusterMember>>>,
    cluster_events: Arc<ClusterEventLog>,
    failures: mpsc::UnboundedSender<StoreError>,
    planner: Planner,
    raising: Raising,
    losses: LogOnce,
    load_failures: LogOnce,
    /// To be loaded as soon as no more come.
    wanted: Vec<LoadRequest>,
    /// Since when there are some.
    wanted_since: Instant,
    /// In memory, until the protocol says that they are served.
    found: HashMap<ShardId, LoadedShard>,
    loads: mpsc::UnboundedSender<Loaded>,
    loads_done: mpsc::UnboundedReceiver<Loaded>,
}

impl ShardKeeper {
    pub fn new(parts: ShardKeeperParts) -> Self {
        let ShardKeeperParts {
            deps,
            health,
            owner,
            store,
            orders,
            members,
            cluster_events,
            reads,
            formats_settle,
            failures,
        } = parts;
        let (leases, in_use) = (store.leases.clone(), deps.in_use.clone());
        let raising = Raising::new(leases, in_use, reads, formats_settle, failures.clone());
        let (loads, loads_done) = mpsc::unbounded_channel();
        let loader = Loader { store, reads };
        Self {
            deps,
            health,
            owner,
            ahead: Ahead::new(loader.clone()),
            loader,
            orders,
            members,
            cluster_events,
            failures,
            raising,
            planner: Planner::default(),
            losses: LogOnce::new("shards are lost: other sessions own them"),
            load_failures: LogOnce::new("shards cannot be loaded; it is tried again"),
            wanted: Vec::new(),
            wanted_since: Instant::now(),
            found: HashMap::new(),
            loads,
            loads_done,
        }
    }

    /// Until the session is over.
    pub async fn run(mut self) {
        self.hint();
        loop {
            let gathering = !self.wanted.is_empty();
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    None => return,
                    Some(Output::Over) => return self.over(),
                    Some(order) => self.carry_out(order).await,
                },
                Some(loaded) = self.loads_done.recv() => self.loaded(loaded),
                Ok(()) = self.members.changed() => self.hint(),
                () = tokio::time::sleep(GATHER), if gathering => {
                    if self.owner.takes_over() && self.wanted_since.elapsed() < GATHER_LEFT {
                        continue;
                    }
                    let wanted = std::mem::take(&mut self.wanted);
                    self.load(wanted, Duration::ZERO);
                }
            }
        }
    }

    async fn carry_out(&mut self, order: Output) {
        match order {
            Output::Load { shard, epoch, spans, snapshot } => {
                if self.wanted.is_empty() {
                    self.wanted_since = Instant::now();
                }
                self.wanted.push(LoadRequest { shard, epoch, spans, snapshot });
            }
            Output::Serve { shard, epoch } => self.serve(shard, epoch).await,
            Output::Stop { shard } => self.stop(shard),
            Output::Released { shard, successor } => {
                self.forget(shard);
                tracing::info!(%shard, to = successor.0, "shard handed over");
                self.note(ClusterEventKind::ShardHandedOver, shard, Some(format!("to session {}", successor.0)));
                if let Some(membership) = self.deps.shards.membership() {
                    membership.peers.tell_released(shard, successor);
                }
            }
            Output::Lost { shard } => {
                tracing::info!(%shard, "shard lost: another session owns it");
                self.losses.failed(&format_args!("shard {shard}"));
                self.note(ClusterEventKind::ShardLost, shard, None);
                self.forget(shard);
            }
            Output::RowsRead => {
                self.hint();
                let (members, raising) = (self.members.borrow().clone(), &mut self.raising);
                self.owner.look_at_rows(|rows, over| raising.look(&members, rows, over));
            }
            // Done where they are made.
            Output::Store { .. } | Output::Acknowledge { .. } | Output::Took(_) | Output::Over => {}
        }
    }

    fn load(&self, wanted: Vec<LoadRequest>, after: Duration) {
        let (loader, read, loads) = (self.loader.clone(), self.ahead.read(), self.loads.clone());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            loader.load(wanted, &read, loads).await;
        });
    }

    fn loaded(&mut self, Loaded { wanted, found }: Loaded) {
        // It was lost meanwhile, or loaded twice.
        if !self.owner.holds(wanted.shard, wanted.epoch) || self.deps.shards.serves(wanted.shard) {
            return;
        }
        match found {
            Ok(mut found) => {
                self.load_failures.recovered();
                let (last, ends) = (found.last, std::mem::take(&mut found.ends));
                self.found.insert(wanted.shard, found);
                self.owner.loaded(wanted.shard, wanted.epoch, last, ends);
            }
            Err(error) => {
                metrics::counter!("campanile_shard_load_failures_total").increment(1);
                let error = format_args!("shard {}: {error}", wanted.shard);
                self.load_failures.failed(&error);
                self.load(vec![wanted], LOAD_AGAIN);
            }
        }
    }

    async fn serve(&mut self, shard: ShardId, epoch: Epoch) {
        if self.deps.shards.raise(shard, epoch) {
            return self.deps.shards.send(shard, ShardMsg::Serve(epoch));
        }
        let Some(found) = self.found.remove(&shard).filter(|found| found.epoch == epoch) else {
            tracing::error!(%shard, "a shard is to be served that was not loaded");
            return;
        };
        let frames = found.shard.replayed();
        let start = ShardStart { deps: self.deps.clone(), epoch, loaded: found.shard };
        self.deps.pool.expect_shards(1);
        match Actor::spawn(None, ShardActor, start).await {
            Ok(_) => {
                self.losses.recovered();
                metrics::counter!("campanile_shards_taken_total").increment(1);
                metrics::counter!("campanile_replayed_frames_total").increment(frames);
                tracing::info!(%shard, epoch = epoch.0, frames, "shard served");
                let detail = format!("epoch {}, {frames} frames replayed", epoch.0);
                self.note(ClusterEventKind::ShardServed, shard, Some(detail));
            }
            Err(error) => {
                self.deps.pool.shard_is_up();
                tracing::error!(%shard, %error, "a shard's actor did not start; the session ends");
                self.over();
            }
        }
    }

    fn stop(&mut self, shard: ShardId) {
        let (owner, deps) = (self.owner.clone(), self.deps.clone());
        tokio::spawn(async move {
            let (port, settled) = oneshot::channel();
            deps.pool.send(PoolMsg::Settled(shard, port));
            if settled.await.is_err() {
                return;
            }
            let (port, stopped) = oneshot::channel();
            deps.shards.send(shard, ShardMsg::Stop(port));
            // Its actor ended: the session has, or the shard was lost.
            if stopped.await.is_ok() {
                owner.stopped(shard);
            }
        });
    }

    fn forget(&mut self, shard: ShardId) {
        self.wanted.retain(|wanted| wanted.shard != shard);
        self.found.remove(&shard);
        self.owner.lends_to(shard, BTreeSet::new());
        self.deps.pauses.leave(shard);
        self.deps.calendars.leave(shard);
        self.deps.bulks.leave(shard);
        if let Some(actor) = self.deps.shards.leave(shard) {
            actor.stop(None);
        }
    }

    fn hint(&mut self) {
        let members = self.members.borrow_and_update().clone();
        let (me, shards) = (self.owner.session(), self.deps.identity.shards);
        let own = members.iter().find(|member| member.session == me);
        self.health.set_refused(own.and_then(|own| own.refused.clone()));
        let (planner, ahead) = (&mut self.planner, &mut self.ahead);
        let (health, served) = (&self.health, &self.deps.shards);
        self.owner.hint_by(|rows, over, leaving| {
            let hints = planner.hints(me, shards, &members, rows, over, leaving);
            ahead.look(me, &members, rows, &hints.wanted);
            if let Some(own) = own.filter(|_| !rows.is_empty()) {
                health.settling.learn(own.standing, planner.given(own.node), |shard| served.serves(shard));
            }
            hints
        });
    }

    fn note(&self, kind: ClusterEventKind, shard: ShardId, detail: Option<String>) {
        self.cluster_events.note(kind, None, Some(shard), detail);
    }

    fn over(&mut self) {
        self.owner.stop();
        let session = format!("session {}", self.owner.session().0);
        self.cluster_events.note(ClusterEventKind::SessionOver, None, None, Some(session));
        let _ = self.failures.send(StoreError::Unavailable("this node's session is over".to_owned()));
    }
}
