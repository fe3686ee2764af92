//! One connection to one node: connects, says hello, moves frames, and connects anew when it breaks. It knows nothing of
//! attempts; the session does.

use crate::{
    clock::random,
    error::ClientError,
    tls::Tls,
    wire::{Wire, raw_outcome},
};
use campanile_schema::{
    error::ApiError,
    limits::{RECONNECT_MAX_MS, RECONNECT_MIN_MS, RPC_UNSENT_BYTES},
    rpc::{
        codec::{Message, Params},
        executor::{Assign, Assignment, ClusterNodes, Held, Hint, NodeAddress, Registered, Stop},
        hello::{ConnectionRole, Welcome},
        method,
    },
};
use serde::Deserialize;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

/// A connection that lasted this long was a good one: the next attempt to connect does not wait.
const GOOD: Duration = Duration::from_secs(5);

/// What a connection tells the session. `connection` counts the connections of the link, so that late words are known.
#[derive(Debug)]
pub(super) struct Event {
    pub link: usize,
    /// Of the link: its place may have been another one's.
    pub life: u64,
    pub connection: u64,
    pub what: LinkEvent,
}

#[derive(Debug)]
pub(super) enum LinkEvent {
    Up(Welcome),
    Down(ClientError),
    Assign(Vec<Assignment>),
    /// Assignments that this release cannot read, by what it can read of them.
    Unreadable(Vec<Held>, String),
    Stop(Stop),
    /// The node has taken shards over.
    Epochs(Registered),
    /// The node has told of all nodes.
    Members(Vec<NodeAddress>),
    /// Whether runs wait at the node for this executor's credit.
    Hint(bool),
    Answer(u32, Result<Vec<u8>, ApiError>),
}

/// Frames from the session to a connection. Bounded by who writes: see [`Outlet::has_room`].
#[derive(Debug, Default)]
pub(super) struct Outlet {
    frames: Mutex<Frames>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Frames {
    connection: u64,
    bytes: Vec<u8>,
    /// The session wants the connection closed.
    hang_up: Option<&'static str>,
}

impl Outlet {
    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the session write frames, when the connection is still that one.
    pub(super) fn write<T>(&self, connection: u64, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        let mut frames = self.frames();
        if frames.connection != connection {
            return None;
        }
        let written = write(&mut frames.bytes);
        drop(frames);
        self.more.notify_one();
        Some(written)
    }

    pub(super) fn has_room(&self, connection: u64) -> bool {
        let frames = self.frames();
        frames.connection == connection && frames.bytes.len() < RPC_UNSENT_BYTES
    }

    /// Everything written has been taken by the connection.
    pub(super) fn is_empty(&self) -> bool {
        self.frames().bytes.is_empty()
    }

    pub(super) fn hang_up(&self, connection: u64, why: &'static str) {
        let mut frames = self.frames();
        if frames.connection == connection {
            frames.hang_up = Some(why);
            drop(frames);
            self.more.notify_one();
        }
    }

    fn reset(&self, connection: u64) {
        *self.frames() = Frames { connection, ..Frames::default() };
    }

    fn take(&self, into: &mut Vec<u8>) -> Option<&'static str> {
        let mut frames = self.frames();
        if into.is_empty() {
            std::mem::swap(into, &mut frames.bytes);
        } else {
            into.append(&mut frames.bytes);
        }
        frames.hang_up
    }
}

/// See the module's text.
pub(super) struct Link {
    pub index: usize,
    pub life: u64,
    pub address: String,
    pub tls: Option<Tls>,
    pub token: String,
    pub outlet: Arc<Outlet>,
    pub events: mpsc::Sender<Event>,
}

impl Link {
    /// Runs until the session is gone.
    pub(super) async fn run(self) {
        let mut wait = RECONNECT_MIN_MS;
        for connection in 1u64.. {
            let begun = Instant::now();
            let opened = Wire::open(&self.address, self.tls.as_ref(), &self.token, ConnectionRole::Executor).await;
            let error = match opened {
                Ok((wire, welcome)) => {
                    self.outlet.reset(connection);
                    if !self.tell(connection, LinkEvent::Up(welcome)).await {
                        return;
                    }
                    self.exchange(wire, connection).await
                }
                Err(error) => Some(error),
            };
            // None: nobody listens any more.
            let Some(error) = error else { return };
            if !self.tell(connection, LinkEvent::Down(error)).await {
                return;
            }
            if begun.elapsed() > GOOD {
                wait = RECONNECT_MIN_MS;
            }
            let pause = Duration::from_millis(wait / 2 + random() % (wait / 2 + 1));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.events.closed() => return,
            }
            wait = (wait * 2).min(RECONNECT_MAX_MS);
        }
    }

    async fn tell(&self, connection: u64, what: LinkEvent) -> bool {
        self.events.send(Event { link: self.index, life: self.life, connection, what }).await.is_ok()
    }

    /// Why the connection ended; None when the session is gone.
    async fn exchange(&self, mut wire: Wire, connection: u64) -> Option<ClientError> {
        loop {
            tokio::select! {
                () = self.outlet.more.notified(), if wire.unsent() < RPC_UNSENT_BYTES => {
                    if let Some(why) = self.outlet.take(wire.out()) {
                        return Some(ClientError::io(&self.address, why));
                    }
                }
                progress = wire.turn() => {
                    if let Err(e) = progress {
                        return Some(ClientError::io(&self.address, e));
                    }
                    loop {
                        let what = match wire.next_message() {
                            Ok(None) => break,
                            Ok(Some(message)) => event(message),
                            Err(e) => return Some(e.into()),
                        };
                        if let Some(LinkEvent::Down(error)) = what {
                            return Some(error);
                        }
                        if let Some(what) = what
                            && !self.tell(connection, what).await
                        {
                            return None;
                        }
                    }
                }
                () = self.events.closed() => return None,
            }
        }
    }
}

fn event(message: Message<'_>) -> Option<LinkEvent> {
    match message {
        Message::Response { id, error, result } => Some(LinkEvent::Answer(id, raw_outcome(error, result))),
        Message::Notification { method: method::ASSIGN, params } => Some(assignments(params)),
        Message::Notification { method: method::STOP, params } => params.read::<Stop>().ok().map(LinkEvent::Stop),
        Message::Notification { method: method::EPOCHS, params } => {
            params.read::<Registered>().ok().map(LinkEvent::Epochs)
        }
        Message::Notification { method: method::MEMBERS, params } => {
            params.read::<ClusterNodes>().ok().map(|told| LinkEvent::Members(told.nodes))
        }
        Message::Notification { method: method::HINT, params } => {
            params.read::<Hint>().ok().map(|hint| LinkEvent::Hint(hint.waiting))
        }
        Message::Notification { method: method::SESSION_ERROR, params } => {
            Some(LinkEvent::Down(ClientError::Api(params.read().unwrap_or_else(|e| e))))
        }
        // Newer nodes may say more.
        Message::Notification { .. } | Message::Request { .. } => None,
    }
}

/// A batch that cannot be read is refused item by item, not lost: the node believes that it runs.
fn assignments(params: Params<'_>) -> LinkEvent {
    #[derive(Deserialize)]
    struct Named {
        items: Vec<Held>,
    }
    match params.read::<Assign>() {
        Ok(assign) => LinkEvent::Assign(assign.items),
        Err(why) => {
            let named = params.read::<Named>().map(|named| named.items).unwrap_or_default();
            LinkEvent::Unreadable(named, why.message)
        }
    }
}
