//! The task that owns one connection of a client: writes calls, hands answers to those who wait and changes to those who watch,
//! connects anew when it breaks.
//!
//! Calls that were written when a connection broke get an error, since nobody knows whether they were carried out; those that
//! still wait are sent over the next connection. Its watches end with it, and are opened again by their owners.

use crate::{
    clock::random,
    error::ClientError,
    tls::Tls,
    wire::{Wire, raw_outcome},
};
use campanile_schema::{
    limits::{CLIENT_SILENCE_MS, RECONNECT_MAX_MS, RECONNECT_MIN_MS, RPC_REQUESTS_IN_FLIGHT, RPC_UNSENT_BYTES},
    rpc::{
        codec::{CallFacts, Message, from_map},
        encode,
        hello::{ConnectionRole, Welcome},
        method,
    },
    watch::{StopWatch, Watching},
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
    /// What the client says of each of its calls.
    pub facts: Option<Arc<CallFacts>>,
    pub reply: oneshot::Sender<Result<Vec<u8>, ClientError>>,
    /// Where the watch that it opens tells its changes.
    pub watch: Option<mpsc::Sender<WatchNotification>>,
}

/// A notification of a watch.
#[derive(Debug)]
pub(super) struct WatchNotification {
    pub method: &'static str,
    /// Its map.
    pub params: Vec<u8>,
}

/// Who waits for an answer.
struct WaitingCall {
    reply: oneshot::Sender<Result<Vec<u8>, ClientError>>,
    watch: Option<mpsc::Sender<WatchNotification>>,
}

/// What is under way on one connection.
#[derive(Default)]
struct InFlight {
    calls: HashMap<u32, WaitingCall>,
    /// By the number that the node gave.
    watches: HashMap<u32, mpsc::Sender<WatchNotification>>,
    last_id: u32,
}

/// Where to connect, and which address is next.
pub(super) struct Link {
    addresses: Vec<String>,
    next: usize,
    tls: Option<Tls>,
    token: String,
    role: ConnectionRole,
}

/// Why a connection's loop ended.
enum LinkEnd {
    /// Every client handle was dropped.
    Unused,
    Broken(ClientError),
}

impl Link {
    /// `first`: the address that is tried first; the others follow in their order.
    pub(super) fn new(
        addresses: Vec<String>,
        first: usize,
        tls: Option<Tls>,
        token: String,
        role: ConnectionRole,
    ) -> Self {
        let next = first % addresses.len().max(1);
        Self { addresses, next, tls, token, role }
    }

    fn address(&self) -> &str {
        self.addresses.get(self.next).map_or("(no address)", String::as_str)
    }

    /// Tries each address once, from the present one on.
    pub(super) async fn open_any(&mut self) -> Result<(Wire, Welcome), ClientError> {
        let mut last = ClientError::Protocol("no address to connect to".to_owned());
        for _ in 0..self.addresses.len() {
            match Wire::open(self.address(), self.tls.as_ref(), &self.token, self.role).await {
                Ok(open) => return Ok(open),
                Err(e) => last = e,
            }
            self.next = (self.next + 1) % self.addresses.len();
        }
        Err(last)
    }

    /// `open`: None = it connects itself.
    pub(super) async fn run(
        mut self,
        mut open: Option<Wire>,
        mut calls: mpsc::Receiver<Call>,
        welcome: Arc<RwLock<Welcome>>,
    ) {
        let mut wait = RECONNECT_MIN_MS;
        loop {
            if let Some(wire) = open.take() {
                wait = RECONNECT_MIN_MS;
                match self.serve(wire, &mut calls).await {
                    LinkEnd::Unused => return,
                    LinkEnd::Broken(error) => {
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

    async fn serve(&self, mut wire: Wire, calls: &mut mpsc::Receiver<Call>) -> LinkEnd {
        let mut in_flight = InFlight::default();
        let end = self.exchange(&mut wire, calls, &mut in_flight).await;
        if let LinkEnd::Broken(error) = &end {
            // What a node says of the connection says nothing of the calls that it had read: they may have been carried out.
            let lost = match error {
                ClientError::Api(said) => ClientError::io(self.address(), said),
                ClientError::Io { .. } | ClientError::Timeout { .. } | ClientError::Protocol(_) => error.clone(),
            };
            for (_, asked) in in_flight.calls.drain() {
                let _ = asked.reply.send(Err(lost.clone()));
            }
        }
        end
    }

    async fn exchange(&self, wire: &mut Wire, calls: &mut mpsc::Receiver<Call>, in_flight: &mut InFlight) -> LinkEnd {
        let mut heard = Instant::now();
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            let room = wire.unsent() < RPC_UNSENT_BYTES && in_flight.calls.len() < RPC_REQUESTS_IN_FLIGHT;
            tokio::select! {
                call = calls.recv(), if room => match call {
                    Some(call) => in_flight.send(wire, call),
                    None => return LinkEnd::Unused,
                },
                progress = wire.turn() => {
                    if let Err(e) = progress {
                        return LinkEnd::Broken(ClientError::io(self.address(), e));
                    }
                    match in_flight.hear(wire) {
                        Ok(0) => {}
                        Ok(_) => heard = Instant::now(),
                        Err(error) => return LinkEnd::Broken(error),
                    }
                }
                _ = sweep.tick() => {
                    in_flight.calls.retain(|_, asked| !asked.reply.is_closed());
                    if in_flight.calls.is_empty() {
                        heard = Instant::now();
                    } else if heard.elapsed() > Duration::from_millis(CLIENT_SILENCE_MS) {
                        return LinkEnd::Broken(ClientError::io(self.address(), "silent while calls wait"));
                    }
                }
            }
        }
    }
}

impl InFlight {
    /// Ids wrap after four billion calls; one that is still pending from then is skipped.
    fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.calls.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    fn send(&mut self, wire: &mut Wire, call: Call) {
        if call.reply.is_closed() {
            return;
        }
        let id = self.next_id();
        match encode::request_of(wire.out(), id, call.method, &call.params, call.facts.as_deref()) {
            Ok(()) => {
                self.calls.insert(id, WaitingCall { reply: call.reply, watch: call.watch });
            }
            Err(e) => {
                let _ = call.reply.send(Err(e.into()));
            }
        }
    }

    /// Hands out what has come; how many messages there were.
    fn hear(&mut self, wire: &mut Wire) -> Result<usize, ClientError> {
        let mut count = 0;
        let mut stop = Vec::new();
        while let Some(message) = wire.next_message()? {
            count += 1;
            match message {
                Message::Response { id, error, result } => {
                    if let Some(asked) = self.calls.remove(&id) {
                        let outcome = raw_outcome(error, result).map_err(ClientError::Api);
                        stop.extend(self.answer(asked, outcome));
                    }
                }
                Message::Notification { method: method::SESSION_ERROR, params } => {
                    return Err(ClientError::Api(params.read()?));
                }
                Message::Notification { method: name, params } => stop.extend(self.told(name, params.map()?)?),
                // Newer nodes may say more.
                Message::Request { .. } => {}
            }
        }
        for watch_id in stop {
            self.watches.remove(&watch_id);
            let id = self.next_id();
            // Nobody waits for its answer: a watch that is not there any more is as good as stopped.
            encode::request(wire.out(), id, method::WATCH_STOP, &StopWatch { watch_id })?;
        }
        Ok(count)
    }

    /// Some: this watch was opened for nobody.
    fn answer(&mut self, asked: WaitingCall, outcome: Result<Vec<u8>, ClientError>) -> Option<u32> {
        // Before its answer: changes may follow at once.
        let opened = asked.watch.zip(outcome.as_ref().ok().and_then(|raw| from_map::<Watching>(raw).ok()));
        let opened = opened.map(|(tell, watching)| {
            self.watches.insert(watching.watch_id, tell);
            watching.watch_id
        });
        asked.reply.send(outcome).err().and(opened)
    }

    /// Some: this watch is not wanted any more, or its owner does not keep up. It goes on where it was, from the node's memory.
    fn told(&mut self, name: &str, params: &[u8]) -> Result<Option<u32>, ClientError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct OfWatch {
            watch_id: u32,
        }
        let known = [method::RUN_CHANGED, method::JOB_CHANGED, method::WATCH_ENDED];
        // Newer nodes may say more.
        let Some(method) = known.into_iter().find(|known| *known == name) else { return Ok(None) };
        let OfWatch { watch_id } = from_map(params)?;
        let Some(tell) = self.watches.get(&watch_id) else { return Ok(None) };
        let told = tell.try_send(WatchNotification { method, params: params.to_vec() });
        Ok(told.is_err().then_some(watch_id))
    }
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
