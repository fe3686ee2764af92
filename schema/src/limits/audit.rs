//! Limits of the audit trail.

/// Records that one call of the list looks at, count. With filters that fit few of them a page ends there, and says how to go on.
pub const AUDIT_LOOKS: usize = 10_000;
/// Records without a frame of their own that are written together, count.
pub const AUDIT_BATCH: usize = 256;
/// They wait for each other so long, milliseconds. A change that a caller waits for is written at once.
pub const AUDIT_GATHER_MS: u64 = 1_000;
/// Equal refusals (credential or address, operation, code) of so long are one record with a count, milliseconds.
pub const AUDIT_REFUSALS_MS: i64 = 60_000;
/// Refusals that differ and are counted at once, count. What comes beyond them is counted by operation and code only.
pub const AUDIT_REFUSALS: usize = 4_096;
/// Records that wait for a shard that cannot be written, count. What comes beyond them is lost, and counted in
/// `campanile_audit_lost_total`.
pub const AUDIT_WAITING: usize = 8_192;
/// A change without a frame is answered after this time although its record could not be written yet, milliseconds.
pub const AUDIT_CHANGE_MS: u64 = 5_000;
/// Longest `target` of a record, bytes; what is longer is cut.
pub const AUDIT_TARGET_BYTES: usize = 256;
