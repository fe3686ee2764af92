//! What `by_time` holds: which runs ended when, for retention and for days of history. Runs that stand in no list of their tenant share a
//! row, a pack: those of one batch that ended within one second. A run that stands in one has a row of its own, which names the tenant.
//!
//! A pack's key is that of its first run and a byte more. Its value, all of it part of what is stored: a byte that says the form, and for
//! each run milliseconds after the first one's end and its id, as big-endian numbers.
//!
//! An entry is a hint, and may be there twice: after a crash batches are cut in other places. Readers ask the run's own row.

use super::{keys, staging::Table, stretch::Writes};
use campanile_schema::ids::RunId;

/// Of this form. Rows of single runs begin with the lists that the run stands in, two bits.
const FORM: u8 = 0x80;
/// A run in a pack.
const ENTRY: usize = 2 + 8;
/// Runs of a pack end within one of these, milliseconds: so readers know where to begin.
pub const SPAN_MS: i64 = 1_000;
/// Runs of a pack at most.
const RUNS: usize = 512;

/// When it ended, and the run.
pub type Ended = (i64, RunId);

/// Writes packs of these runs, in any order.
pub fn put(writes: &mut Writes, mut ended: Vec<Ended>) {
    ended.sort_unstable_by_key(|(at, run)| (*at, run.0));
    for second in ended.chunk_by(|(a, _), (b, _)| a.div_euclid(SPAN_MS) == b.div_euclid(SPAN_MS)) {
        for runs in second.chunks(RUNS) {
            put_one(writes, runs);
        }
    }
}

/// Writes one, of runs in order.
pub fn put_one(writes: &mut Writes, runs: &[Ended]) {
    let Some((first, run)) = runs.first() else { return };
    writes.write(Table::ByTime, keys::pack(*first, *run), |value| {
        value.push(FORM);
        for (at, run) in runs {
            // Below `SPAN_MS`.
            value.extend(((at - first) as u16).to_be_bytes());
            value.extend(run.0.to_be_bytes());
        }
    });
}

/// The runs of a row, in order; None: it is one run's own.
pub fn of(key: &[u8], value: &[u8]) -> Option<Vec<Ended>> {
    let runs = value.strip_prefix(&[FORM])?;
    let (first, _) = keys::of_by_time(key)?;
    let entry = |bytes: &[u8]| {
        let (after, run) = bytes.split_first_chunk()?;
        Some((first + i64::from(u16::from_be_bytes(*after)), RunId(u64::from_be_bytes(*run.first_chunk()?))))
    };
    Some(runs.chunks_exact(ENTRY).filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn packs_have_all_runs_in_order_each_within_a_second_and_none_too_large() {
        let runs = || (0..2_000_u64).map(|n| (-5_000 + (n as i64 * 7) % 9_000, RunId(n * 4096 + 9)));
        let mut writes = Writes::default();
        put(&mut writes, runs().collect());
        let mut read = Vec::new();
        for (key, value) in &writes.into_tables()[Table::ByTime as usize] {
            let runs = of(key, value.as_ref().unwrap()).unwrap();
            assert!((1..=RUNS).contains(&runs.len()));
            assert!(runs.iter().all(|(at, _)| at.div_euclid(SPAN_MS) == runs[0].0.div_euclid(SPAN_MS)));
            read.extend(runs);
        }
        let mut expected: Vec<Ended> = runs().collect();
        expected.sort_unstable_by_key(|(at, run)| (*at, run.0));
        assert_eq!(read, expected);
    }

    #[test]
    fn the_bytes_of_a_pack_are_these() {
        let mut writes = Writes::default();
        put(&mut writes, vec![(1_003, RunId(2)), (1_001, RunId(258))]);
        let rows = &writes.into_tables()[Table::ByTime as usize];
        assert_eq!(rows[0].0, keys::pack(1_001, RunId(258)));
        let bytes = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(rows[0].1.as_deref(), Some(&bytes[..]));
        assert_eq!(of(&rows[0].0, &[1]), None, "a failed run's own");
    }
}
