//! The interfaces of a node: HTTP, the errors of every interface, the same meaning in each of them, and the generated reference.
#![allow(clippy::unwrap_used)]

mod errors;
mod http_api;
mod metrics_page;
mod parity;
#[path = "../cli/program.rs"]
mod program;
mod python_methods;
mod reference;
mod roles;
mod schedules_guide;
#[path = "../support/mod.rs"]
mod support;
mod three_ways;
mod wait_codes;
