//! A pack: what one apply brings of a shard's ended runs, as the bytes of one row. Each run carries the hybrid time of its event, so that of
//! several packs that have a run the newest event wins.
//!
//! A byte that says the form, and compressed by LZ4 behind its length: for each run id, hybrid time and length as big-endian numbers, and its
//! record. Length 0: the record is too large for a pack and has a row of its own. All of it is part of what is stored. Tables are compressed by the
//! server too; here it is for requests, which hold more packs.

use campanile_schema::{ids::RunId, limits};
use lz4_flex::block;

/// Of this form.
const FORM: u8 = 1;
/// Id, hybrid time, length.
const HEAD: usize = 8 + 8 + 4;

/// A row.
#[derive(Debug, PartialEq, Eq)]
pub struct Pack {
    /// Hybrid time of its newest event.
    pub newest: u64,
    pub bytes: Vec<u8>,
}

impl Pack {
    /// With the time it tells packs apart: another owner may cut the same events into other packs.
    pub fn sum(&self) -> i64 {
        i64::from(crc32c::crc32c(&self.bytes))
    }
}

/// Whether a record goes into a pack.
pub fn fits(record: &[u8]) -> bool {
    !record.is_empty() && record.len() <= limits::PACKED_RUN_BYTES
}

/// The runs of one partition, each with its hybrid time and its record; empty: its record has a row of its own.
pub fn packs(runs: &[(RunId, u64, Vec<u8>)]) -> Vec<Pack> {
    let mut all = Vec::new();
    let (mut newest, mut bytes) = (0, Vec::new());
    for (run, hlc, record) in runs {
        if bytes.len() + HEAD + record.len() > limits::PACK_BYTES {
            all.push(pack(std::mem::take(&mut newest), &std::mem::take(&mut bytes)));
        }
        newest = newest.max(*hlc);
        bytes.extend(run.0.to_be_bytes());
        bytes.extend(hlc.to_be_bytes());
        // At most a few thousand.
        bytes.extend((record.len() as u32).to_be_bytes());
        bytes.extend(record);
    }
    if !bytes.is_empty() {
        all.push(pack(newest, &bytes));
    }
    all
}

fn pack(newest: u64, runs: &[u8]) -> Pack {
    Pack { newest, bytes: [&[FORM][..], &block::compress_prepend_size(runs)].concat() }
}

/// A run in a pack: its hybrid time, and its record unless that has a row of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    pub run: RunId,
    pub hlc: u64,
    pub record: Option<&'a [u8]>,
}

/// What [`runs`] reads; the error names what is wrong with the pack.
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some((form, packed)) = bytes.split_first() else { return Err("a pack of runs is empty".to_owned()) };
    if *form != FORM {
        return Err(format!("a pack of runs has the form {form}, which this release does not know"));
    }
    // Damage must not ask for any amount of memory.
    let (size, _) = block::uncompressed_size(packed).map_err(|e| format!("a pack of runs: {e}"))?;
    if size > limits::PACK_BYTES {
        return Err(format!("a pack of runs says that it has {size} bytes"));
    }
    let runs = block::decompress_size_prepended(packed).map_err(|e| format!("a pack of runs: {e}"))?;
    // One that was cut off may be readable up to there.
    if runs.len() != size {
        return Err(format!("a pack of runs has {} bytes of {size}", runs.len()));
    }
    Ok(runs)
}

/// Runs of what was unpacked; the error names what is wrong with it.
pub fn runs(mut rest: &[u8]) -> Result<Vec<Packed<'_>>, String> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (packed, after) = first(rest).ok_or("a pack of runs ends within a run")?;
        all.push(packed);
        rest = after;
    }
    Ok(all)
}

fn first(bytes: &[u8]) -> Option<(Packed<'_>, &[u8])> {
    let (run, rest) = bytes.split_first_chunk()?;
    let (hlc, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (record, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let record = Some(record).filter(|record| !record.is_empty());
    Some((Packed { run: RunId(u64::from_be_bytes(*run)), hlc: u64::from_be_bytes(*hlc), record }, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_bytes_of_a_pack_stay_as_they_are() {
        let made = packs(&[(RunId(0x0102), 7, b"ab".to_vec()), (RunId(3), 5, Vec::new())]);
        let plain = [
            &[0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, b'a', b'b'][..],
            &[0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!((made.len(), made[0].newest), (1, 7));
        assert_eq!(unpack(&made[0].bytes).unwrap(), plain);
        // As a block of LZ4 that holds it as it is: what is stored is read, however well it was compressed.
        let literals = [&[1, 42, 0, 0, 0, 0xf0, 42 - 15][..], &plain].concat();
        let back = unpack(&literals).unwrap();
        let packed = |run, hlc, record| Packed { run: RunId(run), hlc, record };
        assert_eq!(runs(&back).unwrap(), [packed(0x0102, 7, Some(&b"ab"[..])), packed(3, 5, None)]);
    }

    #[test]
    fn a_pack_is_bounded_and_damage_is_told() {
        let record = vec![7; limits::PACKED_RUN_BYTES];
        assert!(fits(&record));
        assert!(!fits(&[&record[..], &[7]].concat()));
        assert!(!fits(&[]));
        let many: Vec<_> = (1..=40).map(|n| (RunId(n), 100 - n, record.clone())).collect();
        let made = packs(&many);
        let plain: Vec<Vec<u8>> = made.iter().map(|pack| unpack(&pack.bytes).unwrap()).collect();
        assert!(made.len() > 1 && plain.iter().all(|bytes| bytes.len() <= limits::PACK_BYTES));
        let back: Vec<_> = plain.iter().flat_map(|bytes| runs(bytes).unwrap()).map(|packed| packed.run.0).collect();
        assert_eq!(back, (1..=40).collect::<Vec<_>>());
        assert_eq!(made[0].newest, 99);
        assert_ne!(made[0].sum(), made[1].sum());
        for damaged in [&[][..], &[2], &[1, 0, 0]] {
            assert!(unpack(damaged).is_err(), "{damaged:?}");
        }
        assert!(unpack(&[1, 0xff, 0xff, 0xff, 0xff, 0]).is_err_and(|why| why.contains("says that it has")));
        for cut in 6..made[0].bytes.len() {
            assert!(unpack(&made[0].bytes[..cut]).is_err(), "{cut}");
        }
        for cut in 1..HEAD {
            assert!(runs(&plain[0][..cut]).is_err(), "{cut}");
        }
    }
}
