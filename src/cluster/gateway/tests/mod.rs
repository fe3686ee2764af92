//! Gateways over loopback.
#![allow(clippy::unwrap_used)]

mod calls;
mod connections;
mod nodes;
