//! TLS for callers: what is served over it, who is refused and how that is told, and certificates that change while a node runs.
#![allow(clippy::unwrap_used)]

mod authority;
mod program;
mod refused;
mod renewal;
mod secure_node;
mod served;
mod silent;

#[path = "../cli/program.rs"]
mod cli;
#[path = "../support/mod.rs"]
mod support;
