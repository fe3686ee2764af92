//! The shard actor, which is the unit of ownership and recovery. It keeps its jobs (as bytes while they are passive),
//! activates job actors and gives them their turns, appends their decisions to the log in order, and releases replies
//! and effects when they are durable.
//!
//! Files: `append` the end of the log; `audit` who asked for a change; `activate` job actors and panics; `commands`
//! messages that change something; `creates` new jobs; `queries` reads; `snapshot` and `snapshotting` its state on
//! disk; `keys` callers' keys; `lending` a tenant's limits and the nodes that use them; `tenants` limits and pauses;
//! `load` how it is loaded; `moving` how it leaves for another node; `watched` what watchers are told; `at_rest`
//! shards that no node serves; `outbox` messages to other jobs; `owed` what is durable of them; `post` what a served
//! shard has of them; `given_up` messages that people see; `taking` messages from other jobs; `dags` runs of DAGs; `backfills` stretches
//! of the past that jobs run; `bulks` operations on many jobs or runs; `calendars` days on which jobs are due.

mod activate;
mod append;
pub mod at_rest;
mod audit;
mod backfill_index;
mod backfills;
mod bulks;
mod calendars;
mod commands;
mod creates;
mod dags;
mod due_load;
mod given_up;
mod graphs;
mod keys;
mod lending;
pub mod load;
mod moving;
mod outbox;
mod owed;
mod post;
mod queries;
mod run_list;
mod snapshot;
mod snapshotting;
mod taking;
mod tenants;
mod traced;
mod watched;

use crate::{
    ask::ShardClient, bulk::OpenBulks, calendars::OwedCalendars, changes::Changes, delivery_window::DeliveryWindow,
    identity::Identity, job::JobActor, journal::JournalHandle, lending::SessionCounts, messages::ShardMsg,
    owner::InUse, pauses::Pauses, pool_handle::PoolHandle, projector::ProjectorHandle, shard_map::ShardMap,
    shutdown::Shutdown, tenants::TenantGauges, time::NodeTime, waiting_results::WaitingResults,
};
use append::{Awaiting, OpenFrame};
use audit::Auditing;
pub(crate) use bulks::note_error;
use campanile_core::{
    job::{Effect, Job},
    shard::ShardState,
    wheel::Wheel,
};
use campanile_ports::{Position, Snapshots, Views, log_once::LogOnce};
use campanile_schema::{
    ids::{Epoch, JobId, RunId, ShardId, name_hash},
    limits,
    record::RunRecord,
};
use hashbrown::{HashMap, HashSet};
use load::Loaded;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::oneshot;

/// What shards need of their session.
pub struct ShardDeps {
    pub identity: Arc<Identity>,
    pub time: Arc<NodeTime>,
    pub shards: Arc<ShardMap>,
    pub client: Arc<ShardClient>,
    pub pool: Arc<PoolHandle>,
    pub waiting_results: Arc<WaitingResults>,
    pub tenants: Arc<TenantGauges>,
    pub pauses: Arc<Pauses>,
    pub bulks: Arc<OpenBulks>,
    pub calendars: Arc<OwedCalendars>,
    pub changes: Arc<Changes>,
    pub journal: JournalHandle,
    pub projector: ProjectorHandle,
    pub views: Arc<dyn Views>,
    pub snapshots: Arc<dyn Snapshots>,
    /// Formats that are written.
    pub in_use: Arc<InUse>,
    pub snapshot_failures: LogOnce,
    /// `Deliver` calls of the node that are under way.
    pub deliveries: Arc<DeliveryWindow>,
    pub hook_failures: LogOnce,
    /// Set when the session is over: nothing that its tasks do counts any more.
    pub ended: Arc<Shutdown>,
}

/// A job in its shard: its bytes, and its actor while it is active. An active job's bytes are those from before its activation.
struct Slot {
    def: Box<[u8]>,
    hot: Box<[u8]>,
    /// When it is to wake, ms; `i64::MAX` = never. Entries of the wheel with another time are stale.
    wake_ms: i64,
    live: Option<Box<JobActor>>,
}

/// State of the actor.
pub struct Shard {
    id: ShardId,
    deps: Arc<ShardDeps>,
    epoch: Epoch,
    /// The shard is being given to another node and decides nothing.
    stopping: bool,
    state: ShardState,
    /// What sessions of a cluster said of tenants whose home this shard is.
    session_counts: SessionCounts,
    jobs: HashMap<JobId, Slot>,
    /// Their ids in order, for lists; some may be gone.
    order: Vec<JobId>,
    names: HashMap<u64, JobId>,
    /// Jobs whose name hash was taken by another name: practically never more than none.
    name_collisions: Vec<(u64, JobId)>,
    open_runs: HashMap<RunId, JobId>,
    /// Keys of runs that are open or not yet in the view.
    keys: HashMap<(JobId, String), RunId>,
    /// Ended runs that the view does not show yet, with the seq of the frame that ended them: a run may end again before
    /// the view shows its first end.
    recent: HashMap<RunId, (u64, Arc<RunRecord>)>,
    wheel: Wheel,
    /// Jobs with due instants that wait until the read model has caught up.
    postponed: HashSet<JobId>,
    /// Jobs that have an actor.
    active: HashSet<JobId>,
    open: Option<OpenFrame>,
    /// Number of events of the last frame: the next frame gets room for as many from the start.
    frame_events: usize,
    /// Requests for permits of new runs, sent to the pool at the end of this turn.
    asking: Vec<Effect>,
    awaiting: VecDeque<Awaiting>,
    unprojected: VecDeque<(u64, Vec<Forget>)>,
    durable_seq: u64,
    durable_position: Position,
    /// Who asks for the change that is being decided.
    auditing: Option<Auditing>,
    watchers: HashMap<RunId, Vec<oneshot::Sender<()>>>,
    snapshots: snapshotting::Snapshotting,
    /// Messages to and from jobs of other shards.
    post: post::Post,
    /// Runs of DAGs.
    dags: graphs::Dags,
    /// Stretches of the past that jobs run.
    backfills: backfill_index::Backfills,
    /// Calendars of all tenants, and the jobs that name one.
    calendars: calendars::ShardCalendars,
}

/// What leaves memory when the view shows a frame.
enum Forget {
    Run(RunId),
    Key(JobId, String),
}

/// See the module's text.
pub struct ShardActor;

/// What it is started with.
pub struct ShardStart {
    pub deps: Arc<ShardDeps>,
    pub epoch: Epoch,
    pub loaded: Loaded,
}

impl Actor for ShardActor {
    type Msg = ShardMsg;
    type State = Shard;
    type Arguments = ShardStart;

    async fn pre_start(&self, myself: ActorRef<ShardMsg>, start: ShardStart) -> Result<Shard, ActorProcessingErr> {
        // Before it says anything: what the pool answers at once, with an executor for a run that waits, must find it.
        start.deps.shards.serve(start.loaded.id, start.epoch, myself);
        Ok(Shard::start(start.deps, start.epoch, start.loaded))
    }

    async fn post_start(&self, _: ActorRef<ShardMsg>, shard: &mut Shard) -> Result<(), ActorProcessingErr> {
        shard.take_up();
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<ShardMsg>,
        message: ShardMsg,
        shard: &mut Shard,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ShardMsg::Tick(results) => {
                shard.finish(&myself, results);
                shard.tick(&myself);
            }
            ShardMsg::Housekeep => shard.housekeep(&myself),
            ShardMsg::Call(call, port) => shard.answer(&myself, call, port).await,
            ShardMsg::StartAttempts(binds) => shard.start_bound(&myself, binds),
            ShardMsg::Finish(results) => shard.finish(&myself, results),
            ShardMsg::NotStarted(held, why) => shard.not_started(&myself, held, why),
            ShardMsg::Suspect(held) => shard.suspect(&myself, held),
            ShardMsg::ExecutorHolds(held, by, port) => shard.executor_holds(&myself, held, by, port),
            ShardMsg::Lost(held) => shard.lost(&myself, held),
            ShardMsg::Durable { seq, position } => shard.durable(seq, position),
            ShardMsg::Projected { seq } => shard.projected(seq),
            ShardMsg::Snapshotted { number, seq, position, definitions, ok } => {
                shard.snapshotted(number, seq, position, definitions, ok);
            }
            ShardMsg::ReportFacts(port) => {
                let _ = port.send(shard.facts());
            }
            ShardMsg::Flush(port) => shard.flush(&myself, port),
            ShardMsg::Watch(run, port) => shard.watch(run, port),
            ShardMsg::Depart(departing) => shard.depart(&myself, *departing),
            ShardMsg::Delivered { to, number, answer } => shard.delivered(&myself, to, number, answer),
            ShardMsg::LookedUp(deliver) => shard.looked_up(&myself, *deliver),
            ShardMsg::NotLookedUp => shard.not_looked_up(),
            ShardMsg::BackfillRead { job, page } => shard.backfill_read(job, *page),
            ShardMsg::BackfillGoesOn(job) => shard.backfill_goes_on(job),
            ShardMsg::Stop(port) => shard.stop(port),
            ShardMsg::Serve(epoch) => shard.serve(epoch),
        }
        shard.feed_backfills(&myself).await;
        shard.carry_post(&myself);
        shard.end_of_turn(&myself);
        shard.publish_wake();
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ShardMsg>, shard: &mut Shard) -> Result<(), ActorProcessingErr> {
        shard.hand_back();
        Ok(())
    }
}

impl Shard {
    pub(super) fn now_ms(&self) -> i64 {
        self.deps.time.now_ms()
    }

    /// A message from outside was taken from the mailbox.
    fn taken(&self) {
        self.deps.shards.taken(self.id);
    }

    /// Tells the node's tick when to come.
    fn publish_wake(&self) {
        if self.stopping {
            return;
        }
        let mut at = self.wheel.next_ms().unwrap_or(i64::MAX);
        if !self.postponed.is_empty() || self.calendars.is_behind() {
            at = at.min(self.now_ms() + limits::WHEEL_SLOT_MS);
        }
        self.deps.shards.set_wake(self.id, at);
    }

    /// The job as of its last decision.
    pub(super) fn materialize(&self, id: JobId) -> Option<Job> {
        let slot = self.jobs.get(&id)?;
        match slot.materialize(id) {
            Ok(mut job) => {
                job.take_calendars(&self.calendars.book);
                if let Some(graphs) = self.dags.at_rest.get(&id) {
                    job.graphs.clone_from(graphs);
                }
                Some(job)
            }
            Err(error) => {
                // Checked when they were written and read; damage in memory is a bug.
                tracing::error!(job = %id, %error, "a job's bytes cannot be read");
                None
            }
        }
    }

    /// The job of a name.
    pub(super) fn find_name(&self, tenant: &str, name: &str) -> Option<JobId> {
        let hash = name_hash(tenant, name);
        let is = |id: &JobId| self.materialize(*id).is_some_and(|j| j.def.tenant == tenant && j.def.name == name);
        self.names
            .get(&hash)
            .copied()
            .filter(|id| is(id))
            .or_else(|| self.name_collisions.iter().filter(|(h, _)| *h == hash).map(|(_, id)| *id).find(|id| is(id)))
    }
    pub(super) fn add_name(&mut self, tenant: &str, name: &str, id: JobId) {
        self.add_name_hash(name_hash(tenant, name), id);
    }
    fn add_name_hash(&mut self, hash: u64, id: JobId) {
        if *self.names.entry(hash).or_insert(id) != id {
            self.name_collisions.push((hash, id));
        }
    }
    pub(super) fn remove_name(&mut self, tenant: &str, name: &str, id: JobId) {
        let hash = name_hash(tenant, name);
        if self.names.get(&hash) == Some(&id) {
            self.names.remove(&hash);
        }
        self.name_collisions.retain(|(_, other)| *other != id);
    }

    /// Puts the job's wake into the wheel, unless an entry that is early enough is there.
    pub(super) fn schedule(&mut self, id: JobId, wake: Option<i64>) {
        let Some(slot) = self.jobs.get_mut(&id) else { return };
        match wake {
            Some(at) if at < slot.wake_ms => {
                slot.wake_ms = at;
                self.wheel.insert(at, id);
            }
            // A later entry waits for the earlier one to pop: the job is asked then.
            Some(_) | None => {}
        }
    }
}

impl Slot {
    pub(super) fn new(def: Vec<u8>, hot: Vec<u8>) -> Self {
        Self { def: def.into_boxed_slice(), hot: hot.into_boxed_slice(), wake_ms: i64::MAX, live: None }
    }

    pub(super) fn materialize(&self, id: JobId) -> Result<Job, campanile_schema::frame::DecodeError> {
        match &self.live {
            Some(live) => Ok(live.job.clone()),
            None => Job::decode(id, &self.def, &self.hot),
        }
    }
}
