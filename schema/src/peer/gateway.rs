//! What gateways say to each other: who they are, and then parcels of many small requests and answers. They are sent as arrays without
//! the names of their fields, so nothing can be added to them; another form needs another version of the protocol.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// By the one that dials.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub cluster: String,
    pub node: u64,
    pub name: String,
    /// Whom it wants: addresses change owners.
    pub wants: u64,
    /// Number of its gateway actor.
    pub actor: u64,
}

/// The answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Why there will be no connection.
    pub refused: Option<String>,
    pub name: String,
    pub actor: u64,
}

/// One way, from one node to another.
#[derive(Serialize, Deserialize)]
pub struct Parcel {
    /// Node id of the sender.
    pub from: u64,
    pub items: Vec<Item>,
}

/// A call, or what came of one.
#[derive(Serialize, Deserialize)]
pub enum Item {
    /// Number of the call at the caller, how long its caller still waits (milliseconds), the request.
    Request(u64, u32, ByteBuf),
    /// The call's number, the answer.
    Answer(u64, ByteBuf),
    /// The call's number, and why there is no answer though it was begun.
    Broken(u64, String),
}

/// What the receiver says at once: the requests that it did not take, by number. All others it has.
pub type Receipt = Vec<u64>;
