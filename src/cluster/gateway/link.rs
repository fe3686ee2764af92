//! One connection to one peer: what waits to be sent, what was sent, who waits for an answer.

use super::{
    error::GatewayError,
    message::GatewayMsg,
    parcel::{ITEM_BYTES, Item, Parcel, Receipt, encode},
};
use campanile_core::placement::NodeId;
use campanile_schema::limits::{
    GATEWAY_ACK_MS, GATEWAY_MESSAGE_BYTES, GATEWAY_OUTBOX_BYTES, GATEWAY_OUTBOX_REQUESTS, GATEWAY_PARCEL_BYTES,
    GATEWAY_WINDOW,
};
use parking_lot::Mutex;
use ractor::ActorRef;
use ractor_cluster::NodeSessionMessage;
use serde_bytes::ByteBuf;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    time::{Duration, Instant, timeout_at},
};

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub node: NodeId,
    pub name: String,
}

/// Waits to be sent. Its room is given back when the other side has it.
pub(super) struct OutboundItem {
    item: Item,
    /// Until when a request's caller waits.
    deadline: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

struct Caller {
    answer: oneshot::Sender<Result<Vec<u8>, GatewayError>>,
    sent: bool,
}

/// A connection that is ready.
pub(super) struct Link {
    pub peer: Peer,
    actor: ActorRef<GatewayMsg>,
    session: ActorRef<NodeSessionMessage>,
    outbox: mpsc::Sender<OutboundItem>,
    requests_room: Arc<Semaphore>,
    /// Their own: a flood of requests must not keep answers from going.
    answers_room: Arc<Semaphore>,
    callers: Mutex<HashMap<u64, Caller>>,
    numbers: AtomicU64,
    closed: watch::Sender<bool>,
}

impl Link {
    /// Begins to send; `from` is this node.
    pub fn open(
        peer: Peer,
        from: NodeId,
        actor: ActorRef<GatewayMsg>,
        session: ActorRef<NodeSessionMessage>,
    ) -> Arc<Self> {
        let (outbox, waiting) = mpsc::channel(GATEWAY_OUTBOX_REQUESTS);
        let link = Arc::new(Self {
            peer,
            actor,
            session,
            outbox,
            requests_room: Arc::new(Semaphore::new(GATEWAY_OUTBOX_BYTES)),
            answers_room: Arc::new(Semaphore::new(GATEWAY_OUTBOX_BYTES)),
            callers: Mutex::new(HashMap::new()),
            numbers: AtomicU64::new(1),
            closed: watch::channel(false).0,
        });
        tokio::spawn(send(link.clone(), from, waiting));
        link
    }

    pub fn is_of(&self, session: &ActorRef<NodeSessionMessage>) -> bool {
        self.session.get_id() == session.get_id()
    }

    /// Ends it: whoever waits is told at once, and the session goes.
    pub fn close(&self) {
        self.closed.send_replace(true);
        self.session.stop(Some("closed by the gateway".to_owned()));
        let callers = std::mem::take(&mut *self.callers.lock());
        for caller in callers.into_values() {
            let name = self.peer.name.clone();
            let error =
                if caller.sent { GatewayError::Lost(name) } else { GatewayError::NotConnected(format!("'{name}'")) };
            // A caller that is gone needs no answer.
            let _ = caller.answer.send(Err(error));
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&self, request: Vec<u8>, timeout: Duration) -> Result<Vec<u8>, GatewayError> {
        let name = || self.peer.name.clone();
        if request.len() > GATEWAY_MESSAGE_BYTES {
            return Err(GatewayError::TooLarge(request.len()));
        }
        let deadline = Instant::now() + timeout;
        let room = self.requests_room.clone().try_acquire_many_owned(room_of(request.len()));
        let room = room.map_err(|_| GatewayError::OutboxFull(name()))?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.callers.lock().insert(number, Caller { answer, sent: false });
        // From here on, however this ends, nobody is left in the table.
        let seat = Seat { link: self, number };
        if *self.closed.borrow() {
            return Err(GatewayError::NotConnected(format!("'{}'", self.peer.name)));
        }
        // Milliseconds that are left are told when it is sent.
        let item = Item::Request(number, 0, ByteBuf::from(request));
        let waiting = OutboundItem { item, deadline: Some(deadline), _room: room };
        if self.outbox.try_send(waiting).is_err() {
            return Err(GatewayError::OutboxFull(name()));
        }
        match timeout_at(deadline, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(GatewayError::Lost(name())),
            Err(_) => {
                let sent = seat.leave().is_none_or(|caller| caller.sent);
                Err(GatewayError::TimedOut { node: name(), after: timeout, sent })
            }
        }
    }

    /// Sends an answer as soon as there is room; not after the caller has stopped waiting.
    pub async fn answer(&self, item: Item, bytes: usize, deadline: Instant) {
        let sending = async {
            let room = self.answers_room.clone().acquire_many_owned(room_of(bytes)).await.ok()?;
            self.outbox.send(OutboundItem { item, deadline: None, _room: room }).await.ok()
        };
        // A link that ended has told its callers; one that stopped waiting knows it.
        let _ = timeout_at(deadline, sending).await;
    }

    /// The other side answered, or did not take it.
    pub fn complete(&self, number: u64, result: Result<Vec<u8>, GatewayError>) {
        if let Some(caller) = self.callers.lock().remove(&number) {
            let _ = caller.answer.send(result);
        }
    }

    /// True when its caller still waits; from now on it may be executed.
    fn mark_sent(&self, number: u64) -> bool {
        self.callers.lock().get_mut(&number).map(|caller| caller.sent = true).is_some()
    }
}

struct Seat<'l> {
    link: &'l Link,
    number: u64,
}

impl Seat<'_> {
    fn leave(&self) -> Option<Caller> {
        self.link.callers.lock().remove(&self.number)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

fn room_of(bytes: usize) -> u32 {
    u32::try_from(bytes + ITEM_BYTES).unwrap_or(u32::MAX)
}

fn length(item: &Item) -> usize {
    ITEM_BYTES
        + match item {
            Item::Request(_, _, bytes) | Item::Answer(_, bytes) => bytes.len(),
            Item::Broken(_, why) => why.len(),
        }
}

/// Takes what waits in parcels, a few under way at a time: what comes while they are full travels together.
async fn send(link: Arc<Link>, from: NodeId, mut waiting: mpsc::Receiver<OutboundItem>) {
    let window = Arc::new(Semaphore::new(GATEWAY_WINDOW));
    let mut closed = link.closed.subscribe();
    let mut next = None;
    loop {
        let turn = async {
            let place = window.clone().acquire_owned().await.ok()?;
            let first = match next.take() {
                Some(first) => first,
                None => waiting.recv().await?,
            };
            Some((place, first))
        };
        let (place, first) = tokio::select! {
            turn = turn => match turn {
                Some(turn) => turn,
                None => return,
            },
            _ = closed.wait_for(|closed| *closed) => return,
        };
        let (mut items, mut rooms, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut candidate = Some(first);
        while let Some(OutboundItem { item, deadline, _room: room }) = candidate.take() {
            bytes += length(&item);
            if let Some(item) = ready(&link, item, deadline) {
                items.push(item);
                rooms.push(room);
            }
            match waiting.try_recv() {
                Ok(more) if bytes + length(&more.item) <= GATEWAY_PARCEL_BYTES => candidate = Some(more),
                Ok(more) => next = Some(more),
                Err(_) => {}
            }
        }
        if !items.is_empty() {
            let link = link.clone();
            tokio::spawn(async move {
                deliver(&link, from, items).await;
                drop((rooms, place));
            });
        }
    }
}

/// The item as it is sent, unless nobody waits for it any more.
fn ready(link: &Link, item: Item, deadline: Option<Instant>) -> Option<Item> {
    match (item, deadline) {
        (Item::Request(number, _, bytes), Some(deadline)) => {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
            (left > 0 && link.mark_sent(number)).then_some(Item::Request(number, left, bytes))
        }
        (item, _) => Some(item),
    }
}

/// One parcel. Without a receipt nobody knows what became of it, and the connection is not trusted any more.
async fn deliver(link: &Link, from: NodeId, items: Vec<Item>) {
    metrics::counter!("campanile_gateway_parcels_total").increment(1);
    metrics::counter!("campanile_gateway_items_total").increment(items.len() as u64);
    let parcel = encode(&Parcel { from: from.0, items });
    match ractor::call_t!(link.actor, GatewayMsg::Parcel, GATEWAY_ACK_MS, parcel) {
        Ok(receipt) => {
            let refused: Receipt = rmp_serde::from_slice(&receipt).unwrap_or_default();
            for number in refused {
                link.complete(number, Err(GatewayError::Overloaded(link.peer.name.clone())));
            }
        }
        Err(error) => {
            if !*link.closed.borrow() {
                tracing::warn!(%error, "gateway: node '{}' took no parcel; its connection is closed", link.peer.name);
                link.close();
            }
        }
    }
}
