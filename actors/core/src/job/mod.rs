//! One job: its definition, its schedule, its hot state and its open runs; and the verbs that change them.
//!
//! `state` what it is; `command` what can be asked; `effect` what must then be done outside; `decide` the verbs, one file
//! each; `claim` who may speak for an attempt; `apply` how events change it; `pending` which effects an interrupted job still owes; `resting` what a start reads of
//! a job without runs; `table` the legal steps.

pub mod apply;
pub mod claim;
pub mod command;
mod decide;
pub mod effect;
pub mod pending;
mod resting;
pub mod state;
pub mod table;

pub use claim::Claimant;
pub use command::{Command, Context, Ids, Taken};
pub use decide::{decide, decide_create, decide_next, same_request};
pub use effect::{Assign, Effect, Need, Reply, Waiting};
pub use resting::Resting;
pub use state::{HotState, Job, OpenRun};

use crate::outbox::Wanted;
use campanile_schema::event::Event;

/// What a command leads to: events (all or nothing, one frame), effects and an answer for after they are durable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    pub reply: Reply,
    /// Messages that belong to the same frame. The shard numbers them, and knows whether there is room.
    pub sends: Vec<Wanted>,
}
