//! The pool actor matches runs that have a permit to executors that have credit. The quota actors, which lend the
//! permits, have their turns in its task. Executors pull: the pool sends no more than their credit allows. For each run
//! it filters (kind, handler, resources), scores (load), reserves (credit) and binds: it asks the job to start the
//! attempt, and sends the assignment when that is durable.
//!
//! Its state is in memory only: after a restart shards send it again (`Enqueue`, `Watch`), and executors register and
//! announce. It also watches leases of executors: silent for 5 s = suspected, for 10 s = lost.

mod borrowing;
mod class;
mod figures;
mod hints;
mod lease;
mod moving;
mod queue;
mod session;

use crate::{
    ask::ShardClient,
    ends::Ends,
    identity::Identity,
    messages::{Bind, PoolMsg, ShardMsg, ToExecutor},
    quota::{Borrower, Quotas},
    shard_map::ShardMap,
    tenants::TenantGauges,
    time::NodeTime,
};
use borrowing::Borrowing;
use campanile_core::job::{Assign, Effect, Waiting};
use campanile_ports::{SecretOwner, Secrets};
use campanile_schema::{
    ids::{Epoch, ExecutorSession, RunId, ShardId, Token},
    limits,
    rpc::executor::{Assignment, Held},
};
use class::{Class, Kind};
use hashbrown::HashMap;
use lease::OLD_CREDIT_VOID_MS;
pub use lease::session_taken;
use queue::Queue;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use session::Session;
use std::sync::{Arc, atomic::Ordering};

/// Runs passed over in one matching round because who could run them has no credit or no room: bounds a round's cost.
const PASSED_OVER_PER_ROUND: usize = 64;

/// See the module's text.
pub struct PoolActor;

/// What the pool needs of its session.
pub struct PoolDeps {
    pub identity: Arc<Identity>,
    pub time: Arc<NodeTime>,
    pub shards: Arc<ShardMap>,
    pub client: Arc<ShardClient>,
    pub tenants: Arc<TenantGauges>,
    pub ends: Arc<Ends>,
    pub secrets: Arc<dyn Secrets>,
}

/// State of the actor: the pool, and what it works with.
pub struct PoolTask {
    deps: PoolDeps,
    pool: PoolState,
}

/// What the pool knows.
pub struct PoolState {
    queues: HashMap<Class, Queue>,
    /// Runs that no registered executor could ever take (handler, kind or size); tried again when executors change.
    misfits: HashMap<RunId, Box<Waiting>>,
    pub(super) sessions: HashMap<ExecutorSession, Session>,
    /// Of all time.
    binds: u64,
    /// A [`PoolMsg::Gather`] or [`PoolMsg::Settle`] is in the mailbox.
    settling: bool,
    quotas: Quotas,
    borrowing: Borrowing,
    /// Durable assignments, to be sent when it settles. Boxed: a list of some 400 bytes each, grown anew for each message, was a twentieth of
    /// the node's time.
    #[allow(clippy::vec_box)]
    outgoing: HashMap<ExecutorSession, Vec<Box<Assignment>>>,
    /// Bound, not yet assigned.
    bound: HashMap<RunId, Box<Waiting>>,
    /// Attempts of before the restart whose executor announced without them: lost when this time has come.
    pub(super) lacking: Vec<(i64, Held)>,
    /// When this session of the node took its shards, CLOCK_BOOTTIME ms.
    pub(super) started_ms: i64,
    /// Last look at the leases, CLOCK_BOOTTIME ms: a long time without one means that the node itself stood still.
    pub(super) looked_ms: i64,
    /// Shards that were taken over, and when executors are to be asked what they hold of them.
    pub(super) taken_over: Vec<(i64, ShardId, Epoch)>,
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
                if let Some(session) = state.sessions.get_mut(&session) {
                    session.used = session.used.saturating_sub(1);
                    session.release(run, Some(Token(0)));
                }
                if let Some(run) = state.bound.remove(&run)
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
            PoolMsg::Terms(home, answer) => {
                state.take_terms(deps, home, answer);
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
                    session.credit = credit;
                    session.credit_at_ms = now;
                    session.used = 0;
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
                        session.release(held.run, Some(held.token));
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
                // Nobody may listen any more.
                let _ = port.send(why);
            }
            PoolMsg::Executors(port) => {
                let now = deps.time.boot_ms();
                let _ = port.send(state.sessions.iter().map(|(id, s)| s.view(id.0, now)).collect());
            }
            PoolMsg::Pools(port) => {
                let _ = port.send(state.pools(deps));
            }
        }
        Ok(())
    }
}

impl PoolState {
    fn new(now_ms: i64, quotas: Quotas) -> Self {
        Self {
            queues: HashMap::new(),
            misfits: HashMap::new(),
            sessions: HashMap::new(),
            binds: 0,
            settling: false,
            quotas,
            borrowing: Borrowing::default(),
            outgoing: HashMap::new(),
            bound: HashMap::new(),
            lacking: Vec::new(),
            started_ms: now_ms,
            looked_ms: now_ms,
            taken_over: Vec::new(),
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
            self.enqueue(run);
        }
        self.bind(deps);
        self.hint(deps.time.boot_ms());
    }

    fn effect(&mut self, deps: &PoolDeps, effect: Effect) {
        match effect {
            Effect::Enqueue(run) if self.bound.contains_key(&run.run) => {
                // It was taken back and asks again while its executor is being asked: it keeps its place with it, and the permit that it gave
                // back.
                self.quotas.adopt(&run.tenant, run.run);
                self.bound.insert(run.run, run);
            }
            Effect::Enqueue(run) => {
                if let Some(run) = self.quotas.want(run) {
                    self.enqueue(run);
                }
            }
            Effect::Dequeue { run, tenant, pool } => {
                self.quotas.dequeue(&tenant, run);
                self.dequeue(deps, run, &tenant, &pool);
            }
            Effect::Assign(assign) => self.assign(deps, assign),
            Effect::Ended { run, token, session, tenant } => {
                self.quotas.ended(&tenant, run);
                self.bound.remove(&run);
                if let Some(session) = session.and_then(|s| self.sessions.get_mut(&s)) {
                    session.release(run, Some(token));
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
            Effect::Watch { session, credential, held, tenant, pool, executor, moved_from } => {
                self.quotas.adopt(&tenant, held.run);
                if let Some(before) = moved_from.and_then(|before| self.sessions.get_mut(&before)) {
                    before.release(held.run, Some(held.token));
                }
                self.watch(deps, session, credential.ok_or(pool), held, executor.to_string());
            }
        }
    }

    fn enqueue(&mut self, run: Box<Waiting>) {
        if self.bound.contains_key(&run.run) || self.misfits.contains_key(&run.run) {
            return;
        }
        self.queues.entry(Class::of(&run)).or_default().push(run);
    }

    fn dequeue(&mut self, deps: &PoolDeps, run: RunId, tenant: &str, pool: &str) {
        let queued = Kind::ALL.into_iter().any(|kind| {
            let class = Class { pool: pool.into(), kind };
            self.queues.get_mut(&class).is_some_and(|q| q.remove(run))
        });
        if self.misfits.remove(&run).is_some() || queued {
            deps.tenants.gauge(tenant).waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A tenant was paused: its runs that have a permit and no executor give the permit back and wait for another one.
    fn take_back(&mut self, deps: &PoolDeps, tenant: &str) {
        let mut runs: Vec<Box<Waiting>> = self.queues.values_mut().flat_map(|queue| queue.take(tenant)).collect();
        runs.extend(self.misfits.extract_if(|_, run| run.tenant == *tenant).map(|(_, run)| run));
        // As they came: each goes before those that wait already.
        runs.sort_by_key(|run| std::cmp::Reverse(run.since_ms));
        for run in runs {
            deps.tenants.gauge(tenant).waiting.fetch_sub(1, Ordering::Relaxed);
            self.quotas.again(run);
        }
    }

    /// Misfits may fit now.
    fn retry_misfits(&mut self) {
        for (_, run) in std::mem::take(&mut self.misfits) {
            self.enqueue(run);
        }
    }

    /// Matches waiting runs to credit, queue by queue.
    fn bind(&mut self, deps: &PoolDeps) {
        let now = deps.time.boot_ms();
        let mut binds: HashMap<ShardId, Vec<Bind>> = HashMap::new();
        let mut misfits = Vec::new();
        let paused = deps.tenants.system_paused.load(Ordering::Relaxed);
        for (class, queue) in &mut self.queues {
            if paused || queue.is_empty() {
                continue;
            }
            let mut ready: Vec<(ExecutorSession, u32)> = self
                .sessions
                .iter()
                .filter(|(_, s)| s.is_in(&class.pool) && s.takes(class.kind))
                .map(|(id, s)| (*id, s.credit_left(now)))
                .filter(|(_, left)| *left > 0)
                .collect();
            let mut passed_over = Vec::new();
            while !ready.is_empty()
                && passed_over.len() < PASSED_OVER_PER_ROUND
                && self.bound.len() < limits::BINDS_IN_FLIGHT
            {
                let Some(run) = queue.pop() else { break };
                let best = ready
                    .iter()
                    .enumerate()
                    .filter_map(|(index, (id, _))| {
                        let session = self.sessions.get(id)?;
                        (session.can_run(&run) && session.has_room(&run)).then_some((index, session))
                    })
                    .min_by(|a, b| a.1.before(b.1))
                    .map(|(index, _)| index);
                let Some(index) = best else {
                    if self.sessions.values().any(|s| s.is_in(&class.pool) && s.can_run(&run)) {
                        // Somebody can, but has no credit or no room now.
                        passed_over.push(run);
                    } else {
                        misfits.push(run);
                    }
                    continue;
                };
                let id = ready[index].0;
                let Some(session) = self.sessions.get_mut(&id) else { continue };
                session.used += 1;
                self.binds += 1;
                session.last_bind = self.binds;
                session.hold(Held { run: run.run, job: run.job, token: Token(0) }, Some(&run));
                ready[index].1 -= 1;
                if ready[index].1 == 0 {
                    ready.swap_remove(index);
                }
                deps.tenants.gauge(&run.tenant).waiting.fetch_sub(1, Ordering::Relaxed);
                binds.entry(run.run.shard(deps.identity.shards)).or_default().push(Bind {
                    run: run.run,
                    job: run.job,
                    session: id,
                    executor: session.executor.as_str().into(),
                    credential: session.credential.clone(),
                    credit_stamp_ms: session.credit.stamp_ms,
                });
                self.bound.insert(run.run, run);
            }
            for run in passed_over.into_iter().rev() {
                queue.give_back(run);
            }
        }
        for run in misfits {
            self.misfits.insert(run.run, run);
        }
        let starved = self.queues.values().any(|queue| !queue.is_empty());
        deps.ends.set_wanted(starved, self.quotas.lacks_ends());
        for (shard, binds) in binds {
            deps.shards.send(shard, ShardMsg::Start(binds));
        }
    }

    /// A durable attempt is to be sent to its executor.
    fn assign(&mut self, deps: &PoolDeps, assign: Assign) {
        let Assign { session: id, mut assignment, secrets } = assign;
        self.bound.remove(&assignment.run);
        let held = Held { run: assignment.run, job: assignment.job, token: assignment.token };
        if let Some(session) = self.sessions.get_mut(&id) {
            match session.running.get_mut(&assignment.run) {
                Some(holding) => holding.held = held,
                None => session.hold(held, None),
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
                session.release(held.run, None);
            }
            shards.entry(held.run.shard(deps.identity.shards)).or_default().push(held);
        }
        for (shard, held) in shards {
            deps.shards.send(shard, ShardMsg::NotStarted(held, why));
        }
    }
}
