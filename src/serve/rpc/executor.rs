//! The methods of executors. They go to the scheduler in batches, after a check that the token may serve the pools.
//!
//! Registrations and announcements are answered in order. Results are answered when they are durable, and several
//! batches may be under way.

use super::{
    Server,
    claims::ForeignClaims,
    logs::LogLane,
    members::{self, Telling},
    reply::Reply,
    writer::Outgoing,
};
use campanile_actors::scheduler::session_taken;
use campanile_core::job::Claimant;
use campanile_schema::{
    channel::CHANNEL_POOL,
    error::{ApiError, ErrorCode},
    ids::ExecutorSession,
    limits::{
        ERROR_CODE_BYTES, ERROR_MESSAGE_BYTES, EXECUTOR_ANNOUNCED, EXECUTOR_BATCH, EXECUTOR_NAMES, EXECUTOR_SLOTS_MAX,
        LABEL_BYTES, LEASE_MS, LOG_CHUNK_BYTES, NAME_CHARS, RPC_OUTBOX_FRAMES, STOP_GRACE_MAX_SEC, TENANT_CHARS,
    },
    operations::{LeastRole, OWN},
    rpc::{
        calls::NoBody,
        codec::Params,
        executor::{Announce, Announced, Credit, Ended, Finish, FinishOutcome, Heartbeat, Held, LogChunk, Register},
        method as m,
    },
    text::is_shown,
};
use campanile_security::auth::{Caller, Role};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Whether a method is one of executors.
pub(super) fn is_executors(method: &str) -> bool {
    OWN.iter().any(|row| row.least == LeastRole::Executor && row.name == method)
}

/// The executor on one connection.
pub(super) struct ExecutorConnection {
    server: Arc<Server>,
    connection: u64,
    out: mpsc::Sender<Outgoing>,
    registered: Option<Registration>,
}

struct Registration {
    session: ExecutorSession,
    by: Arc<Claimant>,
    slots: u32,
    logs: LogLane,
    /// Parts of an announcement under way.
    announcing: Vec<Held>,
    foreign: Arc<ForeignClaims>,
    /// Once it is registered, on a node of a cluster.
    _telling: Option<Telling>,
}

impl Drop for ExecutorConnection {
    fn drop(&mut self) {
        if let Some(registration) = &self.registered {
            self.server.leaves(registration.session, self.connection);
        }
    }
}

impl ExecutorConnection {
    pub(super) fn new(server: Arc<Server>, connection: u64, out: mpsc::Sender<Outgoing>) -> Self {
        Self { server, connection, out, registered: None }
    }

    /// Carries out one message. `reply` is None for a notification.
    pub(super) async fn handle(&mut self, who: &Caller, method: &str, params: Params<'_>, reply: Option<Reply>) {
        let failed = match (method, reply) {
            (m::EXECUTOR_REGISTER, reply) => return self.register(who, params, reply).await,
            (m::EXECUTOR_CREDIT, reply) => (self.credit(params), reply),
            (m::EXECUTOR_HEARTBEAT, reply) => (self.heartbeat(params), reply),
            (m::EXECUTOR_DRAIN, reply) => (self.drain(), reply),
            (m::EXECUTOR_ANNOUNCE, reply) => return self.announce(params, reply).await,
            (m::EXECUTOR_FINISH, reply) => match self.finish(params, reply) {
                Ok(()) => return,
                Err(refused) => (Err(refused.0), refused.1),
            },
            (m::EXECUTOR_LOG, reply) => match params.read::<LogChunk>().and_then(checked) {
                Ok(chunk) => return self.log(chunk, reply).await,
                Err(error) => (Err(error), reply),
            },
            (_, reply) => (Err(ApiError::new(ErrorCode::UnknownMethod, "not an executor's method")), reply),
        };
        let (outcome, reply) = failed;
        match reply {
            Some(reply) => reply.send(&outcome.map(|()| NoBody {})).await,
            None => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, method, "an executor's notification was not taken");
                }
            }
        }
    }

    /// The session that this connection speaks for, while it does.
    fn session(&self) -> Result<&Registration, ApiError> {
        match &self.registered {
            Some(r) if self.server.is_on(r.session, self.connection) => Ok(r),
            Some(_) => Err(ApiError::new(ErrorCode::IllegalState, "this session is on another connection now")),
            None => Err(ApiError::new(ErrorCode::IllegalState, "executor.register comes first")),
        }
    }

    async fn register(&mut self, who: &Caller, params: Params<'_>, reply: Option<Reply>) {
        let register = match params.read::<Register>().and_then(|register| check(who, register)) {
            Ok(register) => register,
            Err(error) => return refuse(reply, error).await,
        };
        let (session, slots) = (register.session, register.slots);
        let scheduler = &self.server.operations.scheduler;
        let (pushes_in, pushes) = mpsc::channel(RPC_OUTBOX_FRAMES);
        let by = Arc::new(claimant(who, session));
        if !self.server.takes(session, self.connection, &by.credential) {
            return refuse(reply, session_taken()).await;
        }
        // Not before it has the new one: a refusal changes nothing.
        if let Some(before) = self.registered.take()
            && before.session != session
        {
            self.server.leaves(before.session, self.connection);
        }
        let foreign = Arc::new(ForeignClaims::new(slots, by.clone(), self.out.clone(), self.server.complaints.clone()));
        let logs = LogLane::new(scheduler.clone(), by.clone(), foreign.clone());
        let announcing = Vec::new();
        self.registered =
            Some(Registration { session, by: by.clone(), slots, logs, announcing, foreign, _telling: None });
        let outcome = scheduler.executor_register(register, by, pushes_in).await;
        match (&outcome, reply) {
            (Ok(_), reply) => {
                // None: a registration as a notification; the executor does not want to know its epochs.
                if let Some(reply) = reply {
                    reply.send(&outcome).await;
                }
                // After the answer, so that the executor knows the epochs before it is sent anything.
                let _ = self.out.send(Outgoing::Pushes(pushes)).await;
                if let (Some(registration), Some(nodes)) = (&mut self.registered, &self.server.nodes) {
                    registration._telling = Some(members::start(nodes.clone(), self.out.clone()));
                }
            }
            (Err(error), reply) => {
                if error.known() == ErrorCode::Forbidden {
                    // The session of another credential goes on.
                    self.server.gives_back(session, self.connection);
                }
                self.registered = None;
                self.server.leaves(session, self.connection);
                refuse(reply, error.clone()).await;
            }
        }
    }

    fn credit(&self, params: Params<'_>) -> Result<(), ApiError> {
        let registration = self.session()?;
        self.give_credit(registration, params.read()?);
        Ok(())
    }

    fn give_credit(&self, registration: &Registration, mut credit: Credit) {
        credit.slots = credit.slots.min(registration.slots);
        self.server.operations.scheduler.executor_credit(registration.session, credit);
    }

    fn heartbeat(&self, params: Params<'_>) -> Result<(), ApiError> {
        let registration = self.session()?;
        let _: Heartbeat = params.read()?;
        self.server.operations.scheduler.executor_heartbeat(registration.session);
        Ok(())
    }

    fn drain(&self) -> Result<(), ApiError> {
        self.server.operations.scheduler.executor_drain(self.session()?.session);
        Ok(())
    }

    async fn announce(&mut self, params: Params<'_>, reply: Option<Reply>) {
        let outcome = match self.gather(params) {
            Ok(Some((session, held))) => {
                let outcome = self.server.operations.scheduler.executor_announce(session, held).await;
                if let (Ok(Announced { stop }), Some(registration)) = (&outcome, &self.registered) {
                    registration.foreign.refused(stop.iter().map(|held| (held.run, held.token))).await;
                }
                outcome
            }
            Ok(None) => Ok(Announced::default()),
            Err(error) => Err(error),
        };
        match reply {
            Some(reply) => reply.send(&outcome).await,
            None => drop(outcome),
        }
    }

    /// Takes a part of an announcement; Some: it is whole. Parts are the connection's, and go with it.
    /// When a part is refused, whatever the reason, nothing stays of those before it.
    fn gather(&mut self, params: Params<'_>) -> Result<Option<(ExecutorSession, Vec<Held>)>, ApiError> {
        let mut held = self.registered.as_mut().map(|known| std::mem::take(&mut known.announcing)).unwrap_or_default();
        let registration = self.session()?;
        let announce: Announce = params.read()?;
        if announce.held.len() > EXECUTOR_BATCH {
            return Err(too_many("held"));
        }
        let most = (8 * registration.slots as usize + EXECUTOR_ANNOUNCED).min(2 * EXECUTOR_SLOTS_MAX as usize);
        if held.len() + announce.held.len() > most {
            return Err(invalid(format!("held: at most {most} attempts together for {} slots", registration.slots)));
        }
        held.extend(announce.held);
        if !announce.more {
            return Ok(Some((registration.session, held)));
        }
        if let Some(registration) = &mut self.registered {
            registration.announcing = held;
        }
        Ok(None)
    }

    /// Starts handing in results; the answer comes when they are durable.
    fn finish(&self, params: Params<'_>, reply: Option<Reply>) -> Result<(), Box<(ApiError, Option<Reply>)>> {
        let read = || {
            let registration = self.session()?;
            let finish: Finish = params.read()?;
            if finish.items.len() > EXECUTOR_BATCH {
                return Err(too_many("items"));
            }
            Ok((registration, finish))
        };
        let (registration, mut finish) = match read() {
            Ok(read) => read,
            Err(error) => return Err(Box::new((error, reply))),
        };
        // Here and not in the task: credits must not overtake each other.
        if let Some(credit) = finish.credit.take() {
            self.give_credit(registration, credit);
        }
        finish.items.iter_mut().for_each(bound);
        let (by, foreign, mark) = (registration.by.clone(), registration.foreign.clone(), registration.logs.mark());
        let scheduler = self.server.operations.scheduler.clone();
        tokio::spawn(async move {
            mark.reached().await;
            let named: Vec<_> = finish.items.iter().map(|ended| (ended.run, ended.token)).collect();
            let outcome = scheduler.executor_finish(&by, finish).await;
            if let Ok(finished) = &outcome {
                let stale =
                    finished.outcomes.iter().zip(named).filter(|(outcome, _)| **outcome == FinishOutcome::Stale);
                foreign.refused(stale.map(|(_, attempt)| attempt)).await;
            }
            if let Some(reply) = reply {
                reply.send(&outcome).await;
            }
        });
        Ok(())
    }

    async fn log(&mut self, chunk: LogChunk, reply: Option<Reply>) {
        match self.session() {
            Ok(_) => {
                if let Some(registration) = &mut self.registered {
                    registration.logs.write(chunk, reply).await;
                }
            }
            Err(error) => refuse(reply, error).await,
        }
    }
}

async fn refuse(reply: Option<Reply>, error: ApiError) {
    match reply {
        Some(reply) => reply.send::<NoBody>(&Err(error)).await,
        None => tracing::debug!(%error, "an executor's notification was not taken"),
    }
}

/// The session as its attempts know it.
fn claimant(who: &Caller, session: ExecutorSession) -> Claimant {
    let pools = match who.role {
        Role::Operator => None,
        Role::Executor | Role::Tenant | Role::Metrics => {
            Some(who.pools.iter().map(|pool| pool.as_str().into()).collect())
        }
    };
    Claimant { session, credential: who.name.as_str().into(), pools }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidArgument, message)
}

fn too_many(field: &str) -> ApiError {
    invalid(format!("{field}: at most {EXECUTOR_BATCH} in one message"))
}

/// Refuses what an executor must not register as.
fn check(who: &Caller, register: Register) -> Result<Register, ApiError> {
    match who.role {
        Role::Operator => {
            if register.pools.iter().any(|pool| pool == CHANNEL_POOL) {
                let message = format!("pools: '{CHANNEL_POOL}' is the node's own");
                return Err(ApiError::new(ErrorCode::Forbidden, message));
            }
        }
        Role::Executor => {
            if let Some(pool) = register.pools.iter().find(|pool| !who.pools.contains(pool)) {
                let message =
                    format!("pools: this token may serve {}, not '{}'", who.pools.join(", "), pool.escape_debug());
                return Err(ApiError::new(ErrorCode::Forbidden, message));
            }
        }
        Role::Tenant | Role::Metrics => {
            return Err(ApiError::new(ErrorCode::Forbidden, "this token cannot run jobs; use an executor's"));
        }
    }
    check_texts(&register)?;
    if !(1..=NAME_CHARS).contains(&register.executor_id.chars().count()) {
        return Err(invalid(format!("executorId: 1 to {NAME_CHARS} characters")));
    }
    if register.slots == 0 || register.slots > EXECUTOR_SLOTS_MAX {
        return Err(invalid(format!("slots: 1 to {EXECUTOR_SLOTS_MAX}")));
    }
    if register.pools.is_empty() || register.pools.iter().any(|p| p.is_empty() || p.chars().count() > TENANT_CHARS) {
        return Err(invalid(format!("pools: at least one, each of 1 to {TENANT_CHARS} characters")));
    }
    let names =
        [("pools", register.pools.len()), ("handlers", register.handlers.len()), ("labels", register.labels.len())];
    if let Some((field, _)) = names.iter().find(|(_, count)| *count > EXECUTOR_NAMES) {
        return Err(invalid(format!("{field}: at most {EXECUTOR_NAMES}")));
    }
    if register.handlers.iter().any(|h| h.chars().count() > NAME_CHARS) {
        return Err(invalid(format!("handlers: each at most {NAME_CHARS} characters")));
    }
    if register.labels.iter().any(|(key, value)| key.len() > LABEL_BYTES || value.len() > LABEL_BYTES) {
        return Err(invalid(format!("labels: keys and values of at most {LABEL_BYTES} bytes")));
    }
    if !register.cpu.is_finite() || register.cpu < 0.0 {
        return Err(invalid("cpu: a number of cores, 0 for no limit"));
    }
    let grace = register.stop_grace_sec.unwrap_or_default();
    if !(0.0..=STOP_GRACE_MAX_SEC as f64).contains(&grace) {
        return Err(invalid(format!(
            "stopGraceSec: 0 to {STOP_GRACE_MAX_SEC}, so that a stopped body has ended before the executor's lease of {} s has",
            LEASE_MS / 1000
        )));
    }
    Ok(register)
}

/// Names are shown to people and logged: no line breaks, no escapes of terminals, nothing that cannot be seen.
fn check_texts(register: &Register) -> Result<(), ApiError> {
    let texts = [("executorId", &register.executor_id)]
        .into_iter()
        .chain(register.pools.iter().map(|pool| ("pools", pool)))
        .chain(register.handlers.iter().map(|handler| ("handlers", handler)))
        .chain(register.labels.iter().flat_map(|(key, value)| [("labels", key), ("labels", value)]));
    for (field, text) in texts {
        if let Some(c) = text.chars().find(|c| !is_shown(*c)) {
            let code = u32::from(c);
            return Err(invalid(format!(
                "{field}: the character U+{code:04X} cannot stand in it: it is a control character, or invisible"
            )));
        }
    }
    Ok(())
}

fn checked(chunk: LogChunk) -> Result<LogChunk, ApiError> {
    if chunk.data.len() > LOG_CHUNK_BYTES {
        return Err(invalid(format!("data: at most {LOG_CHUNK_BYTES} bytes in one chunk")));
    }
    Ok(chunk)
}

/// Cuts what is kept of an attempt to its limits: the attempt itself did end, whatever it says.
fn bound(ended: &mut Ended) {
    if let Some(code) = &mut ended.error_code {
        cut(code, ERROR_CODE_BYTES);
    }
    if let Some(message) = &mut ended.error_message {
        cut(message, ERROR_MESSAGE_BYTES);
    }
    if ended.drop_large_result() {
        let why = ended.error_message.as_deref();
        tracing::warn!(run = %ended.run, job = %ended.job, why, "an executor sent a result that is too large");
    }
}

fn cut(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        let mut end = bytes;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
}
