//! The stores behind the ports of `campanile-actors`: **embedded** (one directory, the default), **cql** (a
//! cluster's) and **memory** (tests and simulation, with scripted faults). One conformance suite holds them to the same meaning.
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
#[cfg(any(test, feature = "testing"))]
pub mod samples;
