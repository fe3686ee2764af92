//! A hash of a number that is as good as random and the same on every machine and in every release. Stored data, and
//! what nodes must agree on, depend on it.

/// From one number of [`mix`]'s sequence to the next.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood): `mix(seed + n * STEP)` is its n-th number.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
