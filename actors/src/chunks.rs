//! Splits long lists for one shard into chunks that can travel between nodes: how much a caller or an executor may send at once is more than a
//! message from node to node may hold, and must not depend on where the shard is.

use campanile_schema::limits::{CALL_PART_BYTES, CALL_PART_ITEMS};
use serde::Serialize;
use std::io;

/// Counts what would be written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn length(item: &impl Serialize) -> usize {
    let mut length = Length(0);
    // Our own types: they have no form that cannot be written.
    let _ = rmp_serde::encode::write_named(&mut length, item);
    length.0
}

/// The same items in the same order. An item that is too large by itself is a chunk of its own.
pub(crate) fn chunks<T: Serialize>(items: Vec<T>) -> Vec<Vec<T>> {
    let mut chunks: Vec<Vec<T>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        let more = length(&item);
        match chunks.last_mut() {
            Some(last) if bytes + more <= CALL_PART_BYTES && last.len() < CALL_PART_ITEMS => {
                last.push(item);
                bytes += more;
            }
            Some(_) | None => {
                chunks.push(vec![item]);
                bytes = more;
            }
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::limits::GATEWAY_MESSAGE_BYTES;

    #[test]
    fn chunks_are_small_enough_and_lose_nothing() {
        let of = |length: usize, count: usize| (0..count).map(|n| (n, "x".repeat(length))).collect::<Vec<_>>();
        for items in [of(10, 0), of(10, 3), of(10, 10_000), of(16_000, 300), of(GATEWAY_MESSAGE_BYTES, 3)] {
            let (all, largest) = (items.clone(), items.iter().map(length).max().unwrap_or(0));
            let chunks = chunks(items);
            for chunk in &chunks {
                let bytes: usize = chunk.iter().map(length).sum();
                assert!(!chunk.is_empty());
                assert!(chunk.len() <= CALL_PART_ITEMS);
                assert!(bytes <= CALL_PART_BYTES.max(largest), "{bytes}");
            }
            let (last, rest) = (chunks.len().saturating_sub(1), all.len() / CALL_PART_ITEMS);
            assert!(last >= rest.saturating_sub(1), "{last} of {rest}");
            assert_eq!(chunks.concat(), all);
        }
        assert_eq!(chunks(of(10, 100)).len(), 1, "what fits travels together");
        let half = GATEWAY_MESSAGE_BYTES / 2;
        assert!(CALL_PART_BYTES <= half, "the message has more than the items");
    }
}
