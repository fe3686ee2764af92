//! A simple implementation of matching, and random histories that are played to it and to the real one.

pub mod permits;
mod reference;
pub mod targets;
pub mod told;
pub mod world;

use campanile_core::mix::{STEP, mix};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// An executor got a run that it cannot take: its pool, its kind, its handler.
    Unfit,
    /// ... that its resources are too small for now.
    Room,
    /// ... without credit, on a void one, or beyond its slots.
    Credit,
    /// Another run came first.
    Order,
    /// Another executor was to get the run.
    Score,
    /// A run was matched although no more were to be.
    Extra,
    /// A run was to be matched and was not.
    Missing,
    /// An executor has another credit left.
    Left,
    /// A run waits in another place.
    Place,
    /// A permit was lent that there is not, or refused though there is one.
    Permit,
    /// More runs started in some time than the rate allows, or fewer.
    Rate,
    /// More retries of a target started than its budget allows, or fewer.
    Retry,
    /// An attempt of a target may start although the breaker holds it back, or the other way round.
    Breaker,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    pub kind: ViolationKind,
    pub told: String,
}

impl Violation {
    pub fn of(kind: ViolationKind, told: impl Into<String>) -> Self {
        Self { kind, told: told.into() }
    }
}

/// Numbers that a seed determines.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0) % limit
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub fn index(&mut self, length: usize) -> Option<usize> {
        (length > 0).then(|| self.below(length as u64) as usize)
    }
}
