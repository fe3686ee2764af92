//! MessagePack RPC against a node in this process, with our clients and with programs that share no code with us.
#![allow(clippy::unwrap_used)]

mod announcements;
mod calls;
mod executors;
mod foreign;
mod logs;
mod snapshots_owed;
mod support;
mod watch;
mod wire;
