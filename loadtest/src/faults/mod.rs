//! Runs in which something is killed, lost, broken or exchanged on purpose: `kill9`, `executor-loss`, `restore` and `upgrade`, and the defects
//! that a node can be given.

pub mod kill9;
pub mod kills;
pub mod loss;
pub mod mutation;
pub mod restore;
mod turns;
pub mod upgrade;
