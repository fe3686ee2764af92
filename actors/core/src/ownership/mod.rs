//! Decides which session owns a shard: sessions, leases, fencing, sealing, claims, hand-overs, and which parts of the
//! journal are still needed.
//!
//! Pure: the clock is an argument, the store and the other nodes are inputs and outputs ([`Ownership`]).
//! `docs/ownership.md` has its invariants and why they hold. It never acts on a hint alone: the rows of the store
//! decide, and a hint only says where to look.
//!
//! Here `now_ms` is the node's CLOCK_BOOTTIME in milliseconds: a clock that nobody sets, and that counts suspend.

pub mod borrowed;
pub mod claim;
pub mod hold;
pub mod lanes;
pub mod loans;
pub mod node;
pub mod replay;
pub mod rows;
pub mod rules;
pub mod seal;
pub mod session;
pub mod store;
pub mod trim;
pub mod watch;

pub use node::{Hints, Output, Ownership, Refused, Settings, Transition};
pub use rules::Rule;
