//! The pool actor holds runs that have a permit and the sessions of executors. The quota actors, which lend the permits,
//! have their turns in its task. Executors pull: the pool sends no more than their credit allows. Which run goes to which
//! executor is a pure decision (`campanile_core::dispatch`). The pool carries it out: it asks the job to start the
//! attempt, and sends the assignment when that is durable.
//!
//! Its state is in memory only: after a restart shards send it again (`Enqueue`, `Watch`), and executors register and
//! announce. It also watches leases of executors: silent for 5 s = suspected, for 10 s = lost.

mod borrowing;
mod figures;
mod hints;
mod lease;
mod moving;
mod session;
mod traced;

use crate::{
    ask::ShardClient,
    identity::Identity,
    messages::{Bind, PoolMsg, ShardMsg, ToExecutor},
    quota::{Borrower, Quotas},
    shard_map::ShardMap,
    tenants::TenantGauges,
    time::NodeTime,
    waiting_results::WaitingResults,
};
use borrowing::Borrowing;
use campanile_core::{
    degradation::USUAL_PRIORITY,
    dispatch::{Dispatch, Match, Seat},
    job::{Assign, Effect},
};
use campanile_ports::{SecretOwner, Secrets};
use campanile_schema::{
    ids::{Epoch, ExecutorSession, ShardId, Token},
    rpc::executor::{Assignment, Held},
    view::DegradationLevel,
};
use hashbrown::HashMap;
use lease::OLD_CREDIT_VOID_MS;
pub use lease::session_taken;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use session::ExecutorSessionState;
use std::sync::{Arc, atomic::Ordering};

/// See the module's text.
pub struct PoolActor;

/// What the pool needs of its session.
pub struct PoolDeps {
    pub identity: Arc<Identity>,
    pub time: Arc<NodeTime>,
    pub shards: Arc<ShardMap>,
    pub client: Arc<ShardClient>,
    pub tenants: Arc<TenantGauges>,
    pub waiting_results: Arc<WaitingResults>,
    pub secrets: Arc<dyn Secrets>,
}

/// State of the actor: the pool, and what it works with.
pub struct PoolTask {
    deps: PoolDeps,
    pool: PoolState,
}

/// What the pool knows.
pub struct PoolState {
    /// Runs that have a permit and no attempt yet.
    dispatch: Dispatch,
    /// Runs that the round under way has matched; empty between rounds, kept for its room.
    matched: Vec<Match>,
    pub(super) sessions: HashMap<ExecutorSession, ExecutorSessionState>,
    /// A [`PoolMsg::Gather`] or [`PoolMsg::Settle`] is in the mailbox.
    settling: bool,
    quotas: Quotas,
    borrowing: Borrowing,
    /// Durable assignments, to be sent when it settles. Boxed: a list of some 400 bytes each, grown anew for each message, was a twentieth of
    /// the node's time.
    #[allow(clippy::vec_box)]
    outgoing: HashMap<ExecutorSession, Vec<Box<Assignment>>>,
    /// Attempts of before the restart whose executor announced without them: lost when this time has come.
    pub(super) lacking: Vec<(i64, Held)>,
    /// When this session of the node took its shards, CLOCK_BOOTTIME ms.
    pub(super) started_ms: i64,
    /// Last look at the leases, CLOCK_BOOTTIME ms: a long time without one means that the node itself stood still.
    pub(super) looked_ms: i64,
    /// Shards that were taken over, and when executors are to be asked what they hold of them.
    pub(super) taken_over: Vec<(i64, ShardId, Epoch)>,
    /// When the figures by pool were last shown, CLOCK_BOOTTIME ms.
    pools_shown_ms: i64,
}

impl Actor for PoolActor {
    type Msg = PoolMsg;
    type State = PoolTask;
    type Arguments = PoolDeps;

    async fn pre_start(&self, _: ActorRef<PoolMsg>, deps: PoolDeps) -> Result<PoolTask, ActorProcessingErr> {
        let Identity { session, shards, .. } = *deps.identity;
        let borrower = (!deps.shards.is_alone()).then(|| Borrower::new(session, shards));
        let pool = PoolState::new(deps.time.boot_ms(), Quotas::new(deps.tenants.clone(), borrower));
        Ok(PoolTask { deps, pool })
    }

    async fn handle(
        &self,
        myself: ActorRef<PoolMsg>,
        message: PoolMsg,
        PoolTask { deps, pool: state }: &mut PoolTask,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PoolMsg::Effects(effects) => {
                for effect in effects {
                    state.effect(deps, effect);
                }
                state.settle_soon(&myself);
            }
            PoolMsg::Gather => {
                tokio::task::yield_now().await;
                // It ends only with its session.
                let _ = myself.cast(PoolMsg::Settle);
            }
            PoolMsg::Settle => {
                state.settling = false;
                state.settle(deps);
                state.report(deps, &myself);
            }
            PoolMsg::Unbind { run, session, paused } => {
                if let Some(ExecutorSessionState { executor, .. }) = state.sessions.get_mut(&session) {
                    executor.credit.refund();
                    executor.release(run, Some(Token(0)));
                }
                if let Some(run) = state.dispatch.unbind(run)
                    && paused
                {
                    state.quotas.again(run);
                }
                state.settle_soon(&myself);
            }
            PoolMsg::SetQuota(limit) => {
                state.quotas.set(limit);
                state.settle_soon(&myself);
            }
            PoolMsg::PauseTenant(tenant, paused) => {
                state.quotas.pause(&tenant, paused);
                if paused {
                    state.take_back(deps, &tenant);
                }
                state.settle_soon(&myself);
            }
            PoolMsg::ShardServed(shard, epoch) => {
                state.quotas.shard_served(shard, epoch);
                state.settle_soon(&myself);
                // A node that is alone took nothing over, so who registers after this announces with all that is known.
                if !deps.shards.is_alone() || state.registered_before(shard, deps.identity.shards) {
                    state.taken_over.push((deps.time.boot_ms() + OLD_CREDIT_VOID_MS, shard, epoch));
                }
            }
            PoolMsg::ShardGone(shard) => state.shard_gone(deps, shard),
            PoolMsg::Shares(home, answer) => {
                state.take_shares(deps, home, answer);
                state.settle_soon(&myself);
            }
            PoolMsg::Settled(shard, port) => {
                state.borrowing.leaving.push((shard, port));
                state.let_go();
            }
            PoolMsg::QuotaTick => {
                state.quotas.tick();
                state.settle_soon(&myself);
            }
            PoolMsg::Register(register, by, outbox, done) => {
                // What waits to be sent belongs to the connection of before.
                state.send(deps);
                let registered = state.register(deps, *register, by, outbox);
                let _ = done.send(registered);
                state.settle_soon(&myself);
            }
            PoolMsg::Credit(session, credit) => {
                let now = deps.time.boot_ms();
                state.heard(deps, session);
                if let Some(session) = state.sessions.get_mut(&session) {
                    session.executor.credit.give(credit, now);
                }
                state.settle_soon(&myself);
            }
            PoolMsg::Heartbeat(session) => state.heard(deps, session),
            PoolMsg::Announce(session, held, port) => {
                state.send(deps);
                state.announce(deps, &myself, session, held, port);
            }
            PoolMsg::NotHeld(session, held) => {
                if let Some(session) = state.sessions.get_mut(&session) {
                    for held in held {
                        session.executor.release(held.run, Some(held.token));
                    }
                }
            }
            PoolMsg::Drain(session) => {
                if let Some(session) = state.sessions.get_mut(&session) {
                    session.draining = true;
                }
            }
            PoolMsg::Disconnected(session) => {
                state.send(deps);
                state.disconnected(session);
            }
            PoolMsg::LeaseLost => state.hang_up(),
            PoolMsg::Tick => {
                state.look_after(deps);
                state.settle_soon(&myself);
                state.gauges(deps.time.boot_ms());
            }
            PoolMsg::WhyWaiting { run, tenant, pool, port } => {
                // What ended just now is no reason any more.
                state.settle(deps);
                let why = state.quotas.why(&tenant, run).or_else(|| state.why(deps, run, &pool));
                let why = why.map(|why| state.why_degraded(deps, run, &why).unwrap_or(why));
                // Nobody may listen any more.
                let _ = port.send(why);
            }
            PoolMsg::Executors(port) => {
                let now = deps.time.boot_ms();
                // Nobody looks after the node's own.
                let shown = state.sessions.iter().filter(|(_, session)| !session.is_of_channels());
                let _ = port.send(shown.map(|(id, session)| session.view(id.0, now)).collect());
            }
            PoolMsg::Pools(port) => {
                let _ = port.send(state.pools(deps));
            }
        }
        Ok(())
    }
}

/// Runs of a lower priority wait now.
fn least_priority(deps: &PoolDeps) -> u16 {
    let waits = deps.client.projector.degradation.level() >= DegradationLevel::LowPriorityWaits;
    if waits { USUAL_PRIORITY } else { 0 }
}

impl PoolState {
    fn new(now_ms: i64, quotas: Quotas) -> Self {
        Self {
            dispatch: Dispatch::default(),
            matched: Vec::new(),
            sessions: HashMap::new(),
            settling: false,
            quotas,
            borrowing: Borrowing::default(),
            outgoing: HashMap::new(),
            lacking: Vec::new(),
            started_ms: now_ms,
            looked_ms: now_ms,
            taken_over: Vec::new(),
            pools_shown_ms: i64::MIN,
        }
    }

    /// Settles when shards that are ready have had their turns and what they sent was taken: runs that are bound together cost one
    /// message and one frame of their shard, and assignments that are sent together one message to their executor.
    fn settle_soon(&mut self, myself: &ActorRef<PoolMsg>) {
        if !self.settling {
            self.settling = myself.cast(PoolMsg::Gather).is_ok();
        }
    }

    fn settle(&mut self, deps: &PoolDeps) {
        self.send(deps);
        for run in self.quotas.grant(deps.time.boot_ms()) {
            self.dispatch.enqueue(run);
        }
        self.bind(deps);
        self.grant_backfills(deps);
        self.hint(deps.time.boot_ms());
    }

    /// Runs of backfills get their permits together with free slots: a permit that waited for a slot with one of them would be missing to a
    /// live run.
    fn grant_backfills(&mut self, deps: &PoolDeps) {
        let stopped = deps.client.projector.degradation.level() >= DegradationLevel::BackfillsStop;
        if stopped || !self.quotas.has_back() {
            return;
        }
        let now = deps.time.boot_ms();
        // The node's own slots for channels are of no use to others.
        let channels = self.quotas.has_back_of_channels();
        let usable = self.sessions.iter_mut().filter(|(_, session)| channels || !session.is_of_channels());
        let free: usize = usable.map(|(id, session)| session.seat(*id, now).left as usize).sum();
        let granted = self.quotas.grant_back(now, free);
        if granted.is_empty() {
            return;
        }
        granted.iter().for_each(|run| self.dispatch.enqueue(run.clone()));
        self.bind(deps);
        for run in granted {
            if self.dispatch.dequeue(run.run, &run.pool) {
                deps.tenants.gauge(&run.tenant).waiting.fetch_sub(1, Ordering::Relaxed);
                self.quotas.found_no_slot(run);
            }
        }
    }

    fn effect(&mut self, deps: &PoolDeps, effect: Effect) {
        match effect {
            Effect::Enqueue(run) if self.dispatch.is_bound(run.run) => {
                // It was taken back and asks again while its executor is being asked: it keeps its place with it, and the permit that it gave
                // back.
                self.quotas.adopt(&run.tenant, run.run, run.target.as_deref());
                self.dispatch.bind(run);
            }
            Effect::Enqueue(run) => {
                if let Some(run) = self.quotas.want(run) {
                    self.dispatch.enqueue(run);
                }
            }
            Effect::Dequeue { run, tenant, pool } => {
                self.quotas.dequeue(&tenant, run);
                if self.dispatch.dequeue(run, &pool) {
                    deps.tenants.gauge(&tenant).waiting.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Effect::Assign(assign) => self.assign(deps, assign),
            Effect::Ended { run, token, session, tenant, verdict } => {
                self.quotas.ended(&tenant, run, verdict);
                self.dispatch.unbind(run);
                if let Some(session) = session.and_then(|s| self.sessions.get_mut(&s)) {
                    session.executor.release(run, Some(token));
                }
            }
            Effect::Stop { session, held } => {
                // The assignment comes first.
                self.send(deps);
                let now = deps.time.boot_ms();
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.stops(held, now);
                    if let Some(outbox) = &session.outbox {
                        // A lost stop is repeated when the executor announces itself.
                        let _ = outbox.try_send(ToExecutor::Stop(vec![held]));
                    }
                }
            }
            Effect::Forget { session, held } => {
                if let Some(outbox) = self.sessions.get(&session).and_then(|s| s.outbox.as_ref()) {
                    // When it is lost, the executor's slot stays taken until the body ends.
                    let _ = outbox.try_send(ToExecutor::Forget(vec![held]));
                }
            }
            Effect::Watch { session, credential, held, tenant, pool, executor, moved_from, target } => {
                self.quotas.adopt(&tenant, held.run, target.as_deref());
                if let Some(before) = moved_from.and_then(|before| self.sessions.get_mut(&before)) {
                    before.executor.release(held.run, Some(held.token));
                }
                self.watch(deps, session, credential.ok_or_else(|| pool.clone()), held, executor.to_string());
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.executor.belongs(held.run, tenant, pool);
                }
            }
        }
    }

    /// A tenant was paused: its runs that have a permit and no executor give the permit back and wait for another one.
    fn take_back(&mut self, deps: &PoolDeps, tenant: &str) {
        let mut runs = self.dispatch.take(tenant);
        // As they came: each goes before those that wait already.
        runs.sort_by_key(|run| std::cmp::Reverse(run.since_ms));
        for run in runs {
            deps.tenants.gauge(tenant).waiting.fetch_sub(1, Ordering::Relaxed);
            self.quotas.again(run);
        }
    }

    /// Matches waiting runs to credit, and asks their jobs to start the attempts.
    fn bind(&mut self, deps: &PoolDeps) {
        if self.dispatch.is_starved() && !deps.tenants.system_paused.load(Ordering::Relaxed) {
            let now = deps.time.boot_ms();
            let mut seats: Vec<Seat<'_>> = self.sessions.iter_mut().map(|(id, s)| s.seat(*id, now)).collect();
            self.dispatch.hold_below(least_priority(deps));
            let level = deps.client.projector.degradation.level();
            self.dispatch.hold_backfills(level >= DegradationLevel::BackfillsStop);
            self.dispatch.round(&mut seats, &mut self.matched, now);
            self.start_matched(deps);
        }
        deps.waiting_results.set_wanted(self.dispatch.is_starved(), self.quotas.lacks_ends());
    }

    fn start_matched(&mut self, deps: &PoolDeps) {
        let mut binds: HashMap<ShardId, Vec<Bind>> = HashMap::new();
        for (id, run) in self.matched.drain(..) {
            deps.tenants.gauge(&run.tenant).waiting.fetch_sub(1, Ordering::Relaxed);
            if let Some(session) = self.sessions.get(&id) {
                binds.entry(run.run.shard(deps.identity.shards)).or_default().push(Bind {
                    run: run.run,
                    job: run.job,
                    session: id,
                    executor: session.name.as_str().into(),
                    credential: session.credential.clone(),
                    credit_stamp_ms: session.executor.credit.stamp_ms(),
                });
            }
            self.dispatch.bind(run);
        }
        for (shard, binds) in binds {
            deps.shards.send(shard, ShardMsg::StartAttempts(binds));
        }
    }

    /// A durable attempt is to be sent to its executor.
    fn assign(&mut self, deps: &PoolDeps, assign: Assign) {
        let Assign { session: id, mut assignment, secrets, decided_ms } = assign;
        self.dispatch.unbind(assignment.run);
        let held = Held { run: assignment.run, job: assignment.job, token: assignment.token };
        if let Some(session) = self.sessions.get_mut(&id) {
            match session.executor.running.get_mut(&assignment.run) {
                Some(holding) => holding.held = held,
                None => session.executor.hold(held, None),
            }
        }
        if let Some(sealed) = secrets {
            let owner = SecretOwner { tenant: assignment.tenant.as_str(), job: assignment.job_name.as_str() };
            match deps.secrets.open(owner, &sealed) {
                Ok(opened) => assignment.secrets = opened,
                Err(error) => {
                    tracing::error!(run = %assignment.run, %error, "secret params cannot be opened");
                    return self.not_started(deps, id, vec![held], "SECRETS_UNREADABLE");
                }
            }
        }
        assignment.shard = assignment.run.shard(deps.identity.shards);
        assignment.cluster_id = deps.identity.cluster_id.0;
        if assignment.traceparent.is_some() {
            traced::assigned(deps, &mut assignment, decided_ms);
        }
        self.outgoing.entry(id).or_default().push(assignment);
    }

    /// Sends the assignments, one message to each executor.
    fn send(&mut self, deps: &PoolDeps) {
        for (id, assignments) in std::mem::take(&mut self.outgoing) {
            let held: Vec<Held> = assignments.iter().map(|a| Held { run: a.run, job: a.job, token: a.token }).collect();
            crate::measure::hot().assignments.increment(assignments.len() as u64);
            let sent = self
                .sessions
                .get(&id)
                .and_then(|s| s.outbox.as_ref())
                .is_some_and(|outbox| outbox.try_send(ToExecutor::Assign(assignments)).is_ok());
            if !sent {
                self.not_started(deps, id, held, "EXECUTOR_UNREACHABLE");
            }
        }
    }

    fn not_started(&mut self, deps: &PoolDeps, session: ExecutorSession, held: Vec<Held>, why: &'static str) {
        let mut shards: HashMap<ShardId, Vec<Held>> = HashMap::new();
        for held in held {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.executor.release(held.run, None);
            }
            shards.entry(held.run.shard(deps.identity.shards)).or_default().push(held);
        }
        for (shard, held) in shards {
            deps.shards.send(shard, ShardMsg::NotStarted(held, why));
        }
    }
}
