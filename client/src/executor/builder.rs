//! How an executor is put together.

use super::{
    body_span::BodyEnded,
    config::Config,
    context::Context,
    handle::ExecutorHandle,
    handler::{self, BodyFuture},
    report::{JobError, Report},
    session,
};
use crate::{
    clock::random,
    tls::{Tls, TlsError},
};
use campanile_schema::{
    ids::{ExecutorSession, RunId, Token},
    kinds::{ActionKind, Kinds},
    limits::{EXECUTOR_SLOTS_MAX, LEASE_MS, NAME_CHARS, STOP_GRACE_MAX_SEC, STOP_GRACE_SEC},
    payload::Payload,
    rpc::executor::Register,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    sync::Arc,
    time::Duration,
};

/// An executor that is put together wrongly.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    #[error("no node to connect to")]
    NoAddress,
    #[error("slots must be 1..={EXECUTOR_SLOTS_MAX}, not {0}")]
    Slots(u32),
    #[error("an executor id has 1..={NAME_CHARS} characters")]
    Id,
    #[error(
        "the grace for stopping is {sec} s; it must be at most {STOP_GRACE_MAX_SEC} s, so that a stopped body has ended before the \
         executor's lease of {} s has", LEASE_MS / 1000
    )]
    Grace { sec: f64 },
    #[error("no handler, no handler for any name, and no runner: there is nothing it could run")]
    NothingToRun,
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Puts an executor together. See [`Executor::builder`].
#[must_use]
pub struct ExecutorBuilder {
    config: Config,
}

/// An executor, ready to start.
pub struct Executor {
    config: Config,
}

impl Executor {
    /// `address` is `host:port` of a node, with `tls://` in front for TLS, or several with commas between; `token` one of role EXECUTOR.
    /// A node of a cluster tells it of the others, which it connects to as well, and with the same TLS.
    pub fn builder(address: impl AsRef<str>, token: impl Into<String>) -> ExecutorBuilder {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let addresses = address.as_ref().split(',').map(str::trim).filter(|a| !a.is_empty()).map(str::to_owned);
        ExecutorBuilder {
            config: Config {
                addresses: addresses.collect(),
                tls: None,
                token: token.into(),
                register: Register {
                    executor_id: format!("{host}-{}", std::process::id()),
                    // Below 2^53, as it is shown in JSON.
                    session: ExecutorSession(random() >> 11),
                    pools: Vec::new(),
                    slots: 1,
                    handlers: Vec::new(),
                    any_handler: false,
                    kinds: Kinds::NONE,
                    labels: BTreeMap::new(),
                    cpu: 0.0,
                    memory_mb: 0,
                    storage_mb: 0,
                    stop_grace_sec: None,
                },
                handlers: HashMap::new(),
                any: None,
                commands: None,
                http: None,
                grace: Duration::from_secs(STOP_GRACE_SEC),
                follow: true,
                on_durable: None,
                on_body_end: None,
            },
        }
    }

    /// Starts it on the present tokio runtime. It connects, and connects anew, until it is drained or the handle is dropped.
    #[must_use = "dropping the handle stops the executor"]
    pub fn start(self) -> ExecutorHandle {
        session::start(self.config)
    }
}

impl ExecutorBuilder {
    /// For TLS, also of addresses without `tls://`. Without it addresses with `tls://` trust the CAs of the machine.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.config.tls = Some(tls);
        self
    }
    /// One more pool to take runs from; without any it is `default`.
    pub fn pool(mut self, name: impl Into<String>) -> Self {
        self.config.register.pools.push(name.into());
        self
    }
    /// Bodies that run at once at most. Default 1.
    pub fn slots(mut self, slots: u32) -> Self {
        self.config.register.slots = slots;
        self
    }
    /// A stable name, shown to people. Default: host and process id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.config.register.executor_id = id.into();
        self
    }
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.register.labels.insert(key.into(), value.into());
        self
    }
    /// What the machine has for bodies: cores, MiB, MiB. 0 = not limited.
    pub fn resources(mut self, cpu: f64, memory_mb: u64, storage_mb: u64) -> Self {
        self.config.register.cpu = cpu;
        self.config.register.memory_mb = memory_mb;
        self.config.register.storage_mb = storage_mb;
        self
    }
    /// `stopGraceSec`: the time that a body has to end by itself after it was told to stop. Then its future is dropped at its next
    /// `await`, or a command's processes are killed. Default 5 s, at most 6 s: bodies with `onLostContact: STOP` are told to stop
    /// early enough to have ended before the lease has.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.config.grace = grace;
        self
    }

    /// Whether it connects to nodes that it is told of, besides the addresses that it was given. Default true.
    pub fn follow(mut self, follow: bool) -> Self {
        self.config.follow = follow;
        self
    }

    /// Called when the node has called the result of an attempt durable, with its run and token; not for results that it refused
    /// as stale. On the executor's own task: it must not block, and what it does delays the next results.
    pub fn on_durable(mut self, told: impl Fn(RunId, Token) + Send + Sync + 'static) -> Self {
        self.config.on_durable = Some(Arc::new(told));
        self
    }

    /// Called when a body of a trace has ended, for whoever records spans. With it each body has a span of its own, below that of
    /// its attempt, and [`Context::traceparent`] names it; without it, that is the attempt's. On the executor's own task: it must
    /// not block.
    pub fn on_body_end(mut self, told: impl Fn(BodyEnded<'_>) + Send + Sync + 'static) -> Self {
        self.config.on_body_end = Some(Arc::new(told));
        self
    }

    /// A handler for the action `{"kind":"HANDLER","name":name}`. Params that do not fit `P` end the run
    /// with `INVALID_PARAMS`, without further attempts; a panic fails it with `HANDLER_PANIC`.
    pub fn handler<P, R, F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, JobError>> + Send + 'static,
    {
        self.config.handlers.insert(name.into(), handler::typed(handler));
        self
    }

    /// Like [`Self::handler`], for a function that blocks: it runs on a thread of its own. A thread cannot be ended from outside, so
    /// the attempt ends when the function returns. When it is told to stop and goes on, the run is shown as STOPPING and the slot
    /// stays taken; look at [`Context::is_canceled`] now and then.
    pub fn blocking_handler<P, R, F>(self, name: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(Context, P) -> Result<R, JobError> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        self.handler(name, move |ctx: Context, params: P| {
            let handler = handler.clone();
            async move {
                let own = ctx.clone();
                ctx.spawn_blocking(move || handler(own, params))
                    .await
                    .unwrap_or_else(|failed| Err(handler::failed(failed)))
            }
        })
    }

    /// A handler for every name that has none of its own. The name is in `ctx.assignment().action`; params as they came.
    pub fn any_handler<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Context, Payload) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Payload>, JobError>> + Send + 'static,
    {
        self.config.any = Some(Arc::new(move |ctx: Context| {
            let params = ctx.assignment().params.clone();
            let body = handler(ctx, params);
            Box::pin(async move {
                match body.await {
                    Ok(result) => Report::success(result),
                    Err(error) => Report::failed(error),
                }
            }) as BodyFuture
        }));
        self
    }

    /// What runs COMMAND actions: gets the attempt (`ctx.assignment()`), reports outcome and use. When [`Context::canceled`] resolves
    /// it must stop its processes, kill those that are left after [`Context::stop_grace`], and return when they are gone: the attempt
    /// ends then, and not before. It must stop them as well when it is dropped, which happens only when the executor goes away.
    pub fn command_runner(mut self, runner: impl Fn(Context) -> BodyFuture + Send + Sync + 'static) -> Self {
        self.config.commands = Some(Arc::new(runner));
        self
    }

    /// What runs HTTP actions. It must end its request when [`Context::canceled`] resolves, and when it is dropped.
    pub fn http_runner(mut self, runner: impl Fn(Context) -> BodyFuture + Send + Sync + 'static) -> Self {
        self.config.http = Some(Arc::new(runner));
        self
    }

    pub fn build(mut self) -> Result<Executor, BuildError> {
        let register = &mut self.config.register;
        if register.slots == 0 || register.slots > EXECUTOR_SLOTS_MAX {
            return Err(BuildError::Slots(register.slots));
        }
        if !(1..=NAME_CHARS).contains(&register.executor_id.chars().count()) {
            return Err(BuildError::Id);
        }
        let grace = self.config.grace;
        if grace > Duration::from_secs(STOP_GRACE_MAX_SEC) {
            return Err(BuildError::Grace { sec: grace.as_secs_f64() });
        }
        register.stop_grace_sec = Some(grace.as_secs_f64());
        if self.config.addresses.is_empty() {
            return Err(BuildError::NoAddress);
        }
        self.config.tls = Tls::for_addresses(self.config.tls, &self.config.addresses)?;
        let runners = [&self.config.any, &self.config.commands, &self.config.http];
        if self.config.handlers.is_empty() && runners.iter().all(|runner| runner.is_none()) {
            return Err(BuildError::NothingToRun);
        }
        if register.pools.is_empty() {
            register.pools.push("default".to_owned());
        }
        register.handlers = self.config.handlers.keys().cloned().collect();
        register.handlers.sort();
        register.any_handler = self.config.any.is_some();
        register.kinds = Kinds::NONE
            .and_if(self.config.commands.is_some(), ActionKind::Command)
            .and_if(self.config.http.is_some(), ActionKind::Http);
        Ok(Executor { config: self.config })
    }
}
