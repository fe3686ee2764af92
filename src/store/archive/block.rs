//! The bytes of an archive: a magic, then blocks. Pure.
//!
//! A block's checksum goes over the checksum of the block before it too, so that none can be left out, repeated or exchanged.

/// What an archive begins with.
pub const MAGIC: [u8; 8] = *b"CMPNARC1";
/// Bytes before a block's content: kind, packing, two reserved, length when unpacked, length as stored, checksum.
pub const HEADER: usize = 16;

/// The content is as it is, or packed as one LZ4 block, or as one zstd frame.
const PLAIN: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;
/// Higher takes longer: a day of history is written once and kept for years.
const ZSTD_LEVEL: i32 = 9;
/// Below this packing gains nothing, bytes.
const PACK_FROM: usize = 64;

/// How a writer packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Fast, for backups.
    Lz4,
    /// Small, for days of history.
    Zstd,
}

impl Packing {
    /// The number in the header, and the packed bytes. None: it cannot be packed.
    fn pack(self, content: &[u8]) -> Option<(u8, Vec<u8>)> {
        match self {
            Self::Lz4 => Some((LZ4, lz4_flex::block::compress(content))),
            Self::Zstd => zstd::bulk::compress(content, ZSTD_LEVEL).ok().map(|packed| (ZSTD, packed)),
        }
    }
}

/// What stands before a block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: u8,
    packing: u8,
    /// Bytes when unpacked.
    pub length: u32,
    /// Bytes that follow.
    pub stored: u32,
    pub crc: u32,
}

/// Puts a block behind what is in `out`; gives its checksum, which the next block is to follow.
pub fn encode(out: &mut Vec<u8>, kind: u8, content: &[u8], before: u32, packing: Packing) -> u32 {
    let packed = if content.len() >= PACK_FROM { packing.pack(content) } else { None };
    let (packing, stored) = match &packed {
        Some((packing, packed)) if packed.len() < content.len() => (*packing, packed.as_slice()),
        Some(_) | None => (PLAIN, content),
    };
    let mut header = [0; HEADER];
    header[0] = kind;
    header[1] = packing;
    header[4..8].copy_from_slice(&(content.len() as u32).to_le_bytes());
    header[8..12].copy_from_slice(&(stored.len() as u32).to_le_bytes());
    let crc = checksum(before, &header, stored);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(stored);
    crc
}

fn checksum(before: u32, header: &[u8; HEADER], stored: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(before, &header[..12]);
    crc32c::crc32c_append(crc, stored)
}

impl Header {
    pub fn read(bytes: &[u8; HEADER]) -> Self {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { kind: bytes[0], packing: bytes[1], length: number(4), stored: number(8), crc: number(12) }
    }

    /// The content, unpacked, and the block's checksum. Error: why it is refused.
    pub fn open(&self, bytes: &[u8; HEADER], stored: Vec<u8>, before: u32) -> Result<(Vec<u8>, u32), &'static str> {
        if checksum(before, bytes, &stored) != self.crc {
            return Err("the block's checksum does not match: it was altered, or blocks are missing before it");
        }
        let content = match self.packing {
            PLAIN => stored,
            LZ4 => lz4_flex::block::decompress(&stored, self.length as usize)
                .map_err(|_| "the block cannot be unpacked")?,
            ZSTD => {
                zstd::bulk::decompress(&stored, self.length as usize).map_err(|_| "the block cannot be unpacked")?
            }
            _ => return Err("the block is packed in an unknown way: written by a newer release?"),
        };
        if content.len() != self.length as usize {
            return Err("the block is not as long as it says");
        }
        Ok((content, self.crc))
    }
}
