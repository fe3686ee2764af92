//! The outbox: how the decision of one job makes a run of another one, once, whatever dies in between.
//!
//! **Problem.** A run that ends in one shard makes a run in another shard, perhaps on another node. Both shards crash, move and are
//! restored from backups, and what travels between them is lost, doubled, delayed and reordered.
//!
//! **States of a message.** *Owed* from the frame of the decision that sent it; then *settled* (its receiver has made its effect
//! durable), *refused* (never), or *undelivered* (no answer for a day). A hook without room is *dropped*. Only events change that.
//!
//! **Invariants.**
//! - A message leaves the node when its frame is durable, and is repeated until an answer that is durable at the receiver.
//! - The receiver acts once for each key. So a repeat, a second node that sends the same, and an answer that was lost cost nothing.
//! - Nothing that is owed is kept only in memory: [`Outbox`] is state, [`Courier`] is built again from it.
//! - What takes a message needs no room in its own outbox for that.
//!
//! **Files.** `keys` names effects; `bounds` who may send how much; `sending` decides messages and `body` says what they hold; `state` what is owed; `courier` which
//! messages travel when; `receiver` what is said to one; `memory` which keys are known; `moving` restore and migrate; `rules` each
//! clause by name, to break it on purpose. ADR 0028 has the reasons.
//!
//! **What this never does:** order messages, carry pauses, keys of creates or loans.

pub mod body;
pub mod bounds;
pub mod courier;
pub mod keys;
pub mod memory;
pub mod moving;
pub mod receiver;
pub mod rules;
pub mod sending;
pub mod state;

pub use bounds::{Bounds, Full};
pub use courier::{Batch, Courier, Now, parcel};
pub use memory::{KeyMemory, LookUp};
pub use receiver::{Take, take};
pub use rules::Rule;
pub use sending::{MessageDraft, Sending};
pub use state::Outbox;
