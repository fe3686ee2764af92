//! The one actor of the node that others can send to, and what becomes of their requests.
//!
//! No other actor may have a message that can be serialized: it would be mirrored on every peer.

use super::{
    error::GatewayError,
    link::Link,
    message::GatewayMsg,
    parcel::{Item, Parcel, Receipt, encode},
};
use campanile_core::placement::NodeId;
use campanile_schema::limits::{GATEWAY_INBOX_REQUESTS, GATEWAY_MESSAGE_BYTES};
use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_bytes::ByteBuf;
use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Duration, Instant, timeout_at},
};

/// What answers requests: who asks, and what.
pub type Handler = Arc<dyn Fn(NodeId, Vec<u8>) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> + Send + Sync>;

/// The connections that are ready, by peer.
pub(super) type Links = HashMap<NodeId, Arc<Link>>;

/// Takes parcels.
pub(super) struct GatewayActor {
    pub handler: Handler,
    pub links: watch::Receiver<Links>,
}

/// How many more requests of each peer may be under way.
type Inboxes = Mutex<HashMap<NodeId, Arc<Semaphore>>>;

impl Actor for GatewayActor {
    type Msg = GatewayMsg;
    type State = Inboxes;
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<GatewayMsg>, (): ()) -> Result<Inboxes, ActorProcessingErr> {
        Ok(Inboxes::default())
    }

    async fn handle(
        &self,
        _myself: ActorRef<GatewayMsg>,
        message: GatewayMsg,
        inboxes: &mut Inboxes,
    ) -> Result<(), ActorProcessingErr> {
        let GatewayMsg::Parcel(bytes, receipt) = message;
        // An error here would end the actor, and with it every connection: what cannot be read is dropped, and its sender notices.
        match rmp_serde::from_slice::<Parcel>(&bytes) {
            Ok(parcel) => {
                let refused = self.take(parcel, inboxes);
                // A sender that is gone needs no receipt.
                let _ = receipt.send(encode(&refused));
            }
            Err(error) => tracing::warn!(%error, "gateway: a parcel cannot be read; is a node of another release?"),
        }
        Ok(())
    }
}

impl GatewayActor {
    fn take(&self, parcel: Parcel, inboxes: &mut Inboxes) -> Receipt {
        let from = NodeId(parcel.from);
        let link = self.links.borrow().get(&from).cloned();
        let name = || link.as_ref().map_or_else(String::new, |link| link.peer.name.clone());
        let complete = |number, result| {
            // Without a connection its caller was told already.
            if let Some(link) = &link {
                link.complete(number, result);
            }
        };
        let inbox = inboxes.get_mut().entry(from).or_insert_with(|| Arc::new(Semaphore::new(GATEWAY_INBOX_REQUESTS)));
        let mut refused = Receipt::new();
        for item in parcel.items {
            match item {
                Item::Request(number, left_ms, bytes) => match inbox.clone().try_acquire_owned() {
                    Ok(place) => {
                        let deadline = Instant::now() + Duration::from_millis(left_ms.into());
                        self.work(Request { from, number, bytes: bytes.into_vec(), deadline, place });
                    }
                    Err(_) => refused.push(number),
                },
                Item::Answer(number, bytes) => complete(number, Ok(bytes.into_vec())),
                Item::Broken(number, why) => complete(number, Err(GatewayError::Broken { node: name(), why })),
            }
        }
        if !refused.is_empty() {
            metrics::counter!("campanile_gateway_refused_total").increment(refused.len() as u64);
        }
        refused
    }

    /// Runs the handler until its caller stops waiting, and sends the answer.
    fn work(&self, request: Request) {
        let Request { from, number, bytes, deadline, place } = request;
        let mut links = self.links.clone();
        let mut handling = tokio::spawn((self.handler)(from, bytes));
        tokio::spawn(async move {
            let result = timeout_at(deadline, &mut handling).await;
            let item = match result {
                Ok(Ok(answer)) if answer.len() <= GATEWAY_MESSAGE_BYTES => Item::Answer(number, ByteBuf::from(answer)),
                Ok(Ok(answer)) => {
                    let most = GATEWAY_MESSAGE_BYTES;
                    Item::Broken(number, format!("the answer has {} bytes, at most {most} are sent", answer.len()))
                }
                Ok(Err(_)) => Item::Broken(number, "it panicked".to_owned()),
                Err(_) => {
                    handling.abort();
                    return;
                }
            };
            // A request may come before the connection is ready on this side too.
            let ready = async { links.wait_for(|links| links.contains_key(&from)).await.ok()?.get(&from).cloned() };
            if let Ok(Some(link)) = timeout_at(deadline, ready).await {
                let length = match &item {
                    Item::Answer(_, bytes) => bytes.len(),
                    Item::Request(..) | Item::Broken(..) => 0,
                };
                link.answer(item, length, deadline).await;
            }
            // Given back only now, so that answers that cannot be sent count too.
            drop(place);
        });
    }
}

struct Request {
    from: NodeId,
    number: u64,
    bytes: Vec<u8>,
    deadline: Instant,
    place: OwnedSemaphorePermit,
}
