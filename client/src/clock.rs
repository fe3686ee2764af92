//! The clock of credit and leases: CLOCK_BOOTTIME, which goes on while the machine is suspended.

/// Milliseconds since boot.
pub(crate) fn boot_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    (now.tv_sec as u64).saturating_mul(1000).saturating_add(now.tv_nsec as u64 / 1_000_000)
}

/// A number that differs from process to process and call to call; for session ids and jitter, not for secrets.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u64(boot_ms());
    hasher.finish()
}
