//! The ports: what the actors need from outside, which are stores, clocks and files. They are narrow traits, so that a
//! store, a simulated disk and a simulated clock can replace each other. The crate also has the few helpers that all
//! crates above it share.
#![forbid(unsafe_code)]

mod audit;
pub mod clock;
mod ended;
#[cfg(feature = "faults")]
pub mod faults;
pub mod log_once;
pub mod private;
pub mod release;
pub mod rows;
pub mod spans;
mod store;

pub use audit::{AuditFilling, AuditPage, AuditQuery};
pub use ended::EndedQuery;
pub use store::*;
