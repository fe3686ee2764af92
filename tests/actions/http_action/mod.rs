//! HTTP actions end to end: a real node, real executors in processes of their own, real servers on loopback.

mod addresses;
use crate::program;
mod requests;
mod secrets;
mod stops;
mod target;
mod tls;
mod world;

/// Loopback is not public: servers of these tests are called only because executors are told so.
const LOOPBACK: [&str; 2] = ["--http-allow", "127.0.0.1"];
