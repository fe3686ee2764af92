//! How long the first of several values is, without reading it.

/// Bytes that the MessagePack value at the beginning takes. None: it is cut off, or no value begins like this.
pub(super) fn encoded_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Values that are still to come, those inside of others too.
    let mut values = 1_usize;
    while values > 0 {
        let marker = *bytes.get(at)?;
        at += 1;
        // Bytes behind the marker, and values behind these.
        let (skipped, inside) = match marker {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => (0, 0),
            0x80..=0x8f => (0, 2 * usize::from(marker & 0x0f)),
            0x90..=0x9f => (0, usize::from(marker & 0x0f)),
            0xa0..=0xbf => (usize::from(marker & 0x1f), 0),
            0xcc | 0xd0 => (1, 0),
            0xcd | 0xd1 => (2, 0),
            0xca | 0xce | 0xd2 => (4, 0),
            0xcb | 0xcf | 0xd3 => (8, 0),
            0xc4 | 0xd9 => (1 + number(bytes, at, 1)?, 0),
            0xc5 | 0xda => (2 + number(bytes, at, 2)?, 0),
            0xc6 | 0xdb => (4 + number(bytes, at, 4)?, 0),
            0xdc => (2, number(bytes, at, 2)?),
            0xdd => (4, number(bytes, at, 4)?),
            0xde => (2, 2 * number(bytes, at, 2)?),
            0xdf => (4, number(bytes, at, 4)?.checked_mul(2)?),
            // Extensions: a type and bytes. Nothing of ours has any.
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return None,
        };
        at = at.checked_add(skipped)?;
        values = (values - 1).checked_add(inside)?;
    }
    (at <= bytes.len()).then_some(at)
}

/// A big-endian number of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let read = bytes.get(at..at + length)?;
    Some(read.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::encode;
    use serde::{Deserialize, Serialize, de::IgnoredAny};
    use std::{collections::BTreeMap, io::Cursor};

    fn check(value: &impl Serialize) {
        let one = encode(value);
        let two = [one.clone(), vec![0x81, 0xc3]].concat();
        assert_eq!((encoded_len(&one), encoded_len(&two)), (Some(one.len()), Some(one.len())), "{one:02x?}");
        for cut in (0..one.len()).step_by(one.len() / 32 + 1).chain([one.len() - 1]) {
            assert_eq!(encoded_len(&one[..cut]), None, "{cut} of {one:02x?}");
        }
        let mut reader = rmp_serde::Deserializer::new(Cursor::new(&two));
        IgnoredAny::deserialize(&mut reader).unwrap();
        assert_eq!(reader.position(), one.len() as u64, "{one:02x?}");
    }

    #[test]
    fn a_value_is_as_long_as_its_reader_finds() {
        for number in [0, 1, 127, 128, 255, 256, 65_535, 65_536, u64::from(u32::MAX), u64::MAX] {
            check(&number);
        }
        for number in [-1, -32, -33, -128, -129, -40_000, i64::from(i32::MIN), i64::MIN] {
            check(&number);
        }
        check(&(1.5_f32, 2.5_f64, true, false, None::<u8>));
        for length in [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            check(&"x".repeat(length));
            check(&serde_bytes::Bytes::new(&vec![0xc1; length]));
            check(&vec![7_u8; length]);
        }
        for length in [0_u32, 1, 15, 16, 65_536] {
            check(&(0..length).map(|n| (n, vec![n.to_string()])).collect::<BTreeMap<_, _>>());
        }
    }

    #[test]
    fn what_is_no_value_of_ours_has_no_length() {
        for none in [&[][..], &[0xc1], &[0xd4, 1, 2], &[0xdf, 0xff, 0xff, 0xff, 0xff], &[0xdb, 0xff, 0xff, 0xff, 0xff]]
        {
            assert_eq!(encoded_len(none), None, "{none:02x?}");
        }
    }
}
