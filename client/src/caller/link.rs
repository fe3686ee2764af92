//! The task that owns a client's connection: writes calls, hands answers to those who wait, connects anew when it breaks.
//!
//! Calls that were written when a connection broke get an error, since nobody knows whether they were carried out; those that
//! still wait are sent over the next connection.

use crate::{
    clock::random,
    error::ClientError,
    wire::{Wire, raw_outcome},
};
use campanile_schema::{
    limits::{CLIENT_SILENCE_MS, RECONNECT_MAX_MS, RECONNECT_MIN_MS, RPC_REQUESTS_IN_FLIGHT, RPC_UNSENT_BYTES},
    rpc::{
        codec::Message,
        encode,
        hello::{ConnectionRole, Welcome},
        method,
    },
};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// How often calls whose caller has gone are swept out.
const SWEEP: Duration = Duration::from_secs(1);

/// One call on its way to the node.
pub(super) struct Call {
    pub method: &'static str,
    pub params: Arc<Vec<u8>>,
    pub reply: oneshot::Sender<Result<Vec<u8>, ClientError>>,
}

/// Where to connect, and which address is next.
pub(super) struct Link {
    addresses: Vec<String>,
    next: usize,
    token: String,
    role: ConnectionRole,
}

type Pending = HashMap<u32, oneshot::Sender<Result<Vec<u8>, ClientError>>>;

/// Why a connection's loop ended.
enum End {
    /// Every client handle was dropped.
    Unused,
    Broken(ClientError),
}

impl Link {
    pub(super) fn new(addresses: Vec<String>, token: String, role: ConnectionRole) -> Self {
        Self { addresses, next: 0, token, role }
    }

    fn address(&self) -> &str {
        self.addresses.get(self.next).map_or("(no address)", String::as_str)
    }

    /// Tries each address once, from the present one on.
    pub(super) async fn open_any(&mut self) -> Result<(Wire, Welcome), ClientError> {
        let mut last = ClientError::Protocol("no address to connect to".to_owned());
        for _ in 0..self.addresses.len() {
            match Wire::open(self.address(), &self.token, self.role).await {
                Ok(open) => return Ok(open),
                Err(e) => last = e,
            }
            self.next = (self.next + 1) % self.addresses.len();
        }
        Err(last)
    }

    pub(super) async fn run(mut self, wire: Wire, mut calls: mpsc::Receiver<Call>, welcome: Arc<RwLock<Welcome>>) {
        let mut open = Some(wire);
        let mut wait = RECONNECT_MIN_MS;
        loop {
            if let Some(wire) = open.take() {
                wait = RECONNECT_MIN_MS;
                match self.serve(wire, &mut calls).await {
                    End::Unused => return,
                    End::Broken(error) => {
                        tracing::info!(%error, "connection lost, connecting anew")
                    }
                }
            }
            match self.open_any().await {
                Ok((wire, said)) => {
                    *welcome.write().unwrap_or_else(PoisonError::into_inner) = said;
                    open = Some(wire);
                }
                Err(error) => {
                    if !wait_for_retry(&mut calls, &error, wait).await {
                        return;
                    }
                    wait = (wait * 2).min(RECONNECT_MAX_MS);
                }
            }
        }
    }

    async fn serve(&self, mut wire: Wire, calls: &mut mpsc::Receiver<Call>) -> End {
        let mut pending = Pending::new();
        let end = self.exchange(&mut wire, calls, &mut pending).await;
        if let End::Broken(error) = &end {
            for (_, reply) in pending.drain() {
                let _ = reply.send(Err(error.clone()));
            }
        }
        end
    }

    async fn exchange(&self, wire: &mut Wire, calls: &mut mpsc::Receiver<Call>, pending: &mut Pending) -> End {
        let mut last_id = 0u32;
        let mut heard = Instant::now();
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            let room = wire.unsent() < RPC_UNSENT_BYTES && pending.len() < RPC_REQUESTS_IN_FLIGHT;
            tokio::select! {
                call = calls.recv(), if room => match call {
                    Some(call) => send(wire, call, &mut last_id, pending),
                    None => return End::Unused,
                },
                progress = wire.turn() => {
                    if let Err(e) = progress {
                        return End::Broken(ClientError::io(self.address(), e));
                    }
                    match answer(wire, pending) {
                        Ok(0) => {}
                        Ok(_) => heard = Instant::now(),
                        Err(error) => return End::Broken(error),
                    }
                }
                _ = sweep.tick() => {
                    pending.retain(|_, reply| !reply.is_closed());
                    if pending.is_empty() {
                        heard = Instant::now();
                    } else if heard.elapsed() > Duration::from_millis(CLIENT_SILENCE_MS) {
                        return End::Broken(ClientError::io(self.address(), "silent while calls wait"));
                    }
                }
            }
        }
    }
}

fn send(wire: &mut Wire, call: Call, last_id: &mut u32, pending: &mut Pending) {
    if call.reply.is_closed() {
        return;
    }
    // Ids wrap after four billion calls; one that is still pending from then is skipped.
    let id = loop {
        *last_id = last_id.wrapping_add(1);
        if !pending.contains_key(last_id) {
            break *last_id;
        }
    };
    match encode::request_of(wire.out(), id, call.method, &call.params) {
        Ok(()) => {
            pending.insert(id, call.reply);
        }
        Err(e) => {
            let _ = call.reply.send(Err(e.into()));
        }
    }
}

/// Hands out the answers that have come; how many messages there were.
fn answer(wire: &mut Wire, pending: &mut Pending) -> Result<usize, ClientError> {
    let mut count = 0;
    while let Some(message) = wire.next_message()? {
        count += 1;
        match message {
            Message::Response { id, error, result } => {
                if let Some(reply) = pending.remove(&id) {
                    let _ = reply.send(raw_outcome(error, result).map_err(ClientError::Api));
                }
            }
            Message::Notification { method: method::SESSION_ERROR, params } => {
                return Err(ClientError::Api(params.read()?));
            }
            // Newer nodes may say more.
            Message::Notification { .. } | Message::Request { .. } => {}
        }
    }
    Ok(count)
}

/// Waits before the next attempt to connect. When the node answered and refused us, waiting calls are told so. False when
/// nobody needs the connection any more.
async fn wait_for_retry(calls: &mut mpsc::Receiver<Call>, error: &ClientError, wait: u64) -> bool {
    let until = Instant::now() + Duration::from_millis(wait / 2 + random() % (wait / 2 + 1));
    match error {
        ClientError::Api(_) | ClientError::Protocol(_) => loop {
            tokio::select! {
                call = calls.recv() => match call {
                    Some(call) => drop(call.reply.send(Err(error.clone()))),
                    None => return false,
                },
                () = tokio::time::sleep_until(until) => return true,
            }
        },
        ClientError::Io { .. } | ClientError::Timeout { .. } => {
            tokio::time::sleep_until(until).await;
            !(calls.is_closed() && calls.is_empty())
        }
    }
}
