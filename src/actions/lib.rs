//! What the node's own executor does for an attempt: it runs a command, or sends an HTTP request or a
//! webhook.
#![forbid(unsafe_code)]

pub mod command;
pub mod executor;
pub mod http_action;
pub mod mask;
mod webhook;
