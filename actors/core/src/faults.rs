//! Defects that can be switched on, to see that the proofs turn red. Only under the feature `faults`; never in a release.
//!
//! Process-wide: a node sets them at its start (`CAMPANILE_FAULT=mutation:NAME`), a test holds its own lock around them.

use std::sync::atomic::{AtomicU32, Ordering};

/// One defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mutation {
    /// The cursor passes instants without an entry in the ledger.
    ForgetOutcome,
    /// A new attempt gets the token of the one before.
    ReuseToken,
    /// Instants are taken for due three seconds before they are.
    FireEarly,
    /// A result is accepted whatever its token says.
    AcceptStale,
    /// Paused jobs, tenants and systems fire.
    ForgetPause,
}

impl Mutation {
    pub const ALL: [Self; 5] =
        [Self::ForgetOutcome, Self::ReuseToken, Self::FireEarly, Self::AcceptStale, Self::ForgetPause];

    /// As it is named in `CAMPANILE_FAULT=mutation:NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ForgetOutcome => "forget_outcome",
            Self::ReuseToken => "reuse_token",
            Self::FireEarly => "fire_early",
            Self::AcceptStale => "accept_stale",
            Self::ForgetPause => "forget_pause",
        }
    }
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }
    fn bit(self) -> u32 {
        1 << self as u32
    }
}

static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Switches a defect on or off, for the whole process.
pub fn set(mutation: Mutation, on: bool) {
    if on {
        ACTIVE.fetch_or(mutation.bit(), Ordering::Relaxed);
    } else {
        ACTIVE.fetch_and(!mutation.bit(), Ordering::Relaxed);
    }
}

/// Whether a defect is switched on.
pub fn active(mutation: Mutation) -> bool {
    ACTIVE.load(Ordering::Relaxed) & mutation.bit() != 0
}
