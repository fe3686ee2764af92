//! Runs in which something is killed, lost or broken on purpose: `kill9`, `executor-loss` and `restore`, and the defects that a node can be
//! given.

pub mod kill9;
pub mod kills;
pub mod loss;
pub mod mutation;
pub mod restore;
