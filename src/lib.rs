//! The node: configuration, stores, RPC, HTTP, CLI, and the order in which all of it starts and stops.
#![forbid(unsafe_code)]

pub mod api;
pub mod auth;
pub mod cli;
pub mod cluster;
pub mod command;
pub mod config;
pub mod crontab;
pub mod executor;
pub mod files;
pub mod home;
pub mod http_action;
pub mod manifest;
mod mask;
mod measured;
pub mod node;
pub mod ops;
mod rate;
pub mod rpc;
pub mod secrets;
pub mod store;
pub mod text;
pub mod tls;
pub mod zones;
