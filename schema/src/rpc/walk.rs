//! Measures one MessagePack value without decoding it: where it ends, and where the items of the outermost array begin.
//!
//! It keeps a counter per open array or map and nothing else, so what a peer *claims* (an array of four billion items, a
//! string of four gigabytes) costs nothing; a claim that cannot fit the limits is refused at its header. It goes on where it
//! stopped when more bytes arrive, so a frame that comes byte by byte costs what it costs in one piece.

use crate::{
    error::{ApiError, ErrorCode},
    limits::RPC_DEPTH,
};

/// Bounds of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Bytes of the whole frame.
    pub bytes: usize,
    /// Values in it, arrays and maps and their items counted: bounds what a typed decoder can be made to build.
    pub values: usize,
}

/// Why a stream cannot be read on. The peer broke the protocol; nothing of the frame was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("a frame holds more than {limit} values")]
    TooManyValues { limit: usize },
    #[error("a frame is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("this is not msgpack-rpc: {0}")]
    NotAMessage(&'static str),
}

impl From<FrameError> for ApiError {
    fn from(error: FrameError) -> Self {
        let code = match error {
            FrameError::TooLarge { .. } | FrameError::TooManyValues { .. } | FrameError::TooDeep { .. } => {
                ErrorCode::BodyTooLarge
            }
            FrameError::NotAMessage(_) => ErrorCode::MalformedBody,
        };
        ApiError::new(code, error.to_string())
    }
}

/// Items of the outermost array whose offsets are kept: a message has at most four.
const MARKS: usize = 4;

/// What a header says of its value.
struct Head {
    /// Bytes of the header itself.
    header: usize,
    /// Bytes of payload after it (strings, binaries, numbers).
    payload: usize,
    /// Values that follow as its items.
    items: u64,
}

/// The state of measuring one frame.
#[derive(Debug)]
pub(super) struct Walk {
    /// Offset of the next header from the frame's first byte; beyond the bytes at hand while a payload is incomplete.
    pos: usize,
    open: [u64; RPC_DEPTH],
    depth: usize,
    values: usize,
    marks: [usize; MARKS],
    marked: usize,
    begun: bool,
}

impl Walk {
    pub(super) fn new() -> Self {
        Self { pos: 0, open: [0; RPC_DEPTH], depth: 0, values: 0, marks: [0; MARKS], marked: 0, begun: false }
    }

    /// Offsets at which the items of the outermost array begin.
    pub(super) fn items(&self) -> &[usize] {
        &self.marks[..self.marked]
    }

    /// Goes on over `bytes` (the frame's bytes so far, from its first). The frame's length when it is whole.
    pub(super) fn advance(&mut self, bytes: &[u8], limits: FrameLimits) -> Result<Option<usize>, FrameError> {
        loop {
            if self.begun && self.depth == 0 {
                return Ok((self.pos <= bytes.len()).then_some(self.pos));
            }
            let Some(rest) = bytes.get(self.pos..).filter(|rest| !rest.is_empty()) else {
                return Ok(None);
            };
            let Some(head) = head(rest)? else {
                return Ok(None);
            };
            self.take(head, limits)?;
        }
    }

    fn take(&mut self, head: Head, limits: FrameLimits) -> Result<(), FrameError> {
        if !self.begun {
            if !(3..=MARKS as u64).contains(&head.items) {
                return Err(FrameError::NotAMessage("a message is an array of three or four items"));
            }
        } else if self.depth == 1 {
            self.marks[self.marked] = self.pos;
            self.marked += 1;
        }
        // Each item takes at least one byte, so a claim of more items than bytes left is refused before they come.
        let least = (head.header as u64).saturating_add(head.payload as u64).saturating_add(head.items);
        if (self.pos as u64).saturating_add(least) > limits.bytes as u64 {
            return Err(FrameError::TooLarge { limit: limits.bytes });
        }
        self.values += 1;
        if (self.values as u64).saturating_add(head.items) > limits.values as u64 {
            return Err(FrameError::TooManyValues { limit: limits.values });
        }
        self.pos += head.header + head.payload;
        if self.begun {
            self.open[self.depth - 1] -= 1;
        }
        self.begun = true;
        if head.items > 0 {
            let Some(slot) = self.open.get_mut(self.depth) else {
                return Err(FrameError::TooDeep { limit: RPC_DEPTH });
            };
            *slot = head.items;
            self.depth += 1;
        }
        while self.depth > 0 && self.open[self.depth - 1] == 0 {
            self.depth -= 1;
        }
        Ok(())
    }
}

/// Reads a header; None when it is not complete yet.
fn head(bytes: &[u8]) -> Result<Option<Head>, FrameError> {
    let marker = bytes[0];
    let leaf = |payload: usize| Ok(Some(Head { header: 1, payload, items: 0 }));
    // Big-endian length of `width` bytes after the marker.
    let length = |width: usize| -> Option<u64> {
        bytes.get(1..=width).map(|b| b.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte)))
    };
    let sized = |width: usize, extra: usize| {
        Ok(length(width).map(|n| Head { header: 1 + width, payload: n as usize + extra, items: 0 }))
    };
    let nested =
        |width: usize, each: u64| Ok(length(width).map(|n| Head { header: 1 + width, payload: 0, items: n * each }));
    match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => leaf(0),
        0x80..=0x8f => Ok(Some(Head { header: 1, payload: 0, items: u64::from(marker & 0x0f) * 2 })),
        0x90..=0x9f => Ok(Some(Head { header: 1, payload: 0, items: u64::from(marker & 0x0f) })),
        0xa0..=0xbf => leaf(usize::from(marker & 0x1f)),
        0xc1 => Err(FrameError::NotAMessage("byte 0xc1 is never used in MessagePack")),
        0xc4 | 0xd9 => sized(1, 0),
        0xc5 | 0xda => sized(2, 0),
        0xc6 | 0xdb => sized(4, 0),
        // Extensions: the type byte comes on top.
        0xc7 => sized(1, 1),
        0xc8 => sized(2, 1),
        0xc9 => sized(4, 1),
        0xcc | 0xd0 => leaf(1),
        0xcd | 0xd1 => leaf(2),
        0xca | 0xce | 0xd2 => leaf(4),
        0xcb | 0xcf | 0xd3 => leaf(8),
        0xd4 => leaf(2),
        0xd5 => leaf(3),
        0xd6 => leaf(5),
        0xd7 => leaf(9),
        0xd8 => leaf(17),
        0xdc => nested(2, 1),
        0xdd => nested(4, 1),
        0xde => nested(2, 2),
        0xdf => nested(4, 2),
    }
}
