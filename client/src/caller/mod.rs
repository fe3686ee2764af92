//! Calls of operators and tenants: typed, pipelined over one connection, each with a deadline.

mod calls;
mod link;

use crate::error::ClientError;
use campanile_schema::{
    limits::{CLIENT_CALL_MS, CLIENT_CALLS_WAITING},
    rpc::{
        codec::from_map,
        encode,
        hello::{ConnectionRole, Welcome},
        method,
    },
};
use link::{Call, Link};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    sync::{Arc, RwLock},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// Where and as whom a client connects.
#[derive(Clone)]
pub struct ClientOptions {
    /// `host:port` of one or more nodes; the next is tried when one does not answer.
    pub addresses: Vec<String>,
    pub token: String,
    /// Deadline of each call, waiting for a connection included.
    pub timeout: Duration,
}

/// A client. Cheap to clone; all clones share one connection, which is made anew when it breaks.
#[derive(Clone)]
pub struct Client {
    calls: mpsc::Sender<Call>,
    timeout: Duration,
    welcome: Arc<RwLock<Welcome>>,
}

impl Client {
    /// Connects to one node and says hello; an unknown token is told here.
    pub async fn connect(address: impl Into<String>, token: impl Into<String>) -> Result<Self, ClientError> {
        Self::connect_with(ClientOptions {
            addresses: vec![address.into()],
            token: token.into(),
            timeout: Duration::from_millis(CLIENT_CALL_MS),
        })
        .await
    }

    /// Like [`Client::connect`], with all options.
    pub async fn connect_with(options: ClientOptions) -> Result<Self, ClientError> {
        let timeout = options.timeout;
        let mut link = Link::new(options.addresses, options.token, ConnectionRole::Caller);
        let (wire, welcome) = link.open_any().await?;
        let welcome = Arc::new(RwLock::new(welcome));
        let (calls, waiting) = mpsc::channel(CLIENT_CALLS_WAITING);
        tokio::spawn(link.run(wire, waiting, welcome.clone()));
        Ok(Self { calls, timeout, welcome })
    }

    /// The same connection with another deadline for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// What the node said at the latest hello.
    pub fn welcome(&self) -> Welcome {
        self.welcome.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Any method by name, for those that this client does not know yet.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, ClientError> {
        let params = encode::map(params)?;
        let deadline = Instant::now() + self.timeout;
        let raw = match tokio::time::timeout_at(deadline, self.send(method, params, deadline)).await {
            Ok(outcome) => outcome?,
            Err(_) => {
                return Err(ClientError::Timeout { method, seconds: self.timeout.as_secs_f64() });
            }
        };
        from_map(&raw).map_err(|e| ClientError::Protocol(format!("answer of {method}: {}", e.message)))
    }

    async fn send(&self, method: &'static str, params: Vec<u8>, deadline: Instant) -> Result<Vec<u8>, ClientError> {
        // A read has no effect, so one that lost its connection is simply asked again.
        let params = Arc::new(params);
        loop {
            let (reply, answer) = oneshot::channel();
            let call = Call { method, params: params.clone(), reply };
            if self.calls.send(call).await.is_err() {
                return Err(ClientError::Protocol("the client's connection task has ended".to_owned()));
            }
            match answer.await {
                Ok(Err(ClientError::Io { .. })) if is_read(method) && Instant::now() < deadline => {}
                Ok(outcome) => return outcome,
                Err(_) => {
                    return Err(ClientError::Protocol("the client's connection task has ended".to_owned()));
                }
            }
        }
    }
}

/// Methods that change nothing.
fn is_read(name: &str) -> bool {
    [
        method::JOB_GET,
        method::JOB_LIST,
        method::JOB_RUNS,
        method::JOB_LEDGER,
        method::RUN_GET,
        method::RUN_LOG,
        method::DLQ_LIST,
        method::SCHEDULE_PREVIEW,
        method::TENANT_GET,
        method::TENANT_LIST,
        method::SYSTEM_INFO,
        method::EXECUTOR_LIST,
        method::POOL_LIST,
    ]
    .contains(&name)
}
