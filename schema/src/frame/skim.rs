//! Some frames out of a batch that many shards share: those that nobody wants are passed over, which costs a fraction of decoding them.

use super::{DecodeError, Frame, check_format, decode_each, first_format};
use crate::{
    event::Event,
    ids::{Epoch, ShardId},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use std::fmt;

/// A frame, or only whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Skimmed {
    pub shard: ShardId,
    pub seq: u64,
    /// None: it was not wanted.
    pub frame: Option<Frame>,
}

/// [`decode_batch_up_to`](super::decode_batch_up_to) of the frames that `wanted` says, by shard and seq. Frames of a newer format are refused,
/// wanted or not.
pub fn skim_batch(
    bytes: &[u8],
    known: u32,
    wanted: impl Fn(ShardId, u64) -> bool,
) -> Result<Vec<Skimmed>, DecodeError> {
    decode_each("frame", bytes, |value| {
        let mut reader = rmp_serde::Deserializer::from_read_ref(value);
        let (format, skimmed) = Skim(&wanted).deserialize(&mut reader)?;
        check_format(format, known)?;
        Ok(skimmed)
    })
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum Field {
    #[serde(rename = "s")]
    Shard,
    #[serde(rename = "e")]
    Epoch,
    #[serde(rename = "q")]
    Seq,
    #[serde(rename = "h")]
    Hlc,
    #[serde(rename = "v")]
    Events,
    #[serde(rename = "f")]
    Format,
    #[serde(other)]
    Other,
}

struct Skim<'a, W>(&'a W);

impl<'de, W: Fn(ShardId, u64) -> bool> DeserializeSeed<'de> for Skim<'_, W> {
    type Value = (u32, Skimmed);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, W: Fn(ShardId, u64) -> bool> Visitor<'de> for Skim<'_, W> {
    type Value = (u32, Skimmed);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a frame")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut shard, mut epoch, mut seq, mut hlc, mut format) = (None, None, None, None, first_format());
        // What was read of the events; the inner one: none, because they are not wanted.
        let mut events: Option<Option<Vec<Event>>> = None;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Shard => shard = Some(map.next_value()?),
                Field::Epoch => epoch = Some(map.next_value::<Epoch>()?),
                Field::Seq => seq = Some(map.next_value()?),
                Field::Hlc => hlc = Some(map.next_value::<u64>()?),
                Field::Format => format = map.next_value()?,
                // They stand behind shard and seq; from a writer with another order all are read.
                Field::Events if shard.zip(seq).is_none_or(|(shard, seq)| (self.0)(shard, seq)) => {
                    events = Some(Some(map.next_value()?));
                }
                Field::Events => {
                    events = Some(None);
                    // Nothing comes behind them: where the frame ends is known already.
                    if map.size_hint() == Some(0) {
                        break;
                    }
                    map.next_value::<IgnoredAny>()?;
                }
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let shard = shard.ok_or_else(|| A::Error::missing_field("s"))?;
        let epoch = epoch.ok_or_else(|| A::Error::missing_field("e"))?;
        let seq = seq.ok_or_else(|| A::Error::missing_field("q"))?;
        let hlc = hlc.ok_or_else(|| A::Error::missing_field("h"))?;
        let events = events.ok_or_else(|| A::Error::missing_field("v"))?;
        let frame = events.map(|events| Frame { shard, epoch, seq, hlc, events, format });
        Ok((format, Skimmed { shard, seq, frame }))
    }
}
