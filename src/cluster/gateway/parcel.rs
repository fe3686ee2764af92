//! What travels between gateways: many small requests and answers in one message.

pub(super) use campanile_schema::peer::gateway::{Item, Parcel, Receipt};
use serde::Serialize;

/// Bytes of an item beside its contents, at most.
pub(super) const ITEM_BYTES: usize = 32;

pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    rmp_serde::to_vec(value).expect("parcels and receipts are plain data, written into memory")
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
