//! One job: its definition, its schedule, its hot state and its open runs, and the commands that change them.
//!
//! Files: `state` what a job is; `command` the commands; `decide` how it decides them; `effect` what must happen
//! outside after a decision; `apply` how events change it; `graphs` open runs of DAGs; `dag` a job that has them; `deadline` until
//! when its runs have to end; `backfill` and
//! `backfill_command` a stretch of its past that it runs; `bulk` and
//! `bulk_command` operations on many jobs; `claim` which executor may report about an attempt;
//! `pending` which effects it still owes; `resting` what a start reads of a job without runs; `table` the legal steps;
//! `time_limit` how long a run may take; `rules` clauses by name, for tests that break them.

pub mod apply;
pub mod backfill;
pub mod backfill_command;
pub mod bulk;
pub mod bulk_command;
pub mod claim;
pub mod command;
pub mod dag;
mod deadline;
mod decide;
pub mod effect;
pub mod graphs;
mod held;
pub mod pending;
mod resting;
pub mod rules;
pub mod state;
pub mod table;
mod time_limit;

pub use backfill_command::{BackfillAsked, BackfillCommand, BackfillPage, BackfillStart};
pub use bulk_command::{BulkCommand, BulkStep, bulk_step};
pub use claim::Claimant;
pub use command::{Command, Context, Ids, NodeAsked, Taken};
pub use decide::{check_backfill, decide, decide_create, decide_next, same_request, too_many_instants};
pub use effect::{Assign, Effect, Need, Reply, WaitingRun};
pub use held::HeldTimes;
pub use resting::Resting;
pub use state::{HotState, Job, OpenRun};

use crate::outbox::MessageDraft;
use campanile_schema::event::Event;

/// What a command leads to: events (all or nothing, one frame), effects and an answer for after they are durable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    pub reply: Reply,
    /// Messages that belong to the same frame. The shard numbers them, and knows whether there is room.
    pub sends: Vec<MessageDraft>,
}
