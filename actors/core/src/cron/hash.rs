//! `H` fields: a value that looks random but is fixed by the job, so that a thousand daily jobs do not all start at
//! midnight. The numbers are part of the stored meaning of an expression and must never change.

use crate::mix::mix;

/// A value of `from..=to` for a field of a job.
pub(super) fn spread(seed: u64, field: u64, from: u32, to: u32) -> u32 {
    let size = u64::from(to - from) + 1;
    // The high half of the product, so that all bits of the mix count (Lemire's reduction).
    let high = (u128::from(mix(seed ^ mix(field + 1))) * u128::from(size)) >> 64;
    from + high as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_fixed_for_ever_and_spread_over_the_range() {
        let drawn: Vec<u32> = (0..8).map(|seed| spread(seed, 1, 0, 59)).collect();
        assert_eq!(drawn, FIXED);
        let mut counts = [0_u32; 60];
        (0..60_000).for_each(|seed| counts[spread(seed, 1, 0, 59) as usize] += 1);
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    /// Computed apart from this code, by a script.
    const FIXED: [u32; 8] = [23, 52, 35, 42, 52, 34, 52, 6];
}
