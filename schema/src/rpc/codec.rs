//! Splits a byte stream into msgpack-rpc messages, without I/O and without building values: what comes out are slices of the
//! bytes that came in, for typed decoders ([`from_map`]) to read.
//!
//! Memory is bounded by the frame limit, whatever a peer claims. After an error the stream has no next message: the
//! connection says why and closes.

use super::walk::Walk;
pub use super::walk::{FrameError, FrameLimits};
use crate::{
    error::{ApiError, ErrorCode},
    limits::{RPC_FRAME_BEFORE_HELLO_BYTES, RPC_FRAME_BYTES, RPC_VALUES, RPC_VALUES_BEFORE_HELLO},
    text::Text,
    trace::TraceContext,
};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

/// Before the peer has said who it is.
pub const BEFORE_HELLO: FrameLimits =
    FrameLimits { bytes: RPC_FRAME_BEFORE_HELLO_BYTES, values: RPC_VALUES_BEFORE_HELLO };
/// After `session.hello`, and for everything that a node sends.
pub const AFTER_HELLO: FrameLimits = FrameLimits { bytes: RPC_FRAME_BYTES, values: RPC_VALUES };

/// An empty buffer that once held a large frame is given back above this, bytes.
const KEEP_BYTES: usize = 256 << 10;
/// MessagePack of an empty map: what missing params mean.
const EMPTY_MAP: &[u8] = &[0x80];

/// One message; the slices are MessagePack values of the frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message<'a> {
    /// `[0, id, method, params]`
    Request { id: u32, method: &'a str, params: Params<'a> },
    /// `[1, id, error, result]`
    Response { id: u32, error: &'a [u8], result: &'a [u8] },
    /// `[2, method, params]`
    Notification { method: &'a str, params: Params<'a> },
}

/// What a caller says of a call beside its params: the second map. Unknown names in it are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallFacts {
    /// The span that the call is made in, as W3C Trace Context writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Text>,
}

/// The params of a call as they came: well-formed MessagePack, not yet looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params<'a>(pub &'a [u8]);

impl<'a> Params<'a> {
    /// The map with the params. None, or nil for them, are an empty map.
    pub fn map(self) -> Result<&'a [u8], ApiError> {
        let (items, header) = match *self.0 {
            [marker @ 0x90..=0x9f, ..] => (usize::from(marker & 0x0f), 1),
            [0xdc, high, low, ..] => (usize::from(u16::from_be_bytes([high, low])), 3),
            [0xc0] => (0, 1),
            _ => return Err(not_one_map()),
        };
        match (items, self.0.get(header..)) {
            (0, _) | (1, Some([0xc0])) => Ok(EMPTY_MAP),
            // What follows the map is read by itself: see `trace`.
            (1 | 2, Some(map @ [0x80..=0x8f | 0xde | 0xdf, ..])) => Ok(map),
            _ => Err(not_one_map()),
        }
    }

    /// The caller's span, which a second map may name. As in HTTP, one that cannot be read counts as none.
    pub fn trace(self) -> Option<TraceContext> {
        let [0x92, ..] = *self.0 else { return None };
        let (_, facts): (IgnoredAny, CallFacts) = rmp_serde::from_slice(self.0).ok()?;
        facts.traceparent?.parse().ok()
    }

    /// The one map as `T`.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        from_map(self.map()?)
    }
}

fn not_one_map() -> ApiError {
    ApiError::new(
        ErrorCode::InvalidArgument,
        "params must be an array of one map, or of that and a map with traceparent",
    )
}

/// Reads a typed value from the MessagePack of a frame; the error is the caller's.
pub fn from_map<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    rmp_serde::from_slice(bytes).map_err(|e| ApiError::new(ErrorCode::InvalidArgument, explain(&e)))
}

fn kind_of(marker: rmp::Marker) -> &'static str {
    use rmp::Marker as M;
    match marker {
        M::Null => "nil",
        M::True | M::False => "true or false",
        M::FixPos(_) | M::FixNeg(_) | M::U8 | M::U16 | M::U32 | M::U64 | M::I8 | M::I16 | M::I32 | M::I64 => "a number",
        M::F32 | M::F64 => "a number with a fraction",
        M::FixStr(_) | M::Str8 | M::Str16 | M::Str32 => "text",
        M::Bin8 | M::Bin16 | M::Bin32 => "binary",
        M::FixArray(_) | M::Array16 | M::Array32 => "a list",
        M::FixMap(_) | M::Map16 | M::Map32 => "a map",
        M::FixExt1 | M::FixExt2 | M::FixExt4 | M::FixExt8 | M::FixExt16 | M::Ext8 | M::Ext16 | M::Ext32 => {
            "an extension"
        }
        M::Reserved => "nothing that MessagePack knows",
    }
}

/// serde's sentence where there is one; rmp's own errors speak of markers, which tell a caller less.
pub fn explain(error: &rmp_serde::decode::Error) -> String {
    use rmp_serde::decode::Error as E;
    match error {
        E::Syntax(text) => text.clone(),
        E::TypeMismatch(marker) => format!("a value is {}, which does not fit its field", kind_of(*marker)),
        E::OutOfRange => "a number is out of range".to_owned(),
        E::Utf8Error(_) => "a string is not UTF-8".to_owned(),
        other => other.to_string(),
    }
}

/// Cuts a byte stream into messages. Feed it with [`Decoder::push`] or [`Decoder::input`], then call
/// [`Decoder::next_message`] until it answers None.
#[derive(Debug)]
pub struct Decoder {
    buf: Vec<u8>,
    /// First byte of the frame being measured.
    start: usize,
    walk: Walk,
    limits: FrameLimits,
    failed: Option<FrameError>,
}

impl Decoder {
    pub fn new(limits: FrameLimits) -> Self {
        Self { buf: Vec::new(), start: 0, walk: Walk::new(), limits, failed: None }
    }

    /// New limits from the next message on.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// The buffer to append received bytes to, with room for `room` of them.
    pub fn input(&mut self, room: usize) -> &mut Vec<u8> {
        if self.start == self.buf.len() {
            self.buf.clear();
            self.start = 0;
            if self.buf.capacity() > KEEP_BYTES {
                self.buf = Vec::new();
            }
        } else if self.start > 0 {
            // At most once per frame: afterwards the unfinished frame begins at 0.
            self.buf.drain(..self.start);
            self.start = 0;
        }
        self.buf.reserve(room);
        &mut self.buf
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input(bytes.len()).extend_from_slice(bytes);
    }

    /// Bytes that are held of a frame that is not whole yet.
    pub fn unfinished(&self) -> usize {
        self.buf.len() - self.start
    }

    /// The next whole message, or None when more bytes are needed. An error stays.
    pub fn next_message(&mut self) -> Result<Option<Message<'_>>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let end = match self.walk.advance(&self.buf[self.start..], self.limits) {
            Ok(Some(end)) => end,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.failed = Some(error);
                self.buf = Vec::new();
                self.start = 0;
                return Err(error);
            }
        };
        let walk = std::mem::replace(&mut self.walk, Walk::new());
        let begin = self.start;
        self.start += end;
        match message(&self.buf[begin..self.start], &walk) {
            Ok(message) => Ok(Some(message)),
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }
}

fn message<'a>(frame: &'a [u8], walk: &Walk) -> Result<Message<'a>, FrameError> {
    let part = |n: usize| -> &'a [u8] {
        let items = walk.items();
        &frame[items[n]..items.get(n + 1).copied().unwrap_or(frame.len())]
    };
    let count = walk.items().len();
    match (number(part(0)), count) {
        (Some(0), 4) => Ok(Message::Request { id: id(part(1))?, method: text(part(2))?, params: Params(part(3)) }),
        (Some(1), 4) => Ok(Message::Response { id: id(part(1))?, error: part(2), result: part(3) }),
        (Some(2), 3) => Ok(Message::Notification { method: text(part(1))?, params: Params(part(2)) }),
        _ => Err(FrameError::NotAMessage("the first item must be 0, 1 or 2, with four, four or three items")),
    }
}

fn id(value: &[u8]) -> Result<u32, FrameError> {
    number(value)
        .and_then(|n| u32::try_from(n).ok())
        .ok_or(FrameError::NotAMessage("a message id must be an unsigned 32-bit number"))
}

/// An unsigned number in any of its encodings.
fn number(value: &[u8]) -> Option<u64> {
    match *value {
        [n @ 0x00..=0x7f] => Some(u64::from(n)),
        [0xcc..=0xcf, ref digits @ ..] => Some(big_endian(digits)),
        // Signed encodings of a number that is not negative.
        [0xd0..=0xd3, ref digits @ ..] if digits.first().is_some_and(|d| *d < 0x80) => Some(big_endian(digits)),
        _ => None,
    }
}

fn big_endian(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// A method's name: a string, or a binary from clients that know no other.
fn text(value: &[u8]) -> Result<&str, FrameError> {
    let header = match value.first() {
        Some(0xa0..=0xbf) => 1,
        Some(0xd9 | 0xc4) => 2,
        Some(0xda | 0xc5) => 3,
        Some(0xdb | 0xc6) => 5,
        _ => return Err(FrameError::NotAMessage("a method must be a string")),
    };
    let bytes = value.get(header..).unwrap_or_default();
    std::str::from_utf8(bytes).map_err(|_| FrameError::NotAMessage("a method must be UTF-8"))
}
