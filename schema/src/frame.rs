//! A frame: the events of one or several decisions of a shard, all or nothing. Batches of frames are what the journal stores.

use crate::{
    event::Event,
    format::{EVENT_FORMAT, FIRST_FORMAT},
    ids::{Epoch, ShardId},
};
use serde::{Deserialize, Serialize, de::Error as _};
use std::cell::RefCell;

mod length;
mod skim;

use length::encoded_len;
pub use skim::{Skimmed, skim_batch};

/// Events of one or several decisions, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    #[serde(rename = "s")]
    pub shard: ShardId,
    #[serde(rename = "e")]
    pub epoch: Epoch,
    /// Contiguous per shard from 1.
    #[serde(rename = "q")]
    pub seq: u64,
    /// Hybrid clock in microseconds; the event at index i has `hlc + i`. Rises within a shard, across epochs too.
    #[serde(rename = "h")]
    pub hlc: u64,
    #[serde(rename = "v")]
    pub events: Vec<Event>,
    /// Event format that a reader must know.
    #[serde(rename = "f", default = "first_format", skip_serializing_if = "is_first_format")]
    pub format: u32,
}

fn first_format() -> u32 {
    FIRST_FORMAT
}

// As serde wants it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_first_format(format: &u32) -> bool {
    *format == FIRST_FORMAT
}

/// A stored form could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct DecodeError {
    pub what: &'static str,
    #[source]
    pub source: rmp_serde::decode::Error,
}

/// Bytes that each thread keeps for encoding.
const SCRATCH_BYTES: usize = 64 << 10;

/// Encodes any stored form: MessagePack with named fields.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encoded(value, <[u8]>::to_vec)
}

/// Encodes a stored form over an older one. Both are nearly always as long: then nothing is allocated. Memory whose pieces stay where
/// they are does not fall apart: pages that were kept half empty made a busy node grow for as long as it ran.
pub fn encode_over<T: Serialize>(place: &mut Box<[u8]>, value: &T) {
    encoded(value, |bytes| {
        if place.len() == bytes.len() {
            place.copy_from_slice(bytes);
        } else {
            *place = bytes.into();
        }
    });
}

fn encoded<T: Serialize, R>(value: &T, take: impl FnOnce(&[u8]) -> R) -> R {
    thread_local! {
        // A vector that grows with the value is moved several times, and this is done for every step of a run.
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        scratch.shrink_to(SCRATCH_BYTES);
        encode_into(scratch, value);
        take(scratch)
    })
}

/// Appends an encoded stored form to a buffer.
pub fn encode_into<T: Serialize>(buffer: &mut Vec<u8>, value: &T) {
    // Encoding into a Vec fails only for types that MessagePack cannot hold (maps with unknown length); ours have none.
    value.serialize(&mut rmp_serde::Serializer::new(buffer).with_struct_map()).expect("stored forms always encode");
}

/// Decodes a stored form; `what` names it in the error.
pub fn decode<'de, T: Deserialize<'de>>(what: &'static str, bytes: &'de [u8]) -> Result<T, DecodeError> {
    rmp_serde::from_slice(bytes).map_err(|source| DecodeError { what, source })
}

/// Reads the values that stand one after the other, each with `read` from its bytes: strings are looked at where they stand, which a
/// reader of a stream would copy first.
pub fn decode_each<'a, T>(
    what: &'static str,
    bytes: &'a [u8],
    mut read: impl FnMut(&'a [u8]) -> Result<T, rmp_serde::decode::Error>,
) -> Result<Vec<T>, DecodeError> {
    let mut rest = bytes;
    let mut values = Vec::new();
    while !rest.is_empty() {
        // What is cut off or makes no sense: the reader says what it is.
        let (value, behind) = rest.split_at(encoded_len(rest).unwrap_or(rest.len()));
        values.push(read(value).map_err(|source| DecodeError { what, source })?);
        rest = behind;
    }
    Ok(values)
}

/// Reads the frames that stand one after the other in a journal batch.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Frame>, DecodeError> {
    decode_batch_up_to(bytes, EVENT_FORMAT)
}

/// [`decode_batch`] by a build that knows event formats up to this one.
pub fn decode_batch_up_to(bytes: &[u8], known: u32) -> Result<Vec<Frame>, DecodeError> {
    decode_each("frame", bytes, |value| {
        let frame: Frame = rmp_serde::from_slice(value)?;
        check_format(frame.format, known)?;
        Ok(frame)
    })
}

fn check_format(format: u32, known: u32) -> Result<(), rmp_serde::decode::Error> {
    if format > known {
        let newer = format!("it is of event format {format}, and this release knows {known}: start a newer one");
        return Err(rmp_serde::decode::Error::custom(newer));
    }
    Ok(())
}
