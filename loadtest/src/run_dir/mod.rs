//! The files of a run directory: what executors, callers and faults write down while a run is on, and what the node says at its end.

pub mod export;
pub mod forget;
pub mod lines;
pub mod record;
