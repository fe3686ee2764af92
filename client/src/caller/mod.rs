//! Calls of operators and tenants: typed, pipelined over one or more connections, each with a deadline; what is safe to ask twice is
//! asked again by itself when it fails for a reason that passes.

pub mod blocking;
mod calls;
mod job;
mod link;
mod retry;
mod watch;

pub use job::{AfterEach, Cron, Every, Job, Once};
pub use retry::Retry;
pub use watch::{Changes, WatchEvent};

use crate::{error::ClientError, tls::Tls};
use campanile_schema::{
    limits::{CLIENT_CALL_MS, CLIENT_CALLS_WAITING},
    rpc::{
        codec::{CallFacts, from_map},
        encode,
        hello::{ConnectionRole, Welcome},
    },
    trace::TraceContext,
};
use link::{Call, Link};
use retry::RepeatEffect;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    sync::{
        Arc, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// Where and as whom a client connects, and what it does by itself.
#[derive(Clone)]
pub struct ClientOptions {
    /// `host:port` of one or more nodes, with `tls://` in front for TLS; the next is tried when one does not answer.
    pub addresses: Vec<String>,
    pub token: String,
    /// Deadline of each call, waiting for a connection and trying again included.
    pub timeout: Duration,
    /// Connections, count, spread over the addresses. One is enough for most: calls share it.
    pub connections: usize,
    /// Of calls that may arrive twice: reads, creates with an idempotency key, triggers with a `manualRunId`.
    pub retry: Retry,
    /// For TLS, also of addresses without `tls://`. None: addresses with `tls://` trust the CAs of the machine.
    pub tls: Option<Tls>,
}

campanile_schema::redacted_debug!(ClientOptions { addresses, timeout, connections, retry, tls } hides { token });

impl ClientOptions {
    /// One connection, and the usual deadline and retries.
    pub fn new(addresses: Vec<String>, token: impl Into<String>) -> Self {
        Self {
            addresses,
            token: token.into(),
            timeout: Duration::from_millis(CLIENT_CALL_MS),
            connections: 1,
            retry: Retry::default(),
            tls: None,
        }
    }
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }
    #[must_use]
    pub fn tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }
}

/// A client. Cheap to clone; all clones share its connections, which are made anew when they break.
#[derive(Clone)]
pub struct Client {
    links: Arc<[mpsc::Sender<Call>]>,
    turn: Arc<AtomicUsize>,
    timeout: Duration,
    retry: Retry,
    facts: Option<Arc<CallFacts>>,
    welcome: Arc<RwLock<Welcome>>,
}

impl Client {
    /// Connects to one node and says hello; an unknown token is told here.
    pub async fn connect(address: impl Into<String>, token: impl Into<String>) -> Result<Self, ClientError> {
        Self::connect_with(ClientOptions::new(vec![address.into()], token)).await
    }

    /// Like [`Client::connect`], with all options. With several connections, the first one is there when this returns.
    pub async fn connect_with(options: ClientOptions) -> Result<Self, ClientError> {
        let ClientOptions { addresses, token, timeout, connections, retry, tls } = options;
        let tls = Tls::for_addresses(tls, &addresses).map_err(|why| ClientError::io(&addresses.join(","), why))?;
        let link = |first| Link::new(addresses.clone(), first, tls.clone(), token.clone(), ConnectionRole::Caller);
        let mut first = link(0);
        let (wire, welcome) = first.open_any().await?;
        let welcome = Arc::new(RwLock::new(welcome));
        let (calls, waiting) = mpsc::channel(CLIENT_CALLS_WAITING);
        tokio::spawn(first.run(Some(wire), waiting, welcome.clone()));
        let mut links = vec![calls];
        for number in 1..connections {
            let (calls, waiting) = mpsc::channel(CLIENT_CALLS_WAITING);
            tokio::spawn(link(number).run(None, waiting, welcome.clone()));
            links.push(calls);
        }
        Ok(Self { links: links.into(), turn: Arc::default(), timeout, retry, facts: None, welcome })
    }

    /// The same connections with another deadline for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// The same connections for calls that are made in a span: it becomes the parent of what they do, of the runs that they make
    /// among it. Nodes of releases before traces refuse calls with it (INVALID_ARGUMENT).
    #[must_use]
    pub fn in_trace(&self, span: TraceContext) -> Self {
        let facts = CallFacts { traceparent: Some(span.to_string().into()) };
        Self { facts: Some(Arc::new(facts)), ..self.clone() }
    }

    /// What a node said at the latest hello.
    pub fn welcome(&self) -> Welcome {
        self.welcome.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Any method by name, for those that this client does not know yet. A read that fails for a reason that passes is asked again.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, ClientError> {
        self.call_as(method, params, RepeatEffect::of(method)).await
    }

    async fn call_as<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        effect: RepeatEffect,
    ) -> Result<R, ClientError> {
        let call = |params, reply| Call { method, params, facts: self.facts.clone(), reply, watch: None };
        self.ask(method, params, effect, call).await
    }

    async fn ask<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        effect: RepeatEffect,
        make: impl Fn(Arc<Vec<u8>>, Reply) -> Call,
    ) -> Result<R, ClientError> {
        let params = Arc::new(encode::map(params)?);
        let deadline = Instant::now() + self.timeout;
        let raw = match tokio::time::timeout_at(deadline, self.send(params, effect, make, deadline)).await {
            Ok(outcome) => outcome?,
            Err(_) => {
                return Err(ClientError::Timeout { method, seconds: self.timeout.as_secs_f64() });
            }
        };
        from_map(&raw).map_err(|e| ClientError::Protocol(format!("answer of {method}: {}", e.message)))
    }

    async fn send(
        &self,
        params: Arc<Vec<u8>>,
        effect: RepeatEffect,
        make: impl Fn(Arc<Vec<u8>>, Reply) -> Call,
        deadline: Instant,
    ) -> Result<Vec<u8>, ClientError> {
        let mut tried = 0u32;
        loop {
            let (reply, answer) = oneshot::channel();
            if self.link().send(make(params.clone(), reply)).await.is_err() {
                return Err(over());
            }
            let error = match answer.await {
                Ok(Ok(raw)) => return Ok(raw),
                Ok(Err(error)) => error,
                Err(_) => return Err(over()),
            };
            tried = tried.saturating_add(1);
            match self.retry.pause(tried, &error).filter(|_| effect == RepeatEffect::Safe) {
                // The reason tells more than that the time was over.
                Some(pause) if Instant::now() + pause < deadline => tokio::time::sleep(pause).await,
                Some(_) | None => return Err(error),
            }
        }
    }

    /// One after the other: a call that is tried again goes over another connection, where there is one.
    fn link(&self) -> &mpsc::Sender<Call> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.links[turn % self.links.len()]
    }
}

type Reply = oneshot::Sender<Result<Vec<u8>, ClientError>>;

fn over() -> ClientError {
    ClientError::Protocol("the client's connection task has ended".to_owned())
}
