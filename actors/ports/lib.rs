//! What the actors need of the world around them: stores, clocks and files. Narrow traits, so that a store, a simulated disk and a
//! simulated clock can take each other's place, and the few helpers that everything above shares.
#![forbid(unsafe_code)]

pub mod clock;
#[cfg(feature = "faults")]
pub mod faults;
pub mod log_once;
pub mod private;
pub mod release;
pub mod rows;
mod store;

pub use store::*;
