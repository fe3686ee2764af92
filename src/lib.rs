//! The node: configuration, the command line, and the order in which everything starts and stops.
#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod files;
pub mod node;
pub mod zones;
