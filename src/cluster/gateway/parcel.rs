//! What travels between gateways: many small requests and answers in one message.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// Bytes of an item beside its contents, at most.
pub(super) const ITEM_BYTES: usize = 32;

/// One way, from one node to another.
#[derive(Serialize, Deserialize)]
pub(super) struct Parcel {
    /// Node id of the sender.
    pub from: u64,
    pub items: Vec<Item>,
}

#[derive(Serialize, Deserialize)]
pub(super) enum Item {
    /// Number of the call at the caller, how long its caller still waits (milliseconds), the request.
    Request(u64, u32, ByteBuf),
    /// The call's number, the answer.
    Answer(u64, ByteBuf),
    /// The call's number, and why there is no answer though it was begun.
    Broken(u64, String),
}

/// What the receiver says at once: the requests that it did not take, by number. All others it has.
pub(super) type Receipt = Vec<u64>;

pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    // Into memory, of types that always can be: nothing fails.
    rmp_serde::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::earlier_release::captured;

    #[test]
    fn parcels_and_receipts_of_an_earlier_release_are_read() {
        for (name, bytes) in captured("parcel") {
            let again = if name == "Receipt" {
                encode(&rmp_serde::from_slice::<Receipt>(&bytes).unwrap())
            } else {
                encode(&rmp_serde::from_slice::<Parcel>(&bytes).unwrap())
            };
            assert_eq!(again, bytes, "{name}");
        }
    }
}
