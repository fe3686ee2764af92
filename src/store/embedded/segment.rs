//! Bytes of a log segment: the header page, and batches that each begin on a page of their own.
//!
//! Pure: no I/O. A batch never shares a page with another, so a torn write cannot hurt one that was acknowledged, and a
//! scan past damage needs to look only at page starts. Checksums are salted with the segment's number, the cluster id and
//! the offset: what stands in a recycled segment from its former life, or was copied from elsewhere, never passes.

use campanile_ports::Position;
use campanile_schema::ids::{ClusterId, SessionId};

/// Unit of alignment, bytes.
pub const PAGE: u64 = 4096;
/// Bytes before the payload of a batch.
pub const BATCH_HEADER: usize = 64;

const SEGMENT_MAGIC: [u8; 8] = *b"CMPNSEG1";
const BATCH_MAGIC: [u8; 4] = *b"CMB1";
const SEGMENT_HEADER: usize = 80;

/// A place in the log: a byte of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    pub segment: u64,
    pub offset: u64,
}

/// What salts the checksums of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Salt {
    pub cluster: ClusterId,
    pub segment: u64,
}

/// First page of a segment. It seals the one before: that reaches exactly to `previous_end`, all of it durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub number: u64,
    /// The session that writes it; a segment holds batches of one session only.
    pub session: SessionId,
    /// Where the log ended when this segment began; segment 0 = there was none.
    pub previous_end: LogPosition,
    /// Last batch of the log when this segment began.
    pub previous: Position,
}

/// What stands before a batch's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub position: Position,
    /// Bytes of payload.
    pub length: u32,
    /// All of the log before this place was durable when the batch was written.
    pub durable: LogPosition,
}

/// File name of a segment.
pub fn file_name(number: u64) -> String {
    format!("{number:016}.seg")
}

/// File name of a segment that waits to be used again.
pub fn spare_name(number: u64) -> String {
    format!("{number:016}.spare")
}

/// Number of a segment's (`seg`) or spare's (`spare`) file.
pub fn number_of(name: &str, extension: &str) -> Option<u64> {
    let stem = name.strip_suffix(extension)?.strip_suffix('.')?;
    (stem.len() == 16).then(|| stem.parse().ok()).flatten()
}

/// Bytes that a batch takes in the file.
pub fn padded(payload: usize) -> u64 {
    (BATCH_HEADER as u64 + payload as u64).next_multiple_of(PAGE)
}

/// The header page.
pub fn encode_header(header: &SegmentHeader, cluster: ClusterId) -> Vec<u8> {
    let mut page = vec![0; PAGE as usize];
    page[..8].copy_from_slice(&SEGMENT_MAGIC);
    let fields = [
        header.number,
        header.session.0,
        header.previous_end.segment,
        header.previous_end.offset,
        header.previous.session.0,
        u64::from(header.previous.lane),
        header.previous.seq,
    ];
    for (at, field) in fields.iter().enumerate() {
        page[16 + at * 8..24 + at * 8].copy_from_slice(&field.to_le_bytes());
    }
    let crc = checksum(Salt { cluster, segment: header.number }, 0, &page[16..SEGMENT_HEADER], &[]);
    page[8..12].copy_from_slice(&crc.to_le_bytes());
    page
}

/// Reads the header page of segment `salt.segment`; None when it is not one.
pub fn decode_header(page: &[u8], salt: Salt) -> Option<SegmentHeader> {
    if page.len() < SEGMENT_HEADER || page[..8] != SEGMENT_MAGIC {
        return None;
    }
    if u32_at(page, 8) != checksum(salt, 0, &page[16..SEGMENT_HEADER], &[]) || u64_at(page, 16) != salt.segment {
        return None;
    }
    Some(SegmentHeader {
        number: salt.segment,
        session: SessionId(u64_at(page, 24)),
        previous_end: LogPosition { segment: u64_at(page, 32), offset: u64_at(page, 40) },
        previous: Position {
            session: SessionId(u64_at(page, 48)),
            lane: u16::try_from(u64_at(page, 56)).ok()?,
            seq: u64_at(page, 64),
        },
    })
}

/// Puts a batch for `offset` of the segment into `out` (emptied first), padded to whole pages.
pub fn encode_batch(
    out: &mut Vec<u8>,
    salt: Salt,
    offset: u64,
    position: Position,
    durable: LogPosition,
    payload: &[u8],
) {
    out.clear();
    out.reserve(padded(payload.len()) as usize);
    out.extend_from_slice(&BATCH_MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&position.session.0.to_le_bytes());
    out.extend_from_slice(&position.seq.to_le_bytes());
    out.extend_from_slice(&position.lane.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&durable.segment.to_le_bytes());
    out.extend_from_slice(&durable.offset.to_le_bytes());
    out.resize(BATCH_HEADER, 0);
    let crc = checksum(salt, offset, &out[8..BATCH_HEADER], payload);
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
    out.resize(padded(payload.len()) as usize, 0);
}

/// The header that stands at the start of `bytes`, not yet checked against the payload; None when there is none.
pub fn peek_batch(bytes: &[u8]) -> Option<BatchHeader> {
    if bytes.len() < BATCH_HEADER || bytes[..4] != BATCH_MAGIC {
        return None;
    }
    Some(BatchHeader {
        position: Position {
            session: SessionId(u64_at(bytes, 8)),
            seq: u64_at(bytes, 16),
            lane: u16::from_le_bytes([bytes[24], bytes[25]]),
        },
        length: u32_at(bytes, 28),
        durable: LogPosition { segment: u64_at(bytes, 32), offset: u64_at(bytes, 40) },
    })
}

/// Whether header and payload at the start of `bytes` carry the checksum for `offset` of the segment.
pub fn batch_is_whole(bytes: &[u8], header: &BatchHeader, salt: Salt, offset: u64) -> bool {
    let end = BATCH_HEADER + header.length as usize;
    bytes.len() >= end && u32_at(bytes, 4) == checksum(salt, offset, &bytes[8..BATCH_HEADER], &bytes[BATCH_HEADER..end])
}

fn checksum(salt: Salt, offset: u64, header: &[u8], payload: &[u8]) -> u32 {
    let mut crc = crc32c::crc32c(&salt.segment.to_le_bytes());
    crc = crc32c::crc32c_append(crc, &salt.cluster.0.to_le_bytes());
    crc = crc32c::crc32c_append(crc, &offset.to_le_bytes());
    crc = crc32c::crc32c_append(crc, header);
    crc32c::crc32c_append(crc, payload)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SALT: Salt = Salt { cluster: ClusterId(77), segment: 5 };

    fn position(seq: u64) -> Position {
        Position { session: SessionId(3), lane: 1, seq }
    }

    #[test]
    fn a_batch_reads_back_only_where_it_was_written() {
        let mut out = Vec::new();
        let durable = LogPosition { segment: 4, offset: 8192 };
        encode_batch(&mut out, SALT, 4096, position(9), durable, b"payload");
        assert_eq!(out.len() as u64, PAGE);
        let header = peek_batch(&out).unwrap();
        assert_eq!(header, BatchHeader { position: position(9), length: 7, durable });
        assert!(batch_is_whole(&out, &header, SALT, 4096));
        assert!(!batch_is_whole(&out, &header, SALT, 8192), "another offset");
        assert!(!batch_is_whole(&out, &header, Salt { segment: 6, ..SALT }, 4096), "a recycled segment");
        assert!(!batch_is_whole(&out, &header, Salt { cluster: ClusterId(78), ..SALT }, 4096), "another directory");
    }

    #[test]
    fn every_flipped_bit_of_a_batch_is_noticed() {
        let mut out = Vec::new();
        encode_batch(&mut out, SALT, 4096, position(9), LogPosition::default(), b"some payload");
        for bit in 0..(BATCH_HEADER + 12) * 8 {
            out[bit / 8] ^= 1 << (bit % 8);
            let whole = peek_batch(&out).is_some_and(|h| batch_is_whole(&out, &h, SALT, 4096));
            assert!(!whole, "bit {bit}");
            out[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_segment_header_reads_back_and_notices_damage() {
        let header = SegmentHeader {
            number: 5,
            session: SessionId(3),
            previous_end: LogPosition { segment: 4, offset: 12288 },
            previous: position(8),
        };
        let mut page = encode_header(&header, SALT.cluster);
        assert_eq!(page.len() as u64, PAGE);
        assert_eq!(decode_header(&page, SALT), Some(header));
        assert_eq!(decode_header(&page, Salt { segment: 6, ..SALT }), None);
        page[30] ^= 1;
        assert_eq!(decode_header(&page, SALT), None);
    }

    #[test]
    fn names_read_back() {
        assert_eq!(number_of(&file_name(42), "seg"), Some(42));
        assert_eq!(number_of(&spare_name(42), "spare"), Some(42));
        assert_eq!(number_of(&file_name(42), "spare"), None);
        assert_eq!(number_of("x.seg", "seg"), None);
    }
}
