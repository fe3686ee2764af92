//! The stores that implement the ports of `campanile-ports`: **embedded** (one directory, the default), **cql** (of a
//! cluster) and **memory** (for tests and simulation, with scripted faults). One conformance suite checks that they
//! mean the same.
//!
//! What they never do: interpret frames, decide anything, or retry on their own.

#![forbid(unsafe_code)]

pub mod archive;
pub mod blocking;
pub mod cql;
pub mod embedded;
pub mod file;
pub mod memory;
pub mod progress;
pub mod tables;

#[cfg(test)]
mod conformance;
#[cfg(test)]
#[path = "../../schema/tests/golden_forms/mod.rs"]
mod golden_forms;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
