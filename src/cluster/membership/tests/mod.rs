//! A network of members in virtual time, everything from a seed; and a few members over real sockets.
#![allow(clippy::unwrap_used)]

mod clocks;
mod forms;
mod packets;
mod refusals;
mod simulation;
mod sockets;
mod world;
