//! Processes that a run starts and ends: the node, executors, and what they used.

pub mod children;
pub mod directory_format;
pub mod executor;
pub mod fleet;
pub mod node;
pub mod proc_stat;
