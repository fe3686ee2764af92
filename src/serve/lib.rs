//! What answers callers: the operations ([`ops`]), which check permissions, over HTTP ([`api`]) and MessagePack RPC ([`rpc`]).
#![forbid(unsafe_code)]

pub mod api;
pub mod ops;
pub mod rpc;
