//! What attempts do: commands under the shim, and HTTP requests, with real processes and real servers.
#![allow(clippy::unwrap_used)]

mod command_leaves_nothing;
mod command_limits;
mod command_runs;
mod command_support;
mod http_action;
#[path = "../cli/program.rs"]
mod program;
