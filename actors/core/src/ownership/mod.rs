//! Who owns a shard: sessions, leases, fencing, sealing, claims, hand-overs, and what of the journal is still needed.
//!
//! Pure: the clock is an argument, store and peers are inputs and outputs ([`Ownership`]). What it holds and why it is safe:
//! `docs/ownership.md`. It never acts on a hint: the store's rows decide, a hint only says where to look.
//!
//! Here `now_ms` is CLOCK_BOOTTIME of the node, milliseconds: a clock that nobody sets, and that counts suspend.

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
