//! All that Campanile stores or sends, and nothing else: ids, job specs, events, frames, records,
//! RPC and HTTP bodies, error codes and limits. No I/O, no clock, no async.
//!
//! Two families of forms live here:
//! - **callers' forms** (`job`, `view`, `rpc`): camelCase names, unknown fields refused by name;
//! - **stored forms** (`stored`, `event`, `record`, `frame`): short names, unknown fields ignored, so that
//!   a newer writer does not stop an older reader of the same format.
#![forbid(unsafe_code)]

pub mod apply;
pub mod audit;
pub mod calendar;
pub mod cluster;
pub mod error;
pub mod event;
mod executor_view;
pub mod format;
pub mod frame;
pub mod graph;
pub mod hooks;
pub mod ids;
pub mod job;
pub mod kinds;
pub mod limits;
pub mod loan;
pub mod operations;
pub mod payload;
pub mod peer;
pub mod reason;
pub mod record;
pub mod redact;
pub mod replace;
pub mod rpc;
pub mod shape;
pub mod stored;
pub mod text;
pub mod time;
pub mod trace;
pub mod view;
pub mod wait;
pub mod watch;
